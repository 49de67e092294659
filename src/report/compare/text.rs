//! A comparison for a terminal.
//!
//! Costs come first, then the differences in groups: those that change the outputs, those that change
//! training, and those that change initial values. A difference is one line if it fits; otherwise its
//! effect is on a second line.

use std::fmt::Write as _;

use super::brief::brief;
use super::effect::{Change, Effect};
use super::{Comparison, Model, Turned};
use crate::report::costs::{Name, Unit};
use crate::report::number;
use crate::report::table::{Align, Column, Table, cut_apart, least_apart};
use crate::spec::explain::wrapped;
use crate::spec::phase::Phase;

const CLASSES: [(Phase, &str); 3] = [
    (Phase::Forward, "what differs"),
    (Phase::Training, "only in training"),
    (Phase::Init, "only the initial values"),
];

impl Comparison {
    /// Aligned text of at most `width` columns. Variants of a grid have short names where their own would be cut.
    pub fn text(&self, width: usize) -> String {
        let is_wide = self.models.len() > 2 && self.costs_of_many().width() > width;
        match Some(self).filter(|_| is_wide).and_then(|whole| brief(whole, width)) {
            Some((renamed, names)) => names + &renamed.text_of(width),
            None => self.text_of(width),
        }
    }

    fn text_of(&self, width: usize) -> String {
        let mut out = match self.models.as_slice() {
            [a, b] => self.costs_of_two(a, b).text(width),
            _ => self.costs_of_many().text(width),
        };
        out += &self.footnote();
        for (class, title) in CLASSES {
            let knobs: Vec<&Turned> =
                self.knobs.iter().filter(|t| t.knob.class == class && !t.knob.follows).collect();
            if knobs.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{title}");
            match self.models.as_slice() {
                [_, _] => knobs.iter().for_each(|turned| line(&mut out, turned, width)),
                _ => out += &self.matrix(&knobs, width),
            }
        }
        if self.knobs.is_empty() && self.models.len() > 1 {
            out += "\nthey are the same model\n";
        }
        if let Some(timing) = &self.timing {
            out += &format!("\nhow long it takes\n{}", timing.text(width));
        }
        if let Some(learning) = &self.learning {
            out += &format!("\n{}\n{}", learning.title(), learning.text(width));
        }
        out
    }

    /// The lengths and the element type for which costs are computed.
    pub fn footnote(&self) -> String {
        let scene = &self.scene;
        let lengths =
            format!("B={}, T={}", number::exact(scene.batch.into()), number::exact(scene.tokens.into()));
        format!("FLOPs and memory at {lengths}; bytes in {}\n", scene.element.word())
    }

    /// The costs that some model has and that add information: one that equals its more general one in all
    /// models is left out.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most costs are alike in this")]
    pub fn shown(&self) -> Vec<Name> {
        let of = |name: Name| self.models.iter().map(move |m| m.costs.of(name));
        let has = |name: Name| of(name).any(|n| n > 0);
        let all = Name::ALL.iter().copied();
        all.filter(|name| match name {
            Name::Active => of(Name::Active).ne(of(Name::Params)),
            Name::VisibleFlops => of(Name::VisibleFlops).ne(of(Name::Flops)),
            Name::FlopsPerToken => self.models.iter().any(|m| m.context.is_some()),
            // A cost of 0 in all models, such as buffers of most, would be a line of zeros.
            _ => has(*name),
        })
        .collect()
    }

    fn costs_of_two(&self, a: &Model, b: &Model) -> Table {
        let columns = vec![
            heading("", Align::Left, None),
            heading(&a.name, Align::Right, None),
            heading(&b.name, Align::Right, None),
            heading("change", Align::Right, None),
            heading("", Align::Right, None),
        ];
        let row = |name: &Name| {
            let exact = name.unit() == Unit::Parameters;
            let (from, to) = (a.costs.get(*name), b.costs.get(*name));
            let change =
                from.zip(to).map(|pair| (difference(*name, pair, exact), number::percent(pair.0, pair.1)));
            let (by, percent) = change.unwrap_or_default();
            let title = name.title().to_owned();
            vec![title, amount(*name, from, exact), amount(*name, to, exact), by, percent]
        };
        Table { columns, rows: self.shown().iter().map(row).collect(), total: Vec::new() }
    }

    fn costs_of_many(&self) -> Table {
        let columns = [
            Name::Params,
            Name::Active,
            Name::FlopsPerToken,
            Name::KvPerToken,
            Name::Weights,
            Name::TrainMemory,
        ];
        let shown = self.shown();
        let names: Vec<Name> = columns.into_iter().filter(|name| shown.contains(name)).collect();
        let titles = names.iter().map(|name| heading(many_title(*name), Align::Right, None));
        let own = Column::names(self.models.iter().map(|m| m.name.as_str()));
        let columns = std::iter::once(own).chain(titles).collect();
        let row = |model: &Model| {
            let cells = names.iter().map(|name| amount(*name, model.costs.get(*name), false));
            std::iter::once(model.name.clone()).chain(cells).collect()
        };
        Table { columns, rows: self.models.iter().map(row).collect(), total: Vec::new() }
    }

    /// Differences as rows and specs as columns, split into several tables if they do not fit the width.
    fn matrix(&self, knobs: &[&Turned], width: usize) -> String {
        let mut out = String::new();
        // Paths may be long; the values of the specs get at least three fifths of the width.
        let label = knobs
            .iter()
            .map(|t| t.knob.path.chars().count())
            .max()
            .unwrap_or(0)
            .min(width.saturating_mul(2) / 5);
        // Each is the title of a column, where a table does not compare it with the others.
        let names: Vec<&str> = self.models.iter().map(|m| m.name.as_str()).collect();
        let names = cut_apart(&names, least_apart(&names, 20)).unwrap_or_default();
        let of = |i: usize| -> usize {
            let name = names.get(i).map_or(0, |name| name.chars().count());
            let cells =
                knobs.iter().filter_map(|t| t.knob.values.get(i)?.as_ref()).map(|v| v.chars().count());
            // A long list or equation in one cell would leave room for few specs, so cells are cut at 20.
            cells.fold(0, usize::max).min(20).max(name).max(4)
        };
        let mut from = 0;
        while from < self.models.len() {
            let mut to = from;
            let mut used = label;
            while to < self.models.len() {
                let with = used.saturating_add(of(to)).saturating_add(2);
                // Every table shows at least one spec, so the loop ends.
                if to > from && with > width {
                    break;
                }
                used = with;
                to = to.saturating_add(1);
            }
            let titles = names.get(from..to).unwrap_or(&[]);
            let titles = titles
                .iter()
                .enumerate()
                .map(|(i, name)| heading(name, Align::Left, Some(of(from.saturating_add(i)))));
            let columns = std::iter::once(heading("", Align::Left, Some(label))).chain(titles).collect();
            let row = |turned: &&Turned| {
                let cells = (from..to)
                    .map(|i| turned.knob.values.get(i).cloned().flatten().unwrap_or_else(|| "–".to_owned()));
                std::iter::once(turned.knob.path.clone()).chain(cells).collect()
            };
            let table = Table { columns, rows: knobs.iter().map(row).collect(), total: Vec::new() };
            if from > 0 {
                out.push('\n');
            }
            out += &table.text(width);
            from = to;
        }
        out
    }
}

/// A cost in words; `–` if the model does not have it.
pub fn amount(name: Name, n: Option<u128>, exact: bool) -> String {
    match n {
        None => "–".to_owned(),
        Some(n) if exact => number::exact(n),
        Some(n) => name.unit().short(n),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most costs are alike in this")]
fn many_title(name: Name) -> &'static str {
    match name {
        Name::FlopsPerToken => "FLOPs/token",
        Name::KvPerToken => "KV/token",
        Name::TrainMemory => "to train",
        _ => name.title().trim_start(),
    }
}

fn heading(title: &str, align: Align, least: Option<usize>) -> Column {
    Column { title: title.to_owned(), align, least }
}

fn line(out: &mut String, turned: &Turned, width: usize) {
    let value = |i: usize| turned.knob.values.get(i).cloned().flatten().unwrap_or_else(|| "–".to_owned());
    let values = format!("{} → {}", value(0), value(1));
    let mut what = format!("  {}  {values}", turned.knob.path);
    if what.chars().count() > width {
        // The path has a line of its own, so that the values begin at one edge.
        let lines = wrapped(&values, width.saturating_sub(6));
        what = format!("  {}", turned.knob.path);
        lines.iter().for_each(|line| what += &format!("\n      {line}"));
    }
    let effect = turned.alone();
    let last = what.lines().last().unwrap_or_default();
    let (wide, right) = (last.chars().count(), effect.chars().count());
    if effect.is_empty() {
        let _ = writeln!(out, "{what}");
    } else if let Some(gap) = width.checked_sub(wide.saturating_add(right)).filter(|gap| *gap >= 2) {
        let _ = writeln!(out, "{what}{}{effect}", " ".repeat(gap));
    } else {
        let _ = writeln!(out, "{what}");
        for part in filled(&effect, width) {
            let gap = width.saturating_sub(part.chars().count());
            let _ = writeln!(out, "{}{part}", " ".repeat(gap));
        }
    }
}

/// An effect in lines of at most `width` columns, which break between costs.
fn filled(effect: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cost in effect.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count().saturating_add(cost.trim_end().chars().count()) <= width => {
                line.push_str(cost);
            }
            Some(_) | None => lines.push(cost.to_owned()),
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// An effect in one line: `+28.3 M parameters, KV/token 36,864 → 12,288 B`.
#[expect(clippy::wildcard_enum_match_arm, reason = "most costs are alike in this")]
pub fn said(effect: &Effect) -> String {
    let one = |change: &Change| match change.cost {
        // Small enough to be shown exactly, so before and after say more than their difference.
        Name::KvPerToken => {
            format!("KV/token {} → {} B", number::exact(change.from), number::exact(change.to))
        }
        Name::Params => format!("params {}", difference(change.cost, (change.from, change.to), false)),
        Name::Active => format!("active {}", difference(change.cost, (change.from, change.to), false)),
        _ => format!("FLOPs/token {}", difference(change.cost, (change.from, change.to), false)),
    };
    effect.costs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `+1,536`, `−22.5 M`; empty if there is no difference.
pub fn difference(cost: Name, (from, to): (u128, u128), exact: bool) -> String {
    let apart = from.abs_diff(to);
    let shown = if exact { number::exact(apart) } else { cost.unit().short(apart) };
    match to.cmp(&from) {
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Greater => format!("+{shown}"),
        std::cmp::Ordering::Less => format!("−{shown}"),
    }
}
