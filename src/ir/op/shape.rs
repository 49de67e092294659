//! Ops that rearrange numbers: slices, joins, and axes of length 1.

use super::forward::Forward;
use super::meaning::{Given, Meaning, Picture, Site, Types, rearranges, reshapes};
use super::training::{Entry, Passing, Training};
use crate::ir::infer::{axis_of, fail};
use crate::ir::work::Work;
use crate::ir::{Dim, Extent, Module};

/// The meaning of [`Op::Slice`](super::Op::Slice).
pub(super) struct Slice {
    pub axis_from_last: usize,
    pub start: Extent,
    pub len: Extent,
}

impl Slice {
    fn is_along_positions(&self) -> bool {
        self.axis_from_last == 1
    }

    /// What it takes of a sequence of this length, in words that count from 1.
    fn positions(&self, time: &Dim) -> String {
        let (start, len) = (self.start.get(), self.len.get());
        let end = start.saturating_add(len);
        let first = |n: u64| if n == 1 { "first position".into() } else { format!("first {n} positions") };
        match start {
            0 => first(len),
            _ if time.constant() == Some(u128::from(end)) => format!("without the {}", first(start)),
            _ if len == 1 => format!("position {end}"),
            _ => format!("positions {} to {end}", start.saturating_add(1)),
        }
    }
}

impl Meaning for Slice {
    fn text(&self, _: &Module) -> String {
        let Self { axis_from_last, start, len } = self;
        format!("slice axis=-{} {start}..{}", axis_from_last.saturating_add(1), *start + *len)
    }
    fn sentence(&self) -> &'static str {
        if self.is_along_positions() { "some of the positions" } else { "some of the features" }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let Self { axis_from_last, start, len } = self;
        let [x] = given.inputs else { return fail("one tensor is sliced") };
        let mut ty = (*x).clone();
        let axis = axis_of(&ty, *axis_from_last)?;
        let Some(at) = ty.shape_mut().get_mut(axis) else { return fail("no such axis") };
        let end = *start + *len;
        // A length such as `T` is known only when the model is called.
        if let Some(size) = at.constant()
            && u128::from(end) > size
        {
            return fail(format!("{start}..{end} of {size}"));
        }
        *at = Dim::from(*len);
        Ok(vec![ty])
    }
    fn work(&self, _: &Site<'_>) -> Work {
        Work::default()
    }
    fn picture(&self, site: &Site<'_>) -> Picture {
        let Some([_, time, _]) = site.input(0).map(|x| x.shape.as_slice()) else { return Picture::Pass };
        // Which positions go on tells two heads apart; the features are those that the next box is for.
        if self.is_along_positions() { Picture::step(self.positions(time)) } else { Picture::Pass }
    }
    fn training(&self, _: &Site<'_>) -> Training {
        // The gradient is zero where nothing was taken, so it has the whole size again.
        Training::View(Passing::Fresh)
    }
    fn is_view(&self) -> bool {
        true
    }
    fn keeps_indices(&self) -> bool {
        true
    }
}

/// What follows from joining inputs in new memory: each gets its share of the gradient, and a picture shows a
/// step.
macro_rules! joins {
    ($label:literal) => {
        fn work(&self, site: &Site<'_>) -> Work {
            Work::computed(&site.out())
        }
        fn picture(&self, _: &Site<'_>) -> Picture {
            Picture::step($label)
        }
        fn training(&self, site: &Site<'_>) -> Training {
            Entry::of_inputs(Passing::Parts, site.node.inputs.len()).alone()
        }
        fn forward(&self, _: &Site<'_>) -> Option<Forward> {
            Some(Forward::ORDERED)
        }
    };
}

/// The meaning of [`Op::Concat`](super::Op::Concat).
pub(super) struct Concat {
    pub axis_from_last: usize,
}

impl Meaning for Concat {
    fn text(&self, _: &Module) -> String {
        format!("concat axis=-{}", self.axis_from_last.saturating_add(1))
    }
    fn sentence(&self) -> &'static str {
        "joined along an axis"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let Some((first, rest)) = given.inputs.split_first() else { return fail("nothing to join") };
        let mut ty = (*first).clone();
        let axis = axis_of(&ty, self.axis_from_last)?;
        for other in rest {
            if other.shape.len() != ty.shape.len() || other.dtype != ty.dtype {
                return fail(format!("{ty} and {other} cannot be joined"));
            }
            for (i, (all, more)) in ty.shape_mut().iter_mut().zip(other.shape.iter()).enumerate() {
                if i == axis {
                    *all = &*all + more;
                } else if all != more {
                    return fail(format!("{first} and {other} cannot be joined"));
                }
            }
        }
        Ok(vec![ty])
    }
    joins!("concat");
}

/// The meaning of [`Op::Prepend`](super::Op::Prepend).
pub(super) struct Prepend;

impl Meaning for Prepend {
    fn text(&self, _: &Module) -> String {
        "prepend".into()
    }
    fn sentence(&self) -> &'static str {
        "learned vectors put before the sequence"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [rows, x] = given.inputs else { return fail("rows and a sequence expected") };
        let mut ty = (*x).clone();
        let ([before, width], [_, time, features]) = (rows.shape.as_slice(), ty.shape_mut().as_mut_slice())
        else {
            return fail(format!("{rows} before {x}"));
        };
        if width != features {
            return fail(format!("{rows} before {x}"));
        }
        *time = &*time + before;
        Ok(vec![ty])
    }
    joins!("prepend");
}

/// The meaning of [`Op::Unsqueeze`](super::Op::Unsqueeze).
pub(super) struct Unsqueeze;

impl Meaning for Unsqueeze {
    fn text(&self, _: &Module) -> String {
        "unsqueeze".into()
    }
    fn sentence(&self) -> &'static str {
        "one more axis, of length 1"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [x] = given.inputs else { return fail("one tensor expected") };
        let mut ty = (*x).clone();
        ty.shape_mut().push(Dim::of(1u64));
        Ok(vec![ty])
    }
    reshapes!();
}

/// The meaning of [`Op::Squeeze`](super::Op::Squeeze).
pub(super) struct Squeeze;

impl Meaning for Squeeze {
    fn text(&self, _: &Module) -> String {
        "squeeze".into()
    }
    fn sentence(&self) -> &'static str {
        "an axis of length 1 dropped"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match given.inputs {
            [x] if x.last() == Some(&Dim::of(1u64)) => {
                let mut ty = (*x).clone();
                ty.shape_mut().pop();
                Ok(vec![ty])
            }
            _ => fail("a last axis of length 1 is dropped"),
        }
    }
    reshapes!();
}

/// The meaning of [`Op::OrZeros`](super::Op::OrZeros).
pub(super) struct OrZeros;

impl Meaning for OrZeros {
    fn text(&self, _: &Module) -> String {
        "or_zeros".into()
    }
    fn sentence(&self) -> &'static str {
        "zeros where an input is absent"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let [a, b] = given.inputs else { return fail("a value and its likeness expected") };
        if a.shape != b.shape || a.dtype != b.dtype {
            return fail(format!("{a} is not like {b}"));
        }
        Ok(vec![(*b).clone()])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        Work::computed(&site.out())
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([])
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Training::View(Passing::Shared)
    }
    fn keeps_indices(&self) -> bool {
        true
    }
}
