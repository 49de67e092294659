//! What the language knows about a word: keys, slots, parts, words, wirings, all from the field tables.
//!
//! [`catalogue`] walks the tables once; [`find`] looks up a word or a dotted path in it. Nothing is
//! documented twice, so a new part can be explained as soon as it has a row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::model;
use super::wiring::{PRELUDE, PartKind};
use crate::diag::suggest::suggest;
use crate::field::value::{DefaultDoc, Field, Shape, SlotDoc};
use crate::syntax::expr::Function;
use crate::syntax::tree::{Kind, Node};

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// A slot, which holds one of several parts.
    Slot,
    /// A part of a slot.
    Part,
    /// A key of a spec or of a recipe.
    Key,
    /// A word that a key takes.
    Word,
    /// An equation of the prelude, such as `pre_norm`.
    Wiring,
    /// A function of expressions.
    Function,
    /// What several places of a spec have in common: expressions, equations.
    Subject,
}

/// One item of the language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Topic {
    /// What the word names.
    pub sort: Sort,
    /// The last segment of the path, or the word itself: `kv_heads`.
    pub name: String,
    /// The path, such as `decoder.attention.kv_heads`.
    pub path: String,
    /// What it is for.
    pub doc: String,
    /// Which values are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// The value if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Parts of a slot, fields of a part, words of a choice, or lines of an equation, each with its
    /// description.
    pub items: Vec<Item>,
    /// Every segment of the path, including parts that may be left out.
    #[serde(skip)]
    chain: Vec<String>,
}

/// A line below a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Item {
    /// The name of the item.
    pub name: String,
    /// Its description in one line, with the default if it has one.
    pub doc: String,
}

/// All topics of another kind of document with this name for its root, such as a recipe.
pub fn catalogue_of(root: &str, doc: &str, fields: &[Field]) -> Vec<Topic> {
    let mut walk = Walk::default();
    walk.topics.push(Topic {
        sort: Sort::Key,
        name: root.to_owned(),
        path: root.to_owned(),
        doc: tidy(doc),
        takes: Some("a document of its own with the keys below".to_owned()),
        default: None,
        items: fields.iter().map(|f| Item { name: f.name.to_owned(), doc: said(f) }).collect(),
        chain: vec![root.to_owned()],
    });
    walk.record(fields, &mut vec![root.to_owned()]);
    walk.topics
}

/// All topics of a spec.
pub fn catalogue() -> Vec<Topic> {
    let mut walk = Walk::default();
    // The keys of a block are also keys of its stack, and are described there.
    walk.is_new("record", "block");
    walk.record(&model::fields(), &mut Vec::new());
    walk.topics.extend(wirings());
    walk.topics.extend(functions());
    walk.topics.extend(subjects());
    walk.topics
}

/// The topics that a word or a dotted path names. `attention.kv_heads` is enough for
/// `decoder.attention.multi_head.kv_heads`, and the path may contain names of blocks and numbers of calls.
pub fn find(word: &str) -> Vec<Topic> {
    find_in(word, catalogue())
}

/// As [`find`], among these topics.
pub fn find_in(word: &str, all: Vec<Topic>) -> Vec<Topic> {
    let wanted = segments(word);
    let Some(last) = wanted.last() else { return Vec::new() };
    let mut found: Vec<Topic> = all
        .into_iter()
        .filter(|t| match t.sort {
            Sort::Slot | Sort::Part | Sort::Key => {
                t.chain.last() == Some(last) && is_within(&wanted, &t.chain)
            }
            Sort::Word | Sort::Wiring | Sort::Function | Sort::Subject => {
                wanted.len() == 1 && t.name == *last
            }
        })
        .collect();
    // A complete path names one topic, even if other paths have the same end.
    if word.contains('.')
        && let Some(exact) = found.iter().position(|t| t.path == word && t.sort == Sort::Key)
    {
        return vec![found.swap_remove(exact)];
    }
    found.sort_by_key(|t| (t.sort, t.chain.len()));
    // The parts of a slot are listed once, and not again for each key that holds one.
    if found.iter().any(|t| t.sort == Sort::Slot) {
        let slots: Vec<Vec<Item>> =
            found.iter().filter(|t| t.sort == Sort::Slot).map(|t| t.items.clone()).collect();
        for topic in found.iter_mut().filter(|t| t.sort == Sort::Key && slots.contains(&t.items)) {
            topic.items.clear();
            topic.takes =
                topic.takes.as_ref().map(|takes| takes.replace("the parts below", "the parts above"));
        }
    }
    found
}

/// The word that is most similar to one that names no topic.
pub fn nearest(word: &str) -> Option<String> {
    nearest_in(word, &catalogue())
}

/// As [`nearest`], among these topics.
pub fn nearest_in(word: &str, all: &[Topic]) -> Option<String> {
    let last = segments(word).pop()?;
    let names: BTreeSet<&str> = all.iter().map(|t| t.name.as_str()).collect();
    suggest(&last, &names.into_iter().collect::<Vec<_>>())
}

/// The segments of a path as the tables know them: `decoder.blocks.local.attention1.mask` is
/// `decoder.attention.mask`.
fn segments(word: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut parts = word.split('.').peekable();
    while let Some(part) = parts.next() {
        if matches!(part, "blocks" | "ranges") && parts.peek().is_some() {
            parts.next();
            continue;
        }
        let kind = PartKind::from_word(part.trim_end_matches(|c: char| c.is_ascii_digit()));
        let is_call = kind.is_some_and(|k| k.word() != part);
        let part = match kind {
            Some(kind) if is_call => kind.word(),
            Some(_) | None => part,
        };
        out.push(part.to_owned());
    }
    out
}

/// Whether the words occur in the chain in this order.
fn is_within(words: &[String], chain: &[String]) -> bool {
    let mut rest = chain.iter();
    // Keys that both stacks have are described once, under `decoder`.
    words.iter().all(|w| rest.any(|c| c == w || (w == "encoder" && c == "decoder")))
}

/// A node on one line: `{bias: true}`.
pub fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Delete => "!delete".to_owned(),
        Kind::Scalar(s) => s.text.trim().replace('\n', "; "),
        Kind::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let inner: Vec<String> =
                entries.iter().map(|e| format!("{}: {}", e.key, flow(&e.value))).collect();
            format!("{{{}}}", inner.join(", "))
        }
    }
}

#[derive(Default)]
struct Walk {
    topics: Vec<Topic>,
    /// Slots, records and words that have already been described.
    seen: BTreeSet<String>,
}

impl Walk {
    fn record(&mut self, fields: &[Field], chain: &mut Vec<String>) {
        for field in fields {
            // Both stacks have the same keys, which are described once.
            if field.name == "encoder" {
                self.key(field, chain);
                continue;
            }
            chain.push(field.name.to_owned());
            self.topics.push(topic(field, chain));
            self.shape((field.shape)(), chain);
            chain.pop();
        }
    }

    fn key(&mut self, field: &Field, chain: &mut Vec<String>) {
        chain.push(field.name.to_owned());
        self.topics.push(topic(field, chain));
        chain.pop();
    }

    fn shape(&mut self, shape: Shape, chain: &mut Vec<String>) {
        match shape {
            Shape::Record(title, fields) => {
                if self.is_new("record", title) {
                    self.record(&fields(), chain);
                }
            }
            Shape::Slot(doc) => {
                let doc = doc();
                if self.is_new("slot", doc.name) {
                    self.slot(&doc, chain);
                }
            }
            Shape::List(inner) | Shape::Map(inner) => self.shape(inner(), chain),
            Shape::Choice(words) => {
                for word in words {
                    if self.is_new("word", word.name) {
                        self.topics.push(Topic {
                            sort: Sort::Word,
                            name: word.name.to_owned(),
                            path: path(chain),
                            doc: tidy(word.doc),
                            takes: None,
                            default: None,
                            items: Vec::new(),
                            chain: chain.clone(),
                        });
                    }
                }
            }
            Shape::Bool
            | Shape::Integer(_)
            | Shape::Number(_)
            | Shape::Text
            | Shape::Texts
            | Shape::Equation
            | Shape::Any => {}
        }
    }

    fn slot(&mut self, slot: &SlotDoc, chain: &mut Vec<String>) {
        let items = slot.parts.iter().map(|p| Item { name: p.name.to_owned(), doc: tidy(p.doc) });
        // A slot whose name differs from its key has its own topic: the distributions of `init`.
        self.topics.push(Topic {
            sort: Sort::Slot,
            name: slot.name.to_owned(),
            path: path(chain),
            doc: tidy(slot.doc),
            takes: None,
            default: None,
            items: items.collect(),
            chain: vec![slot.name.to_owned()],
        });
        for part in &slot.parts {
            let fields = (part.fields)();
            let implied = (slot.implied == Some(part.name)).then_some("; its name may be left out");
            chain.push(part.name.to_owned());
            self.topics.push(Topic {
                sort: Sort::Part,
                name: part.name.to_owned(),
                path: path(chain),
                doc: tidy(part.doc),
                takes: Some(match (fields.is_empty(), implied) {
                    (true, _) => "nothing".to_owned(),
                    (false, implied) => format!("the keys below{}", implied.unwrap_or_default()),
                }),
                default: None,
                items: fields.iter().map(|f| Item { name: f.name.to_owned(), doc: said(f) }).collect(),
                chain: chain.clone(),
            });
            self.record(&fields, chain);
            chain.pop();
        }
    }

    fn is_new(&mut self, sort: &str, name: &str) -> bool {
        self.seen.insert(format!("{sort} {name}"))
    }
}

fn topic(field: &Field, chain: &[String]) -> Topic {
    let shape = (field.shape)();
    let items = items(shape);
    Topic {
        sort: Sort::Key,
        name: field.name.to_owned(),
        path: path(chain),
        doc: with_rules(field),
        takes: Some(takes(shape)),
        default: default(field.default),
        items,
        chain: chain.to_vec(),
    }
}

/// The values that a shape allows, or each item of a list or map of this shape.
fn items(shape: Shape) -> Vec<Item> {
    match shape {
        Shape::Choice(words) => {
            words.iter().map(|w| Item { name: w.name.to_owned(), doc: tidy(w.doc) }).collect()
        }
        Shape::Record(_, fields) => {
            fields().iter().map(|f| Item { name: f.name.to_owned(), doc: said(f) }).collect()
        }
        Shape::Slot(slot) => {
            slot().parts.iter().map(|p| Item { name: p.name.to_owned(), doc: tidy(p.doc) }).collect()
        }
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Equation
        | Shape::Any => Vec::new(),
        Shape::List(item) | Shape::Map(item) => items(item()),
    }
}

/// The chain as an author writes it.
fn path(chain: &[String]) -> String {
    chain.join(".")
}

fn takes(shape: Shape) -> String {
    match shape {
        Shape::Integer(_) => "a whole number, or an expression".to_owned(),
        Shape::Number(_) => "a number, or an expression".to_owned(),
        Shape::Choice(_) => "one of the words below".to_owned(),
        Shape::Slot(_) => "one of the parts below".to_owned(),
        Shape::Record(..) => "a map with the keys below".to_owned(),
        Shape::List(item) => format!("a list; each item is {}", takes(item())),
        Shape::Map(value) => format!("a map from names; each value is {}", takes(value())),
        Shape::Bool | Shape::Text | Shape::Texts | Shape::Equation | Shape::Any => shape.wanted(),
    }
}

fn default(default: DefaultDoc) -> Option<String> {
    match default {
        DefaultDoc::Required => Some("none: it must be given".to_owned()),
        DefaultDoc::Absent => None,
        DefaultDoc::Value(value) => Some(flow(&value())),
        DefaultDoc::Formula(formula) => Some(formula.to_owned()),
    }
}

/// A field in one line: its description and its default.
fn said(field: &Field) -> String {
    match field.default {
        DefaultDoc::Required => format!("{} Must be given.", with_rules(field)),
        DefaultDoc::Absent => with_rules(field),
        DefaultDoc::Value(_) | DefaultDoc::Formula(_) => {
            format!("{} Default: {}.", with_rules(field), default(field.default).unwrap_or_default())
        }
    }
}

/// The documentation of a field and its rules, on one line.
pub fn with_rules(field: &Field) -> String {
    let rules = field.own_rules().map(|rule| format!(" {}", rule.sentence()));
    rules.fold(tidy(field.doc), |doc, rule| doc + &rule)
}

/// Documentation on one line.
pub fn tidy(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A topic that is no field, part or word.
fn other(sort: Sort, name: &str, path: &str, doc: String, takes: Option<String>, items: Vec<Item>) -> Topic {
    let (name, path) = (name.to_owned(), path.to_owned());
    let chain = vec![name.clone()];
    Topic { sort, name, path, doc, takes, default: None, items, chain }
}

/// The functions of expressions.
fn functions() -> Vec<Topic> {
    let topic = |f: &Function, path: &str, of: &str, doc: String| {
        let takes = match f.arity() {
            (1, 1) => format!("one {of}"),
            (least, most) if least == most => format!("{least} {of}s"),
            (least, most) => format!("{least} to {most} {of}s"),
        };
        other(Sort::Function, f.name(), path, doc, Some(takes), Vec::new())
    };
    let numbers = Function::NUMBERS.iter().map(|f| {
        let doc = format!("`{}(..)` is {}.", f.name(), tidy(f.explanation()));
        topic(f, "any number of a spec", "number", doc)
    });
    let values = Function::VALUES.iter().map(|f| {
        let said = tidy(f.explanation());
        let is_call = said.starts_with('`');
        let doc = if is_call { format!("{said}.") } else { format!("`{}(..)` is {said}.", f.name()) };
        topic(f, "a formula in weights", "value", doc)
    });
    numbers.chain(values).collect()
}

/// What several places have in common, and keys that are checked where they are read.
fn subjects() -> Vec<Topic> {
    let item = |name: &str, doc: &str| Item { name: name.to_owned(), doc: doc.to_owned() };
    let mut operators = vec![
        item("1e-5, 8/3, 40_000", "numbers, exact as long as they are ratios of whole numbers"),
        item("+ - * / ^ ( )", "the usual operators, `^` for powers"),
        item("d_model, heads, ...", "a size that is given above, or a name under `let`"),
    ];
    operators.extend(Function::NUMBERS.iter().map(|f| item(f.name(), &tidy(f.explanation()))));
    let mut names: Vec<Item> = Vec::new();
    for wiring in wirings() {
        names.push(Item { doc: wiring.doc, name: wiring.name });
    }
    let mut calls: Vec<Item> = PartKind::ALL
        .iter()
        .map(|kind| {
            item(kind.word(), "a part applied; each call has its own parameters, and is a key of the block")
        })
        .collect();
    calls.push(item("norm[name](x)", "the same, called `name` instead of `norm1`, `norm2`, ..."));
    calls.push(item("+ - * /", "sums, products, and numbers as factors"));
    vec![
        other(
            Sort::Subject,
            "expression",
            "any number of a spec",
            "What may be written where a number belongs: `8/3 * d_model`, `sqrt(d_model)`.".to_owned(),
            None,
            operators,
        ),
        other(
            Sort::Subject,
            "wiring",
            "decoder.block",
            "A block's equation under a name: `block: pre_norm`. `trafoc explain NAME` shows its lines.".to_owned(),
            None,
            names,
        ),
        other(
            Sort::Subject,
            "equation",
            "decoder.block",
            "What a block computes, a statement a line: `x = x + attention(norm(x))`. The last value of `x` is the \
             block's. With an encoder it begins with `(x, memory):`."
                .to_owned(),
            None,
            calls,
        ),
        other(
            Sort::Subject,
            "grid",
            "sweep.grid",
            "Every combination of values: `grid: {decoder.layers: [6, 12], d_model: [512, 768]}` is four variants, \
             such as `decoder.layers=6,d_model=512`."
                .to_owned(),
            Some("a map from paths of keys to lists of values".to_owned()),
            Vec::new(),
        ),
    ]
}

/// The equations of the prelude, grouped by name, with the comments above them.
fn wirings() -> Vec<Topic> {
    let mut found: Vec<Topic> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    let mut comment = String::new();
    let mut current = None;
    for line in PRELUDE.lines() {
        if let Some(said) = line.strip_prefix("//") {
            comment = format!("{comment} {}", said.trim());
        } else if let Some(head) = line.strip_prefix("block ") {
            let name = head.split('(').next().unwrap_or(head).to_owned();
            let index = *at.entry(name.clone()).or_insert_with(|| {
                found.push(Topic {
                    sort: Sort::Wiring,
                    path: "decoder.block".to_owned(),
                    doc: tidy(&comment),
                    takes: None,
                    default: None,
                    items: Vec::new(),
                    chain: vec![name.clone()],
                    name,
                });
                found.len().saturating_sub(1)
            });
            current = Some(index);
            if let Some(topic) = found.get_mut(index) {
                topic.items.push(Item { name: head.trim_end_matches(" {").to_owned(), doc: String::new() });
            }
        } else if line.is_empty() {
            comment.clear();
        } else if line != "}"
            && let Some(item) = current.and_then(|i| found.get_mut(i)).and_then(|t| t.items.last_mut())
        {
            let gap = if item.doc.is_empty() { "" } else { "; " };
            item.doc = format!("{}{gap}{}", item.doc, line.trim());
        }
    }
    found
}

/// The width of a page in columns.
const WIDTH: usize = 80;

impl Topic {
    /// The same path in the encoder, of what both stacks have.
    fn in_encoder(&self) -> Option<String> {
        let rest =
            self.path.strip_prefix("decoder.").filter(|rest| rest.split('.').next() != Some("cross"))?;
        Some(format!("encoder.{rest}"))
    }
}

/// Shows the topic as a page of at most 80 columns.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sort = match self.sort {
            Sort::Slot => "a place for one part",
            Sort::Part => "a part",
            Sort::Key => "a key",
            Sort::Word => "a word",
            Sort::Wiring => "a wiring",
            Sort::Function => "a function of expressions",
            Sort::Subject => "a subject",
        };
        writeln!(f, "{}  ({sort})", if self.sort == Sort::Key { &self.path } else { &self.name })?;
        for line in wrapped(&self.doc, WIDTH - 2) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f)?;
        if self.sort != Sort::Key {
            writeln!(f, "  belongs to {}", self.path)?;
        }
        if let Some(path) = self.in_encoder() {
            writeln!(f, "  also in    {path}")?;
        }
        for (label, said) in [("takes", &self.takes), ("default", &self.default)] {
            if let Some(said) = said {
                for (i, line) in wrapped(said, WIDTH - 13).iter().enumerate() {
                    writeln!(f, "  {:11}{line}", if i == 0 { label } else { "" })?;
                }
            }
        }
        if self.items.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        let widest = self.items.iter().map(|i| i.name.chars().count()).max().unwrap_or(0).min(24);
        for item in &self.items {
            let mut lines = wrapped(&item.doc, WIDTH.saturating_sub(widest).saturating_sub(6)).into_iter();
            writeln!(
                f,
                "{}",
                format!("    {:widest$}  {}", item.name, lines.next().unwrap_or_default()).trim_end()
            )?;
            for line in lines {
                writeln!(f, "    {:widest$}  {line}", "")?;
            }
        }
        Ok(())
    }
}

/// A text in lines of at most `width` characters, broken between words.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().chain(" ".chars()).chain(word.chars()).count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
