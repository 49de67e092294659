//! trafoc: a compiler for declarative transformer specs.

pub mod compile;
pub mod diag;
pub mod field;
pub mod ir;
pub mod lower;
pub mod parts;
pub mod source;
pub mod spec;
pub mod syntax;
