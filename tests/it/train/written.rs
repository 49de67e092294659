//! What a trained run writes, token by token.

use super::{Folder, said};

/// Words are joined with spaces, between a prompt and its continuation as within each, and so are those of the data
/// in which the text is looked for.
#[test]
fn a_text_of_words_is_known_with_its_prompt() {
    let place = Folder::new();
    std::fs::write(place.path("data.txt"), "one two three\n".repeat(8)).unwrap();
    let recipe = "recipe: 1\ndata: {format: lines, train: data.txt}\ntokens: words\nsteps: 60\nseed: 1\n\
                  optimizer: {adam: {learning_rate: 2e-2}}\nbatch: {size: 8}\n";
    std::fs::write(place.path("recipe.yaml"), recipe).unwrap();
    place.trained("run", &["--set", "vocab=7"]);
    let written = |prompt: &str| {
        let arguments = ["generate", "run", "--temperature", "0", "--known", "--prompt", prompt];
        let said = said(place.command(&arguments).output().unwrap());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out
    };
    for (prompt, text) in [
        ("", "one two three\ttrain\n"),
        ("one", "one two three\ttrain\n"),
        // As it was given, though the tokens have neither the second space nor the last one.
        ("one  two ", "one  two three\ttrain\n"),
    ] {
        assert_eq!(written(prompt), text, "{prompt}");
    }
    let other = written("two");
    assert!(other.starts_with("two ") && other.ends_with("\tnew\n"), "{other}");
}

/// A text that the alphabet cannot write is quoted no further than is needed to find it.
#[test]
fn a_character_without_a_token_is_named_with_its_text() {
    let place = Folder::new();
    place.trained("run", &["--with", "steps=1"]);
    let text = format!("9{}", "a".repeat(100));
    let said = said(place.command(&["generate", "run", "--prompt", &text]).output().unwrap());
    assert_eq!(said.code, Some(2), "{}", said.err);
    let wanted = format!("the model has no token for `9` of the prompt `9{}...`", "a".repeat(39));
    assert!(said.err.contains(&wanted), "{}", said.err);
}

/// The command that training names for an encoder of masked words runs, and fills in a word of a text of the data.
#[test]
fn a_masked_word_of_the_data_is_tried_after_training() {
    let place = Folder::new();
    let new = ["new", "bert", "--small"];
    assert_eq!(said(place.command(&new).output().unwrap()).code, Some(0));
    let train = ["train", "bert.yaml", "--recipe", "bert.recipe.yaml", "--out", "run", "--with", "steps=2"];
    let told = said(place.command(&train).output().unwrap()).err;
    let next =
        told.lines().find_map(|line| line.strip_prefix("next: trafoc ")).unwrap_or_else(|| panic!("{told}"));
    let (before, text) = next.split_once(" --text ").unwrap_or_else(|| panic!("{told}"));
    assert!(before == "predict run" && text.matches("[MASK]").count() == 1, "{told}");
    let predict = ["predict", "run", "--text", text.trim_matches('\''), "--format", "json"];
    let predicted = said(place.command(&predict).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&predicted.out).unwrap();
    assert_eq!(json["data"]["predictions"][0]["hidden"].as_array().map(Vec::len), Some(1), "{json}");
}
