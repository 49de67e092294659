//! The crate of kernels, as an emitted file sees it: the names it offers, and the text of those kernels that
//! a file without that crate needs.

use std::collections::BTreeSet;

use trafoc_kernels::source::FILES;

use crate::lower::Bug;

/// The name of the crate in Rust.
pub const CRATE: &str = "trafoc_kernels";

/// The files of the crate that define ops.
#[derive(Clone, Debug)]
pub struct Library {
    files: Vec<KernelFile>,
}

#[derive(Clone, Debug)]
struct KernelFile {
    /// The name of the file without `.rs`, which is that of its module.
    module: &'static str,
    text: &'static str,
    /// The public functions and types it defines.
    items: Vec<String>,
    /// The modules next to it that it uses: `use super::MODULE::..`.
    needs: BTreeSet<String>,
}

impl Library {
    /// Reads the crate's text. A file of `reference` replaces the one of that name that depends on the
    /// backend.
    ///
    /// # Errors
    /// A fault of trafoc: the text is not Rust.
    pub fn read() -> Result<Self, Bug> {
        let below = |folder: &'static str| {
            FILES.iter().filter_map(move |(path, text)| {
                let module = path.strip_prefix(folder)?.strip_suffix(".rs")?;
                // `mod.rs` only declares the files, which the emitted module does by itself.
                (module != "mod").then_some((module, *text))
            })
        };
        let reference: Vec<(&str, &str)> = below("src/reference/").collect();
        let mut files = Vec::new();
        for (module, text) in below("src/kernel/") {
            let text = reference.iter().find(|(other, _)| *other == module).map_or(text, |(_, text)| *text);
            let tree = syn::parse_file(text)
                .map_err(|error| Bug(format!("the kernels in {module}.rs do not parse: {error}")))?;
            let mut file = KernelFile { module, text, items: Vec::new(), needs: BTreeSet::new() };
            for item in &tree.items {
                file.items.extend(public_name(item));
                file.needs.extend(sibling(item));
            }
            files.push(file);
        }
        Ok(Self { files })
    }

    /// Whether the crate offers a function or type of that name.
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.items.iter().any(|item| item == name))
    }

    /// The module `kernels` with the wanted items and everything they need, in the order of the crate.
    pub fn module(&self, wanted: &BTreeSet<&str>) -> String {
        let mut chosen: BTreeSet<&str> = BTreeSet::new();
        let is_wanted = |file: &&KernelFile| file.items.iter().any(|item| wanted.contains(item.as_str()));
        let mut open: Vec<&KernelFile> = self.files.iter().filter(is_wanted).collect();
        while let Some(file) = open.pop() {
            if chosen.insert(file.module) {
                open.extend(self.files.iter().filter(|other| file.needs.contains(other.module)));
            }
        }
        // Files are taken whole, so some of their functions are not called.
        let mut text = "/// The ops that this model calls, each in its simplest form.\n\
                        #[allow(dead_code)]\nmod kernels {\n"
            .to_owned();
        for file in self.files.iter().filter(|file| chosen.contains(file.module)) {
            text.push_str(&format!("    pub mod {} {{\n", file.module));
            for line in file.text.lines() {
                // An empty line stays empty, as formatters leave it.
                let indent = if line.is_empty() { "" } else { "        " };
                text.push_str(&format!("{indent}{line}\n"));
            }
            text.push_str("    }\n\n");
        }
        for file in &self.files {
            let items: Vec<&str> =
                file.items.iter().filter(|item| wanted.contains(item.as_str())).map(String::as_str).collect();
            match items.as_slice() {
                [] => {}
                [one] => text.push_str(&format!("    pub use {}::{one};\n", file.module)),
                several => {
                    text.push_str(&format!("    pub use {}::{{{}}};\n", file.module, several.join(", ")));
                }
            }
        }
        text + "}\n"
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other items of Rust are not called")]
fn public_name(item: &syn::Item) -> Option<String> {
    let (vis, name) = match item {
        syn::Item::Fn(item) => (&item.vis, &item.sig.ident),
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(vis, syn::Visibility::Public(_)).then(|| name.to_string())
}

/// `linear` in `use super::linear::linear_of;`
fn sibling(item: &syn::Item) -> Option<String> {
    let syn::Item::Use(item) = item else { return None };
    let syn::UseTree::Path(first) = &item.tree else { return None };
    let syn::UseTree::Path(second) = &*first.tree else { return None };
    (first.ident == "super").then(|| second.ident.to_string())
}
