//! The named numbers of a program, and which number in the code is which of them.
//!
//! A size is named by the author's words, which it carries through the graph ([`Extent`]); a scalar by what
//! it is (an epsilon, a probability). Nothing is named because it happens to be equal to something else.

mod found;
mod kind;
mod number;
mod table;

pub use kind::{Fresh, Kind};
pub use number::{Constant, ConstantId, Number, Scalar, Size, grouped};
pub use table::{Table, TableId};

use std::collections::BTreeSet;

use crate::ir::extent::Word;
use crate::ir::factor::Root;
use crate::ir::op::quantity::Named;
use crate::ir::{Extent, Factor, Graph, ModuleId};
use found::Found;
use number::product;
use table::tables;

/// The constants of a program. A target writes those that its text refers to, and those that
/// [`Constants::with_formulas`] adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    /// In the order they are written; a formula refers to earlier ones only.
    pub all: Vec<Constant>,
    /// Lists of numbers, no two the same.
    pub tables: Vec<Table>,
}

impl Constants {
    /// Finds the constants and the tables of a graph.
    pub fn of(graph: &Graph) -> Self {
        let mut found = Found::default();
        // First and without a scope: users of a model look for these two by their plain names.
        if let Some(vocab) = graph.vocab {
            found.size(Extent::new("vocab", vocab), "");
        }
        found.size(Extent::new("context", graph.context), "");
        found.walk(graph, graph.root);
        Self { all: found.name(), tables: tables(graph) }
    }

    /// A size in the author's words. What all products of a sum share is written once.
    pub fn size(&self, size: Extent) -> Size {
        let terms = size.terms();
        // `heads * (content_dim + rotary_dim)`, as a person would write it, and not two products with
        // `heads`.
        let shared: Vec<Word> = match terms.as_slice() {
            [(_, first), rest @ ..] if !rest.is_empty() => {
                let is_shared = |word: &&Word| rest.iter().all(|(_, words)| words.contains(word));
                first.iter().filter(is_shared).copied().collect()
            }
            _ => Vec::new(),
        };
        let own = |words: &[Word]| {
            let mut rest = words.to_vec();
            for word in &shared {
                // One at a time: a product may have a word twice (`d_model * d_model`) and share it once.
                rest.iter().position(|own| own == word).map(|at| rest.remove(at));
            }
            rest
        };
        let mut sum: Vec<Size> =
            terms.iter().map(|(times, words)| product(self.factors(*times, &own(words)))).collect();
        let sum = match sum.len() {
            0 => Size::Number(0),
            1 => sum.remove(0),
            _ => Size::Sum(sum),
        };
        let whole = match shared.is_empty() {
            true => sum,
            false => product(self.factors(1, &shared).into_iter().chain([sum]).collect()),
        };
        match size.divisor() {
            (1, words) if words.is_empty() => whole,
            (times, words) => Size::Quotient(Box::new(whole), Box::new(product(self.factors(times, &words)))),
        }
    }

    fn factors(&self, times: u64, words: &[Word]) -> Vec<Size> {
        let number = (times != 1 || words.is_empty()).then_some(Size::Number(times));
        number.into_iter().chain(words.iter().map(|word| self.field(*word))).collect()
    }

    /// The constant of a field, or its number if there is none.
    fn field(&self, word: Word) -> Size {
        self.known(word.name, word.n).unwrap_or(Size::Number(word.n))
    }

    /// The constant of a field of that value, if there is one.
    pub fn known(&self, field: &'static str, n: u64) -> Option<Size> {
        // One model may have several values of a field (the heads of two stacks), so the name alone does not
        // say which constant it is.
        self.find(|c| c.kind == Kind::Field(field) && c.value == Number::Int(n)).map(Size::Constant)
    }

    /// A real number of that kind: the constant that names it, or the number itself if there is none.
    pub fn scalar(&self, kind: Kind, value: f64) -> Scalar {
        self.find(|c| c.kind == kind && c.value == Number::Float(value))
            .map_or(Scalar::Number(value), Scalar::Constant)
    }

    /// A real number of an op, by its name if it has one.
    pub fn real(&self, named: Named, value: f64) -> Scalar {
        self.scalar(Kind::Named(named), value)
    }

    /// A whole number of an op, by its name if it has one.
    pub fn count(&self, named: Named, n: u64) -> Size {
        self.find(|c| c.kind == Kind::Named(named) && c.value == Number::Int(n))
            .map_or(Size::Number(n), Size::Constant)
    }

    /// The length of a stack of a module.
    pub fn layers(&self, owner: ModuleId, value: u64) -> Size {
        self.find(|c| c.owner == Some(owner) && c.value == Number::Int(value))
            .map_or(Size::Number(value), Size::Constant)
    }

    /// A factor on a tensor: the root of a size if it was given as one.
    pub fn factor(&self, by: Factor) -> Scalar {
        match by.root() {
            Some(Root { of, is_inverse: false }) => Scalar::Root(self.size(of)),
            Some(Root { of, is_inverse: true }) => Scalar::InverseRoot(self.size(of)),
            None => Scalar::Number(*by),
        }
    }

    /// The factor on the scores of attention.
    pub fn score_scale(&self, by: Factor) -> Scalar {
        // The root of a size explains itself. Any other factor is a number that the author chose, and only a
        // name says what it is for.
        match self.factor(by) {
            Scalar::Number(by) => self.real(Named::ScoreScale, by),
            root @ (Scalar::Constant(_) | Scalar::Root(_) | Scalar::InverseRoot(_)) => root,
        }
    }

    fn find(&self, is: impl Fn(&Constant) -> bool) -> Option<ConstantId> {
        self.all.iter().position(is).map(ConstantId)
    }

    /// The table of exactly these numbers; `None` if the program has none.
    pub fn table(&self, values: &[f64]) -> Option<TableId> {
        self.tables.iter().position(|table| table.values == values).map(TableId)
    }

    /// The constants to define where these are used: they, what their formulas refer to, and the vocabulary
    /// and the context, which users of a model ask for.
    pub fn with_formulas(&self, used: &BTreeSet<ConstantId>) -> BTreeSet<ConstantId> {
        let mut all = used.clone();
        let always = |c: &Constant| matches!(c.kind, Kind::Field("vocab" | "context"));
        // A formula refers to earlier constants only, so going backwards once finds all of them.
        for (id, constant) in self.all.iter().enumerate().rev() {
            let id = ConstantId(id);
            if always(constant) {
                all.insert(id);
            }
            if all.contains(&id) {
                all.extend(constant.formula.iter().flat_map(Size::constants));
            }
        }
        all
    }
}
