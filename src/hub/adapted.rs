//! The model of a directory of peft, where its change has a head of its own: the body's config with that head.

use std::path::Path;

use super::checkpoint::{Checkpoint, CheckpointError};
use super::mapping::{Mapping, Origin};
use super::mismatch::Mismatch;
use super::new_head::NewHead;

/// The head that a change brings along, and the names of its classes if the file has them.
#[derive(Clone, Debug)]
pub struct OwnHead {
    /// The head, in place of the body's.
    pub head: NewHead,
    /// The names of its classes.
    pub classes: Option<Vec<String>>,
}

/// The head that the change in a directory brings along; `None` if its model is the body's.
///
/// # Errors
/// The change cannot be read, or has tensors that the body does not have, and does not say for which task.
pub fn own_head(folder: &Path) -> Result<Option<OwnHead>, CheckpointError> {
    let checkpoint = Checkpoint::open(folder)?;
    let Some(adapter) = checkpoint.adapter().filter(|adapter| adapter.has_new()) else { return Ok(None) };
    let first = adapter.whole().next().unwrap_or_default();
    let Some(part) = adapter.head() else {
        return Err(CheckpointError::new(format!(
            "the change has `{first}`, which its body does not have in this shape, and its adapter_config.json \
             does not say for which task: `\"task_type\": \"SEQ_CLS\"`, or another of peft's"
        )));
    };
    let has_classes = matches!(part, "classify" | "tag");
    // The last layer of a head has a row for each class, and the layers before it have more.
    let rows = adapter.whole().filter_map(|name| match adapter.entry(name)?.shape.as_slice() {
        [rows, _] => u64::try_from(*rows).ok(),
        _ => None,
    });
    let classes = rows.min().filter(|_| has_classes);
    if has_classes && classes.is_none() {
        return Err(CheckpointError::new(format!(
            "the change has `{first}`, and no matrix of a head with a row for each class"
        )));
    }
    Ok(Some(OwnHead {
        head: NewHead { part: part.to_owned(), classes, pooled: None },
        classes: adapter.classes().filter(|names| Some(names.len() as u64) == classes),
    }))
}

/// Corrects what does not fit the tensors of a directory of peft: where its change has another head, that of the
/// body is not used, and every tensor of the change must be.
pub fn without_old_head(checkpoint: &Checkpoint, mapping: &mut Mapping) {
    let Some(adapter) = checkpoint.adapter() else { return };
    if adapter.has_new() {
        mapping.mismatches.retain(|mismatch| mismatch.kind != "extra");
    }
    let is_read = |name: &str| {
        let of_origin = |origin: &Origin| match origin {
            Origin::Tensor(own, _) => own == name,
            Origin::Joined(parts) => parts.iter().any(|(own, _)| own == name),
            Origin::Constant(_) => false,
        };
        mapping.origins.values().any(of_origin) || mapping.repeats.iter().any(|(own, _)| own == name)
    };
    let unread: Vec<Mismatch> = adapter
        .all()
        .filter(|name| !is_read(name))
        .map(|name| {
            let message = format!("the change is of `{name}`, which is no tensor of its model");
            Mismatch::one("extra", message)
        })
        .collect();
    mapping.mismatches.extend(unread);
}
