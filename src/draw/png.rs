//! Pictures as PNG: the standalone SVG, drawn in its light colours at twice its size.
//!
//! Letters are drawn with the fonts of the system. Without any font a picture would lose its text, so this
//! is an error.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::Figure;
use super::mark::PICTURE;

/// How many pixels of the PNG correspond to one pixel of the figure.
const SCALE: f32 = 2.0;
/// The longest side of a PNG, in pixels. A square of this side takes 1 GiB while it is drawn.
const LONGEST: f32 = 16_384.0;
/// Fonts for the text of figures, the preferred ones first; if none is installed, any font is used.
const FONTS: [&str; 5] = ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans"];
/// Fonts for code, the preferred ones first.
const MONO: [&str; 4] = ["Menlo", "Consolas", "Liberation Mono", "DejaVu Sans Mono"];

/// Draws a figure; with the same fonts the bytes are the same.
///
/// # Errors
/// The system has no font, or the figure is too large.
pub fn png(figure: &Figure) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let known = |wanted: &[&str], fonts: &fontdb::Database| {
        let has = |name: &str| fonts.faces().any(|face| face.families.iter().any(|(own, _)| own == name));
        let first = wanted.iter().find(|name| has(name)).map(|name| (*name).to_owned());
        // Letters in an unusual font can be read; without a font there would be none.
        first.or_else(|| Some(fonts.faces().next()?.families.first()?.0.clone()))
    };
    let Some(usual) = known(&FONTS, fonts) else {
        return Err("the system has no font to draw letters with; install one such as DejaVu Sans".to_owned());
    };
    let mono = known(&MONO, fonts).unwrap_or_else(|| usual.clone());
    fonts.set_sans_serif_family(usual.clone());
    fonts.set_monospace_family(mono);
    options.font_family = usual;
    let tree = Tree::from_str(&figure.svg(), &options).map_err(|e| e.to_string())?;
    let (width, height) = (tree.size().width(), tree.size().height());
    // A long picture is drawn smaller instead of being refused.
    let scale = SCALE.min(LONGEST / width.max(height));
    let size = |side: f32| (side * scale).ceil().max(1.0) as u32;
    let mut pixels = Pixmap::new(size(width), size(height)).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    let (width, height) = (pixels.width(), pixels.height());
    // PNG stores colours that are not multiplied by their opacity, the renderer those that are.
    encoded(width, height, &pixels.take_demultiplied()).map_err(|e| e.to_string())
}

/// The bytes of a file with the pixels `[height, width, RGBA]` and the mark by which trafoc later recognises
/// its own pictures.
fn encoded(width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk("Software".to_owned(), PICTURE.to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}
