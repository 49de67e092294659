//! The result of an import: the spec, and what is needed to read the weights that belong to it.

use serde_json::{Map, Value as Json};

use super::family::Family;
use super::target::Target;
use crate::names::formula::Scope;
use crate::names::{Names, Row};

/// An imported model: its family, the values of its config, and the spec.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The family the model belongs to.
    pub family: Family,
    /// The class of model, such as `LlamaForCausalLM`.
    pub architecture: String,
    /// The head of that class.
    pub head: String,
    /// A value for every key of the family.
    pub values: indexmap::IndexMap<String, Json>,
    /// Keys that were ignored because they do not change what the library computes.
    pub passed: Vec<String>,
    /// The spec as text, without fields that equal their default.
    pub text: String,
    /// How a target is derived from the source if none is given; `None` if the family has no rule for the
    /// head.
    pub target: Option<Target>,
    /// Whether the directory itself says what vector is made of the body's positions, in place of the head of
    /// its class, whose tensors are then not read.
    pub is_pooled: bool,
}

impl Scope for Imported {
    fn key(&self, name: &str) -> Option<&Json> {
        self.values.get(name)
    }
    fn table(&self, name: &str) -> Option<&Map<String, Json>> {
        self.family.tables.get(name)
    }
}

impl Imported {
    /// The names of the model's tensors, in the form that a file with these tensors uses.
    pub fn names<'a>(&self, tensors: impl IntoIterator<Item = &'a str>) -> Names {
        let prefix = self.family.prefix.as_str();
        // The library saves a body alone without the prefix, and the config does not say which of the two was
        // saved.
        let has_prefix = !prefix.is_empty() && tensors.into_iter().any(|name| name.starts_with(prefix));
        let names = self.family.tensor_names(&self.head, has_prefix);
        if !self.is_pooled {
            return names;
        }
        let of_head = |row: &Row| row.parameters.iter().all(|path| path.to_string().starts_with("head."));
        let (unused, rows): (Vec<Row>, Vec<Row>) = names.rows.into_iter().partition(of_head);
        let ignore = names.ignore.into_iter().chain(unused.into_iter().map(|row| row.tensor)).collect();
        Names { rows, ignore, ..names }
    }
}

impl Family {
    /// The names of all tensors of a model with this head, where the body's names may have the prefix.
    pub fn tensor_names(&self, head: &str, has_prefix: bool) -> Names {
        let body = if has_prefix { self.names.with_prefix(&self.prefix) } else { self.names.clone() };
        let names = match self.heads.get(head) {
            // A body that was saved alone has no prefix, and it includes layers that only some heads use,
            // such as a pooler, whose names then have no prefix either.
            Some(head) if !has_prefix && !head.bare && !self.prefix.is_empty() => {
                body.and(&head.names).and(&head.names.without(&self.prefix))
            }
            Some(head) => body.and(&head.names),
            None => body,
        };
        Names { older: self.older.clone(), ..names }
    }
}
