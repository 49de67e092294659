//! Every emitted model computes the same bits as the interpreter, from the same file of weights: for the
//! whole sequence at once and, if the model decodes, step by step.

#![cfg(feature = "models")]

use std::path::{Path, PathBuf};

use burn::prelude::*;
use trafoc::compile::compile;
use trafoc::interp::{Inputs, Model, Options, Outputs, Value, Weights};
use trafoc::ir::{DType, Layer, MemberKind, Verified};
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load::{self, Files};
use trafoc::syntax::Notation;
use trafoc::syntax::set::parse_set;

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// The number of sequences, of their tokens, and of the source's tokens.
const BATCH: usize = 2;
const TIME: usize = 5;
const SOURCE: usize = 4;

/// The shape and the bits of every output.
type Bits = Vec<(Vec<usize>, Vec<u32>)>;
type Full = fn(&Path, &Device, &Given) -> Result<Bits, String>;
type Cached = fn(&Path, &Device, &[Given]) -> Result<Vec<Bits>, String>;

/// The inputs by name.
#[derive(Clone, Default)]
struct Given(Vec<(String, Input)>);

#[derive(Clone)]
enum Input {
    Row(Tensor<1, Int>),
    Ids(Tensor<2, Int>),
    Image(Tensor<4>),
}

/// A type that a parameter of a model's method can have.
trait Take: Sized {
    fn of(input: Option<Input>) -> Self;
}

impl Take for Tensor<1, Int> {
    fn of(input: Option<Input>) -> Self {
        if let Some(Input::Row(row)) = input { row } else { panic!("no row of ids") }
    }
}

impl Take for Tensor<2, Int> {
    fn of(input: Option<Input>) -> Self {
        if let Some(Input::Ids(ids)) = input { ids } else { panic!("no ids") }
    }
}

impl Take for Option<Tensor<2, Int>> {
    fn of(input: Option<Input>) -> Self {
        input.map(|input| Take::of(Some(input)))
    }
}

impl Take for Tensor<4> {
    fn of(input: Option<Input>) -> Self {
        if let Some(Input::Image(image)) = input { image } else { panic!("no image") }
    }
}

impl Given {
    fn take<T: Take>(&self, name: &str) -> T {
        T::of(self.0.iter().find(|(known, _)| known == name).map(|(_, input)| input.clone()))
    }

    fn inputs(&self, graph: &Verified, without_source: bool) -> Inputs {
        let mut inputs = Inputs::new();
        for (name, input) in &self.0 {
            let value = graph.root().arguments().iter().find(|v| v.name == *name).unwrap();
            let of_target = value.ty.shape.iter().any(|dim| dim.to_string().contains('T'));
            if without_source && !of_target {
                continue;
            }
            inputs = match input.clone() {
                Input::Row(row) => inputs.with(name, row),
                Input::Ids(ids) => inputs.with(name, ids),
                Input::Image(image) => inputs.with(name, image),
            };
        }
        inputs
    }
}

/// Converts outputs to bits.
trait ToBits {
    fn bits(self) -> Bits;
}

impl<const D: usize> ToBits for Tensor<D> {
    fn bits(self) -> Bits {
        let shape = self.dims().to_vec();
        vec![(shape, self.into_data().iter::<f32>().map(f32::to_bits).collect())]
    }
}

impl<const D: usize> ToBits for (Tensor<D>, Tensor<D>) {
    fn bits(self) -> Bits {
        [self.0.bits(), self.1.bits()].concat()
    }
}

fn bits_of(outputs: Outputs) -> Bits {
    let of = |value: &Value| {
        let bits = value.to_floats().unwrap().into_iter().map(f32::to_bits).collect();
        (value.dims().unwrap(), bits)
    };
    outputs.values().map(of).collect()
}

struct Folder(PathBuf);

impl Files for Folder {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let text = std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())?;
        Ok((sources.add(path, text), Notation::from_path(path).unwrap_or(Notation::Yaml)))
    }
}

fn graph(spec: &str, settings: &[&str]) -> Verified {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(spec);
    let mut folder = Folder(path.parent().unwrap().to_owned());
    let mut sources = load::sources();
    let name = path.file_name().unwrap().to_str().unwrap();
    let (id, notation) = folder.open(&mut sources, SourceId::default(), name).unwrap();
    let settings: Vec<_> = settings.iter().map(|s| parse_set(&mut sources, s).unwrap()).collect();
    compile(&mut sources, id, notation, &settings, &mut folder).unwrap().graph.unwrap()
}

/// Random weights that are neither zero nor one anywhere, so that biases and norms matter too.
fn weights(graph: &Verified, device: &Device) -> Weights {
    Weights::build(graph, device, |path, slot| {
        let mut state = path.bytes().fold(17u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * 0.8
        };
        Ok((0..slot.shape.iter().product()).map(|_| next()).collect())
    })
    .unwrap()
}

/// The number of rows of the table in which an input is looked up.
fn rows(graph: &Verified, input: &str) -> i64 {
    let table = match input {
        "language" => "languages",
        "token_types" => "segments",
        _ => "tokens",
    };
    let members = graph.modules.iter().flat_map(|m| &m.members).filter(|m| m.name == table);
    let rows = members.filter_map(|m| match &m.kind {
        MemberKind::Layer(Layer::Embedding { rows, .. }) => Some(rows.get() as i64),
        _ => None,
    });
    rows.min().unwrap_or(2)
}

/// The inputs for the positions `from..to`, with or without the optional ones.
fn given(graph: &Verified, (from, to): (usize, usize), with_optional: bool, device: &Device) -> Given {
    let mut all = Vec::new();
    for value in graph.root().arguments().iter().filter(|v| with_optional || !v.ty.optional) {
        let sizes: Vec<(usize, usize)> = value
            .ty
            .shape
            .iter()
            .map(|dim| match dim.to_string().as_str() {
                "B" => (0, BATCH),
                "T" => (from, to),
                "S" => (0, SOURCE),
                "P+T" => (0, to),
                other => (0, other.parse().unwrap()),
            })
            .collect();
        let is_mask = value.name.ends_with("mask");
        let bound = rows(graph, &value.name);
        // The first key is never padding; the second sequence ends earlier.
        let id = |b: usize, t: usize| match is_mask {
            true => i64::from(t == 0 || (b + t) % 4 != 3),
            false => (7 * b as i64 + 5 * t as i64 + 3) % bound,
        };
        let input = match (value.ty.dtype, sizes.as_slice()) {
            (DType::Int, [(_, n)]) => {
                let ids: Vec<i64> = (0..*n).map(|b| id(b, 1)).collect();
                Input::Row(Tensor::from_data(TensorData::new(ids, [*n]), device))
            }
            (DType::Int, [(_, n), (start, end)]) => {
                let ids: Vec<i64> = (0..*n).flat_map(|b| (*start..*end).map(move |t| id(b, t))).collect();
                Input::Ids(Tensor::from_data(TensorData::new(ids, [*n, end - start]), device))
            }
            (DType::Float, [(_, n), (_, c), (_, h), (_, w)]) => {
                let pixels: Vec<f32> = (0..n * c * h * w).map(|i| (i as f32 * 0.37).sin()).collect();
                Input::Image(Tensor::from_data(TensorData::new(pixels, [*n, *c, *h, *w]), device))
            }
            other => panic!("an input {other:?}"),
        };
        all.push((value.name.clone(), input));
    }
    Given(all)
}

/// How far the same numbers may be apart that are computed in another order, relative to the largest: the bound of
/// `tests/it/backend.rs` for two ways to the same numbers on flex.
const ROUNDING: f32 = 1e-5;

/// Whether outputs are equal, to the bit where the bound is zero.
fn same(given: &[Bits], wanted: &[Bits], bound: f32) -> bool {
    if bound == 0.0 {
        return given == wanted;
    }
    let outputs = given.iter().flatten().zip(wanted.iter().flatten());
    given.iter().map(Vec::len).eq(wanted.iter().map(Vec::len))
        && outputs.into_iter().all(|((shape, bits), (wanted_shape, wanted))| {
            let float = |bits: &u32| f32::from_bits(*bits);
            let largest = wanted.iter().map(float).fold(0.0f32, |most, x| most.max(x.abs()));
            let near = |(a, b): (&u32, &u32)| (float(a) - float(b)).abs() <= bound * largest;
            shape == wanted_shape && bits.iter().zip(wanted).all(near)
        })
}

fn check(spec: &str, settings: &[&str], full: Full, cached: Option<Cached>, bound: f32) {
    let device = Device::flex();
    let graph = graph(spec, settings);
    let weights = weights(&graph, &device);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{}-{bound}.safetensors", spec.replace('/', "-")));
    weights.save(&file, &Default::default()).unwrap();
    let model = Model::new(graph.clone(), weights).unwrap();
    for with_optional in [false, true] {
        let whole = given(&graph, (0, TIME), with_optional, &device);
        let inputs = whole.inputs(&graph, false);
        let wanted = bits_of(model.forward(&inputs, &Options::default()).unwrap());
        let outputs = full(&file, &device, &whole).unwrap();
        assert!(same(&[outputs], &[wanted], bound), "{spec}, optional inputs: {with_optional}");
        let Some(cached) = cached else { continue };
        let steps: Vec<Given> = [(0, 2), (2, 3), (3, TIME)]
            .into_iter()
            .map(|range| given(&graph, range, with_optional, &device))
            .collect();
        let mut cache = model.cache();
        let wanted: Vec<Bits> = steps
            .iter()
            .enumerate()
            .map(|(i, step)| bits_of(model.forward_cached(&step.inputs(&graph, i > 0), &mut cache).unwrap()))
            .collect();
        assert!(
            same(&cached(&file, &device, &steps).unwrap(), &wanted, bound),
            "{spec} step by step, optional inputs: {with_optional}"
        );
    }
}
