//! What a picture of a model shows, as boxes and arrows without positions. [`super::build`] makes it from a
//! graph.

use std::sync::Arc;

/// A model as a picture shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The name of the model.
    pub name: String,
    /// Kind, parameters and sizes, for the line below the title.
    pub summary: Vec<String>,
    /// The columns from left to right, the encoder first.
    pub columns: Vec<Column>,
}

/// One stack, with the steps before and after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// `Encoder` or `Decoder`; empty if there is only one stack.
    pub title: String,
    /// The boxes from its input to its output.
    pub flow: Flow,
}

/// Boxes in the order of computation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// All boxes, each after its inputs.
    pub items: Vec<Item>,
    /// The item with the result of the flow: of a block, what the next block reads. `None` if that is no item.
    pub end: Option<usize>,
}

/// A box, a circle, or frames around blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// How the item is drawn.
    pub form: Form,
    /// The inputs of the item.
    pub inputs: Vec<From>,
    /// Whether it is drawn next to the item that it feeds, because it depends on no input of the flow.
    pub is_aside: bool,
    /// The path in the model: `decoder.blocks.attention`.
    pub path: String,
    /// The name on the item.
    pub label: String,
    /// Smaller lines below the name.
    pub notes: Vec<String>,
    /// What is shown while the pointer is on it: path, shapes, parameters, formula.
    pub details: Vec<String>,
    /// The line of the spec that it comes from.
    pub place: Option<SpecLine>,
}

/// A line of a spec. Many items come from the same line, so they share its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecLine {
    /// The name of the source; `None` for a named wiring, which is written in trafoc itself.
    pub source: Option<Arc<str>>,
    /// The line number, counted from 1.
    pub line: usize,
    /// The beginning of the line's text.
    pub text: Arc<str>,
}

/// An input of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Another item of the same flow.
    Item(usize),
    /// The flow's own argument: the residual stream that enters a block.
    Start,
    /// The encoder's output, which comes from another column.
    Memory,
}

/// How an item is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// An input of the model.
    Input,
    /// An output of the model.
    Output,
    /// A box for a layer, a module or an op, in the colour of its role.
    Box(Tint),
    /// A small box for a step without parameters.
    Step,
    /// `+` in a circle.
    Sum,
    /// `×` in a circle.
    Product,
    /// Frames around blocks, from first to last.
    Stack(Vec<Part>),
}

/// What a box computes, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    /// Embeddings of tokens, positions, types and patches.
    Embedding,
    /// Attention with its projections.
    Attention,
    /// Feed-forward networks, and mixtures of several as experts.
    Ffn,
    /// Norms and learned scales.
    Norm,
    /// The head: from hidden states to logits or another output.
    Head,
}

impl Tint {
    /// The class in [`crate::draw::theme`].
    pub fn class(self) -> &'static str {
        match self {
            Tint::Embedding => "embedding",
            Tint::Attention => "attention",
            Tint::Ffn => "ffn",
            Tint::Norm => "norm",
            Tint::Head => "head",
        }
    }
}

/// Consecutive blocks of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// How often the frames are repeated: `× 12`, `26 layers in turn`; empty for once.
    pub times: String,
    /// The different blocks, in order.
    pub frames: Vec<Frame>,
}

/// A block, with its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The type of the block: `DecoderBlock`.
    pub title: String,
    /// How often the block is repeated within a cycle of several, `× 5`; empty if once, or if the part says
    /// it.
    pub times: String,
    /// The block's equations, as the author or the paper writes them.
    pub equations: Vec<String>,
    /// Parameters of one block.
    pub parameters: u128,
    /// The path with the numbers of all blocks that this one represents: `decoder.blocks.0..12`.
    pub path: String,
    /// The layers that it represents, in words: `layers 0–4, 6–10, …`; empty if all of the stack.
    pub layers: String,
    /// The content of the block.
    pub flow: Flow,
}

impl Frame {
    /// Whether a picture of the other frame, with its words, tells everything about this one except its layers.
    pub fn looks_like(&self, other: &Frame) -> bool {
        let words = |frame: &Frame| (frame.title.clone(), frame.equations.clone(), frame.parameters);
        let looks =
            |item: &Item| (item.form.clone(), item.inputs.clone(), item.label.clone(), item.notes.clone());
        words(self) == words(other)
            && self.flow.end == other.flow.end
            && self.flow.items.len() == other.flow.items.len()
            && self.flow.items.iter().zip(&other.flow.items).all(|(a, b)| looks(a) == looks(b))
    }
}
