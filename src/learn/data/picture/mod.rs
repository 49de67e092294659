//! From an image file to the numbers of a model: decoded, rotated upright, resized, cropped, scaled.
//!
//! A file that is cut off, too large, or neither png nor jpeg is refused with the reason. Transparency is
//! dropped; CMYK and 16-bit values become 8-bit red, green and blue, or grey.

mod preparation;
mod resample;

pub use preparation::{Preparation, Size};
pub use resample::Filter;

use std::io::{Cursor, ErrorKind};
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits};

use super::form::Form;
use crate::memory;
use crate::read::{self, limit};
use resample::Pixels;

/// The largest number of pixels on a side of an image. A small file can claim any number, and decoding takes
/// memory for all of them.
const MOST_SIDE: u32 = 16_384;

/// An image of at most so many bytes fits into any memory in which a model does.
const SMALL: u64 = 4 << 20;

/// Why an image cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its height and width are not those that the model takes.
    Size(String),
    /// Another reason.
    Other(String),
}

impl Unfit {
    /// The reason in words.
    pub fn into_message(self) -> String {
        match self {
            Self::Size(message) | Self::Other(message) => message,
        }
    }
}

/// The values of an image file, `[C, H, W]`.
///
/// # Errors
/// The reason why the file cannot be used.
pub fn picture(path: &Path, form: Form, preparation: &Preparation) -> Result<Vec<f32>, Unfit> {
    let image = decode(path).map_err(Unfit::Other)?;
    let pixels = Pixels {
        height: image.height() as usize,
        width: image.width() as usize,
        channels: form.channels,
        bytes: match form.channels {
            1 => image.into_luma8().into_raw(),
            3 => image.into_rgb8().into_raw(),
            // A spec may have any number, for inputs that are not in image files.
            other => {
                let why = format!("an image has 1 or 3 channels, but the model takes {other}");
                return Err(Unfit::Other(why));
            }
        },
    };
    preparation.apply(pixels, form)
}

/// Decodes the image of a file (the first one of several) and rotates it upright.
fn decode(path: &Path) -> Result<DynamicImage, String> {
    let most = usize::try_from(limit::IMAGE).unwrap_or(usize::MAX);
    let bytes = read::bounded(path, most).map_err(|e| match e.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => e.to_string(),
    })?;
    // By the content: downloads often have the ending of another format.
    let format = match image::guess_format(&bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
        Ok(other) => {
            // One format has several endings, of which the first need not be that of the file.
            let endings: Vec<String> = other.extensions_str().iter().map(|name| format!(".{name}")).collect();
            let kind = format!("it has the format of files that end in {}", endings.join(", "));
            return Err(format!("{kind}, but only png and jpeg are supported"));
        }
        Err(_) => return Err("it is neither png nor jpeg".to_owned()),
    };
    if format == ImageFormat::Jpeg && !has_end(&bytes) {
        return Err("it is cut off".to_owned());
    }
    let why = |error: ImageError| match error {
        ImageError::Limits(_) => {
            format!(
                "it has more than {MOST_SIDE} pixels on a side, or takes more than {} MiB",
                limit::IMAGE >> 20
            )
        }
        ImageError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
        // The decoder's own message is one for its programmers.
        ImageError::Decoding(_)
        | ImageError::Encoding(_)
        | ImageError::Parameter(_)
        | ImageError::Unsupported(_)
        | ImageError::IoError(_) => {
            let name = if format == ImageFormat::Png { "png" } else { "jpeg" };
            format!("it is damaged: its {name} data cannot be decoded")
        }
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some(limit::IMAGE);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(why)?;
    // `from_decoder` does not count the pixels themselves against the limit.
    let taken = decoder.total_bytes();
    limits.reserve(taken).map_err(why)?;
    // The pixels are turned, and become red, green and blue, in further copies. Of small ones nothing is asked, because a
    // data set has many.
    let copies = u128::from(taken).saturating_mul(3);
    if taken > SMALL && memory::free().is_some_and(|free| copies > free) {
        return Err(format!("its pixels take {} MiB, for which too little memory is free", taken >> 20));
    }
    // Cameras store photographs as the sensor lay, and say in the metadata how to turn them. Damaged metadata
    // is no reason to refuse the pixels.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(why)?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Whether the data of a jpeg ends with its end marker; a decoder would fill a missing rest with grey.
fn has_end(bytes: &[u8]) -> bool {
    const START_OF_SCAN: u8 = 0xda;
    const END: [u8; 2] = [0xff, 0xd9];
    // Segments up to the first scan: a marker and a length, which includes itself. An image inside of a
    // segment, such as a camera's thumbnail, has an end marker of its own.
    let mut at = 2;
    while let Some(&[0xff, mark, high, low]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        if mark == START_OF_SCAN {
            break;
        }
        // The marker's two bytes, and the length, which includes its own two: with a smaller one the file is
        // damaged.
        at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
    }
    bytes.get(at..).is_some_and(|rest| rest.windows(2).any(|pair| pair == END))
}
