//! Line and scatter charts with two axes and a legend.

use super::scale::Scale;
use super::text::{fit, width};
use super::theme::{DASHES, SERIES, series};
use super::{Anchor, Canvas, Figure};

/// A chart with two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What the chart shows.
    pub title: String,
    /// The horizontal axis, long enough for all points and vertical marks.
    pub x: Axis,
    /// The vertical axis, long enough for all points, bands and horizontal marks.
    pub y: Axis,
    /// The series, from back to front.
    pub series: Vec<Series>,
    /// Lines across the whole chart.
    pub marks: Vec<Mark>,
    /// The size of the area between the axes, in pixels.
    pub room: (f64, f64),
}

/// What an axis says, and how numbers are placed on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The title of the axis, with its unit.
    pub title: String,
    /// Whether the axis is logarithmic.
    pub is_log: bool,
    /// A number that the axis must include, such as 0.
    pub includes: Option<f64>,
    /// Whether the axis counts something, so that it has ticks at whole numbers only.
    pub is_whole: bool,
}

impl Axis {
    /// An axis on which equal differences have equal distances.
    pub fn linear(title: &str) -> Self {
        Self { title: title.to_owned(), is_log: false, includes: None, is_whole: false }
    }

    /// An axis on which equal factors have equal distances, from one power of ten to another.
    pub fn log(title: &str) -> Self {
        Self { title: title.to_owned(), is_log: true, includes: None, is_whole: false }
    }

    /// A linear axis of whole numbers, such as layers: no ticks between them.
    pub fn whole(title: &str) -> Self {
        Self { is_whole: true, ..Self::linear(title) }
    }

    /// The same axis, which includes this number.
    pub fn including(mut self, value: f64) -> Self {
        self.includes = Some(value);
        self
    }
}

/// One line, or one set of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend; an empty name is not listed.
    pub name: String,
    /// The points, in order along the line; a NaN interrupts it.
    pub points: Vec<(f64, f64)>,
    /// A band around the line: `x`, lower bound, upper bound.
    pub band: Vec<(f64, f64, f64)>,
    /// How the series is drawn.
    pub style: Style,
    /// Labels of the points; only those that fit are shown.
    pub labels: Vec<String>,
    /// Whether a line has a dot at each of its points.
    pub has_dots: bool,
    /// The index of the colour; if absent, the index of the series.
    pub color: Option<usize>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line through the points.
    Line,
    /// A dot at each point, with its label where there is room.
    Points,
    /// A line that keeps its value until the next point.
    Steps,
}

impl Series {
    /// A series drawn as a line.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
            band: Vec::new(),
            style: Style::Line,
            labels: Vec::new(),
            has_dots: false,
            color: None,
        }
    }

    /// A series of points with labels.
    pub fn points(name: &str, points: Vec<(f64, f64)>, labels: Vec<String>) -> Self {
        Self { style: Style::Points, labels, ..Self::line(name, points) }
    }

    /// The line with a dot at each of its points, for a few points that mean something by themselves.
    pub fn marked(mut self) -> Self {
        self.has_dots = true;
        self
    }

    /// The same series with a band around its line: `x`, lower bound, upper bound.
    pub fn with_band(mut self, band: Vec<(f64, f64, f64)>) -> Self {
        self.band = band;
        self
    }
}

/// A line across the chart with a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The position on its axis.
    pub at: f64,
    /// The label, at the right end of a horizontal line and at the top of a vertical one.
    pub word: String,
    /// Whether the line is horizontal, so that `at` is on the vertical axis.
    pub is_horizontal: bool,
}

/// The area between the axes: its left and top edges, its size in pixels and both scales.
struct PlotArea {
    left: f64,
    top: f64,
    room: (f64, f64),
    x: Scale,
    y: Scale,
}

impl PlotArea {
    fn at(&self, point: (f64, f64)) -> (f64, f64) {
        let x = self.left + self.room.0 * self.x.share(point.0);
        (x, self.top + self.room.1 * (1.0 - self.y.share(point.1)))
    }
}

impl Chart {
    /// A chart without any series.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self { title: title.to_owned(), x, y, series: Vec::new(), marks: Vec::new(), room: (440.0, 240.0) }
    }

    /// The same chart with one more series.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same chart with a vertical line.
    pub fn mark_x(mut self, at: f64, word: &str) -> Self {
        self.marks.push(Mark { at, word: word.to_owned(), is_horizontal: false });
        self
    }

    /// The same chart with a horizontal line.
    pub fn mark_y(mut self, at: f64, word: &str) -> Self {
        self.marks.push(Mark { at, word: word.to_owned(), is_horizontal: true });
        self
    }

    /// The chart as a picture. Points with a coordinate that is not finite are left out and interrupt their
    /// line.
    pub fn figure(&self) -> Figure {
        let marks =
            |horizontal: bool| self.marks.iter().filter(move |m| m.is_horizontal == horizontal).map(|m| m.at);
        // The axes contain everything that is drawn: points, bands and marks.
        let all = self.series.iter().flat_map(|s| &s.points);
        let xs = all.clone().map(|p| p.0).chain(marks(false));
        let bands = self.series.iter().flat_map(|s| s.band.iter().flat_map(|(_, low, high)| [*low, *high]));
        let ys = all.map(|p| p.1).chain(bands).chain(marks(true));
        // A line uses the whole width; a cloud of points keeps a distance from the edges.
        let is_cloud = self.series.iter().all(|s| s.style == Style::Points);
        let (x, y) = (scale(&self.x, xs, !is_cloud), scale(&self.y, ys, false));
        // The labels of the vertical axis decide how far to the right the chart begins.
        let ticks: f64 = y.ticks().iter().fold(0.0, |most, (_, word)| most.max(width(word, 11.0)));
        let left = 30.0 + ticks * 1.06;
        let place = PlotArea { left, top: 34.0, room: self.room, x, y };
        let mut canvas = Canvas::default();
        // The picture is a little wider than this, so a title in another font is not cut off.
        let title = fit(&self.title, 13.0, left + self.room.0);
        canvas.text((left, 20.0), Anchor::Start, "label strong fill-ink", &title);
        self.axes(&mut canvas, &place);
        for mark in &self.marks {
            draw_mark(&mut canvas, &place, mark);
        }
        for (i, one) in self.series.iter().enumerate() {
            draw_series(&mut canvas, &place, one, one.color.unwrap_or(i), i);
        }
        let named: Vec<(usize, &Series)> =
            self.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()).collect();
        // A long name is shortened, so that the chart remains the largest part of the picture.
        let words = named.iter().fold(0f64, |most, (_, s)| most.max(width(&s.name, 11.0).min(220.0)));
        let mut right = left + self.room.0 + 14.0;
        if !named.is_empty() {
            for (row, (i, one)) in named.iter().enumerate() {
                let y = place.top + 8.0 + 17.0 * row as f64;
                let color = series(one.color.unwrap_or(*i));
                match one.style {
                    Style::Points => canvas.circle((right + 10.0, y), 3.5, &format!("fill-{color}")),
                    Style::Line | Style::Steps => canvas.curve(
                        &[(right, y), (right + 20.0, y)],
                        &format!("curve stroke-{color}"),
                        dash(one.color.unwrap_or(*i), *i),
                    ),
                }
                let name = fit(&one.name, 11.0, 220.0);
                canvas.text((right + 26.0, y + 4.0), Anchor::Start, "small fill-ink", &name);
            }
            right += 32.0 + words * 1.06;
        }
        // A legend of many series is higher than the chart.
        let legend = place.top + 17.0 * named.len() as f64 + 10.0;
        let height = (place.top + self.room.1 + 48.0).max(legend);
        let names: Vec<&str> = named.iter().map(|(_, s)| s.name.as_str()).collect();
        let shown = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
        let description = format!("Chart of {} against {}{shown}.", self.y.title, self.x.title);
        Figure::new(canvas, (right + 10.0, height), &self.title, &description)
    }

    fn axes(&self, canvas: &mut Canvas, place: &PlotArea) {
        let (left, top, room) = (place.left, place.top, place.room);
        let bottom = top + room.1;
        // Ticks are multiples of a step, which rounding may put next to a whole number.
        let shown = |axis: &Axis, value: f64| !axis.is_whole || (value - value.round()).abs() < 1e-9;
        for (value, word) in place.y.ticks().into_iter().filter(|(value, _)| shown(&self.y, *value)) {
            let y = place.at((place.x.low, value)).1;
            canvas.line((left, y), (left + room.0, y), "stroke-grid thin");
            canvas.text((left - 6.0, y + 4.0), Anchor::End, "small fill-muted", &word);
        }
        let ticks: Vec<(f64, String)> =
            place.x.ticks().into_iter().filter(|(value, _)| shown(&self.x, *value)).collect();
        // Labels that would touch each other are left out.
        let widest = ticks.iter().fold(0f64, |most, (_, word)| most.max(width(word, 11.0))) + 8.0;
        let stride = (widest * ticks.len() as f64 / room.0).ceil().max(1.0) as usize;
        for (i, (value, word)) in ticks.into_iter().enumerate() {
            // Ticks less than 1 apart are labelled with decimals, also those at whole numbers. A label with a
            // space is a large number with its unit, `20 K`.
            let word = if self.x.is_whole && !word.contains(' ') { format!("{value:.0}") } else { word };
            let x = place.at((value, place.y.low)).0;
            canvas.line((x, top), (x, bottom), "stroke-grid thin");
            if i % stride == 0 {
                canvas.text((x, bottom + 16.0), Anchor::Middle, "small fill-muted", &word);
            }
        }
        canvas.line((left, top), (left, bottom), "stroke-line");
        canvas.line((left, bottom), (left + room.0, bottom), "stroke-line");
        canvas.text((left + room.0 / 2.0, bottom + 36.0), Anchor::Middle, "small fill-ink", &self.x.title);
        canvas.turned_text(
            (14.0, top + room.1 / 2.0),
            -90.0,
            Anchor::Middle,
            "small fill-ink",
            &self.y.title,
        );
    }
}

fn scale(axis: &Axis, values: impl Iterator<Item = f64>, is_tight: bool) -> Scale {
    let values = values.chain(axis.includes);
    match (axis.is_log, is_tight) {
        (true, _) => Scale::log(values),
        (false, true) => Scale::tight(values),
        (false, false) => Scale::around(values),
    }
}

fn dash(color: usize, index: usize) -> &'static str {
    // Every second series is dashed, so that neighbours differ without colours; further rounds through the
    // colours have other dashes. A series with a colour of its own choice is solid.
    let turn = if color == index { index / SERIES } else { 0 };
    let odd = usize::from(color == index && index % 2 == 1);
    DASHES.get((turn * 2 + odd) % DASHES.len()).copied().unwrap_or("")
}

fn draw_series(canvas: &mut Canvas, place: &PlotArea, one: &Series, color: usize, index: usize) {
    let ink = series(color);
    if !one.band.is_empty() {
        let lower = one.band.iter().map(|(x, low, _)| place.at((*x, *low)));
        let upper = one.band.iter().rev().map(|(x, _, high)| place.at((*x, *high)));
        // A point that a logarithmic axis cannot show is left out; the area closes over it.
        let outline: Vec<(f64, f64)> =
            lower.chain(upper).filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
        canvas.area(&outline, &format!("band fill-{ink}"));
    }
    let points: Vec<(f64, f64)> = one.points.iter().map(|p| place.at(*p)).collect();
    if one.style != Style::Points {
        let is_shown = |i: usize| points.get(i).is_some_and(|p| p.0.is_finite() && p.1.is_finite());
        // No line leads to a point without neighbours, such as the only evaluation so far.
        let is_alone = |i: usize| !is_shown(i + 1) && i.checked_sub(1).is_none_or(|before| !is_shown(before));
        for (i, point) in points.iter().enumerate() {
            if is_shown(i) && (one.has_dots || is_alone(i)) {
                canvas.circle(*point, 2.6, &format!("fill-{ink}"));
            }
        }
    }
    match one.style {
        Style::Line => canvas.curve(&points, &format!("curve stroke-{ink}"), dash(color, index)),
        Style::Steps => {
            let mut corners = Vec::with_capacity(points.len() * 2);
            for pair in points.windows(2) {
                if let [a, b] = pair {
                    // The value is kept up to the next point and changes there, not on the way to it.
                    corners.extend([*a, (b.0, a.1)]);
                }
            }
            // The last point is in no pair as the first of two.
            corners.extend(points.last());
            canvas.curve(&corners, &format!("curve stroke-{ink}"), dash(color, index));
        }
        Style::Points => draw_points(canvas, place, one, &points, &ink),
    }
}

/// Points, with those labels that do not overlap another one.
fn draw_points(canvas: &mut Canvas, place: &PlotArea, one: &Series, points: &[(f64, f64)], ink: &str) {
    // All dots come before the first label, so that no label covers a later dot.
    let mut taken: Vec<(f64, f64, f64, f64)> = Vec::new();
    for point in points.iter().filter(|p| p.0.is_finite() && p.1.is_finite()) {
        canvas.circle(*point, 3.0, &format!("fill-{ink}"));
        taken.push((point.0 - 3.0, point.1 - 3.0, point.0 + 3.0, point.1 + 3.0));
    }
    for (point, label) in points.iter().zip(&one.labels) {
        if !(point.0.is_finite() && point.1.is_finite()) {
            continue;
        }
        // The shorter the labels, the more of them find room.
        let text = fit(label, 10.0, 80.0);
        let w = width(&text, 10.0) * 1.08;
        // To the right of the dot, to the left of it, or above it.
        let mut spots = [
            (point.0 + 6.0, point.1 + 3.5),
            (point.0 - w - 6.0, point.1 + 3.5),
            (point.0 - w / 2.0, point.1 - 6.0),
        ]
        .into_iter();
        let fitting = spots.find(|(x, y)| {
            let own = (*x, y - 9.0, x + w, y + 2.0);
            let is_inside = own.0 >= place.left && own.2 <= place.left + place.room.0;
            is_inside && taken.iter().all(|t| own.2 < t.0 || own.0 > t.2 || own.3 < t.1 || own.1 > t.3)
        });
        if let Some((x, y)) = fitting {
            canvas.text((x, y), Anchor::Start, "tiny fill-ink", &text);
            taken.push((x, y - 9.0, x + w, y + 2.0));
        }
    }
}

fn draw_mark(canvas: &mut Canvas, place: &PlotArea, mark: &Mark) {
    let (left, top, room) = (place.left, place.top, place.room);
    if mark.is_horizontal {
        // Any position on the horizontal axis would do; only the height is used.
        let y = place.at((place.x.low, mark.at)).1;
        canvas.line((left, y), (left + room.0, y), "stroke-muted dashed");
        canvas.text((left + room.0 - 4.0, y - 4.0), Anchor::End, "tiny fill-muted", &mark.word);
    } else {
        let x = place.at((mark.at, place.y.low)).0;
        canvas.line((x, top), (x, top + room.1), "stroke-muted dashed");
        // Near the right edge, a label to the right of its line would leave the chart.
        let is_late = x > left + room.0 * 0.7;
        let (anchor, x) = if is_late { (Anchor::End, x - 4.0) } else { (Anchor::Start, x + 4.0) };
        canvas.text((x, top + 10.0), anchor, "tiny fill-muted", &mark.word);
    }
}
