//! Examples as numbers, packed.

/// Lists of ids, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sequences {
    ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Sequences {
    /// Adds a list.
    pub fn push(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len());
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The list of that index, empty where there is none.
    pub fn get(&self, index: usize) -> &[u32] {
        let Some(end) = self.ends.get(index) else { return &[] };
        let start = index.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        self.ids.get(start..*end).unwrap_or(&[])
    }

    /// How many ids all lists have together.
    pub fn total(&self) -> usize {
        self.ids.len()
    }
}

/// A question as written, for comparing answers in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its name in the file.
    pub id: String,
    /// The question.
    pub text: String,
    /// Which context it is about.
    pub context: usize,
    /// The right answers.
    pub answers: Vec<String>,
}

/// A context of questions, once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// As written.
    pub text: String,
    /// Its tokens.
    pub ids: Vec<u32>,
    /// First and last byte of every token, the last excluded.
    pub bytes: Vec<(u32, u32)>,
}

/// No class: a token that is not to be predicted.
pub const NOTHING: u32 = u32::MAX;

/// A part of the data: to learn from, to choose by, or for the end.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Texts for `lm` and `mlm`.
    Texts {
        /// Every text, or every piece of the one text, without marks.
        ids: Sequences,
        /// Whether each is a text of its own, with a start and an end.
        whole: bool,
        /// Characters of all texts together, for figures per character.
        characters: u64,
    },
    /// Sources and targets, without marks.
    Pairs {
        /// Every source.
        source: Sequences,
        /// Its target.
        target: Sequences,
        /// The language of every target, where the spec has languages.
        language: Vec<u32>,
        /// Source and target as written, for figures that compare texts.
        texts: Vec<(String, String)>,
    },
    /// Texts with their classes, without marks.
    Classes {
        /// Every text.
        text: Sequences,
        /// A second text behind it, or nothing.
        second: Sequences,
        /// Its class, or several of them.
        labels: Sequences,
    },
    /// Images with their classes.
    Images {
        /// Values of all pixels, `[C, H, W]` an image.
        pixels: Vec<f32>,
        /// Its class.
        labels: Vec<u32>,
    },
    /// Texts with a class for tokens, without marks.
    Tags {
        /// Every text.
        ids: Sequences,
        /// The class of every token, [`NOTHING`] behind the first of a word.
        tags: Sequences,
    },
    /// Questions about contexts, without marks.
    Spans {
        /// Every question.
        question: Sequences,
        /// First and last token of its answer in the context, the last among them; nothing where the
        /// answer was cut off.
        answer: Vec<Option<(u32, u32)>>,
        /// Questions as written.
        questions: Vec<Question>,
        /// What they are about.
        contexts: Vec<Context>,
    },
}

impl Part {
    /// How many examples there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.len(),
            Self::Pairs { source, .. } => source.len(),
            Self::Classes { text, .. } => text.len(),
            Self::Images { labels, .. } => labels.len(),
            Self::Spans { questions, .. } => questions.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long an example is, for sorting alike ones together.
    pub fn length(&self, index: usize) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.get(index).len(),
            Self::Pairs { source, target, .. } => source.get(index).len().max(target.get(index).len()),
            Self::Classes { text, second, .. } => text.get(index).len() + second.get(index).len(),
            Self::Images { .. } => 0,
            Self::Spans { question, .. } => {
                question.get(index).len() + self.context(index).map_or(0, |c| c.ids.len())
            }
        }
    }

    /// What a question is about.
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

    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        match self {
            Self::Texts { ids, .. } | Self::Tags { ids, .. } => ids.total(),
            Self::Pairs { source, target, .. } => source.total() + target.total(),
            Self::Classes { text, second, .. } => text.total() + second.total(),
            Self::Images { .. } => 0,
            Self::Spans { .. } => (0..self.len()).map(|i| self.length(i)).sum(),
        }
    }
}
