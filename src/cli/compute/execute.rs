//! Runs a model for `trafoc run`: weights, inputs, device, outputs.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use burn::tensor::{Device, FloatDType};
use clap::ValueEnum;
use serde_json::Value as Json;
use trafoc_kernels::join_threads;

use super::failures::{inputs_failure, plan_failure, run_failure, weights_failure};
use super::packing::{fewer_bits, pack_as};
use super::run_folder::weights_of_run;
use crate::cli::command::Command;
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::overwrite::Mark;
use crate::cli::place::{Dtype, PlaceArgs, WeightsDtype};
use crate::cli::run::{Data, Run, Shown};
use crate::cli::setting::{DEVICE, USUAL_DEVICE};
use crate::cli::settings;
use crate::cli::subject::Subject;
use crate::cli::tensors::tensors_failure;
use crate::cli::ui::{Ui, path_line};
use crate::diag::count::counted;
use crate::interp::device::{self, Chosen, DeviceError};
use crate::interp::pack::{Packs, Placement, WeightType};
use crate::interp::room::free_memory;
use crate::interp::run::save_outputs;
use crate::interp::weights::WeightsError;
use crate::interp::{Captures, Inputs, Model, Options, Outputs, Plan, Reading, Value, Weights};
use crate::ir::{Role, Verified};
use crate::learn::marker::is_run;
use crate::read::{self, limit};
use crate::report::cost::cost;
use crate::report::{number, parameters};
use crate::source::columns;

impl Command for Run {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        execute(self, ui)
    }
}

/// Runs the model of a spec once.
///
/// # Errors
/// An argument names something that does not exist, does not fit, or is too large.
fn execute(run: &Run, ui: &mut Ui) -> Result<Output<Data>, Failure> {
    // Before anything is compiled or read, because the name alone is wrong.
    if let Some(path) = &run.outputs
        && !matches!(path.extension().and_then(|e| e.to_str()), Some("safetensors" | "json"))
    {
        let message = format!("outputs are written as .safetensors or .json, not to `{}`", path.display());
        return Err(Failure::usage(message));
    }
    run.force.refuse_unused(run.outputs.is_some())?;
    if let Some(path) = &run.outputs {
        let is_json = path.extension().is_some_and(|e| e == "json");
        // JSON has no place for a mark, so a file of it is never taken for one of trafoc's.
        let mark = if is_json { Mark::Unmarked } else { Mark::Outputs };
        run.force.permit(path, mark, "another `--outputs`")?;
    }
    let subject = run.spec.compile(ui)?;
    let json = completed(&subject, read_inputs(&run.inputs)?);
    let chosen = choose_place(&run.place, ui)?;
    // A file that is given comes before the run's own weights.
    let trained = if is_run(Path::new(&run.spec.spec)) && run.weights.is_none() {
        Some(weights_of_run(Path::new(&run.spec.spec), ui)?)
    } else {
        None
    };
    if run.seed.is_some() && (trained.is_some() || subject.model.is_some()) {
        let message = format!("`--seed` would have no effect: `{}` has weights of its own", run.spec.spec);
        return Err(Failure::usage(message));
    }
    let given = run.weights.as_deref().or(trained.as_deref());
    // Models of Hugging Face's library return their hidden states too.
    let hidden = subject.model.is_some().then(|| "hidden".to_owned());
    let captures = Captures::of(run.capture.iter().cloned().chain(hidden)).read(READING);
    let takes = takes(&subject.graph);
    let inputs = inputs_of(&subject.graph, &captures, &json, &chosen.device)?;
    // Weights in fewer bits are packed as they are read, by the plan that says which are those of linear layers and logits.
    let packs = match fewer_bits(run.kept.weights_dtype) {
        Some(of) => Some(Packs::new(&plan_of(&subject.graph, &Captures::none(), &chosen.device)?, of)),
        None => None,
    };
    let placement = Placement { device: &chosen.device, packs: packs.as_ref() };
    let weights = weights(&subject, given, run.seed.unwrap_or(0), placement, ui)?;
    let mut model = Model::new(subject.graph, weights).map_err(plan_failure)?;
    pack_as(run.kept.weights_dtype, ui, |of| model.pack(of))?;
    let options = Options { training: false, captures };
    let outputs = model.forward(&inputs, &options).map_err(|e| run_failure(e, &takes))?;
    let shown = outputs.iter().map(|(name, value)| show(name, value)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &run.outputs {
        save(path, &outputs)?;
    }
    let mut text = String::new();
    if run.outputs.is_none() || !ui.is_quiet() {
        text = ui.page(table(&shown, ui.width()));
    }
    if let Some(path) = &run.outputs {
        text += &path_line(path);
    }
    Ok(Output::new(text, Data { device: chosen.name, outputs: shown, path: run.outputs.clone() }))
}

/// What an output is shown and written from: its numbers, and the bytes of a file.
const READING: Reading = Reading { largest: 8, each: 0 };

/// The parameters of a model: those of a checkpoint, a Hugging Face model's own, or random ones.
///
/// # Errors
/// The files do not contain them, or they are too large.
pub(in crate::cli) fn weights<'a>(
    subject: &Subject,
    given: Option<&Path>,
    seed: u64,
    placement: impl Into<Placement<'a>>,
    ui: &Ui,
) -> Result<Weights, Failure> {
    let own = subject.model.as_ref().map(|m| m.folder.as_path());
    let placement = placement.into();
    match given.or(own) {
        Some(path) => load(subject, path, placement, ui),
        None => {
            refuse_what_does_not_fit(&subject.graph, placement)?;
            ui.note(&format!("note: random weights, seed {seed}; `--weights FILE` takes others"));
            Weights::init(&subject.graph, placement, seed).map_err(weights_failure)
        }
    }
}

/// The parameters of a checkpoint, by the names that the model's family, its spec or trafoc gives them.
///
/// # Errors
/// The files do not contain them.
pub(in crate::cli) fn load<'a>(
    subject: &Subject,
    path: &Path,
    placement: impl Into<Placement<'a>>,
    ui: &Ui,
) -> Result<Weights, Failure> {
    let (graph, placement) = (&subject.graph, placement.into());
    // Only headers are read here: that there are no weights is said before how much memory they would take.
    let tensors = match (&subject.model, &subject.spec.weights) {
        (None, None) => None,
        (Some(_), _) | (_, Some(_)) => Some(subject.tensors(path)?),
    };
    // Before the numbers are read, because that would take the memory.
    refuse_what_does_not_fit(graph, placement)?;
    let Some(mut tensors) = tensors else {
        // Files of trafoc have the parameters' paths as names, so no mapping is needed.
        let (weights, report) = Weights::load(graph, path, placement).map_err(weights_failure)?;
        report.not_finite.iter().for_each(|(path, count)| note_not_finite(path, *count, ui));
        return Ok(weights);
    };
    // `build` can return only its own errors, so the reason of a failed reading is kept here.
    let mut failure = None;
    let built = Weights::build(graph, placement, |path, slot| {
        tensors.sized(path, slot.shape.iter().product()).map_err(|error| {
            let text = error.to_string();
            failure = Some(tensors_failure(error));
            WeightsError::Size(text)
        })
    });
    tensors.not_finite.iter().for_each(|(path, count)| note_not_finite(path, *count, ui));
    built.map_err(|error| failure.unwrap_or_else(|| weights_failure(error)))
}

fn note_not_finite(path: &str, count: usize, ui: &Ui) {
    let are = if count == 1 { "is" } else { "are" };
    ui.note(&format!("note: {} of {path} {are} NaN or infinite", counted(count, "number")));
}

/// The device of a name, in single precision.
pub(in crate::cli) fn choose(name: Option<&str>, ui: &Ui) -> Result<Chosen, Failure> {
    opened(name, FloatDType::F32, ui)
}

/// The device and element type of arguments.
pub(in crate::cli) fn choose_place(place: &PlaceArgs, ui: &Ui) -> Result<Chosen, Failure> {
    let dtype = match place.dtype {
        Dtype::F32 => FloatDType::F32,
        Dtype::Bf16 => FloatDType::BF16,
        Dtype::F16 => FloatDType::F16,
    };
    opened(place.device.as_deref(), dtype, ui)
}

fn opened(name: Option<&str>, dtype: FloatDType, ui: &Ui) -> Result<Chosen, Failure> {
    let name = name.unwrap_or(USUAL_DEVICE);
    // Every command calls its ops from the thread that chooses the device.
    join_threads();
    let chosen = device::device_in(name, dtype).map_err(|e| {
        let exit = match &e {
            // A name or number that exists nowhere is a slip; a device that this machine lacks is not.
            DeviceError::Unknown { .. } | DeviceError::Index { .. } => Exit::Usage,
            DeviceError::NotCompiled { .. } | DeviceError::Absent { .. } | DeviceError::Dtype { .. } => {
                Exit::Device
            }
        };
        let help = match &e {
            DeviceError::Dtype { .. } => "leave `--dtype` out: every device computes in f32",
            _ => "`trafoc doctor` lists the devices that are there",
        };
        let failure = Failure::new(exit, e.to_string()).help(help);
        match settings::get().reminder(&DEVICE, name.as_ref()) {
            Some(reminder) => failure.help(reminder),
            None => failure,
        }
    })?;
    if name.trim().eq_ignore_ascii_case("auto") {
        ui.note(&format!("note: `auto` takes {}", chosen.name));
    }
    Ok(chosen)
}

/// Inputs with what a Hugging Face model's library makes itself.
pub(in crate::cli) fn completed(subject: &Subject, inputs: Json) -> Json {
    match subject.model.as_ref().and_then(|model| model.imported.target) {
        Some(target) => target.completed(inputs),
        None => inputs,
    }
}

pub(in crate::cli) fn read_inputs(path: &Path) -> Result<Json, Failure> {
    let named = if path == Path::new("-") { "stdin".to_owned() } else { format!("`{}`", path.display()) };
    // The inputs themselves, unless a file has that name.
    if let Some(text) = path.to_str().filter(|text| text.trim_start().starts_with('{') && !path.exists()) {
        return read::json(text.as_bytes())
            .map_err(|why| Failure::usage(format!("cannot read the inputs {named}: {why}")));
    }
    // A list alone does not say of which input it is.
    if let Some(text) = path.to_str().filter(|text| text.trim_start().starts_with('[') && !path.exists()) {
        return Err(Failure::usage(format!("the inputs {named} do not say which input they are"))
            .help(format!("`{{\"NAME\": {text}}}` names it, or a file that has this; `-` reads stdin")));
    }
    let fail = |why: String| Failure::new(Exit::File, format!("cannot read inputs from {named}: {why}"));
    let free = free_memory();
    read::json_once(path, limit::INPUTS, free).map_err(|e| match (e.kind(), free) {
        (ErrorKind::OutOfMemory, Some(free)) => {
            let free = number::bytes(free);
            let message = format!("the inputs in {named} need more memory than the {free} that are free");
            Failure::new(Exit::Refused, message).help("a smaller batch or a shorter sequence would fit")
        }
        (_, _) => fail(file::reason(&e)),
    })
}

/// The inputs of a run, checked before the weights are read or drawn, which can take minutes.
///
/// # Errors
/// The model cannot be run, does not take these inputs, or has no value to capture.
pub(in crate::cli) fn inputs_of(
    graph: &Verified,
    captures: &Captures,
    json: &Json,
    device: &Device,
) -> Result<Inputs, Failure> {
    let plan = plan_of(graph, captures, device)?;
    Inputs::from_json(&plan, json, device).map_err(|e| inputs_failure(&e.to_string(), &takes(graph)))
}

/// The plan of a model, made before its weights, which it says how to pack.
///
/// # Errors
/// The model cannot be run, or its weights would not fit into memory, which is the better reason if both are so.
pub(in crate::cli) fn plan_of(
    graph: &Verified,
    captures: &Captures,
    device: &Device,
) -> Result<Plan, Failure> {
    Plan::new(graph, captures)
        .map_err(|error| refuse_what_does_not_fit(graph, device).err().unwrap_or_else(|| plan_failure(error)))
}

/// What makes the weights of a model smaller, by what most of them are for.
fn what_is_smaller(graph: &Verified) -> String {
    let parameters = cost(graph).parameters;
    let most = parameters.roles.iter().max_by_key(|(_, count)| count.total);
    let Some((role, count)) = most else { return "a smaller model is needed".to_owned() };
    let sizes = match role {
        Role::Embedding | Role::Head => "a smaller `vocab` or `d_model`",
        Role::Attention | Role::Norm => "fewer layers or a smaller `d_model`",
        Role::Ffn => "fewer layers, or a smaller `d_model` or feed-forward part",
    };
    let bytes = number::bytes(count.total.saturating_mul(4));
    format!("{bytes} are for `{}`, which {sizes} would reduce", parameters::word(*role))
}

/// Weights beyond the memory that is free would only end the process.
pub(in crate::cli) fn refuse_what_does_not_fit<'a>(
    graph: &Verified,
    placement: impl Into<Placement<'a>>,
) -> Result<(), Failure> {
    let placement = placement.into();
    let plain = cost(graph).parameters.bytes(4);
    // Where the system does not say what is free, nothing can be refused in advance.
    let Some(free) = free_memory() else { return Ok(()) };
    // The largest of them are in memory several times while they are made.
    let made = placement.memory(graph).unwrap_or(plain);
    if made <= free {
        return Ok(());
    }
    let mut needed = match plain <= free {
        true => format!("{} while they are made", number::bytes(made)),
        false => format!("{} in single precision", number::bytes(plain)),
    };
    let mut help = what_is_smaller(graph);
    match placement.packs {
        Some(packs) if packs.weight_type() == WeightType::F32 => {
            let fits = |wanted: &WeightsDtype| {
                let packs = fewer_bits(*wanted).map(|of| packs.with_type(of));
                let placement = Placement { packs: packs.as_ref(), ..placement };
                placement.memory(graph).is_ok_and(|needed| needed <= free)
            };
            if let Some(dtype) = WeightsDtype::value_variants().iter().find(|dtype| fits(dtype)) {
                help = format!("weights in fewer bits would fit: `--weights-dtype {}`", dtype.word());
            }
        }
        Some(_) => {
            let packed = placement.memory(graph).map_err(weights_failure)?;
            // Where the device cannot pack them, they stay in single precision.
            if packed < plain {
                needed = format!("{} while they are packed", number::bytes(packed));
            }
        }
        None => {}
    }
    let free = number::bytes(free);
    let message = format!("the weights need {needed}, but only {free} of memory is free");
    Err(Failure::new(Exit::Refused, message).help(help))
}

/// The inputs a graph takes, for messages.
pub(in crate::cli) fn takes(graph: &Verified) -> String {
    let one = |v: &crate::ir::Value| format!("{} {}", v.name, v.ty);
    graph.root().arguments().iter().map(one).collect::<Vec<_>>().join(", ")
}

fn lost(name: &str, why: &str) -> Failure {
    let first = why.lines().next().unwrap_or_default();
    Failure::new(Exit::Device, format!("`{name}` cannot be read back from the device: {first}"))
}

fn show(name: &str, value: &Value) -> Result<Shown, Failure> {
    let shape = value.dims().unwrap_or_default();
    let data = value.to_data().map_err(|why| lost(name, &why))?;
    let (mut sum, mut min, mut max, mut finite, mut count) =
        (0.0, f64::INFINITY, f64::NEG_INFINITY, 0usize, 0usize);
    // Whole numbers and booleans are converted too, so that every output has the same columns.
    for n in data.iter::<f64>() {
        count += 1;
        if n.is_finite() {
            finite += 1;
            sum += n;
            min = min.min(n);
            max = max.max(n);
        }
    }
    // Without a finite number, the smallest and the largest would be infinite, which JSON cannot express.
    let of = |n: f64| if finite == 0 { 0.0 } else { n };
    Ok(Shown {
        name: name.to_owned(),
        shape,
        mean: of(sum / finite.max(1) as f64),
        min: of(min),
        max: of(max),
        // In single precision, so that no digits are shown that were not computed. Filtered after the first
        // four, so that a NaN among them is missing and not replaced by a later number.
        first: data.iter::<f32>().take(4).filter(|n| n.is_finite()).collect(),
        not_finite: count - finite,
    })
}

/// The outputs with what is known of their numbers. The first ones are below an output if a line of `width` columns has no room
/// for them.
fn table(shown: &[Shown], width: usize) -> String {
    let widest = shown.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for s in shown {
        let first: Vec<String> = s.first.iter().map(|n| format!("{n:.4}")).collect();
        let all =
            format!("{:widest$}  {:?}  mean {:.4}, {:.4} to {:.4}", s.name, s.shape, s.mean, s.min, s.max);
        let mut some = format!("{}, ...", first.join(", "));
        if s.not_finite > 0 {
            some += &format!("; {} not finite", s.not_finite);
        }
        let whole = format!("{all}; {some}");
        let _ = match columns(&whole) <= width {
            true => writeln!(text, "{whole}"),
            false => writeln!(text, "{all}\n    {some}"),
        };
    }
    text
}

fn save(path: &Path, outputs: &Outputs) -> Result<(), Failure> {
    if path.extension().is_some_and(|e| e == "json") {
        let all: serde_json::Map<String, Json> = outputs
            .iter()
            .map(|(name, value)| Ok((name.clone(), nested(name, value)?)))
            .collect::<Result<_, Failure>>()?;
        // In one line, because indented lists of numbers take several times the space.
        let text = serde_json::to_string(&all).map_err(|e| Failure::bug(e.to_string()))?;
        return file::write(path, &(text + "\n"));
    }
    file::make_folder(path)?;
    save_outputs(path, outputs).map_err(|e| Failure::new(Exit::File, format!("cannot write outputs: {e}")))
}

/// A tensor as nested lists. Numbers that are not finite are `null`, which JSON has for them.
fn nested(name: &str, value: &Value) -> Result<Json, Failure> {
    let shape = value.dims().unwrap_or_default();
    let data = value.to_data().map_err(|why| lost(name, &why))?;
    let mut values: Vec<Json> = match value {
        Value::Int(_) => data.iter::<i64>().map(Json::from).collect(),
        Value::Bool(_) => data.iter::<bool>().map(Json::from).collect(),
        Value::Float(_) | Value::Absent => data.iter::<f32>().map(Json::from).collect(),
    };
    // From the innermost axis outwards; the outermost is the list itself.
    for size in shape.iter().skip(1).rev() {
        // An axis may have the length 0, for which `chunks` would panic.
        values = values.chunks((*size).max(1)).map(|row| Json::Array(row.to_vec())).collect();
    }
    Ok(Json::Array(values))
}
