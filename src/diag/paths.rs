//! Paths of parameters such as `decoder.blocks.0.norm2`: which are similar, and which differ only in their numbers.

use std::collections::BTreeSet;
use std::fmt;

use indexmap::IndexMap;

use super::suggest::{LETTER, distance, plain, slip};

/// Replaces the numbers in a path: `h.0.ln_1.weight` → `h.*.ln_1.weight`.
pub fn folded(path: &str) -> String {
    let word = |w: &str| if is_number(w) { "*".to_owned() } else { w.to_owned() };
    path.split('.').map(word).collect::<Vec<_>>().join(".")
}

fn is_number(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit())
}

/// Paths that differ only in their numbers and have the same message, so that one line can report all of them.
#[derive(Clone, Debug)]
pub struct Group<'a, K> {
    /// What all of them have in common besides their names, such as a shape.
    pub key: K,
    /// The paths, in the order in which they were met; there is at least one.
    pub paths: Vec<&'a str>,
}

/// Groups paths that differ only in their numbers and have the same key, in the order of the first path of each group.
pub fn groups<'a, K: Clone + Eq + std::hash::Hash>(
    paths: impl IntoIterator<Item = (&'a str, K)>,
) -> Vec<Group<'a, K>> {
    let mut groups: IndexMap<(String, K), Vec<&str>> = IndexMap::new();
    for (path, key) in paths {
        groups.entry((folded(path), key)).or_default().push(path);
    }
    groups.into_iter().map(|((_, key), paths)| Group { key, paths }).collect()
}

impl<K> Group<'_, K> {
    /// The first path; empty if there is none.
    pub fn first(&self) -> &str {
        self.paths.first().copied().unwrap_or_default()
    }

    /// The path, with `*` for the numbers of several.
    pub fn name(&self) -> String {
        self.of(self.first())
    }

    /// Another path, written as [`Group::name`] writes the paths of this group: with `*` if it has several.
    pub fn of(&self, path: &str) -> String {
        if self.paths.len() > 1 { folded(path) } else { path.to_owned() }
    }

    /// The number of paths, to be written at the end of a message: empty for one path, otherwise ` (8 times, * = 0 to 7)`.
    pub fn times(&self) -> impl fmt::Display + use<K> {
        let count = self.paths.len();
        let numbers = self.paths.iter().map(|path| {
            let mut numbers = path.split('.').filter(|segment| is_number(segment));
            let first = numbers.next().and_then(|n| n.parse::<usize>().ok());
            first.filter(|_| numbers.next().is_none())
        });
        let first = numbers.clone().next().flatten();
        // A range is shown if each path has a single number and these count up; anything else would need a list.
        let counts_up = first.is_some_and(|first| {
            numbers.enumerate().all(|(i, number)| number.is_some() && number == first.checked_add(i))
        });
        match (count, first) {
            (0 | 1, _) => String::new(),
            (_, Some(first)) if counts_up => {
                let last = first.saturating_add(count).saturating_sub(1);
                format!(" ({count} times, * = {first} to {last})")
            }
            _ => format!(" ({count} times)"),
        }
    }
}

/// The most missing paths for which [`nearest_paths`] is called. Each call examines every candidate, so there
/// are fewer if there are very many candidates.
pub fn most_path_hints(candidates: usize) -> usize {
    const MOST_COMPARISONS: usize = 100_000;
    MOST_COMPARISONS.checked_div(candidates).unwrap_or(MOST_COMPARISONS).clamp(1, 64)
}

/// The paths that are most similar to a path such as `decoder.blocks.0.norm2`, the best first. Paths are
/// compared segment by segment; at least half of their segments, and the last one, have something in common.
pub fn nearest_paths<'a>(path: &str, candidates: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wanted: Vec<String> = path.split('.').map(plain).collect();
    let mut scored: Vec<(usize, &str)> = candidates
        .filter_map(|candidate| {
            let cost = path_distance(&wanted, &candidate.split('.').map(plain).collect::<Vec<_>>());
            // A path that differs in more than half of its segments is not similar.
            (cost <= wanted.len().saturating_mul(SEGMENT) / 2).then_some((cost, candidate))
        })
        .collect();
    // A stable sort: paths at the same distance stay in the order of the model.
    scored.sort_by_key(|(cost, _)| *cost);
    scored.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// The cost of a segment that is completely different, or that only one of two paths has. A segment with a
/// typing error costs less than this, so that a path of the right shape is preferred.
const SEGMENT: usize = 4 * LETTER;

/// The distance of two paths: the smallest total cost of segments that are missing, added or different.
fn path_distance(path: &[String], other: &[String]) -> usize {
    let exchange = |a: &String, b: &String| {
        // Different segments cost less than leaving one out and adding the other, so paths are compared in
        // pairs.
        // Instances of one part differ in their number: `norm3` is no misspelling of `norm2`, but like it.
        let stem = |segment: &'_ str| segment.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        match distance(a, b) {
            _ if a == b => 0,
            Some((cost, _)) => cost.min(SEGMENT),
            None if !stem(a).is_empty() && stem(a) == stem(b) => SEGMENT / 2,
            None => SEGMENT * 3 / 2,
        }
    };
    let mut row: Vec<usize> = (0..=other.len()).map(|j| j.saturating_mul(SEGMENT)).collect();
    for (i, a) in path.iter().enumerate() {
        let mut next = vec![i.saturating_add(1).saturating_mul(SEGMENT)];
        for (j, b) in other.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let cost = at(&row, j)
                .saturating_add(exchange(a, b))
                .min(at(&row, j.saturating_add(1)).saturating_add(SEGMENT))
                .min(at(&next, j).saturating_add(SEGMENT));
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// For a path to which no candidate is similar enough for a suggestion: the candidates that share the most with it.
/// `nope` leads to `norm1`, for example, and not to whatever comes first. Candidates that differ only in the
/// number of a block count once.
pub fn least_unlike<'a>(path: &str, candidates: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let plain_stem = |segment: &str| plain(segment.trim_end_matches(|c: char| c.is_ascii_digit()));
    let stems = |path: &str| -> Vec<String> {
        path.split('.').map(plain_stem).filter(|stem| !stem.is_empty() && stem.len() <= MAX_STEM).collect()
    };
    let wanted = stems(path);
    let mut met: BTreeSet<Vec<&str>> = BTreeSet::new();
    let mut scored: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        if !met.insert(candidate.split('.').filter(|segment| !is_number(segment)).collect()) {
            continue;
        }
        let own = stems(candidate);
        // Each segment of the path is compared with the one that is most like it, as far as it may be away.
        let best =
            |segment: &String| own.iter().map(|other| unlikeness(segment, other)).min().unwrap_or(WHOLE);
        let cost = wanted.iter().map(best).fold(0usize, usize::saturating_add);
        scored.push((cost.saturating_add(own.len()), candidate));
    }
    // A stable sort: paths at the same distance stay in the order of the model.
    scored.sort_by_key(|(cost, _)| *cost);
    scored.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// The longest segment of a path that [`least_unlike`] compares.
const MAX_STEM: usize = 64;
/// How unlike two words are that have nothing in common.
const WHOLE: usize = 1000;

/// The cost of changing one word into the other, as a share of what replacing all its letters costs.
fn unlikeness(word: &str, other: &str) -> usize {
    let (word, other): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    let all = word.len().max(other.len()).saturating_mul(LETTER);
    let cost = slip(&word, &other, all).unwrap_or(all);
    cost.saturating_mul(WHOLE).checked_div(all).unwrap_or(WHOLE).min(WHOLE)
}
