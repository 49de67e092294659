//! Learns the merges of byte pair encoding (Sennrich et al. 2016).
//!
//! The most frequent pair of neighbours becomes a token, again and again, until there are enough tokens. Of
//! equally frequent pairs, the one of older tokens comes first, so the same texts always give the same
//! vocabulary.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use indexmap::IndexMap;

/// The most work of finding all divisions of pieces in two, as the sum of the squares of their lengths in
/// bytes. That of a real model with 256,000 pieces needs a hundredth of it.
const MOST_WORK: u64 = 1 << 30;
/// The most bytes that the merges may need. Those of real models need a tenth of it.
const MOST_MERGES: usize = 256 << 20;

/// A vocabulary that was learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The tokens by id: special ones, characters, then merged ones in the order of merges.
    pub tokens: Vec<String>,
    /// The pairs that are merged, in order.
    pub merges: Vec<(String, String)>,
}

/// How the tokens of a vocabulary are written, and which there are in any case.
#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    /// Special tokens, which come first and are never part of another token.
    pub special: &'a [&'a str],
    /// The prefix of a token that does not begin its word (`##`).
    pub inside: &'a str,
    /// Characters that are tokens even if they do not occur in the texts.
    pub alphabet: &'a [char],
}

/// A word as the tokens it consists of so far.
struct Word {
    ids: Vec<u32>,
    count: u64,
}

type Pair = (u32, u32);

#[derive(Default)]
struct Pairs {
    counts: BTreeMap<Pair, i64>,
    places: BTreeMap<Pair, BTreeSet<usize>>,
}

impl Pairs {
    /// Adds the pairs of a word (`sign` 1) or takes them away (-1), and notes which counts have changed.
    fn note(&mut self, word: &Word, index: usize, sign: i64, changed: &mut BTreeSet<Pair>) {
        let count = i64::try_from(word.count).unwrap_or(i64::MAX);
        for pair in word.ids.windows(2) {
            let [a, b] = pair else { continue };
            let pair = (*a, *b);
            *self.counts.entry(pair).or_default() += sign * count;
            // Places are only added: a word that no longer has the pair is left as it is when the pair is
            // merged.
            if sign > 0 {
                self.places.entry(pair).or_default().insert(index);
            }
            changed.insert(pair);
        }
    }
}

/// Learns from words with their counts. Pairs are merged until there are `vocab` tokens, but not those that
/// occur fewer than `min_frequency` times. Special tokens and single characters are tokens in any case.
pub fn learn(counts: &BTreeMap<String, u64>, vocab: usize, min_frequency: u64, style: Style<'_>) -> Learnt {
    let mut tokens: Vec<String> = Vec::new();
    let mut ids: BTreeMap<String, u32> = BTreeMap::new();
    let mut id = |token: String, tokens: &mut Vec<String>| {
        *ids.entry(token).or_insert_with_key(|token| {
            tokens.push(token.clone());
            u32::try_from(tokens.len() - 1).unwrap_or(u32::MAX)
        })
    };
    for token in style.special {
        id((*token).to_owned(), &mut tokens);
    }
    let spelt = |word: &str| -> Vec<String> {
        let inside = |(i, c): (usize, char)| match i {
            0 => c.to_string(),
            _ => format!("{}{c}", style.inside),
        };
        word.chars().enumerate().map(inside).collect()
    };
    // Ordered, so that the ids of characters do not depend on the order of the texts.
    let mut first: BTreeSet<String> = style.alphabet.iter().map(char::to_string).collect();
    first.extend(counts.keys().flat_map(|word| spelt(word)));
    for token in first {
        id(token, &mut tokens);
    }
    let mut words: Vec<Word> = counts
        .iter()
        .map(|(word, count)| Word {
            ids: spelt(word).into_iter().map(|token| id(token, &mut tokens)).collect(),
            count: *count,
        })
        .collect();
    let mut pairs = Pairs::default();
    let mut changed = BTreeSet::new();
    for (index, word) in words.iter().enumerate() {
        pairs.note(word, index, 1, &mut changed);
    }
    // Of equal counts the greatest entry comes first, which in reverse is the pair with the smallest ids.
    let mut queue: BinaryHeap<(i64, Reverse<Pair>)> =
        pairs.counts.iter().map(|(pair, count)| (*count, Reverse(*pair))).collect();
    let mut merges = Vec::new();
    // Pairs that are gone have the count 0 and must never be merged.
    let least = i64::try_from(min_frequency.max(1)).unwrap_or(i64::MAX);
    while tokens.len() < vocab {
        let Some((count, Reverse(pair))) = queue.pop() else { break };
        // A heap cannot change its entries, so outdated counts of a pair stay in the queue. Its present count
        // is there, too.
        if pairs.counts.get(&pair) != Some(&count) {
            continue;
        }
        if count < least {
            break;
        }
        let of = |id: u32| tokens.get(id as usize).cloned().unwrap_or_default();
        let (left, right) = (of(pair.0), of(pair.1));
        // `play` and `##ing` become `play` and `ing` joined: only the beginning of a token says whether it
        // begins a word.
        let joined = format!("{left}{}", right.strip_prefix(style.inside).unwrap_or(&right));
        // Different pairs may form the same token, which then has one id and both merges.
        let new = id(joined, &mut tokens);
        merges.push((left, right));
        let mut changed = BTreeSet::new();
        for index in pairs.places.remove(&pair).unwrap_or_default() {
            // Only the words with the pair are looked at again: counting all words again for each of tens of
            // thousands of merges would take hours.
            let Some(word) = words.get_mut(index) else { continue };
            pairs.note(word, index, -1, &mut changed);
            word.ids = join(&word.ids, pair, new);
            pairs.note(word, index, 1, &mut changed);
        }
        for pair in changed {
            if let Some(count) = pairs.counts.get(&pair).filter(|c| **c > 0) {
                queue.push((*count, Reverse(pair)));
            }
        }
    }
    Learnt { tokens, merges }
}

/// The ids after merging every occurrence of the pair, from left to right.
fn join(ids: &[u32], pair: Pair, new: u32) -> Vec<u32> {
    let mut out = Vec::with_capacity(ids.len());
    let mut rest = ids;
    while let [first, tail @ ..] = rest {
        rest = match tail {
            [second, rest @ ..] if (*first, *second) == pair => {
                out.push(new);
                rest
            }
            tail => {
                out.push(*first);
                tail
            }
        };
    }
    out
}

/// The merges of a vocabulary: every division of a piece into two others, in the order of the pieces' ids.
///
/// # Errors
/// It would take too long, or there are too many.
pub(super) fn all_merges(ids: &IndexMap<&str, u32>) -> Result<Vec<(String, String)>, String> {
    let mut work = 0u64;
    let mut bytes = 0usize;
    let mut merges = Vec::new();
    for piece in ids.keys() {
        let length = piece.len() as u64;
        work = work.saturating_add(length.saturating_mul(length));
        if work > MOST_WORK {
            return Err("its pieces are too long".to_owned());
        }
        // Divided between characters only, because tokens are texts.
        for (at, _) in piece.char_indices().skip(1) {
            let Some((left, right)) = piece.split_at_checked(at) else { continue };
            if ids.contains_key(left) && ids.contains_key(right) {
                bytes = bytes.saturating_add(piece.len());
                if bytes > MOST_MERGES {
                    return Err("it has too many merges".to_owned());
                }
                merges.push((left.to_owned(), right.to_owned()));
            }
        }
    }
    Ok(merges)
}
