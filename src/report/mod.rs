//! From a verified graph to facts: what a model holds, what running it costs, and tables of both.
//!
//! [`cost::cost`] walks modules, not blocks, so a model of a billion layers costs as little to count
//! as one block, and nothing is allocated for it. All of it is exact: polynomials in the lengths
//! `B, T, S, P` first, numbers at given lengths second. [`summary`] is the page `build` and `check`
//! print, [`layers`] the table of `show`. Nothing here prints or reads a file.
//!
//! Adding one: a new op needs its row in `work.rs` and, if it moves keys and values about, a thought
//! in `scores.rs`; the compiler names both places.

pub mod compare;
pub mod cost;
pub mod costs;
pub mod fit;
pub mod layers;
pub mod lesson;
pub mod memory;
pub mod number;
pub mod parameters;
pub mod scores;
pub mod summary;
pub mod table;
pub mod tape;
pub mod work;

use serde::{Serialize, Serializer};

/// Serializes a number of any size: as an integer where readers keep integers (64 bits), beyond that
/// as a float.
fn serialize_count<S: Serializer>(n: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*n) {
        Ok(n) => n.serialize(serializer),
        Err(_) => (*n as f64).serialize(serializer),
    }
}

/// Serializes a polynomial as its formula, `2*B*T + 3` without spaces.
fn serialize_dim<S: Serializer>(dim: &crate::ir::Dim, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dim)
}
