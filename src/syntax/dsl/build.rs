//! Turns what the grammar has matched into a tree. Notation is resolved here: later code does not see how a
//! map was written.

use std::collections::{BTreeMap, BTreeSet};

use pest::iterators::{Pair, Pairs};

use crate::diag::{Code, Diagnostic, Sink};
use crate::source::{SourceId, Span};
use crate::syntax::equation::{PART_PARAMS, usual_params};
use crate::syntax::quotient;
use crate::syntax::text::{Limits, MAX_KEY, dedent, one_line, too_many_values};
use crate::syntax::tree::{Entry, Kind, Node, Style};

use super::grammar::Rule;

/// The tree of a whole text.
pub fn tree(pairs: Pairs<'_, Rule>, text: &str, id: SourceId, sink: &mut Sink) -> Option<Node> {
    let file = pairs.into_iter().next()?;
    let mut found = Sink::new();
    let mut builder = Builder { text, id, sink: &mut found, sound: true, dropped: 0 };
    let root = file.into_inner().next()?;
    let tree = match root.as_rule() {
        Rule::model => builder.model(root),
        Rule::library => builder.library(root),
        // A text without a value is an empty document, as in YAML; decoding it reports which keys are
        // missing.
        Rule::EOI => Node { kind: Kind::Null, span: builder.span(&root) },
        _ => builder.value(root),
    };
    let (sound, dropped) = (builder.sound, builder.dropped);
    if tree.keys_and_values().saturating_add(dropped) > Limits::SPEC.nodes {
        // One error instead of thousands, which would not show that this file is no spec.
        sink.push(too_many_values(Limits::SPEC, Span::new(id, 0, 0)));
        return None;
    }
    found.into_sorted().into_iter().for_each(|diagnostic| sink.push(diagnostic));
    sound.then_some(tree)
}

struct Builder<'a, 's> {
    text: &'a str,
    id: SourceId,
    sink: &'s mut Sink,
    /// Whether every value could be read; a duplicate key does not count, because the first one is kept.
    sound: bool,
    /// How many keys and values are left out of the tree because their key is wrong or was given before.
    dropped: usize,
}

impl Builder<'_, '_> {
    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        Span::new(self.id, span.start(), span.end())
    }

    /// `model NAME { ... }`: the body, preceded by the name.
    fn model(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        let mut entries = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::model_name => {
                    let key_span = self.span(&part);
                    let value = match part.into_inner().next() {
                        Some(name) if name.as_rule() == Rule::text => self.text_node(name),
                        Some(name) => Node::plain(name.as_str(), self.span(&name)),
                        None => Node { kind: Kind::Null, span: key_span },
                    };
                    entries.push(Entry { key: "name".to_owned(), key_span, value });
                }
                Rule::body => self.entries(part, &mut entries),
                _ => {}
            }
        }
        self.map(entries, span)
    }

    /// The parts of a file that has nothing else.
    fn library(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        let mut entries = Vec::new();
        pair.into_inner().for_each(|part| self.part(part, &mut entries));
        self.map(entries, span)
    }

    fn body(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        let mut entries = Vec::new();
        self.entries(pair, &mut entries);
        self.map(entries, span)
    }

    /// Adds the entries of a body.
    fn entries(&mut self, body: Pair<'_, Rule>, entries: &mut Vec<Entry>) {
        for entry in body.into_inner().filter(|p| p.as_rule() == Rule::entry) {
            let Some(entry) = entry.into_inner().next() else { continue };
            match entry.as_rule() {
                Rule::equation => {
                    let entry = self.equation(entry);
                    entries.push(entry);
                }
                Rule::ranges => self.range(entry, entries),
                Rule::part => self.part(entry, entries),
                _ => {
                    if let Some(entry) = self.setting(entry) {
                        entries.push(entry);
                    }
                }
            }
        }
    }

    /// The map of some entries, of which those with the key of an earlier one are left out.
    fn map(&mut self, entries: Vec<Entry>, span: Span) -> Node {
        Node::map(self.unique(entries), span)
    }

    fn unique(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut places: BTreeMap<String, Span> = BTreeMap::new();
        for mut entry in entries {
            if entry.key.chars().count() > MAX_KEY {
                let message = format!("a key is at most {MAX_KEY} characters long");
                self.sink.push(Diagnostic::error(Code::BadKey, entry.key_span, message));
                self.dropped = self.dropped.saturating_add(entry.value.keys_and_values().saturating_add(1));
                continue;
            }
            if let Some(first) = places.get(&entry.key) {
                let message = format!("`{}` is given twice", entry.key);
                let diagnostic =
                    Diagnostic::error(Code::DuplicateKey, entry.key_span, message).here("again here");
                self.sink.push(diagnostic.label(*first, "first given here").help("keep one of the two"));
                self.dropped = self.dropped.saturating_add(entry.value.keys_and_values().saturating_add(1));
                continue;
            }
            if self.is_gathered(&entry)
                && let Kind::Map(inner) = &mut entry.value.kind
            {
                *inner = self.unique(std::mem::take(inner));
            }
            places.insert(entry.key.clone(), entry.key_span);
            kept.push(entry);
        }
        kept
    }

    /// Whether an entry is the map that constructs with a word of their own are gathered in, as opposed to one
    /// that the author wrote as `ranges: {..}`.
    fn is_gathered(&self, entry: &Entry) -> bool {
        matches!(entry.key.as_str(), "ranges" | "parts")
            && self.text.get(entry.key_span.range()) != Some(entry.key.as_str())
    }

    fn setting(&mut self, pair: Pair<'_, Rule>) -> Option<Entry> {
        let mut parts = pair.into_inner();
        let (key, key_span) = self.key(parts.next()?);
        let form = parts.next()?;
        let value = match form.as_rule() {
            Rule::assigned => self.value(form.into_inner().find(|p| p.as_rule() != Rule::equals)?),
            Rule::repeated => self.repeated(form)?,
            _ if key == "block" => self.bare_equation(form),
            _ => self.body(form),
        };
        Some(Entry { key, key_span, value })
    }

    /// `block { ... }`, which lacks its parameters. Decoding reports the map; but where a name is assigned twice, as in
    /// an equation, no map has every line, so it is reported here.
    fn bare_equation(&mut self, form: Pair<'_, Rule>) -> Node {
        let (span, written) = (self.span(&form), form.as_str());
        let mut entries = Vec::new();
        self.entries(form.clone(), &mut entries);
        let mut met = BTreeSet::new();
        if entries.iter().all(|entry| met.insert(&entry.key)) {
            return self.map(entries, span);
        }
        let message = "an equation in braces is given its parameters, and this `block` has none";
        let help = "write `block(x) { ... }`";
        self.sink.push(Diagnostic::error(Code::WrongKind, span, message).help(help));
        // As the author meant it, so that nothing else follows from the mistake.
        let inside = written.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(written);
        self.block_text(inside, (span.start as usize).saturating_add(1))
    }

    /// `x 12 { ... }`: the body, preceded by the count.
    fn repeated(&mut self, pair: Pair<'_, Rule>) -> Option<Node> {
        let span = self.span(&pair);
        let mut parts = pair.into_inner();
        let key_span = self.span(&parts.next()?);
        let value = self.value(parts.next()?);
        let mut entries = vec![Entry { key: "layers".to_owned(), key_span, value }];
        self.entries(parts.next()?, &mut entries);
        Some(self.map(entries, span))
    }

    /// `layers 0..3 { ... }`: an entry of the map under `ranges`.
    fn range(&mut self, pair: Pair<'_, Rule>, entries: &mut Vec<Entry>) {
        let whole = self.span(&pair);
        let mut parts = pair.into_inner();
        let (Some(word), Some(range), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return;
        };
        let word_span = self.span(&word);
        let (key, key_span) = (range.as_str().to_owned(), self.span(&range));
        let entry = Entry { key, key_span, value: self.body(body) };
        self.add_below("ranges", (word_span, whole), entry, entries);
    }

    /// Adds an entry to the map under `key`, which a construct with a word of its own stands for. The spans are
    /// those of the word and of the whole construct.
    fn add_below(&mut self, key: &str, (word, whole): (Span, Span), entry: Entry, entries: &mut Vec<Entry>) {
        // A map that the author wrote as `ranges: {..}` is not extended; the two are reported as duplicates.
        let known = entries.iter_mut().find(|e| e.key == key && self.is_gathered(e));
        match known {
            Some(Entry { value: Node { kind: Kind::Map(inner), span }, .. }) => {
                *span = span.to(whole);
                inner.push(entry);
            }
            Some(_) | None => {
                let value = Node::map(vec![entry], whole);
                entries.push(Entry { key: key.to_owned(), key_span: word, value });
            }
        }
    }

    /// `part NAME(x) { ... }`: an entry of the map under `parts`, with the text between the braces.
    fn part(&mut self, pair: Pair<'_, Rule>, entries: &mut Vec<Entry>) {
        let whole = self.span(&pair);
        let mut word = whole;
        let mut key = (String::new(), whole);
        let mut names: Vec<String> = Vec::new();
        let mut header = whole;
        let mut value = Node::scalar("", Style::Block, whole);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::part_word => word = self.span(&part),
                Rule::word => key = (part.as_str().to_owned(), self.span(&part)),
                Rule::params => {
                    header = self.span(&part);
                    names = part.into_inner().map(|p| p.as_str().to_owned()).collect();
                }
                Rule::wiring => value = self.block_text(part.as_str(), part.as_span().start()),
                _ => {}
            }
        }
        if names != PART_PARAMS {
            value = with_header(&names, header, &value);
        }
        let (key, key_span) = key;
        self.add_below("parts", (word, whole), Entry { key, key_span, value }, entries);
    }

    /// `block(x) { ... }`: the text between the braces, under the key `block`. Parameters that an equation
    /// does not have by default are kept as its header.
    fn equation(&mut self, pair: Pair<'_, Rule>) -> Entry {
        let mut key_span = self.span(&pair);
        let mut names: Vec<String> = Vec::new();
        let mut header = key_span;
        let mut value = Node::scalar("", Style::Block, key_span);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::block_word => key_span = self.span(&part),
                Rule::params => {
                    header = self.span(&part);
                    names = part.into_inner().map(|p| p.as_str().to_owned()).collect();
                }
                Rule::wiring => value = self.block_text(part.as_str(), part.as_span().start()),
                _ => {}
            }
        }
        // A header is kept only where the text alone would give other parameters, so that `block(x) { ... }`
        // and a bare text in YAML are equal trees.
        if names != usual_params(value.text().unwrap_or("")) {
            value = with_header(&names, header, &value);
        }
        Entry { key: "block".to_owned(), key_span, value }
    }

    fn key(&mut self, pair: Pair<'_, Rule>) -> (String, Span) {
        match pair.into_inner().next() {
            Some(key) if key.as_rule() == Rule::text => {
                let node = self.text_node(key);
                let range = node.span.range();
                // Without the quotes, as in YAML.
                let inner = Span::new(self.id, range.start.saturating_add(1), range.end.saturating_sub(1));
                (node.text().unwrap_or("").to_owned(), inner)
            }
            Some(word) => (word.as_str().to_owned(), self.span(&word)),
            None => (String::new(), Span::default()),
        }
    }

    fn value(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::value => match pair.into_inner().next() {
                Some(inner) => self.value(inner),
                None => Node { kind: Kind::Null, span },
            },
            Rule::body => self.body(pair),
            Rule::list => {
                // The closing bracket is a rule of its own so that messages can name it.
                let items = pair.into_inner().filter(|p| p.as_rule() != Rule::close_bracket);
                let items = items.map(|p| self.value(p)).collect();
                Node { kind: Kind::List(items), span }
            }
            Rule::deletion => Node { kind: Kind::Delete, span },
            Rule::text => self.text_node(pair),
            Rule::long_text => match pair.into_inner().next() {
                Some(inner) => self.block_text(inner.as_str(), inner.as_span().start()),
                None => Node::scalar("", Style::Block, span),
            },
            Rule::call => self.call(pair),
            // Only the bare word: `"null"` is a text.
            _ if pair.as_str() == "null" => Node { kind: Kind::Null, span },
            _ => {
                self.quotient(pair.as_str(), span);
                Node::plain(one_line(pair.as_str()), span)
            }
        }
    }

    /// Reports a comment after a value that is meant as the divisor of a quotient: a number alone, or the name of a
    /// setting of the text.
    fn quotient(&mut self, value: &str, span: Span) {
        let rest = self.text.get(span.end as usize..).unwrap_or("");
        let gap = rest.len().saturating_sub(rest.trim_start_matches([' ', '\t']).len());
        let Some(below) = rest.get(gap..).and_then(|rest| rest.strip_prefix("//")) else { return };
        let below = below.split('\n').next().unwrap_or("");
        let is_word = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains(' ');
        let is_set = |name: &str| {
            let after = self.text.split(name).skip(1).map(str::trim_start);
            is_word(name) && after.into_iter().any(|after| after.starts_with('=') || after.starts_with('{'))
        };
        if quotient::is_meant(value, below) || is_set(below.trim()) {
            let at = (span.end as usize).saturating_add(gap);
            let span = Span::new(self.id, at, at.saturating_add(2));
            let message = "`//` begins a comment, so what follows it does not count";
            let help = quotient::help(one_line(value).as_str(), below);
            self.sink.push(Diagnostic::error(Code::Expression, span, message).help(help));
        }
    }

    /// `layer_norm(eps: 1e-5)`, `window(4096)`: a map with one key.
    fn call(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        let mut parts = pair.into_inner();
        let Some(word) = parts.next() else { return Node { kind: Kind::Null, span } };
        let key_span = self.span(&word);
        let inside = Span::new(self.id, key_span.end as usize, span.end as usize);
        let mut fields = Vec::new();
        let mut only = None;
        for argument in parts.filter(|p| p.as_rule() == Rule::arguments).flat_map(Pair::into_inner) {
            if argument.as_rule() != Rule::named {
                only = Some(self.value(argument));
                continue;
            }
            let mut named = argument.into_inner();
            let key = named.next().map(|p| self.key(p));
            let value = named.find(|p| p.as_rule() != Rule::colon).map(|p| self.value(p));
            if let (Some((key, key_span)), Some(value)) = (key, value) {
                fields.push(Entry { key, key_span, value });
            }
        }
        // The place of the fields are the parentheses, so that a missing one is reported there and not at the
        // part's name.
        let value = only.unwrap_or_else(|| self.map(fields, inside));
        // A word that is too long for a key is refused there.
        self.map(vec![Entry { key: word.as_str().to_owned(), key_span, value }], span)
    }

    /// A quoted text with its escapes resolved.
    fn text_node(&mut self, pair: Pair<'_, Rule>) -> Node {
        let span = self.span(&pair);
        let Some(inner) = pair.into_inner().next() else { return Node::scalar("", Style::Quoted, span) };
        let base = inner.as_span().start();
        let mut text = String::new();
        let mut chars = inner.as_str().char_indices();
        while let Some((at, c)) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            let rest = inner.as_str().get(at.saturating_add(1)..).unwrap_or("");
            match escape(rest) {
                Some((c, len)) => {
                    text.push(c);
                    // The characters of the escape have been read.
                    let end = at.saturating_add(1).saturating_add(len);
                    while chars.clone().next().is_some_and(|(next, _)| next < end) {
                        chars.next();
                    }
                }
                None => {
                    let place = Span::new(
                        self.id,
                        base.saturating_add(at),
                        base.saturating_add(at)
                            .saturating_add(1)
                            .saturating_add(rest.chars().next().map_or(0, char::len_utf8)),
                    );
                    let message = "this escape does not represent a character";
                    let help = "the escapes are \\n, \\t, \\r, \\\", \\\\ and \\u{20ac}";
                    self.sink.push(Diagnostic::error(Code::Syntax, place, message).help(help));
                    // The text is read on, so that every wrong escape in it is reported.
                    self.sound = false;
                }
            }
        }
        Node::scalar(text, Style::Quoted, span)
    }

    /// The lines between marks that begin at `start`, without their common indent.
    fn block_text(&self, written: &str, start: usize) -> Node {
        // Blanks in ASCII only: a line separator or a wide space at an end belongs to the text.
        let blank = [' ', '\t', '\r', '\n'];
        let leading = written.len().saturating_sub(written.trim_start_matches(blank).len());
        let end = written.trim_end_matches(blank).len().max(leading);
        let span = Span::new(self.id, start.saturating_add(leading), start.saturating_add(end));
        Node::scalar(dedent(written), Style::Block, span)
    }
}

/// The text of an equation with its parameters, which have the place `header`, on a line before it.
fn with_header(names: &[String], header: Span, value: &Node) -> Node {
    let text = format!("({}):\n{}", names.join(", "), value.text().unwrap_or(""));
    Node::scalar(text, Style::Block, header.to(value.span))
}

/// The character that an escape means, and its number of bytes after the backslash.
fn escape(rest: &str) -> Option<(char, usize)> {
    match rest.chars().next()? {
        'n' => Some(('\n', 1)),
        't' => Some(('\t', 1)),
        'r' => Some(('\r', 1)),
        '"' => Some(('"', 1)),
        '\\' => Some(('\\', 1)),
        'u' => {
            let digits = rest.strip_prefix("u{")?;
            // Six digits are enough for every character.
            let end = digits.find('}').filter(|n| (1..=6).contains(n))?;
            let code = u32::from_str_radix(digits.get(..end)?, 16).ok()?;
            Some((char::from_u32(code)?, end.saturating_add(3)))
        }
        _ => None,
    }
}
