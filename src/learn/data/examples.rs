//! Examples as numbers, stored compactly.

/// Lists of ids in one vector.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sequences {
    // One vector for all: with one for each list, short lists would take more memory for themselves than
    // for their ids.
    ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Sequences {
    /// The lists with all these ids, each of which ends before an index; the ends rise to the number of ids.
    pub(super) fn of(ids: Vec<u32>, ends: Vec<usize>) -> Self {
        Self { ids, ends }
    }

    /// Appends a list, which may be empty.
    pub fn push(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len());
    }

    /// The number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The list with this index, empty if there is none.
    pub fn get(&self, index: usize) -> &[u32] {
        let Some(end) = self.ends.get(index) else { return &[] };
        // The first list begins at 0, and every other one where the list before it ends.
        let start = index.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        self.ids.get(start..*end).unwrap_or(&[])
    }

    /// The number of ids in all lists.
    pub fn total(&self) -> usize {
        self.ids.len()
    }
}

/// A question as text, for comparing answers as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The id of the question in the file.
    pub id: String,
    /// The text of the question.
    pub text: String,
    /// The index of its context.
    pub context: usize,
    /// The reference answers, at least one.
    pub answers: Vec<String>,
}

/// A context, which several questions may share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The text of the context.
    pub text: String,
    /// The tokens of the context.
    pub ids: Vec<u32>,
    /// The first byte of every token, and one past its last byte.
    pub bytes: Vec<(u32, u32)>,
}

/// The class of a position that takes no part in the loss. No vocabulary is so large that it is an id.
pub const NOTHING: u32 = u32::MAX;

/// A part of the data: for training, validation or test.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Texts for `lm` and `mlm`.
    Texts {
        /// All texts, or all pieces of the one long text, without special tokens.
        ids: Sequences,
        /// Whether each is a complete text, with a start and an end.
        whole: bool,
        /// The number of characters that are predicted in all texts, for metrics per character.
        characters: u64,
    },
    /// Sources and targets, without special tokens.
    Pairs {
        /// The tokens of each source.
        source: Sequences,
        /// The tokens of each target, as many as there are sources.
        target: Sequences,
        /// The index of each target's language, if the spec has languages.
        language: Vec<u32>,
        /// Source and target as text, for metrics that compare texts.
        texts: Vec<(String, String)>,
    },
    /// Texts with their classes, without special tokens.
    Classes {
        /// The tokens of each text.
        text: Sequences,
        /// A second text that follows the first; empty if there is none.
        second: Sequences,
        /// The classes of each text.
        labels: Sequences,
    },
    /// Images with their classes, already resized and scaled.
    Images {
        /// The values of all pixels, `[C, H, W]` for each image.
        pixels: Vec<f32>,
        /// The class of each image.
        labels: Vec<u32>,
    },
    /// Texts with a class for each token, without special tokens.
    Tags {
        /// The tokens of each text.
        ids: Sequences,
        /// The class of every token; [`NOTHING`] for all tokens of a word except the first.
        tags: Sequences,
    },
    /// Questions about contexts, without special tokens.
    Spans {
        /// The tokens of each question.
        question: Sequences,
        /// The first and the last token of the answer in the context, inclusive; `None` if the answer was
        /// cut off.
        answer: Vec<Option<(u32, u32)>>,
        /// The questions as text, in the order of `question`.
        questions: Vec<Question>,
        /// The contexts that the questions are about.
        contexts: Vec<Context>,
    },
}

impl Part {
    /// The number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.len(),
            Self::Pairs { source, .. } => source.len(),
            Self::Classes { text, .. } => text.len(),
            Self::Images { labels, .. } => labels.len(),
            Self::Spans { questions, .. } => questions.len(),
        }
    }

    /// The most tokens of a target, without the special ones around it; `None` for what is no translation.
    pub fn longest_target(&self) -> Option<usize> {
        match self {
            Self::Pairs { target, .. } => (0..target.len()).map(|i| target.get(i).len()).max(),
            Self::Texts { .. }
            | Self::Classes { .. }
            | Self::Images { .. }
            | Self::Tags { .. }
            | Self::Spans { .. } => None,
        }
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples that stand for the part if only so many are wanted, in its order: the first ones, but of images
    /// some at equal distances. Images are sorted by their folders, which are their classes, so the first would all be
    /// of one class.
    pub fn some(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let all = self.len();
        let count = count.min(all);
        let is_sorted = matches!(self, Self::Images { .. });
        // In 128 bits, in which no product of two lengths overflows; the quotient is below `all`.
        let spread = move |i: usize| (i as u128 * all as u128 / count.max(1) as u128) as usize;
        (0..count).map(move |i| if is_sorted { spread(i) } else { i })
    }

    /// The length of an example, by which examples are sorted into batches.
    pub fn length(&self, index: usize) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.get(index).len(),
            // The longer side: each is padded in its own rows, and the cost follows the wider ones.
            Self::Pairs { source, target, .. } => source.get(index).len().max(target.get(index).len()),
            Self::Classes { text, second, .. } => text.get(index).len() + second.get(index).len(),
            // All images have the same size, so there is nothing to sort by.
            Self::Images { .. } => 0,
            Self::Spans { question, .. } => {
                question.get(index).len() + self.context(index).map_or(0, |c| c.ids.len())
            }
        }
    }

    /// How many tokens of each example but the first are those with which the example before it ends: the pieces of
    /// one text share the token that one predicts last and the next one reads first.
    pub fn shared(&self) -> usize {
        match self {
            Self::Texts { whole, .. } => usize::from(!whole),
            Self::Pairs { .. }
            | Self::Classes { .. }
            | Self::Images { .. }
            | Self::Tags { .. }
            | Self::Spans { .. } => 0,
        }
    }

    /// The tokens of all examples, each once; see [`Self::shared`].
    pub fn distinct<'t>(&self, texts: Vec<&'t [u32]>) -> impl Iterator<Item = &'t [u32]> + use<'t> {
        let shared = self.shared();
        let texts = texts.into_iter().enumerate();
        texts.map(move |(i, ids)| ids.get(if i == 0 { 0 } else { shared }..).unwrap_or_default())
    }

    /// The context of a question.
    pub fn context(&self, index: usize) -> Option<&Context> {
        match self {
            Self::Spans { questions, contexts, .. } => contexts.get(questions.get(index)?.context),
            Self::Texts { .. }
            | Self::Pairs { .. }
            | Self::Classes { .. }
            | Self::Images { .. }
            | Self::Tags { .. } => None,
        }
    }

    /// The number of tokens in all examples.
    pub fn tokens(&self) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.total(),
            Self::Pairs { source, target, .. } => source.total() + target.total(),
            Self::Classes { text, second, .. } => text.total() + second.total(),
            Self::Images { .. } => 0,
            // As they are read: a context counts once for each of its questions.
            Self::Spans { .. } => (0..self.len()).map(|i| self.length(i)).sum(),
        }
    }
}
