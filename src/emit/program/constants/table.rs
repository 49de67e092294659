//! Lists of numbers that the author gave, which no formula can express.

use crate::ir::op::{FrequencyRule, LongRule, RotaryTable};
use crate::ir::{Graph, Op};

/// The index of a table in [`Constants::tables`](super::Constants::tables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableId(pub usize);

/// A list of numbers that the author gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name in lower case: `frequency_divisors`.
    pub name: String,
    /// What its numbers are, as a sentence.
    pub doc: String,
    /// The numbers in the author's order.
    pub values: Vec<f64>,
}

/// The tables of a graph's ops, equal ones once.
pub(super) fn tables(graph: &Graph) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut add = |name: &str, doc: &str, values: Vec<f64>| {
        // The blocks of a model usually share one table; written for each, it would be most of the file.
        if tables.iter().any(|table| table.values == values) {
            return;
        }
        let mut chosen = name.to_owned();
        let mut n = 2;
        while tables.iter().any(|table| table.name == chosen) {
            chosen = format!("{name}_{n}");
            n += 1;
        }
        tables.push(Table { name: chosen, doc: doc.to_owned(), values });
    };
    for node in graph.modules.iter().flat_map(|module| &module.nodes) {
        if let Op::RotaryTable { rotary, .. } = &node.op {
            for by in divisors(rotary) {
                let doc = "Divisors of the rotary angles, one for each pair of features.";
                add("frequency_divisors", doc, by.clone());
            }
        }
    }
    tables
}

/// The divisors that the author gave for each pair of features.
fn divisors(rotary: &RotaryTable) -> impl Iterator<Item = &Vec<f64>> {
    let long = rotary.long.iter().filter_map(|long| match &long.rule {
        LongRule::Frequencies(rule) => Some(rule),
        // These frequencies follow from a formula.
        LongRule::Dynamic { .. } => None,
    });
    long.chain([&rotary.rule]).filter_map(|rule| match rule {
        FrequencyRule::DividedEach(by) => Some(by),
        FrequencyRule::Plain
        | FrequencyRule::Divided { .. }
        | FrequencyRule::Ramp { .. }
        | FrequencyRule::ByWavelength { .. } => None,
    })
}
