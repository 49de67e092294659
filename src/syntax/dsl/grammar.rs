//! The parser that pest generates from `grammar/trafo.pest`, with the names of its rules.

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/trafo.pest"]
pub struct Grammar;
