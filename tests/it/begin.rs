//! What a beginner meets: suggestions for commands and names, ideas that lie outside the language, and recipes
//! that come with trafoc.

use crate::cli::trafoc;

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
