//! Symbolic sizes: exact polynomials in the lengths a model is called with.
//!
//! A [`Dim`] is a sum of products such as `B*T` or `P + T`, with `u128` coefficients. Shapes use it,
//! and so do costs, which is why a formula in `B` and `T` comes before any number.

use std::collections::BTreeMap;
use std::fmt;

/// A length that is known only when the model is called.
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dim {
    /// The coefficient of each product of symbols (sorted); the empty product is the constant term.
    terms: BTreeMap<Vec<Sym>, u128>,
}

impl Dim {
    /// The number `n`.
    pub fn of(n: impl Into<u128>) -> Self {
        let n = n.into();
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(Vec::new(), n);
        }
        Self { terms }
    }

    /// One symbol.
    pub fn sym(sym: Sym) -> Self {
        Self { terms: BTreeMap::from([(vec![sym], 1)]) }
    }

    /// The number, if the polynomial has no symbols.
    pub fn constant(&self) -> Option<u128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The symbol, if the polynomial is a single symbol.
    pub fn symbol(&self) -> Option<Sym> {
        match self.terms.iter().next() {
            Some((syms, 1)) if self.terms.len() == 1 => match syms.as_slice() {
                [one] => Some(*one),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value for given lengths.
    pub fn eval(&self, lengths: &Lengths) -> u128 {
        self.terms.iter().fold(0u128, |sum, (syms, n)| {
            let product = syms.iter().fold(*n, |p, s| p.saturating_mul(u128::from(lengths.of(*s))));
            sum.saturating_add(product)
        })
    }

    /// The products with their coefficients, highest degree first; a repeated symbol is a power.
    pub fn terms(&self) -> Vec<(&[Sym], u128)> {
        let mut terms: Vec<_> = self.terms.iter().map(|(syms, n)| (syms.as_slice(), *n)).collect();
        terms.sort_by_key(|(syms, _)| (std::cmp::Reverse(syms.len()), syms.to_vec()));
        terms
    }

    /// The polynomial with a symbol replaced by another polynomial.
    pub fn substitute(&self, sym: Sym, with: &Dim) -> Dim {
        self.terms
            .iter()
            .map(|(syms, n)| {
                let factor = |s: &Sym| if *s == sym { with.clone() } else { Dim::sym(*s) };
                Dim::of(*n) * syms.iter().map(factor).product::<Dim>()
            })
            .sum()
    }

    /// Divides every coefficient by `n` and rounds up; 0 if `n` is 0.
    pub fn div_ceil(&self, n: u128) -> Dim {
        if n == 0 {
            return Dim::default();
        }
        Self { terms: self.terms.iter().map(|(s, c)| (s.clone(), c.div_ceil(n))).collect() }
    }

    /// `self / n`, if every coefficient is divisible.
    pub fn divide(&self, n: u128) -> Option<Dim> {
        if n == 0 || self.terms.values().any(|c| c % n != 0) {
            return None;
        }
        Some(Self { terms: self.terms.iter().map(|(s, c)| (s.clone(), c / n)).collect() })
    }
}

impl From<u64> for Dim {
    fn from(n: u64) -> Self {
        Dim::of(n)
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
        let mut terms = self.terms.clone();
        for (syms, n) in &other.terms {
            let at = terms.entry(syms.clone()).or_insert(0);
            *at = at.saturating_add(*n);
        }
        Dim { terms }
    }
}

impl std::ops::Mul for &Dim {
    type Output = Dim;
    fn mul(self, other: &Dim) -> Dim {
        let mut terms = BTreeMap::new();
        for (a, n) in &self.terms {
            for (b, m) in &other.terms {
                let mut syms: Vec<Sym> = a.iter().chain(b).copied().collect();
                syms.sort_unstable();
                let at = terms.entry(syms).or_insert(0u128);
                *at = at.saturating_add(n.saturating_mul(*m));
            }
        }
        Dim { terms }
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

/// `2*B*T + 3`, highest degree first; `0` if there are no terms.
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
