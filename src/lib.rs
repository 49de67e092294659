//! trafoc compiles declarative transformer specs.
//!
//! A text becomes a spanned tree ([`syntax`]), a typed spec ([`spec`], its fields described with
//! [`field`], its parts in [`parts`]), a graph of primitive ops ([`ir`], made by [`lower`]) and, once
//! verified, whatever is asked for: Rust (`emit`), tensors (`interp`), facts and tables ([`report`]),
//! pictures ([`draw`], [`inspect`]). [`compile`] is the front end in one call. Dependencies run
//! one way, in that order.
//!
//! Words. A *spec* is the author's file; a *slot* is a place in it that holds one *part* (a norm, a
//! positional scheme, ...); a *block* is one layer of a stack; a *module* is a function of the graph;
//! an *op* is primitive; *head* alone is the output head, attention's are `heads` and `head_dim`.

pub mod cli;
pub mod compile;
pub mod diag;
pub mod draw;
pub mod emit;
pub mod field;
pub mod hub;
pub mod inspect;
#[cfg(feature = "interp")]
pub mod interp;
pub mod ir;
pub mod learn;
pub mod lower;
pub mod names;
pub mod parts;
pub mod report;
pub mod source;
pub mod spec;
pub mod syntax;
pub mod tensor_file;
