"""Writes `tests/picture`: image files, and the results of Hugging Face's image processors.

    python tests/picture/make.py tests/picture

Needs pillow, torch and transformers. `cases.json` holds, for each case, the model of `tests/hub`, its
`preprocessor_config.json`, an image, the numbers the processor gives and the logits the model computes from them.
The other files cannot be used, or need something done to them first.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

import numpy
import PIL.Image
import torch
import transformers

MODELS = {"vit": "ViTForImageClassification", "deit": "DeiTForImageClassification",
          "dinov2": "Dinov2ForImageClassification", "beit": "BeitForImageClassification"}
HALF = [0.5, 0.5, 0.5]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

# model, image, content of its preprocessor_config.json
CASES = [
    ("vit", "photo.png", dict(image_processor_type="ViTImageProcessor", size=dict(height=16, width=16), resample=2,
        do_resize=True, do_rescale=True, rescale_factor=1 / 255, do_normalize=True, image_mean=HALF, image_std=HALF)),
    ("vit", "small.png", dict(image_processor_type="ViTImageProcessorFast", size=dict(height=16, width=16), resample=3)),
    ("vit", "photo.png", dict(feature_extractor_type="ViTFeatureExtractor", do_normalize=True, do_resize=True,
        image_mean=MEAN, image_std=STD, size=16)),
    ("vit", "photo.png", dict(image_processor_type="ViTImageProcessor", size=16, resample=1, do_normalize=False)),
    ("vit", "photo.png", dict(image_processor_type="ViTImageProcessor", size=16, resample=0, do_rescale=False,
        do_normalize=False)),
    ("vit", "photo.png", dict(image_processor_type="ViTImageProcessor", size=16, resample=4)),
    ("vit", "photo.png", dict(image_processor_type="ViTImageProcessor", size=16, resample=5)),
    ("deit", "photo.png", dict(image_processor_type="DeiTImageProcessor", size=dict(height=12, width=12), resample=3,
        do_center_crop=True, crop_size=dict(height=8, width=8), image_mean=MEAN, image_std=STD)),
    ("deit", "small.png", dict(image_processor_type="DeiTImageProcessor", do_resize=False, crop_size=8)),
    ("dinov2", "photo.png", dict(image_processor_type="BitImageProcessor", size=dict(shortest_edge=11), resample=3,
        do_center_crop=True, crop_size=dict(height=8, width=8), do_convert_rgb=True, image_mean=MEAN, image_std=STD)),
    ("dinov2", "palette.png", dict(image_processor_type="BitImageProcessor", size=dict(shortest_edge=9), crop_size=8)),
    # BEiT crops only if it is told to, although it has a size for that.
    ("beit", "photo.png", dict(image_processor_type="BeitImageProcessor", size=dict(height=12, width=12),
        crop_size=dict(height=8, width=8), do_center_crop=False, resample=2, image_mean=HALF, image_std=HALF)),
    ("beit", "small.png", dict(image_processor_type="BeitImageProcessor", size=12)),
    ("beit", "photo.png", dict(image_processor_type="BeitImageProcessorFast", size=dict(height=17, width=15), do_center_crop=True,
        crop_size=dict(height=12, width=12), image_mean=MEAN, image_std=STD, do_reduce_labels=True)),
    ("beit", "alpha.png", dict(feature_extractor_type="BeitFeatureExtractor", size=20, crop_size=12, do_center_crop=True,
        do_normalize=False)),
    ("beit", "palette.png", dict(image_processor_type="BeitImageProcessor", size=12, do_rescale=False, do_resize=True)),
    ("dinov2", "alpha.png", dict(image_processor_type="BitImageProcessor", size=dict(shortest_edge=9), crop_size=8)),
]


def photo(height, width):
    """Smooth colours with an edge across them."""
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float64)
    planes = [128 + 100 * numpy.sin(x / 5), 128 + 100 * numpy.cos(y / 4), 255 * (x * 3 > y * 4)]
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def files(folder):
    image = PIL.Image.fromarray(photo(37, 53))
    image.save(folder / "photo.png")
    PIL.Image.fromarray(photo(5, 7)).save(folder / "small.png")
    image.quantize(16).save(folder / "palette.png")
    clear = image.copy()
    clear.putalpha(PIL.Image.fromarray(photo(37, 53)[..., 0]))
    clear.save(folder / "alpha.png")
    grey = (photo(37, 53)[..., 1].astype(numpy.uint16) * 257)
    PIL.Image.fromarray(grey).save(folder / "grey16.png")
    image.save(folder / "photo.jpg", quality=95, subsampling=0)
    image.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image.transpose(PIL.Image.Transpose.ROTATE_90).save(folder / "turned.jpg", quality=95, subsampling=0, exif=exif)
    image.save(folder / "moving.gif", save_all=True, append_images=[image.rotate(90)])
    whole = (folder / "photo.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    whole = (folder / "photo.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) * 2 // 3])
    broken = bytearray((folder / "photo.png").read_bytes())
    broken[len(broken) // 2] ^= 0x40
    (folder / "flipped.png").write_bytes(broken)
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    huge = chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0))
    (folder / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + huge + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""))
    (folder / "words.png").write_bytes(b"no image at all\n")


def case(folder, model, image, config):
    name = config.get("image_processor_type") or config["feature_extractor_type"].replace("FeatureExtractor", "ImageProcessor")
    processor = getattr(transformers, name.removesuffix("Fast") + "Pil").from_dict(dict(config))
    loaded = transformers.image_utils.load_image(str(folder / image))
    values = processor(loaded, return_tensors="pt")["pixel_values"].float()
    network = getattr(transformers, MODELS[model]).from_pretrained(folder.parent / "hub" / model).eval().float()
    with torch.no_grad():
        logits = network(pixel_values=values).logits
    numbers = lambda tensor: [float(f"{x:.8g}") for x in tensor.flatten().tolist()]
    return {"model": model, "image": image, "preprocessor": config, "values": numbers(values), "logits": numbers(logits)}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    folder = Path(sys.argv[1])
    files(folder)
    cases = [case(folder, *c) for c in CASES]
    lines = ",\n".join(json.dumps(c) for c in cases)
    (folder / "cases.json").write_text(f"[\n{lines}\n]\n")
