//! Aligned columns as text, csv and Markdown.
//!
//! A table never wraps a cell. If it is wider than allowed, columns that may shrink are cut with `…`, the
//! one with the most room to spare first. Cells of a column that differ are cut where they stay different, as
//! long as there is room for that.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::source::{columns, columns_of};

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Padded on the right, for text.
    Left,
    /// Padded on the left, so that the digits of numbers are in line.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading of the column.
    pub title: String,
    /// The alignment of the cells.
    pub align: Align,
    /// The width to which it may shrink; `None` if it is never cut.
    pub least: Option<usize>,
}

impl Column {
    /// A column of text that shrinks to no less than `least` characters.
    pub fn text(title: impl Into<String>, least: usize) -> Self {
        Self { title: title.into(), align: Align::Left, least: Some(least) }
    }

    /// A column of names, which is as wide as it must be to tell them apart.
    pub fn names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let names: Vec<&str> = names.collect();
        Self::text("", least_apart(&names, 8))
    }

    /// A column of numbers, never cut.
    pub fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), align: Align::Right, least: None }
    }
}

/// Rows under titles, with an optional row of totals below a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns with their titles.
    pub columns: Vec<Column>,
    /// The rows, with one cell for every column.
    pub rows: Vec<Vec<String>>,
    /// The row of totals; empty if there is none.
    pub total: Vec<String>,
}

const GAP: usize = 2;

impl Table {
    /// The width when nothing is cut.
    pub fn width(&self) -> usize {
        total_width(&self.widths())
    }

    /// Aligned text of at most `width` columns of a terminal, as far as columns may shrink.
    pub fn text(&self, width: usize) -> String {
        let mut widths = self.widths();
        let least: Vec<Option<usize>> = self.columns.iter().map(|column| column.least).collect();
        if total_width(&widths) > width {
            // First only as far as nothing looks alike that is not.
            let different =
                least.iter().enumerate().map(|(i, least)| Some(least_apart(&self.cells(i), (*least)?)));
            shrink(&mut widths, &different.collect::<Vec<_>>(), width);
            shrink(&mut widths, &least, width);
        }
        let table = self.cut(&widths);
        let mut out = String::new();
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let rule = "─".repeat(total_width(&widths));
        self.line(&mut out, &titles, &widths);
        let _ = writeln!(out, "{rule}");
        for row in &table.rows {
            self.line(&mut out, row, &widths);
        }
        if !table.total.is_empty() {
            let _ = writeln!(out, "{rule}");
            self.line(&mut out, &table.total, &widths);
        }
        out
    }

    /// The cells of a column, without its title.
    fn cells(&self, column: usize) -> Vec<&str> {
        let all = self.rows.iter().chain(std::iter::once(&self.total));
        all.filter_map(|row| row.get(column)).map(String::as_str).collect()
    }

    /// The table with its cells cut to the widths of their columns.
    fn cut(&self, widths: &[usize]) -> Self {
        let mut table = self.clone();
        for (i, width) in widths.iter().enumerate() {
            let texts = self.cells(i);
            let cut = cut_apart(&texts, *width)
                .unwrap_or_else(|| texts.iter().map(|t| cut(t, *width, 0)).collect());
            let cells = table.rows.iter_mut().chain(std::iter::once(&mut table.total));
            cells.filter_map(|row| row.get_mut(i)).zip(cut).for_each(|(cell, cut)| *cell = cut);
        }
        table
    }

    /// Comma-separated values with a line of titles, quoted where RFC 4180 requires it, without totals.
    pub fn csv(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            let _ = writeln!(out, "{}", cells.join(","));
        }
        out
    }

    /// Tab-separated values with a line of titles, without totals. An empty cell is `-`, so that no line ends with a tab.
    pub fn tsv(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| tabless(cell)).collect();
            let _ = writeln!(out, "{}", cells.join("\t"));
        }
        out
    }

    /// A pipe table, with the totals as a last row in bold.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let line = |out: &mut String, cells: &[String]| {
            // A bar would end the cell.
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        };
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        line(&mut out, &titles);
        let rules: Vec<String> = self
            .columns
            .iter()
            .map(|c| match c.align {
                Align::Left => "---".to_owned(),
                Align::Right => "---:".to_owned(),
            })
            .collect();
        line(&mut out, &rules);
        for row in &self.rows {
            line(&mut out, row);
        }
        if !self.total.is_empty() {
            let bold = |cell: &String| if cell.is_empty() { String::new() } else { format!("**{cell}**") };
            line(&mut out, &self.total.iter().map(bold).collect::<Vec<_>>());
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        let all = self.rows.iter().chain(std::iter::once(&self.total));
        let mut widths: Vec<usize> = self.columns.iter().map(|c| length(&c.title)).collect();
        for row in all {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(length(cell));
            }
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        let mut line = String::new();
        for ((cell, width), column) in cells.iter().zip(widths).zip(&self.columns) {
            // An empty first cell is padded to its width, so only before the first column is the line empty.
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = cut(cell, *width, 0);
            let padding = " ".repeat(width.saturating_sub(length(&cell)));
            match column.align {
                Align::Left => line.push_str(&(cell + &padding)),
                Align::Right => line.push_str(&(padding + &cell)),
            }
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// A cell in which no character ends it.
fn tabless(cell: &str) -> String {
    match cell.split_whitespace().next() {
        // Blanks between words stay, except for those that end a cell or a line.
        Some(_) => cell.replace(['\t', '\n', '\r'], " ").trim_end().to_owned(),
        None => "-".to_owned(),
    }
}

fn total_width(widths: &[usize]) -> usize {
    let gaps = widths.len().saturating_sub(1).saturating_mul(GAP);
    widths.iter().sum::<usize>().saturating_add(gaps)
}

fn length(text: &str) -> usize {
    columns(text)
}

/// Makes columns narrower, down to their least width, until the table has a width.
fn shrink(widths: &mut [usize], least: &[Option<usize>], width: usize) {
    while total_width(widths) > width {
        // One character at a time, so that wide columns end up equally far above their least width.
        let widest = widths
            .iter_mut()
            .zip(least)
            .filter_map(|(w, least)| Some((w.checked_sub((*least)?)?, w)))
            .filter(|(spare, _)| *spare > 0)
            .max_by_key(|(spare, _)| *spare);
        match widest {
            Some((_, w)) => *w = w.saturating_sub(1),
            // Every column has its least width, so the table stays wider than asked.
            None => break,
        }
    }
}

/// A text of at most `width` columns, of which the last `tail` are those of the whole text.
fn cut(text: &str, width: usize, tail: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    // One column less, to leave room for the `…`.
    let head = within(text.chars(), width.saturating_sub(tail.saturating_add(1)));
    let tail = within(text.chars().rev(), tail);
    let skipped = text.chars().count().saturating_sub(tail);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(skipped)).collect()
}

/// How many of the first characters fit into a number of columns.
fn within(text: impl Iterator<Item = char>, room: usize) -> usize {
    let ends = text.scan(0usize, |used, c| {
        *used = used.saturating_add(columns_of(c));
        Some(*used)
    });
    ends.take_while(|end| *end <= room).count()
}

/// Texts of at most `width` columns, cut so that different ones stay different: at the end, in the
/// middle, or at the first other place that keeps them different. `None` if there is none.
pub fn cut_apart(texts: &[&str], width: usize) -> Option<Vec<String>> {
    let different: BTreeSet<&str> = texts.iter().copied().collect();
    let longest = width.saturating_sub(1);
    let mut tails = [0, longest / 2].into_iter().chain(1..=longest);
    let tail = tails.find(|tail| {
        let found: BTreeSet<String> = different.iter().map(|text| cut(text, width, *tail)).collect();
        found.len() == different.len()
    })?;
    Some(texts.iter().map(|text| cut(text, width, tail)).collect())
}

/// The smallest width, and no smaller than `least`, to which texts can be cut so that different ones stay different.
pub fn least_apart(texts: &[&str], least: usize) -> usize {
    let longest = texts.iter().map(|text| length(text)).max().unwrap_or(0);
    (least..longest).find(|width| cut_apart(texts, *width).is_some()).unwrap_or(longest.max(least))
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
