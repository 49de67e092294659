//! Names: from the program's to Rust's, in one place.
//!
//! The author names the spec, its blocks, the instances in them and their variables; parts name the rest. A
//! name of the program becomes one of Rust here, and only this file knows which names Rust, burn and the
//! emitted file need for themselves. Variables and members are `[a-z_][a-z0-9_]*` in the graph already; the
//! name of a spec is any text.

use crate::emit::program::name::bounded;

/// Keywords of all editions, strict and reserved.
const KEYWORDS: &[&str] = &[
    "_", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Types and traits of Rust's prelude, of all editions: a struct of that name would hide them, from the text
/// of the file and from what `derive` makes.
const RUST_TYPES: &[&str] = &[
    "AsMut",
    "AsRef",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Path",
    "Result",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

/// Types of burn: those of its prelude, those that emitted files import, the type parameters of what its
/// `derive` makes, and those by whose names its loader tells how a tensor lies in a file.
const BURN_TYPES: &[&str] = &[
    "AttentionModuleOptions",
    "BatchNorm",
    "Bool",
    "Config",
    "Content",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DType",
    "DeformConv2d",
    "Device",
    "DeviceIndex",
    "DeviceKind",
    "Devices",
    "Distribution",
    "ElementConversion",
    "Float",
    "FloatCastAdapter",
    "GroupNorm",
    "IndexingUpdateOp",
    "Initializer",
    "InstanceNorm",
    "Int",
    "LayerNorm",
    "Linear",
    "Mapper",
    "Module",
    "ModuleAdapter",
    "ModuleDisplay",
    "ModuleDisplayDefault",
    "ModuleMapper",
    "ModuleSnapshot",
    "ModuleVisitor",
    "PRelu",
    "Param",
    "ParamId",
    "PyTorchToBurnAdapter",
    "RmsNorm",
    "SafetensorsStore",
    "Shape",
    "SliceArg",
    "Tensor",
    "TensorData",
    "ToElement",
    "Visitor",
];

/// Types of the crate of kernels.
const KERNEL_TYPES: &[&str] = &[
    "Append",
    "Appended",
    "Cache",
    "Heap",
    "EinsumPlan",
    "KvCache",
    "OffsetLayerNorm",
    "OffsetRmsNorm",
    "Packed",
    "Rows",
    "State",
];

/// Types that would have the name of one of their own constructors.
const CONSTRUCTORS: &[&str] = &["Load", "New"];

/// Fields that what burn's `derive` makes would take for its own variables.
const DERIVED_VARIABLES: &[&str] = &["device", "mapper"];

/// Names a crate or its file cannot have: crates that are always there or that emitted code uses, the module in burn's
/// prelude, files of the crate itself, folders of Cargo, names that Windows keeps for devices.
const FILES: &[&str] = &[
    "alloc",
    "aux",
    "bin",
    "build",
    "burn",
    "con",
    "core",
    "deps",
    "examples",
    "incremental",
    "lib",
    "main",
    "nn",
    "nul",
    "prn",
    "proc_macro",
    "std",
    "test",
    "trafoc_kernels",
];

/// Types of the language, which a crate's name would hide in paths.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f16", "f32", "f64", "f128", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8",
    "u16", "u32", "u64", "u128", "usize",
];

/// A variable: a keyword gets an underscore at its end, and a name without a letter begins with `value`.
pub fn variable(name: &str) -> String {
    // Rust cannot read a variable `_`, and `_1` says that it is not used.
    if name.chars().all(|c| c == '_' || c.is_ascii_digit()) {
        return format!("value{name}");
    }
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A field of a module: a keyword or what `derive` would take for its own gets an underscore, which the
/// emitted `load` knows about.
pub fn field(name: &str) -> String {
    if DERIVED_VARIABLES.contains(&name) { format!("{name}_") } else { variable(name) }
}

/// Whether a type of that name would hide one that the file, or what is derived in it, needs.
/// A single letter is a type's or a constant's parameter.
pub fn is_reserved_type(name: &str) -> bool {
    let lists = [KEYWORDS, RUST_TYPES, BURN_TYPES, KERNEL_TYPES, CONSTRUCTORS];
    name.len() < 2 || lists.iter().any(|list| list.contains(&name))
}

/// The variant of an enum for one of several types: `own` words tell it from the others, `whole` is the
/// type's name.
pub fn variant(own: &str, whole: &str) -> String {
    if own.is_empty() || KEYWORDS.contains(&own) { whole.to_owned() } else { own.to_owned() }
}

/// A constant: `kv_heads` → `KV_HEADS`.
pub fn constant(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// The name of a spec's file, module and crate: `qwen2.5-0.5b` → `qwen2_5_0_5b`. It can be written on every
/// common file system, and Cargo and Rust take it.
pub fn file(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    // Rust's own style has no name with two underscores in a row, or one at the end.
    while out.contains("__") {
        out = out.replace("__", "_");
    }
    out.truncate(out.trim_end_matches('_').len());
    // Windows takes `com1` to `com9` and `lpt1` to `lpt9` for devices, whatever the ending of the file is.
    let device = out.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(&out);
    let is_reserved = [KEYWORDS, FILES, PRIMITIVES].iter().any(|list| list.contains(&out.as_str()))
        || matches!(device, "com" | "lpt");
    if is_reserved || !out.starts_with(|c: char| c.is_ascii_lowercase()) {
        out = format!("model_{}", out.trim_start_matches('_')).trim_end_matches('_').to_owned();
    }
    bounded(out)
}
