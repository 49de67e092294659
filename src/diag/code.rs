//! Every kind of fault trafoc reports, with the explanation `trafoc explain` prints.
//!
//! A row is one code: its slug, a paragraph, a wrong and a right example. The tests run every
//! example: the wrong one must report this code first, the right one must pass.

use std::fmt;

/// What is known about one code.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The stable name, as `trafoc explain` takes it.
    pub slug: &'static str,
    /// Why this is a fault and how to think about it.
    pub why: &'static str,
    /// A spec that shows the fault.
    pub wrong: &'static str,
    /// The same spec, mended.
    pub right: &'static str,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $slug:literal { why: $why:literal, wrong: $wrong:expr, right: $right:expr })*) => {
        /// The stable name of a kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[doc = $doc])* $variant),* }

        impl Code {
            /// Every code, in the order of this file.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The explanation of this code.
            pub fn explanation(self) -> Explanation {
                match self {
                    $(Code::$variant => Explanation { slug: $slug, why: $why, wrong: $wrong, right: $right }),*
                }
            }
        }
    };
}

codes! {
    /// Text that is not YAML or not the DSL.
    Syntax = "syntax" {
        why: "The text cannot be read: a bracket is not closed, an indent is wrong, or a word stands where the language has none.",
        wrong: "trafo: 1\nname: [gpt\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Bytes that are no UTF-8 text.
    Encoding = "encoding" {
        why: "A spec is UTF-8 text. A file in another encoding would be read as other words than its author sees. The example holds the two bytes 0xFF 0xFE with which a UTF-16 file begins.",
        wrong: "\u{feff}trafo: 1\n\u{feff}name: tiny\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Characters that make a text say something else than it shows.
    HiddenCharacter = "hidden-character" {
        why: "Control characters and marks that turn the direction of writing make a text look other than it is read, and some command the terminal it is shown in. They have no use in a spec.",
        wrong: "trafo: 1\nname: \"ti\u{202e}yn\"\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Maps, lists or brackets nested beyond every use.
    TooDeep = "too-deep" {
        why: "Maps, lists and parentheses nest at most 64 deep, so that no file can exhaust the memory of the program that reads it.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A text beyond every use.
    TooLarge = "too-large" {
        why: "A spec has at most 4 MiB of text, 100,000 values (200,000 once its aliases are expanded) and 1,000 aliases, an expression at most 1,000 words, so that reading a file never takes long.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: &a [1,1,1,1,1,1,1,1,1,1], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d], f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A YAML tag trafoc does not know.
    UnknownTag = "unknown-tag" {
        why: "A tag such as `!!python/object` asks the reader to build something or to read another file. trafoc does neither: the one tag it knows is `!delete`, which takes a key away from the spec that is being extended.",
        wrong: "trafo: 1\nname: !!python/object tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key given twice in one map.
    DuplicateKey = "duplicate-key" {
        why: "A map holds each key once. Two values for one key would mean that one of them is silently ignored.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nvocab: 64\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key that is no word.
    BadKey = "bad-key" {
        why: "Keys are words or texts. A list, a map or nothing at all cannot be a key.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n[a, b]: 1\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// An alias of an anchor that is not there, or that holds it.
    BadAlias = "bad-alias" {
        why: "`*name` stands for the value marked `&name` before it. An alias without such a value, or inside the value it names, stands for nothing.",
        wrong: "trafo: 1\nname: tiny\nvocab: *size\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: &size 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// More than one YAML document in a file.
    SeveralDocuments = "several-documents" {
        why: "A file holds one spec. A second document behind `---` would be ignored.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n---\nname: other\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A number that cannot be read.
    Expression = "expression" {
        why: "Where a number belongs an expression may stand: decimal numbers, names, + - * / ^, parentheses and the functions sqrt, floor, ceil, round, min, max, log, log2, exp and multiple_of.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * (4\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * (4)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A name nothing has.
    UnknownName = "unknown-name" {
        why: "A name in an expression stands for a size of the spec or a value under `let`. This one stands for nothing.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * widht\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {width: 4}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * width\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {width: 4}\n"
    }
    /// A number too large to be exact.
    ExpressionOverflow = "expression-overflow" {
        why: "Numbers are exact ratios of integers below 2^127. A result beyond that is no size of anything, and rounding it would hide a slip.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2^100 * 2^100\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2^3\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A division by zero.
    DivisionByZero = "division-by-zero" {
        why: "What stands under the line is zero, so the quotient has no value.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8 / (2 - 2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8 / (3 - 2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A function outside the numbers it is defined for.
    NotANumber = "not-a-number" {
        why: "The root of a negative number and the logarithm of zero are no numbers a model could be built with.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: sqrt(0 - 64)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: sqrt(64)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A block's equation that cannot be read.
    Equation = "equation" {
        why: "A block is the equation of its paper: values, parts applied to them, sums and products. The last value of `x` is what the block returns.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + ffn(norm(x)}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + ffn(norm(x))}\nhead: lm\n"
    }
    /// A `!delete` with nothing to delete.
    NothingToDelete = "nothing-to-delete" {
        why: "`!delete` takes away a key that the spec under `extends` gives. Without such a key it does nothing.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nbias: !delete\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A `--set` that cannot be read or put anywhere.
    BadSetting = "bad-setting" {
        why: "`--set path=value` puts a value at a path of keys such as `decoder.layers`; a number in the path is an item of a list, counted from 0.",
        wrong: "--set decoder.layers",
        right: "--set decoder.layers=2"
    }
}

impl Code {
    /// The stable name, as `trafoc explain` takes it.
    pub fn slug(self) -> &'static str {
        self.explanation().slug
    }

    /// The code of that name.
    pub fn from_slug(slug: &str) -> Option<Code> {
        Self::ALL.iter().copied().find(|c| c.slug() == slug)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}
