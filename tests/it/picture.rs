//! Image files: preprocessed like Hugging Face's processors do, or refused with the reason.
//!
//! `tests/picture/make.py` makes the files and `cases.json`, which says what the library makes of them.

use serde_json::{Value as Json, json};
use trafoc::learn::data::Form;
use trafoc::learn::data::picture::{Preparation, Unfit, picture};

use crate::compiled::repository;

fn cases() -> Vec<Json> {
    let text = std::fs::read_to_string(repository("tests/picture/cases.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Json) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
}

#[test]
fn images_become_the_numbers_of_the_library() {
    for case in cases() {
        let preparation = Preparation::of(&case["preprocessor"], None).unwrap();
        let wanted = numbers(&case["values"]);
        let side = (wanted.len() / 3).isqrt();
        let image = repository("tests/picture").join(case["image"].as_str().unwrap());
        let found = picture(&image, Form { channels: 3, side }, &preparation).unwrap();
        assert_eq!(found.len(), wanted.len());
        let off = found.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        let scale = wanted.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        assert!(off <= 1e-6 * scale, "{} is off by {off}", case["preprocessor"]);
    }
}

fn plain(image: &str, channels: usize) -> Result<Vec<f32>, String> {
    let form = Form { channels, side: 16 };
    let image = repository("tests/picture").join(image);
    picture(&image, form, &Preparation::plain(form, true)).map_err(Unfit::into_message)
}

#[test]
fn other_files_are_read_or_refused_with_their_reason() {
    let wanted = plain("photo.png", 3).unwrap();
    // Two jpeg decoders round differently, and the conversion of CMYK differs a little more.
    for (image, most) in [("photo.jpg", 0.03), ("turned.jpg", 0.03), ("cmyk.jpg", 0.06), ("alpha.png", 0.0)] {
        let found = plain(image, 3).unwrap();
        let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off <= most, "{image} is off by {off}");
    }
    // The grey image was made of the green channel.
    let green = &wanted[256..512];
    for channels in [1, 3] {
        let grey = plain("grey16.png", channels).unwrap();
        assert!(grey.chunks(256).all(|plane| plane.iter().zip(green).all(|(a, b)| (a - b).abs() < 1e-6)));
    }
    let refused = [
        ("cut.png", "cut off"),
        ("cut.jpg", "cut off"),
        ("flipped.png", "it is damaged: its png data cannot be decoded"),
        ("huge.png", "more than 16384 pixels on a side"),
        ("moving.gif", "it has the format of files that end in .gif, but only png and jpeg are supported"),
        ("words.png", "neither png nor jpeg"),
        ("absent.png", "there is no such file"),
        (".", "it is a folder"),
    ];
    for (image, why) in refused {
        let found = plain(image, 3).unwrap_err();
        assert!(found.contains(why), "{image}: {found}");
    }
}

#[test]
fn what_a_preprocessor_says_is_known_or_refused() {
    let of = |more: Json| {
        let mut config = json!({"image_processor_type": "ViTImageProcessor"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Preparation::of(&config, None).unwrap_err().join("; ")
    };
    let cases = [
        (
            json!({"image_processor_type": "OwlImageProcessor"}),
            "the processor `OwlImageProcessor` is not supported",
        ),
        (json!({"crop_pct": 0.9}), "the key `crop_pct` is not supported"),
        (json!({"do_pad": true}), "the key `do_pad` is not supported"),
        (json!({"size": {"longest_edge": 9}}), "`size` is {\"longest_edge\":9}"),
        (json!({"size": {"height": 0, "width": 9}}), "in pixels"),
        (json!({"size": 1e9}), "in pixels"),
        (json!({"resample": 9}), "`resample` is 9"),
        (json!({"image_std": [0, 1, 1]}), "values would be divided"),
        (json!({"image_mean": [1, 1]}), "a number for each channel"),
        (
            json!({"do_resize": "yes", "rescale_factor": "x"}),
            "`do_resize` is \"yes\", but must be true or false; `res",
        ),
    ];
    for (config, why) in cases {
        let found = of(config);
        assert!(found.contains(why), "{found}");
    }
    // A key that is `null` or `false` has no effect.
    let idle = json!({"image_processor_type": "ViTImageProcessor", "do_pad": false, "pad_size": null});
    assert!(Preparation::of(&idle, None).is_ok());
    assert!(Preparation::of(&json!({}), None).is_err() && Preparation::of(&json!([]), None).is_err());
    // A file that names no processor uses the model's usual one.
    let named = json!({"image_processor_type": "DeiTImageProcessor", "size": 9});
    assert_eq!(
        Preparation::of(&json!({"size": 9}), Some("DeiTImageProcessor")),
        Preparation::of(&named, None)
    );
    // A narrow strip would become a very large image.
    let form = Form { channels: 3, side: 16 };
    let refused = |config: Json| {
        let preparation = Preparation::of(&config, None).unwrap();
        picture(&repository("tests/picture/photo.png"), form, &preparation).unwrap_err().into_message()
    };
    let wide = json!({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 16_000}, "crop_size": 16});
    assert!(refused(wide).contains("would become 16000x22918"));
    let large = json!({"image_processor_type": "DeiTImageProcessor", "size": 12, "crop_size": 16_000});
    assert!(refused(large).contains("the image has the size 16000x16000, but the model takes 16x16"));
}

#[cfg(feature = "interp")]
#[test]
fn an_image_of_another_size_is_refused_with_the_setting_that_resizes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("images/a")).unwrap();
    std::fs::copy(repository("tests/picture/photo.png"), path("images/a/1.png")).unwrap();
    let spec = "trafo: 1\nname: tiny\nd_model: 8\n\
        embed: {patches: {image: 8, size: 4, channels: 3}, position: learned}\n\
        encoder: {layers: 1, block: pre_norm, attention: {heads: 2}, ffn: {expansion: 2}}\n\
        norm: layer_norm\nhead: {classify: {pool: mean, classes: 2}}\n";
    std::fs::write(path("spec.yaml"), spec).unwrap();
    std::fs::write(path("recipe.yaml"), "recipe: 1\ndata: {format: images, train: images}\nsteps: 1\n")
        .unwrap();
    let mut command = crate::compiled::program();
    command.current_dir(folder.path()).args([
        "train",
        "spec.yaml",
        "--recipe",
        "recipe.yaml",
        "--out",
        "run",
    ]);
    let output = crate::cli::kept(command.output().unwrap());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("the image has the size 53x37, but the model takes 8x8"), "{err}");
    assert!(err.contains("`{images: {resize: true}}` resizes it to the model's size"), "{err}");
}

#[cfg(feature = "interp")]
#[test]
fn imported_models_classify_images() {
    let predict = |model: &std::path::Path, image: &std::path::Path, more: &[&str]| {
        let mut command = crate::compiled::program();
        command.arg("predict").arg(model).arg("--image").arg(image).args(more);
        let output = crate::cli::kept(command.output().unwrap());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for case in cases() {
        let folder = tempfile::tempdir().unwrap();
        let model = repository("tests/hub").join(case["model"].as_str().unwrap());
        for name in ["config.json", "model.safetensors"] {
            std::fs::copy(model.join(name), folder.path().join(name)).unwrap();
        }
        let image = repository("tests/picture").join(case["image"].as_str().unwrap());
        let (code, _, err) = predict(folder.path(), &image, &[]);
        assert!(code == Some(4) && err.contains("has no preprocessor_config.json"), "{err}");
        let preprocessor = folder.path().join("preprocessor_config.json");
        std::fs::write(&preprocessor, case["preprocessor"].to_string()).unwrap();
        let (code, out, err) = predict(folder.path(), &image, &["--format", "json"]);
        assert_eq!(code, Some(0), "{err}");
        let said: Json = serde_json::from_str(&out).unwrap();
        let classes = said["data"]["predictions"][0]["classes"].as_array().unwrap().clone();
        let logits = numbers(&case["logits"]);
        let most = logits.iter().fold(f64::MIN, |m, x| m.max(*x));
        let sum: f64 = logits.iter().map(|x| (x - most).exp()).sum();
        let config: Json =
            serde_json::from_str(&std::fs::read_to_string(model.join("config.json")).unwrap()).unwrap();
        for (i, logit) in logits.iter().enumerate() {
            let name = &config["id2label"][i.to_string()];
            let found = classes.iter().find(|class| class["class"] == *name).unwrap();
            let (found, wanted) = (found["probability"].as_f64().unwrap(), (logit - most).exp() / sum);
            assert!((found - wanted).abs() < 1e-4, "{name} is {found}, not {wanted}");
        }
        std::fs::write(&preprocessor, r#"{"image_processor_type": "ViTImageProcessor", "size": 9}"#).unwrap();
        let (code, _, err) = predict(folder.path(), &image, &[]);
        assert!(code == Some(4) && err.contains("the image has the size 9x9, but the model takes"), "{err}");
    }
}

#[cfg(feature = "interp")]
#[test]
fn a_processor_that_is_not_supported_is_refused_with_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let model = repository("tests/hub/vit");
    for name in ["model.safetensors", "config.json"] {
        std::fs::copy(model.join(name), folder.path().join(name)).unwrap();
    }
    let processor = json!({"image_processor_type": "OwlImageProcessor"});
    std::fs::write(folder.path().join("preprocessor_config.json"), processor.to_string()).unwrap();
    let mut command = crate::compiled::program();
    command.arg("predict").arg(folder.path()).arg("--image").arg(repository("tests/picture/photo.png"));
    let output = crate::cli::kept(command.output().unwrap());
    let refused = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && refused.contains("`OwlImageProcessor` is not supported"),
        "{refused}"
    );
    assert!(refused.contains("`trafoc run` takes images as numbers"), "{refused}");
}
