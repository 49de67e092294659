//! The values of a spec by their paths, and where those of two specs differ.

use std::collections::BTreeMap;

use crate::spec::ModelSpec;
use crate::spec::phase::Phase;
use crate::syntax::tree::{Kind, Node};

/// The values of a spec by path, with numbered blocks: those that determine what the model computes, and
/// those that matter only in training.
#[derive(Clone, Debug, Default)]
pub(super) struct Knobs {
    /// What determines the model.
    pub model: BTreeMap<String, String>,
    /// What matters only in training.
    pub training: BTreeMap<String, String>,
}

impl Knobs {
    /// The values of a spec.
    pub fn of(spec: &ModelSpec) -> Self {
        let mut spec = spec.clone();
        // The author's names for blocks and the family's need not be the same.
        for stack in [&mut spec.encoder, &mut spec.decoder].into_iter().flatten() {
            stack.blocks.iter_mut().for_each(|block| block.name = None);
        }
        let mut knobs = Self::default();
        knobs.collect("", &spec.encode());
        knobs
    }

    fn collect(&mut self, path: &str, node: &Node) {
        match &node.kind {
            Kind::Map(entries) => {
                entries.iter().for_each(|e| self.collect(&crate::ir::paths::join(path, &e.key), &e.value));
            }
            Kind::List(items) => {
                items.iter().enumerate().for_each(|(i, item)| self.collect(&format!("{path}.{i}"), item));
            }
            Kind::Scalar(scalar) => {
                let keys: Vec<&str> = path.split('.').collect();
                // Dropout and initial values do not change what a trained model computes, so they cannot
                // prevent an export.
                let is_training = Phase::of(&keys) != Phase::Forward;
                let text = scalar.text.trim();
                // A factor that happens to be 1 in a config changes nothing, and an author leaves it out.
                let text = if keys.last() == Some(&"block") {
                    text.replace("+ 1 * ", "+ ")
                } else {
                    text.to_owned()
                };
                match path {
                    // The version and the name are no part of the model.
                    "trafo" | "name" => None,
                    _ if is_training => self.training.insert(path.to_owned(), text),
                    _ => self.model.insert(path.to_owned(), text),
                };
            }
            Kind::Null | Kind::Delete => {}
        }
    }
}

/// Lists all differences as `path: one value, not the other`.
pub(super) fn differences(
    wanted: &BTreeMap<String, String>,
    other: &BTreeMap<String, String>,
) -> Vec<String> {
    let of = |value: Option<&String>| value.map_or("nothing".to_owned(), |v| v.replace('\n', "; "));
    let mut paths: Vec<&String> = wanted.keys().chain(other.keys()).collect();
    paths.sort();
    paths.dedup();
    let differ = paths.into_iter().filter(|path| {
        let (a, b) = (wanted.get(*path), other.get(*path));
        // `1e-5` and `0.00001` are the same number.
        let near = |a: &String, b: &String| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => x == y,
            _ => a == b,
        };
        !matches!((a, b), (Some(a), Some(b)) if near(a, b))
    });
    differ.map(|path| format!("{path}: {}, not {}", of(wanted.get(path)), of(other.get(path)))).collect()
}
