//! A comparison as csv and as Markdown.

use super::effect::{Change, Effect};
use super::text::{amount, said};
use super::{Comparison, Turned};
use crate::report::costs::{Name, Unit};
use crate::report::table::{Column, Table};
use crate::spec::phase::Phase;

impl Comparison {
    /// One row per cost and per difference, one column per model, with plain numbers and words. For two
    /// models, a last column gives the effect of each difference alone.
    pub fn plain(&self) -> Table {
        let names = self.models.iter().map(|m| Column::text(m.name.clone(), 0));
        let mut columns = vec![Column::text("section", 0), Column::text("name", 0)];
        columns.extend(names);
        let of_two = self.models.len() == 2;
        if of_two {
            columns.push(Column::text("alone", 0));
        }
        let cost = |name: &Name| {
            let values =
                self.models.iter().map(|m| m.costs.get(*name).map_or(String::new(), |n| n.to_string()));
            let row = ["cost".to_owned(), name.word().to_owned()].into_iter().chain(values);
            row.chain(of_two.then(String::new)).collect::<Vec<String>>()
        };
        let knob = |turned: &Turned| {
            let section = match turned.knob.class {
                Phase::Forward => "forward",
                Phase::Training => "training",
                Phase::Init => "init",
            };
            let values = turned.knob.plain.iter().map(|v| v.clone().unwrap_or_default());
            let row = [section.to_owned(), turned.knob.path.clone()].into_iter().chain(values);
            row.chain(of_two.then(|| turned.alone_with(plain))).collect::<Vec<String>>()
        };
        let timing = self.timing.iter().flat_map(|t| t.plain()).map(|row| ("measured", row));
        let learning = self.learning.iter().flat_map(|l| l.plain()).map(|row| ("trained", row));
        let run = |(section, (name, values)): (&str, (String, Vec<String>))| {
            let row = [section.to_owned(), name].into_iter().chain(values);
            row.chain(of_two.then(String::new)).collect::<Vec<String>>()
        };
        // All costs in a fixed order, also those that no model has, so that the rows of several files match.
        let rows = Name::ALL.iter().map(cost).chain(self.knobs.iter().map(knob));
        let rows = rows.chain(timing.chain(learning).map(run)).collect();
        Table { columns, rows, total: Vec::new() }
    }

    /// [`plain`](Self::plain) as comma-separated values.
    pub fn csv(&self) -> String {
        self.plain().csv()
    }

    /// Pipe tables of the costs, the differences, and the measurements.
    pub fn markdown(&self) -> String {
        let mut columns = vec![Column::text("", 0)];
        columns.extend(self.models.iter().map(|m| Column::number(m.name.clone())));
        let row = |name: &Name| {
            let exact = name.unit() == Unit::Parameters;
            let values = self.models.iter().map(|m| amount(*name, m.costs.get(*name), exact));
            std::iter::once(name.phrase().to_owned()).chain(values).collect()
        };
        let costs = Table { columns, rows: self.shown().iter().map(row).collect(), total: Vec::new() };
        let mut out = format!("{}\n{}", costs.markdown(), self.footnote());
        if self.models.len() < 2 {
            // There is nothing to compare it with.
        } else if self.knobs.is_empty() {
            out += "\nThey are the same model.\n";
        } else {
            out += &self.markdown_of_differences();
        }
        if let Some(timing) = &self.timing {
            out += &format!("\n{}", timing.markdown());
        }
        if let Some(learning) = &self.learning {
            out += &format!("\n{}", learning.markdown());
        }
        out
    }

    fn markdown_of_differences(&self) -> String {
        let of_two = self.models.len() == 2;
        let mut columns = vec![Column::text("what differs", 0)];
        columns.extend(self.models.iter().map(|m| Column::text(m.name.clone(), 0)));
        columns.extend(of_two.then(|| Column::text("alone", 0)));
        let row = |turned: &Turned| {
            let code = |text: &str| format!("`{text}`");
            let values = turned.knob.values.iter().map(|v| v.as_deref().map_or("–".to_owned(), code));
            let row = std::iter::once(code(&turned.knob.path)).chain(values);
            row.chain(of_two.then(|| turned.alone())).collect()
        };
        // This table is for reading, so it leaves out what follows from other differences; csv has
        // everything.
        let shown = self.knobs.iter().filter(|t| !t.knob.follows);
        let table = Table { columns, rows: shown.map(row).collect(), total: Vec::new() };
        format!("\n{}", table.markdown())
    }
}

impl Turned {
    /// The effect of the difference alone, in one line; empty if there is none.
    pub fn alone(&self) -> String {
        self.alone_with(said)
    }

    /// The same with the effect in these words.
    fn alone_with(&self, said: fn(&Effect) -> String) -> String {
        match (&self.effect, &self.with) {
            // It has no effect of its own: it changes when what it is derived from changes.
            _ if self.knob.follows => "follows".to_owned(),
            (Some(effect), None) => said(effect),
            (Some(effect), Some(other)) => {
                let changes =
                    if effect.costs.is_empty() { "no cost changes".to_owned() } else { said(effect) };
                format!("with {}: {changes}", other.rsplit('.').next().unwrap_or(other))
            }
            (None, _) => "not possible alone".to_owned(),
        }
    }
}

/// An effect with the names of costs and plain numbers: `params -30760000, flops_per_token +15759360`.
fn plain(effect: &Effect) -> String {
    let one = |change: &Change| {
        let sign = if change.to > change.from { '+' } else { '-' };
        format!("{} {sign}{}", change.cost.word(), change.from.abs_diff(change.to))
    };
    effect.costs.iter().map(one).collect::<Vec<_>>().join(", ")
}
