//! Symbolic sizes: exact polynomials in the lengths a model is called with.
//!
//! A [`Dim`] is a sum of products such as `B*T` or `P + T`, with `u128` coefficients. Shapes and costs are
//! both polynomials, so a cost is known as a formula in `B` and `T` before any lengths are given.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Extent;

/// A length that is known only when the model is called. The variants are in the order of their letters, in
/// which products list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sym {
    /// `B`: the number of sequences in the batch.
    Batch,
    /// `N`: the number of rows for an expert, known only when tokens are routed.
    Rows,
    /// `P`: the number of tokens in the key/value cache; 0 outside of cached decoding.
    Past,
    /// `S`: the number of tokens of the source in an encoder-decoder.
    Source,
    /// `T`: the number of tokens of the sequence that is computed.
    Time,
}

impl Sym {
    /// The letter used in shapes and formulas.
    pub fn letter(self) -> char {
        match self {
            Sym::Batch => 'B',
            Sym::Rows => 'N',
            Sym::Past => 'P',
            Sym::Source => 'S',
            Sym::Time => 'T',
        }
    }
}

/// A value for every [`Sym`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lengths {
    /// `B`: the batch size.
    pub batch: u64,
    /// `T`: the length of the sequence.
    pub time: u64,
    /// `S`: the length of the source.
    pub source: u64,
    /// `P`: the number of cached positions.
    pub past: u64,
    /// `N`: the number of rows for an expert.
    pub rows: u64,
}

impl Lengths {
    /// The value of one symbol.
    pub fn of(&self, sym: Sym) -> u64 {
        match sym {
            Sym::Batch => self.batch,
            Sym::Rows => self.rows,
            Sym::Past => self.past,
            Sym::Source => self.source,
            Sym::Time => self.time,
        }
    }
}

/// A polynomial in [`Sym`]s with `u128` coefficients. Arithmetic saturates at `u128::MAX`: sizes in a
/// spec are bounded so that real models stay far below.
///
/// A constant that comes from an [`Extent`] keeps the author's words, which do not take part in equality.
#[derive(Clone, Debug, Default)]
pub struct Dim {
    /// The coefficient of each product of symbols; the empty product is the constant. Each product occurs
    /// once, and the list is sorted by product.
    terms: Terms,
    /// The constant in the author's words, where it has any.
    words: Option<Arc<Extent>>,
}

/// A product of symbols: how often each occurs, in the order of [`SYMS`]. No cost comes near the 255th power
/// of a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Counts instead of a list of symbols, so that a term needs no memory of its own.
struct Powers([u8; SYMS.len()]);

/// All symbols in the order of their letters, in which products list them.
const SYMS: [Sym; 5] = [Sym::Batch, Sym::Rows, Sym::Past, Sym::Source, Sym::Time];

impl Powers {
    fn one(sym: Sym) -> Self {
        Self(SYMS.map(|known| u8::from(known == sym)))
    }

    /// The symbols of the product in order, each as often as it occurs.
    fn syms(self) -> impl Iterator<Item = Sym> {
        SYMS.into_iter().zip(self.0).flat_map(|(sym, times)| std::iter::repeat_n(sym, usize::from(times)))
    }

    fn times(self, other: Self) -> Self {
        let mut product = self;
        for (own, more) in product.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(more);
        }
        product
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl PartialOrd for Powers {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Powers {
    // Terms of one degree are printed in this order, by their symbols: `B*P` before `B*T`. Comparing the
    // counts of symbols would reverse them.
    fn cmp(&self, other: &Self) -> Ordering {
        self.syms().cmp(other.syms())
    }
}

/// The terms of a polynomial. A graph has several sizes for each value, and nearly all of them have one term,
/// which needs no memory of its own.
#[derive(Clone, Debug)]
enum Terms {
    One((Powers, u128)),
    Many(Vec<(Powers, u128)>),
}

impl Default for Terms {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl std::ops::Deref for Terms {
    type Target = [(Powers, u128)];

    fn deref(&self) -> &[(Powers, u128)] {
        match self {
            Terms::One(term) => std::slice::from_ref(term),
            Terms::Many(terms) => terms,
        }
    }
}

impl FromIterator<(Powers, u128)> for Terms {
    fn from_iter<I: IntoIterator<Item = (Powers, u128)>>(terms: I) -> Self {
        let mut all = Self::default();
        for (powers, n) in terms {
            all.add(powers, n);
        }
        all
    }
}

impl Terms {
    /// Adds `n` times a product of symbols, to the coefficient of that product if there is one.
    fn add(&mut self, powers: Powers, n: u128) {
        match self {
            Terms::One((known, sum)) if *known == powers => *sum = sum.saturating_add(n),
            Terms::One(first) => {
                let mut both = vec![*first, (powers, n)];
                both.sort_by_key(|(powers, _)| *powers);
                *self = Terms::Many(both);
            }
            // The first term of a sum needs no list.
            Terms::Many(terms) if terms.is_empty() => *self = Terms::One((powers, n)),
            Terms::Many(terms) => {
                let at = terms.partition_point(|(known, _)| *known < powers);
                match terms.get_mut(at).filter(|(known, _)| *known == powers) {
                    Some((_, sum)) => *sum = sum.saturating_add(n),
                    None => terms.insert(at, (powers, n)),
                }
            }
        }
    }
}

impl PartialEq for Dim {
    fn eq(&self, other: &Self) -> bool {
        *self.terms == *other.terms
    }
}

impl Eq for Dim {}

impl PartialOrd for Dim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dim {
    fn cmp(&self, other: &Self) -> Ordering {
        (*self.terms).cmp(&*other.terms)
    }
}

impl Hash for Dim {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As in `eq`, words take no part.
        (*self.terms).hash(state);
    }
}

impl Dim {
    /// The polynomial that is the number `n`.
    pub fn of(n: impl Into<u128>) -> Self {
        let n = n.into();
        // Zero has no term, so that equal polynomials have equal lists.
        if n == 0 {
            return Self::default();
        }
        Self { terms: Terms::One((Powers::default(), n)), words: None }
    }

    /// The polynomial that is one symbol, such as `T`.
    pub fn sym(sym: Sym) -> Self {
        Self { terms: Terms::One((Powers::one(sym), 1)), words: None }
    }

    /// The number, if the polynomial has no symbols.
    pub fn constant(&self) -> Option<u128> {
        match &*self.terms {
            [] => Some(0),
            [(syms, n)] if syms.is_empty() => Some(*n),
            _ => None,
        }
    }

    /// The number in the author's words, if the polynomial has no symbols.
    pub fn extent(&self) -> Option<Extent> {
        // A cost may exceed 64 bits, a size of the spec never does.
        let n = u64::try_from(self.constant()?).ok()?;
        Some(self.words.as_deref().copied().unwrap_or(Extent::from(n)))
    }

    /// The same size with the words of both operands combined, if at least one of them has words.
    fn worded(self, operands: [&Dim; 2], combine: impl Fn(Extent, Extent) -> Extent) -> Dim {
        let [a, b] = operands;
        if a.words.is_none() && b.words.is_none() {
            // Nearly all sums and products are of sizes without words, and nothing is allocated for these.
            return Dim { words: None, ..self };
        }
        let words = a.extent().zip(b.extent()).map(|(a, b)| Arc::new(combine(a, b)));
        Dim { words, ..self }
    }

    /// The largest coefficient; the number itself if there is no symbol.
    pub fn largest(&self) -> u128 {
        self.terms.iter().map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// The symbol, if the polynomial is a single symbol.
    pub fn symbol(&self) -> Option<Sym> {
        match &*self.terms {
            // `2*T` is a size of its own, with no letter.
            [(powers, 1)] => {
                let mut syms = powers.syms();
                syms.next().filter(|_| syms.next().is_none())
            }
            _ => None,
        }
    }

    /// Whether it changes with a length.
    pub fn uses(&self, sym: Sym) -> bool {
        self.terms.iter().any(|(powers, _)| powers.syms().any(|s| s == sym))
    }

    /// The value for given lengths.
    pub fn eval(&self, lengths: &Lengths) -> u128 {
        self.terms.iter().fold(0u128, |sum, (syms, n)| {
            let product = syms.syms().fold(*n, |p, s| p.saturating_mul(u128::from(lengths.of(s))));
            sum.saturating_add(product)
        })
    }

    /// The products with their coefficients, highest degree first; a repeated symbol is a power.
    pub fn terms(&self) -> Vec<(Vec<Sym>, u128)> {
        let mut terms: Vec<(Vec<Sym>, u128)> =
            self.terms.iter().map(|(powers, n)| (powers.syms().collect(), *n)).collect();
        // Stable, so that products of one degree stay in their order.
        terms.sort_by_key(|(syms, _)| std::cmp::Reverse(syms.len()));
        terms
    }

    /// The polynomial with a symbol replaced by another polynomial.
    pub fn substitute(&self, sym: Sym, with: &Dim) -> Dim {
        self.terms
            .iter()
            .map(|(syms, n)| {
                // One factor for each occurrence, so that powers are replaced, too.
                let factor = |s: Sym| if s == sym { with.clone() } else { Dim::sym(s) };
                Dim::of(*n) * syms.syms().map(factor).product::<Dim>()
            })
            .sum()
    }

    /// Divides every coefficient by `n` and rounds up; 0 if `n` is 0.
    pub fn div_ceil(&self, n: u128) -> Dim {
        if n == 0 {
            return Dim::default();
        }
        // The author's words would be those of an exact quotient.
        Self { terms: self.terms.iter().map(|(s, c)| (*s, c.div_ceil(n))).collect(), words: None }
    }

    /// `self / n`, if every coefficient is divisible.
    pub fn divide(&self, n: u128) -> Option<Dim> {
        let quotient =
            |(s, c): &(Powers, u128)| Some((*s, c.checked_div(n).filter(|_| c.is_multiple_of(n))?));
        let terms = self.terms.iter().map(quotient).collect::<Option<_>>()?;
        // Not even zero can be divided by zero.
        (n != 0).then_some(Self { terms, words: None })
    }

    /// `self / by`, if every coefficient is divisible, in the author's words where they allow it.
    pub fn divide_by(&self, by: Extent) -> Option<Dim> {
        let words = self.extent().and_then(|size| size.divide(by)).map(Arc::new);
        Some(Self { words, ..self.divide(u128::from(by))? })
    }
}

impl From<u64> for Dim {
    fn from(n: u64) -> Self {
        Dim::of(n)
    }
}

impl From<Extent> for Dim {
    fn from(extent: Extent) -> Self {
        Dim { words: extent.is_worded().then(|| Arc::new(extent)), ..Dim::of(extent) }
    }
}

impl From<Sym> for Dim {
    fn from(sym: Sym) -> Self {
        Dim::sym(sym)
    }
}

impl std::ops::Add for &Dim {
    type Output = Dim;
    fn add(self, other: &Dim) -> Dim {
        // `+=` adds the terms of sizes without words; the words are combined below.
        let mut sum = Dim { terms: self.terms.clone(), words: None };
        sum += &Dim { terms: other.terms.clone(), words: None };
        sum.worded([self, other], |a, b| a + b)
    }
}

impl std::ops::AddAssign<&Dim> for Dim {
    fn add_assign(&mut self, other: &Dim) {
        // `+` combines the words; without any, the terms are added in place.
        if self.words.is_some() || other.words.is_some() {
            *self = &*self + other;
            return;
        }
        for (powers, n) in other.terms.iter() {
            self.terms.add(*powers, *n);
        }
    }
}

impl std::ops::Mul for &Dim {
    type Output = Dim;
    fn mul(self, other: &Dim) -> Dim {
        let mut product = Dim::default();
        for (a, n) in self.terms.iter() {
            for (b, m) in other.terms.iter() {
                product.terms.add(a.times(*b), n.saturating_mul(*m));
            }
        }
        product.worded([self, other], |a, b| a * b)
    }
}

impl std::ops::Add for Dim {
    type Output = Dim;
    fn add(self, other: Dim) -> Dim {
        &self + &other
    }
}

impl std::ops::Mul for Dim {
    type Output = Dim;
    fn mul(self, other: Dim) -> Dim {
        &self * &other
    }
}

impl std::iter::Sum for Dim {
    fn sum<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::default(), |a, b| a + b)
    }
}

impl std::iter::Product for Dim {
    fn product<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::of(1u64), |a, b| a * b)
    }
}

/// `2*B*T+3`, highest degree first; `0` if there are no terms.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (i, (syms, n)) in self.terms().into_iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            let mut first = true;
            // A coefficient of 1 is written only where nothing else of the term is.
            if n != 1 || syms.is_empty() {
                write!(f, "{n}")?;
                first = false;
            }
            for sym in syms {
                if !first {
                    f.write_str("*")?;
                }
                write!(f, "{}", sym.letter())?;
                first = false;
            }
        }
        Ok(())
    }
}
