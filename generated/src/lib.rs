//! What `trafoc build` emits for the shipped specs.
