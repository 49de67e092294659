//! Configuration files: which are read, what takes precedence over what, and what is wrong with one.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::Printed;

/// The program in a folder below `root`, with `root/own` as the folder of the user's files.
fn in_folder(root: &Path, folder: &str) -> Command {
    let mut command = super::program();
    command.current_dir(root.join(folder)).env("XDG_CONFIG_HOME", root.join("own"));
    for variable in ["NO_CONFIG", "DEVICE", "FAMILIES", "THREADS"] {
        command.env_remove(format!("TRAFOC_{variable}"));
    }
    command
}

fn said(command: &mut Command, arguments: &[&str]) -> Printed {
    command.args(arguments).output().unwrap().into()
}

/// A root with a file of the user and one of a project, and folders inside of the project and next to it.
fn root(own: &str, project: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["own/trafoc", "project/inner/most", "next"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    std::fs::write(root.path().join("own/trafoc/config.toml"), own).unwrap();
    std::fs::write(root.path().join("project/trafoc.toml"), project).unwrap();
    root
}

/// The value of a setting and what says so, as `trafoc config` prints them.
fn setting(command: &mut Command, key: &str) -> (String, String) {
    let said = said(command, &["config", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.out);
    let envelope: Json = serde_json::from_str(&said.out).unwrap();
    let all = envelope["data"]["settings"].as_array().unwrap();
    let found = all.iter().find(|setting| setting["key"] == key).unwrap();
    let text = |name: &str| found[name].as_str().unwrap_or("null").to_owned();
    (text("value"), text("origin"))
}

#[test]
fn the_nearest_says_it_first() {
    let root = root("color = 'always'\nthreads = 3\n", "# A comment.\nthreads = 2\nfamilies = 'mine'\n");
    let at = |path: &str| root.path().canonicalize().unwrap().join(path).display().to_string();
    let of = |folder: &str, key: &str| setting(&mut in_folder(root.path(), folder), key);
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(of("project", "threads"), pair("2", "trafoc.toml:2"));
    let (two, origin) = of("project/inner/most", "threads");
    assert!(two == "2" && origin.ends_with("project/trafoc.toml:2"), "{origin}");
    // A path is relative to the file that says it, and not to the working folder.
    assert_eq!(of("project/inner", "families").0, at("project/mine"));
    let (three, origin) = of("next", "threads");
    assert!(three == "3" && origin.ends_with("own/trafoc/config.toml:2"), "{origin}");
    assert_eq!(of("project", "color").0, "always");
    assert_eq!(of("next", "families"), pair("null", "default"));
    // A variable takes precedence over both files, unless it is empty.
    let with =
        |value: &str| setting(in_folder(root.path(), "project").env("TRAFOC_THREADS", value), "threads");
    assert_eq!(with("5"), pair("5", "TRAFOC_THREADS"));
    assert_eq!(with(""), pair("2", "trafoc.toml:2"));
    // Neither file is read.
    assert_eq!(
        setting(in_folder(root.path(), "project").arg("--no-config"), "threads"),
        pair("null", "default")
    );
    let off = setting(in_folder(root.path(), "project").env("TRAFOC_NO_CONFIG", "1"), "color");
    assert_eq!(off, pair("auto", "default"));
    let doctor = said(&mut in_folder(root.path(), "project"), &["doctor"]);
    assert!(doctor.out.contains("\nconfig       read: trafoc.toml, "), "{}", doctor.out);
    let printed = said(&mut in_folder(root.path(), "project"), &["config"]);
    assert!(printed.out.contains("\nthreads   2 "), "{}", printed.out);
}

/// Colour is where a value of a file is used before and after the command line is parsed.
#[test]
fn a_file_gives_an_option_its_value() {
    let root = root("", "color = 'always'\n");
    let is_coloured = |variable: &str, arguments: &[&str]| {
        let mut command = in_folder(root.path(), "project/inner");
        said(command.env("TRAFOC_COLOR", variable), arguments).err.contains('\u{1b}')
    };
    let wrong = ["check", "@gpt1", "--set", "vocab=many"];
    let never = [&wrong[..], &["--color", "never"]].concat();
    let before = [&["--color", "never"], &wrong[..]].concat();
    assert!(is_coloured("", &wrong) && !is_coloured("never", &wrong));
    assert!(!is_coloured("", &never) && !is_coloured("", &before));
    assert!(is_coloured("", &["chekc"]) && !is_coloured("", &["chekc", "--no-config"]));
    // What is printed for all machines does not say what this one is set to.
    let help = |folder: &str| {
        said(&mut in_folder(root.path(), folder), &["check", "--help", "--color", "never"]).out
    };
    assert_eq!(help("project"), help("next"));
}

/// As a variable, a file is meant for every command, so that one that has no use for it does not refuse it.
#[test]
fn a_folder_of_families_matters_where_one_is_needed() {
    let root = root("", "families = 'nowhere'\n");
    let model = root.path().join("next/config.json");
    std::fs::write(&model, r#"{"model_type": "gpt2"}"#).unwrap();
    let none = said(&mut in_folder(root.path(), "project"), &["check", "@gpt1"]);
    assert_eq!(none.code, 0, "{}", none.err);
    let families = said(&mut in_folder(root.path(), "project"), &["check", model.to_str().unwrap()]);
    assert_eq!(families.code, 4, "{}", families.err);
    assert!(families.err.contains("help: trafoc.toml:1 says `"), "{}", families.err);
    if cfg!(feature = "interp") {
        std::fs::write(root.path().join("project/trafoc.toml"), "device = 'bogus'\nthreads = 1\n").unwrap();
        std::fs::write(root.path().join("project/in.json"), r#"{"tokens": [[1, 2]]}"#).unwrap();
        let run = ["run", "@gbt-mulm", "--inputs", "in.json"];
        let device = said(&mut in_folder(root.path(), "project"), &run);
        assert!(device.err.contains("help: trafoc.toml:1 says `bogus`"), "{}", device.err);
        let given = said(in_folder(root.path(), "project").env("TRAFOC_DEVICE", "auto"), &run);
        assert_eq!(given.code, 0, "{}", given.err);
        // Nothing is run.
        let compared = said(&mut in_folder(root.path(), "project"), &["compare", "@gpt1", "@gpt2-small"]);
        assert_eq!(compared.code, 0, "{}", compared.err);
    }
}

#[test]
fn a_wrong_file_is_shown_with_its_place() {
    let cases = [
        ("colour = 'never'", "unknown-key", "1:1", "did you mean `color`?"),
        ("# one\ndevcie = 'cuda'", "unknown-key", "2:1", "did you mean `device`?"),
        ("steps = 100", "unknown-key", "1:1", "in a spec or in a recipe"),
        ("[color]\nwhen = 'never'", "wrong-kind", "1:1", "expected a word in quotes, found a table"),
        ("color = true", "wrong-kind", "1:9", "write it as in `color = \"never\"`"),
        ("color = 'alway'", "unknown-word", "1:9", "did you mean `always`?"),
        ("color = never", "syntax", "1:9", "write `\"never\"`"),
        ("threads =", "syntax", "1:10", "a value is missing"),
        ("threads = '4'", "wrong-kind", "1:11", "expected a whole number, found a text"),
        ("threads = 0", "out-of-range", "1:11", "from 1 to 65535"),
        ("threads = -1", "out-of-range", "1:11", "from 1 to 65535"),
        ("device = ''", "out-of-range", "1:10", "leave the line out"),
        ("device = 'a'\ndevice = 'b'", "duplicate-key", "2:1", "`device` is given twice"),
        ("device = 'a", "syntax", "1:12", "literal string"),
        ("device = \"\\u0000\"", "hidden-character", "1:10", "NUL character"),
        ("device = 'a\u{202e}b'", "hidden-character", "1:12", "U+202E"),
    ];
    let root = root("", "");
    for (text, code, place, part) in cases {
        std::fs::write(root.path().join("project/trafoc.toml"), text).unwrap();
        for line in [["config", "--color=auto"], ["check", "@gpt1"]] {
            let said = said(&mut in_folder(root.path(), "project"), &line);
            assert_eq!(said.code, 2, "{text}: {}", said.err);
            assert!(said.err.starts_with(&format!("error[{code}]: ")), "{text}: {}", said.err);
            assert!(said.err.contains(&format!(" --> trafoc.toml:{place}\n")), "{text}: {}", said.err);
            assert!(said.err.contains(part), "{text} lacks {part}: {}", said.err);
            assert!(said.out.is_empty() && said.err.contains("help: `--no-config` reads no"), "{}", said.err);
        }
    }
    let json = said(&mut in_folder(root.path(), "project"), &["config", "--format", "json"]);
    let envelope: Json = serde_json::from_str(&json.out).unwrap();
    assert_eq!(envelope["status"], "usage");
    assert_eq!(envelope["diagnostics"][0]["labels"][0]["file"], "trafoc.toml");
    // Both files are shown, and help needs neither.
    std::fs::write(root.path().join("own/trafoc/config.toml"), "color = 3").unwrap();
    let both = said(&mut in_folder(root.path(), "project"), &["config"]);
    assert!(both.err.contains("trafoc.toml` and `") && both.err.contains("have 2 errors"), "{}", both.err);
    assert_eq!(said(&mut in_folder(root.path(), "project"), &["--help"]).code, 0);
    assert_eq!(said(&mut in_folder(root.path(), "project"), &["config", "--no-config"]).code, 0);
}

#[test]
fn what_is_no_small_file_is_refused() {
    let root = root("", "");
    let file = root.path().join("project/trafoc.toml");
    let refused = |why: &str| {
        let said = said(&mut in_folder(root.path(), "project"), &["check", "@gpt1"]);
        let first = format!("error: cannot read `trafoc.toml`: {why}\n");
        assert!(said.code == 4 && said.err.starts_with(&first), "{}", said.err);
    };
    std::fs::write(&file, " ".repeat(64 << 10)).unwrap();
    assert_eq!(said(&mut in_folder(root.path(), "project"), &["check", "@gpt1"]).code, 0);
    std::fs::write(&file, " ".repeat((64 << 10) + 1)).unwrap();
    refused("it is longer than 65536 bytes");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused("it is a folder");
    #[cfg(unix)]
    {
        std::fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        refused("it is a device, and must be an ordinary file");
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        refused("it is a link to a file that does not exist");
    }
}

/// Every option with a variable is a setting, and every setting an option of some command.
#[test]
fn settings_are_the_options_with_variables() {
    let root = root("", "");
    let listed = said(&mut in_folder(root.path(), "next"), &["config", "--format", "json"]);
    let envelope: Json = serde_json::from_str(&listed.out).unwrap();
    let all = envelope["data"]["settings"].as_array().unwrap();
    let help = said(&mut in_folder(root.path(), "next"), &["config", "--help"]).out;
    let grammar = trafoc::cli::grammar(&[]);
    fn arguments(command: &clap::Command) -> Vec<clap::Arg> {
        let below = command.get_subcommands().flat_map(arguments);
        command.get_arguments().cloned().chain(below).collect()
    }
    let options = arguments(&grammar);
    for setting in all {
        let (key, variable) = (setting["key"].as_str().unwrap(), setting["variable"].as_str().unwrap());
        assert!(options.iter().any(|option| option.get_long() == Some(key)), "--{key}");
        assert!(help.contains(&format!("--{key}, {variable}")), "{help}");
    }
    for option in options.iter().filter(|option| option.get_env().is_some()) {
        let row = all.iter().find(|setting| option.get_long() == setting["key"].as_str());
        let row = row.unwrap_or_else(|| panic!("{:?} is no setting", option.get_long()));
        assert_eq!(option.get_env().unwrap().to_str(), row["variable"].as_str());
    }
}

/// Other variables about colour take precedence over files, and a number of threads that is none is not shown as one.
#[test]
fn variables_come_before_files() {
    let root = root("", "color = \"always\"\n");
    let of = |variable: &str| setting(in_folder(root.path(), "project").env(variable, "1"), "color").0;
    assert_eq!(setting(&mut in_folder(root.path(), "project"), "color").0, "always");
    assert_eq!(of("NO_COLOR"), "auto");
    let said = said(in_folder(root.path(), "project").env("NO_COLOR", "1"), &["check", "nowhere.yaml"]);
    assert!(!said.err.contains('\u{1b}'), "{}", said.err);
    for wrong in ["0", "65536", "many"] {
        let mut command = in_folder(root.path(), "project");
        let said = super::settings::said(command.env("TRAFOC_THREADS", wrong), &["config"]);
        assert!(said.code == 2 && said.err.contains("whole number from 1 to 65535"), "{}", said.err);
    }
}
