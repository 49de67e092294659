//! What would fix a diagnostic, as data: a program can carry it out, where `help` tells a person the same.

/// The suggestion to remove an entry.
pub const REMOVE_IT: &str = "remove it";

/// How sure it is that a fix gives what the author meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The author has written as much, in another form.
    Certain,
    /// Nothing else is as near.
    Likely,
    /// Something else may be meant as well, or what was written would be lost.
    Guess,
}

/// A change to the text at the primary place of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A word there, a key or a value, is replaced by another one.
    Rename {
        /// The word, which may be the name in a call or one of the keys of a path.
        from: String,
        /// The other one.
        to: String,
    },
    /// As a rename, of a key that may be any, to the only one that is missing.
    Guess {
        /// The word.
        from: String,
        /// The key that is missing.
        to: String,
    },
    /// The value there, which is no word, is replaced.
    Replace(String),
    /// The entry whose key is there goes to another place.
    Move {
        /// The path of its key below the map to which it goes.
        path: Vec<String>,
        /// How many levels this map is above the one that has the entry now.
        up: usize,
        /// How sure it is that this is the place.
        certainty: Certainty,
    },
    /// The entry whose key is there becomes a choice: at this path below its map, this part is the value.
    Choose {
        /// The path below the map that has the entry.
        path: Vec<String>,
        /// The part, which has no fields.
        part: String,
    },
    /// The key there, which is all that its entry has, becomes a key with a value: `heads: 4` of `heads=4` in YAML.
    Assign {
        /// The key.
        key: String,
        /// The value, which needs no quotation marks.
        value: String,
    },
    /// The entry whose key is there is removed.
    Remove,
}

impl Fix {
    /// How sure it is that this gives what the author meant.
    pub fn certainty(&self) -> Certainty {
        match self {
            Fix::Rename { .. } => Certainty::Likely,
            Fix::Assign { .. } => Certainty::Certain,
            Fix::Move { certainty, .. } => *certainty,
            Fix::Guess { .. } | Fix::Replace(_) | Fix::Choose { .. } | Fix::Remove => Certainty::Guess,
        }
    }
}
