//! Where a record and its fields are in a text.

use std::borrow::Cow;

use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

/// The places of a record and of each of its given fields. Places do not take part in equality.
#[derive(Clone, Debug, Default)]
pub struct Places {
    whole: Span,
    fields: Vec<(Cow<'static, str>, Span)>,
    /// The items of fields that are lists, by the field.
    items: Vec<(&'static str, Vec<Span>)>,
}

impl PartialEq for Places {
    // Values that say the same are equal wherever they were written.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Places {
    /// The place of a whole that has no fields.
    pub fn new(whole: Span) -> Self {
        Self { whole, ..Self::default() }
    }

    /// The places of a whole and of those of its fields that are given.
    pub fn of_names(whole: Span, fields: Vec<(String, Span)>) -> Self {
        let fields = fields.into_iter().map(|(name, span)| (Cow::Owned(name), span)).collect();
        Self { whole, fields, items: Vec::new() }
    }

    /// Notes where a field is given, and each item of it if it is a list.
    pub(super) fn note(&mut self, field: &'static str, value: &Node) {
        self.fields.push((Cow::Borrowed(field), value.span));
        if let Kind::List(items) = &value.kind {
            self.items.push((field, items.iter().map(|item| item.span).collect()));
        }
    }

    /// The place of the whole record.
    pub fn whole(&self) -> Span {
        self.whole
    }

    /// The place of a field's value, or of the whole record if the field is not given.
    pub fn of(&self, field: &str) -> Span {
        self.fields.iter().find(|(name, _)| *name == field).map_or(self.whole, |(_, span)| *span)
    }

    /// The place of an item of a field that is a list, counted from 0; that of the field if the item is not
    /// given.
    pub fn of_item(&self, field: &str, index: usize) -> Span {
        let items = self.items.iter().find(|(name, _)| *name == field).map(|(_, items)| items);
        items.and_then(|items| items.get(index)).copied().unwrap_or_else(|| self.of(field))
    }

    /// Whether the author gave the field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| *name == field)
    }
}
