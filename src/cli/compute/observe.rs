//! Runs a model for `trafoc inspect` and returns its values as plain numbers.

use std::path::Path;

use burn::prelude::Device;

use super::captured::{Words, captured, first_sequence, heads, tokens};
use super::failures::{plan_failure, run_failure, weights_failure};
use super::run_folder::weights_of_run;
use super::trained::Trained;
use super::{batch, example, execute, head};
use crate::cli::directory::config_of;
use crate::cli::inspect::{Observe, Tables, Wanted};
use crate::cli::model::ModelArgs;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::place::{Dtype, PlaceArgs, WeightsArgs, WeightsDtype};
use crate::cli::subject::Subject;
use crate::cli::ui::Ui;
use crate::hub::checkpoint::Checkpoint;
use crate::inspect::attention::grids;
use crate::inspect::flow::flow;
use crate::inspect::layers::{Outputs as LayerOutputs, planes};
use crate::inspect::positions;
use crate::inspect::sites::{self, Kind, Sequence, Site};
use crate::inspect::{Matrix, Report, start};
use crate::interp::device::Chosen;
use crate::interp::plan::Input;
use crate::interp::room::refuse_beyond_free;
use crate::interp::{Captures, Inputs, Model, Options, Outputs, Plan, Reading, Weights};
use crate::ir::paths::elements;
use crate::ir::{DType, Init, Verified};
use crate::learn::marker::is_run;
use crate::learn::run_dir;

/// The most elements of a tensor that are sampled to measure their standard deviation.
const DRAWN: u128 = 1 << 20;
/// The most parameters of a model that is run to measure initial activations.
const RUNS: u128 = 300_000_000;
/// The number of tokens of that run.
const TOKENS: u64 = 64;

/// Runs the model on the inputs, and makes the report from the values that it captures.
///
/// # Errors
/// An argument names something that does not exist, does not fit, or is too large.
pub fn observe(one: &Observe, ui: &mut Ui, wanted: Wanted) -> Result<Report, Failure> {
    let trained = trained(one, ui)?;
    if wanted == Wanted::Init {
        if trained.is_some() {
            return Err(Failure::usage("a run has been trained, so it no longer has its initial values")
                .help("give the spec instead of the run"));
        }
        let graph = one.spec.compile(ui)?.graph;
        return init(one, ui, graph);
    }
    let json = read(one, trained.as_ref(), ui, wanted)?;
    let meant = tokens(&json, trained.as_ref().map(|trained| &trained.codebook));
    // A copy stays for the model that it is compared with, which gets the same input.
    let report = shown(one, trained, json.clone(), ui, wanted)?;
    let Some(other) = one.other() else { return Ok(report) };
    let trained = self::trained(&other, ui)?;
    let json = match (&one.inputs, &other.text, &trained) {
        // Each model has its own ids for the text.
        (None, Some(_), Some(_)) => read(&other, trained.as_ref(), ui, wanted)?,
        (None, None, Some(second)) if tokens(&json, Some(&second.codebook)) != meant => {
            let message = format!(
                "the ids of the example mean other tokens in `{}`, so it is not the same input",
                other.spec.spec
            );
            return Err(
                Failure::usage(message).help("`--text TEXT` is read by each model with its own tokens")
            );
        }
        (_, _, _) => json,
    };
    let second = shown(&other, trained, json, ui, wanted)?;
    Ok(report.alternating_with(second, (&one.spec.spec, &other.spec.spec)))
}

/// Reads the inputs: from a file, from a text, or an example of the run's own data.
fn read(
    one: &Observe,
    trained: Option<&Trained>,
    ui: &mut Ui,
    wanted: Wanted,
) -> Result<serde_json::Value, Failure> {
    match (&one.inputs, &one.text, trained) {
        (Some(inputs), _, _) => {
            let json = execute::read_inputs(inputs)?;
            let count = json.as_object().into_iter().flat_map(|all| all.values());
            let count = count.filter_map(|value| value.as_array().map(Vec::len)).max().unwrap_or(0);
            if count > 1 && wanted.examples() == 1 {
                ui.note(&format!("note: shows the first of the {count} examples"));
            }
            Ok(json)
        }
        (None, Some(text), Some(trained)) => example::of_text(trained, text, one.language.as_deref()),
        (None, None, Some(trained)) => example::of_data(trained, wanted.examples(), ui),
        (None, Some(_), None) => {
            // A name that is misspelled is no spec.
            one.spec.compile(ui)?;
            Err(Failure::usage("a spec has no tokenizer for `--text`")
                .help("a run or a Hugging Face model directory has one, and `--weights` with `--codebook`")
                .help("`--inputs FILE` takes ids"))
        }
        (None, None, None) => {
            one.spec.compile(ui)?;
            Err(Failure::usage("this needs inputs")
                .help("`--inputs FILE` gives them, such as {\"tokens\": [[1, 2, 3]]}"))
        }
    }
}

/// Runs a model on the inputs, and makes the report from the values that it captures.
fn shown(
    one: &Observe,
    trained: Option<Trained>,
    json: serde_json::Value,
    ui: &mut Ui,
    wanted: Wanted,
) -> Result<Report, Failure> {
    let (subject, codebook, ready) = match trained {
        Some(run) => (run.subject, Some(run.codebook), Some((run.weights, run.device))),
        None => (one.spec.compile(ui)?, None, None),
    };
    if ready.is_some() || subject.model.is_some() {
        // Checked here and not with the other options, because only an opened model shows whether it has
        // weights.
        one.refuse(&["seed"], "the model has weights of its own")?;
    }
    let json = execute::completed(&subject, json);
    let name = subject.graph.name.clone();
    let found = sites::sites(&subject.graph);
    let words = Words::of(one, &json, codebook.as_ref());
    let mut all = one.chosen(&found);
    if wanted == Wanted::Flow {
        // Flow multiplies the matrices of one stack, so the layers of two kinds cannot be mixed.
        let kind = one.kind.map_or_else(|| usual(&all), Kind::from);
        if kind == Kind::Cross {
            let message = "flow follows self-attention; cross attention is not a sequence of layers";
            return Err(Failure::usage(message).help("`--kind encoder` or `--kind decoder`"));
        }
        all.retain(|site| site.kind == kind);
    }
    if wanted == Wanted::Steps {
        // Weights of pieces are refused only if there are no others.
        all.sort_by_key(|site| site.op.is_none());
        // Only one head is shown, so no other values are captured.
        all.truncate(1);
    }
    if all.is_empty() && matches!(wanted, Wanted::Attention | Wanted::Flow | Wanted::Steps) {
        return Err(one.chooses_none(&found));
    }
    if matches!(wanted, Wanted::Layers | Wanted::Norms) {
        refuse_absent_layer(one, &found)?;
    }
    let layers: Vec<&sites::Layer> = match wanted {
        Wanted::Layers => {
            let stack = one.stack()?;
            let fits = |layer: &&sites::Layer| {
                stack.is_none_or(|stack| stack == layer.stack) && one.layer.is_none_or(|i| i == layer.index)
            };
            found.layers.iter().filter(fits).collect()
        }
        Wanted::Init | Wanted::Attention | Wanted::Steps | Wanted::Norms | Wanted::Flow => Vec::new(),
    };
    let of_sites = || all.iter().flat_map(|site| [site.queries, site.keys]).collect();
    let (captures, shown): (Vec<String>, Vec<Sequence>) = match wanted {
        Wanted::Init => (Vec::new(), Vec::new()),
        Wanted::Attention | Wanted::Flow => {
            (all.iter().map(|site| site.weights.clone()).collect(), of_sites())
        }
        Wanted::Steps => (head::captures(&all)?, of_sites()),
        Wanted::Norms => (vec![batch::norm(one, &found)?.input.clone()], Vec::new()),
        Wanted::Layers => layers.iter().map(|layer| (layer.path.clone(), layer.sequence)).unzip(),
    };
    if captures.is_empty() {
        return Err(Failure::usage("the model has no layer of this kind"));
    }
    // Before the model runs: labels that fit no sequence are found at once and not after minutes.
    words.refuse_unused(&shown)?;
    let (ready, chosen) = match ready {
        Some((weights, chosen)) => (Some(weights), chosen),
        None => (None, execute::choose(one.device.as_deref(), ui)?),
    };
    let captures = Captures::of(captures).read(reading(wanted, &all));
    let inputs = execute::inputs_of(&subject.graph, &captures, &json, &chosen.device)?;
    let weights = match ready {
        Some(weights) => weights,
        None => execute::weights(&subject, one.weights.as_deref(), one.seed(), &chosen.device, ui)?,
    };
    let outputs = Loaded::of(subject.graph, weights, chosen)?.run(&inputs, captures)?;
    match wanted {
        // One layer at a time: the weights of all of them as they are drawn would take several times as much
        // memory.
        Wanted::Init | Wanted::Attention => {
            grids(&name, all.iter().map(|site| heads(one, site, &outputs, &words)))
        }
        Wanted::Steps => head::report(one, &name, &all, &outputs, &words),
        Wanted::Norms => {
            batch::report(&name, batch::norm(one, &found)?, (&outputs, &json), codebook.as_ref())
        }
        Wanted::Flow => {
            let layers =
                all.iter().map(|site| heads(one, site, &outputs, &words)).collect::<Result<Vec<_>, _>>()?;
            let size = layers.first().and_then(|l| l.weights.first()).map_or(0, |m| m.rows);
            // The last position sees the most of a causal model.
            let target = one.target.unwrap_or(size.saturating_sub(1));
            if target >= size {
                return Err(Failure::usage(format!("there is no position {target}: the input has {size}")));
            }
            Ok(flow(&name, &layers, target))
        }
        Wanted::Layers => {
            let shown = layers.into_iter().map(|layer| {
                let (rows, columns, values) = first_sequence(captured(&outputs, &layer.path)?)?;
                Ok(LayerOutputs {
                    title: format!("{} layer {}", layer.stack.word(), layer.index),
                    values: Matrix::new(rows, columns, values),
                    words: words.at(layer.sequence, rows)?,
                })
            });
            Ok(planes(&name, &shown.collect::<Result<Vec<_>, Failure>>()?))
        }
    }
}

/// Refuses a layer that no stack, or not the selected one, has.
///
/// # Errors
/// There is no such layer.
fn refuse_absent_layer(one: &Observe, found: &sites::Sites) -> Result<(), Failure> {
    let (Some(wanted), stack) = (one.layer, one.stack()?) else { return Ok(()) };
    let of_stack = found.layers.iter().filter(|layer| stack.is_none_or(|stack| stack == layer.stack));
    match of_stack.map(|layer| layer.index + 1).max() {
        Some(count) if wanted >= count => {
            Err(Failure::usage(format!("there is no layer {wanted}: a stack has {count}, counted from 0")))
        }
        // What a layer lacks is said where it is looked for.
        Some(_) | None => Ok(()),
    }
}

/// The memory that pictures need for captured values, in bytes per number: 4 in single precision as it is
/// read, 8 in double as it is computed with, and 16 for a cell of a heatmap, which may be absent.
fn reading(wanted: Wanted, all: &[Site]) -> Reading {
    let heads = all.iter().map(|site| site.heads).min().unwrap_or(1).max(1);
    match wanted {
        Wanted::Init | Wanted::Attention | Wanted::Steps => Reading { largest: 24, each: 0 },
        // The weights of all layers, and of each layer three matrices that are a mean over its heads.
        Wanted::Flow => Reading { largest: 4, each: 8 + 24u64.div_ceil(heads) },
        Wanted::Norms => Reading { largest: 32, each: 0 },
        Wanted::Layers => Reading { largest: 12, each: 8 },
    }
}

/// The model in the folder of a run, if the argument is one.
fn trained(one: &Observe, ui: &mut Ui) -> Result<Option<Trained>, Failure> {
    let model = one.spec.spec.clone();
    let root = Path::new(&model);
    // For a model directory, only a text needs the tokenizer; ids can be shown without it.
    let reads = one.text.is_some() && config_of(root).is_some();
    if !run_dir::is_run(root) && !reads && one.codebook.is_none() {
        return Ok(None);
    }
    let arguments = ModelArgs {
        model,
        over: one.spec.over().clone(),
        weights: one.weights.clone(),
        codebook: one.codebook.clone(),
        checkpoint: None,
        place: PlaceArgs { device: one.device.clone(), dtype: Dtype::F32 },
        kept: WeightsArgs { weights_dtype: WeightsDtype::F32 },
    };
    Trained::open(&arguments, ui).map(Some)
}

/// The kind of attention whose flow is shown by default.
fn usual(all: &[Site]) -> Kind {
    let has = |kind| all.iter().any(|s| s.kind == kind);
    // In an encoder-decoder, the decoder writes the text.
    if has(Kind::Decoder) { Kind::Decoder } else { Kind::Encoder }
}

/// The learned tables of positions in a run or a model's directory; empty for a spec.
///
/// # Errors
/// The files do not contain them.
pub fn trained_tables(subject: &Subject, path: &Path, ui: &mut Ui) -> Result<Tables, Failure> {
    let wanted = positions::tables(&subject.graph);
    let file = match &subject.model {
        // Nothing has to be read for positions that are computed.
        _ if wanted.is_empty() => None,
        _ if is_run(path) => Some(weights_of_run(path, ui)?),
        Some(model) if Checkpoint::is_in(path) => Some(model.folder.clone()),
        Some(_) => {
            ui.note("note: there are no weights in safetensors, so positions are as before training");
            None
        }
        None => None,
    };
    let Some(file) = file else { return Ok(Tables::new()) };
    // On the default device, because numbers are only read here.
    let weights = execute::load(subject, &file, &execute::choose(None, ui)?.device, ui)?;
    Ok(wanted.into_iter().filter_map(|path| Some((path.clone(), weights.values(&path)?))).collect())
}

/// A model with its weights, on a device.
struct Loaded {
    model: Model,
    takes: String,
    device: Device,
}

impl Loaded {
    /// A model with random weights by the given seed, which a note mentions.
    fn random(one: &Observe, ui: &Ui, graph: Verified) -> Result<Self, Failure> {
        let chosen = execute::choose(one.device.as_deref(), ui)?;
        execute::refuse_what_does_not_fit(&graph, &chosen.device)?;
        ui.note(&format!("note: random weights, seed {}", one.seed()));
        let weights = Weights::init(&graph, &chosen.device, one.seed()).map_err(weights_failure)?;
        Self::of(graph, weights, chosen)
    }

    fn of(graph: Verified, weights: Weights, chosen: Chosen) -> Result<Self, Failure> {
        let takes = execute::takes(&graph);
        let model = Model::new(graph, weights).map_err(plan_failure)?;
        Ok(Self { model, takes, device: chosen.device })
    }

    fn run(&self, inputs: &Inputs, captures: Captures) -> Result<Outputs, Failure> {
        let options = Options { training: false, captures };
        self.model.forward(inputs, &options).map_err(|e| run_failure(e, &self.takes))
    }
}

fn init(one: &Observe, ui: &mut Ui, graph: Verified) -> Result<Report, Failure> {
    let found = sites::sites(&graph);
    let (name, context) = (graph.name.clone(), graph.context);
    let started = start::started(&graph);
    let sampled: Vec<Option<f64>> = started.iter().map(|p| drawn(p, one.seed())).collect();
    let total = crate::report::cost::cost(&graph).parameters.all().total;
    let mut depth = Vec::new();
    if total <= RUNS {
        let captures: Vec<String> = found.layers.iter().map(|l| l.path.clone()).collect();
        if !captures.is_empty() {
            let model = Loaded::random(one, ui, graph)?;
            let inputs = some_inputs(model.model.plan(), context, &model.device)?;
            let outputs = model.run(&inputs, Captures::of(captures).read(reading(Wanted::Layers, &[])))?;
            for layer in &found.layers {
                let (_, _, values) = first_sequence(captured(&outputs, &layer.path)?)?;
                depth.push((layer.stack, layer.index, variance(&values)));
            }
        }
    } else {
        ui.note(
            "note: the model is too large to run with random weights, so only its parameters are \
            sampled",
        );
    }
    Ok(start::report(&name, &started, &sampled, &depth))
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n
}

/// The standard deviation of the first elements of a parameter, as the interpreter initialises them.
fn drawn(one: &start::Started, seed: u64) -> Option<f64> {
    let shape = &one.parameter.parameter.shape;
    let all = elements(shape);
    // An orthogonal matrix is computed as a whole, and logarithms by row, so no part of them can be sampled.
    let is_whole = matches!(one.plain, Init::Orthogonal { .. } | Init::Logarithms { .. });
    let shape: Vec<usize> = match (is_whole, all <= DRAWN) {
        (true, false) => return None,
        (true, true) => shape.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect(),
        (false, _) => vec![usize::try_from(all.min(DRAWN)).unwrap_or(0)],
    };
    // The interpreter draws every element by its index, so the first of a short tensor are those of the whole
    // one.
    let values = crate::interp::init::start(&one.plain, &shape, seed, &one.first);
    let values: Vec<f64> = values.into_iter().map(f64::from).collect();
    Some(variance(&values).sqrt())
}

/// Valid inputs for a model: ids spread over their tables, an image with a pattern.
///
/// # Errors
/// They need more memory than is free.
fn some_inputs(plan: &Plan, context: u64, device: &Device) -> Result<Inputs, Failure> {
    // Masks may be absent, and then nothing is hidden.
    let wanted = plan.inputs().iter().filter(|v| !v.ty.optional);
    let shaped: Vec<(&Input, Vec<u64>)> = wanted
        .map(|value| {
            let sizes = value.ty.shape.iter().enumerate();
            let sizes = sizes.map(|(i, dim)| match dim.constant().and_then(|n| u64::try_from(n).ok()) {
                Some(n) => n,
                // The first axis is the batch.
                None if i == 0 => 1,
                None => context.clamp(1, TOKENS),
            });
            (value, sizes.collect())
        })
        .collect();
    let count = |sizes: &[u64]| sizes.iter().fold(1u128, |n, size| n.saturating_mul(u128::from(*size)));
    // The numbers and the tensor that is made of them.
    let needed = shaped.iter().fold(0u128, |all, (_, sizes)| all.saturating_add(count(sizes)));
    let needed = needed.saturating_mul(2 * 4);
    refuse_beyond_free(needed).map_err(|too_much| {
        Failure::new(Exit::Refused, too_much.says("an example of the input"))
            .help("a smaller image would fit")
    })?;
    let mut all = Inputs::new();
    for (input, sizes) in shaped {
        let rows = input.rows.as_ref().map_or(1, |(rows, _)| *rows).max(1);
        let number = |i: u64| match input.ty.dtype {
            // A multiplicative sequence reaches many different rows of the table. The factor is a prime
            // next to 2^32 divided by the golden ratio.
            DType::Int => ((i.wrapping_mul(2_654_435_761) >> 7) % rows) as f64,
            DType::Bool => 0.0,
            // Between -1 and 1, about the range of normalised pixels.
            DType::Float => (i as f64 * 0.7).sin(),
        };
        let numbers = (0..u64::try_from(count(&sizes)).unwrap_or(u64::MAX)).map(number);
        let shape = sizes.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        all = all
            .with_numbers(input, shape, numbers, device)
            .map_err(|fault| Failure::bug(fault.to_string()))?;
    }
    Ok(all)
}
