//! The parser pest makes of `grammar/trafo.pest`, and the names of its rules.

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/trafo.pest"]
pub struct Grammar;
