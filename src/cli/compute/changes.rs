//! Compares the parameters of a trained model with those it started from, for `trafoc inspect changes`.

use std::path::{Path, PathBuf};

use super::beginning::recorded;
use super::body::Body;
use crate::cli::inspect::Changes;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::ui::Ui;
use crate::hub::mapping::parameters;
use crate::inspect::Report;
use crate::inspect::changes::{Changed, report};
use crate::learn::marker::is_run;

/// The model that a run started from.
fn origin(model: &Path, ui: &Ui) -> Result<PathBuf, Failure> {
    let from = if is_run(model) { recorded(model).and_then(|start| start.from) } else { None };
    let Some(from) = from else {
        let message = format!("`{}` does not say which trained model it started from", model.display());
        return Err(Failure::usage(message).help("`--against MODEL` names the one to compare it with"));
    };
    ui.note(&format!("compares with {}, from which it started", from.text));
    Ok(PathBuf::from(from.text))
}

/// Compares two models parameter by parameter.
///
/// # Errors
/// One of them has no weights, or they have no parameter in common.
pub fn changes(one: &Changes, ui: &mut Ui) -> Result<Report, Failure> {
    let subject = one.spec.compile(ui)?;
    let model = Path::new(&one.spec.spec);
    let against = match &one.against {
        Some(against) => against.clone(),
        None => origin(model, ui)?,
    };
    let families = one.spec.families();
    // Neither has a new head: both are compared as they are.
    let mut after = Body::open(model, (&subject, false), families, ui)?;
    let mut before = Body::open(&against, (&subject, false), families, ui)?;
    let own = parameters(&subject.graph).map_err(|why| Failure::new(Exit::Refused, why))?;
    let mut all = Vec::new();
    for (path, shape) in &own {
        // A parameter that the files do not have in this shape has nothing that could be compared.
        let Some(now) = after.found(path, shape)? else { continue };
        let then = before.found(path, shape)?;
        all.push(Changed::of(path, shape, &now, then.as_deref()));
    }
    if all.iter().all(|changed| changed.before.is_none()) {
        let message = format!("`{}` and `{}` have no parameter in common", after.name, before.name);
        return Err(Failure::usage(message).help("parameters are compared by path and shape"));
    }
    Ok(report(&after.name, &before.name, &all))
}
