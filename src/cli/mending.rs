//! Carries out the fixes of a text, many at once, and keeps those with which it has fewer errors and no new one.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::Failure;
use crate::diag::count::counted;
use crate::diag::render::visible_name;
use crate::diag::{Certainty, Code, Diagnostic, Fix, Severity, Sink};
use crate::source::{SourceId, SourceMap};
use crate::syntax::edit::{self, Change, Edit, Parsed};
use crate::syntax::tree::Node;
use crate::syntax::{Notation, parse};

/// What was changed in a file, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fixed {
    /// The file.
    pub file: String,
    /// The line of the word that was wrong, counted from 1.
    pub line: usize,
    /// Its column, counted from 1 in characters.
    pub column: usize,
    /// The code of the diagnostic that the change has removed.
    pub code: String,
    /// What was changed, in a few words.
    pub change: String,
}

/// A file after its fixes.
#[derive(Debug)]
pub struct Mended {
    /// Its text.
    pub text: String,
    /// What was changed.
    pub fixed: Vec<Fixed>,
    /// Why there may be more to fix, if so.
    pub left: Option<String>,
}

/// How often a file is checked at most: many fixes are tried together, and only those with which it gets worse take more than
/// one check.
const MOST_CHECKS: usize = 200;

/// The most diagnostics that are compared.
const MOST_DIAGNOSTICS: usize = 2_000;

/// The most fixes after others that are carried out before the result is judged, one after the other.
const MOST_FOLLOWING: usize = 4;

/// So many fixes are tried alone before they are given up, where each of them seems to have brought an error.
const FEW: usize = 8;

/// How many entries around the one that a fix changes may have an error that it has brought.
const MOST_AROUND: usize = 3;

/// A text and what checking it finds.
pub struct Found {
    pub sources: SourceMap,
    pub id: SourceId,
    pub diagnostics: Vec<Diagnostic>,
    /// What the text means, written in full, if that is known.
    pub meaning: Option<Node>,
}

/// A file that can be changed, with what checks a text in its place.
pub struct File<'f> {
    pub name: &'f str,
    pub notation: Notation,
    pub text: String,
    pub check: Check<'f>,
}

/// Checks a text in the place of that of a file.
type Check<'f> = Box<dyn Fn(&str) -> Result<Found, Failure> + 'f>;

/// The code and the message of a diagnostic, without its place.
type Wrong<'d> = (Code, &'d str);

impl Found {
    /// Where a check collects what it finds.
    pub fn sink() -> Sink {
        Sink::with_limit(MOST_DIAGNOSTICS)
    }

    fn text(&self) -> &str {
        self.sources.get(self.id).map_or("", |source| &source.text)
    }

    /// The tree of the text itself, without what it extends.
    fn tree(&self, notation: Notation) -> Option<Node> {
        parse(&self.sources, self.id, notation, &mut Sink::new())
    }

    fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error)
    }

    /// The errors of which there are more than there should be after some fixes: each takes one away, and brings no new one.
    fn surplus<'a>(&'a self, before: &Found, fixes: &[&Draft]) -> BTreeSet<Wrong<'a>> {
        let mut allowed: BTreeMap<Wrong<'_>, usize> = BTreeMap::new();
        for d in before.errors() {
            let count = allowed.entry(wrong(d)).or_default();
            *count = count.saturating_add(1);
        }
        for draft in fixes {
            if let Some(count) = allowed.get_mut(&(draft.code, draft.message.as_str())) {
                *count = count.saturating_sub(1);
            }
        }
        let mut surplus = BTreeSet::new();
        for d in self.errors() {
            match allowed.get_mut(&wrong(d)) {
                Some(count) if *count > 0 => *count = count.saturating_sub(1),
                Some(_) | None => {
                    surplus.insert(wrong(d));
                }
            }
        }
        surplus
    }
}

fn wrong(diagnostic: &Diagnostic) -> Wrong<'_> {
    (diagnostic.code, diagnostic.message.as_str())
}

/// The fix of a diagnostic as an edit of the text that has it.
struct Draft {
    code: Code,
    message: String,
    /// Where the diagnostic is.
    offset: usize,
    change: String,
    /// Where the key begins of the map that the fix leaves without entries.
    emptied: Option<usize>,
}

/// Edits that were made together.
struct Step {
    /// The pieces of the text before that were replaced.
    changes: Vec<Change>,
    drafts: Vec<Draft>,
    /// What is found in the text after them.
    found: Found,
}

/// How some fixes have turned out.
enum Verdict {
    Better(Found),
    /// With fixes of errors that showed only after them.
    BetterWith(Found, Vec<Step>),
    /// These seem to be the cause.
    Worse(BTreeSet<usize>),
}

/// A text that is being fixed.
struct Mending<'f> {
    file: &'f File<'f>,
    is_unsafe_allowed: bool,
    found: Found,
    fixed: Vec<Fixed>,
    /// The pieces that were replaced, in the text as it was then, with the lengths of what replaced them.
    done: Vec<Vec<(Range<usize>, usize)>>,
    /// How often the file may still be checked.
    checks: Cell<usize>,
    /// How many fixes were not tried for that reason.
    untried: usize,
    /// The fixes that have not helped, by the places of their diagnostics in the text as it was at first.
    refused: BTreeSet<(Code, usize, String)>,
    /// The maps that fixes have left without entries, by the places of their keys in the text as it was at first, with the
    /// code that was fixed.
    emptied: BTreeMap<usize, Code>,
}

/// The text of a file after all fixes that make it better.
pub fn mended(file: &File<'_>, is_unsafe_allowed: bool) -> Result<Mended, Failure> {
    let found = (file.check)(&file.text)?;
    let name = visible_name(file.name);
    if found.diagnostics.len() >= MOST_DIAGNOSTICS {
        let left = format!("`{name}` has at least {MOST_DIAGNOSTICS} errors, and is not fixed");
        return Ok(Mended { text: file.text.clone(), fixed: Vec::new(), left: Some(left) });
    }
    let mut mending = Mending {
        file,
        is_unsafe_allowed,
        found,
        fixed: Vec::new(),
        done: Vec::new(),
        checks: Cell::new(MOST_CHECKS),
        untried: 0,
        refused: BTreeSet::new(),
        emptied: BTreeMap::new(),
    };
    let mut is_changed = false;
    loop {
        let known = mending.refused.len();
        if mending.round()? {
            is_changed = true;
        } else if mending.untried > 0 {
            break;
        } else if mending.refused.len() == known {
            // What has not helped may do so after other fixes. Nothing is left for another run to do.
            if !is_changed || known == 0 {
                break;
            }
            mending.refused.clear();
            is_changed = false;
        }
    }
    while mending.without_emptied()? {}
    let left = (mending.untried > 0).then(|| {
        let untried = counted(mending.untried, "suggestion");
        format!("`{name}` was checked {MOST_CHECKS} times to fix it, and {untried} not tried any more")
    });
    Ok(Mended { text: mending.found.text().to_owned(), fixed: mending.fixed, left })
}

impl Mending<'_> {
    /// Where an offset of the text was in the text as it was at first.
    fn original(&self, mut offset: usize) -> usize {
        for changes in self.done.iter().rev() {
            // How far the text before the offset has grown, and shrunk.
            let (mut grown, mut shrunk) = (0_usize, 0_usize);
            for (range, length) in changes {
                let begin = range.start.saturating_add(grown).saturating_sub(shrunk);
                if offset < begin.saturating_add(*length) {
                    // Within what was inserted, every place is that of its beginning.
                    offset = offset.min(begin);
                    break;
                }
                grown = grown.saturating_add(*length);
                shrunk = shrunk.saturating_add(range.len());
            }
            offset = offset.saturating_add(shrunk).saturating_sub(grown);
        }
        offset
    }

    /// Where a diagnostic is in the text as it was at first, with what it says.
    fn name_of(&self, draft: &Draft) -> (Code, usize, String) {
        (draft.code, self.original(draft.offset), draft.message.clone())
    }

    /// Goes on with a text that some edits of this one have given.
    fn go_on(&mut self, Step { changes, drafts, found }: Step) {
        for Draft { code, offset, change, emptied, .. } in drafts {
            self.note(offset, code, change);
            if let Some(offset) = emptied {
                self.emptied.insert(self.original(offset), code);
            }
        }
        let mut done: Vec<_> = changes.into_iter().map(|(range, text)| (range, text.len())).collect();
        done.sort_by_key(|(range, _)| (range.start, range.end));
        self.done.push(done);
        self.found = found;
    }

    fn note(&mut self, offset: usize, code: Code, change: String) {
        let original = self.original(offset);
        let before = self.file.text.get(..original).unwrap_or("");
        let line = before.matches('\n').count().saturating_add(1);
        let start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let column = before.get(start..).unwrap_or("").chars().count().saturating_add(1);
        let (file, code) = (self.file.name.to_owned(), code.slug().to_owned());
        self.fixed.push(Fixed { file, line, column, code, change });
    }

    fn check(&self, text: &str) -> Result<Found, Failure> {
        self.checks.set(self.checks.get().saturating_sub(1));
        (self.file.check)(text)
    }

    /// The fixes of some errors that can be made at once in a text.
    fn drafts(&self, found: &Found, tree: &Node, wanted: impl Fn(&Draft) -> bool) -> (Vec<Draft>, Vec<Edit>) {
        let parsed = Parsed { text: found.text(), notation: self.file.notation, tree };
        let draft = |d: &Diagnostic| {
            let (span, fix) = (d.span(), d.fix.as_deref()?);
            let offset = span.range().start;
            // The place may be the value, and what is moved or removed is the entry.
            let key = edit::key(tree, span).filter(|_| !matches!(fix, Fix::Rename { .. } | Fix::Replace(_)));
            let change = change(key.unwrap_or(found.sources.text(span)), fix);
            let draft = Draft { code: d.code, message: d.message.clone(), offset, change, emptied: None };
            let draft = Some(draft).filter(&wanted)?;
            let edit = parsed.edit(span, fix).filter(|edit| self.is_unsafe_allowed || edit.is_safe)?;
            Some((Draft { emptied: edit.emptied, ..draft }, edit))
        };
        let own = found.errors().filter(|d| d.span().source == found.id);
        let (drafts, edits): (Vec<Draft>, Vec<Edit>) = own.filter_map(draft).unzip();
        let chosen: BTreeSet<usize> = edit::at_once(&edits).into_iter().collect();
        let chosen = drafts.into_iter().zip(edits).enumerate().filter(|(i, _)| chosen.contains(i));
        chosen.map(|(_, both)| both).unzip()
    }

    /// Makes all edits at once that make the text better. Returns whether there was one.
    fn round(&mut self) -> Result<bool, Failure> {
        let Some(tree) = self.found.tree(self.file.notation) else { return Ok(false) };
        let is_new = |draft: &Draft| !self.refused.contains(&self.name_of(draft));
        let (drafts, edits) = self.drafts(&self.found, &tree, is_new);
        let mut made: Vec<usize> = Vec::new();
        let mut reached: Option<Found> = None;
        let mut following = Vec::new();
        let mut waiting = vec![(0..edits.len()).collect::<Vec<usize>>()];
        while let Some(mut batch) = waiting.pop() {
            let before = reached.as_ref().unwrap_or(&self.found);
            // Another fix may have mended the same.
            let still: BTreeSet<Wrong<'_>> = before.errors().map(wrong).collect();
            batch.retain(|i| drafts.get(*i).is_some_and(|d| still.contains(&(d.code, d.message.as_str()))));
            if batch.is_empty() {
                continue;
            }
            if self.checks.get() == 0 {
                self.untried = self.untried.saturating_add(batch.len());
                continue;
            }
            let verdict = self.verdict(&tree, (&drafts, &edits), reached.as_ref(), &made, &batch)?;
            match verdict {
                Verdict::Better(found) => {
                    made.extend(batch);
                    reached = Some(found);
                }
                Verdict::BetterWith(found, steps) => {
                    made.extend(batch);
                    reached = Some(found);
                    following = steps;
                    // The places of the others are those before these steps.
                    break;
                }
                Verdict::Worse(blamed) => {
                    let is_all = blamed.len() == batch.len();
                    if batch.len() == 1 || is_all && batch.len() > FEW {
                        let names = batch.iter().filter_map(|i| drafts.get(*i)).map(|d| self.name_of(d));
                        let names: Vec<_> = names.collect();
                        self.refused.extend(names);
                    } else if blamed.is_empty() || is_all {
                        let (one, other) = batch.split_at(batch.len() / 2);
                        waiting.extend([other.to_vec(), one.to_vec()]);
                    } else {
                        let (blamed, others) = batch.into_iter().partition(|i| blamed.contains(i));
                        waiting.extend([blamed, others]);
                    }
                }
            }
        }
        let Some(found) = reached else { return Ok(false) };
        let made: BTreeSet<usize> = made.into_iter().collect();
        let pairs = drafts.into_iter().zip(edits).enumerate().filter(|(i, _)| made.contains(i));
        let (drafts, edits): (Vec<Draft>, Vec<Edit>) = pairs.map(|(_, pair)| pair).unzip();
        let changes = edits.into_iter().flat_map(|edit| edit.changes).collect();
        self.go_on(Step { changes, drafts, found });
        following.into_iter().for_each(|step| self.go_on(step));
        Ok(true)
    }

    /// Whether the text gets better by a batch of edits after others, perhaps with the fixes of errors that show only after
    /// them: the keys of a map in the wrong place are checked once the map is in its place.
    fn verdict(
        &self,
        tree: &Node,
        (drafts, edits): (&[Draft], &[Edit]),
        reached: Option<&Found>,
        made: &[usize],
        batch: &[usize],
    ) -> Result<Verdict, Failure> {
        let parsed = Parsed { text: self.found.text(), notation: self.file.notation, tree };
        let all: Vec<usize> = made.iter().chain(batch).copied().collect();
        let together: Vec<&Edit> = all.iter().filter_map(|i| edits.get(*i)).collect();
        let fixes: Vec<&Draft> = batch.iter().filter_map(|i| drafts.get(*i)).collect();
        let Some(text) = parsed.with(&together) else { return Ok(Verdict::Worse(BTreeSet::new())) };
        let after = self.check(&text)?;
        let before = reached.unwrap_or(&self.found);
        let surplus = after.surplus(before, &fixes);
        if surplus.is_empty() {
            return Ok(Verdict::Better(after));
        }
        let brought: Vec<&Diagnostic> = after.errors().filter(|d| surplus.contains(&wrong(d))).collect();
        let without_fix: Vec<&Diagnostic> = brought.iter().copied().filter(|d| d.fix.is_none()).collect();
        let blaming = if without_fix.is_empty() { brought } else { without_fix };
        let places = Places::new(edits, &all);
        let own = blaming.iter().filter(|d| d.span().source == after.id);
        let mut blamed: BTreeSet<usize> = own.flat_map(|d| places.near(d.span().range().start)).collect();
        blamed.retain(|i| batch.contains(i));
        // Those without a fix must be found first.
        if batch.len() > 1 && blaming.iter().any(|d| d.fix.is_none()) {
            return Ok(Verdict::Worse(blamed));
        }
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < MOST_FOLLOWING && self.checks.get() > 0 {
            let last = steps.last().map_or(&after, |step| &step.found);
            let old: BTreeSet<Wrong<'_>> = before.errors().map(wrong).collect();
            let Some(step) = self.following(last, &old)? else { break };
            let is_better = step.found.surplus(last, &step.drafts.iter().collect::<Vec<_>>()).is_empty();
            if !is_better {
                break;
            }
            let is_done = step.found.surplus(before, &fixes).is_empty();
            steps.push(step);
            if is_done {
                return Ok(Verdict::BetterWith(after, steps));
            }
        }
        Ok(Verdict::Worse(blamed))
    }

    /// Removes a map that a fix has left without entries, if the text means the same without it. Returns whether there was one.
    fn without_emptied(&mut self) -> Result<bool, Failure> {
        // Variants may put something into it.
        let tree = self.found.tree(self.file.notation).filter(|tree| tree.get("sweep").is_none());
        let Some(tree) = tree.filter(|_| self.found.meaning.is_some() && !self.emptied.is_empty()) else {
            return Ok(false);
        };
        let parsed = Parsed { text: self.found.text(), notation: self.file.notation, tree: &tree };
        let entries = tree.nodes().filter_map(Node::entries).flatten();
        for entry in entries.filter(|e| e.value.entries().is_some_and(<[_]>::is_empty)) {
            let offset = entry.key_span.range().start;
            let place = self.original(offset);
            let Some(code) = self.emptied.get(&place).copied() else { continue };
            let Some(mut edit) = parsed.edit(entry.key_span, &Fix::Remove) else { continue };
            // A comment in it is not about the entry that was there.
            edit.lost = 0..0;
            let Some(text) = parsed.with(&[&edit]).filter(|_| self.checks.get() > 0) else { continue };
            let found = self.check(&text)?;
            let is_same = found.meaning == self.found.meaning;
            if is_same && found.diagnostics.len() <= self.found.diagnostics.len() {
                let change = format!("`{}` is removed, as it is empty now", entry.key);
                let message = String::new();
                let draft = Draft { code, message, offset, change, emptied: edit.emptied };
                self.go_on(Step { changes: edit.changes, drafts: vec![draft], found });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The fixes of the errors that are not among the old ones.
    fn following(&self, last: &Found, old: &BTreeSet<Wrong<'_>>) -> Result<Option<Step>, Failure> {
        let Some(tree) = last.tree(self.file.notation) else { return Ok(None) };
        let is_new = |draft: &Draft| !old.contains(&(draft.code, draft.message.as_str()));
        let (drafts, edits) = self.drafts(last, &tree, is_new);
        let parsed = Parsed { text: last.text(), notation: self.file.notation, tree: &tree };
        let all: Vec<&Edit> = edits.iter().collect();
        let Some(text) = parsed.with(&all).filter(|_| !all.is_empty()) else { return Ok(None) };
        let found = self.check(&text)?;
        let changes = edits.into_iter().flat_map(|edit| edit.changes).collect();
        Ok(Some(Step { changes, drafts, found }))
    }
}

/// Where edits are in the text that they give.
struct Places<'e> {
    /// What they replace, in order, the length of what replaces it, and the index of the edit.
    changes: Vec<(&'e Range<usize>, usize, usize)>,
    /// The entries around the place of each.
    around: Vec<(usize, &'e [Range<usize>])>,
}

impl<'e> Places<'e> {
    fn new(edits: &'e [Edit], made: &[usize]) -> Self {
        let all = || made.iter().filter_map(|i| Some((*i, edits.get(*i)?)));
        let of = |(i, edit): (usize, &'e Edit)| {
            edit.changes.iter().map(move |(range, text)| (range, text.len(), i))
        };
        let mut changes: Vec<_> = all().flat_map(of).collect();
        changes.sort_by_key(|(range, _, _)| (range.start, range.end));
        Self { changes, around: all().map(|(i, edit)| (i, edit.around.as_slice())).collect() }
    }

    /// The edits that may have brought an error at an offset of the text that they give.
    fn near(&self, offset: usize) -> Vec<usize> {
        let (mut grown, mut shrunk) = (0_usize, 0_usize);
        for (range, length, index) in &self.changes {
            let begin = range.start.saturating_add(grown).saturating_sub(shrunk);
            if offset < begin {
                break;
            }
            if offset < begin.saturating_add(*length) {
                return vec![*index];
            }
            grown = grown.saturating_add(*length);
            shrunk = shrunk.saturating_add(range.len());
        }
        let before = offset.saturating_add(shrunk).saturating_sub(grown);
        let within = |level: usize| {
            let is_in = |around: &&[Range<usize>]| around.get(level).is_some_and(|at| at.contains(&before));
            let here = self.around.iter().filter(|(_, around)| is_in(around));
            here.map(|(index, _)| *index).collect::<Vec<usize>>()
        };
        (0..MOST_AROUND).map(within).find(|here| !here.is_empty()).unwrap_or_default()
    }
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
        Fix::Assign { key, value } => format!("`{word}` is `{key}: {value}` now"),
        Fix::Remove => format!("`{word}` is removed"),
    }
}
