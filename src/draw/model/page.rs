//! The architecture as a page: the picture, the spec, and the layers as a table.

use super::outline::Outline;
use super::svg::picture;
use crate::diag::count::counted;
use crate::draw::page::{Cell, Column, Page, Section, Table};
use crate::ir::Verified;
use crate::report::cost::cost;
use crate::report::layers::layers;
use crate::report::number;
use crate::source::SourceMap;
use crate::spec::library::LIBRARY_NAME;
use crate::spec::wiring::PRELUDE_NAME;

/// The most rows of the table, so that the page stays small and readable.
const MOST_ROWS: usize = 400;

/// The page of one model. Selecting a box shows its details and marks its line of the spec.
pub fn page(outline: &Outline, graph: &Verified, sources: &SourceMap) -> Page {
    let hint = "Select a box to see its path, shapes, parameters and its line of the spec.";
    let mut section = Section::new("Architecture").details(hint).figure(&picture(outline), "");
    for (_, source) in sources.iter() {
        // These belong to trafoc; the author did not write them.
        if ![PRELUDE_NAME, LIBRARY_NAME].contains(&source.name.as_str()) {
            section = section.source(&source.name, &source.text);
        }
    }
    Page::new(&outline.name, &outline.summary.join(" · ")).with(section).with(table(graph))
}

fn table(graph: &Verified) -> Section {
    // A page has no options, so operations are those of the longest sequence that the model is meant for.
    let lengths = cost(graph).whole_context();
    let all = layers(graph, usize::MAX, &lengths);
    let mut table = Table::new(
        &format!(
            "Operations of one sequence of {}",
            counted(number::exact(u128::from(lengths.time)), "position")
        ),
        vec![
            Column::words("path"),
            Column::words("type"),
            Column::words("shape"),
            Column::numbers("copies"),
            Column::numbers("parameters"),
            Column::numbers("operations"),
        ],
    );
    for row in all.rows.iter().take(MOST_ROWS) {
        table.rows.push(vec![
            Cell::text(&row.path).class("code"),
            Cell::text(&row.r#type),
            Cell::text(row.shape.clone().unwrap_or_default()).class("code"),
            Cell::number(number::exact(row.copies), row.copies as f64),
            Cell::number(number::exact(row.parameters), row.parameters as f64),
            Cell::number(number::operations(row.operations), row.operations as f64),
        ]);
    }
    let section = Section::new("Layers").table(&table);
    match all.rows.len().checked_sub(MOST_ROWS) {
        None | Some(0) => section,
        Some(more) => section.text(&format!("{more} more rows are left out; trafoc show lists all of them.")),
    }
}
