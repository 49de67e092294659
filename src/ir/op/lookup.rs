//! Ops on tables that are inputs (rows of a table, products with one), and pooling a sequence into one
//! vector.

use super::meaning::{Given, Meaning, Picture, Site, Types, size};
use super::training::{Entry, Operand, Passing, Training};
use crate::ir::infer::fail;
use crate::ir::text::thousands;
use crate::ir::work::Work;
use crate::ir::{DType, Dim, Module, Role, Type};

/// The meaning of [`Op::Lookup`](super::Op::Lookup).
pub(super) struct Lookup;

impl Meaning for Lookup {
    fn text(&self, _: &Module) -> String {
        "lookup".into()
    }
    fn sentence(&self) -> &'static str {
        "rows of a table"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [table, Type { dtype: DType::Int, shape, optional: false }]
                if let ([_, width], [b, t]) = (table.shape.as_slice(), shape.as_slice()) =>
            {
                Ok(vec![Type::float([b.clone(), t.clone(), width.clone()])])
            }
            _ => fail("rows of a table are looked up by `[B, T]` of indices"),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Box {
            role: Role::Embedding,
            label: "Token embedding",
            notes: vec!["shared table".into()],
            // The table is the first input, the tokens are the second.
            aside: 1,
        }
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Entry::of_input(Passing::Fresh).alone()
    }
    fn looks_up(&self) -> bool {
        true
    }
}

/// The meaning of [`Op::Unembed`](super::Op::Unembed).
pub(super) struct Unembed;

impl Meaning for Unembed {
    fn text(&self, _: &Module) -> String {
        "unembed".into()
    }
    fn sentence(&self) -> &'static str {
        "x · tableᵀ: the table of the embedding, used again for the output"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x, w] = given.inputs else { return fail("x and the table expected") };
        let mut ty = (*x).clone();
        match (w.shape.as_slice(), ty.shape_mut().last_mut()) {
            ([rows, width], Some(last)) if last == width => *last = rows.clone(),
            (_, _) => return fail(format!("{x} times {w} transposed")),
        }
        Ok(vec![ty])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let width = site.input(0).and_then(Type::last).cloned().unwrap_or_default();
        let out = site.out();
        Work { matmul: &(&out * &width) * &Dim::of(2u64), ..Work::computed(&out) }
    }
    fn is_by_position(&self, _: &Site<'_>) -> bool {
        true
    }
    fn picture(&self, site: &Site<'_>) -> Picture {
        let mut notes = Vec::new();
        if let Some([rows, dim]) = site.input(1).map(|table| table.shape.as_slice()) {
            let size = |d: &Dim| d.constant().map_or_else(|| d.to_string(), thousands);
            notes.push(format!("{} → {}", size(dim), size(rows)));
        }
        Picture::Box { role: Role::Head, label: "Linear", notes, aside: 0 }
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // As for a projection, the table is not counted as kept: it is a parameter and exists in any case.
        Entry::of_inputs(Passing::Fresh, 2).keeping([Operand::Input(0)]).alone()
    }
    fn is_kernel(&self) -> bool {
        true
    }
}

/// How a sequence becomes one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The first position, which has the class token in BERT and ViT.
    First,
    /// The last position that is not padding.
    Last,
    /// The mean over positions that are not padding.
    Mean,
    /// The largest value over positions that are not padding.
    Max,
}

impl Meaning for Pool {
    fn text(&self, _: &Module) -> String {
        format!("pool {self:?}").to_lowercase()
    }
    fn sentence(&self) -> &'static str {
        "one vector for the whole sequence"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let ([x] | [x, _]) = given.inputs else { return fail("a sequence expected") };
        match x.shape.as_slice() {
            [batch, _, dim] => Ok(vec![Type::float([batch.clone(), dim.clone()])]),
            _ => fail("pooling is over `[B, T, D]`"),
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let out = Work::computed(&site.out());
        match self {
            Pool::First | Pool::Last => out,
            Pool::Mean | Pool::Max => Work { elementwise: size(site.input(0)), ..out },
        }
    }
    fn picture(&self, site: &Site<'_>) -> Picture {
        // Of a single position nothing is left to choose.
        if let Some([_, time, _]) = site.input(0).map(|x| x.shape.as_slice())
            && *time == Dim::of(1u64)
        {
            return Picture::Pass;
        }
        Picture::step(match self {
            Pool::First => "first position",
            Pool::Last => "last position",
            Pool::Mean => "mean over positions",
            Pool::Max => "maximum over positions",
        })
    }
    fn training(&self, _: &Site<'_>) -> Training {
        match self {
            // A view of one position, whose gradient is a new tensor that is zero at all others.
            Pool::First | Pool::Last => Training::View(Passing::Fresh),
            Pool::Mean | Pool::Max => Entry::of_input(Passing::Fresh).alone(),
        }
    }
    fn keeps_by(&self) -> Option<usize> {
        Some(1)
    }
}
