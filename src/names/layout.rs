//! The keys of a row of `weights` whose value is a map. The reader, `trafoc explain`, the reference and the schema follow
//! from this table.

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The path of a module.
    Module,
    /// The path of a parameter.
    Path,
    /// The path of a parameter, or a list of several.
    Paths,
    /// A number of groups, or a formula.
    Groups,
    /// A formula that is true or false.
    Condition,
    /// `true` or `false`.
    Flag,
    /// A variable of a name, without its braces.
    Variable,
    /// A number of axes.
    Axes,
    /// The number that fills a parameter.
    Number,
}

impl Takes {
    /// What is taken, in words.
    pub fn words(self) -> &'static str {
        match self {
            Takes::Module => "the path of a module",
            Takes::Path => "the path of a parameter",
            Takes::Paths => "the path of a parameter, or a list of paths",
            Takes::Groups => "a whole number, or a formula that begins with `=`",
            Takes::Condition => "a formula that begins with `=`",
            Takes::Flag => "`true` or `false`",
            Takes::Variable => "a variable without its braces, such as `i`",
            Takes::Axes => "a whole number from 0 to 4",
            Takes::Number => "a number",
        }
    }
}

/// Which kind of row a key makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A row with further rows below it.
    Below,
    /// A row that says where a tensor's numbers go, and how they lie in it.
    Layout,
    /// A row of a second copy.
    Copy,
}

/// A key of a row.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// The kind of row.
    pub form: Form,
    /// The value.
    pub takes: Takes,
    /// What the key means.
    pub doc: &'static str,
    /// A row with it, in YAML.
    pub example: &'static str,
}

const fn key(name: &'static str, form: Form, takes: Takes, doc: &'static str, example: &'static str) -> Key {
    Key { name, form, takes, doc, example }
}

/// Every key of a row.
pub const KEYS: [Key; 12] = [
    key(
        "into",
        Form::Below,
        Takes::Module,
        "The names below begin with this row's name, and the paths below begin with this path.",
        r#"h.{i}: {into: "decoder.blocks.{i}", ln_1: norm1, mlp.c_fc: ffn.up}"#,
    ),
    key(
        "to",
        Form::Layout,
        Takes::Paths,
        "The parameter that the tensor has, if other keys describe its layout. A list means the same as under `fuse`.",
        r#"h.{i}.c_fc: {to: "decoder.blocks.{i}.ffn.up", transpose: true}"#,
    ),
    key(
        "fuse",
        Form::Layout,
        Takes::Paths,
        "The tensor has these parameters one after the other along its first axis.",
        r#"h.{i}: {into: "decoder.blocks.{i}.attention", qkv: {fuse: [query, key, value]}}"#,
    ),
    key(
        "groups",
        Form::Layout,
        Takes::Groups,
        "The parameters of `fuse` alternate in this many groups of rows, such as head by head, and do not follow one another \
         as a whole. A formula uses the values of the spec by their paths.",
        r#"h.{i}: {into: "decoder.blocks.{i}.attention", qkv: {fuse: [query, key, value], groups: = decoder.attention.heads}}"#,
    ),
    key(
        "transpose",
        Form::Layout,
        Takes::Flag,
        "The file has the two axes in the other order, `[in, out]`.",
        r#"h.{i}.c_proj: {to: "decoder.blocks.{i}.ffn.down", transpose: true}"#,
    ),
    key(
        "stack",
        Form::Layout,
        Takes::Variable,
        "The tensor has the parameters of all values of this variable of the path, along an additional first axis.",
        r#"norms: {to: "decoder.blocks.{i}.norm1.weight", stack: i}"#,
    ),
    key(
        "join",
        Form::Layout,
        Takes::Variable,
        "The parameter consists of the tensors of all values of this variable of the name, one after the other along the \
         first axis.",
        r#"h.{i}.heads.{h}.query: {to: "decoder.blocks.{i}.attention.query", join: h}"#,
    ),
    key(
        "lead",
        Form::Layout,
        Takes::Axes,
        "The tensor has this many axes of length 1 before those of the parameter.",
        "position_embeddings: {to: embed.positions.weight, lead: 1}",
    ),
    key(
        "flat",
        Form::Layout,
        Takes::Flag,
        "The tensor lacks the axes of length 1 after the first axis of the parameter. With `join`, each tensor is one row.",
        r#"h.{i}.q_norm.{h}.weight: {to: "decoder.blocks.{i}.attention.query_gain", join: h, flat: true}"#,
    ),
    key(
        "absent",
        Form::Layout,
        Takes::Number,
        "The number that fills the parameter if the file does not have the tensor.",
        "ln_f.bias: {to: decoder.final_norm.bias, absent: 0}",
    ),
    key(
        "when",
        Form::Layout,
        Takes::Condition,
        "The row counts only if this is true of the spec.",
        "lm_head: {to: head.output, when: = not head.tied}",
    ),
    key(
        "copy",
        Form::Copy,
        Takes::Path,
        "The tensor is a second copy of this parameter. It must have the same numbers, and may be missing.",
        "lm_head: {copy: embed.tokens}",
    ),
];

/// The keys of this kind of row.
pub fn keys(form: Form) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.form == form)
}
