//! Command lines as shells write them: variables, aliases, streams and names of files.

use serde_json::Value as Json;

use super::{TINY, program, trafoc, trafoc_given, trafoc_in};

#[test]
fn a_variable_that_is_empty_is_not_set() {
    for name in ["TRAFOC_COLOR", "TRAFOC_FAMILIES", "TRAFOC_DEVICE", "TRAFOC_THREADS", "TRAFOC_NO_CONFIG"] {
        let output = program().env(name, "").args(["check", "@gpt1"]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let wrong = program().env("TRAFOC_COLOR", "green").args(["check", "@gpt1"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// So that an alias such as `trafoc --color never` can be overridden.
#[test]
fn the_last_of_equal_options_counts() {
    let last = |words: [&str; 2]| {
        let line = ["--color", words[0], "check", "@gpt1", "--set", "vocab=many", "--color", words[1]];
        trafoc(&line).err.contains('\u{1b}')
    };
    assert!(last(["never", "always"]));
    assert!(!last(["always", "never"]));
    assert_eq!(trafoc(&["check", "-q", "-q", "--strict", "--strict", "@gpt1"]).code, 0);
    let both = trafoc(&["check", "@gpt1", "--set", "vocab=many", "--set", "context=many"]);
    assert!(both.err.contains("--set #1") && both.err.contains("--set #2"), "{}", both.err);
}

#[test]
fn a_minus_is_stdout_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (line, begins) in [
        (vec!["draw", "@gbt-mulm", "-o", "-"], "<svg"),
        (vec!["convert", "@gbt-mulm", "--out", "-"], "#"),
        (vec!["build", "@gbt-mulm", "-o", "-"], "//"),
    ] {
        let said = trafoc_in(folder.path(), &line);
        assert!(said.out.starts_with(begins), "{line:?}: {}", said.out.chars().take(80).collect::<String>());
    }
    let page = trafoc_in(folder.path(), &["compare", "@gbt-mulm", "@gpt1", "--html", "-"]);
    assert_eq!(page.code, 2, "{}", page.err);
    assert!(page.err.contains("`-` means stdout"), "{}", page.err);
    let picture = trafoc_in(folder.path(), &["compare", "@gbt-mulm", "@gpt1", "--html", "both.svg"]);
    assert_eq!(picture.code, 2, "{}", picture.err);
    assert!(picture.err.contains("a page is written as .html"), "{}", picture.err);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn stdin_is_given_once() {
    let said = trafoc_given(TINY, &["compare", "-", "-"]);
    assert_eq!(said.code, 4);
    assert!(said.err.contains("stdin can be given once"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn a_name_of_a_file_begins_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let name = "new\nline.yaml";
    std::fs::write(folder.path().join(name), "vocab: many\n").unwrap();
    let short = trafoc_in(folder.path(), &["check", "--format", "short", name]);
    let found: Vec<&str> = short.err.lines().filter(|line| line.contains("error[")).collect();
    assert!(found.len() > 1, "{}", short.err);
    assert!(found.iter().all(|line| line.starts_with("new\\nline.yaml:1:")), "{}", short.err);
    let long = trafoc_in(folder.path(), &["check", name]);
    assert!(long.err.contains("error: `new\\nline.yaml` has "), "{}", long.err);
    assert!(long.err.contains(" --> new\\nline.yaml:1:"), "{}", long.err);
}

/// `/dev/full` refuses every byte, as a disk that is full does.
#[cfg(target_os = "linux")]
#[test]
fn help_that_was_not_written_is_a_failure() {
    for word in ["--help", "--version"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program().arg(word).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{word}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
    }
}

#[test]
fn a_layer_without_attention_is_told_from_those_with_it() {
    let said = trafoc(&["inspect", "attention", "@d2l-nmt", "--kind", "cross", "--layer", "9"]);
    assert_eq!(said.code, 2);
    for part in ["of the kind `cross` at layer 9", "`--kind encoder` at layers 0 to 1"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn the_machine_is_described() {
    let said = trafoc(&["doctor"]).out;
    for label in ["trafoc ", "threads ", "memory ", "disk ", "encoding "] {
        assert!(said.lines().any(|line| line.starts_with(label)), "{label}: {said}");
    }
}

/// clap does not require an option that another one excludes: what requires it would be taken and have no effect. So it
/// excludes the same options.
#[test]
fn what_requires_an_option_excludes_what_that_one_excludes() {
    use clap::CommandFactory as _;
    fn check(command: &clap::Command, found: &mut usize) {
        let excludes = |one: &clap::Arg, other: &clap::Arg| {
            let has =
                |a, b: &clap::Arg| command.get_arg_conflicts_with(a).iter().any(|c| c.get_id() == b.get_id());
            has(one, other) || has(other, one)
        };
        for argument in command.get_arguments() {
            // Only what clap prints for debugging says what an argument requires.
            let text = format!("{argument:?}");
            let (_, rest) = text.split_once(" requires: [").expect("another form of clap's arguments");
            let required: Vec<&str> = rest.split(']').next().unwrap().split('"').skip(1).step_by(2).collect();
            for name in required {
                *found += 1;
                let required = command.get_arguments().find(|a| a.get_id() == name).unwrap();
                for other in command.get_arguments().filter(|other| excludes(required, other)) {
                    let (option, excluded) = (argument.get_id(), other.get_id());
                    assert!(
                        excludes(argument, other),
                        "{}: `{option}` with `{excluded}`",
                        command.get_name()
                    );
                }
            }
        }
        command.get_subcommands().for_each(|below| check(below, found));
    }
    let mut found = 0;
    check(&trafoc::cli::Cli::command(), &mut found);
    assert!(found > 8, "{found}");
}

/// What a wrong command line says: each case is the line, words that it must say, and words that it must not.
#[test]
fn a_wrong_command_line_says_what_was_meant() {
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&["generate", "run", "--count", "0"], &["a whole number from 1 to 1,000,000"], &["..="]),
        (&["generate", "run", "--count", "-1"], &["a whole number from 1 to 1,000,000"], &["unexpected"]),
        (&["show", "@gpt1", "--depth", "many"], &["a whole number, 1 or more"], &["digit"]),
        (&["run", "@gpt1", "--seed=1.5"], &["a whole number, 0 or more"], &["digit"]),
        (
            &["train", "@gbt-mulm"],
            &["--out", "for example: trafoc train gpt.yaml --recipe recipe.yaml --out run"],
            &[],
        ),
        // The example of `generate` has no beam.
        (&["generate", "run", "--length-penalty", "2"], &["--beam <WIDTH>"], &["for example"]),
        // What `--temperature` excludes is still missing.
        (
            &["generate", "run", "--length-penalty", "2", "--temperature", "0"],
            &["'--length-penalty <X>'"],
            &[],
        ),
        (&["generate", "run", "--codebook", "c.json", "--checkpoint", "best"], &["'--codebook <FILE>'"], &[]),
        (&["draw", "@gpt1", "@bert-base"], &["`draw` takes one SPEC", "`compare`"], &[]),
        (&["completions", "pwsh"], &["'powershell'"], &[]),
        (&["expand", "@gpt1", "--watch"], &["`draw` have it"], &["similar"]),
        (&["check", "@gpt1", "--fix"], &["help:"], &[]),
        (&["build", "@gpt1", "--epochs=3"], &["--with epochs=3"], &[]),
        (&["check", "@gpt1", "--features", ""], &["`trafoc doctor` lists those of this program"], &[]),
        (&["check", "@gpt1", "--fail-if"], &["`trafoc compare @gpt1 --fail-if CONDITION`"], &[]),
        (
            &["check", "@gpt1", "--fail-if", "params > 8B"],
            &["`trafoc compare @gpt1 --fail-if 'params > 8B'`"],
            &[],
        ),
        (
            &["check", "@gpt1", "--strict", "--fail-if"],
            &["tip: `compare` has `--fail-if`\n"],
            &["trafoc compare"],
        ),
        (&["runs"], &["'inspect'"], &["'run'"]),
        (&["info", "@gpt1"], &["'check'"], &["doctor"]),
        (&["parameters", "@gpt1"], &["'show'"], &[]),
        (&["migrate", "a.yaml"], &["'fmt'"], &[]),
        (&["list"], &["`trafoc check @` lists the shipped specs"], &["similar"]),
        (&["print", "graf", "@gpt1"], &["'graph'"], &[]),
        (&["inspect", "weights", "@gpt1"], &["`trafoc inspect attention` shows", "`init`"], &["similar"]),
        (&["inspect", "flow", "run", "--position", "2"], &["it is `--target N` here"], &["key of specs"]),
        (&["build", "@gpt1", "--position", "2"], &[], &["--target"]),
        (&["new", "mamba"], &["`attention: mamba` in a spec", "`trafoc import DIR`"], &[]),
        (&["check", ""], &["a value is required"], &["cannot read"]),
        (
            &["train", "@gpt1", "--resume", "run1"],
            &["`--resume` takes no value", "`trafoc train --resume --out run1`"],
            &["takes one SPEC"],
        ),
        (&["train", "--resume", "run1"], &["`trafoc train --resume --out run1`"], &["for example"]),
        (
            &["train", "--resume", "run1", "run2", "--out", "run3"],
            &["`trafoc train --resume --out run3`"],
            &[],
        ),
        (&["explain", "codebook"], &["`trafoc inspect --codebook`", "`trafoc inspect --help`"], &["schema"]),
        (
            &["import", "--families", "/nonexistent", "."],
            &["`/nonexistent`", "no such folder"],
            &["config.json"],
        ),
        (&["fmt", "--families", "/nonexistent", "specs/gpt1.yaml"], &["no such folder"], &[]),
        // A result that has no option for its file. `--to` of `expand` is a notation.
        (&["expand", "@gpt1", "-o", "f.yaml"], &["the result of `expand` goes to stdout"], &["-- -o"]),
        (&["expand", "@gpt1", "--output", "f.yaml"], &["so `> FILE` writes it to a file"], &["--to"]),
        (&["schema", "--out=f.json"], &["the result of `schema` goes to stdout"], &["`build`"]),
        (&["fmt", "f.yaml", "-o", "g.yaml"], &["`--write` changes the files"], &["-- -o"]),
        (&["new", "gpt", "-o", "f.yaml"], &["`trafoc new gpt gpt.yaml`"], &["-- -o"]),
        (&["export", "@gpt1", "-o", "folder"], &["it is `--to` here"], &["-- -o"]),
        (&["train", "@gpt1", "--output", "folder"], &["it is `--out` here"], &[]),
        (&["convert", "--families", "/nonexistent", "specs/gpt1.yaml"], &["no such folder"], &[]),
        // A word where the command takes none, and the option that it is a value of.
        (&["check", "@gpt1", "decoder.layers=4"], &["`--set decoder.layers=4` changes a value"], &[]),
        (&["show", "@gpt1", "decoder.layers=4"], &["`--set decoder.layers=4` changes a value"], &["several"]),
        (&["fit", "@gpt1", "1e6"], &["`--params 1e6`"], &["several"]),
        (&["draw", "@gpt1", "a.svg"], &["`--out a.svg` writes to a file"], &["several"]),
        (&["export", "@gpt1", "folder"], &["`--to folder` names the folder"], &["several"]),
        (&["train", "@gpt1", "@gpt1.sentences"], &["`--recipe @gpt1.sentences`"], &["several"]),
        (&["predict", "run", "a text"], &["`--text 'a text'` gives a text"], &["takes one"]),
        // A key of the spec is no option.
        (&["check", "--layers", "4", "@gpt1"], &["`layers` is a key of specs: `--set PATH=VALUE`"], &[]),
        (
            &["eval", "run", "--limit", "3"],
            &["`--with data.limit=VALUE` or `--with evaluate.limit=VALUE`"],
            &[],
        ),
        (&["check", "@gpt1", "--context", "4"], &["`--set context=VALUE` changes it"], &["PATH"]),
        (&["new", "gpt", "--kv-heads", "4"], &["`kv_heads` is a key of specs: it is written there"], &[]),
        // A model in the place of what is shown of it, and other names for that.
        (&["inspect", "@gpt1"], &["`trafoc inspect positions @gpt1`"], &[]),
        (&["print", "@gpt1"], &["`trafoc print tree @gpt1`"], &["similar"]),
        (&["inspect", "heads", "@gpt1"], &["'attention'"], &[]),
        (&["inspect", "loss", "run"], &["'training'"], &[]),
    ];
    for (line, has, lacks) in cases {
        let said = trafoc(line);
        assert!(said.code == 2 || said.code == 4, "{line:?}: {}", said.err);
        has.iter().for_each(|word| assert!(said.err.contains(word), "{line:?} lacks {word}: {}", said.err));
        lacks.iter().for_each(|word| assert!(!said.err.contains(word), "{line:?} has {word}: {}", said.err));
    }
}

#[test]
fn a_wrong_variable_is_named() {
    let said = |name, line: &[&str]| {
        let output = program().env(name, "bogus").args(line).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let color = said("TRAFOC_COLOR", &["check", "@gpt1"]);
    assert!(color.contains("for 'TRAFOC_COLOR'") && !color.contains("--color"), "{color}");
    let both = said("TRAFOC_COLOR", &["check", "@gpt1", "--color", "blue"]);
    assert!(both.contains("--color") && !both.contains("TRAFOC_COLOR"), "{both}");
    // An option takes precedence over its variable, before the command and after it.
    let line = ["check", "@gpt1", "--color", "never"];
    for at in [0, 2] {
        let mut line = line.to_vec();
        line.rotate_left(at);
        let output = program().env("TRAFOC_COLOR", "bogus").args(&line).output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Only where a family is needed.
    let none = said("TRAFOC_FAMILIES", &["check", "@gpt1"]);
    assert!(!none.contains("bogus") && !none.contains("error"), "{none}");
    let model = tempfile::tempdir().unwrap();
    std::fs::write(model.path().join("config.json"), r#"{"model_type": "gpt2"}"#).unwrap();
    let families = said("TRAFOC_FAMILIES", &["check", model.path().to_str().unwrap()]);
    assert!(families.contains("`bogus`") && families.contains("TRAFOC_FAMILIES"), "{families}");
    if cfg!(feature = "interp") {
        let folder = tempfile::tempdir().unwrap();
        let inputs = folder.path().join("inputs.json");
        std::fs::write(&inputs, r#"{"tokens": [[1, 2]]}"#).unwrap();
        let device = said("TRAFOC_DEVICE", &["run", "@gbt-mulm", "--inputs", inputs.to_str().unwrap()]);
        assert!(device.contains("`TRAFOC_DEVICE` says `bogus`"), "{device}");
    }
}

/// On a terminal that shows no UTF-8, what is wrong with a command line has no signs either, and keeps its colours.
#[cfg(target_os = "linux")]
#[test]
fn a_wrong_command_line_follows_the_locale() {
    let Ok(run) = std::process::Command::new("script").arg("--version").output() else { return };
    assert!(run.status.success());
    let said = |locale: &str| {
        let mut script = crate::compiled::alone("script");
        let line = format!("{} check --\u{2026}", crate::compiled::PROGRAM);
        let variables = script.args(["-qec", &line, "/dev/null"]).env("LC_ALL", locale).env("TERM", "xterm");
        let output = variables.env_remove("NO_COLOR").stdin(std::process::Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (plain, utf8) = (said("C"), said("C.UTF-8"));
    assert!(plain.is_ascii() && plain.contains("--..."), "{plain:?}");
    assert!(utf8.contains("--\u{2026}"), "{utf8:?}");
    assert!(plain.contains("\u{1b}[") && utf8.contains("\u{1b}["), "{plain:?}\n{utf8:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        vec!["build", "@gbt-mulm", "-o", "/dev/null"],
        vec!["build", "@gbt-mulm", "--target", "pytorch", "-o", "/dev/null"],
        vec!["draw", "@gbt-mulm", "-o", "/dev/null"],
        vec!["convert", "@gbt-mulm", "-o", "/dev/null"],
    ] {
        let said = trafoc_in(folder.path(), &line);
        assert_eq!(said.code, 0, "{line:?}: {}", said.err);
    }
    let said = trafoc_in(folder.path(), &["build", "@gbt-mulm", "-q", "-o", "/dev/stdout"]);
    assert!(said.out.starts_with("//"), "{}{}", said.out, said.err);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

/// A pipe is read once, so no command that reads it again is advised.
#[cfg(target_os = "linux")]
#[test]
fn no_command_is_advised_with_a_pipe() {
    let trafoc = crate::compiled::PROGRAM;
    for command in ["check", "build -o /dev/null"] {
        let line = format!("{trafoc} {command} <({trafoc} expand @gbt-mulm)");
        let output = crate::compiled::alone("bash").args(["-c", &line]).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !err.contains("next:"), "{err}");
    }
    // A recipe is read once from there as well.
    let recipe = "recipe: 1\ndata: {format: lines, train: \"@isimler.txt\"}\ntokens: {characters: {boundary: \".\"}}\nsteps: 1\n";
    let said = trafoc_given(recipe, &["check", "@gbt-mulm", "--recipe", "-"]);
    assert!(!said.err.contains("next:"), "{}", said.err);
    #[cfg(feature = "learn")]
    assert_eq!(said.code, 0, "{}", said.err);
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf_8_is_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let name = std::ffi::OsStr::from_bytes(b"n\xff.yaml");
    let output = program().arg("check").arg(name).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("`n\u{fffd}.yaml`"), "{err}");
}

/// In a terminal, where both streams are one text, the command that comes next is its last line.
#[test]
fn the_next_command_comes_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("terminal.txt");
    for arguments in [["check", "@gpt2-small"].as_slice(), &["build", "@gpt2-small", "--out", "m.rs"]] {
        let file = std::fs::File::create(&path).unwrap();
        let mut program = program();
        program.args(arguments).current_dir(folder.path());
        let status = program.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(status.success(), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("next: ")), "{text}");
        assert_eq!(text.matches("next: ").count(), 1, "{text}");
    }
}

/// Of several specs, one that cannot be read is no silent failure, in no format.
#[test]
fn a_spec_that_cannot_be_read_is_told_among_others() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("tiny.yaml", TINY);
    write("wrong.yaml", &format!("{TINY}vocap: 3\n"));
    write("w.yaml", TINY);
    let check = |more: &[&str]| {
        let said = trafoc_in(folder.path(), &[&["check", "tiny.yaml", "tinny.yaml"], more].concat());
        assert_eq!(said.code, 4, "{more:?}: {}", said.err);
        said
    };
    let why = "cannot read `tinny.yaml`: there is no such file";
    let help = "did you mean `tiny.yaml`?";
    for more in [&[][..], &["-q"], &["--format", "short"]] {
        let said = check(more);
        assert!(said.err.contains(why) && said.err.contains(help), "{more:?}: {}", said.err);
        assert!(!said.out.contains(why), "{more:?}: {}", said.out);
    }
    let said = check(&["--format", "github"]);
    assert_eq!(said.out, format!("::error::{why}%0Ahelp: {help}\n"));
    let json = |more: &[&str]| serde_json::from_str::<Json>(&check(more).out).unwrap();
    let log = json(&["--format", "sarif"]);
    let told = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(told[0]["message"]["text"], format!("{why}\n{help}"));
    let data = json(&["--format", "json"]);
    let spec = &data["data"]["specs"][1];
    assert_eq!((&spec["error"], &spec["help"][0]), (&Json::from(why), &Json::from(help)));
    // An ending that files have in common makes their names not similar.
    let said = trafoc_in(folder.path(), &["check", "pi.yaml"]);
    assert!(said.code == 4 && !said.err.contains("did you mean"), "{}", said.err);
    // What diagnostics have said is not repeated in a report of them.
    let said = trafoc_in(folder.path(), &["check", "tiny.yaml", "wrong.yaml", "--format", "github"]);
    assert!(said.code == 1 && said.out.lines().count() == 1, "{}", said.out);
}

/// A folder of another version is no run of this one, and anything else of that name is not one either.
#[test]
fn a_run_of_another_version_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let step =
        r#"{"step": 1, "loss": 2.0, "rate": 0.1, "norm": null, "targets": 1, "tokens": 1, "seconds": 1.0}"#;
    std::fs::write(run.join("metrics.jsonl"), format!("{step}\n")).unwrap();
    let said = |marker: &str| {
        std::fs::write(run.join("run.json"), marker).unwrap();
        trafoc_in(folder.path(), &["inspect", "training", "run"])
    };
    let now = said(r#"{"format": "trafoc-run/1", "name": "small"}"#);
    assert_eq!(now.code, 0, "{}", now.err);
    for (marker, why) in [
        (
            // What it says otherwise is that version's matter.
            r#"{"format": "trafoc-run/9", "names": ["small"]}"#,
            "it has the format `trafoc-run/9`, and this version of trafoc reads `trafoc-run/1`",
        ),
        (r#"{"name": "small"}"#, "`format` is missing"),
        ("{", "it is not JSON"),
    ] {
        let said = said(marker);
        assert_eq!(said.code, 4, "{}", said.err);
        assert!(said.err.starts_with(&format!("error: cannot read `run/run.json`: {why}")), "{}", said.err);
        assert!(said.err.contains("help: the version of trafoc that has written"), "{}", said.err);
    }
}

/// What a report refuses whatever the model is, is not in its help, and what is there is not refused for that.
#[test]
fn the_help_of_a_report_has_its_own_options_alone() {
    let options = [
        ("--text", "a"),
        ("--labels", "a"),
        ("--source-labels", "a"),
        ("--layer", "0"),
        ("--head", "0"),
        ("--kind", "decoder"),
        ("--target", "0"),
        ("--against", "@gbt-mulm"),
        ("--seed", "1"),
    ];
    let mut hidden = Vec::new();
    for report in ["init", "attention", "steps", "norms", "flow", "layers"] {
        let help = trafoc(&["inspect", report, "--help"]).out;
        for (option, value) in options {
            let mut arguments = vec!["inspect", report, "@gbt-mulm", option, value];
            if report != "init" && option != "--text" {
                arguments.extend(["--inputs", "{\"tokens\": [[1]]}"]);
            }
            let is_refused =
                trafoc(&arguments).err.contains(&format!("error: {option} would have no effect: "));
            let is_listed = help.contains(&format!("{option} <"));
            assert_eq!(is_listed, !is_refused, "{arguments:?}");
            if !is_listed {
                hidden.push(format!("{report} {option}"));
            }
        }
    }
    assert_eq!(hidden.len(), 16, "{hidden:?}");
    assert!(hidden.contains(&"attention --target".to_owned()), "{hidden:?}");
}

#[test]
fn a_variant_of_a_grid_is_found_by_its_parts_in_any_order() {
    let grid = format!(
        "{TINY}sweep:\n  grid:\n    d_model: [16, 32]\n    decoder.layers: [2, 3]\n    \
         decoder.norm: [{{rms_norm: {{eps: 1e-6}}}}, layer_norm]\n"
    );
    let said = |name: &str| trafoc_given(&grid, &["print", "spec", "-", "--variant", name]);
    let wanted = said("d_model=16,decoder.layers=3,decoder.norm={rms_norm: {eps: 1e-6}}");
    assert!(wanted.out.contains("d_model = 16\n") && wanted.out.contains("layers = 3\n"), "{}", wanted.err);
    for name in [
        "decoder.norm={rms_norm: {eps: 1e-6}},decoder.layers=3,d_model=16",
        // The names that comparisons show.
        "layers=3, norm={rms_norm:{eps:1e-6}}, d_model=16",
        "16,3,{rms_norm: {eps: 1e-6}}",
    ] {
        let same = said(name);
        assert_eq!((same.code, &same.out), (0, &wanted.out), "{name}: {}", same.err);
    }
    for (name, tip) in [
        (
            "norm=layer_norm,d_model=32",
            "did you mean `d_model=32,decoder.layers=2,decoder.norm=layer_norm` or `d_model=32,",
        ),
        (
            "layers=3,norm=layer_norm,width=16",
            "did you mean `d_model=16,decoder.layers=3,decoder.norm=layer_norm` or `d_model=32,decoder.layers=3,",
        ),
        ("layers=7", "help: "),
    ] {
        let wrong = said(name);
        assert!(wrong.code == 2 && wrong.err.contains(tip), "{name}: {}", wrong.err);
    }
}

#[test]
fn a_file_of_another_kind_is_told_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Longer than any spec, so that its kind matters more than its length.
    let zip = [b"PK\x03\x04archive/data.pkl".to_vec(), vec![0xff; 2 << 20]].concat();
    std::fs::write(at("model.pt"), zip).unwrap();
    std::fs::write(at("old.bin"), b"\x80\x02}q\x00(X\x06\x00\x00\x00").unwrap();
    std::fs::write(at("model.gguf"), b"GGUF\x03\x00\x00\x00\x10\x00").unwrap();
    std::fs::write(at("spec.gz"), b"\x1f\x8b\x08\x00\x00\x00\x00\x00").unwrap();
    std::fs::write(at("data.parquet"), b"PAR1\x15\x04\x15\x1c\xff").unwrap();
    for (file, kind, help) in [
        ("tests/picture/alpha.png".to_owned(), "a PNG image", "`trafoc predict MODEL --image FILE`"),
        (
            "tests/numeric/attention-additive-all.safetensors".to_owned(),
            "a safetensors file",
            "`--weights FILE`",
        ),
        ("tests/sentencepiece/models/albert.model".to_owned(), "a tokenizer of SentencePiece", "`tokens`"),
        (at("model.pt"), "a zip archive", "if it is of PyTorch, a pickle may run code"),
        (at("old.bin"), "a Python pickle", "torch.load(sys.argv[1], weights_only=True)"),
        (at("model.gguf"), "a GGUF file", "`trafoc import DIR`"),
        (at("spec.gz"), "compressed with gzip", "unpack it"),
        (at("data.parquet"), "a Parquet file", "CSV or JSON lines"),
    ] {
        for line in [&["check", &file][..], &["check", "@gbt-mulm", "--recipe", &file]] {
            let said = trafoc(line);
            let first = format!("error[encoding]: the file is {kind}, and not a text\n--> {file}\n");
            assert!(said.err.starts_with(&first) && said.err.contains(help), "{line:?}: {}", said.err);
            assert_eq!((said.code, said.err.matches("error[").count()), (1, 1), "{line:?}: {}", said.err);
        }
    }
    // A text may begin with the letters of another kind.
    for begin in ["GGUF", "GIF89a", "%PDF-", "BZh9", "ustar"] {
        let said = trafoc_given(&format!("{begin}: 1\n{TINY}"), &["check", "-"]);
        assert!(said.err.starts_with("error[") && !said.err.contains("encoding"), "{begin}: {}", said.err);
    }
}

/// What comes next for a shipped spec is a training whose data is in the program, with the variant that the recipe is for.
#[test]
fn the_next_command_for_a_shipped_spec_can_be_run() {
    for (arguments, next) in [
        (&["check", "@vit"][..], "next: trafoc train @vit --variant digits --recipe @vit --out run"),
        (
            &["check", "@transformer"],
            "next: trafoc train @transformer --variant numbers --recipe @transformer.numbers --out run",
        ),
        (&["check", "@vit", "--set", "d_model=96"], "next: trafoc build @vit --set d_model=96"),
        (&["check", "@d2l-nmt"], "next: trafoc build @d2l-nmt"),
    ] {
        let said = trafoc(arguments);
        assert!(said.err.lines().any(|line| line == next), "{arguments:?}: {}", said.err);
    }
}
