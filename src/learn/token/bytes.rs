//! Every byte is a token: 0 to 255, then `<pad>`, `<bos>` and `<eos>`.

use serde::{Deserialize, Serialize};

use super::{Piece, SpecialTokens};

/// The special tokens, ids 256 to 258.
const SPECIAL: [&str; 3] = ["<pad>", "<bos>", "<eos>"];

/// The tokenizer of UTF-8 bytes, which has no settings and learns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {}

impl Bytes {
    /// The number of ids: 259.
    pub fn vocab(self) -> usize {
        256 + SPECIAL.len()
    }

    /// `<pad>` is 256, `<bos>` 257 and `<eos>` 258; every text can be encoded.
    pub fn special_tokens(self) -> SpecialTokens {
        SpecialTokens { pad: 256, start: Some(257), end: Some(258), unknown: None, mask: None, twice: false }
    }

    /// The tokens of a text, one per byte.
    pub fn pieces(self, text: &str) -> Vec<Piece> {
        text.bytes().enumerate().map(|(at, b)| Piece { id: u32::from(b), bytes: at..at + 1 }).collect()
    }

    /// The text of ids, without special tokens; invalid UTF-8 is replaced.
    pub fn decode(self, ids: &[u32]) -> String {
        // Special tokens are above 255, so they are no bytes.
        let bytes: Vec<u8> = ids.iter().filter_map(|id| u8::try_from(*id).ok()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How a token is displayed: as its character if it is ASCII, otherwise as its number.
    pub fn token(self, id: u32) -> Option<String> {
        match u8::try_from(id) {
            Ok(byte) if byte.is_ascii_graphic() || byte == b' ' => Some(char::from(byte).to_string()),
            Ok(byte) => Some(format!("<0x{byte:02X}>")),
            Err(_) => SPECIAL.get(id as usize - 256).map(|m| (*m).to_owned()),
        }
    }
}
