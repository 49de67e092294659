//! Facts about a verified graph: what a model consists of, what it costs to run, and tables of both.
//!
//! [`cost::cost`] visits modules, not blocks, so counting a model of a billion layers costs as little as
//! counting one block, and nothing is allocated for the layers. All counts are exact: first polynomials in
//! the lengths `B, T, S, P`, then numbers at given lengths. [`summary`] is the page that `build` and
//! `check` print, [`layers`] is the table of `show`, [`lesson`] the page of `explain`, [`compare`] the one of
//! `compare`, and [`fit`] finds sizes for a wanted cost. Nothing here prints or reads a file.
//!
//! Sums and products saturate everywhere, because a spec may ask for sizes that no computer has, and `check`
//! has to report them all the same.
//!
//! What an op computes, keeps for its gradient and hides is stated by the op itself
//! ([`crate::ir::op::meaning`]), so a new op needs no change here.

pub mod compare;
pub mod cost;
pub mod costs;
pub mod fit;
pub mod layers;
pub mod lesson;
pub mod memory;
pub mod number;
pub mod parameters;
pub mod scene;
pub mod scores;
pub mod summary;
pub mod table;
pub mod tape;
pub mod work;

use serde::{Serialize, Serializer};

/// Serializes a number of any size: as an integer up to 64 bits, which readers keep exact, and as a float
/// beyond that.
fn serialize_count<S: Serializer>(n: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*n) {
        Ok(n) => n.serialize(serializer),
        Err(_) => (*n as f64).serialize(serializer),
    }
}

/// Serializes a polynomial as its formula, `2*B*T+3`.
fn serialize_dim<S: Serializer>(dim: &crate::ir::Dim, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dim)
}
