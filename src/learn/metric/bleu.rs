//! BLEU of a corpus and of a sentence as sacreBLEU computes it, and of a sentence as "Dive into Deep
//! Learning" does.

use std::collections::BTreeMap;

/// The longest n-gram that BLEU compares.
pub const ORDER: usize = 4;

/// The n-grams of `n` words, each with the number of its occurrences.
fn runs<'w>(words: &'w [&'w str], n: usize) -> BTreeMap<&'w [&'w str], u64> {
    let mut counts = BTreeMap::new();
    for run in words.windows(n) {
        *counts.entry(run).or_default() += 1;
    }
    counts
}

/// BLEU of pairs of hypothesis and reference, 0 to 100: `min(1, exp(1 - r/c)) · (p1 p2 p3 p4)^(1/4)` over
/// the whole corpus (Papineni et al. 2002), cased, tokenized as mteval 13a does, where the k-th
/// precision without a match is `1 / (2^k · n-grams)` (`exp` smoothing). These are the defaults of
/// sacreBLEU's `corpus_bleu` (Post 2018).
pub fn corpus<W: AsRef<str>, R: AsRef<str>>(pairs: &[(W, R)]) -> f64 {
    Matches::of(pairs, &words).bleu(ORDER)
}

/// BLEU of a corpus whose words are separated by spaces, 0 to 100: sacreBLEU's `corpus_bleu` with
/// `tokenize="none"`.
pub fn corpus_of_words<W: AsRef<str>, R: AsRef<str>>(pairs: &[(W, R)]) -> f64 {
    Matches::of(pairs, &between_spaces).bleu(ORDER)
}

/// BLEU of one sentence, 0 to 100, as sacreBLEU's `sentence_bleu` computes it: n-grams longer than the
/// sentence do not count.
pub fn of_one(written: &str, right: &str) -> f64 {
    Matches::of(&[(written, right)], &words).bleu_of_one()
}

/// BLEU of one sentence whose words are separated by spaces, 0 to 100, otherwise as [`of_one`].
pub fn of_one_in_words(written: &str, right: &str) -> f64 {
    Matches::of(&[(written, right)], &between_spaces).bleu_of_one()
}

/// Whether any of the texts has as many tokens as the longest n-gram, tokenized as [`corpus`] does. Otherwise BLEU is 0,
/// even if all texts equal their references.
pub fn is_long_enough<W: AsRef<str>>(texts: &[W]) -> bool {
    texts.iter().any(|text| words(text.as_ref()).len() >= ORDER)
}

/// As [`is_long_enough`], with the words of [`corpus_of_words`].
pub fn is_long_enough_in_words<W: AsRef<str>>(texts: &[W]) -> bool {
    texts.iter().any(|text| between_spaces(text.as_ref()).len() >= ORDER)
}

/// The words of a line that is tokenized already.
fn between_spaces(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// For every length, the number of n-grams in the hypotheses, and how many of them match the references.
#[derive(Default)]
struct Matches {
    written: usize,
    right: usize,
    hits: [u64; ORDER],
    all: [u64; ORDER],
}

impl Matches {
    fn of<W: AsRef<str>, R: AsRef<str>>(pairs: &[(W, R)], words: &dyn Fn(&str) -> Vec<String>) -> Self {
        let mut found = Self::default();
        for (own, reference) in pairs {
            let (own, reference) = (words(own.as_ref()), words(reference.as_ref()));
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let reference: Vec<&str> = reference.iter().map(String::as_str).collect();
            found.written += own.len();
            found.right += reference.len();
            for (n, (hits, all)) in (1..).zip(found.hits.iter_mut().zip(&mut found.all)) {
                let known = runs(&reference, n);
                // A sentence shorter than `n` words has no n-grams; in a corpus others may have some.
                *all += own.len().saturating_sub(n - 1) as u64;
                *hits += runs(&own, n)
                    .into_iter()
                    .map(|(run, count)| count.min(known.get(run).copied().unwrap_or(0)))
                    .sum::<u64>();
            }
        }
        found
    }

    /// BLEU over n-grams no longer than the hypothesis.
    fn bleu_of_one(&self) -> f64 {
        // Called effective order by sacreBLEU, where it is the default for sentences and not for corpora.
        self.bleu(self.all.iter().take_while(|n| **n > 0).count())
    }

    /// BLEU over n-grams of up to `order` words.
    fn bleu(&self, order: usize) -> f64 {
        let (hits, all) = (self.hits.iter().take(order), self.all.iter().take(order));
        // sacreBLEU gives 0 here, where smoothing would give a small number.
        if order == 0 || self.hits.iter().all(|n| *n == 0) || all.clone().any(|n| *n == 0) {
            return 0.0;
        }
        let mut smooth = 1.0;
        let logs = hits.zip(all).map(|(hits, all)| match hits {
            0 => {
                // Doubled for every order without a match, so that longer n-grams that are missing cost more.
                smooth *= 2.0;
                (100.0 / (smooth * *all as f64)).ln()
            }
            hits => (100.0 * *hits as f64 / *all as f64).ln(),
        });
        let mean = logs.sum::<f64>() / order as f64;
        let (written, right) = (self.written as f64, self.right as f64);
        // Precision alone would reward leaving words out.
        let brevity = if written < right { (1.0 - right / written).exp() } else { 1.0 };
        // The logarithms round, so that equal texts could have a little more than 100.
        (brevity * mean.exp()).min(100.0)
    }
}

/// BLEU of a sentence whose words are separated by spaces, 0 to 1: `exp(min(0, 1 - r/c)) · Π p_n^(1/2^n)`
/// for `n` up to `k`.
pub fn sentence(written: &str, right: &str, k: usize) -> f64 {
    // At every space, as the book's `split(' ')` does: two in a row have an empty word between them.
    let own: Vec<&str> = written.split(' ').collect();
    let reference: Vec<&str> = right.split(' ').collect();
    let mut score = (1.0 - reference.len() as f64 / own.len() as f64).min(0.0).exp();
    for n in 1..=k.min(own.len()) {
        let known = runs(&reference, n);
        let hits: u64 = runs(&own, n)
            .into_iter()
            .map(|(run, count)| count.min(known.get(run).copied().unwrap_or(0)))
            .sum();
        let precision = hits as f64 / (own.len() - n + 1) as f64;
        // Longer n-grams are rarer matches, and with a smaller exponent a low precision costs less.
        score *= precision.powf(0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX)));
    }
    score
}

/// The words of a line as mteval 13a tokenizes it: most punctuation marks are words of their own, full stops
/// and commas only if they are not between digits, and a dash only after a digit.
pub fn words(line: &str) -> Vec<String> {
    // The replacements and their order are those of mteval's script.
    let line = line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    let line = line.replace("&quot;", "\"").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    let alone = |c: char| matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/');
    let mut spread = String::from(" ");
    for c in line.chars() {
        match alone(c) {
            true => spread.extend([' ', c, ' ']),
            false => spread.push(c),
        }
    }
    spread.push(' ');
    let is_point = |c: char| matches!(c, '.' | ',');
    let is_digit = |c: char| c.is_ascii_digit();
    let spread = apart(&spread, |a, b| !is_digit(a) && is_point(b), |a, b| [a, ' ', b, ' ']);
    let spread = apart(&spread, |a, b| is_point(a) && !is_digit(b), |a, b| [' ', a, ' ', b]);
    let spread = apart(&spread, |a, b| is_digit(a) && b == '-', |a, b| [a, ' ', b, ' ']);
    spread.split_whitespace().map(str::to_owned).collect()
}

/// Replaces pairs of neighbouring characters from left to right. The second character of a replaced pair
/// cannot be the first of the next one.
fn apart(text: &str, are: impl Fn(char, char) -> bool, by: impl Fn(char, char) -> [char; 4]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(a) = chars.next() {
        match chars.peek().copied().filter(|b| are(a, *b)) {
            Some(b) => {
                out.extend(by(a, b));
                chars.next();
            }
            None => out.push(a),
        }
    }
    out
}
