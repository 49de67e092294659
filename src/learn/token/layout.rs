//! How texts that are read as a whole become one row of tokens: the special tokens around and between them,
//! and the type of each token.

use super::SpecialTokens;

/// A special token or a text in a row, with the token type that it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A special token.
    Mark {
        /// Its id.
        id: u32,
        /// Its token type.
        kind: u32,
    },
    /// All tokens of a text.
    Text {
        /// Whether it is the second of two.
        is_second: bool,
        /// The token type of each of its tokens.
        kind: u32,
    },
}

/// The rows of one text and of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The row of one text.
    pub one: Vec<Item>,
    /// The row of two texts.
    pub two: Vec<Item>,
}

impl Layout {
    /// What is usual with these special tokens: a text is between the start and the end token, and a second
    /// one follows with an end token of its own.
    pub fn usual(special: SpecialTokens) -> Self {
        let mark = |id: Option<u32>, kind| id.map(|id| Item::Mark { id, kind });
        let text = |is_second, kind| Some(Item::Text { is_second, kind });
        let one = [mark(special.start, 0), text(false, 0), mark(special.end, 0)];
        // Texts that two end tokens separate have no types, as in RoBERTa. Otherwise each text's end token
        // has the type of the text before it, as in BERT.
        let (again, kind) = if special.twice { (mark(special.end, 0), 0) } else { (None, 1) };
        let second = [again, text(true, kind), mark(special.end, kind)];
        Self {
            one: one.iter().flatten().copied().collect(),
            two: one.iter().chain(&second).flatten().copied().collect(),
        }
    }

    /// The same rows, in which all tokens have the first type.
    pub fn untyped(&self) -> Self {
        let first = |item: &Item| match *item {
            Item::Mark { id, .. } => Item::Mark { id, kind: 0 },
            Item::Text { is_second, .. } => Item::Text { is_second, kind: 0 },
        };
        let all = |items: &[Item]| items.iter().map(first).collect();
        Self { one: all(&self.one), two: all(&self.two) }
    }

    fn items(&self, texts: usize) -> &[Item] {
        if texts < 2 { &self.one } else { &self.two }
    }

    /// The row of one text or of two: its tokens, and the type of each.
    pub fn row(&self, texts: &[&[u32]]) -> (Vec<u32>, Vec<u32>) {
        let (mut ids, mut kinds) = (Vec::new(), Vec::new());
        for item in self.items(texts.len()) {
            let kind = match item {
                Item::Mark { id, kind } => {
                    ids.push(*id);
                    kind
                }
                Item::Text { is_second, kind } => {
                    ids.extend(texts.get(usize::from(*is_second)).copied().unwrap_or_default());
                    kind
                }
            };
            kinds.resize(ids.len(), *kind);
        }
        (ids, kinds)
    }

    /// A value for each token of the row of one text: those of the text itself, and `nothing` elsewhere.
    pub fn around(&self, values: &[u32], nothing: u32) -> Vec<u32> {
        let value = |item: &Item| match item {
            Item::Mark { .. } => vec![nothing],
            Item::Text { .. } => values.to_vec(),
        };
        self.one.iter().flat_map(value).collect()
    }

    /// The number of special tokens in the row of as many texts.
    pub fn marks(&self, texts: usize) -> usize {
        self.items(texts).iter().filter(|item| matches!(item, Item::Mark { .. })).count()
    }

    /// The number of special tokens that a second text adds.
    pub fn more_marks(&self) -> usize {
        self.marks(2).saturating_sub(self.marks(1))
    }

    /// The position of the only text in its row.
    pub fn first(&self) -> usize {
        self.one.iter().take_while(|item| matches!(item, Item::Mark { .. })).count()
    }

    /// The position of the second text in its row, where the first one has this length.
    pub fn second(&self, first: usize) -> usize {
        let before = self.two.iter().take_while(|item| !matches!(item, Item::Text { is_second: true, .. }));
        let length = |item: &Item| match item {
            Item::Mark { .. } => 1,
            Item::Text { .. } => first,
        };
        before.map(length).sum()
    }

    /// The special tokens before a text, between it and a second one, and after it.
    pub fn parts(&self) -> [Vec<u32>; 3] {
        let id = |item: &Item| match item {
            Item::Mark { id, .. } => Some(*id),
            Item::Text { .. } => None,
        };
        let before = self.one.iter().map_while(id).collect();
        let after: Vec<u32> = self.one.iter().rev().map_while(id).collect();
        let between = self.two.iter().skip_while(|item| id(item).is_some()).skip(1).map_while(id).collect();
        [before, between, after.into_iter().rev().collect()]
    }

    /// Whether [`Self::parts`] say all there is: two texts have the same tokens around them as one, and the type
    /// changes after the first token between them, or never if there are two.
    pub fn is_plain(&self) -> bool {
        let [before, between, after] = self.parts();
        let kind = u32::from(between.len() < 2);
        let marks =
            |ids: &[u32], kind| -> Vec<Item> { ids.iter().map(|id| Item::Mark { id: *id, kind }).collect() };
        let text = |is_second, kind| vec![Item::Text { is_second, kind }];
        let (first, rest) = between.split_at(between.len().min(1));
        let one = [marks(&before, 0), text(false, 0), marks(&after, 0)].concat();
        let two = [marks(&before, 0), text(false, 0), marks(first, 0), marks(rest, kind), text(true, kind)];
        self.one == one && self.two == [two.concat(), marks(&after, kind)].concat()
    }
}
