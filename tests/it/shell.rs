//! What shells and their manual get: completions and pages.

use std::ffi::OsString;
use std::path::Path;

use crate::cli::{Printed, commands, trafoc, trafoc_in};

/// `PATH` with the program's folder first.
fn path() -> OsString {
    let own = Path::new(crate::compiled::PROGRAM).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).unwrap()
}

/// The example in the help of every command, pasted into a shell. Those of other kinds of models than the one
/// that is trained here are at least understood.
#[test]
fn examples_in_the_help_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &str| -> Printed {
        let mut command = crate::compiled::alone("bash");
        command.args(["--norc", "-c", script]).current_dir(folder.path());
        Printed::from(command.env("PATH", path()).env("HOME", folder.path()).output().unwrap())
    };
    let said = run(
        // Three steps take a moment, with a warmup that fits into them.
        "trafoc new gpt gpt.yaml --small && trafoc new recipe recipe.yaml && sed -i 's/^steps: .*/steps: 3/; s/warmup: [0-9]*/warmup: 1/' recipe.yaml && echo '{\"tokens\": [[1, 2]]}' > in.json",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let mut pages: Vec<Vec<String>> = commands().into_iter().map(|name| vec![name]).collect();
    let help = trafoc(&["inspect", "--help"]).out;
    let listed = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    // Deeper lines go on with a description.
    let kinds = listed.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let kinds = kinds.map(|l| l.split_whitespace().next().unwrap().to_owned());
    pages.extend(kinds.filter(|kind| kind != "help").map(|kind| vec!["inspect".to_owned(), kind]));
    let mut succeeded = Vec::new();
    for page in pages {
        let words: Vec<&str> = page.iter().map(String::as_str).collect();
        let help = trafoc(&[&words[..], &["--help"]].concat()).out;
        let example = help.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let example = example.strip_prefix("Example: ").unwrap_or_else(|| panic!("{page:?}: {help}"));
        let said = run(example);
        // A panic, or a command that the shell does not find.
        let is_understood = !matches!(said.code, 101 | 127) && !said.err.contains("\nUsage: ");
        assert!(is_understood, "{example}: {}", said.err);
        if said.code == 0 {
            succeeded.push(page.join(" "));
        }
    }
    let mut expected = vec![
        "new",
        "check",
        "build",
        "expand",
        "print",
        "explain",
        "show",
        "compare",
        "fit",
        "draw",
        "inspect",
        "fmt",
        "convert",
        "schema",
        "config",
        "doctor",
        "completions",
        "man",
        "inspect positions",
        "inspect init",
    ];
    if cfg!(feature = "flex") {
        expected.extend([
            "train",
            "reproduce",
            "eval",
            "generate",
            "inspect attention",
            "inspect flow",
            "inspect layers",
        ]);
    }
    for name in expected {
        assert!(succeeded.iter().any(|done| done == name), "the example of `{name}` fails");
    }
}

/// A page names other pages, such as `trafoc-inspect-data(1)`: they exist.
#[test]
fn the_manual_has_every_page_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let said = trafoc_in(folder.path(), &["man", "--out", "man1"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let pages: Vec<&str> = said.out.lines().map(|l| l.trim_start_matches("man1/")).collect();
    let mut named = 0;
    for page in &pages {
        let text = std::fs::read_to_string(folder.path().join("man1").join(page)).unwrap();
        // The third word of a title is its date, which a release does not have, and the fourth its source.
        let title = text.lines().find(|line| line.starts_with(".TH TRAFOC"));
        assert!(title.is_some_and(|line| line.contains(" 1 \"\" \"trafoc ")), "{page}: {title:?}");
        assert!(text.contains(".SH NAME") && text.contains("TRAFOC_COLOR"), "{page}");
        // In the language of manual pages, `\-` is a minus.
        let text = text.replace("\\-", "-");
        for (before, _) in text.match_indices("(1)").map(|(at, _)| text.split_at(at)) {
            let start =
                before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).map_or(0, |at| at + 1);
            let name = format!("{}.1", &before[start..]);
            assert!(pages.contains(&name.as_str()), "{page} names {name}");
            named += 1;
        }
    }
    for name in commands() {
        assert!(pages.contains(&format!("trafoc-{name}.1").as_str()), "{name}");
    }
    assert!(named >= commands().len());
    // What was written before is replaced, another program's page is not.
    assert_eq!(trafoc_in(folder.path(), &["man", "--out", "man1"]).code, 0);
    std::fs::write(folder.path().join("man1/trafoc-eval.1"), ".TH ANOTHER 1\n").unwrap();
    assert_eq!(trafoc_in(folder.path(), &["man", "--out", "man1"]).code, 3);
}

/// The script in a real shell, as the help says: the words that are offered after what was typed.
#[test]
fn bash_completes_commands_options_and_names() {
    let help = trafoc(&["completions", "--help"]).out;
    let example = help.lines().next().unwrap().trim_start_matches("Example: ").to_owned();
    assert_eq!(example, "source <(trafoc completions bash)");
    let offered = |typed: &str| {
        let words: Vec<&str> = typed.split(' ').collect();
        let (word, before) = (words[words.len() - 1], words[words.len().saturating_sub(2)]);
        // What readline does when the user presses Tab: the function of `complete -p`, with these variables.
        let script = format!(
            "set -u\n{example}\nCOMP_LINE='{typed}' COMP_POINT=${{#COMP_LINE}} COMP_WORDS=($COMP_LINE)\n\
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMPREPLY=()\n\
             $(complete -p trafoc | sed 's/.*-F \\([^ ]*\\).*/\\1/') trafoc '{word}' '{before}'\n\
             echo \"${{COMPREPLY[*]-}}\""
        );
        let mut command = crate::compiled::alone("bash");
        command.args(["--norc", "-c", &script]).env("PATH", path());
        let said = Printed::from(command.output().unwrap());
        assert!(said.code == 0 && said.err.is_empty(), "{typed}: {}", said.err);
        said.out.trim_end().to_owned()
    };
    assert_eq!(offered("trafoc che"), "check");
    assert_eq!(offered("trafoc check --str"), "--strict");
    assert_eq!(offered("trafoc check @gpt2"), "@gpt2-small");
    assert_eq!(offered("trafoc compare @gpt1 @pyth"), "@pythia-160m");
    assert_eq!(offered("trafoc train @gpt1 --recipe @gpt1."), "@gpt1.sentences");
    assert_eq!(offered("trafoc compare @gpt1 --train @vit.m"), "@vit.mnist");
    assert_eq!(offered("trafoc check @gpt1."), "");
    // With a sign of equality, bash completes what follows it.
    assert_eq!(offered("trafoc train @gpt1 --recipe=@gpt1."), "@gpt1.sentences");
    assert_eq!(offered("trafoc compare @gpt1 --train=@vit.m"), "@vit.mnist");
    assert_eq!(offered("trafoc check @gpt1 --format=js"), "json");
    assert_eq!(offered("trafoc check @gpt1 --format js"), "json");
    assert_eq!(offered("trafoc check @gpt1 --format="), "text short json github sarif agent");
    for shell in ["zsh", "fish"] {
        let script = trafoc(&["completions", shell]).out;
        assert!(script.contains("@gpt2-small") && script.contains("@vit.mnist"), "{shell}");
        // zsh offers the names of commands for a list of files, unless it is told what these are.
        let is_hidden = |line: &&str| line.contains("specs -- ") && !line.contains(":_files");
        assert_eq!(script.lines().find(is_hidden), None, "{shell}");
        // Options are completed after the first of several specs, too.
        assert!(shell != "zsh" || (script.contains("'*:specs -- ") && !script.contains("'*::")));
        // `schema --recipe` is a flag.
        assert!(shell != "fish" || !script.contains("from schema\" -l recipe -r"));
        // A name may follow its option after a `=`.
        assert!(shell != "zsh" || script.contains("compset -P '*='"));
    }
}
