//! How text is divided into tokens.

use super::value::Location;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record, slot};
use crate::field::{Context, Size};
use crate::source::Span;

choice! {
    /// The order of an alphabet, which gives its characters their ids.
    pub enum Order {
        /// The order of Unicode, as `sorted(set(text))` in Python
        "unicode" => Unicode,
        /// In order of their first appearance in the data
        "appearance" => Appearance,
        /// By falling frequency; equally frequent characters in the order of Unicode
        "frequency" => Frequency,
    }
}

record! {
    /// Every character is a token. The alphabet is that of the data.
    pub struct Characters as "characters" {
        /// One character that marks start and end and is used as padding; it is the only token that is not
        /// part of the text (id 0). Without it there are `<unk>`, `<pad>`, `<bos>` and `<eos>`.
        boundary: Option<String> = absent;
        /// The order in which the characters get their ids, after the special tokens.
        order: Order = value(Order::Unicode);
        /// Whether text is first converted to lower case.
        lower: bool = value(false);
    } check Self::check;
}

impl Characters {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let Some(mark) = self.boundary.as_ref().filter(|b| b.chars().count() != 1) else { return Some(()) };
        let message = format!("`{mark}` is not a single character");
        let diagnostic = Diagnostic::error(Code::WrongKind, self.places.of("boundary"), message);
        cx.report(diagnostic.help("write `boundary: \".\"`"));
        None
    }
}

record! {
    /// Words separated by spaces, as in "Dive into Deep Learning": no-break spaces become spaces, and `,`,
    /// `.`, `!` and `?` are words of their own. The first ids are `<unk>`, `<pad>`, `<bos>`, `<eos>`.
    pub struct Words as "words" {
        /// Whether text is first converted to lower case.
        lower: bool = value(true);
        /// A word that occurs less often in the training data becomes `<unk>`.
        min_frequency: Size = value(Size(1));
        /// The largest vocabulary, including special tokens; the most frequent words are kept. By default,
        /// all words are.
        vocab: Option<Size> = absent;
    }
}
record! {
    /// Every byte of the UTF-8 text is a token; `<pad>`, `<bos>` and `<eos>` are 256, 257 and 258.
    pub struct Bytes as "bytes" {}
}
record! {
    /// Byte pair encoding, learnt from the training data (Sennrich et al. 2016), over bytes as in GPT-2, so
    /// that any text can be encoded.
    pub struct Bpe as "bpe" {
        /// The size of the vocabulary, including special tokens; by default the spec's `vocab`.
        vocab: Option<Size> = absent;
        /// A pair that occurs less often is not merged.
        min_frequency: Size = value(Size(2));
        /// Whether text is first converted to lower case.
        lower: bool = value(false);
    }
}
record! {
    /// Word pieces as in BERT, learnt from the training data (Devlin et al. 2018).
    pub struct WordPiece as "wordpiece" {
        /// The size of the vocabulary, including special tokens; by default the spec's `vocab`.
        vocab: Option<Size> = absent;
        /// A pair that occurs less often is not merged.
        min_frequency: Size = value(Size(2));
        /// Whether text is first converted to lower case and stripped of accents.
        lower: bool = value(true);
    }
}
record! {
    /// A tokenizer from a file: `tokenizer.json`, a `.model` of SentencePiece, or the `encoder.json` and
    /// `vocab.bpe` of GPT-2.
    pub struct FromFile as "file" {
        /// The path of the file.
        path: Location = required;
        /// The path of the merges that belong to an `encoder.json`.
        merges: Option<Location> = absent;
    }
}

slot! {
    /// How text is divided into tokens.
    pub enum Tokens as "tokens" {
        /// Every character is a token.
        "characters" => Characters(Characters),
        /// Words separated by spaces.
        "words" => Words(Words),
        /// Every byte is a token.
        "bytes" => Bytes(Bytes),
        /// Byte pair encoding, learnt from the training data.
        "bpe" => Bpe(Bpe),
        /// Word pieces, learnt from the training data.
        "wordpiece" => WordPiece(WordPiece),
        /// A tokenizer from a file.
        "file" => File(FromFile),
    }
}

impl Tokens {
    /// The vocabulary size the recipe asks for, and the place where it does.
    pub fn asked(&self) -> Option<(u64, Span)> {
        match self {
            Self::Bpe(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            Self::WordPiece(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            Self::Words(t) => t.vocab.map(|v| (*v, t.places.of("vocab"))),
            // Alphabets have as many tokens as they have, bytes always the same number, and files say it
            // themselves.
            Self::Characters(_) | Self::Bytes(_) | Self::File(_) => None,
        }
    }
}
