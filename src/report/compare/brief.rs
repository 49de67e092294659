//! Short names for the variants of a grid, whose names have its keys again and again.

use super::Comparison;
use crate::field::words::listed;
use crate::spec::explain::wrapped;
use crate::spec::sweep::pairs;

/// A comparison in which the variants of a grid have only their values as names, `128,4` for `d_model=128,layers=4`, and
/// lines of at most `width` columns that say which those are. `None` if fewer than two have the keys of a grid, or if the short
/// names of different specs are the same.
pub fn brief(comparison: &Comparison, width: usize) -> Option<(Comparison, String)> {
    let names: Vec<&str> = comparison.models.iter().map(|model| model.name.as_str()).collect();
    let keys = names.iter().find_map(|name| Some(pairs(name)?.0))?;
    let values_of = |name: &str| {
        let (own, values) = pairs(name)?;
        (own == keys).then(|| values.join(","))
    };
    if names.iter().filter(|name| values_of(name).is_some()).count() < 2 {
        return None;
    }
    let short = |name: &str| values_of(name).unwrap_or_else(|| name.to_owned());
    let all: std::collections::BTreeSet<String> = names.iter().map(|name| short(name)).collect();
    let different: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    if all.len() < different.len() {
        return None;
    }
    let mut renamed = comparison.clone();
    let rename = |name: &mut String| *name = short(name);
    renamed.models.iter_mut().for_each(|model| rename(&mut model.name));
    if let Some(timing) = &mut renamed.timing {
        timing.models.iter_mut().for_each(|model| rename(&mut model.name));
    }
    if let Some(learning) = &mut renamed.learning {
        learning.names().for_each(rename);
    }
    let said = format!("variants have the values of {} as names", listed(&keys));
    Some((renamed, wrapped(&said, width).join("\n") + "\n\n"))
}
