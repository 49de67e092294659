//! The images that a model takes.

use serde::{Deserialize, Serialize};

use crate::spec::ModelSpec;

/// The size and the channels of a model's images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Height and width in pixels.
    pub side: usize,
}

impl Form {
    /// The form that a spec requires, if its first stack reads an image.
    pub fn of(spec: &ModelSpec) -> Option<Self> {
        // Of an encoder-decoder the encoder reads the input; the decoder reads its own output.
        let stack = spec.encoder.as_ref().or(spec.decoder.as_ref())?;
        let patches = stack.embed.patches.as_ref()?;
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Some(Self { channels: size(*patches.channels), side: size(*patches.image) })
    }

    /// The number of values of one image.
    pub fn size(self) -> usize {
        self.channels.saturating_mul(self.side).saturating_mul(self.side)
    }

    /// The message that an image has another size, the width first, as programs that show images say it.
    pub fn mismatch(self, height: usize, width: usize) -> String {
        format!("the image has the size {width}x{height}, but the model takes {}x{}", self.side, self.side)
    }
}
