//! Wrong command lines: what is wrong, and what was probably meant.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::arguments::value_of;
use super::command::{finish, not_written};
use super::family::{is_model, no_template, of_several};
use super::format::Format;
use super::misplaced;
use super::next_step::quoted;
use super::other_values;
use super::outcome::{Exit, Failure};
use super::setting::COLOR;
use super::settings;
use super::shelf::shipped_of;
use super::ui::{Color, Program, Ui, write_styled};
use crate::diag::foreign::is_same;
use crate::diag::ideas;
use crate::diag::render;
use crate::diag::suggest::{are_numbers_of_one, suggest};

/// The names that other tools give to commands, each with the command of trafoc that does the same.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("init", "new"),
    ("create", "new"),
    ("version", "--version"),
    ("validate", "check"),
    ("lint", "check"),
    ("verify", "check"),
    ("compile", "build"),
    ("emit", "build"),
    ("codegen", "build"),
    ("summary", "show"),
    ("params", "show"),
    ("layers", "show"),
    ("count", "show"),
    (
        "profile",
        "`trafoc show` counts operations layer by layer, and `trafoc compare --measure` measures times",
    ),
    ("bench", "`trafoc compare --measure` measures the times of passes and training steps"),
    ("benchmark", "`trafoc compare --measure` measures the times of passes and training steps"),
    ("search", "fit"),
    ("prepare", "data"),
    ("preprocess", "data"),
    ("tokenize", "data"),
    ("tokenise", "data"),
    ("transpile", "build"),
    ("list", LISTS),
    ("ls", LISTS),
    ("info", "check"),
    ("migrate", "fmt"),
    ("upgrade", "fmt"),
    ("parameters", "show"),
    ("settings", "config"),
    ("configure", "config"),
    ("env", "doctor"),
    ("devices", "doctor"),
    ("diff", "compare"),
    ("plot", "draw"),
    ("graph", "draw"),
    ("visualize", "draw"),
    ("visualise", "draw"),
    ("viz", "draw"),
    ("diagram", "draw"),
    (
        "infer",
        "`trafoc predict` and `trafoc generate` use a trained model; `trafoc run` computes the outputs of any inputs",
    ),
    (
        "inference",
        "`trafoc predict` and `trafoc generate` use a trained model; `trafoc run` computes the outputs of any inputs",
    ),
    ("forward", "run"),
    ("exec", "run"),
    ("pretrain", "train"),
    ("learn", "train"),
    ("fit_model", "train"),
    ("finetune", "train"),
    ("runs", "inspect"),
    ("history", "inspect"),
    ("logs", "inspect"),
    ("curve", "inspect"),
    ("resume", "train"),
    ("replay", "reproduce"),
    ("rerun", "reproduce"),
    ("repeat", "reproduce"),
    ("test", "eval"),
    ("evaluate", "eval"),
    ("sample", "generate"),
    ("chat", "generate"),
    ("complete", "generate"),
    ("serve", "`trafoc generate` and `trafoc predict` answer on the command line; trafoc has no server"),
    ("translate", "generate"),
    ("classify", "predict"),
    ("download", "import"),
    ("pull", "import"),
    ("load", "import"),
    ("save", "export"),
    ("format", "fmt"),
    ("docs", "explain"),
    ("describe", "explain"),
    ("what", "explain"),
];

/// Where trafoc lists what it has.
const LISTS: &str = "`trafoc check @` lists the shipped specs, `trafoc new --help` the templates, `trafoc explain` the codes, and \
                     `trafoc doctor` the devices";

/// The names that other tools give to what `inspect` shows.
const OTHER_REPORTS: &[(&str, &str)] = &[
    ("heads", "attention"),
    (
        "weights",
        "`trafoc inspect attention` shows the weights of attention, `init` the initial values of parameters, and `changes` how far training moved them",
    ),
    ("head", "steps"),
    ("embeddings", "layers"),
    ("activations", "layers"),
    ("loss", "training"),
    ("curve", "training"),
    ("curves", "training"),
    ("metrics", "training"),
    ("run", "training"),
    ("dataset", "data"),
    ("tokens", "data"),
    ("vocabulary", "data"),
    ("norm", "norms"),
    ("rollout", "flow"),
    ("mask", "attention"),
    ("masks", "attention"),
    ("parameters", "init"),
    ("diff", "changes"),
];

/// The options of other tools, each with those that mean the same here, with `|` between them. The first that the
/// command has is meant; what follows its name is the value that makes it mean the same.
const SAME_OPTIONS: &[(&str, &str)] = &[
    ("--output", "--out|--to|--outputs"),
    ("--output-dir", "--out|--to"),
    ("--output-file", "--out|--outputs"),
    ("--out-dir", "--out|--to"),
    ("--save-dir", "--out|--to"),
    ("--checkpoint-dir", "--out"),
    ("--out", "--to|--outputs"),
    ("--svg", "--out FILE.svg"),
    ("--file", "--texts|--prompts|--out"),
    ("--text", "--prompt"),
    ("--input", "--prompt|--text|--inputs"),
    ("--img", "--image"),
    ("--max-length", "--max-tokens"),
    ("--max-len", "--max-tokens"),
    ("--max-new-tokens", "--max-tokens"),
    ("--length", "--max-tokens"),
    ("--num-samples", "--count"),
    ("--samples", "--count"),
    ("--num-return-sequences", "--count"),
    ("--num", "--count"),
    ("--n", "--count"),
    ("--num-beams", "--beam"),
    ("--beam-size", "--beam"),
    ("--json", "--format json"),
    ("--output-format", "--format"),
    ("--config", "--recipe"),
    ("--backend", "--target|--device"),
    ("--lang-target", "--target"),
    ("--torch", "--target pytorch"),
    ("--pytorch", "--target pytorch"),
    ("--override", "--set"),
    ("--param", "--set"),
    ("--overwrite", "--force"),
    ("--precision", "--dtype"),
    ("--fp16", "--dtype f16"),
    ("--half", "--dtype f16"),
    ("--bf16", "--dtype bf16"),
    ("--continue", "--resume"),
    ("--werror", "--strict"),
    ("--no-color", "--color never"),
    ("--benchmark", "--measure"),
    ("--time", "--measure"),
    ("--position", "--target N"),
    ("--closest", "--nearest"),
    ("--flops-budget", "--flops-per-token"),
    ("--vary", "--over"),
    ("--subset", "--split"),
    ("--test", "--split test"),
    ("--in-place", "--write"),
    ("--inplace", "--write"),
    ("--tiny", "--small"),
    ("--seed", "--with seed=1"),
];

/// What other tools have as an option, each with what is done here instead.
const OTHER_OPTIONS: &[(&str, &str)] = &[
    (
        "--fix",
        "`trafoc check FILE --fix` carries out what `help:` says; `trafoc fmt --write FILE` only changes the form",
    ),
    ("--watch", "`check`, `build`, `show` and `draw` have it; other commands are run again by hand"),
    ("--gpu", "`--device cuda` or `--device wgpu` names one; `trafoc doctor` lists them"),
    ("--cuda", "`--device cuda` names one; `trafoc doctor` lists the devices"),
    ("--features", "they are chosen when trafoc is built; `trafoc doctor` lists those of this program"),
    ("--epochs", "it belongs to the recipe: `--with epochs=3`"),
    ("--steps", "it belongs to the recipe: `--with steps=100`"),
    ("--lr", "it belongs to the recipe: `--with optimizer.adamw.learning_rate=1e-3`"),
    ("--learning-rate", "it belongs to the recipe: `--with optimizer.adamw.learning_rate=1e-3`"),
    ("--batch-size", "it belongs to the recipe: `--with batch.size=32`"),
    ("--model", "the model is given without an option: `trafoc generate MODEL`, `trafoc check SPEC`"),
    ("--verbose", "everything is shown without it, `--quiet` shows less, and only `train` has `--verbose`"),
];

/// The command line's error with the suggestions of [`suggest`] in place of clap's.
fn with_suggestion(mut error: clap::Error, grammar: &clap::Command, arguments: &[OsString]) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    // The command may be below another one, such as `inspect positions`.
    let mut command = grammar;
    // What follows an unknown command, such as the folder `run`, is no name of one.
    let unknown = text(&error, ContextKind::InvalidSubcommand);
    let words = arguments.iter().skip(1).filter_map(|a| a.to_str());
    for word in words.take_while(|word| Some(*word) != unknown.as_deref()) {
        // Options and their values are no names of commands and change nothing.
        command = command.find_subcommand(word).unwrap_or(command);
    }
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = text(&error, ContextKind::InvalidSubcommand) else { return error };
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            // Below `inspect`, what another tool calls a command of trafoc means nothing.
            let is_below = command.get_name() != grammar.get_name();
            let others = if is_below { OTHER_REPORTS } else { OTHER_NAMES };
            let ours = |word: &str| others.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
            let theirs: Vec<&str> = others.iter().map(|(theirs, _)| *theirs).collect();
            // In place of clap's suggestion, which compares letters alone.
            // A name of another tool that is written exactly is surer than a name of ours that is only
            // similar to it.
            let near = ours(&word)
                .map(str::to_owned)
                .or_else(|| suggest(&word, &names))
                .or_else(|| suggest(&word, &theirs).and_then(|near| ours(&near)).map(str::to_owned));
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            let near = near.or_else(|| shortened(&word, &names));
            // A model comes after what is shown of it.
            let of_model = || names.first().map(|first| first_what(command, first, &word));
            let near = of_model().filter(|_| is_below && misplaced::is_spec(&word)).or(near);
            if let Some(tip) = near.as_deref().filter(|near| near.contains(' ')) {
                let tip = tip.to_owned();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            } else if let Some(option) = near.as_deref().filter(|near| near.starts_with("--")) {
                let tip = format!("it is an option: `trafoc {option}`");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            } else if let Some(near) = near {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(word) = text(&error, ContextKind::InvalidArg) else { return error };
            if !word.starts_with('-') {
                let of_flag = folder_to_resume(command, arguments);
                let of_flag = of_flag.or_else(|| valued_flag(&word, command, arguments));
                let of_option = of_flag.or_else(|| misplaced::value(&word, command));
                if let Some(tip) = of_option.or_else(|| one_too_many(command, grammar)) {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                }
                return error;
            }
            // One letter is too little to guess a short option from, but for this one, which many programs have.
            let word = if word == "-o" { "--out".to_owned() } else { word };
            if !word.starts_with("--") {
                return error;
            }
            let flags: Vec<String> = command
                .get_arguments()
                // Only a grammar that has been built has the global options at every command.
                .chain(grammar.get_arguments().filter(|a| a.is_global_set()))
                .filter_map(|a| a.get_long().map(|long| format!("--{long}")))
                .collect();
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
            // What this command has under another name comes first; then what another command of trafoc has, or
            // another tool, which is surer than a name that is only similar.
            let other =
                OTHER_OPTIONS.iter().find(|(theirs, _)| *theirs == word).map(|(_, tip)| (*tip).to_owned());
            // An option of this command that is the plural of the word, as `--params` of `--param`, is surer than any of
            // them.
            let own = flags.iter().find(|flag| are_numbers_of_one(flag, &word)).cloned();
            let elsewhere = printed(&word, command)
                .or_else(|| same_option(&word, &flags, command))
                .or(other)
                .or_else(|| misplaced::of_others(&word, command, grammar, arguments));
            match (elsewhere.filter(|_| own.is_none()), own.or_else(|| suggest(&word, &flags))) {
                (Some(tip), _) => {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                    // clap's usage names an option that is spelt like the word, as if it were needed.
                    error.remove(ContextKind::Usage);
                }
                (None, Some(near)) => {
                    error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
                }
                (None, None) => {
                    if let Some(tip) = misplaced::key(&word, command) {
                        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                    }
                }
            }
        }
        ErrorKind::InvalidValue => {
            let Some(word) = text(&error, ContextKind::InvalidValue) else { return error };
            name_variable(&mut error, command, grammar, arguments);
            let Some(ContextValue::Strings(words)) = error.get(ContextKind::ValidValue) else { return error };
            // `print SPEC` lacks the stage, for which the spec was taken. A folder may be spelt like a stage.
            let is_stage = suggest(&word, words).is_some();
            if let Some(first) = words.first().filter(|_| !is_stage && lacks_first(&error, command, &word)) {
                let tip = first_what(command, first, &word);
                error.remove(ContextKind::SuggestedValue);
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                return error;
            }
            // Also in place of clap's, so that all suggestions follow one rule.
            let other = other_values::exactly(&word, words);
            let is_new = command.get_name() == "new";
            // The name of a model is none of the templates, but there may be a spec of it.
            let spec = shipped_of(&word).filter(|_| is_new);
            // In another case it is the template itself.
            let same = words.iter().find(|ours| is_same(ours, &word)).cloned();
            let is_other = is_new && other.is_none() && spec.is_none() && is_model(&word);
            let near = other.map(str::to_owned).or_else(|| suggest(&word, words));
            let near = near.or_else(|| other_values::nearly(&word, words).map(str::to_owned));
            let near = near.filter(|_| !is_other);
            let (near, spec) = if same.is_some() { (same, None) } else { (near, spec) };
            error.remove(ContextKind::SuggestedValue);
            let tips = match (near, spec) {
                _ if is_new && let Some(tip) = of_several(&word) => vec![tip.to_owned()],
                (Some(near), Some(spec)) => {
                    vec![format!("`{near}` is the template; `@{spec}` is a spec: `trafoc expand @{spec}`")]
                }
                (Some(near), None) => {
                    error.insert(ContextKind::SuggestedValue, ContextValue::String(near));
                    Vec::new()
                }
                (None, _) if is_new => no_template(&word),
                (None, _) => ideas::outside(&word, ideas::Met::Command).into_iter().collect(),
            };
            if !tips.is_empty() {
                let tips = tips.into_iter().map(Into::into).collect();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        ErrorKind::MissingRequiredArgument => {
            // The usage has only words to be replaced; the example of the help is a whole command line.
            if let Some(tip) = folder_to_resume(command, arguments) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            } else if let Some(example) = command.get_before_help() {
                let example = example.to_string().replacen("Example: ", "for example: ", 1);
                // An option that only another one needs may not be in it.
                let is_in = |usage: &String| {
                    let flag = usage.split(' ').next().filter(|word| word.starts_with('-'));
                    flag.is_none_or(|flag| example.contains(flag))
                };
                if let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
                    && missing.iter().all(is_in)
                {
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![example.into()]));
                }
            }
        }
        ErrorKind::InvalidUtf8 => {
            let foreign = arguments.iter().filter(|word| word.to_str().is_none());
            let shown: Vec<String> =
                foreign.map(|w| render::visible_name(&w.to_string_lossy()).into_owned()).collect();
            let message = format!("not UTF-8, in which names must be given here: `{}`\n", shown.join("`, `"));
            return clap::Error::raw(ErrorKind::InvalidUtf8, message);
        }
        // For other mistakes clap's own message is enough.
        _ => {}
    }
    error
}

/// Whether a model is named in the place of the first of two words, of which the second names a model.
fn lacks_first(error: &clap::Error, command: &clap::Command, word: &str) -> bool {
    let is_word =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if arg.starts_with('<'));
    let is_model =
        |a: &clap::Arg| a.get_value_names().is_some_and(|names| names.iter().any(|name| name == "SPEC"));
    is_word && misplaced::is_spec(word) && command.get_positionals().any(is_model)
}

/// What to write where a model is named and what is shown of it is missing.
fn first_what(command: &clap::Command, first: &str, word: &str) -> String {
    let name = command.get_name();
    format!("name what to show, before the model: `trafoc {name} {first} {}`", quoted(word))
}

/// What to write in place of `--resume RUN`: the option takes no value, and `--out` names the run.
fn folder_to_resume(command: &clap::Command, arguments: &[OsString]) -> Option<String> {
    let has = |long: &str| command.get_arguments().any(|argument| argument.get_long() == Some(long));
    let mut after = arguments.iter().skip_while(|word| *word != "--resume").skip(1);
    let word = after.next()?.to_str().filter(|word| !word.starts_with('-'))?;
    (has("resume") && has("out")).then(|| {
        // What `--out` names comes before what was written in the wrong place.
        let run = value_of(arguments, "--out").or_else(|| value_of(arguments, "-o"));
        let run = quoted(run.as_deref().unwrap_or(word));
        let name = command.get_name();
        format!("`--resume` takes no value, and `--out` names the run: `trafoc {name} --resume --out {run}`")
    })
}

/// Which commands take several values where this one takes one; `None` if this one takes none.
fn one_too_many(command: &clap::Command, grammar: &clap::Command) -> Option<String> {
    let only = command.get_positionals().next()?;
    // A command with several different values has more to say than this.
    if command.get_positionals().count() > 1 || takes_several(only) {
        return None;
    }
    let value = only.get_value_names()?.first()?.as_str();
    let has_several = |c: &&clap::Command| {
        c.get_positionals().any(|a| {
            takes_several(a) && a.get_value_names().is_some_and(|n| n.iter().any(|n| n.as_str() == value))
        })
    };
    let names: Vec<String> =
        grammar.get_subcommands().filter(has_several).map(|c| format!("`{}`", c.get_name())).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let takes = format!("`{}` takes one {value}", command.get_name());
    // Terms of several words are words of a shell unless they are quoted.
    if command.get_name() == "explain" {
        return Some(format!("{takes}; several words of a term go into quotes, `trafoc explain 'kv cache'`"));
    }
    Some(if names.is_empty() { takes } else { format!("{takes}; several are for {}", names.join(", ")) })
}

/// Whether an argument can be given several times.
fn takes_several(argument: &clap::Arg) -> bool {
    matches!(argument.get_action(), clap::ArgAction::Append)
}

/// Names the variable of the environment in the place of the option that it sets, if the value is from there.
fn name_variable(
    error: &mut clap::Error,
    command: &clap::Command,
    grammar: &clap::Command,
    arguments: &[OsString],
) {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return };
    let mut all = command.get_arguments().chain(grammar.get_arguments());
    let Some(argument) =
        all.find(|argument| argument.get_long().is_some_and(|l| shown.starts_with(&format!("--{l} "))))
    else {
        return;
    };
    let (Some(variable), Some(long)) = (argument.get_env(), argument.get_long()) else { return };
    // What is written comes before the variable.
    if value_of(arguments, &format!("--{long}")).is_none() {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable.to_string_lossy().into_owned()));
    }
}

/// The only command that a word may be short for: it begins with the same letter and has the others in the same
/// order, as `bld` and `build`.
fn shortened(word: &str, names: &[&str]) -> Option<String> {
    let is_short_for = |name: &&&str| {
        let mut letters = name.chars();
        name.chars().next() == word.chars().next() && word.chars().all(|c| letters.any(|other| other == c))
    };
    let mut found = names.iter().filter(is_short_for);
    match (found.next(), found.next()) {
        (Some(name), None) if word.len() > 1 => Some((*name).to_owned()),
        _ => None,
    }
}

/// The option of a command with these `flags` that means the same as one of another tool.
fn same_option(word: &str, flags: &[String], command: &clap::Command) -> Option<String> {
    let (_, ours) = SAME_OPTIONS.iter().find(|(theirs, _)| *theirs == word)?;
    let named = |option: &&str| {
        let (flag, value) = option.split_once(' ').unwrap_or((option, ""));
        // An option of the same name is another one in another command, which its value tells.
        let is_meant = |argument: &clap::Arg| {
            argument.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long))
                && argument
                    .get_value_names()
                    .is_some_and(|names| names.iter().any(|name| name.as_str() == value))
        };
        let is_name = !value.is_empty() && value.chars().all(|c| c.is_ascii_uppercase());
        flags.iter().any(|own| own == flag) && (!is_name || command.get_arguments().any(is_meant))
    };
    ours.split('|').find(named).map(|option| format!("it is `{option}` here"))
}

/// Where the result of a command goes that has no option for it, if `word` is such an option of others.
fn printed(word: &str, command: &clap::Command) -> Option<String> {
    let is_place = |argument: &clap::Arg| {
        let is_path = |name: &clap::builder::Str| ["FILE", "DIR", "PATH"].contains(&name.as_str());
        // `--to` names a place where models are exported, and a notation elsewhere.
        matches!(argument.get_long(), Some("out" | "outputs" | "to"))
            && argument.get_value_names().is_some_and(|names| names.iter().any(is_path))
    };
    let is_asked = ["--out", "--output", "--output-file", "--outputs"].contains(&word);
    if !is_asked || command.has_subcommands() || command.get_arguments().any(is_place) {
        return None;
    }
    let name = command.get_name();
    Some(match name {
        "new" => "the file is named without an option: `trafoc new gpt gpt.yaml`".to_owned(),
        "fmt" => "`--write` changes the files; without it the text goes to stdout, so `> FILE` writes it \
                  elsewhere"
            .to_owned(),
        _ => format!("the result of `{name}` goes to stdout, so `> FILE` writes it to a file"),
    })
}

/// Prints help, the version, or what is wrong with the arguments.
pub fn refuse(error: clap::Error, arguments: &[OsString], program: Program) -> ExitCode {
    let grammar = (program.grammar)();
    let error = with_suggestion(error, &grammar, arguments);
    // Help and the version were asked for: clap treats them as errors, and prints them to stdout.
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The arguments could not be parsed, but a program that asked for JSON has to get it for this error too.
    let format = match value_of(arguments, "--format").as_deref() {
        Some("json") => Format::Json,
        Some("github") => Format::Github,
        Some("sarif") => Format::Sarif,
        Some("agent") => Format::Agent,
        Some(_) | None => Format::Text,
    };
    if !is_asked && (format.is_for_programs() || format == Format::Agent) {
        let text = error.render().to_string();
        // After the first empty line come the tips and the usage, which is for people.
        let lines = text.lines().take_while(|l| !l.is_empty()).map(str::trim);
        // The envelope says that it is an error, and so does clap's message with its first word.
        let message = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
        let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        let named = arguments.get(1).and_then(|a| a.to_str()).unwrap_or("");
        // By its own name, because a command line may have an alias.
        let name = grammar.find_subcommand(named).map_or("", |c| c.get_name());
        let ui = Ui::new(name, format, Color::Never, true, program);
        let failure = tips.fold(Failure::usage(message), |failure, tip| failure.help(tip));
        return finish::<()>(&ui, Err(failure));
    }
    let color = color_of(arguments);
    let variable = |name: &str| std::env::var(name).ok();
    let is_terminal =
        if is_asked { std::io::stdout().is_terminal() } else { std::io::stderr().is_terminal() };
    let text = match color.on(is_terminal, variable) {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    // An argument may be the name of a file. What begins the colours is not in it, because clap leaves it out there.
    let text = text.split(ESCAPE).map(render::visible).collect::<Vec<_>>().join(ESCAPE);
    match write_styled(&text, is_asked) {
        // What was asked for is the data of the command, as for every other one.
        Err(why) if is_asked && why.kind() != std::io::ErrorKind::BrokenPipe => {
            ExitCode::from(not_written(&Ui::new("", format, Color::Never, true, program), &why).code())
        }
        // If stderr is closed, there is no other place for a mistake.
        Ok(()) | Err(_) => ExitCode::from(if is_asked { Exit::Ok } else { Exit::Usage }.code()),
    }
}

/// What begins a colour.
const ESCAPE: &str = "\u{1b}";

/// The tip for a word that follows an option without a value, `--resume run`, as if it were one.
fn valued_flag(word: &str, command: &clap::Command, arguments: &[OsString]) -> Option<String> {
    let (before, _) =
        arguments.iter().zip(arguments.iter().skip(1)).find(|(_, after)| after.to_str() == Some(word))?;
    let long = before.to_str()?.strip_prefix("--")?;
    let flag = command.get_arguments().find(|a| a.get_long() == Some(long))?;
    let help = flag.get_help().map(|help| format!(": {help}")).unwrap_or_default();
    (!flag.get_action().takes_values()).then(|| format!("`--{long}` takes no value{help}"))
}

/// The colours that the arguments ask for, or the settings, before the arguments are parsed.
pub fn color_of(arguments: &[OsString]) -> Color {
    let standing = || settings::get().standing(&COLOR)?.0.into_string().ok();
    let word = value_of(arguments, "--color").or_else(standing);
    word.as_deref().and_then(Color::from_word).unwrap_or_default()
}
