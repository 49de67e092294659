//! A matrix as a grid of colours, with labels and a legend; cells that a mask hides are grey.

use super::raster::{self, HIDDEN, LEVELS};
use super::scale::{Colors, Scale};
use super::text::{fit, width};
use super::{Anchor, Canvas, Figure};
use crate::diag::count::counted;

/// Matrices with more rows or columns than this are averaged before they are drawn.
const MOST: usize = 256;
/// In matrices with at most this many cells, each cell shows its value while the pointer is on it.
const HOVER: usize = 400;
/// The grey of hidden cells, the same in the light and the dark theme.
const GREY: [u8; 3] = [0x9a, 0xa0, 0xa6];

/// A matrix that is drawn as a heatmap.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// What the heatmap shows.
    pub title: String,
    /// The rows from top to bottom, all of the same length; a value is absent where a mask hides it.
    pub values: Vec<Vec<Option<f64>>>,
    /// The names of the rows; if empty, they are numbered.
    pub rows: Vec<String>,
    /// The names of the columns; if empty, they are numbered.
    pub columns: Vec<String>,
    /// The title of the rows.
    pub row_title: String,
    /// The title of the columns.
    pub column_title: String,
    /// The values at both ends of the colour scale.
    pub range: (f64, f64),
    /// The colours from one end of `range` to the other.
    pub colors: Colors,
    /// Whether the picture has a legend.
    pub has_legend: bool,
    /// `None`: cells are only coloured. Else every cell shows its value, and a hidden cell shows this text,
    /// provided that the matrix is small enough.
    pub numbers: Option<&'static str>,
    /// The largest width and height of all cells together, in pixels.
    pub room: (f64, f64),
    /// How many positions a cell covers, down and across; numbers count positions.
    pub covers: (u64, u64),
}

/// The least width and height of a cell that a number is written into.
const NUMBERED: (f64, f64) = (37.0, 20.0);
/// By how much a matrix may outgrow its room so that numbers fit into it.
const WIDER: f64 = 1.35;

/// The least room for a title, in pixels, however narrow the map is.
const LEAST_TITLE: f64 = 320.0;

impl Heatmap {
    /// A heatmap whose rows and columns are numbered.
    pub fn new(title: &str, values: Vec<Vec<Option<f64>>>, range: (f64, f64), colors: Colors) -> Self {
        Self {
            title: title.to_owned(),
            values,
            rows: Vec::new(),
            columns: Vec::new(),
            row_title: String::new(),
            column_title: String::new(),
            range,
            colors,
            has_legend: true,
            numbers: None,
            room: (420.0, 420.0),
            covers: (1, 1),
        }
    }

    /// The matrix with its values written into the cells, as far as they fit, and `hidden` into hidden ones.
    pub fn numbered(mut self, hidden: &'static str) -> Self {
        self.numbers = Some(hidden);
        self
    }

    /// The same heatmap with names for its rows and columns.
    pub fn labels(mut self, rows: &[String], columns: &[String]) -> Self {
        self.rows = rows.to_vec();
        self.columns = columns.to_vec();
        self
    }

    /// The same heatmap with titles for rows and columns.
    pub fn axes(mut self, rows: &str, columns: &str) -> Self {
        self.row_title = rows.to_owned();
        self.column_title = columns.to_owned();
        self
    }

    /// The same heatmap with this size of all cells together, with or without a legend.
    pub fn sized(mut self, room: (f64, f64), has_legend: bool) -> Self {
        self.room = room;
        self.has_legend = has_legend;
        self
    }

    /// How many positions a row and a column represent.
    pub fn each_cell_covers(mut self, down: u64, across: u64) -> Self {
        self.covers = (down.max(1), across.max(1));
        self
    }

    /// The heatmap as a picture. A value outside of `range` has the colour of the nearer end.
    pub fn figure(&self) -> Figure {
        let (rows, columns) = (self.values.len().max(1), self.values.first().map_or(1, Vec::len).max(1));
        let cell = (self.room.0 / columns as f64, self.room.1 / rows as f64);
        // Cells are square, unless that would make the picture too thin.
        let side = cell.0.min(cell.1).min(26.0);
        let is_thin = side * columns as f64 <= self.room.0 / 3.0 || side * rows as f64 <= self.room.1 / 3.0;
        let cell = if is_thin { (cell.0.min(26.0), cell.1.min(26.0)) } else { (side, side) };
        // All cells or none: a matrix with some numbers would look as if the others were missing.
        let fits = columns as f64 * NUMBERED.0 <= self.room.0 * WIDER
            && rows as f64 * NUMBERED.1 <= self.room.1 * WIDER;
        let numbers = self.numbers.filter(|_| fits);
        let cell = if numbers.is_some() { (cell.0.max(NUMBERED.0), cell.1.max(NUMBERED.1)) } else { cell };
        let (w, h) = (cell.0 * columns as f64, cell.1 * rows as f64);
        // Names less than 9 pixels apart would overlap.
        let names_rows = !self.rows.is_empty() && cell.1 >= 9.0;
        let names_columns = !self.columns.is_empty() && cell.0 >= 9.0;
        let longest =
            |names: &[String]| names.iter().fold(0f64, |most, n| most.max(width(n, 10.0))).min(90.0);
        let left = 14.0
            + if self.row_title.is_empty() { 0.0 } else { 16.0 }
            + if names_rows { longest(&self.rows) * 1.06 + 4.0 } else { 30.0 };
        let title_height = if self.title.is_empty() { 10.0 } else { 30.0 };
        let bottom = 10.0
            + if self.column_title.is_empty() { 0.0 } else { 16.0 }
            // Names of columns are turned by 50 degrees, so they take about 0.8 of their length in height.
            + if names_columns { longest(&self.columns) * 0.8 + 14.0 } else { 16.0 };
        let legend = if self.has_legend { 74.0 } else { 0.0 };
        let (x, y) = (left, title_height);
        let mut canvas = Canvas::default();
        // A map of few cells is narrower than most titles, so the picture may be wider than its map.
        let title = fit(&self.title, 13.0, (left + w + legend - 16.0).max(LEAST_TITLE));
        canvas.text((left, 20.0), Anchor::Start, "label strong fill-ink", &title);
        canvas.image((x, y, w, h), &self.pixels());
        canvas.rect((x, y, w, h), 0.0, "fill-none stroke-line thin");
        if let Some(hidden) = numbers {
            self.write_numbers(&mut canvas, (x, y), cell, hidden);
        }
        // Above the image and the numbers, or the pointer would never be on these cells.
        self.hover(&mut canvas, (x, y), cell);
        self.row_names(&mut canvas, (x, y), cell.1, names_rows, h);
        self.column_names(&mut canvas, (x, y + h), cell.0, names_columns, w);
        if !self.row_title.is_empty() {
            canvas.turned_text(
                (12.0, y + h / 2.0),
                -90.0,
                Anchor::Middle,
                "small fill-muted",
                &self.row_title,
            );
        }
        let end = y + h + bottom;
        if !self.column_title.is_empty() {
            canvas.text((x + w / 2.0, end - 4.0), Anchor::Middle, "small fill-muted", &self.column_title);
        }
        if self.has_legend {
            self.legend(&mut canvas, (x + w + 16.0, y), h.clamp(70.0, 200.0));
        }
        // The legend of a flat map is higher than the map.
        let height = if self.has_legend { end.max(y + h.clamp(70.0, 200.0) + 34.0) } else { end };
        let right = (x + w + legend + 14.0).max(left + width(&title, 13.0) * 1.1 + 8.0);
        let description = format!(
            "Heatmap of {} ({}) and {} ({}), values from {:.3} to {:.3}.",
            counted(rows, "row"),
            self.row_title,
            counted(columns, "column"),
            self.column_title,
            self.range.0,
            self.range.1
        );
        Figure::new(canvas, (right, height), &self.title, &description)
    }

    /// The cells as an image with one pixel each; a large matrix is reduced first.
    fn pixels(&self) -> String {
        let columns = self.values.first().map_or(0, Vec::len);
        let (down, across) = (bins(self.values.len()), bins(columns));
        let mut pixels = Vec::with_capacity(down.len() * across.len());
        for rows in &down {
            for columns in &across {
                pixels.push(self.level(rows.clone(), columns.clone()));
            }
        }
        let mut palette: Vec<[u8; 3]> =
            (0..=LEVELS).map(|i| self.colors.at(i as f64 / LEVELS as f64)).collect();
        palette.push(GREY);
        raster::data(across.len(), down.len(), &pixels, &palette)
    }

    /// The colour of the mean of some cells, without hidden ones.
    fn level(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> u8 {
        let (mut sum, mut count) = (0.0, 0);
        for row in self.values.get(rows).unwrap_or_default() {
            for value in row.get(columns.clone()).unwrap_or_default().iter().flatten() {
                sum += value;
                count += 1;
            }
        }
        if count == 0 {
            return HIDDEN;
        }
        let share = (sum / f64::from(count) - self.range.0) / (self.range.1 - self.range.0);
        // A range without extent gives no share; NaN among the values is drawn as the lowest one.
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        (share * LEVELS as f64).round() as u8
    }

    fn write_numbers(&self, canvas: &mut Canvas, at: (f64, f64), cell: (f64, f64), hidden: &str) {
        for (i, row) in self.values.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let place = (at.0 + (j as f64 + 0.5) * cell.0, at.1 + (i as f64 + 0.5) * cell.1 + 3.5);
                let share = value.map(|v| (v - self.range.0) / (self.range.1 - self.range.0));
                // Luma as in ITU-R BT.601: how bright red, green and blue appear.
                let is_light = share.is_none_or(|share| {
                    let [r, g, b] = self.colors.at(share).map(f64::from);
                    0.299 * r + 0.587 * g + 0.114 * b > 140.0
                });
                // These letters have the same colour in both themes, as the cells have.
                let class = if is_light { "tiny on-light" } else { "tiny on-dark" };
                let word = match value {
                    None => hidden.to_owned(),
                    Some(v) if v.is_finite() => short(*v),
                    Some(_) => "?".to_owned(),
                };
                canvas.text(place, Anchor::Middle, class, &word);
            }
        }
    }

    fn hover(&self, canvas: &mut Canvas, at: (f64, f64), cell: (f64, f64)) {
        // Each cell with a text is an element of the page; thousands of them would make it slow.
        let count: usize = self.values.iter().map(Vec::len).sum();
        if count > HOVER {
            return;
        }
        for (i, row) in self.values.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let place = (at.0 + j as f64 * cell.0, at.1 + i as f64 * cell.1, cell.0, cell.1);
                let name = |names: &[String], i: usize, covers: u64| {
                    let first = i as u64 * covers;
                    let numbers =
                        if covers == 1 { i.to_string() } else { format!("{first}–{}", first + covers - 1) };
                    names.get(i).cloned().unwrap_or(numbers)
                };
                let value = match value {
                    None => "hidden".to_owned(),
                    Some(v) if v.is_finite() => format!("{v:.3}"),
                    Some(_) => "not a number".to_owned(),
                };
                let text = format!(
                    "{}, {}: {value}",
                    name(&self.rows, i, self.covers.0),
                    name(&self.columns, j, self.covers.1)
                );
                canvas.group("", &[], &text, |canvas| canvas.rect(place, 0.0, "fill-none sensitive"));
            }
        }
    }

    fn row_names(&self, canvas: &mut Canvas, at: (f64, f64), cell: f64, named: bool, h: f64) {
        if named {
            for (i, name) in self.rows.iter().enumerate() {
                let y = at.1 + (i as f64 + 0.5) * cell + 3.5;
                canvas.text((at.0 - 4.0, y), Anchor::End, "tiny fill-ink", &fit(name, 10.0, 90.0));
            }
            return;
        }
        let (scale, middle) = positions(self.values.len(), self.covers.0);
        for (value, word) in whole_ticks(&scale, h) {
            let y = at.1 + (value / self.covers.0 as f64 + middle) * cell;
            // The scale ends one past the last position, where there is no cell.
            if y <= at.1 + h {
                canvas.line((at.0 - 4.0, y), (at.0, y), "stroke-line thin");
                canvas.text((at.0 - 6.0, y + 3.5), Anchor::End, "tiny fill-muted", &word);
            }
        }
    }

    fn column_names(&self, canvas: &mut Canvas, at: (f64, f64), cell: f64, named: bool, w: f64) {
        // Turned, because most names are wider than their column.
        if named {
            for (i, name) in self.columns.iter().enumerate() {
                let place = (at.0 + (i as f64 + 0.5) * cell + 3.0, at.1 + 10.0);
                canvas.turned_text(place, -50.0, Anchor::End, "tiny fill-ink", &fit(name, 10.0, 90.0));
            }
            return;
        }
        let columns = self.values.first().map_or(0, Vec::len);
        let (scale, middle) = positions(columns, self.covers.1);
        // Numbers next to each other need twice the room of numbers below each other.
        for (value, word) in whole_ticks(&scale, w / 2.0) {
            let x = at.0 + (value / self.covers.1 as f64 + middle) * cell;
            if x <= at.0 + w {
                canvas.line((x, at.1), (x, at.1 + 4.0), "stroke-line thin");
                canvas.text((x, at.1 + 14.0), Anchor::Middle, "tiny fill-muted", &word);
            }
        }
    }

    fn legend(&self, canvas: &mut Canvas, at: (f64, f64), height: f64) {
        // The rows of an image go downwards, and the largest value is at the top.
        let levels: Vec<u8> = (0..=LEVELS).rev().map(|i| i as u8).collect();
        let palette: Vec<[u8; 3]> = (0..=LEVELS).map(|i| self.colors.at(i as f64 / LEVELS as f64)).collect();
        let bar = (at.0, at.1, 12.0, height);
        canvas.image(bar, &raster::data(1, levels.len(), &levels, &palette));
        canvas.rect(bar, 0.0, "fill-none stroke-line thin");
        let scale = Scale::tight([self.range.0, self.range.1]);
        for (value, word) in scale.ticks() {
            let y = at.1 + height * (1.0 - scale.share(value));
            canvas.line((at.0 + 12.0, y), (at.0 + 15.0, y), "stroke-line thin");
            canvas.text((at.0 + 18.0, y + 3.5), Anchor::Start, "tiny fill-muted", &word);
        }
        if self.values.iter().flatten().any(Option::is_none) {
            let y = at.1 + height + 12.0;
            let grey = (at.0, y, 12.0, 12.0);
            canvas.image(grey, &raster::data(1, 1, &[0], &[GREY]));
            canvas.text((at.0 + 18.0, y + 10.0), Anchor::Start, "tiny fill-muted", "hidden");
        }
    }
}

/// A scale of the positions of some cells, and where in its first cell a position is shown: in the middle
/// of a cell of its own, else at its beginning.
fn positions(cells: usize, covers: u64) -> (Scale, f64) {
    // A single cell has no extent, which a scale needs.
    let last = cells.max(2) as f64 * covers as f64;
    (Scale::tight([0.0, last]), if covers == 1 { 0.5 } else { 0.0 })
}

/// A number in at most six characters: `0.03`, `−12.4`, `3e5`.
fn short(value: f64) -> String {
    // The bounds are where rounding would add a digit: 9.996 with two decimals is `10.00`.
    let digits = match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 999.95 => format!("{value:.1}"),
        v if v < 99_999.5 => format!("{value:.0}"),
        _ => format!("{value:.0e}"),
    };
    // A zero that rounding has made has no sign.
    let is_zero = digits.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.'));
    if is_zero { digits.trim_start_matches('-').to_owned() } else { digits.replace('-', "−") }
}

/// Ticks at whole numbers, fewer where there is little room.
fn whole_ticks(scale: &Scale, room: f64) -> Vec<(f64, String)> {
    let ticks: Vec<(f64, String)> = scale.ticks().into_iter().filter(|(v, _)| v.fract() == 0.0).collect();
    let stride = if room < 14.0 * ticks.len() as f64 { 2 } else { 1 };
    ticks.into_iter().step_by(stride).collect()
}

/// Ranges of indices that are averaged and drawn as one.
fn bins(count: usize) -> Vec<std::ops::Range<usize>> {
    let bins = count.min(MOST);
    (0..bins).map(|i| i * count / bins..(i + 1) * count / bins).collect()
}
