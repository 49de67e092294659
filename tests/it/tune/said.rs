//! What cannot be known of a trained body is said: whether its texts had capitals, and what its classes mean.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::{NEW, body, recipe, train};
use crate::cli::trafoc_in;

/// A copy of the body with these lines as its vocabulary.
fn with_vocabulary(to: &Path, change: impl Fn(&str) -> String) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(Path::new(&body()).join(name), to.join(name)).unwrap();
    }
    let text = std::fs::read_to_string(Path::new(&body()).join("vocab.txt")).unwrap();
    std::fs::write(to.join("vocab.txt"), text.lines().map(|line| change(line) + "\n").collect::<String>())
        .unwrap();
}

/// Without a word of `do_lower_case`, texts lose their capitals as in the library.
#[test]
fn capitals_that_no_text_will_have_are_said() {
    let folder = tempfile::tempdir().unwrap();
    // The words of three letters and more have a capital, of which the special tokens already have several.
    let raised = |line: &str| match line.chars().next() {
        Some(first) if first.is_alphabetic() && line.len() > 2 => {
            first.to_uppercase().to_string() + &line[first.len_utf8()..]
        }
        _ => line.to_owned(),
    };
    with_vocabulary(&folder.path().join("cased"), raised);
    with_vocabulary(&folder.path().join("uncased"), str::to_owned);
    let said = |model: &str| {
        let all = ["train", model, "--recipe", &recipe(), "--dry-run"];
        let said = trafoc_in(folder.path(), &[&all[..], &NEW].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let note = "texts are read in lower case";
    assert!(said("cased").contains(note));
    assert!(!said("uncased").contains(note));
    let config = json!({ "tokenizer_class": "BertTokenizer", "do_lower_case": false });
    std::fs::write(folder.path().join("cased/tokenizer_config.json"), config.to_string()).unwrap();
    assert!(!said("cased").contains(note));
}

/// Classes get the names of the data where the trained head has none, and keep theirs, in their order, where it
/// has.
#[test]
fn classes_without_names_are_said() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), &[&NEW[..], &["--with", "steps=1"]].concat());
    let run = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    run(&["export", "run", "--to", "exported"]);
    let path = folder.path().join("exported/config.json");
    let mut config: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let recipe = recipe();
    let again = ["train", "exported", "--recipe", &recipe, "--with", "steps=1", "--out", "again"];
    config["id2label"] = json!({ "0": "wheat", "1": "ship", "2": "trade" });
    std::fs::write(&path, config.to_string()).unwrap();
    assert!(!run(&again).contains("does not name the classes"));
    let book = folder.path().join("again/checkpoints/step-000000001/codebook.json");
    let book: Json = serde_json::from_slice(&std::fs::read(book).unwrap()).unwrap();
    assert_eq!(book["classes"], json!(["wheat", "ship", "trade"]));
    std::fs::remove_dir_all(folder.path().join("again")).unwrap();
    for key in ["id2label", "label2id"] {
        config.as_object_mut().unwrap().remove(key);
    }
    config["num_labels"] = json!(3);
    std::fs::write(&path, config.to_string()).unwrap();
    assert!(run(&again).contains("does not name the classes of its trained head"));
}
