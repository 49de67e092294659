//! Compares emitted Rust with the interpreter, bit for bit: the build script emits, `tests/equal.rs`
//! compares.
