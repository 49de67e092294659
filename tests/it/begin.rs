//! What a beginner meets: suggestions for commands and names, ideas that lie outside the language, and recipes
//! that come with trafoc.

use std::path::Path;

use crate::cli::{TINY, trafoc, trafoc_in};

#[test]
fn commands_flags_and_names_are_suggested() {
    let first = |arguments: &[&str]| {
        let said = trafoc(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        said.err
    };
    for (wrong, right) in [
        (["chekc"].as_slice(), "'check'"),
        (&["init"], "'new'"),
        (&["inti"], "'new'"),
        (&["version"], "'--version'"),
        (&["trian"], "'train'"),
        (&["validate"], "'check'"),
        (&["inspect", "attnetion"], "'attention'"),
        (&["check", "@gpt1", "--varaint", "x"], "'--variant'"),
        (&["compare", "@gpt1", "--cloor", "never"], "'--color'"),
        (&["check", "@gpt1", "--format", "jsno"], "'json'"),
        (&["new", "lama"], "'llama'"),
        (&["check", "@gpt2"], "`@gpt2-small`"),
        (&["check", "@bret-base"], "`@bert-base`"),
        (&["explain", "attnetion"], "`attention`"),
        (&["explain", "mamba"], "no state-space layer"),
        (&["explain", "mtp"], "several next tokens"),
        (&["new", "mamba"], "no state-space layer"),
    ] {
        let said = first(wrong);
        assert!(said.contains(right), "{wrong:?}: {said}");
    }
}

/// An idea outside the language is none of its words, or the hint would be wrong.
#[test]
fn ideas_outside_the_language_are_not_in_it() {
    let known: Vec<String> = [trafoc::spec::explain::catalogue(), trafoc::learn::recipe::catalogue()]
        .concat()
        .into_iter()
        .map(|t| t.name)
        .collect();
    let shipped = trafoc::cli::shelf::SHELF.iter().map(|s| s.name);
    let mut seen = std::collections::BTreeSet::new();
    for idea in trafoc::diag::ideas::IDEAS {
        for name in idea.names {
            assert!(!known.iter().any(|k| k == name), "the language knows `{name}`");
            assert!(shipped.clone().all(|s| s != *name), "`{name}` is shipped");
            assert!(seen.insert(*name), "`{name}` has two rows");
        }
        for text in [idea.lacks, idea.nearest] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn every_recipe_is_on_the_shelf_and_names_data_that_comes_along() {
    let mut files: Vec<String> = std::fs::read_dir("specs/recipes")
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap().strip_suffix(".yaml").unwrap().to_owned())
        .collect();
    files.sort();
    let mut shelf: Vec<&str> = trafoc::cli::shelf::RECIPES.iter().map(|s| s.name).collect();
    shelf.sort_unstable();
    assert_eq!(files, shelf);
    let said = trafoc(&["check", "@gbt-mulm", "--recipe", "@gbt-mulm"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = trafoc(&["check", "@gbt-mulm", "--recipe", "@gbt-mlum"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("did you mean `@gbt-mulm`?"), "{}", said.err);
}

#[test]
fn a_spec_extends_what_comes_along_and_what_is_in_the_working_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("specs");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(folder.path().join("base.yaml"), TINY).unwrap();
    let spec = inside.join("spec.yaml");
    let check = |base: &str, from: &Path, spec: &str| {
        std::fs::write(inside.join("spec.yaml"), format!("extends: \"{base}\"\nname: other\n")).unwrap();
        trafoc_in(from, &["check", spec])
    };
    for (base, from, path) in [
        ("@gpt2-small", folder.path(), "specs/spec.yaml"),
        ("@gpt2-small", inside.as_path(), "spec.yaml"),
        ("../base.yaml", folder.path(), "specs/spec.yaml"),
    ] {
        let said = check(base, from, path);
        assert_eq!(said.code, 0, "{base} from {}: {}", from.display(), said.err);
    }
    // From within the folder of the spec the other file is outside of everything the user named.
    let said = check("../base.yaml", &inside, "spec.yaml");
    assert_eq!(said.code, 1, "{}", said.err);
    let said = check("@gpt2-smal", folder.path(), spec.to_str().unwrap());
    assert!(said.err.contains("did you mean `@gpt2-small`?"), "{}", said.err);
}

#[test]
fn a_variant_takes_paths_and_a_setting_replaces_its_alternative() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{}sweep:\n  deep: {{decoder.layers: 3, decoder.ffn.hidden: 24}}\n  grid: {{d_model: [8, 16]}}\n",
        TINY.replace("attention: {heads: 2}", "attention: {heads: 2}, ffn: {expansion: 4}")
    );
    std::fs::write(folder.path().join("spec.yaml"), text).unwrap();
    let expanded = |arguments: &[&str]| {
        let said = trafoc_in(folder.path(), &[&["expand", "spec.yaml"], arguments].concat());
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        said.out
    };
    let deep = expanded(&["--variant", "deep"]);
    assert!(deep.contains("layers: 3") && deep.contains("hidden: 24"), "{deep}");
    assert!(expanded(&["--set", "decoder.ffn.hidden=40"]).contains("hidden: 40"));
    assert!(expanded(&["--set", "decoder.ffn.expansion=3"]).contains("hidden: 24"));
    let said = trafoc_in(folder.path(), &["check", "spec.yaml", "--set", "sweep.deep={decoder.layrs: 3}"]);
    assert!(said.err.contains("did you mean `layers`?"), "{}", said.err);
}

#[test]
fn scripts_ask_one_spec_and_are_told_when_nothing_fits() {
    assert_eq!(trafoc(&["compare", "@llama3-8b", "--fail-if", "params > 100e6"]).code, 1);
    assert_eq!(trafoc(&["compare", "@llama3-8b", "--fail-if", "params > 200e9"]).code, 0);
    assert_eq!(trafoc(&["compare", "@llama3-8b"]).code, 2);
    let fit = |wanted: &str| trafoc(&["fit", "@gpt2-small", "--params", wanted, "--over", "decoder.layers"]);
    let (short, long) = (fit("350M"), fit("350e6"));
    assert_eq!((short.code, &short.out), (0, &long.out), "{}", short.err);
    let far = fit("900B");
    assert_eq!(far.code, 1, "{}{}", far.out, far.err);
}

#[test]
fn everything_shipped_is_in_its_usual_form() {
    let folders = [
        "specs",
        "specs/recipes",
        "src/cli/templates",
        "src/cli/templates/small",
        "src/cli/templates/recipes",
    ];
    let files: Vec<String> = folders
        .into_iter()
        .flat_map(|folder| {
            let found = crate::compiled::specs(folder);
            assert!(!found.is_empty(), "{folder}");
            found.into_iter().map(|(_, path)| path.display().to_string())
        })
        .collect();
    let arguments: Vec<&str> =
        ["fmt", "--check"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let said = trafoc(&arguments);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// Every command prints the one that usually comes next, with the same changes.
#[test]
fn a_command_names_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    let next = |arguments: &[&str]| {
        let said = run(arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
        let line = said.err.lines().find_map(|line| line.strip_prefix("next: ").map(str::to_owned));
        line.unwrap_or_else(|| panic!("{arguments:?} names no next command: {}", said.err))
    };
    assert_eq!(
        next(&["new", "gpt", "a b.yaml", "--small"]),
        "trafoc train 'a b.yaml' --recipe 'a b.recipe.yaml' --out run"
    );
    assert_eq!(next(&["check", "a b.yaml"]), "trafoc train 'a b.yaml' --recipe 'a b.recipe.yaml' --out run");
    assert_eq!(
        next(&["check", "@gbt-mulm", "--set", "d_model=128"]),
        "trafoc train @gbt-mulm --set d_model=128 --recipe @gbt-mulm --out run"
    );
    assert_eq!(next(&["check", "@llama3-8b"]), "trafoc build @llama3-8b");
    assert_eq!(next(&["build", "@gpt2-small"]), "trafoc new recipe recipe.yaml --for gpt");
    assert_eq!(next(&["convert", "@gpt2-small", "--out", "g.trafo"]), "trafoc check g.trafo");
    let fitted = next(&["fit", "@gpt2-small", "--params", "350M", "--over", "decoder.layers"]);
    // What is printed can be run.
    let words: Vec<&str> = fitted.split(' ').skip(1).collect();
    let said = run(&words);
    assert!(said.code == 0 && said.out.contains("parameters"), "{fitted}: {}", said.err);
    // `-q` leaves it out, and stdin cannot be read twice.
    assert!(run(&["check", "-q", "@gbt-mulm"]).err.is_empty());
}
