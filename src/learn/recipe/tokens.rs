//! How text becomes tokens.

use super::value::Location;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{record, slot};
use crate::field::{Context, Size};
use crate::source::Span;

record! {
    /// Every character is a token. The alphabet is that of the training data, in the order of Unicode.
    pub struct Characters as "characters" {
        /// One character that marks start and end and fills up batches, the only token that is not in
        /// the text (id 0). Without it there are `<unk>`, `<pad>`, `<bos>` and `<eos>`.
        boundary: Option<String> = absent;
        /// Whether text becomes lower case first.
        lower: bool = value(false);
    } check Self::check
}

impl Characters {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let Some(mark) = self.boundary.as_ref().filter(|b| b.chars().count() != 1) else { return Some(()) };
        let message = format!("`{mark}` is not one character");
        let diagnostic = Diagnostic::error(Code::WrongKind, self.places.of("boundary"), message);
        cx.report(diagnostic.help("write `boundary: \".\"`"));
        None
    }
}

record! {
    /// Words between spaces, as "Dive into Deep Learning" makes them: no-break spaces become spaces, and
    /// `,`, `.`, `!` and `?` words of their own. Ids begin with `<unk>`, `<pad>`, `<bos>`, `<eos>`.
    pub struct Words as "words" {
        /// Whether text becomes lower case first.
        lower: bool = value(true);
        /// A word seen less often in the training data is `<unk>`.
        min_frequency: Size = value(Size(1));
        /// The most words that are known, marks among them, the frequent ones first; all where absent.
        vocab: Option<Size> = absent;
    }
}
record! {
    /// Every byte of the UTF-8 text is a token; `<pad>`, `<bos>` and `<eos>` are 256, 257 and 258.
    pub struct Bytes as "bytes" {}
}
record! {
    /// Byte pair encoding, learnt from the training data (Sennrich et al. 2016), over bytes as GPT-2 has
    /// it: every text can be said.
    pub struct Bpe as "bpe" {
        /// Tokens, marks among them; the spec's `vocab` where absent.
        vocab: Option<Size> = absent;
        /// A pair seen less often is not joined.
        min_frequency: Size = value(Size(2));
        /// Whether text becomes lower case first.
        lower: bool = value(false);
    }
}
record! {
    /// Pieces of words as BERT has them, learnt from the training data (Devlin et al. 2018).
    pub struct WordPiece as "wordpiece" {
        /// Tokens, marks among them; the spec's `vocab` where absent.
        vocab: Option<Size> = absent;
        /// A pair seen less often is not joined.
        min_frequency: Size = value(Size(2));
        /// Whether text becomes lower case, and letters lose their accents, first.
        lower: bool = value(true);
    }
}
record! {
    /// A tokenizer from a file: `tokenizer.json`, or the `encoder.json` and `vocab.bpe` of GPT-2.
    pub struct FromFile as "file" {
        /// The file.
        path: Location = required;
        /// The merges beside an `encoder.json`.
        merges: Option<Location> = absent;
    }
}

slot! {
    /// How text becomes tokens.
    pub enum Tokens as "tokens" {
        /// Characters.
        "characters" => Characters(Characters),
        /// Words between spaces.
        "words" => Words(Words),
        /// Bytes.
        "bytes" => Bytes(Bytes),
        /// Byte pairs, learnt from the data.
        "bpe" => Bpe(Bpe),
        /// Pieces of words, learnt from the data.
        "wordpiece" => WordPiece(WordPiece),
        /// A tokenizer from a file.
        "file" => File(FromFile),
    }
}

impl Tokens {
    /// How many tokens the recipe asks for, and where it says so.
    pub fn asked(&self) -> Option<(u64, Span)> {
        match self {
            Self::Bpe(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            Self::WordPiece(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            Self::Words(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            Self::Characters(_) | Self::Bytes(_) | Self::File(_) => None,
        }
    }
}
