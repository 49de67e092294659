//! The values of options and arguments that other tools take.

use crate::diag::suggest::suggest;

/// The values that other tools take, each with the one that is meant here.
const OTHER_VALUES: &[(&str, &str)] = &[
    ("pwsh", "powershell"),
    ("ps", "powershell"),
    ("sh", "bash"),
    ("torch", "pytorch"),
    ("python", "pytorch"),
    ("py", "pytorch"),
    ("burn", "rust"),
    ("graf", "graph"),
    ("ir", "graph"),
    ("ast", "tree"),
    ("float16", "f16"),
    ("fp16", "f16"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("float32", "f32"),
    ("fp32", "f32"),
    ("float", "f32"),
    ("nanogpt", "gpt"),
    ("mixtral", "moe"),
    ("mistral", "llama"),
    ("gemma", "llama"),
    ("qwen", "llama"),
    ("deepseek", "moe"),
    ("transformer", "t5"),
    ("seq2seq", "t5"),
    ("encoder-decoder", "t5"),
    ("translation", "t5"),
    ("translate", "t5"),
];

/// The one of these values that another tool calls so.
pub fn exactly(word: &str, values: &[String]) -> Option<&'static str> {
    let ours = OTHER_VALUES.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
    ours.filter(|ours| values.iter().any(|value| value == ours))
}

/// The one of these values for which another tool has a word that is spelt like this one.
pub fn nearly(word: &str, values: &[String]) -> Option<&'static str> {
    let theirs: Vec<&str> = OTHER_VALUES.iter().map(|(theirs, _)| *theirs).collect();
    exactly(&suggest(word, &theirs)?, values)
}
