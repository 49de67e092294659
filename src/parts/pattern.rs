//! Patterns of paths, in which `*` matches any text.

use std::collections::BTreeSet;

use crate::diag::paths::nearest_paths;
use crate::diag::suggest::suggest;

/// Whether a pattern, in which `*` matches any text, matches the whole path. The path has `*` instead of a
/// block's index.
pub fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    // Without a `*` the pattern must be the whole path.
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    // The first occurrence leaves the most text for the pieces after it, so no later one need be tried.
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    // The last piece must be at the end, so not its first occurrence counts.
    rest.ends_with(last)
}

/// A pattern that matches one of the known paths and is most similar to this one, which matches none.
pub fn nearest<'p, P: IntoIterator<Item = &'p String> + Copy>(pattern: &str, known: P) -> Option<String> {
    let fits = |near: &String| known.into_iter().any(|path| matches(near, path));
    // A pattern is compared with whole paths, and `embed` is the beginning of some.
    let around = ["{}.*", "*.{}", "*.{}.*", "{}*"].into_iter().map(|form| form.replace("{}", pattern));
    if let Some(near) = around.filter(|_| !pattern.is_empty()).find(fits) {
        return Some(near);
    }
    with_words(pattern, known).filter(fits).or_else(|| with_segments(pattern, known).filter(fits))
}

/// The pattern in which every word that is in no path is the most similar one that is: `*norm*` for `*nrom*`. `None`
/// if it has no such word, or nothing is similar to one.
fn with_words<'p>(pattern: &str, known: impl IntoIterator<Item = &'p String>) -> Option<String> {
    // A pattern may have a piece of a segment: `norm` of `norm1`, `token` of `token_embed`.
    let segments: BTreeSet<&str> = known.into_iter().flat_map(|path| path.split('.')).collect();
    let stems = segments.iter().map(|segment| segment.trim_end_matches(|c: char| c.is_ascii_digit()));
    let pieces = segments.iter().flat_map(|segment| segment.split('_'));
    let words: BTreeSet<&str> =
        segments.iter().copied().chain(stems).chain(pieces).filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().collect();
    let mut found = String::new();
    for piece in pattern.split_inclusive(['.', '*']) {
        let word = piece.trim_end_matches(['.', '*']);
        let is_known = segments.iter().any(|segment| segment.contains(word));
        found += &if is_known { word.to_owned() } else { suggest(word, &words)? };
        found += piece.get(word.len()..).unwrap_or_default();
    }
    (found != pattern).then_some(found)
}

/// The pattern with the segments of a path. If it has a `*`, only a part of it is compared: the segments before the
/// first `*` with the beginnings of paths, or, if there are none, those after the last `*` with their ends.
fn with_segments<'p>(pattern: &str, known: impl IntoIterator<Item = &'p String>) -> Option<String> {
    let known = known.into_iter();
    let words: Vec<&str> = pattern.split('.').collect();
    // Segments with a `*` may match any number of segments, so what they are similar to is unknown.
    let is_open = |word: &&str| word.contains('*');
    let (Some(first), Some(last)) = (words.iter().position(is_open), words.iter().rposition(is_open)) else {
        return nearest_paths(pattern, known.map(String::as_str), 1).first().map(|near| (*near).to_owned());
    };
    let after_last = last.saturating_add(1);
    let part = |path: &String| {
        let own: Vec<&str> = path.split('.').collect();
        // Counted from the end, because the `*` before it may have matched several segments.
        let skipped = own.len().checked_sub(words.len().saturating_sub(after_last))?;
        let part = if first > 0 { own.get(..first) } else { own.get(skipped..) };
        part.map(|part| part.join("."))
    };
    // Many paths have the same part, which is compared once.
    let parts: BTreeSet<String> = known.filter_map(part).collect();
    let (wanted, before, after) = match first {
        0 => (words.get(after_last..)?, words.get(..after_last)?, &[][..]),
        _ => (words.get(..first)?, &[][..], words.get(first..)?),
    };
    let near = *nearest_paths(&wanted.join("."), parts.iter().map(String::as_str), 1).first()?;
    let all = before.iter().copied().chain([near]).chain(after.iter().copied());
    Some(all.collect::<Vec<_>>().join("."))
}
