//! `check --fix`: carries out the suggestions of diagnostics, in the text, where the checker finds the result better.

use std::collections::BTreeSet;
use std::ops::Range;
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
use super::outcome::{Exit, Failure};
use super::subject::{OverArgs, open};
use super::ui::{Color, Ui};
use crate::compile::compile_tree;
use crate::diag::count::counted;
use crate::diag::render::visible_name;
use crate::diag::{Certainty, Code, Diagnostic, Fix, Severity, Sink};
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
const MOST_TRIALS: usize = 200;

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
    /// Whether fixes are made or shown.
    pub fn fixes(self) -> bool {
        self.fix || self.diff
    }

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
        if file.text.len() > edit::LONGEST {
            ui.note(&format!("note: `{}` is longer than 64 KiB, and is not fixed", file.name));
            return Ok(());
        }
        let (text, fixed) = mended(&file, self.unsafe_fixes)?;
        if fixed.is_empty() {
            return Ok(());
        }
        if self.fix {
            let path = Path::new(file.name);
            // A rename would replace it all the same.
            if path.metadata().is_ok_and(|data| data.permissions().readonly()) {
                let message = format!("`{}` is read-only, so its fixes are not written", file.name);
                return Err(Failure::new(Exit::File, message).help("`--diff` shows them"));
            }
            file::write(path, &text)?;
            for Fixed { file, line, column, change, .. } in &fixed {
                ui.note(&visible_name(&format!("fixed {file}:{line}:{column}: {change}")));
            }
        }
        let diff = TextDiff::from_lines(&file.text, &text);
        let name = visible_name(file.name);
        repair.diff += &diff.unified_diff().header(&name, &name).to_string();
        repair.fixed.extend(fixed);
        Ok(())
    }
}

/// Whether a name is that of a file which the user can have written.
pub fn is_own(name: &str) -> bool {
    // `/dev/stdin` may be a file of another name.
    let path = Path::new(name);
    let is_stream = path.starts_with("/dev") || path.starts_with("/proc");
    is_lasting(name) && !name.starts_with('@') && !is_stream && !path.is_dir()
}

/// A text that is being fixed.
struct Mending {
    text: String,
    found: Found,
    fixed: Vec<Fixed>,
    /// The pieces that were replaced, in the text as it was then, with the lengths of what replaced them.
    done: Vec<Vec<(Range<usize>, usize)>>,
}

impl Mending {
    /// Where an offset of the text was in the text as it was at first.
    fn original(&self, mut offset: usize) -> usize {
        for changes in self.done.iter().rev() {
            let mut changes = changes.clone();
            changes.sort_by_key(|(range, _)| range.start);
            // How far the text before the offset has grown, and shrunk.
            let (mut grown, mut shrunk) = (0_usize, 0_usize);
            for (range, length) in changes {
                let begin = range.start.saturating_add(grown).saturating_sub(shrunk);
                if offset < begin.saturating_add(length) {
                    // Within what was inserted, every place is that of its beginning.
                    offset = offset.min(begin);
                    break;
                }
                grown = grown.saturating_add(length);
                shrunk = shrunk.saturating_add(range.len());
            }
            offset = offset.saturating_add(shrunk).saturating_sub(grown);
        }
        offset
    }

    /// Goes on with a text that some changes of this one have given.
    fn go_on(&mut self, text: String, found: Found, changes: &[(Range<usize>, String)]) {
        self.done.push(changes.iter().map(|(range, text)| (range.clone(), text.len())).collect());
        (self.text, self.found) = (text, found);
    }

    fn note(&mut self, file: &File<'_>, offset: usize, code: Code, change: String) {
        let original = self.original(offset);
        let before = file.text.get(..original).unwrap_or("");
        let line = before.matches('\n').count().saturating_add(1);
        let start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let column = before.get(start..).unwrap_or("").chars().count().saturating_add(1);
        let (file, code) = (file.name.to_owned(), code.slug().to_owned());
        self.fixed.push(Fixed { file, line, column, code, change });
    }
}

/// The text of a file after all fixes that make it better, one after the other.
fn mended(file: &File<'_>, is_unsafe_allowed: bool) -> Result<(String, Vec<Fixed>), Failure> {
    let found = (file.check)(&file.text)?;
    let mut mending = Mending { text: file.text.clone(), found, fixed: Vec::new(), done: Vec::new() };
    all_words(file, &mut mending)?;
    // A fix that has not helped is not tried again in another text.
    let mut refused: BTreeSet<(Code, String)> = BTreeSet::new();
    for _ in 0..MOST_TRIALS {
        let Mending { text, found, .. } = &mending;
        let is_new = |d: &&Diagnostic| {
            d.span().source == found.id
                && d.fix.is_some()
                && !refused.contains(&(d.code, place_and_message(d, &found.sources)))
        };
        let Some(d) = found.diagnostics.iter().find(is_new) else { break };
        let made = steps(file, text, found, d, is_unsafe_allowed)?;
        if made.is_empty() {
            refused.insert((d.code, place_and_message(d, &found.sources)));
        }
        for Step { text, found, changes, offset, code, change } in made {
            mending.note(file, offset, code, change);
            mending.go_on(text, found, &changes);
        }
    }
    Ok((mending.text, mending.fixed))
}

/// A fix that was carried out.
struct Step {
    text: String,
    found: Found,
    /// The pieces of the text before that were replaced.
    changes: Vec<(Range<usize>, String)>,
    /// Where the diagnostic was in the text before.
    offset: usize,
    code: Code,
    change: String,
}

/// The most fixes after another one that are carried out before the result is judged.
const MOST_FOLLOWING: usize = 4;

/// The fix of a diagnostic, and the fixes of errors that show only after it: the keys of a map in the wrong place are checked
/// once the map is in its place. Empty if the text does not get better.
fn steps(
    file: &File<'_>,
    text: &str,
    found: &Found,
    diagnostic: &Diagnostic,
    is_unsafe_allowed: bool,
) -> Result<Vec<Step>, Failure> {
    let mut steps: Vec<Step> = step(file, text, found, diagnostic, is_unsafe_allowed)?.into_iter().collect();
    while let Some(last) = steps.last() {
        if is_better(&found.diagnostics, &last.found.diagnostics) {
            return Ok(steps);
        }
        if steps.len() > MOST_FOLLOWING {
            break;
        }
        let is_new = |d: &&Diagnostic| {
            let is_error =
                d.severity == Severity::Error && d.fix.is_some() && d.span().source == last.found.id;
            is_error && !found.diagnostics.iter().any(|old| (old.code, &old.message) == (d.code, &d.message))
        };
        // Only the first: the others are tried after it.
        let Some(next) = last.found.diagnostics.iter().find(is_new) else { break };
        match step(file, &last.text, &last.found, next, is_unsafe_allowed)? {
            Some(next) if is_better(&last.found.diagnostics, &next.found.diagnostics) => steps.push(next),
            Some(_) | None => break,
        }
    }
    Ok(Vec::new())
}

/// Carries out the fix of a diagnostic, if that is possible in the text.
fn step(
    file: &File<'_>,
    text: &str,
    found: &Found,
    diagnostic: &Diagnostic,
    is_unsafe_allowed: bool,
) -> Result<Option<Step>, Failure> {
    let span = diagnostic.span();
    // The tree of the text itself, without what it extends.
    let tree = parse(&found.sources, found.id, file.notation, &mut Sink::new());
    let (Some(tree), Some(fix)) = (tree, diagnostic.fix.as_deref()) else { return Ok(None) };
    let edit = edit::edit(text, file.notation, &tree, span, fix);
    let Some(edit) = edit.filter(|edit| is_unsafe_allowed || edit.is_safe) else { return Ok(None) };
    // The place may be the value, and what is moved or removed is the entry.
    let key = edit::key(&tree, span).filter(|_| !matches!(fix, Fix::Rename { .. } | Fix::Replace(_)));
    let change = change(key.unwrap_or(found.sources.text(span)), fix);
    let after = (file.check)(&edit.text)?;
    let (offset, code) = (span.range().start, diagnostic.code);
    Ok(Some(Step { text: edit.text, found: after, changes: edit.changes, offset, code, change }))
}

/// Replaces all wrong words of a text at once, if each of them makes an error less: this takes one check, where one after
/// the other would take one each.
fn all_words(file: &File<'_>, mending: &mut Mending) -> Result<(), Failure> {
    let Mending { text, found, .. } = &*mending;
    let Some(tree) = parse(&found.sources, found.id, file.notation, &mut Sink::new()) else { return Ok(()) };
    let (mut changes, mut words) = (Vec::new(), Vec::new());
    for d in found.diagnostics.iter().filter(|d| d.span().source == found.id) {
        let Some(fix @ Fix::Rename { .. }) = d.fix.as_deref() else { continue };
        if let Some(edit) = edit::edit(text, file.notation, &tree, d.span(), fix).filter(|edit| edit.is_safe)
        {
            words.push((d.span().range().start, d.code, change(found.sources.text(d.span()), fix)));
            changes.extend(edit.changes);
        }
    }
    let Some(changed) = edit::apply(text, changes.clone()).filter(|_| words.len() > 1) else { return Ok(()) };
    let after = (file.check)(&changed)?;
    let is_each_better = after.diagnostics.len().saturating_add(words.len()) <= found.diagnostics.len();
    if is_each_better && is_better(&found.diagnostics, &after.diagnostics) {
        for (offset, code, change) in words {
            mending.note(file, offset, code, change);
        }
        mending.go_on(changed, after, &changes);
    }
    Ok(())
}

/// What tells a diagnostic from others of its code, whatever was changed before it in the text.
fn place_and_message(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let span = diagnostic.span();
    let rest =
        sources.get(span.source).map_or(0, |source| source.text.len().saturating_sub(span.range().start));
    format!("{rest} {}", diagnostic.message)
}

/// Whether a change has removed an error and brought no new one.
fn is_better(before: &[Diagnostic], after: &[Diagnostic]) -> bool {
    fn errors(all: &[Diagnostic]) -> Vec<(Code, &str)> {
        let errors = all.iter().filter(|d| d.severity == Severity::Error);
        errors.map(|d| (d.code, d.message.as_str())).collect()
    }
    let (mut left, now) = (errors(before), errors(after));
    let is_old = |error: &(Code, &str)| {
        let index = left.iter().position(|old| old == error);
        index.map(|index| left.swap_remove(index)).is_some()
    };
    now.len() < before.iter().filter(|d| d.severity == Severity::Error).count() && now.iter().all(is_old)
}

/// A change in a few words.
fn change(word: &str, fix: &Fix) -> String {
    match fix {
        Fix::Rename { from, to } | Fix::Guess { from, to } => format!("`{from}` is `{to}` now"),
        Fix::Replace(value) => format!("`{word}` is `{value}` now"),
        Fix::Move { certainty: Certainty::Certain, .. } => {
            format!("the path `{word}` is written as maps now")
        }
        Fix::Move { path, up: 0, .. } => format!("`{word}` is at `{}` now", path.join(".")),
        Fix::Move { path, up, .. } => {
            let levels = counted(*up, "level");
            format!("`{word}` is {levels} further up now, as `{}`", path.join("."))
        }
        Fix::Choose { path, part } => format!("`{part}` is the value of `{}` now", path.join(".")),
        Fix::Remove => format!("`{word}` is removed"),
    }
}

/// A spec as a file, if it can be read.
fn spec_file<'f>(spec: &'f str, over: &'f OverArgs, ui: &Ui) -> Option<File<'f>> {
    // The spec of a model's config is made by the import, so there is no text of the user to fix.
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
