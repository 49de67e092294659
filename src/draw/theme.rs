//! Colours by name, for light and for dark, and the style sheet that applies them to pictures.
//!
//! Series have the colours of Okabe and Ito (2008), which can be told apart with any colour vision; lines
//! also differ by their dashes, so that no figure depends on colour alone.

use std::fmt::Write as _;

/// A colour: its name in class names, and its values for light and dark.
type Ink = (&'static str, &'static str, &'static str);

/// Every colour of a picture. The class `fill-x` fills with it, `stroke-x` draws lines with it.
pub const INKS: &[Ink] = &[
    ("paper", "#ffffff", "#14171a"),
    ("frame", "#f6f7f8", "#1d2125"),
    ("ink", "#1b1f23", "#e8eaed"),
    ("muted", "#57606a", "#a3adb8"),
    ("line", "#4b535c", "#98a2ad"),
    ("grid", "#e2e5e8", "#2d3339"),
    ("hidden", "#c9ced3", "#3a4046"),
    ("embedding", "#f8d9dc", "#63343b"),
    ("attention", "#fcdfb8", "#6a4818"),
    ("ffn", "#cbe4f6", "#1c4a6e"),
    ("norm", "#f3efbd", "#565117"),
    ("head", "#dcd5f2", "#463a72"),
    ("other", "#e9ecef", "#343a40"),
    ("added", "#007d5a", "#2fc796"),
    ("removed", "#c04f00", "#ff9147"),
    ("changed", "#0067a8", "#5bb5f0"),
    ("series-0", "#0072b2", "#4fa8e0"),
    ("series-1", "#d55e00", "#f08a3c"),
    ("series-2", "#009e73", "#2fc796"),
    ("series-3", "#b8578f", "#e08bbb"),
    ("series-4", "#b97f00", "#e6b422"),
    ("series-5", "#3f93c6", "#8accf2"),
    ("series-6", "#6b6f76", "#b4bac2"),
    ("series-7", "#7a4fb5", "#b794f0"),
];

/// The number of series with different colours.
pub const SERIES: usize = 8;

/// The dash patterns of series, in pairs: the first pair for the first round through the colours. `""` is
/// solid.
pub const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];

/// The class with a series' colour. After [`SERIES`] series the colours begin
/// again; lines then have other dashes.
pub fn series(index: usize) -> String {
    format!("series-{}", index % SERIES)
}

/// Fonts and shapes, which do not depend on the theme. `isolate` keeps a name in a script that is read from
/// right to left from reordering the text after it.
const SHAPES: &str = "\
text{font-family:Helvetica,Arial,\"Liberation Sans\",\"DejaVu Sans\",sans-serif;font-size:12px;\
unicode-bidi:isolate}\
.title{font-size:16px;font-weight:600}.subtitle{font-size:12px}.small{font-size:11px}\
.tiny{font-size:10px}.big{font-size:18px;font-weight:600}.strong{font-weight:600}.label{font-size:13px}\
.mono{font-family:\"SFMono-Regular\",Menlo,Consolas,\"Liberation Mono\",\"DejaVu Sans Mono\",monospace;\
font-size:11px}\
path,line,polyline{fill:none;stroke-width:1.2}.thin{stroke-width:.8}.thick{stroke-width:2.5}\
.curve{stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:4 3}.fill-none{fill:none}\
.on-light{fill:#111}.on-dark{fill:#fff}.sensitive{pointer-events:all}.band{opacity:.18;stroke:none}\
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}\
image{image-rendering:pixelated}";

/// The style of a standalone picture: light, or dark if the reader's system is.
pub fn standalone() -> String {
    let light = rules(|ink| ink.1.to_owned());
    let dark = rules(|ink| ink.2.to_owned());
    format!("{SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}")
}

/// The style of all pictures of a page, whose colours are the page's variables.
pub fn in_page() -> String {
    format!("{SHAPES}{}", rules(|ink| format!("var(--{})", ink.0)))
}

/// The colour variables of a page: `--ink:#1b1f23;...`
pub fn variables(is_dark: bool) -> String {
    let mut out = String::new();
    for (name, light, dark) in INKS {
        // Writing into a text cannot fail.
        let _ = write!(out, "--{name}:{};", if is_dark { dark } else { light });
    }
    out
}

fn rules(color: impl Fn(&Ink) -> String) -> String {
    let mut out = String::new();
    for ink in INKS {
        let (name, value) = (ink.0, color(ink));
        let _ = write!(out, ".fill-{name}{{fill:{value}}}.stroke-{name}{{stroke:{value}}}");
    }
    out
}
