//! A new head on the body of a Hugging Face model: the config that the library's own class for it would have.

use super::family::Family;
use super::sentence::Pooled;
use crate::syntax::tree::{Entry, Kind, Node};

/// The head that a model gets for a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHead {
    /// The part of the slot `head`: `classify`, `tag`, `span`.
    pub part: String,
    /// The number of classes, for the heads that have them.
    pub classes: Option<u64>,
    /// How the head `embed` makes a vector of the body's positions, if the directory itself says so.
    pub pooled: Option<Pooled>,
}

/// The keys of a config about its classes: their number, their names, and whether there may be several.
const OF_CLASSES: &[&str] = &["num_labels", "id2label", "label2id", "problem_type"];

/// The part of the slot `head` that a head of a family has.
pub fn part_of(head: &Node) -> Option<&str> {
    let part = head.get("head")?;
    part.text().or_else(|| part.entries()?.first().map(|e| e.key.as_str()))
}

impl NewHead {
    /// The body alone, with what its class makes of its positions or with a vector as it is described.
    pub fn body(pooled: Option<Pooled>) -> Self {
        Self { part: "embed".to_owned(), classes: None, pooled }
    }

    /// The config of the same body with this head; `None` if the family has no class of models with it.
    pub fn in_config(&self, family: &Family, config: &Node) -> Option<Node> {
        let has_part = |class: &str| {
            let head = family.architectures.get(class).and_then(|head| family.heads.get(head));
            head.and_then(|head| part_of(&head.spec)) == Some(self.part.as_str())
        };
        let own = config.get("architectures").and_then(|all| match &all.kind {
            Kind::List(all) => all.first()?.text(),
            Kind::Null | Kind::Scalar(_) | Kind::Map(_) | Kind::Delete => None,
        });
        // A model that has such a head already keeps its class, of which a family may have several.
        let class = match own.filter(|class| has_part(class)) {
            Some(own) => own.to_owned(),
            None => family.architectures.keys().find(|class| has_part(class))?.clone(),
        };
        let span = config.span;
        let mut entries: Vec<Entry> = config.entries()?.to_vec();
        let is_replaced =
            // Names of the old classes would contradict the new number of them.
            |key: &str| key == "architectures" || (self.classes.is_some() && OF_CLASSES.contains(&key));
        entries.retain(|e| !is_replaced(&e.key));
        let mut add = |key: &str, value: Node| entries.push(Entry { key: key.into(), key_span: span, value });
        let classes = vec![Node::plain(class, span)];
        add("architectures", Node { kind: Kind::List(classes), span });
        // A family without this key would refuse it as unknown.
        if let Some(count) = self.classes.filter(|_| family.keys.contains_key("num_labels")) {
            add("num_labels", Node::plain(count.to_string(), span));
        }
        Some(Node::map(entries, span))
    }
}
