//! What would fix a diagnostic, as data: a program can carry it out, where `help` tells a person the same.

/// The suggestion to remove an entry.
pub const REMOVE_IT: &str = "remove it";

/// A change to the text at the primary place of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// The word there, a key or a value, is replaced by this one.
    Rename(String),
    /// The entry whose key is there goes to another place.
    Move {
        /// The path of its key below the map to which it goes.
        path: Vec<String>,
        /// How many levels this map is above the one that has the entry now.
        up: usize,
    },
    /// The entry whose key is there becomes a choice: at this path below its map, this part is the value.
    Choose {
        /// The path below the map that has the entry.
        path: Vec<String>,
        /// The part, which has no fields.
        part: String,
    },
    /// The entry whose key is there is removed.
    Remove,
}

impl Fix {
    /// Whether nothing that the author wrote is lost, so that it can be done without being looked at first.
    pub fn is_safe(&self) -> bool {
        match self {
            Fix::Rename(_) | Fix::Move { .. } => true,
            // What has been the value of the key may have said something else.
            Fix::Choose { .. } | Fix::Remove => false,
        }
    }
}
