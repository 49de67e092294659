//! Warns about numbers of a recipe that lie beyond the end of training, and so have no effect.

use super::{Checkpoint, Recipe};
use crate::diag::count::counted;
use crate::diag::{Code, Diagnostic, Sink};
use crate::source::Span;

/// Reports every number of steps or evaluations that a training of `total` steps does not reach.
pub fn check(recipe: &Recipe, total: u64, sink: &mut Sink) {
    let end = ["steps", "epochs"].into_iter().find(|key| recipe.places.has(key));
    let end = end.map(|key| recipe.places.of(key)).unwrap_or_default();
    let ends = format!("training ends after {}", counted(total, "step"));
    let warmup = recipe.schedule.warmup();
    if warmup > total {
        let message = format!("the learning rate rises for {}, but {ends}", counted(warmup, "step"));
        let place = recipe.places.of("schedule");
        // A tenth is what most recipes take.
        let help = format!("write `warmup: {}`, or train for longer", (total / 10).max(1));
        sink.push(shown(place, end, message).help(help));
    }
    // A training that the command line cuts short is a trial, for which nobody rewrites the recipe.
    let is_planned = |place: Span| place.source == end.source;
    let intervals = [
        ("an evaluation", recipe.evaluate.every.map(|every| *every), &recipe.evaluate.places),
        (
            "a checkpoint",
            // A run and a project write out the default, which the author did not choose.
            Some(*recipe.checkpoint.every).filter(|every| *every != *Checkpoint::usual().every),
            &recipe.checkpoint.places,
        ),
    ];
    for (what, every, places) in intervals {
        let Some(every) = every.filter(|every| *every > total && is_planned(places.of("every"))) else {
            continue;
        };
        let message = format!("{what} is due every {}, but {ends}", counted(every, "step"));
        let help = format!("leave `every` out for the one after the last step, or write {total} or less");
        sink.push(shown(places.of("every"), end, message).help(help));
    }
    let Some(stop) = &recipe.stop else { return };
    let made = recipe.evaluate.made_until(total, total);
    let place = stop.places.of("patience");
    if *stop.patience >= made && is_planned(place) {
        let message = format!(
            "training would stop after {} without an improvement, but there are only {made}",
            counted(*stop.patience, "evaluation")
        );
        let help = "the first one is always an improvement: evaluate more often with `evaluate.every`, or wait for fewer";
        sink.push(shown(place, end, message).help(help));
    }
}

/// A warning at the number, which also shows where training ends.
fn shown(place: Span, end: Span, message: String) -> Diagnostic {
    Diagnostic::warning(Code::BeyondEnd, place, message).label(end, "training ends here")
}
