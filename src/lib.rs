//! trafoc compiles declarative transformer specs.
//!
//! A text becomes a tree with source places ([`syntax`]), a typed spec ([`spec`], whose fields are
//! described with [`field`] and whose parts are in [`parts`]), and a graph of primitive ops ([`ir`], built
//! by [`lower`]). From the verified graph come Rust code (`emit`), tensors (`interp`), facts and tables
//! ([`report`]), and pictures ([`draw`], [`inspect`]). [`compile`] is the front end in one call;
//! `examples/library.rs` shows the whole way from a text to counts, tensors and Rust.
//! Dependencies run one way, in that order.
//!
//! Without default features there is no `interp`, and burn is not built. With it, tensors are burn's, so a program needs burn in
//! the version of this crate's Cargo.toml.
//!
//! Terms: a *spec* is the author's file; a *slot* is a place in it that takes one *part* (a norm, a
//! positional scheme, ...); a *block* is one layer of a stack; a *module* is a function of the graph; an
//! *op* is primitive; *head* alone is the output head, while attention's are `heads` and `head_dim`.
//! CONTRIBUTING.md has a longer glossary.

// Where graphs and parts are matched on, an arm that takes all others would hide what a new one needs. What
// reads an author's text neither indexes nor calculates with numbers that may overflow: no text makes it
// panic.

pub mod cli;
pub mod compile;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::match_bool)]
pub mod diag;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod disk;
#[warn(clippy::wildcard_enum_match_arm)]
pub mod draw;
#[warn(clippy::wildcard_enum_match_arm)]
pub mod emit;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::match_bool)]
pub mod field;
pub mod followed;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod hub;
#[warn(clippy::wildcard_enum_match_arm)]
pub mod inspect;
#[cfg(feature = "interp")]
pub mod interp;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod ir;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod kind;
pub mod learn;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod lower;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod memory;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::match_bool)]
pub mod names;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod parts;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod read;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod report;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::match_bool)]
pub mod source;
#[warn(clippy::wildcard_enum_match_arm, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod spec;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::match_bool)]
pub mod syntax;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod tensor_file;
#[warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod write;
