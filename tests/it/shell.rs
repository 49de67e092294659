//! What shells and their manual get: completions and pages.

use std::path::Path;
use std::process::Command;

use crate::cli::{Said, commands, trafoc, trafoc_in};

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
        assert!(text.contains(".TH TRAFOC") && text.contains(".SH NAME"), "{page}");
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
    let binary = Path::new(env!("CARGO_BIN_EXE_trafoc")).parent().unwrap();
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
        let mut command = Command::new("bash");
        let path = std::env::join_paths(
            std::iter::once(binary.to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        command.args(["--norc", "-c", &script]).env("PATH", path.unwrap());
        let said = Said::from(command.output().unwrap());
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
    for shell in ["zsh", "fish"] {
        let script = trafoc(&["completions", shell]).out;
        assert!(script.contains("@gpt2-small") && script.contains("@vit.mnist"), "{shell}");
    }
}
