//! Compares answers as SQuAD does (Rajpurkar et al. 2016): case, punctuation and articles do not count.

use std::collections::BTreeMap;

/// The text in lower case, without ASCII punctuation and without `a`, `an` and `the`, with one space
/// between words.
pub fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let bare: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut out = String::new();
    let mut word = String::new();
    // An article becomes a space, as in SQuAD's own script.
    let close = |word: &mut String, out: &mut String| {
        match matches!(word.as_str(), "a" | "an" | "the") {
            true => out.push(' '),
            false => out.push_str(word),
        }
        word.clear();
    };
    for c in bare.chars() {
        if c.is_alphanumeric() {
            word.push(c);
        } else {
            close(&mut word, &mut out);
            out.push(c);
        }
    }
    close(&mut word, &mut out);
    out.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Whether an answer equals one of the reference answers.
pub fn exact_match<S: AsRef<str>>(given: &str, right: &[S]) -> bool {
    let given = plain(given);
    right.iter().any(|r| plain(r.as_ref()) == given)
}

/// The F1 of an answer's words against the closest reference answer: `2 P R / (P + R)`.
pub fn f1<S: AsRef<str>>(given: &str, right: &[S]) -> f64 {
    // The best of all, because annotators give different spans and each of them is right.
    right.iter().map(|r| overlap(given, r.as_ref())).fold(0.0, f64::max)
}

/// The F1 of the words of two answers, each of which counts as often as it occurs.
fn overlap(given: &str, right: &str) -> f64 {
    let (given, right) = (plain(given), plain(right));
    let mut left: BTreeMap<&str, u64> = BTreeMap::new();
    for word in right.split_whitespace() {
        *left.entry(word).or_default() += 1;
    }
    let mut same = 0u64;
    for word in given.split_whitespace() {
        if let Some(count) = left.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            same += 1;
        }
    }
    // `P = same / given` and `R = same / right`, so their harmonic mean is `2 same / (given + right)`.
    let all = given.split_whitespace().count() + right.split_whitespace().count();
    2.0 * same as f64 / all.max(1) as f64
}
