//! trafoc as a library: a spec is compiled, counted, run and written as Rust. `cargo run --example library`

use std::error::Error;

use burn::prelude::Device;
use serde_json::json;
use trafoc::compile::compile;
use trafoc::diag::render;
use trafoc::emit::rust::{self, Form};
use trafoc::interp::{Inputs, Model, Options, Weights};
use trafoc::report::cost::cost;
use trafoc::report::summary::summary;
use trafoc::spec::load::{self, NoFiles};
use trafoc::syntax::Notation;

/// A little language model, for the example and its test.
pub const SPEC: &str = "
trafo: 1
name: little
vocab: 30
context: 16
d_model: 16
decoder: {layers: 2, attention: {heads: 2}}
head: lm
";

/// What the example makes of a spec.
#[derive(Debug)]
pub struct Built {
    /// How many parameters the model has.
    pub parameters: u128,
    /// The shape of its output for a batch of one text of three tokens.
    pub logits: Vec<usize>,
    /// The model as a Rust file.
    pub rust: String,
}

/// Compiles, counts, runs and emits a spec.
///
/// # Errors
/// The spec is wrong; the message is the one the command line would give.
pub fn make(spec: &str) -> Result<Built, Box<dyn Error>> {
    // Texts live in one map, so that every message can show its place. A spec that comes from no file
    // extends none.
    let mut sources = load::sources();
    let id = sources.add("little.yaml", spec);
    let compilation = compile(&mut sources, id, Notation::Yaml, &[], &mut NoFiles)?;
    let Some(graph) = compilation.graph else {
        return Err(render::render(&compilation.diagnostics, &sources, false, 80).into());
    };

    // Counts in closed form; `summary` is what `trafoc build` prints.
    let parameters = cost(&graph).parameters.all().total;
    println!("{}", summary(&graph));

    // The emitted file depends on burn and the crate of kernels; `Form::Standalone` needs burn alone.
    let rust = rust::source(&graph, &sources, "little.yaml", Form::Kernels)?;

    // Random weights from a seed; `Weights::load` reads a file instead.
    let device = Device::flex();
    let weights = Weights::init(&graph, &device, 0)?;
    let model = Model::new(graph, weights)?;
    let inputs = Inputs::from_json(model.plan(), &json!({ "tokens": [[1, 2, 3]] }), &device)?;
    let outputs = model.forward(&inputs, &Options::default())?;
    let logits = outputs.get("logits").and_then(|value| value.dims()).unwrap_or_default();
    Ok(Built { parameters, logits, rust })
}

#[allow(dead_code, reason = "as a module of the tests it is not called")]
fn main() -> Result<(), Box<dyn Error>> {
    let made = make(SPEC)?;
    println!("{} parameters, logits {:?}", made.parameters, made.logits);
    println!("{}", made.rust.lines().next().unwrap_or_default());
    Ok(())
}
