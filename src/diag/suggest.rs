//! From an unknown word to the word that was probably meant.
//!
//! It tries, in this order: the same letters in another case, a foreign spelling ([`super::foreign`]), the same
//! letters with other `_`, a word that differs by a typing error (`slip`), a foreign spelling with a typing
//! error. If nothing is similar enough, nothing is suggested. Every "did you mean" of trafoc comes from here,
//! including those for tensor names and the command line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::foreign::{meanings, rows};
use super::ideas::idea;

/// The cost of a wrong letter. Frequent typing errors cost less.
pub(super) const LETTER: usize = 10;
/// The cost of two exchanged letters, of a letter that is typed twice, or once instead of twice, and of a plural.
const COMMON_SLIP: usize = 7;
/// The cost of a letter that is next to the right one on the keyboard.
const NEXT_KEY: usize = 8;
/// The cost of a wrong digit, which is rarely a typing error: `gpt3` does not mean `gpt1`.
const DIGIT: usize = 14;
/// The additional cost of a wrong first letter, which is rare.
const FIRST_LETTER: usize = 2;
/// The cost of a candidate that continues after the whole word, such as `gpt2-small` after `gpt2`.
const NEXT_WORD: usize = LETTER + 1;

/// The rows of a keyboard; the key below a letter is one to the left or right of it.
const KEYBOARD: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

/// The row and the column of each letter on a keyboard, in half keys. Made once: suggestions ask for the same
/// letters millions of times.
static PLACES: LazyLock<[Option<(usize, usize)>; 128]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let letter = char::from(u8::try_from(code).ok()?);
        let (row, column) =
            KEYBOARD.iter().enumerate().find_map(|(row, keys)| Some((row, keys.find(letter)?)))?;
        // Each row begins half a key further right than the one above.
        Some((row.saturating_mul(2), column.saturating_mul(2).saturating_add(row)))
    })
});

/// Whether two letters are next to each other on a keyboard.
pub fn are_neighbours(a: char, b: char) -> bool {
    let place = |c: char| PLACES.get(usize::try_from(u32::from(c)).ok()?).copied().flatten();
    match (place(a), place(b)) {
        (Some((row, column)), Some((other_row, other_column))) => {
            a != b && row.abs_diff(other_row) <= 2 && column.abs_diff(other_column) <= 2
        }
        (_, _) => false,
    }
}

/// Which letters and digits of ASCII a word has, one bit for each.
fn set(word: &[char]) -> u128 {
    let bit = |c: &char| if c.is_ascii_alphanumeric() { 1u128.checked_shl(u32::from(*c)) } else { None };
    word.iter().filter_map(bit).fold(0, |set, bit| set | bit)
}

/// The distance of a typed word from the word that was meant: the smallest total cost of missing, added,
/// wrong and exchanged letters (the Damerau distance in which no letter is part of two errors); `None` if it is
/// more than `limit`.
pub(super) fn slip(typed: &[char], meant: &[char], limit: usize) -> Option<usize> {
    // Every letter that only one of them has is a slip, and a wrong letter is at most one of each. Most words are dismissed
    // by this, without a table.
    let (have, want) = (set(typed), set(meant));
    let least = (have & !want).count_ones().max((want & !have).count_ones());
    if usize::try_from(least).map_or(true, |least| least.saturating_mul(COMMON_SLIP) > limit) {
        return None;
    }
    let exchange = |a: char, b: char| match a {
        _ if a == b => 0,
        // Before keys that are next to each other: digits are, but they are rarely mistaken.
        _ if a.is_ascii_digit() || b.is_ascii_digit() => DIGIT,
        _ if are_neighbours(a, b) => NEXT_KEY,
        _ => LETTER,
    };
    // A letter next to an equal one: the key was pressed once too often or once too rarely.
    let lone = |word: &[char], at: usize| {
        let letter = word.get(at);
        let before = at.checked_sub(1).and_then(|i| word.get(i));
        let twin = before == letter || word.get(at.saturating_add(1)) == letter;
        match letter {
            Some(_) if twin => COMMON_SLIP,
            Some(c) if c.is_ascii_digit() => DIGIT,
            Some(_) | None => LETTER,
        }
    };
    // Three rows of the table are enough: `before[j]` is the row two letters ago.
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = vec![0];
    for j in 0..meant.len() {
        row.push(row.last().copied().unwrap_or(0).saturating_add(lone(meant, j)));
    }
    for (i, a) in typed.iter().enumerate() {
        let mut next = vec![row.first().copied().unwrap_or(0).saturating_add(lone(typed, i))];
        for (j, b) in meant.iter().enumerate() {
            // An entry outside of the table must never be the smallest.
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut cost = at(&row, j)
                .saturating_add(exchange(*a, *b))
                .min(at(&row, j.saturating_add(1)).saturating_add(lone(typed, i)))
                .min(at(&next, j).saturating_add(lone(meant, j)));
            // Two equal letters next to each other cannot be exchanged.
            let ends = i.checked_sub(1).and_then(|i| typed.get(i)).zip(j.checked_sub(1));
            if let Some((last, k)) = ends.filter(|(last, k)| *last == b && meant.get(*k) == Some(a))
                && last != a
            {
                cost = cost.min(at(&before, k).saturating_add(COMMON_SLIP));
            }
            next.push(cost);
        }
        // Costs only grow, from one row or over one row, so most words are dismissed by their first letters.
        if next.iter().chain(&row).all(|cost| *cost > limit) {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|cost| *cost <= limit)
}

/// A word as it is compared: `Pre-Norm` is `pre_norm`.
pub(super) fn plain(word: &str) -> String {
    bare(word).to_lowercase().replace('-', "_")
}

/// A word without the modules of PyTorch before it: `GELU` for `torch.nn.GELU`.
fn bare(word: &str) -> &str {
    const MODULES: [&str; 4] = ["torch.", "nn.", "functional.", "F."];
    MODULES.iter().fold(word, |word, module| word.strip_prefix(module).unwrap_or(word))
}

/// Whether one word becomes the other if a single letter moves, or if two letters change places: `adwam` for `adamw`,
/// `bates` for `betas`.
fn is_disordered(typed: &[char], meant: &[char]) -> bool {
    let differ: Vec<usize> = (0..typed.len()).filter(|i| typed.get(*i) != meant.get(*i)).collect();
    let (Some(first), Some(last)) = (differ.first(), differ.last()) else { return false };
    let (Some(typed), Some(meant)) = (typed.get(*first..=*last), meant.get(*first..=*last)) else {
        return false;
    };
    // A letter that moves shifts all those between its two places.
    let moves = |from: &[char], to: &[char]| match (from.split_first(), to.split_last()) {
        (Some((a, rest)), Some((b, others))) => a == b && rest == others,
        (_, _) => false,
    };
    let ends = |word: &[char]| word.first().copied().zip(word.last().copied());
    let is_exchanged = differ.len() == 2 && ends(typed) == ends(meant).map(|(a, b)| (b, a));
    moves(typed, meant) || moves(meant, typed) || is_exchanged
}

/// The longest word in bytes that is compared with others: that of a long path in a file of weights.
const LONGEST: usize = 512;

/// The distance of a candidate from a word, if it is near enough to be suggested. The second number decides
/// between candidates at the same distance: more equal letters at the beginning and the end are better.
pub(super) fn distance(wanted: &str, candidate: &str) -> Option<(usize, usize)> {
    // Not a word that anybody mistypes, and a comparison takes the product of the lengths.
    if wanted.len().max(candidate.len()) > LONGEST {
        return None;
    }
    let near = plain(candidate);
    let (typed, meant): (Vec<char>, Vec<char>) = (wanted.chars().collect(), near.chars().collect());
    let alike = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let begin = alike(&mut typed.iter().copied(), &mut meant.iter().copied());
    let end = alike(&mut typed.iter().rev().copied(), &mut meant.iter().rev().copied());
    // Smaller is better, so the letters that are alike are subtracted.
    let rank = |cost: usize| Some((cost, usize::MAX.saturating_sub(begin).saturating_sub(end)));
    let sorted = |word: &str| {
        let mut parts: Vec<String> = word.split('_').map(str::to_owned).collect();
        parts.sort();
        parts
    };
    // The words of a name in another order: `norm_final` for `final_norm`.
    if wanted.contains('_') && sorted(wanted) == sorted(&near) {
        return rank(NEXT_WORD);
    }
    // One wrong letter in three; a word of one letter would be near every word.
    let limit = LETTER.saturating_mul((typed.len() / 3).max(1));
    let first = if typed.first() == meant.first() { 0 } else { FIRST_LETTER };
    // Each missing or additional letter has a cost, so words of very different lengths need not be compared
    // letter by letter.
    let least = typed.len().abs_diff(meant.len()).saturating_mul(COMMON_SLIP);
    let may_be_near = typed.len() > 1 && least <= limit;
    // The same letters, of which one came too early or too late, or two in each other's place.
    if typed.len() > 3 && typed.len() == meant.len() && is_disordered(&typed, &meant) {
        return rank(COMMON_SLIP.saturating_add(first));
    }
    if typed.len() > 2 && are_numbers_of_one(wanted, &near) {
        return rank(COMMON_SLIP);
    }
    if let Some(cost) = may_be_near.then(|| slip(&typed, &meant, limit)).flatten() {
        return rank(cost.saturating_add(first));
    }
    // The beginning of several words with a slip in it: `lama3` for `llama3-8b`.
    let part = near.char_indices().filter(|(_, c)| !c.is_alphanumeric()).filter_map(|(at, _)| near.get(..at));
    // Shorter beginnings are near to too many words.
    let slips = part.filter(|part| typed.len() >= 4 && part.len() >= 4).filter_map(|part| {
        let part: Vec<char> = part.chars().collect();
        let may_be_near = typed.len().abs_diff(part.len()).saturating_mul(COMMON_SLIP) <= limit;
        // A beginning without a slip is handled below.
        may_be_near.then(|| slip(&typed, &part, limit)).flatten().filter(|cost| *cost > 0)
    });
    if let Some(cost) = slips.min() {
        return rank(cost.saturating_add(first).saturating_add(NEXT_WORD));
    }
    // A word that ends too early or too late is more likely than as many wrong letters.
    let continues = typed.len() >= 3 && near.starts_with(wanted);
    let next_word = continues && meant.get(typed.len()).is_some_and(|c| !c.is_alphanumeric());
    let is_cut = continues || meant.len() >= 3 && wanted.starts_with(&near);
    match (next_word, is_cut) {
        (true, _) => rank(NEXT_WORD),
        (false, true) => rank(limit.saturating_add(LETTER)),
        (false, false) => None,
    }
}

/// How much two words differ in their letters, of which the second was probably meant by the first: 0 for words that are
/// equal, and for those that are alike in nothing but their meaning.
pub fn difference(word: &str, meant: &str) -> usize {
    if word == meant { 0 } else { distance(&plain(word), meant).map_or(0, |(cost, _)| cost) }
}

/// Whether a word is near enough to another one to suggest it, whatever other words exist.
pub fn is_near(word: &str, meant: &str) -> bool {
    word != meant && distance(&plain(word), meant).is_some()
}

/// The most that the letters of a word may cost if it is replaced without asking: two wrong ones.
const SURE: usize = 2 * LETTER;

/// Words that are never put in the place of another one without asking: with them, a position sees those after it.
const UNSURE: &[&str] = &["bidirectional"];

/// Whether a suggestion can be carried out without asking: the word is another spelling or another library's word for it, or
/// differs in at most two letters.
pub fn is_sure(word: &str, meant: &str) -> bool {
    let (typed, near): (Vec<char>, Vec<char>) =
        (plain(word).chars().collect(), plain(meant).chars().collect());
    if UNSURE.contains(&meant) && slip(&typed, &near, SURE).is_none() {
        return false;
    }
    let tail = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let is_theirs = |theirs: &str| {
        let theirs: Vec<char> = theirs.chars().take(LONGEST).collect();
        slip(&typed, &theirs, LETTER).is_some()
    };
    let is_known = || {
        meanings(bare(word)).any(|ours| tail(ours) == tail(meant))
            || rows().any(|(theirs, ours)| tail(ours) == tail(meant) && is_theirs(theirs))
    };
    // The same words in another order, with or without `_`.
    let letters = |word: &[char]| {
        let mut letters: Vec<char> = word.iter().copied().filter(|c| c.is_alphanumeric()).collect();
        letters.sort_unstable();
        letters
    };
    let is_cut = near.starts_with(&typed) || typed.starts_with(&near);
    is_cut || letters(&typed) == letters(&near) || slip(&typed, &near, SURE).is_some() || is_known()
}

/// The candidate that was probably meant by `word`, if one is near enough.
pub fn suggest<S: AsRef<str>>(word: &str, candidates: &[S]) -> Option<String> {
    let wanted = plain(word);
    // A word is no suggestion for itself.
    let all = || candidates.iter().map(AsRef::as_ref).filter(|c| *c != word);
    // A known idea that trafoc does not have is no slip of the fingers: `dora` does not mean `lora`. But `zero` means
    // `zeros`.
    let near = || match idea(bare(word)) {
        Some(_) => all().find(|c| are_numbers_of_one(&plain(c), &wanted)).map(str::to_owned),
        None => similar(&wanted, all(), |ours| among(ours, word, candidates)).map(str::to_owned),
    };
    another_name(word, candidates).or_else(near)
}

/// The candidate of which `word` is another name, whatever it is spelt like: the same letters in another case or with other
/// `_`, or the word of another library.
pub fn another_name<S: AsRef<str>>(word: &str, candidates: &[S]) -> Option<String> {
    let wanted = plain(word);
    let all = || candidates.iter().map(AsRef::as_ref).filter(|c| *c != word);
    let joined = |s: &str| s.replace('_', "");
    let same = all().find(|c| plain(c) == wanted);
    same.or_else(|| meanings(bare(word)).find_map(|ours| among(ours, word, candidates)))
        // `dmodel` for `d_model`.
        .or_else(|| all().find(|c| joined(&plain(c)) == joined(&wanted)))
        .map(str::to_owned)
}

/// The candidate that is a word of trafoc, which may be a path, unless it is the word that was written.
fn among<'c, S: AsRef<str>>(ours: &str, written: &str, candidates: &'c [S]) -> Option<&'c str> {
    let tail = ours.rsplit('.').next().unwrap_or(ours);
    candidates.iter().map(AsRef::as_ref).find(|c| (*c == ours || *c == tail) && *c != written)
}

/// Whether one word is the plural of the other.
pub fn are_numbers_of_one(word: &str, other: &str) -> bool {
    word.strip_suffix('s') == Some(other) || other.strip_suffix('s') == Some(word)
}

/// The candidate that is spelt like a word, or else the one that another library calls by a word spelt like it:
/// `hiden_size`.
fn similar<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
    among: impl Fn(&'static str) -> Option<&'a str>,
) -> Option<&'a str> {
    nearest(wanted, candidates).or_else(|| {
        let slips = theirs_like(wanted).into_iter().filter_map(|(cost, ours)| Some((cost, among(ours)?)));
        slips.min_by_key(|(cost, _)| *cost).map(|(_, meant)| meant)
    })
}

/// The words that are kept with what is spelt like them. A document has fewer that are unknown, or is no spec.
const MOST_KEPT: usize = 1_000;

/// Words of trafoc, each at a cost: what other libraries call so that it is spelt like a word.
type Theirs = Vec<(usize, &'static str)>;

thread_local! {
    /// What is spelt like a word, which is looked up again for every change of a document that is tried.
    static KEPT: RefCell<BTreeMap<String, Theirs>> = RefCell::default();
}

/// The words of trafoc for the words of other libraries that are spelt like a word, in the order of their table.
fn theirs_like(wanted: &str) -> Theirs {
    if let Some(known) = KEPT.with_borrow(|kept| kept.get(wanted).cloned()) {
        return known;
    }
    // They are many, so that one that only begins alike, as `compile` and `compute_metrics` do, means nothing.
    let typed: Vec<char> = wanted.chars().take(LONGEST).collect();
    let limit = LETTER.saturating_mul((typed.len() / 6).max(1));
    let may_be_near = |theirs: &str| theirs.len().abs_diff(typed.len()).saturating_mul(COMMON_SLIP) <= limit;
    let cost = |theirs: &str| {
        let theirs: Vec<char> = Some(theirs).filter(|theirs| may_be_near(theirs))?.chars().collect();
        slip(&typed, &theirs, limit)
    };
    // Short words, such as `ner`, are near to too many others; of one of four letters, such as `rope`, only two that are
    // exchanged, or one that is typed twice, are a slip.
    let most = |theirs: &str| match theirs.len() {
        0..4 => None,
        4 => Some(COMMON_SLIP),
        _ => Some(limit),
    };
    let is_slip = |theirs: &str, cost: &usize| most(theirs).is_some_and(|most| *cost <= most);
    let near = rows().filter_map(|(theirs, ours)| {
        let cost = cost(theirs).filter(|cost| is_slip(theirs, cost))?;
        Some((cost, ours))
    });
    let found: Theirs = near.collect();
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(wanted.to_owned(), found.clone());
    });
    found
}

/// The most candidates that are suggested if several are equally near.
const SEVERAL: usize = 4;

/// The candidates that were probably meant by `word`, which are equally near: `bert-base` and
/// `bert-qa` for `bert`. The first is that of [`suggest`].
pub fn suggest_several<S: AsRef<str>>(word: &str, candidates: &[S]) -> Vec<String> {
    let Some(best) = suggest(word, candidates) else { return Vec::new() };
    let wanted = plain(word);
    let cost = |candidate: &str| distance(&wanted, candidate).map(|(cost, _)| cost);
    // A word of another library has no distance from ours, so nothing is as near.
    let all = candidates.iter().map(AsRef::as_ref).filter(|c| *c != best && cost(&best).is_some());
    let alike = all.filter(|c| cost(c) == cost(&best)).map(str::to_owned);
    let alike: Vec<String> = alike.take(SEVERAL - 1).collect();
    std::iter::once(best).chain(alike).collect()
}

/// How much further than the best candidate another one may be and still be meant: half a letter.
const HARDLY_FURTHER: usize = LETTER / 2;

/// The candidates that may be meant by `word`, the best first: those that are hardly further from it. `ecoder` is
/// nearer to `encoder` than to `decoder`, but by too little to tell.
pub fn likely<S: AsRef<str>>(word: &str, candidates: &[S]) -> Vec<String> {
    let Some(best) = suggest(word, candidates) else { return Vec::new() };
    let wanted = plain(word);
    let cost = |candidate: &str| distance(&wanted, candidate).map(|(cost, _)| cost);
    let Some(limit) = cost(&best).map(|cost| cost.saturating_add(HARDLY_FURTHER)) else { return vec![best] };
    let others = candidates.iter().map(AsRef::as_ref).filter(|c| *c != best && *c != word);
    let mut near: Vec<(usize, &str)> = others.filter_map(|c| Some((cost(c)?, c))).collect();
    near.retain(|(cost, _)| *cost <= limit);
    near.sort();
    let others = near.into_iter().map(|(_, c)| c.to_owned()).take(SEVERAL - 1);
    std::iter::once(best.clone()).chain(others).collect()
}

/// A question for one of some names, `did you mean `a` or `b`?`, each with a sign before it.
pub fn did_you_mean(sign: &str, names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{sign}{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("did you mean {} or {last}?", rest.join(", ")),
        _ => format!("did you mean {}?", quoted.concat()),
    }
}

/// The candidate at the smallest distance; the first of several.
fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.filter_map(|c| distance(wanted, c).map(|score| (score, c)));
    scored.min_by_key(|(score, _)| *score).map(|(_, c)| c)
}
