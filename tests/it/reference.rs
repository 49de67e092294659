//! `docs/reference.md` is what the tables say: every key, part, word, wiring, function, recipe key and
//! command. A file that differs is written again, so that the next run passes; on CI the test only fails.

use std::fmt::Write as _;

use trafoc::diag::Code;
use trafoc::learn::recipe;
use trafoc::spec::explain::{Sort, Topic, catalogue, find_in};

use crate::compiled::{graph, repository};

const COMMAND: &str = "cargo test --no-default-features -p trafoc --test it reference";

fn section(out: &mut String, title: &str, topics: &[Topic], sorts: &[Sort]) {
    let _ = writeln!(out, "\n## {title}\n");
    for topic in topics.iter().filter(|t| sorts.contains(&t.sort)) {
        let name = if topic.sort == Sort::Key { &topic.path } else { &topic.name };
        let mut line = format!("- `{name}`");
        if topic.sort != Sort::Key && topic.path != *name {
            let _ = write!(line, " (`{}`)", topic.path);
        }
        let stop = if topic.doc.ends_with(['.', ':', ')']) { "" } else { "." };
        let _ = write!(line, ": {}{stop}", topic.doc);
        for (label, said) in [("Takes", &topic.takes), ("Default", &topic.default)] {
            if let Some(said) = said {
                let _ = write!(line, " {label}: {said}.");
            }
        }
        for (label, said) in [("Example", &topic.example), ("In PyTorch", &topic.pytorch)] {
            if let Some(said) = said {
                let _ = write!(line, " {label}: `{said}`.");
            }
        }
        let is_equation = |name: &str| name.split('(').next() == Some(&topic.name);
        if topic.items.iter().any(|item| is_equation(&item.name)) {
            // A wiring can have an equation with and one without memory.
            for item in &topic.items {
                let _ = write!(line, " `{}`: `{}`.", item.name, item.doc.replace('\n', "; "));
            }
        } else if !topic.items.is_empty() {
            let names: Vec<String> = topic.items.iter().map(|i| format!("`{}`", i.name)).collect();
            let _ = write!(line, " These are {}.", names.join(", "));
        }
        let _ = writeln!(out, "{line}");
    }
}

/// A command with its options, and the commands below it.
fn commands(out: &mut String, above: &str, command: &clap::Command) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "- `{name}`: {about}");
    for argument in command.get_arguments().filter(|a| a.get_long().is_some_and(|long| long != "help")) {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "  - `--{}`: {help}", argument.get_long().unwrap_or_default());
    }
    for below in command.get_subcommands() {
        commands(out, &name, below);
    }
}

fn reference() -> String {
    let spec = catalogue();
    let recipe = recipe::catalogue();
    let mut out = format!(
        "# Reference\n\nMade from the tables of the program by a test: `{COMMAND}`. `trafoc explain NAME` shows each \
         of these with its parts and words.\n"
    );
    section(&mut out, "Keys of a spec", &spec, &[Sort::Key]);
    section(&mut out, "Slots and parts of a spec", &spec, &[Sort::Slot, Sort::Part]);
    section(&mut out, "Words of a spec", &spec, &[Sort::Word]);
    section(&mut out, "Wirings", &spec, &[Sort::Wiring]);
    section(&mut out, "Expressions and equations", &spec, &[Sort::Function, Sort::Call, Sort::Subject]);
    section(&mut out, "Keys of a recipe", &recipe, &[Sort::Key]);
    section(&mut out, "Slots, parts and words of a recipe", &recipe, &[Sort::Slot, Sort::Part, Sort::Word]);
    out += "\n## Commands\n\n";
    for command in trafoc::cli::grammar(&[]).get_subcommands() {
        commands(&mut out, "trafoc", command);
    }
    out += "\n## Codes of diagnostics\n\n";
    for code in Code::ALL {
        let _ = writeln!(out, "- `{code}`: {}", code.explanation().why);
    }
    out
}

#[test]
fn the_reference_is_what_the_tables_say() {
    let path = repository("docs/reference.md");
    let wanted = reference();
    if std::fs::read_to_string(&path).unwrap_or_default() != wanted {
        if std::env::var_os("CI").is_none() {
            std::fs::write(&path, &wanted).unwrap();
        }
        panic!("docs/reference.md was old; `{COMMAND}` has written it anew");
    }
}

#[test]
fn every_topic_is_found_by_its_name() {
    let all = [catalogue(), recipe::catalogue()].concat();
    for topic in &all {
        let found = find_in(&topic.name, all.clone());
        assert!(found.iter().any(|t| t.name == topic.name), "`trafoc explain {}` finds nothing", topic.name);
        assert!(!topic.doc.is_empty(), "`{}` has no explanation", topic.path);
    }
    for name in ["sweep", "grid", "wiring", "equation", "expression", "multiple_of", "pre_norm", "post_norm"]
    {
        assert!(!find_in(name, all.clone()).is_empty(), "`trafoc explain {name}` finds nothing");
    }
}

#[test]
fn every_example_of_a_call_is_a_part() {
    for topic in catalogue().into_iter().filter(|topic| topic.sort == Sort::Call) {
        let Some(example) = topic.example else { continue };
        // Only what turns heads reads rotary positions.
        let position = if example.contains("rotate(") { "  position: rotary\n" } else { "" };
        let text = format!(
            "name: example\nvocab: 32\ncontext: 16\nd_model: 16\nparts:\n  example: |\n    {example}\n\
             decoder:\n  layers: 1\n{position}  block: x = x + example(norm(x))\nhead: lm\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("{}.yaml", topic.name));
        std::fs::write(&file, text).unwrap();
        // It fails with the diagnostics of the spec.
        graph(&file);
        // The word itself is in its example.
        assert!(example.contains(&format!("{}(", topic.name)), "{}: {example}", topic.name);
    }
}

/// Each key of a row of `weights` has an example with it, which is one line of YAML and fits this spec.
#[test]
fn every_example_of_a_row_of_weights_is_one() {
    let rows: Vec<Topic> =
        catalogue().into_iter().filter(|topic| topic.path.starts_with("weights.")).collect();
    assert_eq!(rows.len(), trafoc::names::layout::KEYS.len());
    for topic in rows {
        let example = topic.example.unwrap();
        let text = format!(
            "name: example\nvocab: 32\ncontext: 8\nd_model: 16\nembed: {{position: learned}}\ndecoder:\n  layers: 2\n  \
             attention: {{heads: 4, qk_norm: {{norm: rms_norm, over: each_head}}}}\n  ffn: {{mlp: {{hidden: 32}}}}\n\
             head: {{lm: {{tied: false}}}}\nweights:\n  {example}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("{}.yaml", topic.name));
        std::fs::write(&file, text).unwrap();
        // It fails with the diagnostics of the spec.
        graph(&file);
        assert!(example.contains(&format!("{}: ", topic.name)), "{example}");
    }
}
