//! Reads images: folders of files, lines of pixels, the IDX format of MNIST. All become `[C, H, W]`, where
//! black is 0 and white is 1.

use std::io::Read;
use std::ops::ControlFlow;

use super::raw::{Faults, Place, Raw, Visit, each_line};
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic};
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};
use crate::learn::data::form::Form;
use crate::learn::data::picture::{Preparation, Unfit, picture};
use crate::learn::recipe::data::{Images, Pixels, Side};

const RESIZE: &str = "`{images: {resize: true}}` resizes it to the model's size";

/// All png and jpeg files in the subfolders of a folder; the name of the subfolder is the class.
pub fn folders(
    images: &Images,
    files: &[Named],
    form: Option<(Form, Option<&Preparation>)>,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    let Some((form, own)) = form else { return Ok(()) };
    if own.is_some() && images.resize {
        let message = "the trained model says how images are resized, so `resize` would have no effect";
        let place = images.places.of("resize");
        faults.push(Diagnostic::error(Code::UnusedKey, place, message).removable());
        return Ok(());
    }
    let preparation = own.cloned().unwrap_or_else(|| Preparation::plain(form, images.resize));
    for root in files {
        // Files next to the folders, such as a licence, belong to no class.
        for folder in file::folders(&root.path)? {
            let label = file::name(&folder);
            for path in file::entries(&folder)? {
                let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
                // Passed over and not refused: folders of images often contain lists of them, too.
                if !matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg")) {
                    continue;
                }
                let file = Named { path: path.clone(), span: root.span };
                let place = Place { file: &file, line: 0 };
                let flow = match picture(&path, form, &preparation) {
                    Ok(pixels) => visit(Raw::Image { pixels, label: label.clone() }, place, faults),
                    Err(why) => {
                        // The recipe can mend no other fault of an image file.
                        let helps = matches!(why, Unfit::Size(_)) && !images.resize && own.is_none();
                        faults.line(place, &why.into_message(), helps.then_some(RESIZE))
                    }
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The pixels of a grey image and its class on each line, separated by commas.
pub fn pixels(
    pixels: &Pixels,
    files: &[Named],
    form: Option<(Form, Option<&Preparation>)>,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    let Some((form, own)) = form else { return Ok(()) };
    each_line(files, faults, &mut |line, place, faults| {
        if line.trim().is_empty() {
            return ControlFlow::Continue(());
        }
        let split = match pixels.label {
            // Split at one end only, so that the many pixels are divided once.
            Side::Last => line.rsplit_once(',').map(|(values, label)| (label, values)),
            Side::First => line.split_once(','),
        };
        let Some((label, values)) = split else {
            return faults.line(place, "expected pixels and a class between commas", None);
        };
        if label.trim().is_empty() {
            let help = "`label` says whether it is the first or the last of a line";
            return faults.line(place, "the class is empty", Some(help));
        }
        let read: Result<Vec<f32>, _> = values_of(values).map(str::parse::<f32>).collect();
        let white = *pixels.white as f32;
        match read {
            Err(_) => {
                let is_header = place.line == 1 && values_of(values).all(|v| v.parse::<f32>().is_err());
                let help = "the first line names the columns: remove it";
                faults.line(place, "a pixel is not a number", is_header.then_some(help))
            }
            Ok(values) if values.len() != form.size() => {
                let (found, wanted) = (values.len(), form.size());
                let message =
                    format!("the line has {}, but the model's image has {wanted}", counted(found, "pixel"));
                let help = "the spec's `embed.patches` has `image` and `channels`";
                faults.line(place, &message, Some(help))
            }
            // Written so that it is true of NaN, too.
            Ok(values) if values.iter().any(|v| !(0.0..=white).contains(v)) => faults.line(
                place,
                &format!("a pixel is not from 0 to {white}"),
                Some("`white` is the largest"),
            ),
            Ok(values) => {
                let pixels = prepared(values.iter().map(|v| v / white).collect(), own);
                visit(Raw::Image { pixels, label: label.trim().to_owned() }, place, faults)
            }
        }
    })
    .map(|_| ())
}

/// The values of a line between its commas.
fn values_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

/// The values of a grey image, 0 to 1, as a trained model takes them if it says how.
fn prepared(pixels: Vec<f32>, own: Option<&Preparation>) -> Vec<f32> {
    match own {
        // Such a preparation is written for bytes.
        Some(own) => pixels.into_iter().map(|value| own.value(0, f64::from(value) * 255.0)).collect(),
        None => pixels,
    }
}

/// Reads the header of an IDX file of bytes: its sizes.
fn header(reader: &mut dyn Read, dimensions: u8) -> Result<Vec<usize>, String> {
    let mut word = [0u8; 4];
    let mut next = || reader.read_exact(&mut word).map(|()| word).map_err(|_| "it is cut off".to_owned());
    // Two zeros, 8 for bytes without a sign, and the number of dimensions.
    let magic = next()?;
    if magic != [0, 0, 8, dimensions] {
        return Err(format!("it is not an IDX file of bytes with {}", counted(dimensions, "dimension")));
    }
    // Unlike the arrays of trafoc, these files have the highest byte first.
    (0..dimensions).map(|_| next().map(|size| u32::from_be_bytes(size) as usize)).collect()
}

/// The images of one file with the classes of another.
pub fn idx(
    files: &[Named],
    form: Option<(Form, Option<&Preparation>)>,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    let (Some((form, own)), [images, classes]) = (form, files) else { return Ok(()) };
    let (mut pixels, mut labels) = (file::open(&images.path)?, file::open(&classes.path)?);
    match images_with_classes(&mut pixels, &mut labels, form) {
        Err((of, why)) => {
            let file = if of == IdxFile::Images { images } else { classes };
            let _ = faults.line(Place { file, line: 0 }, &why, None);
        }
        Ok(count) => {
            let place = Place { file: images, line: 0 };
            // Sized by the model and not by the header, which has been compared with it.
            let mut bytes = vec![0u8; form.size()];
            let mut label = [0u8];
            for _ in 0..count {
                if pixels.read_exact(&mut bytes).is_err() || labels.read_exact(&mut label).is_err() {
                    let _ = faults.line(place, "it is cut off, or its classes are", None);
                    break;
                }
                let pixels = prepared(bytes.iter().map(|b| f32::from(*b) / 255.0).collect(), own);
                let [class] = label;
                if visit(Raw::Image { pixels, label: class.to_string() }, place, faults).is_break() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Which of the two files is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdxFile {
    Images,
    Classes,
}

/// The number of images and classes in two files, after reading their headers.
fn images_with_classes(
    pixels: &mut dyn Read,
    labels: &mut dyn Read,
    form: Form,
) -> Result<usize, (IdxFile, String)> {
    let sizes = header(pixels, 3).map_err(|why| (IdxFile::Images, why))?;
    let classes = header(labels, 1).map_err(|why| (IdxFile::Classes, why))?;
    match (sizes.as_slice(), classes.as_slice()) {
        ([count, ..], [found]) if count != found => Err((
            IdxFile::Classes,
            format!("it has {} for {}", counted(found, "label"), counted(count, "image")),
        )),
        ([_, height, width], _) if (*height, *width, 1) != (form.side, form.side, form.channels) => {
            Err((IdxFile::Images, form.mismatch(*height, *width)))
        }
        ([count, ..], _) => Ok(*count),
        ([], _) => Ok(0),
    }
}
