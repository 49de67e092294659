//! How an image becomes numbers, and the `preprocessor_config.json` that describes it for a Hugging Face
//! model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::Unfit;
use super::resample::{Filter, Pixels};
use crate::diag::suggest::suggest;
use crate::learn::data::form::Form;

/// The steps from the pixels of an image to a model's input, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// The size to which the image is resized first, and the filter.
    pub resize: Option<(Size, Filter)>,
    /// The height and width to which the image is cropped around its middle.
    pub crop: Option<[usize; 2]>,
    /// The factor on the bytes.
    pub factor: f64,
    /// Mean and standard deviation for `(x - mean) / std`, one of each for every channel or one for all;
    /// `None` if values are not normalized.
    pub normal: Option<(Vec<f64>, Vec<f64>)>,
}

/// The size to which an image is resized, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Height and width, regardless of the image's own.
    Whole([usize; 2]),
    /// The shorter side; the other one keeps the proportion.
    Shorter(usize),
}

/// The most pixels of an image after resizing. Two small numbers in a config could ask for any size.
const MOST_PIXELS: usize = 64 << 20;

/// The supported image processors, each with the defaults of its file.
const PROCESSORS: &[Processor] = &[
    Processor {
        name: "ViTImageProcessor",
        size: Size::Whole([224; 2]),
        filter: Filter::Bilinear,
        crop: None,
        crops: false,
        mean: [0.5; 3],
        std: [0.5; 3],
    },
    Processor {
        name: "DeiTImageProcessor",
        size: Size::Whole([256; 2]),
        filter: Filter::Bicubic,
        crop: Some([224; 2]),
        crops: true,
        mean: [0.5; 3],
        std: [0.5; 3],
    },
    Processor {
        name: "BitImageProcessor",
        size: Size::Shorter(224),
        filter: Filter::Bicubic,
        crop: Some([224; 2]),
        crops: true,
        // The library's defaults for this processor, which are those of CLIP.
        mean: [0.48145466, 0.4578275, 0.40821073],
        std: [0.26862954, 0.26130258, 0.27577711],
    },
    Processor {
        name: "BeitImageProcessor",
        size: Size::Whole([224; 2]),
        filter: Filter::Bicubic,
        // It has a size for cropping, but crops only if it is told to.
        crop: Some([224; 2]),
        crops: false,
        mean: [0.5; 3],
        std: [0.5; 3],
    },
];

struct Processor {
    name: &'static str,
    size: Size,
    filter: Filter,
    /// The size to which it crops unless it is given one.
    crop: Option<[usize; 2]>,
    /// Whether it crops unless it is told.
    crops: bool,
    mean: [f64; 3],
    std: [f64; 3],
}

/// The filters by the numbers that Pillow gives them.
const FILTERS: [Filter; 6] =
    [Filter::Nearest, Filter::Lanczos, Filter::Bilinear, Filter::Bicubic, Filter::Box, Filter::Hamming];

/// Keys that have no influence on the numbers of an image.
const IDLE: &[&str] = &[
    "image_processor_type",
    "feature_extractor_type",
    "processor_class",
    "_valid_processor_keys",
    "do_convert_rgb",
    "return_tensors",
    "data_format",
    "disable_grouping",
    "device",
    "default_to_square",
    // About the labels of pixels, which only segmentation has.
    "do_reduce_labels",
    "reduce_labels",
];

/// Keys that are interpreted. Any other key that is set is an error, since it may change the numbers.
const KEYS: &[&str] = &[
    "do_resize",
    "size",
    "resample",
    "do_center_crop",
    "crop_size",
    "do_rescale",
    "rescale_factor",
    "do_normalize",
    "image_mean",
    "image_std",
];

impl Preparation {
    /// The preprocessing of models trained with trafoc: black is 0 and white is 1; an image of another size
    /// is resized, or is an error.
    pub fn plain(form: Form, resize: bool) -> Self {
        let resize = resize.then_some((Size::Whole([form.side; 2]), Filter::Bilinear));
        Self { resize, crop: None, factor: 1.0 / 255.0, normal: None }
    }

    /// The steps that a `preprocessor_config.json` describes, for the processor it names or the model's
    /// `usual` one.
    ///
    /// # Errors
    /// The settings that are not supported, one sentence each.
    pub fn of(config: &Json, usual: Option<&str>) -> Result<Self, Vec<String>> {
        let Json::Object(config) = config else { return Err(vec!["it is not a JSON object".to_owned()]) };
        let mut reading = Reading { config, usual, faults: Vec::new() };
        let found = reading.preparation();
        match found {
            Some(found) if reading.faults.is_empty() => Ok(found),
            Some(_) | None => Err(reading.faults),
        }
    }

    /// The `preprocessor_config.json` that describes these steps.
    pub fn config(&self) -> Json {
        let whole = |[height, width]: [usize; 2]| json!({ "height": height, "width": width });
        // Of the library's processors, this one crops or not and scales both sides; only the other keeps
        // proportions.
        let mut config = json!({
            "image_processor_type": "DeiTImageProcessor", "do_resize": self.resize.is_some(),
            "do_center_crop": self.crop.is_some(), "do_rescale": true, "rescale_factor": self.factor,
            "do_normalize": self.normal.is_some(),
        });
        if let Some((size, filter)) = self.resize {
            config["size"] = match size {
                Size::Whole(size) => whole(size),
                Size::Shorter(side) => json!({ "shortest_edge": side }),
            };
            config["resample"] = json!(FILTERS.iter().position(|known| *known == filter));
            if matches!(size, Size::Shorter(_)) {
                config["image_processor_type"] = json!("BitImageProcessor");
            }
        }
        if let Some(size) = self.crop {
            config["crop_size"] = whole(size);
        }
        if let Some((mean, std)) = &self.normal {
            config["image_mean"] = json!(mean);
            config["image_std"] = json!(std);
        }
        config
    }

    /// The numbers of an image, `[C, H, W]`.
    ///
    /// # Errors
    /// The size differs from the one the model takes, or becomes too large on the way.
    pub(super) fn apply(&self, mut pixels: Pixels, form: Form) -> Result<Vec<f32>, Unfit> {
        let given = [pixels.height, pixels.width];
        let resized = self.resize.map_or(given, |(size, _)| size.of(pixels.height, pixels.width));
        let [height, width] = self.crop.unwrap_or(resized);
        // Both sizes are checked before memory is allocated for them.
        if (height, width) != (form.side, form.side) {
            return Err(Unfit::Size(form.mismatch(height, width)));
        }
        let [height, width] = resized;
        if height.checked_mul(width).is_none_or(|n| n > MOST_PIXELS) {
            let message = format!("{}x{} would become {height}x{width}", pixels.height, pixels.width);
            return Err(Unfit::Other(message));
        }
        if let Some((_, filter)) = self.resize {
            pixels = pixels.resized(height, width, filter);
        }
        if let Some([height, width]) = self.crop {
            pixels = pixels.cropped(height, width);
        }
        let mut values = Vec::with_capacity(form.size());
        for channel in 0..form.channels {
            // Pixels are `[H, W, C]` in files, and models read `[C, H, W]`.
            let own = pixels.bytes.iter().skip(channel).step_by(form.channels);
            values.extend(own.map(|byte| self.value(channel, f64::from(*byte))));
        }
        Ok(values)
    }

    /// The number for a byte of a channel, 0 to 255.
    pub fn value(&self, channel: usize, byte: f64) -> f32 {
        // A single number is for all channels.
        let of = |all: &[f64]| all.get(channel).or(all.first()).copied();
        let normal = self.normal.as_ref().and_then(|(mean, std)| of(mean).zip(of(std)));
        let (mean, std) = normal.unwrap_or((0.0, 1.0));
        ((byte * self.factor - mean) / std) as f32
    }
}

impl Size {
    /// The height and width to which an image of this size is resized.
    fn of(self, height: usize, width: usize) -> [usize; 2] {
        // Rounded down, as `int()` does in the library.
        let longer = |side: usize, long: usize, short: usize| {
            usize::try_from(side as u128 * long as u128 / short.max(1) as u128).unwrap_or(usize::MAX)
        };
        match self {
            Size::Whole(size) => size,
            Size::Shorter(side) if width <= height => [longer(side, height, width), side],
            Size::Shorter(side) => [side, longer(side, width, height)],
        }
    }
}

struct Reading<'a> {
    config: &'a Map<String, Json>,
    usual: Option<&'a str>,
    faults: Vec<String>,
}

impl Reading<'_> {
    /// Reads all steps; `None` if the processor is not known, with the reason among the faults.
    fn preparation(&mut self) -> Option<Preparation> {
        // First, because the defaults of the other keys are those of the processor.
        let processor = self.processor()?;
        for (key, value) in self.config {
            // A key that is `null` or `false` has no effect.
            let is_off = value.is_null() || *value == Json::Bool(false);
            if is_off || KEYS.contains(&key.as_str()) || IDLE.contains(&key.as_str()) {
                continue;
            }
            let near = suggest(key, KEYS).map(|near| format!("; did you mean `{near}`?"));
            self.faults.push(format!("the key `{key}` is not supported{}", near.unwrap_or_default()));
        }
        let resize = self.flag("do_resize", true).then(|| {
            let size = self.size("size", matches!(processor.size, Size::Shorter(_)));
            (size.unwrap_or(processor.size), self.filter().unwrap_or(processor.filter))
        });
        let crop = match self.flag("do_center_crop", processor.crops) {
            true => match self.size("crop_size", false) {
                Some(Size::Whole(size)) => Some(size),
                // A crop is a rectangle of a given size, so a number alone is both of its sides.
                Some(Size::Shorter(side)) => Some([side; 2]),
                None => processor.crop,
            },
            false => None,
        };
        let factor = match self.flag("do_rescale", true) {
            true => self.number("rescale_factor").unwrap_or(1.0 / 255.0),
            // Without the factor the model gets bytes as they are, 0 to 255.
            false => 1.0,
        };
        let normal = self.flag("do_normalize", true).then(|| {
            let mean = self.numbers("image_mean").unwrap_or(processor.mean.to_vec());
            let std = self.numbers("image_std").unwrap_or(processor.std.to_vec());
            if std.contains(&0.0) {
                self.faults.push("`image_std` holds a 0, by which values would be divided".to_owned());
            }
            (mean, std)
        });
        Some(Preparation { resize, crop, factor, normal })
    }

    /// The value of a key; one that is null counts as absent.
    fn get(&self, key: &str) -> Option<&Json> {
        self.config.get(key).filter(|value| !value.is_null())
    }

    fn fault<T>(&mut self, key: &str, needs: &str) -> Option<T> {
        let found = self.config.get(key).unwrap_or(&Json::Null);
        self.faults.push(format!("`{key}` is {found}, but must be {needs}"));
        None
    }

    /// The processor that the config names, or the usual one of the model.
    fn processor(&mut self) -> Option<&'static Processor> {
        let known = || PROCESSORS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let given = self.get("image_processor_type").or_else(|| self.get("feature_extractor_type"));
        let Some(name) = given.and_then(Json::as_str).or(self.usual) else {
            self.faults.push(format!("it has no `image_processor_type`; supported are {}", known()));
            return None;
        };
        // Variants of the same processor: a faster one, one that uses Pillow, and its older name.
        let plain = ["Fast", "Pil"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
        let plain = plain.replace("FeatureExtractor", "ImageProcessor");
        let found = PROCESSORS.iter().find(|p| p.name == plain);
        if found.is_none() {
            self.faults.push(format!("the processor `{name}` is not supported; supported are {}", known()));
        }
        found
    }

    fn flag(&mut self, key: &str, usual: bool) -> bool {
        match self.get(key) {
            None => usual,
            Some(Json::Bool(flag)) => *flag,
            Some(_) => self.fault(key, "true or false").unwrap_or(usual),
        }
    }

    fn number(&mut self, key: &str) -> Option<f64> {
        match self.get(key)?.as_f64() {
            Some(number) if number.is_finite() => Some(number),
            Some(_) | None => self.fault(key, "a number"),
        }
    }

    /// One number for every channel, or one for all channels.
    fn numbers(&mut self, key: &str) -> Option<Vec<f64>> {
        let given = self.get(key)?;
        let found: Option<Vec<f64>> = match given {
            Json::Array(items) if matches!(items.len(), 1 | 3) => items.iter().map(Json::as_f64).collect(),
            Json::Array(_) => None,
            one => one.as_f64().map(|n| vec![n]),
        };
        found.or_else(|| self.fault(key, "a number for each channel"))
    }

    /// The filter, which is given by its number or its name.
    fn filter(&mut self) -> Option<Filter> {
        let given = self.get("resample")?;
        let found = given.as_u64().and_then(|n| FILTERS.get(usize::try_from(n).ok()?).copied());
        let named = || serde_json::from_value(Json::from(given.as_str()?.to_ascii_lowercase())).ok();
        found.or_else(named).or_else(|| self.fault("resample", "a filter's number, from 0 to 5"))
    }

    /// A size in one of the forms that the library accepts. A number alone is the shorter side if `shorter`,
    /// otherwise both sides.
    fn size(&mut self, key: &str, shorter: bool) -> Option<Size> {
        let side = |value: Option<&Json>| {
            // At most as long as the side of an image that is read.
            let side = value?.as_u64().filter(|n| (1..=16_384).contains(n))?;
            usize::try_from(side).ok()
        };
        let given = self.get(key)?;
        let names: Vec<&str> = given.as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        let found = match names.as_slice() {
            // Older files have a number alone, whose meaning depends on the processor.
            [] if shorter => side(Some(given)).map(Size::Shorter),
            [] => side(Some(given)).map(|side| Size::Whole([side; 2])),
            ["shortest_edge"] => side(given.get("shortest_edge")).map(Size::Shorter),
            ["height", "width"] | ["width", "height"] => side(given.get("height"))
                .zip(side(given.get("width")))
                .map(|(height, width)| Size::Whole([height, width])),
            _ => None,
        };
        found.or_else(|| self.fault(key, "`height` and `width`, or `shortest_edge`, in pixels"))
    }
}
