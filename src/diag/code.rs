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
        why: "A spec is UTF-8 text. A file in another encoding would be read as other words than its author sees. In the example `\\xe9` stands for one byte, the é of Latin-1.",
        wrong: "trafo: 1\nname: caf\\xe9\n",
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
        why: "A spec has at most 1 MiB of text, 20,000 values (50,000 once its aliases are expanded) and 1,000 aliases, an expression at most 1,000 words, so that reading a file never takes long.",
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
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + attention(norm(x)}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: x + attention(norm(x))}\nhead: lm\n"
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
    /// A key the language does not have.
    UnknownKey = "unknown-key" {
        why: "Every key a spec holds changes the model. A key trafoc does not know would be passed over in silence elsewhere; here it is a fault, with the nearest key that exists.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {haeds: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A key that must be given.
    MissingKey = "missing-key" {
        why: "Some sizes have no sensible default: the width, the number of heads, the vocabulary.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Something of another kind stands here.
    WrongKind = "wrong-kind" {
        why: "Each field holds one kind of value: a number, a word, a map, a list. Words like `yes` are no booleans, and quoted numbers are texts.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: [1], attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A number outside of what makes sense.
    OutOfRange = "out-of-range" {
        why: "The number can be read, and no model can be built with it: a probability above 1, no layers at all, a size beyond 2^40.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 0, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A size that is not a whole number.
    NotWhole = "not-whole" {
        why: "Sizes are whole numbers. Expressions are exact, so a fraction is never rounded unless the spec says how.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 9/2\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: floor(17/2)\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A size that another one should divide.
    NotDivisible = "not-divisible" {
        why: "Heads share a width, groups of heads share keys, patches fill an image: one number must divide the other. Nothing is rounded, and every size that is only computed by default can be given by itself.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 3}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 3, head_dim: 4}}\nhead: lm\n"
    }
    /// A word that is none of the choices.
    UnknownWord = "unknown-word" {
        why: "This field is one of a few words, each with an exact meaning: `gelu` uses the error function, `gelu_tanh` its approximation.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {activation: gelo}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {activation: gelu}}\nhead: lm\n"
    }
    /// A part the catalogue does not have.
    UnknownPart = "unknown-part" {
        why: "A slot holds one part by its name. `trafoc explain position` and the like list the parts with their fields.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: layernorm\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: layer_norm\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// More than one part in a slot.
    SeveralParts = "several-parts" {
        why: "A slot holds one part. Fields that exclude each other belong to different parts, so they cannot be given together.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: {layer_norm: {}, rms_norm: {}}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nnorm: {rms_norm: {}}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Two keys that cannot both hold.
    KeysExclude = "keys-exclude" {
        why: "Both say the same thing, or one takes away the other's effect. Nothing decides silently which of them holds.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {expansion: 2, hidden: 24}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {hidden: 24}}\nhead: lm\n"
    }
    /// A key without effect.
    UnusedKey = "unused-key" {
        why: "No key is inert. This one is known, and in this spec nothing would change without it: the block does not call the part, or the input is an image.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x))\", ffn: {expansion: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, ffn: {expansion: 2}}\nhead: lm\n"
    }
    /// A rule that matches no parameter.
    UnusedRule = "unused-rule" {
        why: "`init.rules` gives starts by parameter path. A pattern that matches no path does nothing, most often because of a slip in it.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: {rules: {\"*.qurey.weight\": zeros}}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\ninit: {rules: {\"*.query.weight\": zeros}}\n"
    }
    /// A value of an equation that nothing reads.
    UnusedValue = "unused-value" {
        why: "Each line of a block's equation gives a name a value. When no later line reads it and it is not the result, the line has no effect.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"h = norm(x); x = x + attention(x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"h = norm(x); x = x + attention(h) + ffn(h)\"}\nhead: lm\n"
    }
    /// A wiring the prelude does not have.
    UnknownWiring = "unknown-wiring" {
        why: "`block` is an equation or the name of one in the prelude: `pre_norm`, `post_norm`, `parallel` and others.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: prenorm}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: pre_norm}\nhead: lm\n"
    }
    /// A call of nothing.
    UnknownCall = "unknown-call" {
        why: "An equation calls parts: `norm`, `attention`, `cross`, `ffn` and `gain`, each with a name in brackets or a number if there are several.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attn(norm(x)) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x)) + ffn(x)\"}\nhead: lm\n"
    }
    /// A part called with other arguments.
    WrongArguments = "wrong-arguments" {
        why: "`cross` takes `x` and the memory, every other part takes one tensor.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x), x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(norm(x)) + ffn(x)\"}\nhead: lm\n"
    }
    /// Two call sites of one name.
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
    /// Attention to an encoder that is not there, or the other way round.
    NoMemory = "no-memory" {
        why: "`cross(x, memory)` attends to the output of `encoder`. A model without one has no memory; a decoder beside an encoder that never attends to it would ignore its input.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"(x, memory): x = x + cross(x, memory) + attention(x) + ffn(x)\"}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, block: \"x = x + attention(x) + ffn(x)\"}\nhead: lm\n"
    }
    /// A head that does not fit the model.
    HeadMismatch = "head-mismatch" {
        why: "The head says what the model is for. Next tokens need a decoder, hidden tokens an encoder, translation both.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: mlm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A part where it cannot act.
    WrongPlace = "wrong-place" {
        why: "Learned and sinusoidal positions are added to embeddings and so belong to `embed`; rotary, ALiBi and T5 positions act in attention and can differ from block to block.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}, position: learned}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: learned}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// Rotary positions over an odd number of features.
    OddRotary = "odd-rotary" {
        why: "Rotary positions turn pairs of features, so the rotated part of a head must be even and not empty.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: rotary}\ndecoder: {layers: 1, attention: {heads: 2, head_dim: 3}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nembed: {position: rotary}\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A two-sided window without a middle.
    EvenWindow = "even-window" {
        why: "A window counts positions, the query's own among them. Where a query sees both sides it stands in the middle, so the number is odd.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2, mask: {window: 4}}}\nhead: mlm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\nencoder: {layers: 1, attention: {heads: 2, mask: {window: 5}}}\nhead: mlm\n"
    }
    /// Masks that exclude each other.
    MaskConflict = "mask-conflict" {
        why: "Masks compose: a key is seen if every rule allows it. But there is one direction, and one window, one chunk, one prefix.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2, mask: [causal, bidirectional]}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2, mask: [causal, {window: 4}]}}\nhead: lm\n"
    }
    /// A list of another length than it must have.
    LengthMismatch = "length-mismatch" {
        why: "The list has an entry for each of something whose number is given elsewhere.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 3, attention: {heads: 2}, blocks: {a: {}}, runs: [{count: 2, cycle: [a]}]}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {a: {}}, runs: [{count: 2, cycle: [a]}]}\nhead: lm\n"
    }
    /// A range of layers that is none.
    BadRange = "bad-range" {
        why: "A range such as `0..3` counts layers from 0 and does not include its end; it lies within the stack, and ranges do not overlap.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, ranges: {\"1..3\": {ffn: {expansion: 2}}}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 3, attention: {heads: 2}, ranges: {\"1..3\": {ffn: {expansion: 2}}}}\nhead: lm\n"
    }
    /// A block no one has described.
    UnknownBlock = "unknown-block" {
        why: "`pattern` names blocks that stand under `blocks`.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {local: {}}, pattern: [locla]}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 2, attention: {heads: 2}, blocks: {local: {}}, pattern: [local]}\nhead: lm\n"
    }
    /// Names that need each other's value.
    LetCycle = "let-cycle" {
        why: "`let` gives names to numbers, in any order, as long as no name needs itself.",
        wrong: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: a\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: b, b: a}\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: a\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\nlet: {a: b, b: 8}\n"
    }
    /// Another version of the language.
    UnknownVersion = "unknown-version" {
        why: "`trafo: 1` says which version of the language a spec is written in, so that an old spec keeps its meaning.",
        wrong: "trafo: 2\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A spec that cannot be extended.
    ExtendsMissing = "extends-missing" {
        why: "`extends` names a file beside this one, or below its folder. It is read and this spec is laid over it.",
        wrong: "extends: nowhere.yaml\nname: tiny\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A spec that extends itself.
    ExtendsCycle = "extends-cycle" {
        why: "Specs extend one another in a chain that must end. A spec that comes back to itself has no meaning. The example is a file called `spec.yaml`.",
        wrong: "extends: spec.yaml\nname: tiny\n",
        right: "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n"
    }
    /// A recipe whose data is not what the spec's head needs.
    DataMismatch = "data-mismatch" {
        why: "The head of the spec says what the data must hold and what can be measured: `lm` needs text, `translate` sources with targets, `classify` classes. The examples are recipes for a language model.",
        wrong: "recipe: 1\ndata: {format: squad, train: names.txt}\ntokens: characters\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: characters\nsteps: 100\n"
    }
    /// A recipe with more tokens than the spec's vocabulary.
    VocabMismatch = "vocab-mismatch" {
        why: "Every token needs a row in the spec's table, which has `vocab` of them. The examples are recipes for a spec with a vocabulary of 32.",
        wrong: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: bytes\nsteps: 100\n",
        right: "recipe: 1\ndata: {format: lines, train: names.txt}\ntokens: {bpe: {vocab: 32}}\nsteps: 100\n"
    }
    /// A line of a data file that cannot be used.
    BadData = "bad-data" {
        why: "A file that does not hold what the recipe says is refused before training begins, with the line. The examples are files of `pairs`: a source, a tab and a target in every line.",
        wrong: "go .\tva !\ni lost .\n",
        right: "go .\tva !\ni lost .\tj'ai perdu .\n"
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
