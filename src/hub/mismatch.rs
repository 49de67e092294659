//! What does not fit between the parameters of a model and the tensors of a file.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::diag::paths;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Mismatch {
    /// What is wrong: a tensor is `missing` or `extra`, or has another `shape`, `type` or `layout`.
    pub kind: &'static str,
    /// What does not fit, as a sentence without a full stop; the numbers of several layers are `*` in it.
    pub message: String,
    /// The number of tensors that this describes, 1 or more.
    pub count: usize,
}

impl Mismatch {
    /// What is wrong with a single tensor.
    pub fn one(kind: &'static str, message: String) -> Self {
        Self { kind, message, count: 1 }
    }
}

/// A tensor of the file that cannot become its parameter.
#[derive(Clone, Debug)]
pub(super) struct Unlike {
    /// The name in the file.
    pub tensor: String,
    /// The path of the parameter.
    pub path: String,
    pub what: Fault,
}

/// How a tensor of the file differs from its parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// The shape in the file, and the one that is needed.
    Shape(Vec<usize>, Vec<usize>),
    /// The element type in the file, which is no float.
    Type(String),
}

/// What is wrong with tensors that do not fit, once for all layers.
pub(super) fn unlike(all: &[Unlike]) -> Vec<Mismatch> {
    let parameters: IndexMap<&str, &str> =
        all.iter().rev().map(|one| (one.tensor.as_str(), one.path.as_str())).collect();
    let groups =
        paths::groups(all.iter().map(|one| (one.tensor.as_str(), (&one.what, paths::folded(&one.path)))));
    let mismatch = |group: paths::Group<'_, (&Fault, String)>| {
        let (name, times, count) = (group.name(), group.times(), group.paths.len());
        let (kind, message) = match group.key.0 {
            Fault::Shape(found, needed) => {
                let path = if count > 1 {
                    &group.key.1
                } else {
                    parameters.get(group.first()).copied().unwrap_or_default()
                };
                (
                    "shape",
                    format!("`{name}` is {found:?}, and the model needs {needed:?} (for {path}){times}"),
                )
            }
            Fault::Type(dtype) => {
                ("type", format!("`{name}` holds {dtype}, which is not a float type{times}"))
            }
        };
        Mismatch { kind, message, count }
    };
    groups.into_iter().map(mismatch).collect()
}
