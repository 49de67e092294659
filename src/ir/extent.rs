//! Sizes in the author's words.
//!
//! An [`Extent`] is a number together with what it is in the spec: a field such as `kv_rank`, a sum of
//! products of fields such as `heads * head_dim`, or a quotient of products such as `heads / kv_heads`. The
//! words follow a size through the graph, so that a report, a picture or emitted code can name it without
//! guessing from equal values.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The largest number of products in an extent, and of fields in a product. A size with more of them is only
/// its number, since a graph has many sizes and each must be small in memory.
const PRODUCTS: usize = 2;
const FACTORS: usize = 3;

/// The fields that sizes come from, in the order in which a product lists them: a count comes before the size
/// of what it counts, as in `heads * head_dim`. An extent stores only the index of a field in this list.
pub const FIELDS: &[&str] = &[
    "heads",
    "kv_heads",
    "experts",
    "vocab",
    "source_vocab",
    "context",
    "d_model",
    "head_dim",
    "value_dim",
    "query_rank",
    "kv_rank",
    "content_dim",
    "rotary_dim",
    "hidden",
    "top_k",
    "groups",
    "groups_kept",
    "score_of",
    "buckets",
    "embed_dim",
    "segments",
    "languages",
    "channels",
    "image_size",
    "patch_size",
    "patches",
    "registers",
    "classes",
    "project",
];

/// How sizes follow from others where [`Extent::by_rule`] says that they do: the field, the factors of the
/// product that it is, and the factors of the divisor.
pub const RULES: &[(&str, &[&str], &[&str])] = &[
    ("head_dim", &["d_model"], &["heads"]),
    ("patches", &["image_size", "image_size"], &["patch_size", "patch_size"]),
];

/// A field of the spec and its value.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The field's name: `kv_rank`.
    pub name: &'static str,
    /// The value that the field has in this spec.
    pub n: u64,
    /// Whether it follows from other fields by one of the [`RULES`], since the author did not give it.
    pub is_by_rule: bool,
}

/// Compares the fields and their values.
impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        // Whether the author gave a field does not make it another one: a product with it cancels in both
        // cases.
        (self.name, self.n) == (other.name, other.n)
    }
}

impl Eq for Word {}

/// A number times some fields.
type Product = (u64, Vec<Word>);

/// A size and what it is in the author's words. Sizes are equal when their numbers are.
#[derive(Clone, Copy)]
pub struct Extent {
    n: u64,
    /// The number by which each product of fields is multiplied; 0 if there is no such product.
    times: [u32; PRODUCTS],
    /// The values of the fields of each product.
    values: [[u32; FACTORS]; PRODUCTS],
    /// The positions of the fields of each product in [`FIELDS`], counted from 1, plus [`BY_RULE`] if the
    /// value follows from other fields; 0 if there is no field.
    fields: [[u8; FACTORS]; PRODUCTS],
    /// Whether the first product is divided by the second, instead of added to it.
    is_quotient: bool,
}

/// The bit of a stored field that says that its value follows from other fields.
const BY_RULE: u8 = 1 << 7;

/// Writes fields into the arrays of a product; `None` if there are too many or a number is too large.
fn remember(words: &[Word], values: &mut [u32], fields: &mut [u8]) -> Option<()> {
    if words.len() > fields.len() {
        return None;
    }
    for (word, (value, field)) in words.iter().zip(values.iter_mut().zip(fields)) {
        let at = FIELDS.iter().position(|known| *known == word.name)?;
        // A size beyond 2^32 has only its number, because an extent must stay small.
        *value = u32::try_from(word.n).ok()?;
        // There are far fewer than 128 fields, so the highest bit is free for the mark.
        *field = u8::try_from(at).ok()?.checked_add(1)? | if word.is_by_rule { BY_RULE } else { 0 };
    }
    Some(())
}

/// Reads the fields that [`remember`] wrote.
fn recall(values: &[u32], fields: &[u8]) -> Vec<Word> {
    let word = |(field, n): (&u8, &u32)| {
        let name = FIELDS.get(usize::from((field & !BY_RULE).checked_sub(1)?))?;
        Some(Word { name, n: u64::from(*n), is_by_rule: field & BY_RULE != 0 })
    };
    fields.iter().zip(values).filter_map(word).collect()
}

impl Extent {
    /// The value of a field of the spec, one of [`FIELDS`].
    pub fn new(name: &'static str, n: u64) -> Self {
        Self::word(Word { name, n, is_by_rule: false })
    }

    /// The value of a field of the spec that follows from other fields by one of the [`RULES`], since the
    /// author did not give it.
    pub fn by_rule(name: &'static str, n: u64) -> Self {
        debug_assert!(RULES.iter().any(|(known, ..)| *known == name), "no rule for {name}");
        Self::word(Word { name, n, is_by_rule: true })
    }

    fn word(word: Word) -> Self {
        debug_assert!(FIELDS.contains(&word.name), "{} is no field of a size", word.name);
        Self::of(word.n, vec![(1, vec![word])], (1, Vec::new()))
    }

    /// The number `n`, which is `sum / by`, with these words if they are few enough and without them
    /// otherwise.
    fn of(n: u64, mut sum: Vec<Product>, mut by: Product) -> Self {
        shorten(&mut sum, &mut by);
        Self::remembered(n, &sum, &by).unwrap_or(Self::from(n))
    }

    fn remembered(n: u64, sum: &[Product], by: &Product) -> Option<Self> {
        let mut all = Self { is_quotient: *by != (1, Vec::new()), ..Self::from(n) };
        // The divisor takes the place of the second product.
        if sum.len() > 1 && all.is_quotient {
            return None;
        }
        let divisor = all.is_quotient.then_some(by);
        for (i, (times, words)) in sum.iter().chain(divisor).enumerate() {
            *all.times.get_mut(i)? = u32::try_from(*times).ok()?;
            remember(words, all.values.get_mut(i)?, all.fields.get_mut(i)?)?;
        }
        Some(all)
    }

    /// The number without its words.
    pub fn get(self) -> u64 {
        self.n
    }

    /// Whether it has words: whether it names a field.
    pub fn is_worded(&self) -> bool {
        self.fields.iter().flatten().any(|field| *field != 0)
    }

    /// The products whose sum it is (before the division by [`divisor`](Self::divisor)), each as a number and
    /// fields. A plain number is one product without fields.
    pub fn terms(&self) -> Vec<(u64, Vec<Word>)> {
        if !self.is_worded() {
            return vec![(self.n, Vec::new())];
        }
        self.products().take(if self.is_quotient { 1 } else { PRODUCTS }).collect()
    }

    fn products(&self) -> impl Iterator<Item = Product> {
        let products = self.times.iter().zip(self.fields.iter().zip(&self.values));
        products
            .filter(|(times, _)| **times > 0)
            .map(|(times, (fields, values))| (u64::from(*times), recall(values, fields)))
    }

    /// The product by which the sum of its [`terms`](Self::terms) is divided; 1 and no field if it is not
    /// divided.
    pub fn divisor(&self) -> (u64, Vec<Word>) {
        let divisor = self.products().nth(1).filter(|_| self.is_quotient);
        divisor.unwrap_or((1, Vec::new()))
    }

    /// All fields that occur in it.
    pub fn words(&self) -> Vec<Word> {
        let terms = self.terms().into_iter().flat_map(|(_, words)| words);
        terms.chain(self.divisor().1).collect()
    }

    /// `self / by` if that is a whole number.
    pub fn divide(self, by: Extent) -> Option<Extent> {
        let n = self.n.checked_div(by.n).filter(|n| n.checked_mul(by.n) == Some(self.n))?;
        let terms = by.terms();
        // A divisor is a single product, so a quotient by a sum is only a number.
        let [(times, words)] = terms.as_slice() else { return Some(Extent::from(n)) };
        if !self.is_worded() {
            return Some(Extent::from(n));
        }
        // To divide by a quotient, multiply by its divisor.
        let sum = self.terms().iter().map(|term| multiplied(term, &by.divisor())).collect();
        Some(Extent::of(n, sum, multiplied(&self.divisor(), &(*times, words.clone()))))
    }
}

/// Multiplies two products; the fields are in the order of [`FIELDS`].
fn multiplied((times, words): &Product, (more, others): &Product) -> Product {
    let mut all: Vec<Word> = words.iter().chain(others).copied().collect();
    all.sort_by_key(|word| FIELDS.iter().position(|known| *known == word.name));
    (times.saturating_mul(*more), all)
}

/// Reduces the fraction `sum / by`: cancels fields and factors that all products of the sum share with the
/// divisor.
fn shorten(sum: &mut [Product], by: &mut Product) {
    let mut kept = Vec::new();
    for word in std::mem::take(&mut by.1) {
        // A sum without products is 0, of which nothing can be cancelled.
        if sum.is_empty() || !sum.iter().all(|(_, words)| words.contains(&word)) {
            kept.push(word);
            continue;
        }
        for (_, words) in sum.iter_mut() {
            // One occurrence for each word of the divisor.
            words.iter().position(|own| *own == word).map(|at| words.remove(at));
        }
    }
    by.1 = kept;
    let shared = sum.iter().fold(by.0, |divisor, (times, _)| common(divisor, *times));
    // No size is divided by 0, so `shared` is at least 1.
    let divided = |n: u64| n.checked_div(shared).unwrap_or(n);
    by.0 = divided(by.0);
    sum.iter_mut().for_each(|(times, _)| *times = divided(*times));
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    match a.checked_rem(b) {
        // Euclid's algorithm, whose depth stays below 100 for 64 bits.
        Some(rest) => common(b, rest),
        None => a,
    }
}

/// Adds products, combining those of the same fields; `None` if a number overflows.
fn sum(products: impl Iterator<Item = Product>) -> Option<Vec<Product>> {
    let mut kept: Vec<Product> = Vec::new();
    // A stored number of 0 says that there is no product.
    for (times, words) in products.filter(|(times, _)| *times > 0) {
        match kept.iter_mut().find(|(_, own)| *own == words) {
            Some((own, _)) => *own = own.checked_add(times)?,
            None => kept.push((times, words)),
        }
    }
    Some(kept)
}

impl From<u64> for Extent {
    fn from(n: u64) -> Self {
        Self {
            n,
            times: [0; PRODUCTS],
            values: [[0; FACTORS]; PRODUCTS],
            fields: [[0; FACTORS]; PRODUCTS],
            is_quotient: false,
        }
    }
}

impl From<Extent> for u64 {
    fn from(size: Extent) -> Self {
        size.n
    }
}

impl From<Extent> for u128 {
    fn from(size: Extent) -> Self {
        u128::from(size.n)
    }
}

impl std::ops::Add for Extent {
    type Output = Extent;

    /// Saturates, as sizes do everywhere.
    fn add(self, other: Extent) -> Extent {
        let n = self.n.saturating_add(other.n);
        let by = self.divisor();
        // A sum of quotients has words only if they have the same divisor.
        let all = sum(self.terms().into_iter().chain(other.terms())).filter(|_| by == other.divisor());
        all.map_or(Extent::from(n), |all| Extent::of(n, all, by))
    }
}

impl std::ops::Mul for Extent {
    type Output = Extent;

    /// Saturates, as sizes do everywhere.
    fn mul(self, other: Extent) -> Extent {
        let n = self.n.saturating_mul(other.n);
        let others = other.terms();
        let terms = self.terms();
        let products = terms.iter().flat_map(|term| others.iter().map(|other| multiplied(term, other)));
        let by = multiplied(&self.divisor(), &other.divisor());
        sum(products).map_or(Extent::from(n), |all| Extent::of(n, all, by))
    }
}

impl PartialEq for Extent {
    fn eq(&self, other: &Self) -> bool {
        // Words take no part: a tensor of `hidden` features fits a layer with `d_model` inputs if the numbers
        // agree, and modules that differ in words alone are one module.
        self.n == other.n
    }
}

impl Eq for Extent {}

impl PartialEq<u64> for Extent {
    fn eq(&self, other: &u64) -> bool {
        self.n == *other
    }
}

impl PartialOrd for Extent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Extent {
    fn cmp(&self, other: &Self) -> Ordering {
        self.n.cmp(&other.n)
    }
}

impl Hash for Extent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As in `eq`, words take no part.
        self.n.hash(state);
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.n.fmt(f)
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As `Display`: printed ops show numbers.
        fmt::Debug::fmt(&self.n, f)
    }
}
