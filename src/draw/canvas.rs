//! The SVG writer, and the finished picture.
//!
//! Shapes refer to classes of [`super::theme`] and never to colours; texts are escaped here and nowhere
//! else. Nothing has an id, so any number of pictures can be on one page.

use std::fmt::Write as _;

use super::mark::PICTURE;
use super::text::{coordinate as n, escape, escape_line};
use super::theme;

/// Which point of a text its position refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The left end: the text is to the right of its position.
    Start,
    /// The middle: the text is centred on its position.
    Middle,
    /// The right end: the text is to the left of its position.
    End,
}

impl Anchor {
    fn class(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A page shrinks pictures to its own width, but not below a share of theirs that its style sheet gives; a
/// narrower page scrolls them. Of a picture wider than this, in pixels, it is that share of this width, except on
/// a phone, where it is the share of the whole picture: otherwise the words of a wide one could not be read.
const WIDEST: f64 = 889.0;

/// A finished picture: SVG elements with their size, a title and a description.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The width in pixels.
    pub width: f64,
    /// The height in pixels.
    pub height: f64,
    /// The title: what the picture is, in a few words.
    pub title: String,
    /// A description of what it shows, for readers who cannot see it.
    pub description: String,
    body: String,
}

impl Figure {
    /// A picture with the contents of a canvas.
    pub fn new(canvas: Canvas, size: (f64, f64), title: &str, description: &str) -> Self {
        // Whole pixels, so that the edge of a picture is sharp and nothing at it is cut off.
        let (width, height) = (size.0.ceil(), size.1.ceil());
        Self {
            width,
            height,
            title: title.to_owned(),
            description: description.to_owned(),
            body: canvas.body,
        }
    }

    /// The same picture with another title.
    pub fn titled(mut self, title: &str) -> Self {
        title.clone_into(&mut self.title);
        self
    }

    /// The picture as an SVG file.
    pub fn svg(&self) -> String {
        let (w, h) = (n(self.width), n(self.height));
        // Every element has a class and no colour, so the style sheet is part of each file.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\">\n<metadata>{PICTURE}</metadata>\n<title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
             <rect class=\"fill-paper\" width=\"{w}\" height=\"{h}\"/>\n{}</svg>\n",
            escape(&self.title),
            escape(&self.description),
            theme::standalone().replace('>', "&gt;"),
            self.body
        )
    }

    /// The picture as an element of a page, as wide as its column allows.
    pub fn inline(&self) -> String {
        // Without a height, so that the picture keeps its proportions where the page makes it narrower.
        let (w, h) = (n(self.width), n(self.height));
        format!(
            "<svg class=\"figure\" width=\"{w}\" style=\"--width:{}px;--whole:{w}px\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            n(self.width.min(WIDEST)),
            escape_line(&format!("{}. {}", self.title, self.description)),
            self.body
        )
    }

    /// Several pictures side by side under one title, from left to right, with at most `columns` per row.
    pub fn grid(figures: &[Figure], columns: usize, title: &str, description: &str) -> Figure {
        const GAP: f64 = 16.0;
        let mut canvas = Canvas::default();
        let (mut y, mut width) = (GAP, 0f64);
        if !title.is_empty() {
            canvas.text((GAP, 24.0), Anchor::Start, "title fill-ink", title);
            width = super::text::width(title, 16.0) * 1.08 + 2.0 * GAP;
            y = 40.0;
        }
        for row in figures.chunks(columns.max(1)) {
            let mut x = GAP;
            // A row is as high as its highest picture, so that no picture of the next row begins inside of
            // it.
            let height = row.iter().fold(0f64, |most, f| most.max(f.height));
            for figure in row {
                canvas.place(x, y, figure);
                x += figure.width + GAP;
            }
            width = width.max(x);
            y += height + GAP;
        }
        Figure::new(canvas, (width, y), title, description)
    }
}

/// Collects shapes, from back to front. Coordinates are pixels from the top left corner; `class` has
/// classes of [`super::theme`], such as `fill-ink` or `stroke-grid thin`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Canvas {
    body: String,
}

impl Canvas {
    /// A rectangle with rounded corners: `x, y, width, height`.
    pub fn rect(&mut self, at: (f64, f64, f64, f64), radius: f64, class: &str) {
        let (x, y, w, h) = at;
        let round = if radius > 0.0 { format!(" rx=\"{}\"", n(radius)) } else { String::new() };
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{round}/>",
            n(x),
            n(y),
            // A negative size is an error in SVG, for which viewers draw nothing.
            n(w.max(0.0)),
            n(h.max(0.0))
        );
    }

    /// A filled or stroked circle.
    pub fn circle(&mut self, center: (f64, f64), radius: f64, class: &str) {
        let (x, y) = center;
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            n(x),
            n(y),
            n(radius)
        );
    }

    /// A straight line between two points.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1)
        );
    }

    /// A line through points, interrupted where a coordinate is NaN.
    pub fn curve(&mut self, points: &[(f64, f64)], class: &str, dash: &str) {
        let mut d = String::new();
        // The pen moves to the first point of a line and to the first one after a gap, and draws to all
        // others.
        let mut pen = 'M';
        for (x, y) in points {
            if x.is_finite() && y.is_finite() {
                let _ = write!(d, "{pen}{} {}", n(*x), n(*y));
                pen = 'L';
            } else {
                pen = 'M';
            }
        }
        if !d.is_empty() {
            self.path(&d, class, dash);
        }
    }

    /// A closed area bounded by points.
    pub fn area(&mut self, points: &[(f64, f64)], class: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, n(*x), n(*y));
        }
        if !d.is_empty() {
            self.path(&(d + "Z"), class, "");
        }
    }

    /// A line of horizontal and vertical segments with rounded corners, with an arrow head at its end if
    /// `has_arrow`. `ink` is a name in [`theme::INKS`].
    pub fn elbow(&mut self, points: &[(f64, f64)], ink: &str, has_arrow: bool) {
        const RADIUS: f64 = 6.0;
        let Some(first) = points.first() else { return };
        let mut d = format!("M{} {}", n(first.0), n(first.1));
        for window in points.windows(3) {
            let [from, corner, to] = window else { continue };
            // Two corners of a short segment share it, so neither takes more than half.
            let toward = |end: &(f64, f64)| {
                let (dx, dy) = (end.0 - corner.0, end.1 - corner.1);
                // Two equal points have no direction, and dividing by their distance would give NaN.
                let length = dx.hypot(dy).max(1e-9);
                let step = RADIUS.min(length / 2.0) / length;
                (corner.0 + dx * step, corner.1 + dy * step)
            };
            let (a, b) = (toward(from), toward(to));
            let _ = write!(d, "L{} {}Q{} {} {} {}", n(a.0), n(a.1), n(corner.0), n(corner.1), n(b.0), n(b.1));
        }
        if let [.., before, last] = points {
            let _ = write!(d, "L{} {}", n(last.0), n(last.1));
            self.path(&d, &format!("stroke-{ink}"), "");
            if has_arrow {
                self.arrow_head(*before, *last, ink);
            }
        }
    }

    fn arrow_head(&mut self, from: (f64, f64), tip: (f64, f64), ink: &str) {
        let (dx, dy) = (tip.0 - from.0, tip.1 - from.1);
        // As above: equal points must not give NaN.
        let length = dx.hypot(dy).max(1e-9);
        let (ux, uy) = (dx / length, dy / length);
        let base = (tip.0 - 7.0 * ux, tip.1 - 7.0 * uy);
        let (sx, sy) = (3.2 * -uy, 3.2 * ux);
        let points = [tip, (base.0 + sx, base.1 + sy), (base.0 - sx, base.1 - sy)];
        self.area(&points, &format!("fill-{ink}"));
    }

    fn path(&mut self, d: &str, class: &str, dash: &str) {
        // Dashes are attributes and no classes: a chart chooses them by its series, not by their meaning.
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{d}\"{dash}/>");
    }

    /// One line of text; `at` is on its baseline.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = anchor.class();
        let _ = writeln!(
            self.body,
            "<text class=\"{anchor} {class}\" x=\"{}\" y=\"{}\">{}</text>",
            n(at.0),
            n(at.1),
            escape_line(text)
        );
    }

    /// One line of text, rotated about its position by degrees.
    pub fn turned_text(&mut self, at: (f64, f64), degrees: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = anchor.class();
        let (x, y) = (n(at.0), n(at.1));
        let _ = writeln!(
            self.body,
            "<text class=\"{anchor} {class}\" transform=\"translate({x} {y}) rotate({})\">{}</text>",
            n(degrees),
            escape_line(text)
        );
    }

    /// A raster image, stretched over a rectangle without smoothing. `optimizeSpeed` is SVG's own word for
    /// that; browsers follow `pixelated` of the style sheet.
    pub fn image(&mut self, at: (f64, f64, f64, f64), data: &str) {
        let (x, y, w, h) = at;
        let _ = writeln!(
            self.body,
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
             image-rendering=\"optimizeSpeed\" href=\"{data}\"/>",
            n(x),
            n(y),
            n(w),
            n(h)
        );
    }

    /// Shapes that belong together; `hover` is shown while the pointer is on them, and `marks` are further
    /// attributes such as `("data-path", "decoder.blocks")`.
    pub fn group(
        &mut self,
        class: &str,
        marks: &[(&str, &str)],
        hover: &str,
        draw: impl FnOnce(&mut Canvas),
    ) {
        let _ = write!(self.body, "<g");
        if !class.is_empty() {
            let _ = write!(self.body, " class=\"{class}\"");
        }
        for (key, value) in marks {
            let _ = write!(self.body, " {key}=\"{}\"", escape_line(value));
        }
        let _ = writeln!(self.body, ">");
        // A title must be the first child of its group, or viewers do not show it.
        if !hover.is_empty() {
            let _ = writeln!(self.body, "<title>{}</title>", escape(hover));
        }
        draw(self);
        let _ = writeln!(self.body, "</g>");
    }

    /// Another picture with its top left corner at `(x, y)`.
    pub fn place(&mut self, x: f64, y: f64, figure: &Figure) {
        let _ = writeln!(self.body, "<g transform=\"translate({} {})\">", n(x), n(y));
        self.body.push_str(&figure.body);
        let _ = writeln!(self.body, "</g>");
    }
}
