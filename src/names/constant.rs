//! Buffers that files have next to a parameter and that always hold the same number.
//!
//! ```text
//! constants:
//!   layers.{i}.mlp.act_fn.beta: {value: 0.5, with: "decoder.blocks.{i}.ffn.alpha"}
//! ```

use super::pattern::Pattern;

/// A buffer of one element whose number is fixed: exports write it, and imports compare it.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The buffer's name in the file.
    pub tensor: Pattern,
    /// The path of the parameter with which a file has the buffer.
    pub with: Pattern,
    /// The number that it holds.
    pub value: f32,
}

/// How far a number of a file may be from the one it stands for, as a factor: a file may have been rounded to
/// eight significant bits.
const ROUNDED: f32 = 1.0 / 256.0;

impl Constant {
    /// Whether this is the number, up to the rounding of the file.
    pub fn is(value: f32, found: f32) -> bool {
        (found - value).abs() <= value.abs() * ROUNDED
    }

    /// The buffer's name in a file, if it has one next to the parameter with this path.
    pub fn beside(&self, path: &str) -> Option<String> {
        let (bindings, _) = self.with.begins(path).filter(|(_, rest)| rest.is_empty())?;
        Some(self.tensor.fill(&bindings))
    }

    /// The path of the parameter next to which a file has the buffer with this name.
    pub fn neighbour(&self, tensor: &str) -> Option<String> {
        let (bindings, _) = self.tensor.begins(tensor).filter(|(_, rest)| rest.is_empty())?;
        Some(self.with.fill(&bindings))
    }
}
