//! Every kind of error trafoc reports, with the explanation that `trafoc explain` prints.
//!
//! Each row is one code: its name, a paragraph, a wrong and a right example. The tests run every example:
//! the wrong one must report this code first, and the right one must pass.

use std::fmt;

/// The documentation of one code.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The stable name, as `trafoc explain` takes it.
    pub slug: &'static str,
    /// Why this is an error, and how to think about it.
    pub why: &'static str,
    /// A spec with the error, which reports this code first.
    pub wrong: &'static str,
    /// The same spec without the error.
    pub right: &'static str,
}

// One table, so that no code can lack its name, its explanation or an example.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $slug:literal { why: $why:literal, wrong: $wrong:expr, right: $right:expr })*) => {
        /// The kinds of errors; each has a stable name.
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
        why: "The text cannot be parsed: a bracket is not closed, an indent is wrong, or a word is where \
            the language does not allow one.",
        wrong: "trafo: 1\nname: [gpt\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Bytes that are not UTF-8 text.
    Encoding = "encoding" {
        why: "A spec is UTF-8 text. A file in another encoding would be read as different text from what its \
            author sees. In the example, `\\xe9` represents one byte, the é of Latin-1.",
        wrong: "trafo: 1\nname: caf\\xe9\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Characters that make a text look different from what it says.
    HiddenCharacter = "hidden-character" {
        why: "Control characters and characters that change the direction of writing make a text look \
            different from what it says, and some of them control the terminal that shows it. A spec does \
            not need them.",
        wrong: "trafo: 1\nname: \"ti\u{202e}yn\"\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Maps, lists or brackets that are nested too deeply.
    TooDeep = "too-deep" {
        why: "Maps, lists and parentheses can be nested 64 deep, so that no file can exhaust the memory \
            of the program that reads it.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A text that is too large.
    TooLarge = "too-large" {
        why: "A spec has at most 1 MiB of text, 20,000 keys and values (50,000 once its aliases are expanded) and \
            1,000 aliases, the `config.json` of a model 4 MiB and 100,000 keys and values, an expression at most 1,000 \
            words, a head at most 256 hidden layers, the different blocks of a stack call parts in at most \
            4,096 places, and the changes of a sweep times the values and calls of parts of its spec are at \
            most 200,000, so that reading a file never takes long.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: &a [1,1,1,1,1,1,1,1,1,1], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d], f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A YAML tag that trafoc does not know.
    UnknownTag = "unknown-tag" {
        why: "A tag such as `!!python/object` asks the reader to build something or to read another file. \
            trafoc does neither: the only tag it knows is `!delete`, which removes a key from the spec \
            that is being extended.",
        wrong: "trafo: 1\nname: !!python/object tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key that is given twice in one map.
    DuplicateKey = "duplicate-key" {
        why: "A map holds each key once. If a key had two values, one of them would be silently ignored.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nvocab: 64\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key that is not a word.
    BadKey = "bad-key" {
        why: "Keys are words or texts. A list, a map or an empty value cannot be a key. A block's name cannot be a \
            number: numbers are layers, which `ranges` changes.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n[a, b]: 1\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// An alias without a value, or inside the value it refers to.
    BadAlias = "bad-alias" {
        why: "`*name` refers to a value before it that is marked `&name`. Here there is no such value, or \
            the alias is inside it.",
        wrong: "trafo: 1\nname: tiny\nvocab: *size\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: &size 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// More than one YAML document in a file.
    SeveralDocuments = "several-documents" {
        why: "A file holds one spec. A second document after `---` would be ignored.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n---\nname: other\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A recipe where a spec belongs, or a spec where a recipe does.
    WrongDocument = "wrong-document" {
        why: "A spec says what a model is, a recipe how one is trained. They are separate documents, so that \
            one spec can be trained in many ways: `trafoc train SPEC --recipe FILE`.",
        wrong: "data: {format: lines, train: names.txt}\ntokens: {characters: {boundary: \".\"}}\nsteps: 100\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A number that cannot be parsed.
    Expression = "expression" {
        why: "A number may be given as an expression of decimal numbers, names, + - * / ^, parentheses \
            and the functions sqrt, floor, ceil, round, min, max, log, log2, exp and multiple_of.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * (4\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * (4)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A name that is not defined.
    UnknownName = "unknown-name" {
        why: "A name in an expression is a size of the spec or a value under `let`. This one is neither.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * widht\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {width: 4}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2 * width\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {width: 4}\n"
    }
    /// A number that is too large to be exact.
    ExpressionOverflow = "expression-overflow" {
        why: "Numbers are exact ratios of integers below 2^127. A result beyond that is not a plausible \
            size, and rounding it would hide a mistake.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2^100 * 2^100\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 2^3\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A division by zero.
    DivisionByZero = "division-by-zero" {
        why: "The divisor is zero, so the quotient has no value.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8 / (2 - 2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8 / (3 - 2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A function applied to a number for which it is not defined.
    NotANumber = "not-a-number" {
        why: "The root of a negative number and the logarithm of zero have no value that a model could be \
            built with.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: sqrt(0 - 64)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: sqrt(64)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A block's equation that cannot be parsed.
    Equation = "equation" {
        why: "A block is the equation of its paper: values, parts applied to them, sums and products. The last value of `x` is what the block returns.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + attention(norm(x)}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + attention(norm(x))}\nhead: lm\n"
    }
    /// A `!delete` without a key to remove.
    NothingToDelete = "nothing-to-delete" {
        why: "`!delete` removes a key that the spec under `extends` gives. Without such a key it has no \
            effect.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nbias: !delete\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A `--set` that cannot be parsed or applied.
    BadSetting = "bad-setting" {
        why: "`--set path=value` sets the value at a path of keys such as `decoder.layers`; a number in \
            the path is the index of a list item, counted from 0.",
        wrong: "--set decoder.layers",
        right: "--set decoder.layers=2"
    }
    /// A key that the language does not have.
    UnknownKey = "unknown-key" {
        why: "Every key in a spec changes the model. Other programs silently ignore keys they do not \
            know; trafoc reports them, with the most similar key that exists.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {haeds: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key that must be given.
    MissingKey = "missing-key" {
        why: "Some sizes have no sensible default: the width, the number of heads, the vocabulary.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A value of the wrong kind.
    WrongKind = "wrong-kind" {
        why: "Each field holds one kind of value: a number, a word, a map, a list. Words like `yes` are \
            not booleans, and quoted numbers are texts.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: [1], attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A number outside of the allowed range.
    OutOfRange = "out-of-range" {
        why: "The number can be parsed, but no model can be built with it: a probability above 1, a stack \
            without layers, a size beyond 2^40.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 0, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A size that is not a whole number.
    NotWhole = "not-whole" {
        why: "Sizes are whole numbers. Expressions are exact, so a fraction is rounded only if the spec \
            says how.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 9/2\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: floor(17/2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A size that must divide another one, or be divided by it.
    NotDivisible = "not-divisible" {
        why: "Heads share a width, groups of heads share keys, patches fill an image: one number must \
            divide the other. Nothing is rounded, and every size that is computed by default can also be \
            given.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 3}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 3, head_dim: 4}}\nhead: lm\n"
    }
    /// A word that is not one of the choices.
    UnknownWord = "unknown-word" {
        why: "This field takes one of a few words, each with an exact meaning: `gelu` uses the error \
            function, `gelu_tanh` its approximation.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {activation: gelo}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {activation: gelu}}\nhead: lm\n"
    }
    /// A part that the catalogue does not have.
    UnknownPart = "unknown-part" {
        why: "A slot holds one part, given by its name. `trafoc explain position` lists the parts of the \
            slot `position`, and `trafoc explain rotary` the fields of one of them.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: layernorm\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: layer_norm\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// More than one part in a slot.
    SeveralParts = "several-parts" {
        why: "A slot holds one part. Fields that exclude each other belong to different parts, so they cannot be given together.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: {layer_norm: {}, rms_norm: {}}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: {rms_norm: {}}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Two keys that exclude each other.
    KeysExclude = "keys-exclude" {
        why: "The two keys set the same thing, or one of them makes the other ineffective. trafoc does \
            not choose silently between them.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {expansion: 2, hidden: 24}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {hidden: 24}}\nhead: lm\n"
    }
    /// A key without effect.
    UnusedKey = "unused-key" {
        why: "Every key must have an effect. This one is a valid key, but this spec describes the same \
            model without it: the block does not call the part, or the input is an image.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x))\", ffn: {expansion: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {expansion: 2}}\nhead: lm\n"
    }
    /// A rule that matches no parameter.
    UnusedRule = "unused-rule" {
        why: "`init.rules` gives the initial values by parameter path. A pattern that matches no path has \
            no effect; usually it is misspelt.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: {rules: {\"*.qurey.weight\": zeros}}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: {rules: {\"*.query.weight\": zeros}}\n"
    }
    /// A value of an equation that is never used.
    UnusedValue = "unused-value" {
        why: "Each line of a block's equation gives a name a value. If no later line uses it and it is \
            not the result, the line has no effect.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"h = norm(x); x = x + attention(x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"h = norm(x); x = x + attention(h) + ffn(h)\"}\nhead: lm\n"
    }
    /// A wiring that the prelude does not have.
    UnknownWiring = "unknown-wiring" {
        why: "`block` is an equation or the name of one in the prelude: `pre_norm`, `post_norm`, `parallel` and others.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: prenorm}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: pre_norm}\nhead: lm\n"
    }
    /// A call of an unknown part.
    UnknownCall = "unknown-call" {
        why: "An equation calls parts: `norm`, `attention`, `cross`, `ffn` and `gain`, each with a name in brackets or a number if there are several, \
            and by their names parts of the library and your own.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attn(norm(x)) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x)) + ffn(x)\"}\nhead: lm\n"
    }
    /// A part called with the wrong arguments.
    WrongArguments = "wrong-arguments" {
        why: "`cross` takes `x` and the memory, the encoder's output; `norm`, `attention`, `ffn` and `gain` take one tensor. A part \
            of your own takes the inputs that its first line names.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x), x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x)) + ffn(x)\"}\nhead: lm\n"
    }
    /// Two call sites with the same name.
    DuplicateInstance = "duplicate-instance" {
        why: "Each call site is an instance with its own parameters, so each needs its own name. To use one result twice, give it a name: `h = norm(x)`.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm[a](x)) + ffn(norm[a](x))\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm[a](x)) + ffn(norm[b](x))\"}\nhead: lm\n"
    }
    /// An equation whose values do not fit together.
    EquationShape = "equation-shape" {
        why: "Tensors are added to tensors and multiplied by numbers; a block must say what becomes of its first parameter.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + 1 + attention(norm(x)) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x)) + ffn(x)\"}\nhead: lm\n"
    }
    /// A cross attention without an encoder, or an encoder without a cross attention.
    NoMemory = "no-memory" {
        why: "`cross(x, memory)` attends to the output of `encoder`. A model without an encoder has no \
            memory; and if the decoder never attended to its encoder, the source would be ignored.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"(x, memory): x = x + cross(x, memory) + attention(x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(x) + ffn(x)\"}\nhead: lm\n"
    }
    /// A head that does not fit the model.
    HeadMismatch = "head-mismatch" {
        why: "The head determines what the model is for. Predicting next tokens needs a decoder, \
            predicting masked tokens an encoder, translation both.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: mlm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A part where it has no effect.
    WrongPlace = "wrong-place" {
        why: "What is written exists, but does not belong here. Learned and sinusoidal positions are added to embeddings, so they belong to `embed`; \
            rotary, ALiBi and T5 positions are applied in attention and can differ from block to block. \
            Orthogonal initial values belong to matrices, whose rows or columns they are.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, position: learned}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: learned}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Rotary positions over an odd number of features.
    OddRotary = "odd-rotary" {
        why: "Rotary positions rotate pairs of features, so the rotated part of a head must be even and \
            not empty.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: rotary}\ndecoder: {layers: 1, attention: {heads: 2, head_dim: 3}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: rotary}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A two-sided window without a middle.
    EvenWindow = "even-window" {
        why: "A window counts positions, including the query's own. If a query sees both sides, it is in \
            the middle, so the number is odd.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2, mask: {window: 4}}}\nhead: mlm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2, mask: {window: 5}}}\nhead: mlm\n"
    }
    /// Masks that exclude each other.
    MaskConflict = "mask-conflict" {
        why: "Masks can be combined: a key is seen if every rule allows it. But there can be only one \
            direction, one window, one chunk and one prefix.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2, mask: [causal, bidirectional]}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2, mask: [causal, {window: 4}]}}\nhead: lm\n"
    }
    /// A list of the wrong length.
    LengthMismatch = "length-mismatch" {
        why: "The list must have as many entries as another key says, for example as many layers as `layers`.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 3, attention: {heads: 2}, blocks: {a: {}}, runs: [{count: 2, cycle: [a]}]}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {a: {}}, runs: [{count: 2, cycle: [a]}]}\nhead: lm\n"
    }
    /// An invalid range of layers.
    BadRange = "bad-range" {
        why: "A range such as `0..3` counts layers from 0 and excludes its end. It must be within the \
            stack, and ranges must not overlap.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, ranges: {\"1..3\": {ffn: {expansion: 2}}}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 3, attention: {heads: 2}, ranges: {\"1..3\": {ffn: {expansion: 2}}}}\nhead: lm\n"
    }
    /// A block that is not described.
    UnknownBlock = "unknown-block" {
        why: "`pattern` lists blocks that are described under `blocks`.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {local: {}}, pattern: [locla]}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {local: {}}, pattern: [local]}\nhead: lm\n"
    }
    /// Tensors of sizes that do not fit together.
    ShapeMismatch = "shape-mismatch" {
        why: "Tensors are added and multiplied feature by feature, so their sizes are equal or 1, and a part in \
            a block returns what it is given: `[B, T, d_model]`. The message shows both shapes, and where their \
            sizes come from.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nparts: {unit: 'linear[a](x, 16) * linear[b](x, d_model)'}\ndecoder: {layers: 1, attention: {heads: 2}, ffn: unit}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nparts: {unit: 'linear[a](x, d_model) * linear[b](x, d_model)'}\ndecoder: {layers: 1, attention: {heads: 2}, ffn: unit}\nhead: lm\n"
    }
    /// Parts that call each other in a cycle.
    PartCycle = "part-cycle" {
        why: "A part may call other parts, as long as none of them needs the part itself: a cycle would never end.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nparts: {unit: 'silu(other(x))', other: 'unit(x)'}\ndecoder: {layers: 1, attention: {heads: 2}, ffn: unit}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nparts: {unit: 'silu(other(x))', other: 'linear(x, d_model)'}\ndecoder: {layers: 1, attention: {heads: 2}, ffn: unit}\nhead: lm\n"
    }
    /// Names whose values depend on each other.
    LetCycle = "let-cycle" {
        why: "`let` gives names to numbers, in any order, as long as no value depends on itself.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: a\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: b, b: a}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: a\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: b, b: 8}\n"
    }
    /// An unknown version of the language.
    UnknownVersion = "unknown-version" {
        why: "`trafo: 1` says which version of the language a spec is written in, so that an old spec keeps its meaning.",
        wrong: "trafo: 2\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A spec to extend that cannot be read.
    ExtendsMissing = "extends-missing" {
        why: "`extends` names another spec: a file, seen from the folder of this one, such as `base.yaml` or \
            `../base.yaml`, or a shipped spec, such as `@gpt1`. It is read, and this spec is merged over it. \
            `uses` names files of parts in the same way.",
        wrong: "extends: nowhere.yaml\nname: tiny\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A spec that extends itself.
    ExtendsCycle = "extends-cycle" {
        why: "Specs can extend each other in a chain, which must end. A spec that extends itself, even \
            through others, has no meaning. The example is a file called `spec.yaml`.",
        wrong: "extends: spec.yaml\nname: tiny\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A recipe whose data does not fit the spec's head.
    DataMismatch = "data-mismatch" {
        why: "The head of the spec determines what the data must contain and which metrics can be computed: \
            `lm` needs text, `translate` sources with targets, `classify` classes. The examples are \
            recipes for a language model.",
        wrong: "recipe: 1\ndata: {format: squad, train: names.txt}\ntokens: characters\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: characters\nsteps: 100\n"
    }
    /// A recipe with more tokens than the spec's vocabulary.
    VocabMismatch = "vocab-mismatch" {
        why: "Every token needs a row in the spec's embedding table, which has `vocab` rows. The examples \
            are recipes for a spec with a vocabulary of 32.",
        wrong: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: bytes\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nsteps: 100\n"
    }
    /// Parameters that are frozen with fresh numbers.
    FrozenFresh = "frozen-fresh" {
        why: "`freeze` keeps parameters as they are when training starts. Those of a trained model are worth \
            keeping; a parameter that starts fresh would keep random numbers for ever. The examples are recipes \
            for a spec without trained weights.",
        wrong: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nfreeze: [\"embed.*\"]\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nsteps: 100\n"
    }
    /// A number of steps or positions that lies beyond the last one.
    BeyondEnd = "beyond-end" {
        why: "A number beyond the end has no effect: a warm-up longer than training, an interval that ends \
            after the last step, a patience of more evaluations than there are, a window as wide as the \
            context. The examples are recipes for a language model.",
        wrong: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nschedule: {cosine: {warmup: 500}}\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nschedule: {cosine: {warmup: 10}}\nsteps: 100\n"
    }
    /// A line of a data file that cannot be used.
    BadData = "bad-data" {
        why: "A file that does not hold what the recipe says is refused before training begins, and the \
            line is shown. The examples are files of `pairs`: a source, a tab and a target in every line.",
        wrong: "go .\tva !\ni lost .\n",
        right: "go .\tva !\ni lost .\tj'ai perdu .\n"
    }
}

impl Code {
    /// The stable name, as `trafoc explain` takes it.
    pub fn slug(self) -> &'static str {
        self.explanation().slug
    }

    /// The code with this name.
    pub fn from_slug(slug: &str) -> Option<Code> {
        Self::ALL.iter().copied().find(|c| c.slug() == slug)
    }

    /// Whether it is about a number that does not fit another one, which says nothing about the place of the number's
    /// key.
    pub fn is_misfit(self) -> bool {
        matches!(self, Code::NotDivisible | Code::OddRotary | Code::EvenWindow)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}
