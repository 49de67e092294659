//! Pictures of what a model does: positions and masks from the spec alone, attention, flow and layers from
//! the values of a run, and initial values of parameters.
//!
//! Everything here works on plain numbers: the values of a run arrive as [`Matrix`], whatever computed
//! them, so all of it is available and tested without a tensor library. [`sites`] determines which values
//! of a graph are needed; the command line runs the model and passes them on. A [`Report`] becomes a text,
//! a picture or a page.

pub mod attention;
pub mod changes;
pub mod data;
pub mod flow;
pub mod layers;
pub mod norms;
mod pieces;
pub mod positions;
mod prepared;
pub mod sites;
pub mod start;
pub mod steps;
pub mod training;

use crate::draw::page::{Cell, Column, Page, Section, Table};
use crate::draw::text::width;
use crate::draw::{Anchor, Canvas, Figure};
use crate::report::table;
use crate::source::columns;
use crate::spec::explain::wrapped;

/// A matrix of numbers, such as the weights of a head or the values of a layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The values in row-major order.
    pub values: Vec<f64>,
}

impl Matrix {
    /// A matrix of this size; missing values are 0, surplus values are dropped.
    pub fn new(rows: usize, columns: usize, mut values: Vec<f64>) -> Self {
        values.resize(rows * columns, 0.0);
        Self { rows, columns, values }
    }

    /// The values of one row.
    pub fn row(&self, row: usize) -> &[f64] {
        self.values.get(row * self.columns..(row + 1) * self.columns).unwrap_or_default()
    }

    /// The value at a row and a column; 0 outside of the matrix.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.row(row).get(column).copied().unwrap_or(0.0)
    }

    /// The transposed matrix, with rows and columns exchanged.
    pub fn transposed(&self) -> Matrix {
        let values = (0..self.columns).flat_map(|c| (0..self.rows).map(move |r| self.at(r, c)));
        Matrix { rows: self.columns, columns: self.rows, values: values.collect() }
    }

    /// The matrix product; `other` must have as many rows as this matrix has columns.
    pub fn times(&self, other: &Matrix) -> Matrix {
        let mut values = vec![0.0; self.rows * other.columns];
        // In this order the inner loop runs along rows, whose values follow each other in memory.
        for (row, out) in values.chunks_mut(other.columns.max(1)).enumerate() {
            for (k, a) in self.row(row).iter().enumerate() {
                for (to, b) in out.iter_mut().zip(other.row(k)) {
                    *to += a * b;
                }
            }
        }
        Matrix { rows: self.rows, columns: other.columns, values }
    }

    /// The mean of matrices of the same size.
    pub fn mean(all: &[Matrix]) -> Matrix {
        let Some(first) = all.first() else { return Matrix::default() };
        let mut values = vec![0.0; first.values.len()];
        for one in all {
            values.iter_mut().zip(&one.values).for_each(|(sum, v)| *sum += v / all.len() as f64);
        }
        Matrix { values, ..*first }
    }
}

/// The total width of pictures side by side, in pixels.
const ROOM: f64 = 1120.0;

/// The result of an inspection.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The title of the report.
    pub title: String,
    /// A summary in one sentence.
    pub lead: String,
    /// The parts, in the order in which they are shown.
    pub parts: Vec<Part>,
}

/// A part of a report.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The heading of the part.
    pub title: String,
    /// An explanation of what it shows.
    pub text: String,
    /// What its pictures mean by their colours and lines. A text, which has no pictures, leaves it out.
    pub legend: String,
    /// Numbers with their names, shown before pictures and tables.
    pub facts: Vec<(String, String)>,
    /// A picture in one line of characters, for terminals.
    pub sketch: String,
    /// The pictures of the part.
    pub figures: Vec<Figure>,
    /// A header and rows; numeric cells are sorted by the number they begin with.
    pub table: Option<(Vec<String>, Vec<Vec<String>>)>,
}

impl Report {
    /// This report with every part followed by the same part of another one, under the names of what both
    /// are about.
    #[must_use]
    pub fn alternating_with(self, other: Self, (own, its): (&str, &str)) -> Self {
        let named = |part: Part, name: &str| Part { title: format!("{}: {name}", part.title), ..part };
        let mut others = other.parts.into_iter();
        let mut parts = Vec::new();
        for part in self.parts {
            parts.push(named(part, own));
            parts.extend(others.next().map(|part| named(part, its)));
        }
        // Two models may have different numbers of parts, for example of layers.
        parts.extend(others.map(|part| named(part, its)));
        Self { title: format!("{}, and {its}", self.title), lead: self.lead, parts }
    }

    /// The report as a page.
    pub fn page(&self) -> Page {
        self.parts.iter().fold(Page::new(&self.title, &self.lead), |page, part| {
            let mut section = Section::new(&part.title);
            let said = [part.text.as_str(), part.legend.as_str()].into_iter().filter(|text| !text.is_empty());
            let said = said.collect::<Vec<_>>().join(" ");
            if !said.is_empty() {
                section = section.text(&said);
            }
            if !part.facts.is_empty() {
                section = section.tiles(&part.facts);
            }
            match part.figures.as_slice() {
                [] => {}
                [one] => section = section.figure(one, ""),
                several => section = section.figures(several),
            }
            if let Some((header, rows)) = &part.table {
                section = section.table(&sortable(header, rows));
            }
            page.with(section)
        })
    }

    /// All pictures as one, with the parts below each other.
    pub fn figure(&self) -> Figure {
        let mut canvas = Canvas::default();
        canvas.text((20.0, 30.0), Anchor::Start, "title fill-ink", &self.title);
        canvas.text((20.0, 50.0), Anchor::Start, "subtitle fill-muted", &self.lead);
        let mut y = 62.0;
        // The width of a text is that of one font, so there is some room for another.
        let mut right = 40.0 + width(&self.title, 16.0).max(width(&self.lead, 12.0)) * 1.08;
        let parts = self.parts.iter().filter(|part| !part.figures.is_empty());
        for part in parts {
            let fits = |columns: &usize| {
                let row = |row: &[Figure]| row.iter().map(|f| f.width + 16.0).sum::<f64>() <= ROOM;
                part.figures.chunks(*columns).all(row)
            };
            // As many pictures side by side as the width allows.
            let columns = [4, 3, 2].into_iter().find(fits).unwrap_or(1);
            // The only part of a report would repeat its title.
            let title = if self.parts.len() > 1 { part.title.as_str() } else { "" };
            let grid = Figure::grid(&part.figures, columns, title, "");
            canvas.place(4.0, y, &grid);
            y += grid.height + 6.0;
            right = right.max(grid.width + 8.0);
        }
        Figure::new(canvas, (right, y + 8.0), &self.title, &self.lead)
    }

    /// The report as text: titles, facts and tables, with sentences of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("{}\n{}\n", self.title, self.lead);
        for part in &self.parts {
            out += &format!("\n{}\n", part.title);
            if !part.text.is_empty() {
                let lines = wrapped(&part.text, width.saturating_sub(2));
                lines.iter().for_each(|line| out += &format!("  {line}\n"));
            }
            let widest = part.facts.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
            for (name, value) in &part.facts {
                hung(&format!("  {}  ", padded(name, widest)), value, width)
                    .iter()
                    .for_each(|line| out += &format!("{line}\n"));
            }
            if !part.sketch.is_empty() {
                out += &format!("  {}\n", part.sketch);
            }
            if let Some((header, rows)) = &part.table {
                out += &aligned(header, rows, width);
            }
        }
        out
    }
}

impl Report {
    /// The report in lines that are not broken, with tabs between a name and its value and between the cells of a table, as in
    /// [`table::Table::tsv`]. The title of a part has `#` before it.
    pub fn plain(&self) -> String {
        let mut out = format!("{}\n{}\n", self.title, self.lead);
        for part in &self.parts {
            out += &format!("# {}\n", part.title);
            if !part.text.is_empty() {
                out += &format!("{}\n", part.text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            for (name, value) in &part.facts {
                out += &format!("{name}\t{value}\n");
            }
            if let Some((header, rows)) = &part.table {
                let columns = header.iter().map(|title| table::Column::text(title, 0)).collect();
                out += &table::Table { columns, rows: rows.clone(), total: Vec::new() }.tsv();
            }
        }
        out
    }
}

/// A text with spaces after it up to a number of columns; `{:width$}` would count characters, of which some take two.
fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(columns(text)))
}

/// Breaks a text into lines of at most `width` columns. The first line begins with `before`, and the others are
/// indented by its width; the text stays on one line if there would be room for a few words only.
fn hung(before: &str, text: &str, width: usize) -> Vec<String> {
    const FEW_WORDS: usize = 24;
    let indent = columns(before);
    let room = width.saturating_sub(indent);
    if columns(text) <= room || room < FEW_WORDS {
        return vec![format!("{before}{text}")];
    }
    let lines = wrapped(text, room);
    let indented = lines.iter().enumerate();
    indented
        .map(|(i, line)| if i == 0 { format!("{before}{line}") } else { format!("{:indent$}{line}", "") })
        .collect()
}

/// A table whose columns of numbers are sorted by value.
fn sortable(header: &[String], rows: &[Vec<String>]) -> Table {
    let number = |text: &str| {
        // `1,024`, `× 1.5` and numbers with a typographic minus sign are numbers, too.
        let first = text.split(' ').next()?;
        first.replace([',', '×'], "").replace('−', "-").parse::<f64>().ok()
    };
    let is_number = |column: usize| {
        // A dash fills a cell without a value, and says nothing about its column.
        let mut cells = rows.iter().filter_map(|row| row.get(column)).filter(|cell| *cell != "–");
        cells.clone().next().is_some() && cells.all(|cell| number(cell).is_some())
    };
    let titles = header.iter().enumerate();
    let titles = titles.map(|(i, title)| Column { title: title.clone(), is_number: is_number(i) }).collect();
    let mut table = Table::new("", titles);
    table.rows = rows
        .iter()
        .map(|row| row.iter().map(|text| Cell { text: text.clone(), key: number(text), class: "" }).collect())
        .collect();
    table
}

/// Columns side by side. If they are too wide, a last column of sentences is broken into lines, or else the first
/// cell of a row is on a line above the others.
fn aligned(header: &[String], rows: &[Vec<String>], width: usize) -> String {
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(header.get(column));
        cells.map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let all = (0..header.len()).map(|i| wide(i) + 2).sum::<usize>();
    let last = header.len().saturating_sub(1);
    let has_sentences = wide(last) > width / 2 && all - wide(last) < width / 2;
    let line = |row: &[String]| {
        let mut cells = row.iter().enumerate().map(|(i, cell)| padded(cell, wide(i)));
        if let Some(text) = row.last().filter(|_| all > width && has_sentences) {
            let before: Vec<String> = cells.take(last).collect();
            return hung(&format!("  {}  ", before.join("  ")), text, width).join("\n") + "\n";
        }
        // The first cell is usually the longest, such as the path of a parameter.
        let above = if all > width { cells.next() } else { None };
        let above = above.map_or(String::new(), |first| format!("  {}\n  ", first.trim_end()));
        format!("{above}  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    line(header) + &rows.iter().map(|row| line(row)).collect::<String>()
}
