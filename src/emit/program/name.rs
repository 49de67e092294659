//! Names that every target starts from: words in one style or another, and one name for each module.
//!
//! A module's name consists of ASCII letters and digits and begins with a letter, so that it is an identifier
//! in any language. Which of these a language needs for itself only its target knows.

use std::collections::BTreeSet;

/// The longest name of a module or a file, in bytes. Build tools add a prefix, a hash and an ending to it,
/// and no common file system takes more than 255.
const LONGEST: usize = 64;

/// The names of the modules of one program, each given once.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// The wanted name, or one made from it that is free and is not reserved.
    pub fn give(&mut self, wanted: &str, is_reserved: &dyn Fn(&str) -> bool) -> String {
        // An author may write in any script, but not every language has identifiers of more than ASCII.
        let mut name: String = wanted.chars().filter(char::is_ascii_alphanumeric).collect();
        // A spec may be called `7b`; no language has identifiers that begin with a digit.
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name.insert_str(0, "Model");
        }
        // A spec's name may begin with a small letter.
        name = camel(&name);
        if is_reserved(&name) {
            name.push_str("Part");
        }
        // Cut before the number is added, so that two long names that were cut alike still differ.
        name = bounded(name);
        let base = name.clone();
        let mut n = 2;
        while is_reserved(&name) || !self.0.insert(name.clone()) {
            name = format!("{base}{n}");
            n += 1;
        }
        name
    }

    /// Whether the name is given already.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Whether a name is one that [`Names::give`] may give.
pub fn is_module_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// A module's name as words in snake case: `LocalBlock` → `local_block`.
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

/// The words of a module's name: `LocalBlock` → `Local`, `Block`.
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
    out
}

/// How a source is called in an emitted file: as it was given, but without the folders of this machine.
pub fn shown(source: &str) -> String {
    // Paths of Windows are recognised on every system, so that a spec gives the same file on all of them.
    let is_absolute = source.starts_with(['/', '\\']) || source.get(1..3).is_some_and(|s| s.starts_with(':'));
    let name = if is_absolute { source.rsplit(['/', '\\']).next().unwrap_or(source) } else { source };
    one_line(&name.replace('\\', "/"))
}

/// A text as one line: an author's text must not end a comment.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A long name is cut, and told from others that begin alike by a hash of the whole (FNV-1a, 32 bits).
pub fn bounded(name: String) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    // Written out, because the standard library may change its hash from release to release, and the same
    // spec must always give the same file.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    // Nine characters are left for the separator and eight hexadecimal digits.
    let kept: String = name.chars().take(LONGEST - 9).collect();
    let hash = format!("{hash:08x}");
    if name.contains('_') { format!("{kept}_{hash}") } else { format!("{kept}X{hash}") }
}
