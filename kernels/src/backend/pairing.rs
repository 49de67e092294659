//! Which features rotary positions turn together.

/// Which two features are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Feature `i` and `i + pairs`.
    Half,
    /// Feature `2i` and `2i + 1`.
    Interleaved,
}
