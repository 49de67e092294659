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

/// A part of the data: to learn from, to choose by, or for the end.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Texts for `lm` and `mlm`, without marks.
    Texts {
        /// Every text, or every piece of the one text.
        ids: Sequences,
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
}

impl Part {
    /// How many examples there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Texts { ids, .. } => ids.len(),
            Self::Pairs { source, .. } => source.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long an example is, for sorting alike ones together.
    pub fn length(&self, index: usize) -> usize {
        match self {
            Self::Texts { ids, .. } => ids.get(index).len(),
            Self::Pairs { source, target, .. } => source.get(index).len().max(target.get(index).len()),
        }
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        match self {
            Self::Texts { ids, .. } => ids.total(),
            Self::Pairs { source, target, .. } => source.total() + target.total(),
        }
    }
}
