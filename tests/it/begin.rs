//! What a beginner meets: suggestions for commands and names, ideas that lie outside the language, and
//! recipes that come with trafoc.

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
        (&["genrate", "run"], "'generate'"),
        (&["init"], "'new'"),
        (&["inti"], "'new'"),
        (&["version"], "`trafoc --version`"),
        (&["bld"], "'build'"),
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
        (&["transpile"], "'build'"),
        (&["list"], "`trafoc new --help`"),
        (&["describe"], "'explain'"),
        (&["bench"], "`trafoc compare --measure`"),
        (&["train", "@gpt1", "--output", "x"], "`--out`"),
        (&["export", "@gpt1", "--out", "x"], "`--to`"),
        (&["generate", "@gpt1", "--text", "x"], "`--prompt`"),
        (&["train", "@gpt1", "--seed", "3"], "`--with seed=1`"),
        (&["check", "@gpt1", "--json"], "`--format json`"),
        (&["check", "@gpt1", "--verbose"], "`--quiet`"),
        (&["build", "@gpt1", "--target", "torch"], "'pytorch'"),
        (&["build", "@gpt1", "--target", "onnx"], "no target of this name"),
        (&["run", "@gpt1", "--dtype", "float16"], "'f16'"),
        (&["draw", "@gpt1", "--out", "x.sgv"], "`.svg`"),
        (&["check", "@t5"], "`@t5-small`"),
        (&["check", "@nmt"], "`@d2l-nmt`"),
        (&["check", "@vanilla"], "`@transformer`"),
        (&["check", "@vit_base"], "`@vit-b16`"),
        (&["new", "mixtral"], "`@mixtral-8x7b`"),
        (&["new", "seq2seq"], "'t5'"),
        (&["new", "transfomer"], "'t5'"),
        (&["new", "encoder-decoder"], "'t5'"),
        (&["inspect", "masks"], "'attention'"),
        (&["new", "dit"], "no generative image model"),
        (&["explain", "muP"], "`init.rules`"),
        (&["explain", "decoder.layrs"], "`decoder.layers`"),
        (&["explain", "tokens.bpe.size"], "`recipe.tokens.bpe` has"),
        (&["explain", "layers.pattern"], "`pattern`"),
        (&["explain", "convnext"], "from stage to stage"),
        (&["explain", "ema"], "`average`"),
        (&["explain", "qwen3"], "`trafoc import DIR`"),
        (&["explain", "one cycle"], "no schedule of this name"),
        (&["explain", "learning rate warmup steps of the schedule"], "`trafoc explain learning_rate_warmup`"),
        (&["explain", "mixture", "of", "experts"], "quotes"),
        (&["explain", "lstm"], "no recurrent layer"),
        (&["explain", "mtp"], "several next tokens"),
        (&["new", "retnet"], "no linear attention"),
        (&["new", "clip"], "no pair of models"),
        (&["new", "opt"], "`trafoc import DIR`"),
        (&["new", "mamba"], "`trafoc import DIR`"),
        (&["new", "muon"], "`trafoc explain muon`"),
    ] {
        let said = first(wrong);
        assert!(said.contains(right), "{wrong:?}: {said}");
    }
}

/// An idea outside the language is none of its words, or the hint would be wrong.
#[test]
fn ideas_outside_the_language_are_not_in_it() {
    use trafoc::diag::ideas::{Met, ORDINARY};

    let known: Vec<String> = [trafoc::spec::explain::catalogue(), trafoc::learn::recipe::catalogue()]
        .concat()
        .into_iter()
        .map(|t| t.name)
        .collect();
    let shipped = trafoc::cli::shelf::SHELF.iter().map(|s| s.name);
    let mut seen = std::collections::BTreeSet::new();
    for idea in trafoc::diag::ideas::IDEAS {
        for name in idea.names.split_ascii_whitespace() {
            assert!(trafoc::diag::foreign::foreign(name).is_none(), "`{name}` has a word of trafoc");
            // What is said of calls in equations only may be a key elsewhere.
            let only_calls = |(names, places): &&(&str, &[Met])| {
                names.split_ascii_whitespace().any(|n| n == name) && *places == [Met::Call]
            };
            let is_call = ORDINARY.iter().find(only_calls).is_some();
            assert!(is_call || !known.iter().any(|k| *k == name), "the language knows `{name}`");
            assert!(shipped.clone().all(|s| s != name), "`{name}` is shipped");
            assert!(seen.insert(name), "`{name}` has two rows");
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
fn a_norm_of_what_is_extended_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let check = |more: &str| {
        let text = format!("extends: \"@gpt2-small\"\ndecoder: {{norm: rms_norm}}\n{more}");
        std::fs::write(folder.path().join("mine.yaml"), text).unwrap();
        trafoc_in(folder.path(), &["check", "mine.yaml"])
    };
    let said = check("");
    assert!(said.code == 1 && said.err.contains("write `norm: !delete`"), "{}", said.err);
    let said = check("norm: !delete\n");
    assert_eq!(said.code, 0, "{}", said.err);
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
    // Of two alternatives that are set at once, none replaces the other.
    let (hidden, expansion) = (["--set", "decoder.ffn.hidden=10"], ["--set", "decoder.ffn.expansion=3"]);
    for (one, other, code) in [(hidden, expansion, 1), (expansion, hidden, 1), (hidden, hidden, 0)] {
        let said = trafoc_in(folder.path(), &[&["check", "spec.yaml"], &one[..], &other].concat());
        assert_eq!((said.code, said.err.contains("[keys-exclude]")), (code, code == 1), "{}", said.err);
    }
    let said = trafoc_in(folder.path(), &["check", "spec.yaml", "--set", "sweep.deep={decoder.layrs: 3}"]);
    assert!(said.err.contains("did you mean `layers`?"), "{}", said.err);
}

#[test]
fn scripts_ask_one_spec_and_are_told_when_nothing_fits() {
    assert_eq!(trafoc(&["compare", "@llama3-8b", "--fail-if", "params > 100e6"]).code, 1);
    assert_eq!(trafoc(&["compare", "@llama3-8b", "--fail-if", "params > 200e9"]).code, 0);
    assert_eq!(trafoc(&["compare", "@llama3-8b"]).code, 2);
    let fit = |wanted: &str| trafoc(&["fit", "@gpt2-small", "--params", wanted, "--over", "decoder.layers"]);
    let slip = trafoc(&["fit", "@gpt2-small", "--params", "350M", "--over", "decoder.layer"]);
    assert!(slip.code == 2 && slip.err.contains("did you mean `decoder.layers`?"), "{}", slip.err);
    let (short, long) = (fit("350M"), fit("350e6"));
    assert_eq!((short.code, &short.out), (0, &long.out), "{}", short.err);
    let far = fit("900B");
    assert_eq!(far.code, 1, "{}{}", far.out, far.err);
    // A unit of bytes would make another number of parameters.
    for (wrong, right, is) in [
        ("350m", "write 350M", "is neither"),
        ("3gb", "write 3G\n", "is a number of bytes, which `params` is not"),
        ("350MB", "write 350M\n", "is a number of bytes"),
        ("350MiB", "write 350M\n", "is a number of bytes"),
        ("3x", "like 12", "is neither"),
    ] {
        let said = fit(wrong);
        let names = format!("`{wrong}` {is}");
        assert!(said.code == 2 && said.err.contains(right) && said.err.contains(&names), "{}", said.err);
    }
    let judged = |condition: &str| trafoc(&["compare", "@gpt1", "--fail-if", condition]);
    for (condition, right) in [("params > 125MB", "write 125M\n"), ("weights > 3mb", "write 3MB\n")] {
        let said = judged(condition);
        assert!(said.code == 2 && said.err.contains(right), "{condition}: {}", said.err);
    }
    let said = judged("foo > 3");
    assert!(said.err.contains("help: use one of params, ") && !said.err.contains("let"), "{}", said.err);
    // 146.9 million weights of two bytes each.
    assert_eq!((judged("weights > 293.8MB").code, judged("weights > 293.9MB").code), (1, 0));
    assert_eq!((judged("weights > 280 MiB").code, judged("weights > 281 MiB").code), (1, 0));
    // A file is a spec, also if its name begins as a number does.
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(trafoc_in(folder.path(), &["new", "gpt", "7b.yaml"]).code, 0);
    for file in ["7b.yaml", "./7b.yaml"] {
        let said = trafoc_in(folder.path(), &["fit", "@gpt2-small", "--params", file]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    // An option of another command is known.
    let said = trafoc(&["check", "@gpt1", "--fail-if", "params > 1M"]);
    assert!(said.err.contains("tip: `compare` has `--fail-if`"), "{}", said.err);
    // `--families` is only spelt like it.
    assert!(!said.err.contains("--families"), "{}", said.err);
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

#[test]
fn what_new_writes_is_in_its_usual_form() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    for template in ["gpt", "llama", "bert", "t5", "vit", "moe"] {
        // A name that YAML would take for a number is in quotes.
        let spec = format!("7{template}.yaml");
        let said = run(&["new", template, &spec, "--small"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let said = run(&["fmt", "--check", &spec, &format!("7{template}.recipe.yaml")]);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    }
}

#[test]
fn options_without_an_effect_are_refused_or_said() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    for arguments in [["new", "gpt", "--for", "bert"].as_slice(), &["new", "recipe", "--small"]] {
        let said = run(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(said.err.contains("would have no effect"), "{}", said.err);
    }
    for (arguments, note) in [
        (["show", "@vit-b16", "--tokens", "10"], "`--tokens` changes nothing"),
        (["show", "@gpt2-small", "-t", "5000"], "beyond the model's context of 1,024"),
    ] {
        let said = run(&arguments);
        assert!(said.code == 0 && said.err.contains(note), "{arguments:?}: {}", said.err);
    }
    assert!(run(&["show", "@gpt2-small", "-t", "1024"]).err.is_empty());
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

/// `new --data` reads the data before it writes anything, and the spec gets the sizes that follow from it.
#[test]
#[cfg(feature = "learn")]
fn a_template_is_fitted_to_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    // More letters and longer lines than the template has.
    let letters: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    write("letters.txt", &format!("{letters}\n").repeat(40));
    let said = run(&["new", "gpt", "own.yaml", "--small", "--data", "letters.txt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let spec = read("own.yaml");
    assert!(spec.contains("\nvocab: 63 ") && spec.contains("\ncontext: 64\n"), "{spec}");
    assert!(said.err.contains("`vocab` 63 and `context` 64"), "{}", said.err);
    assert_eq!(run(&["check", "own.yaml", "--recipe", "own.recipe.yaml", "--strict"]).code, 0);
    // In another folder the recipe finds the data from there.
    std::fs::create_dir(folder.path().join("models")).unwrap();
    assert_eq!(run(&["new", "gpt", "models/a.yaml", "--small", "--data", "letters.txt"]).code, 0);
    assert!(
        read("models/a.recipe.yaml").contains("train: \"../letters.txt\""),
        "{}",
        read("models/a.recipe.yaml")
    );
    let said = run(&["check", "models/a.yaml", "--recipe", "models/a.recipe.yaml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // What is wrong with a recipe itself is said together with what is wrong with the spec.
    let said =
        run(&["check", "own.yaml", "--set", "vocap=20", "--recipe", "own.recipe.yaml", "--with", "stepps=5"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("no key `vocap`") && said.err.contains("no key `stepps`"), "{}", said.err);
    // What cannot be used is said at once, and nothing is written.
    write("pairs.txt", "no tab here\nnor here\n");
    let bytes = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    bytes("text.zip", b"PK\x03\x04\x14\0");
    bytes("text.bz2", b"BZh91AY&SY\x01");
    bytes("real.parquet", b"PAR1\x15\x04\x15\x1c");
    bytes("wide.txt", b"\xff\xfea\0\t\0b\0\n\0");
    bytes("packed.tar", &[&[b'a'; 257][..], b"ustar\0"].concat());
    let classes: String = (0..30).map(|i| format!("{}{}\n", "0,".repeat(64), i % 3)).collect();
    write("classes.csv", &classes);
    for (template, data, code, why) in [
        ("gpt", "missing.txt", 4, "cannot read `missing.txt`"),
        ("t5", "pairs.txt", 1, "tab"),
        ("vit", "pairs.txt", 1, "error"),
        ("gpt", "models", 4, "it is a folder"),
        ("gpt", "text.zip", 4, "it is a zip archive"),
        ("gpt", "text.bz2", 4, "compressed with bzip2; unpack it"),
        ("vit", "real.parquet", 4, "it is a Parquet file; write it as CSV"),
        ("t5", "wide.txt", 4, "it is in UTF-16; save the file as UTF-8"),
        ("gpt", "packed.tar", 4, "it is a tar archive; unpack it"),
    ] {
        let said = run(&["new", template, "bad.yaml", "--small", "--data", data]);
        assert_eq!(said.code, code, "{template} {data}: {}", said.err);
        assert!(said.err.contains(why), "{template} {data}: {}", said.err);
        assert!(!folder.path().join("bad.yaml").exists() && !folder.path().join("bad.recipe.yaml").exists());
    }
    let said = run(&["new", "vit", "v.yaml", "--small", "--data", "classes.csv"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(read("v.yaml").contains("classes: 3}"), "{}", read("v.yaml"));
}

/// Where the data has the character that a template's recipe puts between texts, or lines that are too long for
/// any context, the recipe is written as the data needs it.
#[test]
#[cfg(feature = "learn")]
fn a_recipe_is_fitted_to_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let sentence = "The cat sat on the mat.";
    write("sentences.txt", &format!("{sentence}\n").repeat(60));
    write("prose.txt", &format!("{}\n\n", sentence.repeat(100)).repeat(80));
    write("few.txt", "abc\ndef\n");
    write("few.tsv", "abc\tdef\nghi\tjkl\n");
    let (plain, text) = ("\ntokens: characters\n", "format: text,");
    for (template, data, keys) in [
        ("gpt", "sentences.txt", &[plain][..]),
        ("llama", "sentences.txt", &[plain]),
        ("gpt", "prose.txt", &[plain, text]),
        ("bert", "prose.txt", &[text]),
        // So few examples that the template's share of them is none.
        ("gpt", "few.txt", &["split: {validation: 0.25}"]),
        ("t5", "few.tsv", &["split: {test: 0.25}"]),
    ] {
        let said = run(&["new", template, "own.yaml", "--small", "--data", data, "--force"]);
        assert_eq!(said.code, 0, "{template} {data}: {}", said.err);
        assert!(said.err.contains("note: the recipe has `"), "{}", said.err);
        let recipe = std::fs::read_to_string(folder.path().join("own.recipe.yaml")).unwrap();
        assert!(keys.iter().all(|key| recipe.contains(key)), "{recipe}");
        let said = run(&["check", "own.yaml", "--recipe", "own.recipe.yaml"]);
        assert_eq!(said.code, 0, "{template} {data}: {}", said.err);
    }
}

/// A file that is missing is shown with the key that names it, its line, and a file that is called almost so.
#[test]
#[cfg(feature = "learn")]
fn a_missing_file_is_shown_with_the_key_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/isimler.txt"), "ada\n").unwrap();
    let check = |data: &str, tokens: &str, with: &[&str]| {
        let text = format!("recipe: 1\ndata: {{format: lines, train: {data}}}\ntokens: {tokens}\nsteps: 1\n");
        std::fs::write(folder.path().join("r.yaml"), text).unwrap();
        let said = trafoc_in(folder.path(), &[&["check", "@gbt-mulm", "--recipe", "r.yaml"], with].concat());
        assert_eq!(said.code, 4, "{}", said.err);
        said.err
    };
    let said = check("data/isimelr.txt", "characters", &[]);
    for part in ["did you mean `data/isimler.txt`?", "`data.train` names it, in line 2 of `r.yaml`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = check("data/isimler.txt", "{file: {path: tok.json}}", &[]);
    for part in ["`tokens.file.path` names it, in line 3", "`--with tokens.file.path=FILE`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = check("data/isimler.txt", "characters", &["--with", "data.train=data/isimlre.txt"]);
    assert!(said.contains("`--with data.train` names it"), "{said}");
}

/// `check --recipe` says what `train` will say of the data.
#[test]
#[cfg(feature = "learn")]
fn a_recipe_is_checked_with_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trafoc_in(folder.path(), arguments);
    let said = run(&["check", "@d2l-nmt", "--recipe", "@d2l-nmt"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("fra.txt") && said.err.contains("--with data.train=FILE"), "{}", said.err);
    let pairs: String = (0..700).map(|i| format!("go {i}\tva {i}\n")).collect();
    std::fs::write(folder.path().join("own.txt"), pairs).unwrap();
    let said = run(&["check", "@d2l-nmt", "--recipe", "@d2l-nmt", "--with", "data.train=own.txt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("--with data.train=own.txt"), "{}", said.err);
    let tags = "recipe: 1\ndata: {format: tagged, train: tags.txt}\ntokens: words\nsteps: 1\n";
    std::fs::write(folder.path().join("tags.yaml"), tags).unwrap();
    std::fs::write(folder.path().join("tags.txt"), "word\nother\tX\n").unwrap();
    let head = ["--set", "head={tag: {classes: 2}}", "--recipe", "tags.yaml"];
    let said = run(&[&["check", "@doc-classify"][..], &head].concat());
    assert!(said.err.contains("a word, a tab and its class, but found 1 column\n"), "{}", said.err);
    let small = run(&["check", "@gbt-mulm", "--set", "vocab=20", "--recipe", "@gbt-mulm"]);
    assert!(small.code == 1 && small.err.contains("vocab-mismatch"), "{}", small.err);
    assert_eq!(run(&["check", "@gbt-mulm", "--with", "steps=3"]).code, 2);
}

/// What is elsewhere is not fetched, which is said where its name is given; a shipped recipe may lack its `@`.
#[test]
#[cfg(feature = "flex")]
fn what_is_elsewhere_is_not_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = "recipe: 1\ndata: {format: lines, train: \"https://example.org/a.txt\"}\ntokens: characters\nsteps: 1\n";
    std::fs::write(folder.path().join("far.yaml"), recipe).unwrap();
    let fetch = "trafoc downloads nothing: `hf download openai-community/gpt2 --local-dir gpt2`";
    let address = "trafoc downloads nothing: download the file, and give its path";
    for (line, help) in [
        (["import", "openai-community/gpt2"].as_slice(), fetch),
        (&["check", "openai-community/gpt2"], fetch),
        (&["generate", "openai-community/gpt2"], fetch),
        (&["generate", "gpt2"], "a downloaded model: trafoc downloads nothing"),
        (&["check", "https://example.org/spec.yaml"], address),
        (&["check", "@gbt-mulm", "--recipe", "far.yaml"], address),
        (&["check", "@gpt1", "--recipe", "gpt1"], "`@gpt1` is a recipe that comes with trafoc"),
        (&["check", "@gpt1", "--recipe", "gbt-mulmm"], "did you mean `@gbt-mulm`?"),
        (&["check", "@gpt1", "--recipe", "fr.yaml"], "did you mean `far.yaml`?"),
    ] {
        let said = trafoc_in(folder.path(), line);
        assert!(said.code == 4 && said.err.contains(help), "{line:?}: {}", said.err);
    }
}

/// A spec may be written as JSON, which is YAML, too.
#[test]
fn a_spec_in_json_is_no_config() {
    let folder = tempfile::tempdir().unwrap();
    let spec = r#"{"trafo": 1, "name": "j", "vocab": 9, "context": 4, "d_model": 8, "head": "lm",
        "decoder": {"layers": 1, "attention": {"heads": 2}}}"#;
    std::fs::write(folder.path().join("j.json"), spec).unwrap();
    let said = trafoc_in(folder.path(), &["check", "j.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    std::fs::write(folder.path().join("j.json"), "{}").unwrap();
    let said = trafoc_in(folder.path(), &["check", "j.json", "--lang", "yaml"]);
    assert!(!said.err.contains("model_type"), "{}", said.err);
}

#[test]
fn what_extends_a_shipped_spec_can_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.yaml", "yaml"), ("a.trafo", "trafo")] {
        let said = trafoc_in(folder.path(), &["convert", "@bert-classify", "--to", text]);
        assert!(said.out.contains("\"@bert-base\""), "{}", said.out);
        std::fs::write(folder.path().join(name), &said.out).unwrap();
        let said = trafoc_in(folder.path(), &["check", name]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

/// A variant that is asked for by name while the sweep has an error: the error is said, not an empty list.
#[test]
fn an_error_in_a_sweep_is_said_where_a_variant_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), format!("{TINY}sweep: {{grid: {{decoder.layers: 6}}}}\n"))
        .unwrap();
    let said = trafoc_in(folder.path(), &["show", "s.yaml", "--variant", "decoder.layers=6"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.err.contains("expected a list of values") && said.err.contains("write `[6]`"),
        "{}",
        said.err
    );
}

#[test]
fn one_thing_is_not_counted_as_several() {
    use trafoc::diag::count::counted;
    assert_eq!(
        [counted(1, "step"), counted(0, "step"), counted("1,000", "step")],
        ["1 step", "0 steps", "1,000 steps"]
    );
    let folder = tempfile::tempdir().unwrap();
    let text = TINY.replace("layers: 2", "layers: 1").replace("heads: 2", "heads: 1");
    std::fs::write(folder.path().join("one.yaml"), text).unwrap();
    for arguments in [["explain", "one.yaml"], ["draw", "one.yaml"], ["compare", "one.yaml"]] {
        let mut arguments = arguments.to_vec();
        if arguments[0] == "compare" {
            arguments.push("@gpt2-small");
        }
        if arguments[0] == "draw" {
            arguments.extend(["--format", "mermaid"]);
        }
        let arguments: Vec<String> = arguments.iter().map(|a| a.replace("one.yaml", "./one.yaml")).collect();
        let said = trafoc_in(folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{}", said.err);
        for wrong in [" 1 blocks", " 1 layers", ">1 heads", " 1 heads"] {
            assert!(!said.out.contains(wrong), "{arguments:?}: {wrong}: {}", said.out);
        }
    }
}

#[test]
fn what_a_spec_lacks_is_missing_in_the_spec_and_not_in_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), TINY.replace("vocab", "# vocab")).unwrap();
    std::fs::write(folder.path().join("b.yaml"), "extends: a.yaml\nname: b\n").unwrap();
    for arguments in
        [["check", "a.yaml", "--set", "context=9"], ["check", "a.yaml", "--set", "decoder={layers: 2}"]]
    {
        let said = trafoc_in(folder.path(), &arguments);
        assert!(said.err.contains("the spec needs `vocab`\n --> a.yaml:"), "{}", said.err);
    }
    let said = trafoc_in(folder.path(), &["check", "b.yaml"]);
    assert!(said.err.contains("the spec needs `vocab`\n --> b.yaml:"), "{}", said.err);
}

/// Lines with the same fault are one error, which names the variant for which the recipe was written.
#[cfg(feature = "learn")]
#[test]
fn the_variant_that_a_recipe_is_for_is_named() {
    let said = trafoc(&["check", "@vit", "--recipe", "@vit"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert_eq!(said.err.matches("error[").count(), 1, "{}", said.err);
    let help = "help: with `--variant digits` there is no such error";
    for part in ["lines 1 to 1000 and perhaps more: ", help] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let said = trafoc(&["check", "@vit", "--recipe", "@vit", "--variant", "digits"]);
    assert_eq!(said.code, 0, "{}", said.err);
}
