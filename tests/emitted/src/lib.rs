//! Emitted Rust against the interpreter, bit for bit: the build script emits, `tests/equal.rs` compares.
