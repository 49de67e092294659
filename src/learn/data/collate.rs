//! Combines examples into a batch: special tokens are added, rows are padded to the longest, labels are
//! shifted, tokens are masked.
//!
//! The positions of the special tokens, where `[` is the start and `]` the end:
//!
//! ```text
//! lm          reads [ a b c      predicts a b c ]
//! translate   source a b c ]     target reads [ x y, predicts x y ]
//! classify, tag, mlm    [ a b c ]        and with a second text  [ a b c ] d e ]
//! span        [ question ] context ]
//! embed       [ a b ]  of each pair, then  [ c d ]  of each pair
//! ```

use super::batch::{Array, Batch, Labels};
use super::codebook::Codebook;
use super::dataset::Dataset;
use super::examples::{NOTHING, Part};
use crate::learn::random::Counter;
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::{Masking, Split};
use crate::learn::token::{Layout, SpecialTokens};

/// Rows of ids, padded to the longest one.
#[derive(Clone, Debug)]
pub struct Rows {
    pad: u32,
    rows: Vec<Vec<u32>>,
}

impl Rows {
    /// Rows, and the token they are padded with.
    pub fn new(rows: Vec<Vec<u32>>, pad: u32) -> Self {
        Self { pad, rows }
    }

    /// The length `T` of all rows with their padding, at least 1.
    fn width(&self) -> usize {
        // At least one column: a row of padding can be computed, and one without positions cannot.
        self.rows.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    /// The shape `[B, T]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows.len(), self.width()]
    }

    /// A value for every position, `[B, T]` in row-major order: `of` an id, or `padding`.
    fn filled<T: Clone>(&self, padding: T, of: impl Fn(u32) -> T) -> Vec<T> {
        let width = self.width();
        let fill = |row: &Vec<u32>| {
            let rest = std::iter::repeat_n(padding.clone(), width - row.len());
            row.iter().map(|id| of(*id)).chain(rest).collect::<Vec<T>>()
        };
        self.rows.iter().flat_map(fill).collect()
    }

    /// The ids with padding, `[B, T]`, where `T` is the length of the longest row.
    pub fn ids(&self) -> Array {
        Array::Ints { shape: self.shape().to_vec(), values: self.filled(i64::from(self.pad), i64::from) }
    }

    /// 1 for a token, 0 for padding, `[B, T]`; `None` if there is no padding.
    pub fn mask(&self) -> Option<Array> {
        let width = self.width();
        // A mask that hides nothing would only make attention slower.
        let is_padded = self.rows.iter().any(|row| row.len() < width);
        let values = || self.filled(0, |_| 1);
        is_padded.then(|| Array::Ints { shape: self.shape().to_vec(), values: values() })
    }

    /// The rows as classes of positions; padding and [`NOTHING`] take no part in the loss.
    fn labels(&self) -> (Labels, usize) {
        // Class 0 always exists, so the loss can look it up before it is multiplied by the weight 0.
        let classes = self.filled(0, |id| if id == NOTHING { 0 } else { i64::from(id) });
        let weights = self.filled(0.0, |id| if id == NOTHING { 0.0 } else { 1.0 });
        let counted = self.rows.iter().flatten().filter(|id| **id != NOTHING).count();
        (Labels::Positions { shape: self.shape(), classes, weights }, counted)
    }
}

/// The tokens that are read, and those that are predicted, which are one position ahead.
fn shifted(ids: &[u32], start: Option<u32>, end: Option<u32>) -> (Vec<u32>, Vec<u32>) {
    let all: Vec<u32> = start.into_iter().chain(ids.iter().copied()).chain(end).collect();
    let read = all.split_last().map_or(&[][..], |(_, rest)| rest).to_vec();
    let predicted = all.split_first().map_or(&[][..], |(_, rest)| rest).to_vec();
    (read, predicted)
}

/// Texts in one row, and the type of each token.
fn between(texts: &[&[u32]], layout: &Layout, pad: u32) -> (Vec<u32>, Vec<u32>) {
    let (ids, types) = layout.row(texts);
    // A row without a token would have nothing that a mask leaves to be read.
    if ids.is_empty() { (vec![pad], vec![0]) } else { (ids, types) }
}

/// The draws of each token of a text: whether it is selected, what becomes of it, by what it is replaced.
const DRAWS: u64 = 3;

/// Masks tokens of a text in place. Returns the original tokens at the selected positions, and [`NOTHING`]
/// elsewhere.
fn mask_tokens(
    ids: &mut [u32],
    masking: &Masking,
    special: SpecialTokens,
    vocab: u64,
    draws: Counter,
) -> Vec<u32> {
    let mut hidden = vec![NOTHING; ids.len()];
    if ids.is_empty() {
        return hidden;
    }
    // Each token has its own draws, found by its position, so that a program in another language computes the
    // same ones in any order.
    let first = |at: usize| (at as u64).wrapping_mul(DRAWS);
    let mut chosen: Vec<usize> =
        (0..ids.len()).filter(|at| draws.uniform(first(*at)) < *masking.share).collect();
    if chosen.is_empty() {
        // A short text must have something to predict, too. The draw is the one after those of its tokens.
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        chosen.push(draws.below(first(ids.len()), count) as usize);
    }
    let vocab = u32::try_from(vocab).unwrap_or(u32::MAX);
    for at in chosen {
        let (Some(id), Some(was)) = (ids.get_mut(at), hidden.get_mut(at)) else { continue };
        *was = *id;
        // One draw for both shares, which divide the interval from 0 to 1 between them.
        let draw = draws.uniform(first(at).wrapping_add(1));
        if draw < *masking.hide {
            // Without a mask token padding takes its place, which no text contains either.
            *id = special.mask.unwrap_or(special.pad);
        } else if draw < *masking.hide + *masking.replace {
            // Any row of the table, as in BERT's code: even the token itself or a special one.
            *id = draws.below(first(at).wrapping_add(2), vocab);
        }
    }
    hidden
}

/// The inputs of a batch under construction, and the tokens they have so far.
#[derive(Default)]
struct InputBuilder {
    inputs: Vec<(&'static str, Array)>,
    padded: Option<Array>,
    tokens: usize,
}

impl InputBuilder {
    /// Adds an input and, if there is padding, its mask under the name `mask`.
    fn add(&mut self, name: &'static str, mask: Option<&'static str>, rows: &Rows) {
        let [b, t] = rows.shape();
        self.tokens += b * t;
        self.inputs.push((name, rows.ids()));
        self.inputs.extend(mask.and_then(|name| Some((name, rows.mask()?))));
    }
}

impl Codebook {
    /// The graph's inputs for texts in one sequence, with special tokens: `tokens`, `mask`, and
    /// `token_types` if the graph has them.
    pub fn inputs(&self, texts: &[Vec<&[u32]>], has_types: bool) -> Vec<(&'static str, Array)> {
        let mut builder = InputBuilder::default();
        let (layout, pad) = (self.layout(), self.special_tokens().pad);
        let rows = texts.iter().map(|t| between(t, &layout, pad)).collect();
        self.sequence(&mut builder, rows, has_types);
        builder.inputs
    }

    /// Adds texts as ids with their token types.
    fn sequence(&self, builder: &mut InputBuilder, texts: Vec<(Vec<u32>, Vec<u32>)>, has_types: bool) {
        let (ids, types): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        builder.add("tokens", Some("mask"), &Rows::new(ids, self.special_tokens().pad));
        if has_types {
            builder.inputs.push(("token_types", Rows::new(types, 0).ids()));
        }
    }

    /// The graph's inputs `source` and `source_mask` for the tokens of sources.
    pub fn source_inputs(&self, sources: &[&[u32]]) -> Vec<(&'static str, Array)> {
        let mut builder = InputBuilder::default();
        self.sources(&mut builder, sources);
        builder.inputs
    }

    /// Adds sources, which come without special tokens.
    fn sources(&self, builder: &mut InputBuilder, sources: &[&[u32]]) {
        let special = self.source_special_tokens();
        let rows = sources.iter().map(|ids| self.framed_source(ids)).collect();
        builder.add("source", Some("source_mask"), &Rows::new(rows, special.pad));
    }

    /// The first token of a target: the one another library's model prescribes, or the start token. A
    /// vocabulary without a start token uses padding, as T5 does.
    pub fn first_of_target(&self) -> u32 {
        let special = self.special_tokens();
        let said = self.writing.as_ref().and_then(|writing| writing.start);
        said.or(special.start).unwrap_or(special.pad)
    }

    /// The token before a text that is to be continued, if there is one.
    pub fn first_of_text(&self) -> Option<u32> {
        self.special_tokens().start
    }
}

impl Dataset {
    /// The batch of some examples of a part. The epoch determines which tokens are masked.
    pub fn collate(&self, split: Split, indices: &[usize], epoch: u64) -> Batch {
        let mut builder = InputBuilder::default();
        let (labels, counted) = match self.part(split) {
            Some(part) => self.fill(&mut builder, part, split, indices, epoch),
            None => (Labels::Classes(Vec::new()), 0),
        };
        let InputBuilder { inputs, padded, tokens } = builder;
        Batch { inputs, padded, labels, indices: indices.to_vec(), counted, tokens }
    }

    /// Adds the inputs for some examples, and returns their labels with the number of predictions.
    fn fill(
        &self,
        builder: &mut InputBuilder,
        part: &Part,
        split: Split,
        indices: &[usize],
        epoch: u64,
    ) -> (Labels, usize) {
        let book = &self.codebook;
        let special = book.special_tokens();
        let layout = book.layout();
        let row = |texts: &[&[u32]]| between(texts, &layout, special.pad);
        let each = || indices.iter().copied();
        match part {
            Part::Texts { ids, .. } if self.masking.is_some() => {
                let masking = self.masking.clone().unwrap_or_else(Masking::usual);
                let mut texts = Vec::new();
                let mut hidden = Vec::new();
                for i in indices {
                    // With one purpose for all parts, examples with the same index would be masked in the
                    // same places.
                    let purpose = match split {
                        Split::Train => "masking",
                        Split::Validation => "masking of validation",
                        Split::Test => "masking of test",
                    };
                    let draws = Counter::new(self.seed, purpose, &[epoch, *i as u64]);
                    let mut text = ids.get(*i).to_vec();
                    let was = mask_tokens(&mut text, &masking, special, self.vocab, draws);
                    // Special tokens have positions in the row, but are never predicted.
                    hidden.push(layout.around(&was, NOTHING));
                    texts.push(row(&[&text]));
                }
                book.sequence(builder, texts, self.has_types);
                Rows::new(hidden, 0).labels()
            }
            Part::Texts { ids, whole, .. } => {
                // Pieces of one long text continue each other, so nothing begins or ends at their borders.
                let (start, end) = if *whole { (special.start, special.end) } else { (None, None) };
                let (read, predicted): (Vec<_>, Vec<_>) =
                    each().map(|i| shifted(ids.get(i), start, end)).unzip();
                // In a causal model later positions do not change earlier ones, so padding needs no mask.
                let rows = Rows::new(read, special.pad);
                builder.add("tokens", None, &rows);
                builder.padded = rows.mask();
                Rows::new(predicted, 0).labels()
            }
            Part::Pairs { source, target, language, .. } => {
                let sources: Vec<&[u32]> = each().map(|i| source.get(i)).collect();
                book.sources(builder, &sources);
                let before = book.before_target();
                let whole = |i: usize| [before.as_slice(), target.get(i)].concat();
                let (read, predicted): (Vec<_>, Vec<_>) =
                    each().map(|i| shifted(&whole(i), None, special.end)).unzip();
                // The decoder is causal, so padding at the end of a target needs no mask either.
                let rows = Rows::new(read, special.pad);
                builder.add("target", None, &rows);
                builder.padded = rows.mask();
                if !language.is_empty() {
                    let values = each().map(|i| language.get(i).map_or(0, |l| i64::from(*l))).collect();
                    builder.inputs.push(("language", Array::Ints { shape: vec![indices.len()], values }));
                }
                Rows::new(predicted, 0).labels()
            }
            Part::Classes { text, second, .. } if book.task == Task::Embed => {
                let (texts, seconds) = (each().map(|i| text.get(i)), each().map(|i| second.get(i)));
                // All first texts and then all second ones, as the loss divides the rows.
                let texts = texts.chain(seconds).map(|text| row(&[text]));
                book.sequence(builder, texts.collect(), self.has_types);
                (Labels::Alike(indices.len()), indices.len())
            }
            Part::Classes { text, second, labels } => {
                let texts = each().map(|i| match second.get(i) {
                    // An example without a second text must not get the tokens that separate two.
                    [] => row(&[text.get(i)]),
                    second => row(&[text.get(i), second]),
                });
                book.sequence(builder, texts.collect(), self.has_types);
                self.classes(each().map(|i| labels.get(i)))
            }
            Part::Images { pixels, labels } => {
                let form = book.image.unwrap_or(super::Form { channels: 1, side: 1 });
                let size = form.size();
                let values =
                    each().flat_map(|i| pixels.get(i * size..(i + 1) * size).unwrap_or(&[])).copied();
                let shape = vec![indices.len(), form.channels, form.side, form.side];
                builder.tokens += indices.len() * self.positions;
                builder.inputs.push(("image", Array::Floats { shape, values: values.collect() }));
                self.classes(each().map(|i| labels.get(i..=i).unwrap_or(&[])))
            }
            Part::Tags { ids, tags } => {
                let texts = each().map(|i| row(&[ids.get(i)]));
                book.sequence(builder, texts.collect(), self.has_types);
                let tags = each().map(|i| layout.around(tags.get(i), NOTHING));
                Rows::new(tags.collect(), 0).labels()
            }
            Part::Spans { question, answer, .. } => {
                // Contexts are encoded once for all their questions, so they are cut here, where the length
                // of the question is known.
                let empty: &[u32] = &[];
                let context = |i: usize| {
                    let context = part.context(i).map_or(empty, |c| c.ids.as_slice());
                    let room = self.room_for_context(question.get(i).len());
                    context.get(..room).unwrap_or(context)
                };
                let texts = each().map(|i| row(&[question.get(i), context(i)]));
                book.sequence(builder, texts.collect(), self.has_types);
                let of = |i: usize, end: bool| {
                    let (first, last) = answer.get(i).copied().flatten().unwrap_or((0, 0));
                    let at = if end { last } else { first };
                    let is_there = answer.get(i).copied().flatten().is_some();
                    // An answer that was cut off is represented by the first token.
                    if is_there {
                        self.before_context(question.get(i).len()) as i64 + i64::from(at)
                    } else {
                        0
                    }
                };
                let labels = Labels::Spans {
                    start: each().map(|i| of(i, false)).collect(),
                    end: each().map(|i| of(i, true)).collect(),
                };
                (labels, indices.len())
            }
        }
    }

    /// The positions of a question's context in the sequence, as far as it fits.
    pub fn context_positions(&self, part: &Part, index: usize) -> std::ops::Range<usize> {
        let Part::Spans { question, .. } = part else { return 0..0 };
        let length = question.get(index).len();
        let (first, room) = (self.before_context(length), self.room_for_context(length));
        first..first + part.context(index).map_or(0, |c| c.ids.len()).min(room)
    }

    /// The text of an answer from its first to its last position, inclusive. `None` if these are not a
    /// range within the context.
    pub fn answer<'p>(&self, part: &'p Part, index: usize, first: usize, last: usize) -> Option<&'p str> {
        let positions = self.context_positions(part, index);
        let context = part.context(index).filter(|_| first <= last)?;
        let at = |position: usize| {
            let token = position.checked_sub(positions.start)?;
            context.bytes.get(token).filter(|_| positions.contains(&position))
        };
        let ((start, _), (_, end)) = (at(first)?, at(last)?);
        context.text.get(*start as usize..*end as usize)
    }

    /// The number of tokens before the context, for a question of this length.
    pub fn before_context(&self, question: usize) -> usize {
        self.codebook.layout().second(question)
    }

    /// The number of tokens of the context that fit, for a question of this length.
    pub fn room_for_context(&self, question: usize) -> usize {
        self.codebook.longest.saturating_sub(question.saturating_add(self.codebook.layout().marks(2)))
    }

    /// The labels of a classifier from the classes of each example, and the number of predictions.
    fn classes<'a>(&self, labels: impl Iterator<Item = &'a [u32]>) -> (Labels, usize) {
        let first = |of: &[u32]| of.first().copied().unwrap_or(0);
        // A loss over one class per example takes its index, and a loss over several a number for each.
        if !self.codebook.several {
            let classes: Vec<i64> = labels.map(|of| i64::from(first(of))).collect();
            let count = classes.len();
            return (Labels::Classes(classes), count);
        }
        let width = self.outputs;
        let mut values = Vec::new();
        for of in labels {
            let applies = |class: usize| match width {
                // A single sigmoid distinguishes the second class from the first.
                1 => first(of) == 1,
                _ => of.iter().any(|c| *c as usize == class),
            };
            values.extend((0..width).map(|class| f32::from(u8::from(applies(class)))));
        }
        let shape = [values.len() / width.max(1), width];
        let counted = values.len();
        (Labels::Several { shape, values }, counted)
    }
}
