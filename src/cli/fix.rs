//! `check --fix`: carries out the suggestions of diagnostics, in the text, where the checker finds the result better.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use similar::TextDiff;

use super::agreement::RECIPE_SETTING;
use super::directory;
use super::file;
use super::format::Format;
use super::next_step::is_lasting;
use super::outcome::Failure;
use super::subject::{OverArgs, open};
use super::ui::{Color, Ui};
use crate::compile::compile_tree;
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Fix, Severity, Sink};
use crate::learn::recipe;
use crate::read;
use crate::source::{SourceId, SourceMap};
use crate::spec::load;
use crate::syntax::set::{parse_set, parse_setting};
use crate::syntax::{Notation, edit, parse, text};

/// `--fix`, `--unsafe-fixes` and `--diff`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FixArg {
    /// Carry out what `help` says where that is certain to mend an error, and write the files back
    #[arg(long, conflicts_with_all = ["variant", "watch"])]
    fix: bool,
    /// With `--fix` or `--diff`: remove what has no effect, too, and replace values
    #[arg(long)]
    unsafe_fixes: bool,
    /// Show what `--fix` would change, and write nothing
    #[arg(long, conflicts_with_all = ["fix", "variant", "watch"])]
    diff: bool,
}

/// What was changed in a file, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fixed {
    /// The file.
    file: String,
    /// The line of the word that was wrong, counted from 1.
    line: usize,
    /// Its column, counted from 1 in characters.
    column: usize,
    /// The code of the diagnostic that the change has removed.
    code: String,
    /// What was changed, in a few words.
    change: String,
}

/// The files of a command after their fixes.
#[derive(Debug, Default)]
pub struct Repair {
    /// All changes, in the order in which they were made.
    pub fixed: Vec<Fixed>,
    /// The changes as a unified diff.
    pub diff: String,
}

/// The most changes of one file, and the most of them that are tried: each try checks the file again.
const MOST_TRIALS: usize = 500;

/// A text and what checking it finds.
struct Found {
    sources: SourceMap,
    id: SourceId,
    diagnostics: Vec<Diagnostic>,
}

/// A file that can be changed, with what checks a text in its place.
struct File<'f> {
    name: &'f str,
    notation: Notation,
    text: String,
    check: Check<'f>,
}

/// Checks a text in the place of that of a file.
type Check<'f> = Box<dyn Fn(&str) -> Result<Found, Failure> + 'f>;

impl FixArg {
    /// Whether only the changes are shown.
    pub fn shows(self) -> bool {
        self.diff
    }

    /// Fixes specs and a recipe and writes them back, or only says what would be changed. What is no file of the user's
    /// is left as it is.
    ///
    /// # Errors
    /// A usage error, or a file cannot be written.
    pub fn repair(
        self,
        specs: &[String],
        over: &OverArgs,
        recipe: Option<(&str, &[String])>,
        ui: &Ui,
    ) -> Result<Repair, Failure> {
        if self.unsafe_fixes && !self.fix && !self.diff {
            return Err(Failure::usage("`--unsafe-fixes` says what `--fix` and `--diff` may change")
                .help("`trafoc check SPEC --fix --unsafe-fixes`"));
        }
        let mut repair = Repair::default();
        if !self.fix && !self.diff {
            return Ok(repair);
        }
        let all = specs.iter().map(String::as_str).chain(recipe.map(|(name, _)| name));
        // A shipped spec may be checked with a recipe of the user's own, and the reverse.
        if let (Some(name), false) = (all.clone().find(|name| !is_own(name)), all.clone().any(is_own)) {
            let failure = Failure::usage(format!("`{name}` is no file that could be written back"));
            return Err(failure.help("fixes are for specs and recipes in files of your own"));
        }
        for spec in specs.iter().filter(|spec| is_own(spec)) {
            // What cannot be read is reported when it is checked.
            let Some(file) = spec_file(spec, over, ui) else { continue };
            self.mend(file, &mut repair, ui)?;
        }
        if let Some((name, with)) = recipe.filter(|(name, _)| is_own(name))
            && let Some(file) = recipe_file(name, with)
        {
            self.mend(file, &mut repair, ui)?;
        }
        Ok(repair)
    }

    fn mend(self, file: File<'_>, repair: &mut Repair, ui: &Ui) -> Result<(), Failure> {
        let (text, fixed) = mended(&file, self.unsafe_fixes, MOST_TRIALS)?;
        if fixed.is_empty() {
            return Ok(());
        }
        if self.fix {
            file::write(Path::new(file.name), &text)?;
            for Fixed { file, line, column, change, .. } in &fixed {
                ui.note(&format!("fixed {file}:{line}:{column}: {change}"));
            }
        }
        let diff = TextDiff::from_lines(&file.text, &text);
        repair.diff += &diff.unified_diff().header(file.name, file.name).to_string();
        repair.fixed.extend(fixed);
        Ok(())
    }
}

/// Whether `--fix` would change a spec.
///
/// # Errors
/// A bug in trafoc.
pub fn is_fixable(spec: &str, over: &OverArgs, ui: &Ui) -> Result<bool, Failure> {
    if !is_own(spec) || over.variant.is_some() {
        return Ok(false);
    }
    match spec_file(spec, over, ui) {
        Some(file) => Ok(!mended(&file, false, 1)?.1.is_empty()),
        None => Ok(false),
    }
}

/// Whether a name is that of a file which the user can have written.
fn is_own(name: &str) -> bool {
    is_lasting(name) && !name.starts_with('@') && !Path::new(name).is_dir()
}

/// The text of a file after at most so many fixes that make it better, one after the other.
fn mended(file: &File<'_>, is_unsafe_allowed: bool, most: usize) -> Result<(String, Vec<Fixed>), Failure> {
    let mut text = file.text.clone();
    let mut fixed: Vec<Fixed> = Vec::new();
    let mut found = (file.check)(&text)?;
    // A fix that has not helped is not tried again in another text.
    let mut refused: BTreeSet<(Code, String)> = BTreeSet::new();
    if most > 1
        && let Some(words) = all_words(file, &text, &found)?
    {
        (text, found, fixed) = words;
    }
    for _ in 0..MOST_TRIALS {
        if fixed.len() >= most {
            break;
        }
        let may = |d: &&Diagnostic| {
            d.span().source == found.id
                && d.fix.as_deref().is_some_and(|fix| is_unsafe_allowed || fix.is_safe())
                && !refused.contains(&(d.code, place_and_message(d, &found.sources)))
        };
        // Words first: the lines stay where they are, so that the places are those of the file as it was.
        let renames = |d: &&Diagnostic| matches!(d.fix.as_deref(), Some(Fix::Rename(_)));
        let possible = || found.diagnostics.iter().filter(may);
        let next = possible().find(renames).or(possible().next());
        let Some((diagnostic, fix)) = next.and_then(|d| Some((d, d.fix.as_deref()?))) else { break };
        // The tree of the text itself, without what it extends.
        let tree = parse(&found.sources, found.id, file.notation, &mut Sink::new());
        let key = tree.as_ref().and_then(|tree| edit::key(tree, diagnostic.span())).map(str::to_owned);
        let changed = tree
            .and_then(|tree| edit::changes(&text, file.notation, &tree, diagnostic.span(), fix))
            .and_then(|changes| edit::apply(&text, changes));
        let after = changed.as_deref().map(&file.check).transpose()?;
        match (changed, after) {
            (Some(changed), Some(after)) if is_better(&found.diagnostics, &after.diagnostics) => {
                // The place may be the value, and what is removed is the entry.
                let entry = key.as_deref().filter(|_| matches!(fix, Fix::Remove));
                let word = entry.unwrap_or(found.sources.text(diagnostic.span()));
                fixed.push(Fixed::of(file, &found, diagnostic, change(word, fix)));
                (text, found) = (changed, after);
            }
            (_, _) => {
                refused.insert((diagnostic.code, place_and_message(diagnostic, &found.sources)));
            }
        }
    }
    Ok((text, fixed))
}

impl Fixed {
    fn of(file: &File<'_>, found: &Found, diagnostic: &Diagnostic, change: String) -> Self {
        let start = diagnostic.span().start as usize;
        let (line, column) = found.sources.get(found.id).map_or((0, 0), |source| source.line_column(start));
        Self { file: file.name.to_owned(), line, column, code: diagnostic.code.slug().to_owned(), change }
    }
}

/// A text with all wrong words replaced at once, if each of them makes an error less: this takes one check, where one after
/// the other would take one each.
fn all_words(
    file: &File<'_>,
    text: &str,
    found: &Found,
) -> Result<Option<(String, Found, Vec<Fixed>)>, Failure> {
    let words: Vec<(&Diagnostic, &Fix)> = found
        .diagnostics
        .iter()
        .filter(|d| d.span().source == found.id)
        .filter_map(|d| Some((d, d.fix.as_deref().filter(|fix| matches!(fix, Fix::Rename(_)))?)))
        .collect();
    let tree = parse(&found.sources, found.id, file.notation, &mut Sink::new());
    let Some(tree) = tree.filter(|_| words.len() > 1) else { return Ok(None) };
    let changes: Option<Vec<_>> =
        words.iter().map(|(d, fix)| edit::changes(text, file.notation, &tree, d.span(), fix)).collect();
    let Some(changed) = changes.and_then(|changes| edit::apply(text, changes.concat())) else {
        return Ok(None);
    };
    let after = (file.check)(&changed)?;
    if after.diagnostics.len().saturating_add(words.len()) > found.diagnostics.len() {
        return Ok(None);
    }
    let fixed = words.iter().map(|(diagnostic, fix)| {
        Fixed::of(file, found, diagnostic, change(found.sources.text(diagnostic.span()), fix))
    });
    let fixed = fixed.collect();
    Ok(Some((changed, after, fixed)))
}

/// What tells a diagnostic from others of its code, whatever was changed before it in the text.
fn place_and_message(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let span = diagnostic.span();
    let rest =
        sources.get(span.source).map_or(0, |source| source.text.len().saturating_sub(span.range().start));
    format!("{rest} {}", diagnostic.message)
}

/// Whether a change has removed an error or a warning, and brought no new one.
fn is_better(before: &[Diagnostic], after: &[Diagnostic]) -> bool {
    let count = |all: &[Diagnostic], severity| all.iter().filter(|d| d.severity == severity).count();
    let (errors, now) = (count(before, Severity::Error), count(after, Severity::Error));
    // Warnings are found only where there is no error, and so may be new.
    now < errors || now == errors && count(after, Severity::Warning) < count(before, Severity::Warning)
}

/// A change in a few words.
fn change(word: &str, fix: &Fix) -> String {
    // Of a call, only the name is replaced.
    let word = word.trim_matches(['"', '\'']);
    let word = word.split_once(['(', '[']).map_or(word, |(name, _)| name);
    match fix {
        Fix::Rename(name) => format!("`{word}` is `{name}` now"),
        Fix::Move { path, up: 0 } => format!("`{word}` is at `{}` now", path.join(".")),
        Fix::Move { path, up } => {
            let levels = counted(*up, "level");
            format!("`{word}` is at `{}`, {levels} further up, now", path.join("."))
        }
        Fix::Choose { path, part } => format!("`{part}` is the value of `{}` now", path.join(".")),
        Fix::Remove => format!("`{word}` is removed"),
    }
}

/// A spec as a file, if it can be read.
fn spec_file<'f>(spec: &'f str, over: &'f OverArgs, ui: &Ui) -> Option<File<'f>> {
    // The config of a model has a spec that nobody has written.
    if directory::config_of(Path::new(spec)).is_some() {
        return None;
    }
    // What is wrong with the file is said when it is checked.
    let mut silent = Ui::new(ui.command(), Format::Json, Color::Never, true, ui.program());
    let opened = open(spec, over.lang(), over.families(), &mut silent).ok()?;
    let (text, notation) = (opened.sources.get(opened.id)?.text.clone(), opened.notation);
    let check = move |text: &str| {
        let (mut sources, mut origin, mut sink) = (opened.sources.clone(), opened.origin, Sink::new());
        let id = sources.add(opened.name.clone(), text);
        let settings: Vec<_> = over.set.iter().filter_map(|set| parse_set(&mut sources, set).ok()).collect();
        let tree = load::tree(&mut sources, id, notation, &settings, &mut origin, &mut sink);
        let diagnostics = compile_tree(&sources, tree, sink)?.diagnostics;
        Ok(Found { sources, id, diagnostics })
    };
    Some(File { name: spec, notation, text, check: Box::new(check) })
}

/// A recipe as a file, if it can be read.
fn recipe_file<'f>(name: &'f str, with: &'f [String]) -> Option<File<'f>> {
    let bytes = read::spec(Path::new(name)).ok()?;
    let mut sources = SourceMap::new();
    let id = text::decode(&mut sources, name, &bytes, &mut Sink::new())?;
    let text = sources.get(id)?.text.clone();
    let check = move |text: &str| {
        let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
        let id = sources.add(name, text);
        let settings: Vec<_> =
            with.iter().filter_map(|with| parse_setting(&mut sources, RECIPE_SETTING, with).ok()).collect();
        recipe::read(&sources, id, &settings, &mut sink);
        Ok(Found { sources, id, diagnostics: sink.into_sorted() })
    };
    Some(File { name, notation: Notation::Yaml, text, check: Box::new(check) })
}
