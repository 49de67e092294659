//! What `data.json` says.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::purpose::{Needs, Origin};
use crate::learn::data::codebook::Codebook;
use crate::learn::recipe::agree::Task;
use crate::learn::token::Layout;
use crate::learn::token::layout::Item;

/// The format that a folder declares.
pub const FORMAT: &str = "trafoc-data/1";

// Unknown keys are refused in all of these: they might say something that this version would not respect.

/// The description of prepared data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name and version of the format, [`FORMAT`].
    pub format: String,
    /// What the spec must have.
    pub spec: Needs,
    /// What the recipe must say about the data, as YAML.
    pub recipe: String,
    /// The files from which the data was prepared.
    pub sources: Vec<Origin>,
    /// The special tokens of the sequence, or of the target; null for images.
    pub sequence: Option<Sequence>,
    /// The special tokens of the source, for translations.
    pub source: Option<SourceRow>,
    /// The parts of the data by name.
    pub parts: IndexMap<String, PartEntry>,
}

/// The special tokens around a text. Each is a list of ids, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The token that fills rows up to the length of the longest one.
    pub pad: u32,
    /// The tokens before the text.
    pub before: Vec<u32>,
    /// The tokens between a text and a second one.
    pub between: Vec<u32>,
    /// The tokens after the last text.
    pub after: Vec<u32>,
    /// The token that replaces masked tokens.
    pub mask: Option<u32>,
    /// The rows of one text and of two, where the lists above do not say all there is: each item is a special
    /// token's id or a text, with its token type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
}

/// The rows of one text and of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// The row of one text.
    pub one: Vec<(RowItem, u32)>,
    /// The row of two texts.
    pub two: Vec<(RowItem, u32)>,
}

/// What is in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RowItem {
    /// A special token with this id.
    Mark(u32),
    /// A text.
    Text(RowText),
}

/// Which text is in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowText {
    /// The only one, or the first of two.
    First,
    /// The second of two.
    Second,
}

/// The special tokens of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRow {
    /// The token that fills rows up to the length of the longest one.
    pub pad: u32,
    /// The tokens before the text, such as that of its language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<u32>,
    /// The tokens after the text.
    pub after: Vec<u32>,
}

/// A part of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEntry {
    /// The number of examples in the part.
    pub examples: u64,
    /// Whether texts are complete, with special tokens around them, and not pieces of one long text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<bool>,
    /// The number of characters in all texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<u64>,
    /// The arrays by name: those of the task, and no others.
    pub arrays: IndexMap<String, ArrayEntry>,
}

/// The description of an array, which is in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayEntry {
    /// The name of its file.
    pub file: String,
    /// The type of its values: `i32`, `i64`, `f32` or `u8`.
    #[serde(rename = "type")]
    pub ty: String,
    /// The sizes of its dimensions.
    pub shape: Vec<u64>,
}

impl Sequence {
    /// The special tokens of a codebook; `None` if it has no tokens.
    pub fn of(codebook: &Codebook) -> Option<Self> {
        codebook.tokenizer.as_ref()?;
        let special = codebook.special_tokens();
        let [before, between, after] = match codebook.task {
            // In models of other libraries more than a start token, such as the token of a language.
            Task::Translate => [codebook.before_target(), Vec::new(), special.end.into_iter().collect()],
            Task::NextToken => {
                [special.start.into_iter().collect(), Vec::new(), special.end.into_iter().collect()]
            }
            Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => codebook.layout().parts(),
        };
        let rows = match codebook.task {
            Task::NextToken | Task::Translate => None,
            Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => Rows::of(&codebook.layout()),
        };
        Some(Self { pad: special.pad, before, between, after, mask: special.mask, rows })
    }
}

impl Rows {
    /// The rows of a layout; `None` if they follow from its [`Layout::parts`].
    fn of(layout: &Layout) -> Option<Self> {
        let item = |item: &Item| match *item {
            Item::Mark { id, kind } => (RowItem::Mark(id), kind),
            Item::Text { is_second: false, kind } => (RowItem::Text(RowText::First), kind),
            Item::Text { is_second: true, kind } => (RowItem::Text(RowText::Second), kind),
        };
        let items = |all: &[Item]| all.iter().map(item).collect();
        (!layout.is_plain()).then(|| Self { one: items(&layout.one), two: items(&layout.two) })
    }
}

impl SourceRow {
    /// The special tokens of a codebook's sources; `None` if it has none.
    pub fn of(codebook: &Codebook) -> Option<Self> {
        match codebook.task {
            Task::Translate => {
                let (before, after) = codebook.around_source();
                Some(Self { pad: codebook.source_special_tokens().pad, before, after })
            }
            Task::NextToken
            | Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => None,
        }
    }
}

impl Manifest {
    /// The first key in which a codebook says something else.
    pub fn contradicts(&self, codebook: &Codebook) -> Option<&'static str> {
        // Other programs read only `data.json`, so it repeats some of what the codebook says.
        let needs = &self.spec;
        let wrong = [
            ("task", needs.task != codebook.task),
            ("several", needs.several != codebook.several),
            ("image", needs.image != codebook.image),
            // A length that nothing bounds is null there, and the largest number here.
            ("longest", needs.longest.unwrap_or(u64::MAX) != codebook.longest as u64),
            ("sequence", self.sequence != Sequence::of(codebook)),
            ("source", self.source != SourceRow::of(codebook)),
        ];
        wrong.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    }
}
