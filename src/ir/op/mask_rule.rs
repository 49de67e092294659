//! Which keys a query may not see, in addition to padding.
//!
//! The rule is defined only here. The interpreter and the pictures ask [`MaskRule::hides`], the counts call
//! [`visible_pairs`] and [`reach`], and an emission target writes each of [`MaskRule::conditions`].

use std::ops::Range;

use crate::ir::text::thousands;

/// Which keys are hidden from a query. A key is visible only if every field that is given allows it.
/// Positions are counted from the start of the sequence, so they include the cached ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MaskRule {
    /// Hides keys after the query.
    pub causal: bool,
    /// Hides keys that are not close to the query.
    pub window: Option<Window>,
    /// Hides keys outside of the query's chunk; chunks have this number of positions.
    pub chunk: Option<u64>,
    /// Exempts keys before this position from `causal`, but not from a window or a chunk.
    pub prefix: Option<u64>,
}

/// A number of neighbouring positions of which a query sees the keys, its own position included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The number of positions as the author gives it.
    pub size: u64,
    /// Whether the query is in the middle of the window. Otherwise it is at the end of one window and at the
    /// start of another: what is after the query may be visible in a prefix.
    pub centred: bool,
}

impl Window {
    /// The number of positions of the window on one side of the query, the query's own included.
    pub fn side(self) -> u64 {
        // Half of the size on either side of the query: a centred window of 4 positions is one of 5.
        if self.centred { (self.size / 2).saturating_add(1) } else { self.size }
    }
}

/// One condition of a rule. A key is hidden if any condition of the rule is true for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// `key > query && key >= prefix`; `prefix` is 0 if the rule has none.
    Later {
        /// Keys before this position are not hidden by this condition.
        prefix: u64,
    },
    /// `key + side <= query` with the window's [side](Window::side)
    Behind {
        /// Its positions up to the query are visible.
        window: Window,
    },
    /// `query + side <= key` with the window's [side](Window::side)
    Ahead {
        /// Its positions from the query on are visible.
        window: Window,
    },
    /// `key / chunk != query / chunk`, with integer division.
    OtherChunk {
        /// The number of positions in a chunk.
        chunk: u64,
    },
}

impl MaskRule {
    /// Hides keys after the query and nothing else.
    pub const CAUSAL: Self = Self { causal: true, window: None, chunk: None, prefix: None };

    /// Whether the rule hides nothing at all.
    pub fn is_empty(&self) -> bool {
        self.conditions().next().is_none()
    }

    /// The conditions under which a key is hidden, without any that follows from the others.
    pub fn conditions(&self) -> impl Iterator<Item = Hidden> + use<> {
        let Self { causal, window, chunk, prefix } = *self;
        // No prefix is one that no key is in.
        let prefix = prefix.unwrap_or(0);
        // A key that is hidden as too far ahead is after the query and, if the prefix is short, not in it.
        // Then `Later` hides it already.
        let follows = |right: u64| causal && right >= 1 && prefix <= right;
        let later = causal.then_some(Hidden::Later { prefix });
        let behind = window.map(|w| Hidden::Behind { window: w });
        let ahead = window.filter(|w| !follows(w.side())).map(|w| Hidden::Ahead { window: w });
        let other = chunk.map(|chunk| Hidden::OtherChunk { chunk });
        [later, behind, ahead, other].into_iter().flatten()
    }

    /// Whether a key is hidden from a query.
    pub fn hides(&self, query: u64, key: u64) -> bool {
        self.conditions().any(|hidden| hidden.holds(query, key))
    }

    /// A short phrase for each field, for readers: `causal`, `window 4,096`.
    pub fn words(&self) -> Vec<String> {
        let Self { causal, window, chunk, prefix } = *self;
        let size = |n: u64| thousands(n.into());
        let mut words = Vec::new();
        words.extend(causal.then(|| "causal".to_owned()));
        words.extend(window.map(|window| format!("window {}", size(window.size))));
        words.extend(chunk.map(|chunk| format!("chunks of {}", size(chunk))));
        words.extend(prefix.map(|prefix| format!("prefix {}", size(prefix))));
        words
    }

    /// Whether a query can see keys after it.
    pub fn looks_ahead(&self) -> bool {
        !self.causal || self.prefix.is_some()
    }

    /// Splits the rule: whether attention's own `causal` flag is set, and the rule of the mask for the rest.
    /// Attention has no prefix, so a rule with a prefix is entirely in the mask.
    pub fn split(self) -> (bool, Self) {
        let in_attention = !self.looks_ahead();
        (in_attention, Self { causal: self.causal && !in_attention, ..self })
    }
}

impl Hidden {
    /// The size of the chunks that this condition separates.
    fn chunk(self) -> Option<i64> {
        match self {
            // A spec has no chunk of 0 positions; at least 1 keeps the division defined.
            Hidden::OtherChunk { chunk } => Some(clamped(chunk).max(1)),
            Hidden::Later { .. } | Hidden::Behind { .. } | Hidden::Ahead { .. } => None,
        }
    }

    /// Whether this condition hides a key from a query.
    pub fn holds(self, query: u64, key: u64) -> bool {
        !self.seen(clamped(query)).contains(&clamped(key))
    }

    /// The keys that a query sees under this condition alone.
    fn seen(self, query: i64) -> Range<i64> {
        let [from, to] = self.ends();
        from.at(query)..to.at(query)
    }

    /// The first of the keys that are visible under this condition, and the end of them.
    fn ends(self) -> [End; 2] {
        let moving = |offset| End::Query { offset, least: 0 };
        match self {
            Hidden::Later { prefix } => [End::START, End::Query { offset: 1, least: clamped(prefix) }],
            Hidden::Behind { window } => [moving(1i64.saturating_sub(clamped(window.side()))), End::NEVER],
            Hidden::Ahead { window } => [End::START, moving(clamped(window.side()))],
            Hidden::OtherChunk { chunk } => {
                let size = clamped(chunk).max(1);
                [End::Chunk { size, offset: 0 }, End::Chunk { size, offset: size }]
            }
        }
    }
}

/// Larger than any position, and small enough that a sum of three does not saturate.
const FAR: i64 = 1 << 60;

fn clamped(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(FAR).min(FAR)
}

/// The first position of the chunk of that size that has this position.
fn start_of_chunk(position: i64, size: i64) -> i64 {
    position.saturating_sub(position.checked_rem(size).unwrap_or(0))
}

/// One end of the range of keys that a query sees, as a function of the query's position.
#[derive(Clone, Copy)]
enum End {
    /// `query + offset`, or `least` where that is more.
    Query { offset: i64, least: i64 },
    /// `offset` after the start of the query's chunk.
    Chunk { size: i64, offset: i64 },
}

impl End {
    const START: Self = End::Query { offset: -FAR, least: 0 };
    const NEVER: Self = End::Query { offset: FAR, least: 0 };

    fn at(self, query: i64) -> i64 {
        match self {
            End::Query { offset, least } => query.saturating_add(offset).max(least),
            End::Chunk { size, offset } => start_of_chunk(query, size).saturating_add(offset),
        }
    }

    /// Whether it increases by one from this query to the next.
    fn moves(self, query: i64) -> bool {
        match self {
            End::Query { offset, least } => query.saturating_add(offset) >= least,
            End::Chunk { .. } => false,
        }
    }

    /// The next query after this one at which it jumps, or begins to increase.
    fn bend(self, query: i64) -> Option<i64> {
        match self {
            End::Query { offset, least } => Some(least.saturating_sub(offset)).filter(|bend| *bend > query),
            End::Chunk { size, .. } => Some(start_of_chunk(query, size).saturating_add(size)),
        }
    }
}

/// The largest number of positions up to the newest query, with its own, that it can see; `None` if there is
/// no limit.
pub fn reach(rules: &[MaskRule]) -> Option<u64> {
    let limit = |hidden: Hidden| match hidden {
        Hidden::Behind { window } => Some(window.side()),
        Hidden::OtherChunk { chunk } => Some(chunk),
        // These limit what is visible after the query.
        Hidden::Later { .. } | Hidden::Ahead { .. } => None,
    };
    rules.iter().flat_map(MaskRule::conditions).filter_map(limit).min()
}

/// The number of pairs of a query and a key that no rule hides. Queries are at positions
/// `from..from + queries`, keys at `0..keys`.
///
/// With chunks of one size, the time this takes does not grow with the lengths. The pattern of chunks of two
/// sizes repeats after their least common multiple, so the time grows with the smaller size or with the
/// number of the larger chunks, whichever is less. That is below the square root of the number of positions.
pub fn visible_pairs(rules: &[MaskRule], from: u128, queries: u128, keys: u128) -> u128 {
    let clamped = |n: u128| clamped(u64::try_from(n).unwrap_or(u64::MAX));
    let (start, keys) = (clamped(from), clamped(keys));
    let end = start.saturating_add(clamped(queries)).min(FAR);
    let conditions: Vec<Hidden> = rules.iter().flat_map(MaskRule::conditions).collect();
    let mut sizes: Vec<i64> = conditions.iter().filter_map(|hidden| hidden.chunk()).collect();
    sizes.sort_unstable();
    // A chunk lies within a single chunk of any multiple of its size, so it is enough to split at the smaller
    // size.
    let mut chunks: Vec<i64> = Vec::new();
    for size in sizes {
        if !chunks.iter().any(|smaller| size.checked_rem(*smaller) == Some(0)) {
            chunks.push(size);
        }
    }
    Pairs { conditions: &conditions, keys }.within(&chunks, start, end)
}

/// Counts the pairs that are visible under some conditions.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    conditions: &'a [Hidden],
    /// The number of keys.
    keys: i64,
}

impl Pairs<'_> {
    /// The pairs of the queries `start..stop`, which lie in one chunk of every size that is not among
    /// `chunks`. Periods of the least common multiple of the sizes have equal counts, unless the prefix or
    /// the keys end in one.
    fn within(self, chunks: &[i64], start: i64, stop: i64) -> u128 {
        let Some(period) = chunks.iter().copied().reduce(least_common_multiple) else {
            return pairs_in(self.conditions, start, stop, self.keys);
        };
        let prefixes = self.conditions.iter().filter_map(|hidden| match hidden {
            Hidden::Later { prefix } => Some(clamped(*prefix)),
            Hidden::Behind { .. } | Hidden::Ahead { .. } | Hidden::OtherChunk { .. } => None,
        });
        // A period before the end of a prefix or of the keys has another number of pairs than one after it.
        let cuts: Vec<i64> = prefixes.chain([self.keys, stop]).collect();
        let mut total = 0u128;
        let mut at = start;
        while at < stop {
            let next = cuts.iter().copied().filter(|cut| *cut > at).min().unwrap_or(stop);
            // Only from the start of a period do chunks lie as in the next period.
            let is_whole = at.checked_rem(period) == Some(0);
            let whole = next.saturating_sub(at).checked_div(period).filter(|n| is_whole && *n > 0);
            let (end, repeats) = match whole {
                None => (start_of_chunk(at, period).saturating_add(period).min(stop), 1),
                Some(repeats) => (at.saturating_add(period), repeats),
            };
            let pairs = self.chunk_by_chunk(chunks, at, end);
            total = total.saturating_add(pairs.saturating_mul(u128::from(repeats.unsigned_abs())));
            at = at.saturating_add(end.saturating_sub(at).saturating_mul(repeats));
        }
        total
    }

    /// The pairs of the queries `start..stop`, counted for one of the largest chunks after the other.
    fn chunk_by_chunk(self, chunks: &[i64], start: i64, stop: i64) -> u128 {
        let Some((size, smaller)) = chunks.split_last() else { return 0 };
        let mut total = 0u128;
        let mut at = start;
        while at < stop {
            let end = start_of_chunk(at, *size).saturating_add(*size).min(stop);
            total = total.saturating_add(self.within(smaller, at, end));
            at = end;
        }
        total
    }
}

fn least_common_multiple(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while let Some(rest) = x.checked_rem(y) {
        (x, y) = (y, rest);
    }
    // A period that is longer than any sequence does not repeat.
    a.checked_div(x).unwrap_or(a).saturating_mul(b).min(FAR)
}

/// The visible pairs of the queries `start..stop`. Between a few bends, both ends of the range of keys that a
/// query sees are linear in the query, so the pairs of each piece are the sum of an arithmetic series.
fn pairs_in(conditions: &[Hidden], start: i64, stop: i64, keys: i64) -> u128 {
    // The keys that there are, from 0 to `keys`, as if by a condition.
    let all = [End::START, End::Query { offset: -FAR, least: keys }];
    let ends: Vec<[End; 2]> =
        std::iter::once(all).chain(conditions.iter().map(|hidden| hidden.ends())).collect();
    let seen = |query: i64| {
        let from = ends.iter().map(|[from, _]| from.at(query)).max().unwrap_or(0);
        let to = ends.iter().map(|[_, to]| to.at(query)).min().unwrap_or(0);
        i128::from(to.saturating_sub(from).max(0))
    };
    let mut total = 0i128;
    let mut at = start;
    while at < stop {
        // Between bends, an end increases by one with each query or is constant, so which of the ends is the
        // tightest can change only where an increasing one reaches a constant one.
        let bends = ends.iter().flatten().filter_map(|end| end.bend(at));
        let moving = ends.iter().flatten().filter(|end| end.moves(at));
        let crossings = moving.flat_map(|moving| {
            let still = ends.iter().flatten().filter(|end| !end.moves(at));
            still.map(move |still| at.saturating_add(still.at(at)).saturating_sub(moving.at(at)))
        });
        let next = bends.chain(crossings).filter(|cut| *cut > at).fold(stop, i64::min);
        // The number of keys changes by a constant from query to query, so its mean is that of the first and
        // the last query.
        let both = seen(at).saturating_add(seen(next.saturating_sub(1)));
        let queries = i128::from(next.saturating_sub(at));
        total = total.saturating_add(both.saturating_mul(queries) / 2);
        at = next;
    }
    total.unsigned_abs()
}
