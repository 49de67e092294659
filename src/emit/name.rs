//! Names: from the graph's to Rust's, in one place.
//!
//! Members and values are `[a-z_][a-z0-9_]*` already; what is left is keywords, the names the emitted
//! file uses for itself, and type names for stacks of unlike blocks.

/// Keywords of the 2024 edition that a snake case name could be.
const KEYWORDS: &[&str] = &[
    "_", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Types the emitted file imports or defines; a module of the graph must not hide them. `Linear` and
/// the norms matter twice: burn's loader recognises them by name.
const TYPES: &[&str] = &[
    "Bool",
    "Cache",
    "Device",
    "DType",
    "Err",
    "Float",
    "Initializer",
    "Int",
    "LayerNorm",
    "Linear",
    "Module",
    "None",
    "Ok",
    "Option",
    "Param",
    "Path",
    "Result",
    "RmsNorm",
    "SafetensorsStore",
    "Self",
    "Some",
    "String",
    "Tensor",
    "Vec",
];

/// A variable or field: a keyword gets an underscore, which the emitted `load` knows about.
pub fn variable(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A struct: a module's name, kept apart from the types of the file.
pub fn type_name(name: &str) -> String {
    let mut words: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    if !words.starts_with(|c: char| c.is_ascii_uppercase()) {
        words.insert(0, 'M');
    }
    if TYPES.contains(&words.as_str()) { format!("{words}Part") } else { words }
}

/// A constant: `kv_heads` → `KV_HEADS`.
pub fn constant(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// A module's type name as words in snake case: `LocalBlock` → `local_block`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() {
            if i > 0 {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
        } else {
            out.push(if c.is_ascii_alphanumeric() { c } else { '_' });
        }
    }
    out
}

/// The words of a type's name: `LocalBlock` → `Local`, `Block`.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        match words.last_mut() {
            Some(word) if !c.is_ascii_uppercase() => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    words
}

/// Words in camel case: `local_block` → `LocalBlock`.
pub fn camel(name: &str) -> String {
    let mut out = String::new();
    for word in name.split('_') {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.extend(chars);
    }
    type_name(&out)
}

/// How a source is named in an emitted file: as it was given, but never with a place of this machine.
pub fn shown(source: &str) -> String {
    let is_absolute = source.starts_with(['/', '\\']) || source.get(1..3).is_some_and(|s| s.starts_with(':'));
    let name = if is_absolute { source.rsplit(['/', '\\']).next().unwrap_or(source) } else { source };
    doc(&name.replace('\\', "/"))
}

/// A file's or crate's name from a spec's: `qwen2.5-0.5b` → `qwen2_5_0_5b`.
pub fn file(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_lowercase()) {
        out.insert_str(0, "model_");
    }
    variable(&out)
}

/// Text inside a doc comment: one line, nothing that ends or opens markup by accident.
pub fn doc(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
