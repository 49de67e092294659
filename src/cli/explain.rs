//! `trafoc explain`: a diagnostic's code, a key of the language, a term of the field, a command, or a whole spec.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::command::Command;
use super::family::of_family;
use super::format::{Format, FormatArg};
use super::outcome::{Failure, Output};
use super::subject::OverArgs;
use super::ui::Ui;
use crate::diag::code::Explanation;
use crate::diag::foreign::{is_same, meanings};
use crate::diag::suggest::suggest;
use crate::diag::terms::{self, Term};
use crate::diag::{Code, ideas, notes};
use crate::field::words::listed;
use crate::learn::recipe;
use crate::report::costs;
use crate::report::lesson::{Lesson, lesson};
use crate::spec::explain::{Topic, beginning, catalogue, find_in, keys_below, nearest_in, repaired, wrapped};
use crate::syntax::Notation;

/// The width of a page for people.
const WIDTH: usize = 80;

/// The command line of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A code (`not-divisible`), a key (`attention.kv_heads`), a part (`rotary`), a term (`kv cache`), a
    /// command (`fit`), or a spec; every code if not given
    #[arg(value_name = "CODE|KEY|SPEC")]
    what: Option<String>,
    #[command(flatten)]
    over: OverArgs,
    /// `--format`: how the result and the diagnostics are printed.
    #[command(flatten)]
    pub format: FormatArg,
}

/// The data of `explain` in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Data {
    /// The explanation of a diagnostic's code.
    Code {
        /// The name of the code, such as `not-divisible`.
        code: &'static str,
        /// Why it is an error.
        why: &'static str,
        /// A spec with the error; may be empty.
        wrong: &'static str,
        /// The same spec without it; may be empty.
        right: &'static str,
    },
    /// Every code, if no argument is given.
    Codes {
        /// Every code with its reason, in the order of the printed list.
        codes: Vec<Reason>,
    },
    /// Keys and parts of the language.
    Topics {
        /// What has this name.
        topics: Vec<Topic>,
    },
    /// A term of the field that is neither a key nor a part.
    Term {
        /// The word that was asked for.
        term: String,
        /// What it means.
        means: &'static str,
        /// Where it is in trafoc.
        here: &'static str,
    },
    /// A cost that commands count by its name.
    Cost {
        /// The name in conditions and JSON, such as `decoding_flops`.
        cost: &'static str,
        /// What is counted.
        counts: &'static str,
    },
    /// A command of trafoc.
    Command {
        /// The command, such as `trafoc inspect flow`.
        command: String,
        /// Its help: what it does, its arguments and its options.
        help: String,
    },
    /// A whole spec, module by module.
    Spec(Lesson),
}

/// A code in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reason {
    /// The name of the code, such as `not-divisible`.
    code: &'static str,
    /// Why it is an error.
    why: &'static str,
}

impl Command for Explain {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Prints the page about a code, a key, a part or a spec, or the list of all codes.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        let (changes, reads) = (self.over.changes(), self.over.reads());
        if (changes || reads) && !self.what.as_deref().is_some_and(is_spec) {
            let unused = if changes { "`--set` and `--variant`" } else { "`--lang`" };
            let message = format!("{unused} would have no effect: no spec is explained");
            return Err(Failure::usage(message).help("a spec is a file, or shipped such as `@gpt1`"));
        }
        let Some(what) = self.what.as_deref() else { return Ok(every_code(ui)) };
        // Codes first, because a diagnostic shows its code so that it can be asked for here.
        if let Some(code) = Code::from_slug(what) {
            return Ok(about_code(code, ui));
        }
        // Recognised by its look and not by whether it exists, so that a file called `norm` does not hide
        // the key.
        if is_spec(what) {
            let subject = self.over.compile(what, ui)?;
            let lesson = lesson(&subject.graph);
            let text = ui.page(format!("{lesson:width$}", width = ui.limit(WIDTH)));
            return Ok(Output::new(text, Data::Spec(lesson)));
        }
        if let Some((note, topics)) = topics(what) {
            let pages: Vec<String> =
                topics.iter().map(|topic| format!("{topic:width$}", width = ui.limit(WIDTH))).collect();
            return Ok(Output::new(note + &ui.page(pages.join("\n")), Data::Topics { topics }));
        }
        // A code is also recognised without the signs in it: `part_cycle`.
        if let Some(code) = Code::ALL.iter().find(|code| is_same(code.slug(), what)) {
            return Ok(about_code(*code, ui));
        }
        let plain = terms::plain(what);
        let term = terms::term(what).or_else(|| singulars(&plain).iter().find_map(|word| terms::term(word)));
        match term {
            Some(term) => Ok(about_term(what, term, ui)),
            None => match costs::Name::ALL.iter().find(|name| is_same(name.word(), what)) {
                Some(name) => Ok(about_cost(*name, ui)),
                None => about_command(what, ui).ok_or_else(|| unknown(what, ui)),
            },
        }
    }
}

/// What the language has under this word: as it is written, in the form of a key (`layer norm` as
/// `layer_norm`), in the singular, or by another library's word for it. In the last case a first line names
/// trafoc's own word.
fn topics(what: &str) -> Option<(String, Vec<Topic>)> {
    let all = everything();
    let found = |word: &str| Some(find_in(word, all.clone())).filter(|found| !found.is_empty());
    let plain = terms::plain(what);
    // Only after the word itself, because some names end in s, such as `bias`.
    let single = singulars(&plain);
    let same = || single.iter().find_map(|word| found(word));
    if let Some(topics) = found(what).or_else(|| found(&plain)).or_else(same) {
        return Some((String::new(), topics));
    }
    let mut theirs = meanings(&plain).chain(single.iter().flat_map(|word| meanings(word)));
    theirs.find_map(|ours| Some((format!("trafoc calls this `{ours}`.\n\n"), found(ours)?)))
}

/// What a word may be the plural of.
fn singulars(word: &str) -> Vec<String> {
    let endings = [("s", ""), ("es", ""), ("ies", "y")];
    let single =
        endings.iter().filter_map(|(plural, one)| Some(format!("{}{one}", word.strip_suffix(plural)?)));
    single.collect()
}

fn about_code(code: Code, ui: &Ui) -> Output<Data> {
    let explanation = code.explanation();
    let Explanation { slug, why, wrong, right } = explanation;
    Output::new(page(&explanation, ui.limit(WIDTH)), Data::Code { code: slug, why, wrong, right })
}

fn about_term(what: &str, term: &Term, ui: &Ui) -> Output<Data> {
    let mut text = format!("{what}  (a term)\n");
    for line in wrapped(term.means, ui.limit(WIDTH) - 2) {
        text += &format!("  {line}\n");
    }
    text.push('\n');
    for line in wrapped(term.here, ui.limit(WIDTH) - 2) {
        text += &format!("  {line}\n");
    }
    let Term { means, here, .. } = *term;
    Output::new(text, Data::Term { term: terms::plain(what), means, here })
}

fn about_cost(name: costs::Name, ui: &Ui) -> Output<Data> {
    let (cost, counts) = (name.word(), name.explanation());
    let mut text = format!("{cost}  (a cost)\n");
    let tested = format!("`trafoc compare` shows it, and `--fail-if '{cost} > ..'` of it tests it.");
    let width = ui.limit(WIDTH) - 2;
    let lines = wrapped(&format!("{counts}."), width).into_iter().chain([String::new()]);
    for line in lines.chain(wrapped(&tested, width)) {
        text += format!("  {line}").trim_end();
        text.push('\n');
    }
    Output::new(text, Data::Cost { cost, counts })
}

/// The help of a command, if this is one: `fit`, `inspect flow`, `trafoc fit`.
fn about_command(what: &str, ui: &Ui) -> Option<Output<Data>> {
    let mut grammar = (ui.program().grammar)();
    grammar.build();
    let words = what.split_whitespace();
    let words: Vec<&str> = words.skip_while(|word| *word == grammar.get_name()).collect();
    if what.trim().is_empty() {
        return None;
    }
    let mut command = grammar;
    for word in words {
        command = command.find_subcommand(word)?.clone();
    }
    let named = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_help().to_string();
    Some(Output::new(ui.page(help.clone()), Data::Command { command: named, help }))
}

/// Whether the argument can only be a spec: nothing in the language is called like it.
fn is_spec(what: &str) -> bool {
    what == "-" || what.starts_with('@') || Notation::from_path(what).is_some() || what.contains(['/', '\\'])
}

/// The keys and parts of specs, followed by those of recipes.
fn everything() -> Vec<Topic> {
    [catalogue(), recipe::catalogue()].concat()
}

fn unknown(what: &str, ui: &Ui) -> Failure {
    let slugs: Vec<&str> = Code::ALL.iter().map(|c| c.slug()).collect();
    let failure = Failure::usage(format!("nothing is called `{what}`: no code, no key, no part, no spec"));
    let having = commands_with((ui.program().grammar)(), &what.trim_start_matches('-').replace('_', "-"));
    if let Some((first, _)) = having.split_first() {
        let all: Vec<String> =
            having.iter().map(|(command, option)| format!("`{command} --{option}`")).collect();
        let command = &first.0;
        return failure.help(format!("it is an option: {}; see `{command} --help`", joined(&all)));
    }
    // A word for something that trafoc leaves out on purpose is no slip of the fingers.
    let known = notes::note("recipe", what).or_else(|| ideas::outside(what, ideas::Met::Command));
    // A word for an idea may also be a model that can be imported, as RWKV is, with parts of its own.
    let both: Vec<String> = known.into_iter().chain(of_family(what)).collect();
    if !both.is_empty() {
        return both.into_iter().fold(failure, Failure::help);
    }
    if let Some(note) = notes::anywhere(what) {
        return failure.help(note);
    }
    if let Some(known) = within(what).filter(|_| what.trim().contains(' ')) {
        return failure.help(known);
    }
    let all = everything();
    if let Some(path) = repaired(what, &all) {
        return failure.help(format!("did you mean `{path}`?"));
    }
    // Of a path, the last word is looked for where the words before it lead to.
    if let Some((path, keys)) = keys_below(what, &all) {
        let last = what.rsplit('.').next().unwrap_or(what);
        if let Some(key) = suggest(last, &keys) {
            // What leads there was written in one of several ways.
            let above = what.strip_suffix(last).unwrap_or_default();
            return failure.help(format!("did you mean `{above}{key}`?"));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let failure = failure.help(format!("`{path}` has {}", listed(&keys)));
        let is_elsewhere = !find_in(last, all).is_empty();
        return if is_elsewhere {
            failure.help(format!("`trafoc explain {last}` says what `{last}` is elsewhere"))
        } else {
            failure
        };
    }
    match (suggest(what, &slugs), nearest_in(&terms::plain(what), &all)) {
        // A word with a dash is meant as a code: keys and parts have none.
        (Some(code), _) if what.contains('-') => failure.help(format!("did you mean `{code}`?")),
        (_, Some(near)) => failure.help(format!("did you mean `{near}`?")),
        (Some(code), None) => failure.help(format!("did you mean `{code}`?")),
        (None, None) => {
            let above = || Some(format!("`trafoc explain {}` shows what it has", beginning(what, &all)?));
            failure.help(within(what).or_else(above).unwrap_or_else(|| {
                "`trafoc explain` lists the codes, `trafoc schema` has every key".to_owned()
            }))
        }
    }
}

/// For several words that have no page together: what is known of the longest part of them.
fn within(what: &str) -> Option<String> {
    let plain = terms::plain(what);
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    (1..words.len()).rev().find_map(|length| {
        words.windows(length).find_map(|part| {
            let part = part.join("_");
            // `of`, `in` and `to` say nothing alone, and neither do these, although keys are called so.
            if part.len() < 3
                || matches!(part.as_str(), "and" | "for" | "the" | "with" | "how" | "what" | "each")
            {
                return None;
            }
            let has_page = topics(&part).is_some() || terms::term(&part).is_some();
            if has_page {
                Some(format!("`trafoc explain {part}` explains a part of it"))
            } else {
                ideas::outside(&part, ideas::Met::Command)
            }
        })
    })
}

/// The most commands that a message lists.
const MOST_LISTED: usize = 4;

/// Several commands, of which a long list would hide the first.
fn joined(all: &[String]) -> String {
    match all.get(..MOST_LISTED).filter(|_| all.len() > MOST_LISTED) {
        Some(first) => format!("{} and of other commands", first.join(", ")),
        None => all.join(", "),
    }
}

/// The commands that have this option, with it as they write it.
fn commands_with(grammar: clap::Command, option: &str) -> Vec<(String, String)> {
    fn visit(command: &clap::Command, path: &str, option: &str, found: &mut Vec<(String, String)>) {
        let has = command.get_arguments().filter(|a| !a.is_hide_set()).any(|a| a.get_long() == Some(option));
        let mut inner = Vec::new();
        for c in command.get_subcommands() {
            visit(c, &format!("{path} {}", c.get_name()), option, &mut inner);
        }
        // What the commands below have in common, as those of `inspect`, is named once.
        if (has && !command.has_subcommands()) || (inner.len() > 1 && path.contains(' ')) {
            found.push((path.to_owned(), option.to_owned()));
        } else {
            found.append(&mut inner);
        }
    }
    let mut found = Vec::new();
    visit(&grammar, grammar.get_name(), option, &mut found);
    found
}

fn every_code(ui: &Ui) -> Output<Data> {
    let mut text = String::new();
    let widest = Code::ALL.iter().map(|c| c.slug().len()).max().unwrap_or(0);
    for code in Code::ALL {
        let Explanation { slug, why, .. } = code.explanation();
        // In the list of all codes the first sentence is enough; `explain CODE` has the others. A full stop
        // without a space, as in 0.1, ends no sentence.
        let first = why.split_inclusive(". ").next().unwrap_or(why).trim();
        // Codes are trafoc's own and far shorter than a line, so this cannot underflow.
        let mut lines = wrapped(first, ui.limit(WIDTH) - widest - 2).into_iter();
        text += &format!("{slug:widest$}  {}\n", lines.next().unwrap_or_default());
        for line in lines {
            text += &format!("{:widest$}  {line}\n", "");
        }
    }
    let codes = Code::ALL.iter().map(|c| Reason { code: c.slug(), why: c.explanation().why }).collect();
    Output::new(ui.page(text), Data::Codes { codes })
}

/// Why, a wrong spec and a right one.
fn page(explanation: &Explanation, width: usize) -> String {
    let Explanation { slug, why, wrong, right } = explanation;
    let mut page = format!("{slug}\n");
    // The indentation is two.
    for line in wrapped(why, width - 2) {
        page += &format!("  {line}\n");
    }
    for (title, example) in [("wrong", wrong), ("right", right)] {
        if !example.is_empty() {
            page += &format!("\n  {title}:\n");
            for line in example.lines() {
                page += &format!("    {}\n", crate::diag::render::visible(line));
            }
        }
    }
    page
}
