//! The specs that come with trafoc: `@gpt1` on any command, their texts inside the program.

/// A shipped spec.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name, without the `@`.
    pub name: &'static str,
    /// Its text, YAML.
    pub text: &'static str,
}

macro_rules! shelf {
    ($($name:literal)*) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../specs/", $name, ".yaml")) }),*]
    };
}

/// All of them, by name.
pub const SHELF: &[Shipped] = shelf! {
    "bart-base" "bert-base" "bert-classify" "bert-qa" "d2l-nmt" "deepseek-v3-tiny" "doc-classify" "falcon-7b"
    "gbt-mulm" "gemma2-2b" "gpt1" "gpt2-small" "llama3-8b" "mistral-7b" "mixtral-8x7b" "multilingual-nmt"
    "pythia-160m" "qwen2.5-0.5b" "t5-small" "transformer" "vit" "vit-b16"
};

/// The shipped spec of that name, with or without `@` and extension.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    let name = name.strip_prefix('@').unwrap_or(name);
    let name = name.strip_suffix(".yaml").unwrap_or(name);
    SHELF.iter().find(|s| s.name == name)
}
