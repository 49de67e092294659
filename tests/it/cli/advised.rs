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

/// A stage that is misspelled is no model, even if there is a folder of that name.
#[test]
fn a_stage_is_no_folder() {
    let said = trafoc(&["print", "specs", "@gpt1"]);
    assert!(said.code == 2 && said.err.contains("'spec'"), "{}", said.err);
}

/// The spec, a setting, what is said of it, and what is not.
const SET: &[(&str, &str, &str, &str)] = &[
    // Ten heads, or fifteen, would not divide the width.
    ("@gpt2-small", "decoder.attention.kv_heads=5", "1, 2, 3, 4, 6, 12 would work\n", "or heads"),
    // The right name would replace the part that is there.
    ("@gpt1", "decoder.ffn.gluu.hidden=64", "did you mean `glu`?", "it has"),
    ("@gpt1", "decoder.ffn.Moe.experts=4", "did you mean `moe`?", "it has"),
    ("@gpt2-small", "decoder.attention.kv_heads=8", "would work, or heads of 8 or 16", "heads of 10"),
    // Only what may be left out is said to be.
    ("@gpt2-small", "context=0", "0 is not between 1", "leave the key out"),
    ("@gpt2-small", "head.lm.softcap=0", "write `none` or leave the key out", "did you mean"),
    ("@gemma2-2b", "decoder.blocks.locl.attention.mask.window=128", "did you mean `local`?", "remove it"),
    ("@gemma2-2b", "decoder.blocks.wide.attention.mask.window=128", "name it in `pattern`", "did you mean"),
];

#[test]
fn advice_about_a_setting_works() {
    for (spec, setting, has, lacks) in SET {
        let said = trafoc(&["check", spec, "--set", setting]);
        assert_eq!(said.code, 1, "{setting}: {}", said.err);
        assert!(said.err.contains(has) && !said.err.contains(lacks), "{setting}: {}", said.err);
    }
    // A shell takes quotes away.
    let quoted = trafoc(&["check", "@gpt1", "--recipe", "@gpt1", "--with", "data.train=@isimler.txt"]);
    assert!(quoted.err.contains("`--with 'data.train=\"@isimler.txt\"'`"), "{}", quoted.err);
    let name = trafoc(&["check", "@gpt1", "--set", "name=@mine"]);
    assert!(name.err.contains("`--set 'name=\"@mine\"'`"), "{}", name.err);
    let steps = trafoc(&["check", "@gpt1", "--recipe", "@gpt1", "--with", "steps=0"]);
    assert!(steps.code == 1 && !steps.err.contains("help:"), "{}", steps.err);
    // Two blocks of one text cannot have the same name.
    let folder = tempfile::tempdir().unwrap();
    let spec = "vocab: 32\ncontext: 8\nd_model: 8\nhead: lm\nname: twice\ndecoder:\n  layers: 2\n  attention: {heads: 2}\n  \
                pattern: [local]\n  blocks: {local: {}, locl: {}}\n";
    std::fs::write(folder.path().join("twice.yaml"), spec).unwrap();
    let twice = trafoc_in(folder.path(), &["check", "twice.yaml"]);
    assert!(twice.err.contains("name it in `pattern`, or remove it"), "{}", twice.err);
}

/// The last line counts what the spec has, what the recipe has, and what is on the command line.
#[test]
fn errors_are_counted_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("spec.yaml", &super::TINY.replace("heads: 2", "heads: 3"));
    write("recipe.yaml", "recipe: 1\nbatsh: 2\n");
    let said = trafoc_in(folder.path(), &["check", "spec.yaml", "--recipe", "recipe.yaml"]);
    assert!(said.err.contains("error: `spec.yaml` has 1 error, and `recipe.yaml` has "), "{}", said.err);
    write("spec.yaml", super::TINY);
    let line = ["check", "spec.yaml", "--recipe", "recipe.yaml", "--with", "steps=0", "--with", "clip=-1"];
    let said = trafoc_in(folder.path(), &line).err;
    assert!(said.contains("error: `recipe.yaml` has "), "{said}");
    assert!(said.ends_with(", and `--with` has 2 errors\n"), "{said}");
}
