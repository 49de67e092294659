//! What is said of the names of specs and of settings on the command line, so that it works when it is followed.

use crate::cli::{trafoc, trafoc_in};

/// Names that are as near as each other are suggested together, and the beginning of one with a slip.
#[test]
fn shipped_names_that_are_near_are_suggested() {
    for (name, near) in [
        ("@lama3", "did you mean `@llama3-8b`?"),
        ("@bert", "did you mean `@bert-base`, `@bert-classify` or `@bert-qa`?"),
        ("@mixtrl", "did you mean `@mixtral-8x7b`?"),
        ("@finetune-classify", "`@finetune-classify` is a recipe, which `trafoc train SPEC --recipe` takes"),
    ] {
        let said = trafoc(&["check", name]);
        assert!(said.code == 2 && said.err.contains(near), "{name}: {}", said.err);
    }
    let said = trafoc(&["check", "@vit", "--recipe", "@bert-base"]);
    assert!(said.err.contains("`@bert-base` is a spec; `--recipe` takes how it is trained"), "{}", said.err);
    assert_ne!(trafoc(&["convert", "specs/recipes/gpt1.yaml"]).code, 0);
}

/// A file that is missing has the name of another one but for its ending, or that of a shipped spec, or is spelt like one.
#[test]
fn a_missing_base_is_looked_for_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("mine.yaml", "name: mine\n");
    write("vit.yml", "name: vit\n");
    for (base, meant) in [
        ("bert-base.yaml", Some("@bert-base")),
        ("transformer.yaml", Some("@transformer")),
        ("transformer.trafo", Some("@transformer")),
        ("gpt2-small", Some("@gpt2-small")),
        ("gpt2-small.yml", Some("@gpt2-small")),
        ("gpt2-smal.yml", Some("@gpt2-small")),
        ("mine.yml", Some("mine.yaml")),
        ("mine", Some("mine.yaml")),
        ("mien.yaml", Some("mine.yaml")),
        ("vit.yaml", Some("vit.yml")),
        // What is in other folders is not shown.
        ("../spec.yml", None),
        ("other/mine.yml", None),
        ("nonsense.yaml", None),
    ] {
        write("spec.yaml", &format!("extends: \"{base}\"\nname: other\n"));
        let said = trafoc_in(folder.path(), &["check", "spec.yaml"]).err;
        match meant {
            Some(meant) => assert!(said.contains(&format!("did you mean `{meant}`?")), "{base}: {said}"),
            None => assert!(!said.contains("did you mean"), "{base}: {said}"),
        }
    }
    let said = trafoc_in(folder.path(), &["check", "transformer.yml"]).err;
    assert!(said.contains("`@transformer` is a spec that comes with trafoc"), "{said}");
}
