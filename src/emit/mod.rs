//! From the graph to source code, in two steps.
//!
//! [`program`] decides everything that does not depend on the language: which modules become one, names,
//! numbers, functions and their statements. A target turns such a program into text: [`rust`] is the target
//! for burn, [`pytorch`] that for PyTorch. CONTRIBUTING says how to add another.

pub mod program;
pub mod pytorch;
pub mod rust;

/// The words in the first line of every file that is emitted, by which it is recognised.
pub const MARK: &str = " by trafoc from ";
