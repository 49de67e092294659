//! trafoc compiles declarative transformer specs.
//!
//! A text becomes a spanned tree ([`syntax`]), a typed spec ([`spec`]), a graph of primitive ops
//! ([`ir`], made by [`lower`]) and, verified, whatever is asked for: Rust ([`emit`]), tensors
//! (`interp`), facts and tables ([`report`]). Dependencies run one way, in that order.
//!
//! Words. A *spec* is the author's file; a *slot* is a place in it that holds one *part* (a norm, a
//! positional scheme, ...); a *block* is one layer of a stack; a *module* is a function of the graph;
//! an *op* is primitive; *head* alone is the output head, attention's are `heads` and `head_dim`.

pub mod diag;
pub mod ir;
pub mod report;
pub mod source;
pub mod syntax;
