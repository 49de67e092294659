//! A text → its [`Outline`]: every comment and blank line is attached to the value it belongs to.
//!
//! A comment on its own line belongs to what follows it, or to the end of the map that contains it; a
//! comment after a value belongs to that value. Comments inside of an equation are part of its text.

use std::collections::{BTreeSet, VecDeque};

use super::Notation;
use super::comment::Comment;
use super::dsl::string_len;
use super::outline::{Group, Outline, Value};
use super::text::as_comment;
use super::tree::{Kind, Node, Style};
use super::yaml::lossless;

/// The comments of a text that parses without errors, in order; `tree` is what it parses to.
pub fn all(text: &str, notation: Notation, tree: &Node) -> Vec<Comment> {
    match notation {
        Notation::Yaml => lossless::read(text).comments,
        Notation::Dsl => dsl_comments(text, tree),
    }
}

/// The outline of a text that parses without errors; `tree` is what it parses to.
pub fn read(text: &str, notation: Notation, tree: &Node) -> Outline {
    let (mut outline, mut comments) = match notation {
        Notation::Yaml => {
            let found = lossless::read(text);
            (found.outline, found.comments)
        }
        // The tree of the DSL has no aliases to expand, so its places are enough.
        Notation::Dsl => (dsl_outline(text, tree), dsl_comments(text, tree)),
    };
    for comment in &mut comments {
        comment.text = as_comment(&comment.text);
    }
    let mut ahead = BTreeSet::new();
    starts(&outline, &mut ahead);
    let by_indent = notation == Notation::Yaml;
    let lines = text.match_indices('\n').map(|(at, _)| at.saturating_add(1)).collect();
    let mut filler = Filler { text, lines, comments: comments.into(), ahead, by_indent };
    filler.root(&mut outline);
    outline
}

fn dsl_outline(text: &str, tree: &Node) -> Outline {
    let slice = |n: &Node| text.get(n.span.range()).unwrap_or("");
    // `norm(eps: 1)` and `norm { eps = 1 }` are equal trees: only the place of the first begins at its word
    // and ends in `)`.
    let is_call = |n: &Node| match &n.kind {
        Kind::Map(entries) => {
            matches!(entries.as_slice(), [only] if only.key_span.start == n.span.start)
                && slice(n).ends_with(')')
        }
        Kind::Null | Kind::Delete | Kind::Scalar(_) | Kind::List(_) => false,
    };
    let is_leaf = |n: &Node| !matches!(n.kind, Kind::Map(_) | Kind::List(_));
    let spread = |n: &Node| {
        let opens = |before: &str| before.ends_with('\n');
        let blank = text.get(..n.span.start as usize).unwrap_or("").trim_end_matches([' ', '\t']);
        match &n.kind {
            // A text of one line is spread as well if it begins on the line below its opening mark.
            Kind::Scalar(s) if s.style == Style::Block => Some(slice(n).contains('\n') || opens(blank)),
            Kind::Scalar(_) | Kind::Null | Kind::Delete => Some(false),
            // Between the parentheses of `window(4096)` there is nothing to spread.
            Kind::Map(entries)
                if is_call(n) && matches!(entries.as_slice(), [one] if is_leaf(&one.value)) =>
            {
                Some(false)
            }
            Kind::List(_) | Kind::Map(_) => Some(slice(n).contains('\n')),
        }
    };
    let close = |n: &Node| Some(n.span.end as usize);
    let mut outline = Outline::build(tree, &spread, &is_call, &close);
    with_marks(&mut outline, text);
    outline
}

/// Extends block texts to the marks around them, `{ }` or quotes, and records which entries share a line.
fn with_marks(outline: &mut Outline, text: &str) {
    match &mut outline.value {
        Value::Group(group) => {
            let mut before = None;
            for item in &mut group.items {
                with_marks(item, text);
                let between = |from: usize| text.get(from..item.start).is_some_and(|t| !t.contains('\n'));
                item.is_on_same_line = before.is_some_and(between);
                before = Some(item.end);
            }
            // All parts, and all ranges of layers, are groups without brackets: they end with their last item, and a comment on its
            // line belongs to that item.
            let last = group.items.iter().map(|item| item.end).max().unwrap_or(0);
            if !group.call && group.close.is_some_and(|close| close <= last) {
                let rest = text.get(last..).unwrap_or("");
                outline.end = last;
                group.close =
                    Some(last.saturating_add(rest.find('\n').unwrap_or(rest.len()).saturating_add(1)));
            }
        }
        // The tree has only the place of the text. The closing mark may be on a later line, and a comment
        // after it belongs to the value.
        Value::Scalar { style: Style::Block, .. } => {
            let rest = text.get(outline.end..).unwrap_or("");
            let blank = rest.len().saturating_sub(rest.trim_start().len());
            let rest = rest.trim_start();
            let quotes = rest.len().saturating_sub(rest.trim_start_matches('"').len());
            // A brace closes an equation; a text is closed by as many quotation marks as opened it.
            let mark = if rest.starts_with('}') { 1 } else { quotes };
            outline.end = outline.end.saturating_add(blank).saturating_add(mark).min(text.len());
            // With a key, the outline begins at the key, which is before the mark anyway.
            if outline.key.is_none() {
                let before = text.get(..outline.start).unwrap_or("").trim_end();
                outline.start = before.trim_end_matches('"').len();
            }
        }
        Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => {}
    }
}

/// The comments of a DSL text, except those inside an equation or a quoted text.
fn dsl_comments(text: &str, tree: &Node) -> Vec<Comment> {
    let mut inside = Vec::new();
    block_ranges(tree, &mut inside);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = text.get(at..).unwrap_or("");
        if c == '#' || rest.starts_with("//") {
            let len = rest.find('\n').unwrap_or(rest.len());
            if !inside.iter().any(|r: &std::ops::Range<usize>| r.contains(&at)) {
                found.push(Comment { text: rest.get(..len).unwrap_or("").trim_end().to_owned(), start: at });
            }
            at = at.saturating_add(len.max(1));
        } else if c == '"' {
            // `brackets` has checked that quotes are closed, so this is a whole text, in which `#` begins no
            // comment.
            at = at.saturating_add(string_len(rest).unwrap_or(1));
        } else {
            at = at.saturating_add(c.len_utf8());
        }
    }
    found
}

fn block_ranges(node: &Node, found: &mut Vec<std::ops::Range<usize>>) {
    match &node.kind {
        Kind::Scalar(s) if s.style == Style::Block => found.push(node.span.range()),
        Kind::Map(entries) => entries.iter().for_each(|e| block_ranges(&e.value, found)),
        Kind::List(items) => items.iter().for_each(|i| block_ranges(i, found)),
        Kind::Null | Kind::Delete | Kind::Scalar(_) => {}
    }
}

/// Where the items of all groups begin.
fn starts(outline: &Outline, found: &mut BTreeSet<usize>) {
    if let Value::Group(group) = &outline.value {
        for item in &group.items {
            found.insert(item.start);
            starts(item, found);
        }
    }
}

/// Attaches the comments of a text to the values of its outline, in their order.
struct Filler<'a> {
    text: &'a str,
    /// Where each line but the first begins: looking for the end of the line before would take long for thousands of
    /// items in one line.
    lines: Vec<usize>,
    /// The comments that are not attached yet, in order.
    comments: VecDeque<Comment>,
    /// Where the items begin that have not been reached. The ranges of layers in the DSL are one group,
    /// although other entries may be between them in the text: what is above such an entry belongs to it.
    ahead: BTreeSet<usize>,
    /// Whether maps end by indentation instead of a bracket.
    by_indent: bool,
}

impl Filler<'_> {
    fn root(&mut self, root: &mut Outline) {
        // One past the end, so that a comment at the very end is before it.
        let end = self.text.len().saturating_add(1);
        let mut below = Vec::new();
        match &mut root.value {
            Value::Group(group) => {
                // In YAML the text begins with its first key, which gets the comments above it.
                while group.close.is_some() && self.comments.front().is_some_and(|c| c.start < root.start) {
                    let Some(comment) = self.comments.pop_front() else { break };
                    self.line(&mut root.lead, &comment);
                }
                if !root.lead.is_empty() && self.blank_above(root.start) {
                    root.lead.push(String::new());
                }
                self.group(group, root.start, end, None);
                while let Some(comment) = self.comments.pop_front() {
                    self.line(&mut below, &comment);
                }
            }
            Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => {
                while let Some(comment) = self.comments.pop_front() {
                    let lines = if comment.start < root.end { &mut root.lead } else { &mut below };
                    self.line(lines, &comment);
                }
            }
        }
        root.tail = (!below.is_empty()).then(|| below.join("\n"));
    }

    /// Attaches the comments before `bound` to the items of a group that begins at `start`. `own` is the
    /// place of the key that the group belongs to.
    fn group(&mut self, group: &mut Group, start: usize, bound: usize, own: Option<usize>) {
        let close = group.close.unwrap_or(bound);
        let bound = close.min(bound);
        let first = group.items.first().map_or(bound, |i| i.start);
        // A comment right after `{` or `key:` describes the group, and not its first entry.
        let head = self.comments.front().is_some_and(|c| {
            c.start > start && c.start < first && !self.is_own_line(c) && self.one_line(start, c.start)
        });
        if head {
            group.head = self.comments.pop_front().map(|c| c.text);
        }
        let starts: Vec<usize> = group.items.iter().map(|i| i.start).collect();
        for (i, item) in group.items.iter_mut().enumerate() {
            self.ahead.remove(&item.start);
            self.before(item, i == 0);
            let after = starts.get(i.saturating_add(1)).copied().filter(|n| *n >= item.start);
            let next = after.unwrap_or(bound);
            let begin = item.start;
            match &mut item.value {
                Value::Group(inner) => self.group(inner, begin, next.min(bound), Some(begin)),
                // A scalar has no line of its own for a comment inside it, between its key and its value.
                Value::Null | Value::Delete | Value::Alias(_) | Value::Scalar { .. } => {
                    for comment in self.take(item.end, |_, _| true) {
                        self.line(&mut item.lead, &comment);
                    }
                }
            }
            // Other entries may be between the items of a group without brackets, also on one line.
            let other = self.ahead.range(item.end..).next().copied().unwrap_or(usize::MAX);
            let limit = after.unwrap_or(close).min(other).min(close);
            // Comments of entries between ranges of layers, which come later, may be before it.
            let at = self.comments.partition_point(|c| c.start < item.end);
            let follows = self
                .comments
                .get(at)
                .is_some_and(|c| c.start < limit && !self.is_own_line(c) && self.one_line(item.end, c.start));
            if follows && item.tail.is_none() {
                item.tail = self.comments.remove(at).map(|c| c.text);
            }
        }
        // Where no bracket ends a map, only its indent tells whether a comment still belongs to it or to one
        // around it.
        let inside = |c: &Comment, filler: &Self| {
            let is_below = |own: usize| filler.column_of(c.start) > filler.column_of(own);
            let deeper = !filler.by_indent || group.close.is_some() || own.is_some_and(is_below);
            c.start < bound && (deeper || group.items.is_empty() && own.is_none())
        };
        // What is left belongs to no item: it is below the last one.
        for comment in self.take(bound, |c, filler| inside(c, filler)) {
            self.line(&mut group.rest, &comment);
        }
    }

    /// Removes the first comments before a place, as long as they are `wanted`, except those of items that
    /// are before this place and have not been reached.
    fn take(&mut self, before: usize, wanted: impl Fn(&Comment, &Self) -> bool) -> Vec<Comment> {
        let mut taken = Vec::new();
        let mut at = 0;
        while let Some(comment) = self.comments.get(at).filter(|c| c.start < before && wanted(c, self)) {
            // An item on the same line before a comment has it as its tail.
            let line = self.line_start(comment.start);
            // In YAML a comment above an item may be the last of the map that ends there, by its indent.
            let next = self.ahead.range(line..).next();
            if next.is_some_and(|next| *next < before || *next == before && !self.by_indent) {
                at = at.saturating_add(1);
            } else {
                taken.extend(self.comments.remove(at));
            }
        }
        taken
    }

    /// Takes the comments above an item, and a blank line if there is one.
    fn before(&mut self, item: &mut Outline, is_first: bool) {
        for comment in self.take(item.start, |_, _| true) {
            self.line(&mut item.lead, &comment);
        }
        // A blank line above the first item would separate it from the line that opens the group.
        if self.blank_above(item.start) && !(is_first && item.lead.is_empty()) {
            item.lead.push(String::new());
        }
    }

    /// Adds a comment to lines, after a blank line if there is one above it.
    fn line(&self, lines: &mut Vec<String>, comment: &Comment) {
        if self.is_own_line(comment) && self.blank_above(comment.start) {
            lines.push(String::new());
        }
        lines.push(comment.text.clone());
    }

    fn is_own_line(&self, comment: &Comment) -> bool {
        // A byte order mark may be before a comment on the first line.
        self.line_until(comment.start).trim_start_matches('\u{feff}').trim().is_empty()
    }

    /// Whether the line above the one with this offset is blank. Spaces of other scripts are letters of a text
    /// on several lines, not blanks.
    fn blank_above(&self, offset: usize) -> bool {
        let is_blank = |text: &str| text.trim_matches([' ', '\t', '\r', '\n']).is_empty();
        // The end of the line above; the first line has none.
        let Some(end) = self.line_start(offset).checked_sub(1) else { return false };
        is_blank(self.line_until(end)) && !is_blank(self.text.get(..offset).unwrap_or(""))
    }

    fn one_line(&self, from: usize, to: usize) -> bool {
        !self.text.get(from..to).unwrap_or("").contains('\n')
    }

    /// Where the line with this offset begins.
    fn line_start(&self, offset: usize) -> usize {
        let after = self.lines.partition_point(|start| *start <= offset);
        after.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(0)
    }

    /// The text between the beginning of a line and this offset.
    fn line_until(&self, offset: usize) -> &str {
        self.text.get(self.line_start(offset)..offset).unwrap_or("")
    }

    fn column_of(&self, offset: usize) -> usize {
        self.line_until(offset).chars().count()
    }
}
