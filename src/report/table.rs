//! Aligned columns as text, csv and Markdown.
//!
//! A table never wraps a cell. If it is wider than allowed, columns that may shrink are cut with `…`, the
//! one with the most room to spare first.

use std::fmt::Write as _;

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

    /// Aligned text of at most `width` columns, as far as columns may shrink. A character counts as one
    /// column.
    pub fn text(&self, width: usize) -> String {
        let mut widths = self.widths();
        while total_width(&widths) > width {
            // One character at a time, so that wide columns end up equally far above their least width.
            let widest = widths
                .iter_mut()
                .zip(&self.columns)
                .filter_map(|(w, column)| Some((w.checked_sub(column.least?)?, w)))
                .filter(|(spare, _)| *spare > 0)
                .max_by_key(|(spare, _)| *spare);
            match widest {
                Some((_, w)) => *w = w.saturating_sub(1),
                // Every column has its least width, so the table stays wider than asked.
                None => break,
            }
        }
        let mut out = String::new();
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let rule = "─".repeat(total_width(&widths));
        self.line(&mut out, &titles, &widths);
        let _ = writeln!(out, "{rule}");
        for row in &self.rows {
            self.line(&mut out, row, &widths);
        }
        if !self.total.is_empty() {
            let _ = writeln!(out, "{rule}");
            self.line(&mut out, &self.total, &widths);
        }
        out
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
            let cell = cut(cell, *width);
            let padding = " ".repeat(width.saturating_sub(length(&cell)));
            match column.align {
                Align::Left => line.push_str(&(cell + &padding)),
                Align::Right => line.push_str(&(padding + &cell)),
            }
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn total_width(widths: &[usize]) -> usize {
    let gaps = widths.len().saturating_sub(1).saturating_mul(GAP);
    widths.iter().sum::<usize>().saturating_add(gaps)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(cell: &str, width: usize) -> String {
    if length(cell) <= width {
        return cell.to_owned();
    }
    // One character less, to leave room for the `…`.
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
