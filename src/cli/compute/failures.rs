//! Failures of the interpreter and of training as failures of commands.

use super::run_folder;
use crate::cli::file;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::Subject;
use crate::diag::count::counted;
use crate::interp::plan::PlanError;
use crate::interp::run::RunError;
use crate::interp::weights::WeightsError;
use crate::learn::data::Refused;
use crate::learn::data::store::StoreError;
use crate::learn::session::SessionError;
use crate::learn::step::StepError;
use crate::learn::token::Unknown;
use crate::parts::position::Position;
use crate::parts::position::scaling::Scaling;
use crate::spec::ModelSpec;

/// The most differences between a file and a model that are shown; they are usually of a few kinds.
const MOST_DIFFERENCES: usize = 12;

/// Why inputs do not fit a model that takes these.
pub fn inputs_failure(why: &str, takes: &str) -> Failure {
    // A message of a command is one sentence in one line; reasons that concern several inputs have a line
    // each.
    let why = why.lines().collect::<Vec<_>>().join("; ");
    Failure::new(Exit::File, why).help(format!("the model takes {takes} (`?`: may be absent)"))
}

/// That a text, `what` the user calls it, has more tokens than the model has positions.
pub fn too_long(what: &str, text: &str, tokens: usize, context: u64) -> Failure {
    let tokens = counted(tokens, "token");
    Failure::usage(format!("the {what} `{}` has {tokens}, the model's context {context}", cut(text)))
        .help("give a shorter one")
}

/// As [`too_long`], of what the decoder reads, with the setting that allows more where there is one.
pub fn beyond_context(what: &str, text: &str, tokens: usize, subject: &Subject) -> Failure {
    let context = subject.graph.context;
    let failure = too_long(what, text, tokens, context);
    // Something else, such as a setting for writing, may allow fewer tokens.
    let is_beyond = u64::try_from(tokens).is_ok_and(|tokens| tokens > context);
    match stretched(&subject.spec).filter(|_| is_beyond) {
        Some((from, to)) => {
            // No length is too long for these positions, so more than they are meant for can be had, too.
            let longer = to.max(u64::try_from(tokens).unwrap_or(u64::MAX).saturating_mul(2));
            failure.help(format!(
                "its rotary positions stretch for texts of more than {from} tokens: `--set context={longer}` lets it \
                 read them"
            ))
        }
        None => failure,
    }
}

/// The length from which rotary positions stretch with the text, and the one up to which they are meant to.
fn stretched(spec: &ModelSpec) -> Option<(u64, u64)> {
    let Position::Rotary(rotary) = &spec.decoder.as_ref()?.embed.position else { return None };
    let Scaling::Dynamic(own) = &rotary.scaling else { return None };
    let from = *own.original_context;
    Some((from, (from as f64 * *own.factor).ceil() as u64))
}

/// That the tokenizer cannot encode a text, `what` the user calls it.
pub fn no_token(unknown: &Unknown, what: &str, text: &str) -> Failure {
    Failure::usage(format!("the model has no token for `{}` of the {what} `{}`", unknown.what, cut(text)))
}

/// The beginning of a text, for a message.
pub fn cut(text: &str) -> String {
    // By characters, because a cut between bytes could split one.
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

/// The failure of weights that cannot be used: exit code 3 if they are too large, 4 if a file is at fault.
pub fn weights_failure(error: WeightsError) -> Failure {
    let exit = match &error {
        // Too large is no fault of the file.
        WeightsError::Size(_) => Exit::Refused,
        WeightsError::File(_) | WeightsError::Differ { .. } => Exit::File,
    };
    let text = error.to_string();
    let mut lines = text.lines();
    // The first line says what is wrong, and each of the others where.
    let failure = Failure::new(exit, lines.next().unwrap_or_default());
    let WeightsError::Differ { lines: all, is_foreign, .. } = &error else {
        return lines.fold(failure, |failure, line| failure.help(line.trim()));
    };
    let by_names = "if a file has other names for its tensors, `weights:` in the spec gives them: \
                    `trafoc explain weights` shows how";
    // Before the list of differences, which then contains every tensor of the file.
    let failure = if *is_foreign { failure.help(by_names) } else { failure };
    let shown = all.iter().take(MOST_DIFFERENCES);
    let failure = shown.fold(failure, |failure, line| failure.help(line.as_str()));
    match all.len().saturating_sub(MOST_DIFFERENCES) {
        0 => failure,
        more => failure.help(format!("and {more} more")),
    }
}

/// Why a model cannot be prepared for running.
pub fn plan_failure(error: PlanError) -> Failure {
    match error {
        PlanError::Weights(error) => weights_failure(error),
        PlanError::Capture(error) => Failure::usage(error.to_string().lines().collect::<Vec<_>>().join("; "))
            .help("`trafoc print graph SPEC` names every value; blocks are counted from 0"),
        PlanError::TooDeep { .. } => {
            Failure::new(Exit::Refused, error.to_string()).help("fewer `layers` would fit")
        }
        PlanError::Refused(why) => Failure::new(Exit::Refused, why),
    }
}

/// Why a model that takes these inputs cannot be run.
pub fn run_failure(error: RunError, takes: &str) -> Failure {
    match error {
        RunError::Inputs(error) => inputs_failure(&error.to_string(), takes),
        RunError::Plan(error) => plan_failure(error),
        // Only decoding uses a cache, and its failures are those of steps.
        RunError::NoCache(why) => Failure::bug(why),
        RunError::TooLarge(why) => Failure::new(Exit::Refused, why)
            .help("a smaller batch or a shorter sequence would fit; `--device flex` has no such bound"),
        RunError::DoesNotFit(why) => {
            Failure::new(Exit::Refused, why).help("a smaller batch or a shorter sequence would fit")
        }
        RunError::Fault(fault) => Failure::bug(fault.to_string()),
    }
}

/// Why a step of training, decoding or evaluating failed.
pub fn step_failure(error: StepError) -> Failure {
    match error {
        // These have the same advice everywhere; any other failure of a run is about what the user gave.
        StepError::Run(error @ (RunError::TooLarge(_) | RunError::DoesNotFit(_) | RunError::Plan(_))) => {
            run_failure(error, "")
        }
        StepError::Run(error) => Failure::usage(error.to_string().lines().collect::<Vec<_>>().join("; ")),
        StepError::Labels(why) => Failure::new(Exit::Failed, why),
        StepError::Device(why) => Failure::new(Exit::Device, why),
        StepError::Scores(why) => Failure::new(Exit::File, why).help(
            "its weights are at fault, or `--dtype` has too small a range for it: `trafoc run` shows its outputs",
        ),
    }
}

/// Why a run of training ended early.
pub fn session_failure(error: SessionError) -> Failure {
    match error {
        SessionError::RunDir(error) => run_folder::run_failure(error),
        SessionError::Weights(error) => weights_failure(error),
        SessionError::Optimizer(error) => Failure::new(Exit::File, error.to_string()),
        SessionError::Step(error) => Failure::new(Exit::Failed, error.to_string()),
        SessionError::Order { .. } => Failure::new(Exit::File, error.to_string()).help(
            "that version continues it; here its last weights can begin a new run, with `--weights \
            RUN/checkpoints/step-.../model.safetensors`",
        ),
        SessionError::Data { .. } => Failure::usage(error.to_string())
            .help("`trafoc train RUN --recipe RECIPE --out NEW` trains its weights further, in a new run with other data"),
        SessionError::Beginning => Failure::new(Exit::File, error.to_string())
            .help("put the file of its weights back as it was, or begin a new run with the weights of today"),
        SessionError::NotANumber { .. } => Failure::new(Exit::Failed, error.to_string())
            .help("a lower `learning_rate`, a longer `warmup` or `clip: 1.0` in the recipe keeps it finite"),
    }
}

/// Why prepared data cannot be written or used.
pub fn store_failure(error: StoreError) -> Failure {
    let again = "`trafoc data SPEC --recipe RECIPE --out DIR` prepares it again";
    match &error {
        StoreError::Io(path, why) => {
            Failure::new(Exit::File, format!("`{}`: {}", path.display(), file::reason(why)))
        }
        StoreError::Refused(Refused::File { .. }) => Failure::new(Exit::File, error.to_string()),
        StoreError::Refused(Refused::Data) => Failure::new(Exit::Failed, error.to_string()),
        StoreError::OtherSpec { .. } | StoreError::OtherRecipe { .. } => {
            Failure::usage(error.to_string()).help(again)
        }
        StoreError::NotPrepared(_) | StoreError::Damaged { .. } | StoreError::Changed { .. } => {
            Failure::new(Exit::File, error.to_string()).help(again)
        }
    }
}
