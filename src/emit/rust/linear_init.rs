//! What the helper that creates projections must be told about fresh weights.

use crate::emit::program::{FieldKind, Program};
use crate::ir::{Init, Layer};

/// What `linear(..)`, the helper at the end of a file, is told about initial weights.
#[derive(Clone, Debug, PartialEq)]
pub enum LinearInit {
    /// Every projection starts the same way, which the helper knows.
    Same(Init),
    /// Normal; the standard deviation is an argument.
    Normal,
    /// Normal, cut at that many standard deviations; the standard deviation is an argument.
    Truncated(f64),
    /// An `Initializer` is an argument, since the projections start in different ways.
    Any,
}

/// The simplest form of the helper with which all projections of a program can be created.
pub fn linear_init(program: &Program) -> LinearInit {
    let mut found: Vec<&Init> = Vec::new();
    for field in program.modules.iter().flat_map(|module| &module.fields) {
        if let FieldKind::Layer(Layer::Linear { init, .. }) = &field.kind
            && !found.contains(&init)
        {
            found.push(init);
        }
    }
    let cuts: Vec<f64> = found
        .iter()
        .filter_map(|init| if let Init::TruncatedNormal { cut, .. } = init { Some(*cut) } else { None })
        .collect();
    match found.as_slice() {
        // The simplest helper that all projections can call: what all of them share is written once, in it.
        [one] => LinearInit::Same((*one).clone()),
        all if all.iter().all(|init| matches!(init, Init::Normal { .. })) => LinearInit::Normal,
        all => match cuts.split_first() {
            Some((first, rest)) if cuts.len() == all.len() && rest.iter().all(|c| c == first) => {
                LinearInit::Truncated(*first)
            }
            _ => LinearInit::Any,
        },
    }
}
