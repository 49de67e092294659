//! Sizes in the author's words.
//!
//! An [`Extent`] is a number and what that number is in the spec: a field such as `kv_rank`, or a sum of products of
//! fields such as `heads * head_dim`. The words follow a size through the graph, so that a report, a picture or
//! emitted code can name it without guessing from equal values.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Most products of a sum and most fields of a product that are remembered; beyond that a size is its number.
const PRODUCTS: usize = 2;
const FACTORS: usize = 3;

/// The fields that sizes come from, counts before what they count. A graph has many sizes, so each is kept as the
/// place of its field here.
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
    "patch_size",
    "positions",
    "registers",
    "classes",
    "project",
];

/// A field of the spec and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The field's name: `kv_rank`.
    pub name: &'static str,
    /// Its value here.
    pub n: u64,
}

/// A number times some fields.
type Product = (u64, Vec<Word>);

/// A size and what it is in the author's words. Sizes are equal when their numbers are.
#[derive(Clone, Copy)]
pub struct Extent {
    n: u64,
    /// For each product its number; 0 where there is no product.
    times: [u32; PRODUCTS],
    /// For each product the values of its fields.
    values: [[u32; FACTORS]; PRODUCTS],
    /// For each product the places of its fields in [`FIELDS`], counted from 1; 0 where there is no field.
    fields: [[u8; FACTORS]; PRODUCTS],
}

impl Extent {
    /// The value of a field of the spec, one of [`FIELDS`].
    pub fn new(name: &'static str, n: u64) -> Self {
        debug_assert!(FIELDS.contains(&name), "{name} is no field of a size");
        Self::of(n, &[(1, vec![Word { name, n }])])
    }

    /// A number that is this sum, if it can be remembered.
    fn of(n: u64, sum: &[Product]) -> Self {
        Self::remember(n, sum).unwrap_or(Self { n, times: [0; 2], values: [[0; 3]; 2], fields: [[0; 3]; 2] })
    }

    fn remember(n: u64, sum: &[Product]) -> Option<Self> {
        let mut all = Self { n, times: [0; 2], values: [[0; 3]; 2], fields: [[0; 3]; 2] };
        if sum.len() > PRODUCTS {
            return None;
        }
        for (i, (times, words)) in sum.iter().enumerate() {
            *all.times.get_mut(i)? = u32::try_from(*times).ok()?;
            for (j, word) in words.iter().enumerate() {
                let field = FIELDS.iter().position(|known| *known == word.name)?;
                *all.values.get_mut(i)?.get_mut(j)? = u32::try_from(word.n).ok()?;
                *all.fields.get_mut(i)?.get_mut(j)? = u8::try_from(field).ok()?.checked_add(1)?;
            }
        }
        Some(all)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.n
    }

    /// Whether it is more than a number.
    pub fn is_worded(&self) -> bool {
        self.fields.iter().flatten().any(|field| *field != 0)
    }

    /// The sum: each product's number and fields. A plain number is one product without fields.
    pub fn terms(&self) -> Vec<(u64, Vec<Word>)> {
        if !self.is_worded() {
            return vec![(self.n, Vec::new())];
        }
        let word = |(field, n): (&u8, &u32)| {
            let name = FIELDS.get(usize::from(field.checked_sub(1)?))?;
            Some(Word { name, n: u64::from(*n) })
        };
        let products = self.times.iter().zip(self.fields.iter().zip(&self.values));
        products
            .filter(|(times, _)| **times > 0)
            .map(|(times, (fields, values))| {
                (u64::from(*times), fields.iter().zip(values).filter_map(word).collect())
            })
            .collect()
    }

    /// `self / by` if that is a whole number.
    pub fn divide(self, by: Extent) -> Option<Extent> {
        let n = self.n.checked_div(by.n).filter(|n| n.checked_mul(by.n) == Some(self.n))?;
        let words = match by.terms().as_slice() {
            [factor] => {
                self.terms().iter().map(|product| without(product, factor)).collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        Some(words.map_or(Extent::from(n), |sum| Extent::of(n, &sum)))
    }
}

/// A product without the fields and the number of another, if it has them.
fn without((times, words): &Product, (by, fields): &Product) -> Option<Product> {
    let mut rest = words.clone();
    for field in fields {
        let at = rest.iter().position(|own| own == field)?;
        rest.remove(at);
    }
    let left = times.checked_div(*by).filter(|n| n.checked_mul(*by) == Some(*times))?;
    Some((left, rest))
}

/// Products as a sum, those of the same fields together.
fn sum(products: impl Iterator<Item = Product>) -> Option<Vec<Product>> {
    let mut kept: Vec<Product> = Vec::new();
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
        Self { n, times: [0; 2], values: [[0; 3]; 2], fields: [[0; 3]; 2] }
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
        let all = sum(self.terms().into_iter().chain(other.terms()));
        all.map_or(Extent::from(n), |all| Extent::of(n, &all))
    }
}

impl std::ops::Mul for Extent {
    type Output = Extent;

    /// Saturates, as sizes do everywhere.
    fn mul(self, other: Extent) -> Extent {
        let n = self.n.saturating_mul(other.n);
        let mut products = Vec::new();
        for (times, words) in self.terms() {
            for (more, others) in other.terms() {
                let mut all: Vec<Word> = words.iter().chain(&others).copied().collect();
                all.sort_by_key(|word| FIELDS.iter().position(|known| *known == word.name));
                products.push((times.saturating_mul(more), all));
            }
        }
        sum(products.into_iter()).map_or(Extent::from(n), |all| Extent::of(n, &all))
    }
}

impl PartialEq for Extent {
    fn eq(&self, other: &Self) -> bool {
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
        fmt::Debug::fmt(&self.n, f)
    }
}
