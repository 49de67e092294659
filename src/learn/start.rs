//! Which parameters training takes over from a trained model, and which start fresh.
//!
//! Parameters are found by path, and only in their own shape. Those that are missing or have another shape
//! start fresh if the recipe asks for that by a pattern, or if a new head was asked for. Anything else is an
//! obstacle, because a parameter that starts fresh without anyone knowing makes a worse model that looks like
//! a good one.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::diag::paths::{self, most_path_hints, nearest_paths};
use crate::ir::paths::HEAD;

/// The prefix of the parameters with which a head computes its scores. They belong to its task: the classes
/// of words are not those of texts, even if there are equally many.
pub const SCORES: &str = "head.output.";

/// The shapes of parameters by path, in the order of files.
pub type Shapes = IndexMap<String, Vec<usize>>;

/// Where the parameters of a model come from. Each of them is in one of the first two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// The paths of parameters whose numbers are taken over.
    pub loaded: Vec<String>,
    /// The paths of parameters that start fresh.
    pub fresh: Vec<String>,
    /// The paths of the trained model's parameters that are not used.
    pub unused: Vec<String>,
}

/// The parameters that may start fresh.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    /// Whether someone asked for it by a pattern.
    pub is_excepted: &'a dyn Fn(&str) -> bool,
    /// Whether a new head was asked for.
    pub has_new_head: bool,
}

impl Origins {
    /// Where the parameters of a model come from if they have the shapes `own`, and those of the trained
    /// model the shapes `there`.
    ///
    /// # Errors
    /// Parameters that would start fresh although nobody asked for it: one line each.
    pub fn of(own: &Shapes, there: &Shapes, wish: Wish<'_>) -> Result<Self, Vec<String>> {
        let mut origins = Self::default();
        // The parameters that would start with random values although nobody asked for it. Each has its shape in the model and, if
        // the trained model has a parameter of that path, the shape of that one.
        let mut lost = Vec::new();
        for (path, shape) in own {
            // What the recipe excepts starts fresh even if it would fit.
            let found = there.get(path).filter(|_| !(wish.is_excepted)(path));
            if found == Some(shape) {
                origins.loaded.push(path.clone());
            } else if (wish.is_excepted)(path) || (wish.has_new_head && path.starts_with(HEAD)) {
                origins.fresh.push(path.clone());
            } else {
                lost.push((path.as_str(), (shape, found)));
            }
        }
        let mut obstacles = Vec::new();
        for group in paths::groups(lost) {
            let (path, times, (shape, found)) = (group.name(), group.times(), group.key);
            if let Some(found) = found {
                obstacles.push(format!("{path} is {found:?} there, but the model needs {shape:?}{times}"));
                continue;
            }
            let mut line = format!("{path} {shape:?} is missing there{times}");
            let others = there.keys().filter(|other| !own.contains_key(*other));
            // For a hint the path is compared with every other one, so only the first lines get one.
            if obstacles.len() < most_path_hints(there.len())
                && let Some(near) = nearest_paths(group.first(), others.map(String::as_str), 1).first()
            {
                line += &format!("; there is {}", group.of(near));
            }
            obstacles.push(line);
        }
        // A set, because a list would be searched once for each of the trained model's parameters.
        let loaded: BTreeSet<&String> = origins.loaded.iter().collect();
        origins.unused = there.keys().filter(|path| !loaded.contains(path)).cloned().collect();
        if obstacles.is_empty() { Ok(origins) } else { Err(obstacles) }
    }

    /// Whether the scores of the head are taken over, and with them the meaning of its classes.
    pub fn has_scores(&self) -> bool {
        self.loaded.iter().any(|path| path.starts_with(SCORES))
    }

    /// Whether a table of tokens is taken over, and with it the meaning of their ids.
    pub fn has_tokens(&self) -> bool {
        self.loaded.iter().any(|path| path.ends_with("embed.tokens.weight"))
    }
}
