//! What the language knows about a word: keys, slots, parts, words, wirings, all from the field tables.
//!
//! [`catalogue`] walks the tables once; [`find`] looks up a word or a dotted path in it. Nothing is
//! documented twice, so a new part can be explained as soon as it has a row.

mod lookup;
mod subjects;
mod topic;

use std::collections::BTreeSet;
use std::fmt;

use super::block::is_inherited;
use super::model;
use crate::field::value::{DefaultDoc, Field, Shape, SlotDoc};
use crate::source::columns;
use crate::spec::short::Short;
use topic::{default, said};

pub use lookup::{beginning, find_in, keys_below, nearest_in, repaired};
pub use topic::{Item, Sort, Topic, flow, tidy, with_rules};

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
        example: None,
        pytorch: None,
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
    let rows = subjects::rows();
    // The reader of `weights` has a table of its own.
    if let Some(weights) = walk.topics.iter_mut().find(|topic| topic.path == subjects::WEIGHTS) {
        weights.items =
            rows.iter().map(|row| Item { name: row.name.clone(), doc: row.doc.clone() }).collect();
    }
    walk.topics.extend(rows);
    walk.topics.extend(subjects::wirings());
    walk.topics.extend(subjects::library());
    walk.topics.extend(subjects::functions());
    walk.topics.extend(subjects::calls());
    walk.topics.extend(subjects::subjects());
    walk.topics
}

/// The topics that a word or a dotted path names. `attention.kv_heads` is enough for
/// `decoder.attention.multi_head.kv_heads`, and the path may contain names of blocks and numbers of calls.
pub fn find(word: &str) -> Vec<Topic> {
    find_in(word, catalogue())
}

/// The word that is most similar to one that names no topic.
pub fn nearest(word: &str) -> Option<String> {
    nearest_in(word, &catalogue())
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
                // A record may contain itself, as a mixture its experts; each is described where it occurs
                // first.
                if self.is_new("record", title) {
                    self.record(&documented(title, fields), chain);
                }
            }
            Shape::Slot(doc) => {
                let doc = doc();
                if self.is_new("slot", doc.name) {
                    self.slot(&doc, chain);
                }
            }
            Shape::List(inner, _) | Shape::Map(inner) => self.shape(inner(), chain),
            Shape::Choice(words) => {
                for word in words {
                    // A word of the same name can mean something else in another place.
                    if self.is_new("word", &format!("{} {}", word.name, word.doc)) {
                        self.topics.push(Topic {
                            sort: Sort::Word,
                            name: word.name.to_owned(),
                            path: path(chain),
                            doc: tidy(word.doc),
                            takes: None,
                            default: None,
                            example: None,
                            pytorch: None,
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
            | Shape::Part
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
            example: None,
            pytorch: None,
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
                example: None,
                pytorch: None,
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
        takes: Some(match Short::of(field, chain.len() == 1) {
            Some(short) => format!("{}, or {}", takes(shape), short.wanted()),
            None => takes(shape),
        }),
        default: default(field.default),
        example: None,
        pytorch: None,
        items,
        chain: chain.to_vec(),
    }
}

/// The fields of a record with the defaults that hold where it is used.
fn documented(title: &str, fields: fn() -> Vec<Field>) -> Vec<Field> {
    let mut fields = fields();
    if title == "cross" {
        for field in fields.iter_mut().filter(|field| is_inherited(field.name)) {
            field.default = DefaultDoc::Formula("that of `attention`");
        }
    }
    fields
}

/// The values that a shape allows, or each item of a list or map of this shape.
fn items(shape: Shape) -> Vec<Item> {
    match shape {
        Shape::Choice(words) => {
            words.iter().map(|w| Item { name: w.name.to_owned(), doc: tidy(w.doc) }).collect()
        }
        Shape::Record(title, fields) => {
            documented(title, fields).iter().map(|f| Item { name: f.name.to_owned(), doc: said(f) }).collect()
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
        | Shape::Part
        | Shape::Any => Vec::new(),
        Shape::List(item, _) | Shape::Map(item) => items(item()),
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
        Shape::List(item, _) => format!("a list; each item is {}", takes(item())),
        Shape::Map(value) => format!("a map from names; each value is {}", takes(value())),
        Shape::Bool | Shape::Text | Shape::Texts | Shape::Equation | Shape::Part | Shape::Any => {
            shape.wanted()
        }
    }
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

/// Shows the topic as a page of at most 80 columns, or as many as `{:width$}` gives.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = f.width().unwrap_or(WIDTH);
        let sort = match self.sort {
            Sort::Slot => "a slot, which holds one part",
            Sort::Part => "a part",
            Sort::Key => "a key",
            Sort::Word => "a word",
            Sort::Wiring => "a wiring",
            Sort::Function => "a function of expressions",
            Sort::Call => "a call in a part of your own",
            Sort::Subject => "a subject",
        };
        writeln!(f, "{}  ({sort})", if self.sort == Sort::Key { &self.path } else { &self.name })?;
        for line in wrapped(&self.doc, most.saturating_sub(2)) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f)?;
        if self.sort != Sort::Key {
            writeln!(f, "  belongs to {}", self.path)?;
        }
        if let Some(path) = self.in_encoder() {
            writeln!(f, "  also in    {path}")?;
        }
        let about = [
            ("takes", &self.takes),
            ("default", &self.default),
            ("example", &self.example),
            ("in PyTorch", &self.pytorch),
        ];
        for (label, said) in about {
            if let Some(said) = said {
                for (i, line) in wrapped(said, most.saturating_sub(13)).iter().enumerate() {
                    writeln!(f, "  {:11}{line}", if i == 0 { label } else { "" })?;
                }
            }
        }
        if self.items.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        let widest = self.items.iter().map(|i| i.name.chars().count()).max().unwrap_or(0).min(26);
        for item in &self.items {
            // An equation of several lines is shown in its lines.
            if item.doc.contains('\n') {
                writeln!(f, "    {}", item.name)?;
                for line in item.doc.lines() {
                    for (i, part) in wrapped(line, most.saturating_sub(8)).iter().enumerate() {
                        writeln!(f, "      {}{part}", if i == 0 { "" } else { "  " })?;
                    }
                }
                continue;
            }
            let mut lines = wrapped(&item.doc, most.saturating_sub(widest).saturating_sub(6)).into_iter();
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
            Some(line) if columns(line).saturating_add(columns(word)) < width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
