//! Finds which bracket is wrong in a text whose brackets do not match.
//!
//! The place where they stop to match is often far from the slip: a `}` too many closes what is around it, and only the
//! last `}` of the text has no opening bracket. So every change of a single bracket is tried, and the best one is what was
//! meant: the one after which the fewest brackets are without another, the lines are indented as the brackets say, and the
//! text can be parsed. If one change is not enough, the next is looked for after it.

use pest::Parser;

use crate::diag::{Code, Diagnostic};
use crate::source::{SourceId, Span};

use super::grammar::{Grammar, Rule};

/// A bracket, or a word, before and after which one may be missing.
#[derive(Clone, Copy)]
pub struct Mark {
    /// Where it begins and ends.
    pub at: usize,
    pub end: usize,
    pub sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Open(char),
    Close(char),
    Word,
}

/// A change of one bracket. Marks are given by their index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Remove a bracket.
    Remove(usize),
    /// Write another bracket in the place of one.
    Replace(usize, char),
    /// Write a bracket before a mark, or after the last one.
    Insert(usize, char, Where),
}

/// The line of a bracket that is written between two marks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// That of the mark before it.
    Before,
    /// That of the mark after it.
    After,
    /// One of its own.
    Alone,
}

/// How many marks are looked at in all, each as often as there are changes to try: the work grows with their square.
const MOST_WORK: usize = 10_000_000;

/// How many bytes are parsed to tell changes apart that are equally good otherwise.
const MOST_PARSED: usize = 300_000;

/// How many faults of one text are reported.
const MOST_FAULTS: usize = 8;

/// What a fault is worth in comparison to a line that is not indented as its brackets say.
const UNPARSED: usize = 2;

/// The diagnostics for the brackets of a text that do not match; empty if it is not found which ones were meant.
pub fn faults(text: &str, id: SourceId, marks: &[Mark]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut tokens: Vec<Token> = tokens(text, marks);
    let mut edits: Vec<Edit> = Vec::new();
    let mut work = MOST_WORK;
    while found.len() < MOST_FAULTS {
        let now = weigh(&tokens, None, &mut |_, _| {});
        if now.alone == 0 {
            break;
        }
        let most = work.checked_div(tokens.len()).unwrap_or(0);
        let mut changes = changes(&tokens, &now, false);
        if changes.len() > most {
            // In a long text, a bracket is looked for only where a line begins or ends.
            changes = self::changes(&tokens, &now, true);
        }
        if changes.len() > most {
            break;
        }
        work = work.saturating_sub(changes.len().saturating_mul(tokens.len()));
        let Some(best) = best(text, &tokens, &now, &edits, changes) else { break };
        found.push(fault(text, id, &tokens, best));
        edits.push(edit(&tokens, best.change));
        apply(&mut tokens, best.change);
    }
    // The next of several faults is only known if those before it are, so they are in the order of the text.
    found.sort_by_key(|diagnostic: &Diagnostic| diagnostic.span());
    found
}

/// A mark with its line.
#[derive(Clone, Copy)]
struct Token {
    at: usize,
    end: usize,
    sort: Sort,
    line: usize,
    /// The characters before the first mark of the line.
    indent: usize,
    /// Whether it is a bracket that was inserted on a line of its own.
    alone: bool,
}

fn tokens(text: &str, marks: &[Mark]) -> Vec<Token> {
    let (mut line, mut from, mut indent) = (0usize, 0usize, 0usize);
    let mut first = true;
    let mut all = Vec::with_capacity(marks.len());
    for Mark { at, end, sort } in marks.iter().copied() {
        let between = text.get(from..at).unwrap_or("");
        let breaks = between.matches('\n').count();
        line = line.saturating_add(breaks);
        if breaks > 0 || first {
            let start = text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |n| n.saturating_add(1));
            indent = at.saturating_sub(start);
            first = false;
        }
        all.push(Token { at, end, sort, line, indent, alone: false });
        from = end;
    }
    all
}

/// How well brackets match.
#[derive(Clone, Default)]
struct Weight {
    /// The brackets without another one.
    alone: usize,
    /// How often the indent of a line is not what the brackets around it say.
    odd: usize,
    /// The kinds of the brackets without another one, as the brackets that open.
    kinds: Vec<char>,
}

impl Weight {
    fn lonely(&mut self, open: char) {
        self.alone = self.alone.saturating_add(1);
        if !self.kinds.contains(&open) {
            self.kinds.push(open);
        }
    }

    fn odder(&mut self, by: usize) {
        self.odd = self.odd.saturating_add(by);
    }
}

/// A bracket that is open.
struct Open {
    /// Its token; `None` for the one that a change inserts.
    token: Option<usize>,
    kind: char,
    line: usize,
    indent: usize,
    /// The indent of the first line in it.
    inner: Option<usize>,
}

/// Weighs the text with a change. `pair` is called with the two tokens of each pair; `None` is the one that is inserted.
fn weigh(
    tokens: &[Token],
    change: Option<Change>,
    pair: &mut dyn FnMut(Option<usize>, Option<usize>),
) -> Weight {
    let mut weight = Weight::default();
    let mut open: Vec<Open> = Vec::new();
    // Where no line is indented, indents say nothing.
    let is_indented = tokens.iter().any(|token| token.indent > 0);
    let mut line = None;
    // Whether there are only closing brackets in the line so far.
    let mut only_closing = true;
    let mut step = |index: Option<usize>, token: Token| {
        if token.alone {
            close(&mut open, &mut weight, index, token, true, pair);
            return;
        }
        let is_first = line != Some(token.line);
        if is_first {
            (line, only_closing) = (Some(token.line), true);
        }
        if let Sort::Close(_) = token.sort {
            close(&mut open, &mut weight, index, token, only_closing, pair);
            return;
        }
        only_closing = false;
        if is_first && is_indented {
            match open.last_mut() {
                // What is outside of all brackets is not indented.
                None => weight.odder(usize::from(token.indent > 0)),
                Some(around) if token.indent <= around.indent => weight.odder(1),
                Some(around) => {
                    let inner = *around.inner.get_or_insert(token.indent);
                    weight.odder(usize::from(inner != token.indent));
                }
            }
        }
        if let Sort::Open(kind) = token.sort {
            open.push(Open { token: index, kind, line: token.line, indent: token.indent, inner: None });
        }
    };
    for (index, token) in tokens.iter().enumerate() {
        match change {
            Some(Change::Insert(before, c, place)) if before == index => {
                let before = index.checked_sub(1).and_then(|i| tokens.get(i));
                step(None, inserted(before, Some(token), c, place));
                step(Some(index), *token);
            }
            Some(Change::Remove(gone)) if gone == index => {}
            Some(Change::Replace(other, c)) if other == index => {
                step(Some(index), Token { sort: sort_of(c), ..*token });
            }
            _ => step(Some(index), *token),
        }
    }
    if let Some(Change::Insert(before, c, place)) = change
        && before == tokens.len()
    {
        step(None, inserted(tokens.last(), None, c, place));
    }
    open.iter().for_each(|open| weight.lonely(open.kind));
    weight
}

/// The token of a bracket that is inserted between two.
fn inserted(before: Option<&Token>, after: Option<&Token>, c: char, place: Where) -> Token {
    let next_to = if place == Where::After { after.or(before) } else { before.or(after) };
    let (at, line, indent) = next_to.map_or((0, 0, 0), |token| (token.end, token.line, token.indent));
    let at = if place == Where::After { after.map_or(at, |after| after.at) } else { at };
    Token { at, end: at, sort: sort_of(c), line, indent, alone: place == Where::Alone }
}

/// Closes the bracket that this one belongs to. `leads` says whether only such brackets are before it in its line.
fn close(
    open: &mut Vec<Open>,
    weight: &mut Weight,
    index: Option<usize>,
    token: Token,
    leads: bool,
    pair: &mut dyn FnMut(Option<usize>, Option<usize>),
) {
    let Sort::Close(c) = token.sort else { return };
    let kind = opening(c);
    let Some(at) = open.iter().rposition(|open| open.kind == kind) else {
        weight.lonely(kind);
        return;
    };
    for left in open.drain(at.saturating_add(1)..) {
        weight.lonely(left.kind);
    }
    let Some(begin) = open.pop() else { return };
    pair(begin.token, index);
    if begin.line == token.line || token.alone {
        return;
    }
    weight.odder(match leads {
        true => usize::from(begin.indent != token.indent).saturating_mul(2),
        // A bracket at the end of the last line in it.
        false if token.indent > begin.indent => 1,
        false => 2,
    });
}

/// A change, with what comes of it.
#[derive(Clone, Copy)]
struct Best {
    change: Change,
    /// Whether the opposite change is as good: to close a bracket or to remove it.
    either: bool,
}

/// The best change of a text of which these edits have been made.
fn best(text: &str, tokens: &[Token], now: &Weight, edits: &[Edit], changes: Vec<Change>) -> Option<Best> {
    let mut all: Vec<(Weight, Change)> = Vec::new();
    for change in changes {
        let weight = weigh(tokens, Some(change), &mut |_, _| {});
        if weight.alone < now.alone {
            all.push((weight, change));
        }
    }
    // Of equal ones the last place in the text: brackets are forgotten where several are closed. If there are more faults after
    // it, the first: what is wrong there makes the indents wrong up to the end.
    let order = |(weight, change): &(Weight, Change)| {
        let index = place(*change);
        let at = if weight.alone == 0 { tokens.len().saturating_sub(index) } else { index };
        (weight.alone, weight.odd, rank(tokens, *change), at)
    };
    let first = *all.iter().min_by_key(|candidate| order(candidate)).map(|(_, change)| change)?;
    // There are many places for a bracket that is missing, and few brackets to change.
    let inserts = |change: &Change| matches!(change, Change::Insert(..));
    let least = all.iter().map(|(weight, _)| weight.odd).min()?;
    all.retain(|(weight, _)| weight.alone == 0 && weight.odd <= least.saturating_add(UNPARSED));
    all.sort_by_key(|candidate| (inserts(&candidate.1), order(candidate)));
    let most = MOST_PARSED.checked_div(text.len()).unwrap_or(0);
    let is_parsed = |(_, change): &&(Weight, Change)| {
        let all = edits.iter().copied().chain([edit(tokens, *change)]).collect();
        Grammar::parse(Rule::file, &edited(text, all)).is_ok()
    };
    let parsed: Vec<&(Weight, Change)> = all.iter().take(most).filter(is_parsed).collect();
    let change = parsed.iter().min_by_key(|candidate| order(candidate)).map_or(first, |best| best.1);
    let odd = parsed.iter().map(|(weight, _)| weight.odd).min();
    let is_other = |(weight, change): &&(Weight, Change), of: Change| {
        let replaces = |change: &Change| matches!(change, Change::Replace(..));
        Some(weight.odd) == odd && inserts(change) != inserts(&of) && !replaces(change) && !replaces(&of)
    };
    let either =
        (parsed.is_empty() && !all.is_empty()) || parsed.iter().any(|candidate| is_other(candidate, change));
    Some(Best { change, either })
}

/// The changes that may mend what does not match, on request only with those that insert a bracket between two lines.
fn changes(tokens: &[Token], now: &Weight, only_breaks: bool) -> Vec<Change> {
    let mut all = Vec::new();
    for index in 0..=tokens.len() {
        let before = index.checked_sub(1).and_then(|i| tokens.get(i));
        let after = tokens.get(index);
        let is_break = before.map(|token| token.line) != after.map(|token| token.line);
        for open in now.kinds.iter().copied().filter(|_| is_break || !only_breaks) {
            for c in [open, closing(open)] {
                all.push(Change::Insert(index, c, Where::Before));
                if is_break && c == open && after.is_some() {
                    all.push(Change::Insert(index, c, Where::After));
                }
                if is_break && c != open && before.is_some() {
                    all.push(Change::Insert(index, c, Where::Alone));
                }
            }
        }
        let (others, of_kind): ([char; 3], char) = match after.map(|token| token.sort) {
            Some(Sort::Open(c)) => (['{', '[', '('], c),
            Some(Sort::Close(c)) => (['}', ']', ')'], opening(c)),
            Some(Sort::Word) | None => continue,
        };
        if now.kinds.contains(&of_kind) {
            all.push(Change::Remove(index));
        }
        all.extend(
            others
                .into_iter()
                .filter(|c| Some(sort_of(*c)) != after.map(|token| token.sort))
                .map(|c| Change::Replace(index, c)),
        );
    }
    all
}

/// Which of several equally good changes is more probably what was meant: the lower one.
fn rank(tokens: &[Token], change: Change) -> usize {
    let is_open = |index: usize| matches!(tokens.get(index).map(|token| token.sort), Some(Sort::Open(_)));
    match change {
        Change::Remove(index) if !is_open(index) => 0,
        Change::Insert(_, c, _) if matches!(sort_of(c), Sort::Close(_)) => 0,
        Change::Replace(index, _) if !is_open(index) => 1,
        Change::Replace(..) => 2,
        Change::Insert(..) => 3,
        Change::Remove(_) => 4,
    }
}

fn place(change: Change) -> usize {
    match change {
        Change::Remove(index) | Change::Replace(index, _) | Change::Insert(index, _, _) => index,
    }
}

/// A change of the text: a range, and what is written in its place.
type Edit = (usize, usize, Option<char>);

fn edit(tokens: &[Token], change: Change) -> Edit {
    let at = |index: usize| tokens.get(index).map_or((0, 0), |token| (token.at, token.end));
    match change {
        Change::Remove(index) => (at(index).0, at(index).1, None),
        Change::Replace(index, c) => (at(index).0, at(index).1, Some(c)),
        Change::Insert(index, c, place) => {
            let before = index.checked_sub(1).and_then(|i| tokens.get(i));
            let new = inserted(before, tokens.get(index), c, place);
            (new.at, new.end, Some(c))
        }
    }
}

/// The text with these edits.
fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(start, end, _)| (*start, *end));
    let (mut out, mut from) = (String::with_capacity(text.len().saturating_add(edits.len())), 0);
    for (start, end, c) in edits {
        out.push_str(text.get(from..start).unwrap_or(""));
        out.extend(c);
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or(""));
    out
}

fn apply(tokens: &mut Vec<Token>, change: Change) {
    match change {
        Change::Remove(index) if index < tokens.len() => drop(tokens.remove(index)),
        Change::Remove(_) => {}
        Change::Replace(index, c) => {
            if let Some(token) = tokens.get_mut(index) {
                token.sort = sort_of(c);
            }
        }
        Change::Insert(index, c, place) => {
            let before = index.checked_sub(1).and_then(|i| tokens.get(i));
            let new = inserted(before, tokens.get(index), c, place);
            tokens.insert(index.min(tokens.len()), new);
        }
    }
}

/// The diagnostic for what a change mends.
fn fault(text: &str, id: SourceId, tokens: &[Token], best: Best) -> Diagnostic {
    let change = best.change;
    let mut pairs: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    weigh(tokens, Some(change), &mut |open, close| pairs.push((open, close)));
    let span = |token: &Token| Span::new(id, token.at, token.end.max(token.at));
    let of = |index: usize| tokens.get(index).map_or(Span::new(id, 0, 0), span);
    let error = |at: Span, message: String| Diagnostic::error(Code::Syntax, at, message);
    let written = |index: usize| match tokens.get(index).map(|token| token.sort) {
        Some(Sort::Open(c) | Sort::Close(c)) => c,
        Some(Sort::Word) | None => ' ',
    };
    match change {
        Change::Remove(index) => match tokens.get(index).map(|token| token.sort) {
            Some(Sort::Open(c)) => error(of(index), format!("`{c}` is never closed"))
                .help(format!("remove it, or close it with `{}`", closing(c))),
            _ => {
                let help =
                    if best.either { "remove it, or add the opening bracket before it" } else { "remove it" };
                error(of(index), format!("this `{}` has no opening bracket", written(index))).help(help)
            }
        },
        Change::Replace(index, c) => match (
            sort_of(c),
            pairs.iter().find(|(open, close)| *open == Some(index) || *close == Some(index)),
        ) {
            (Sort::Close(_), Some((Some(open), _))) => {
                error(of(index), format!("`{}` is closed by `{}`", written(*open), written(index)))
                    .label(of(*open), "opened here")
                    .help(format!("close it with `{c}`"))
            }
            (_, Some((_, Some(close)))) => {
                error(of(index), format!("`{}` is closed by `{}`", written(index), written(*close)))
                    .label(of(*close), "closed here")
                    .help(format!("open it with `{c}`"))
            }
            // A bracket that is replaced has its other one.
            _ => error(of(index), format!("this `{}` has no other bracket", written(index))),
        },
        Change::Insert(index, c, place) => {
            let before = index.checked_sub(1).and_then(|i| tokens.get(i));
            let after = tokens.get(index);
            let next_to = match (place, before, after) {
                (Where::Before, Some(before), _) => Some((before, "after")),
                (_, _, Some(after)) => Some((after, "before")),
                (_, before, None) => before.map(|before| (before, "after")),
            };
            let there = next_to.map_or(Span::new(id, 0, 0), |(token, _)| span(token));
            let side = next_to.map_or("after", |(_, side)| side);
            let partner = pairs.iter().find_map(|pair| match pair {
                (None, Some(close)) => Some(*close),
                (Some(open), None) => Some(*open),
                _ => None,
            });
            match (sort_of(c), partner.and_then(|index| Some((index, tokens.get(index)?)))) {
                (Sort::Close(_), Some((open, token))) => {
                    let message = format!("`{}` is never closed", written(open));
                    let help = if best.either {
                        format!("close it with `{c}`, or remove it")
                    } else {
                        format!("close it with `{c}`")
                    };
                    let diagnostic = error(of(open), message);
                    let is_far = next_to.is_some_and(|(near, _)| near.line != token.line);
                    let diagnostic = if is_far {
                        diagnostic.label(there, format!("`{c}` is missing {side} this"))
                    } else {
                        diagnostic
                    };
                    diagnostic.help(help)
                }
                (_, Some((close, _))) => {
                    let diagnostic = error(there, format!("`{c}` is missing {side} this"))
                        .label(of(close), format!("this `{}` has no opening bracket", written(close)));
                    match before.filter(|_| side == "after") {
                        Some(before) => {
                            let line = text.get(..before.end).unwrap_or("").rsplit('\n').next().unwrap_or("");
                            let gap = if c == '{' { " " } else { "" };
                            let words = line.trim_start();
                            let shown = if words.len() > 40 {
                                text.get(before.at..before.end).unwrap_or("")
                            } else {
                                words
                            };
                            diagnostic.help(format!("write `{shown}{gap}{c}`"))
                        }
                        None => diagnostic.help(format!("write `{c}` there")),
                    }
                }
                (_, None) => error(there, format!("`{c}` is missing {side} this")),
            }
        }
    }
}

/// Whether a bracket opens or closes.
fn sort_of(c: char) -> Sort {
    if matches!(c, '{' | '[' | '(') { Sort::Open(c) } else { Sort::Close(c) }
}

/// The bracket that closes this one.
pub fn closing(open: char) -> char {
    match open {
        '{' => '}',
        '[' => ']',
        // There are three brackets that open.
        _ => ')',
    }
}

/// The bracket that this one closes.
fn opening(close: char) -> char {
    match close {
        '}' => '{',
        ']' => '[',
        _ => '(',
    }
}
