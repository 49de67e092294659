//! A comparison as a page: a summary, the differences, block diagrams side by side, and charts and a table
//! of the costs.
//!
//! The words are those of the terminal's table; the page only adds pictures and sortable columns.

use super::Page;
use super::bars::Bars;
use super::chart::{Axis, Chart, Series};
use super::model::{Changes, Outline, changes, side_by_side};
use super::page::{Cell, Column, Section, Table};
use super::scale;
use crate::diag::count::counted;
use crate::report::compare::learning::Learning;
use crate::report::compare::text::{amount, difference};
use crate::report::compare::timing::{TimedPass, Timing, seconds};
use crate::report::compare::{Comparison, Model, Turned};
use crate::report::costs::{Name, Unit};
use crate::report::{number, table};
use crate::spec::phase::Phase;

/// The roles by which parameters are charted.
const ROLES: [Name; 5] = [Name::Embedding, Name::Attention, Name::Ffn, Name::Norm, Name::Head];

/// The page of a comparison. `outlines` are those of its models, in their order.
pub fn page(comparison: &Comparison, outlines: &[Outline]) -> Page {
    let names: Vec<&str> = comparison.models.iter().map(|m| m.name.as_str()).collect();
    // What follows from another difference is no decision of its own, so it is not counted.
    let independent = comparison.knobs.iter().filter(|t| !t.knob.follows).count();
    let lead = match independent {
        // A single model is a page of its costs, without differences to speak of.
        _ if names.len() < 2 => String::new(),
        0 => "They are the same model.".to_owned(),
        1 => "They differ in one place.".to_owned(),
        n => format!("They differ in {}, not counting what follows from them.", counted(n, "place")),
    };
    let page = Page::new(&listed(&names), &lead).with(summary(comparison));
    let page = differences(comparison).into_iter().fold(page, Page::with);
    let page = comparison.learning.iter().map(learning).fold(page, Page::with);
    let page = comparison.timing.iter().map(timing).fold(page, Page::with);
    page.with(blocks(outlines)).with(charts(comparison)).with(costs(comparison))
}

/// A list for sentences: `a, b and c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        all => all.concat(),
    }
}

fn summary(comparison: &Comparison) -> Section {
    // One cost for each question: how large, how slow, how much memory to generate and to train.
    let shown = [Name::Params, Name::FlopsPerToken, Name::KvPerToken, Name::TrainMemory];
    let mut section = Section::new("Summary");
    if let [a, b] = comparison.models.as_slice() {
        let tile = |name: &Name| {
            let (from, to) = (a.costs.get(*name)?, b.costs.get(*name)?);
            let change = match number::percent(from, to) {
                none if none.is_empty() => "the same".to_owned(),
                percent => percent,
            };
            let value = format!("{} → {}", name.unit().short(from), name.unit().short(to));
            Some((format!("{} ({change})", name.phrase()), value))
        };
        section = section.tiles(&shown.iter().filter_map(tile).collect::<Vec<_>>());
    }
    let line = |model: &Model| {
        let mut line = format!("{}: {}", model.name, model.kind.words());
        if let Some(context) = model.context {
            line += &format!(", context {}", number::exact(u128::from(context)));
        }
        line + &format!(", {}", counted(number::count_with_short(model.costs.of(Name::Params)), "parameter"))
    };
    section.list(&comparison.models.iter().map(line).collect::<Vec<_>>())
}

/// A section for each class of differences that occurs.
fn differences(comparison: &Comparison) -> Vec<Section> {
    let classes = [
        (Phase::Forward, "What differs", "These change what the models compute."),
        (Phase::Training, "Only in training", "These change nothing once a model is trained."),
        (Phase::Init, "Only the initial values", "These change where training starts."),
    ];
    let of_two = comparison.models.len() == 2;
    let mut sections = Vec::new();
    for (class, title, about) in classes {
        let knobs: Vec<&Turned> =
            comparison.knobs.iter().filter(|t| t.knob.class == class && !t.knob.follows).collect();
        if knobs.is_empty() {
            continue;
        }
        let mut columns = vec![Column::words("field")];
        columns.extend(comparison.models.iter().map(|m| Column::words(&m.name)));
        if of_two {
            columns.push(Column::words("what it does alone"));
        }
        let mut table = Table::new(about, columns);
        for turned in knobs {
            // The first model is the one that the others are compared with, so its values are never marked.
            let first = turned.knob.values.first().cloned().flatten();
            let mut row = vec![Cell::text(&turned.knob.path).class("code")];
            row.extend(turned.knob.values.iter().map(|value| match value {
                None => Cell::text("–"),
                Some(value) if Some(value) == first.as_ref() => Cell::text(value).class("code"),
                Some(value) => Cell::text(value).class("changed"),
            }));
            row.extend(of_two.then(|| Cell::text(turned.alone())));
            table.rows.push(row);
        }
        sections.push(Section::new(title).table(&table));
    }
    sections
}

fn blocks(outlines: &[Outline]) -> Section {
    let changes: Vec<Changes> = match outlines {
        [a, b] => {
            let (of_a, of_b) = changes(a, b);
            vec![of_a, of_b]
        }
        [first, rest @ ..] => {
            // The first model is what the others are compared with, so it has no marks itself.
            let of_rest = rest.iter().map(|other| changes(first, other).1);
            std::iter::once(Changes::default()).chain(of_rest).collect()
        }
        [] => Vec::new(),
    };
    let section =
        Section::new("Blocks").text("Repeated blocks are folded. A thick border marks what differs.");
    if outlines.len() <= 2 {
        return section.figure(&side_by_side(outlines, &changes), "");
    }
    // With more than two models side by side, the diagrams would be too small to read.
    let one = |(outline, changes): (&Outline, &Changes)| {
        side_by_side(std::slice::from_ref(outline), std::slice::from_ref(changes))
    };
    section.figures(&outlines.iter().zip(&changes).map(one).collect::<Vec<_>>())
}

/// How the axis of a cost is written.
fn axis_unit(unit: Unit) -> scale::Unit {
    match unit {
        Unit::Parameters => scale::Unit::Count,
        Unit::Operations => scale::Unit::Operations,
        Unit::Bytes => scale::Unit::Bytes,
    }
}

fn charts(comparison: &Comparison) -> Section {
    let names: Vec<String> = comparison.models.iter().map(|m| m.name.clone()).collect();
    let of = |name: Name| comparison.models.iter().map(|m| m.costs.of(name) as f64).collect::<Vec<f64>>();
    let count = |n: f64| number::count(n as u128);
    let operations = |n: f64| number::operations(n as u128);
    let bytes = |n: f64| number::bytes(n as u128);
    let roles = ROLES
        .iter()
        .fold(Bars::new("Parameters by role", "parameters", names.clone(), count), |bars, role| {
            bars.with(role.word(), of(*role))
        });
    let mut figures = vec![roles.stacked().figure()];
    // A cost that no model has, such as a cache in encoders, has no chart.
    let mut chart = |name: Name, axis: &str, word: fn(f64) -> String| {
        let having =
            comparison.models.iter().filter_map(|m| Some((m.name.clone(), m.costs.get(name)? as f64)));
        let (names, values): (Vec<String>, Vec<f64>) = having.unzip();
        if !names.is_empty() {
            let bars = Bars::new(name.phrase(), axis, names, word).with("", values);
            figures.push(bars.counting(axis_unit(name.unit())).figure());
        }
    };
    chart(Name::FlopsPerToken, "operations", operations);
    chart(Name::KvPerToken, "bytes", bytes);
    let memory =
        |part: fn(&Model) -> u128| comparison.models.iter().map(|m| part(m) as f64).collect::<Vec<f64>>();
    let training = Bars::new("Memory to train", "bytes", names, bytes)
        .with("weights", memory(|m| m.costs.memory.weights))
        .with("gradients", memory(|m| m.costs.memory.gradients))
        .with("Adam's moments", memory(|m| m.costs.memory.optimizer))
        .with("activations", memory(|m| m.costs.memory.activations));
    figures.push(training.stacked().counting(scale::Unit::Bytes).figure());
    Section::new("Charts").figures(&figures)
}

/// Loss curves, each with the band between its best and its worst seed, and the final losses.
fn learning(learning: &Learning) -> Section {
    let mut chart = Chart::new("Training loss", Axis::linear("step"), Axis::linear("loss, nats"));
    chart.room = (560.0, 300.0);
    for model in &learning.models {
        let points = model.curve.iter().map(|p| (p.step as f64, p.mean)).collect();
        let band = model.curve.iter().map(|p| (p.step as f64, p.low, p.high)).collect();
        chart = chart.with(Series::line(&model.name, points).with_band(band));
    }
    let title =
        if learning.complete { "What they learned" } else { "What they learned before training was stopped" };
    let mut section = Section::new(title).list(&learning.verdicts());
    if learning.models.iter().any(|m| !m.curve.is_empty()) {
        let about = if learning.seeds.is_empty() {
            "Curves of the stopped seed, as far as each model came."
        } else {
            "Lines are means over the seeds; bands reach from the best to the worst seed."
        };
        section = section.figure(&chart.figure(), about);
    }
    section = if learning.seeds.is_empty() {
        section.text(&learning.footnote())
    } else {
        let (columns, rows) = learning.rows();
        let caption = format!("{}; {}", learning.caption(), learning.footnote());
        section.table(&table(&caption, &columns, rows))
    };
    match learning.rows_of_stopped() {
        Some((columns, rows, about)) => section.table(&table(&about, &columns, rows)),
        None => section,
    }
}

/// Durations with the intervals of their medians.
fn timing(timing: &Timing) -> Section {
    let mut figures = Vec::new();
    for what in TimedPass::ALL {
        let times = timing.models.iter().filter_map(|m| Some((m.name.clone(), m.of(what)?)));
        let (names, spreads): (Vec<String>, Vec<_>) = times.unzip();
        if !names.is_empty() {
            let title = match what {
                TimedPass::Forward => "A forward pass",
                TimedPass::Step => "A training step",
            };
            let bars = Bars::new(title, "seconds", names, seconds)
                .with("", spreads.iter().map(|s| s.median).collect())
                .with_ranges(spreads.iter().map(|s| (s.interval[0], s.interval[1])).collect());
            figures.push(bars.figure());
        }
    }
    let (columns, rows) = timing.rows();
    let section = Section::new("How long it takes").list(&timing.verdicts()).figures(&figures);
    let mut table = table(&timing.footnote().replace('\n', " "), &columns, rows);
    let times = TimedPass::ALL.iter().flat_map(|what| timing.models.iter().map(|m| m.of(*what)));
    for (row, spread) in table.rows.iter_mut().zip(times) {
        // A pair of durations sorts by the lower one.
        let keys = spread.map(|s| [s.median, s.interval[0], s.quartiles[0], s.runs as f64]);
        // The first two cells are the names of the pass and of the model.
        row.iter_mut().skip(2).zip(keys.iter().flatten()).for_each(|(cell, key)| cell.key = Some(*key));
    }
    section.table(&table)
}

/// A page's table from a table of the terminal.
fn table(caption: &str, columns: &[table::Column], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|c| match c.align {
        table::Align::Left => Column::words(&c.title),
        table::Align::Right => Column::numbers(&c.title),
    });
    // A number with its unit does not parse; `timing` gives such cells their keys.
    let cell = |text: String| Cell { key: text.parse().ok(), ..Cell::text(text) };
    let mut table = Table::new(caption, columns.collect());
    table.rows = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
    table
}

fn costs(comparison: &Comparison) -> Section {
    let mut columns = vec![Column::words("cost")];
    columns.extend(comparison.models.iter().map(|m| Column::numbers(&m.name)));
    let of_two = comparison.models.len() == 2;
    if of_two {
        columns.extend([Column::numbers("change"), Column::numbers("relative")]);
    }
    let mut table = Table::new(comparison.footnote().trim(), columns);
    for name in comparison.shown() {
        let exact = name.unit() == Unit::Parameters;
        let mut row = vec![Cell::text(name.phrase())];
        row.extend(comparison.models.iter().map(|model| match model.costs.get(name) {
            None => Cell::text("–"),
            Some(n) => Cell::number(amount(name, Some(n), exact), n as f64),
        }));
        if let [a, b] = comparison.models.as_slice() {
            let (from, to) = (a.costs.of(name), b.costs.of(name));
            let by = to as f64 - from as f64;
            row.push(Cell::number(difference(name, (from, to), exact), by));
            // A change from zero has no percentage; it sorts with what does not change.
            row.push(Cell::number(number::percent(from, to), if from == 0 { 0.0 } else { by / from as f64 }));
        }
        table.rows.push(row);
    }
    Section::new("Costs").table(&table)
}
