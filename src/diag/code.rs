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
        right: "trafo: 1\nname: gpt\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
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
