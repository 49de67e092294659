//! Programs of single steps compute the same bits as ops on tensors do.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trafoc::interp::Cache;
use trafoc::interp::pack::WeightType;

use super::*;

const TYPES: [WeightType; 4] = [WeightType::F32, WeightType::Bf16, WeightType::Int8, WeightType::Int4];

/// Decodes `time` positions one by one after a prompt of three, with weights of this type; with `padded`, some positions of
/// a source are padding. The outputs of all steps, and whether a program computed them.
fn decoded(
    graph: &Verified,
    of: WeightType,
    time: u64,
    padded: bool,
    with_tensors: bool,
) -> (Vec<Vec<u32>>, bool) {
    let mut model = model(graph.clone());
    // Small models without a matrix have nothing to pack.
    let is_packed = model.pack(of).is_ok();
    let lengths = Lengths { batch: 1, time, ..LENGTHS };
    let all: BTreeMap<String, Value> = model
        .plan()
        .inputs()
        .iter()
        // A padding mask is left out where that is possible, as for a single text.
        .filter(|input| !input.ty.optional || (padded && input.memory))
        .map(|input| {
            (
                input.name.clone(),
                if input.keep { source_mask(input, &lengths) } else { value(input, &lengths, 3) },
            )
        })
        .collect();
    let mut cache: Cache = if with_tensors { model.cache().with_tensors() } else { model.cache() };
    let mut found = Vec::new();
    let mut at = 0;
    while at < time as usize {
        let end = if at == 0 { 3 } else { at + 1 };
        let mut given = Inputs::new();
        for input in model.plan().inputs().iter().filter(|i| at == 0 || !i.memory) {
            let Some(value) = all.get(&input.name).cloned() else { continue };
            let value = match value {
                Value::Int(trafoc::interp::Ranked::R2(t)) if !input.memory => {
                    Value::from(t.narrow(1, at, end - at))
                }
                other => other,
            };
            given = given.with(&input.name, value);
        }
        let outputs = model.forward_cached(&given, &mut cache).unwrap();
        found.extend(outputs.values().map(|value| floats(value).iter().map(|x| x.to_bits()).collect()));
        at = end;
    }
    (found, is_packed && cache.has_program())
}

/// A mask whose last two positions are padding.
fn source_mask(input: &Input, lengths: &Lengths) -> Value {
    let shape: Vec<usize> = input.ty.shape.iter().map(|d| d.eval(lengths) as usize).collect();
    let count: usize = shape.iter().product();
    let keep: Vec<i64> = (0..count).map(|at| i64::from(at + 2 < count)).collect();
    Value::Int(trafoc::interp::Ranked::from_data(TensorData::new(keep, shape), &device()).unwrap())
}

/// Whether a program decodes this graph; its bits are those of tensors with every type of weights.
fn has_same_bits(name: &str, graph: &Verified, time: u64) -> bool {
    let mut has_program = false;
    let has_source = model(graph.clone()).plan().inputs().iter().any(|input| input.memory);
    for of in TYPES {
        for padded in [false, true].into_iter().filter(|padded| has_source || !padded) {
            let (wanted, _) = decoded(graph, of, time, padded, true);
            let (found, is_program) = decoded(graph, of, time, padded, false);
            assert_eq!(wanted, found, "{name} {of:?}, source padded: {padded}");
            has_program |= is_program;
        }
    }
    has_program
}

#[test]
fn programs_of_steps_have_the_bits_of_tensors() {
    if super::super::backend::name() != "flex" {
        return;
    }
    let mut without = Vec::new();
    let mut count = 0;
    for (name, graph) in cases() {
        if !graph.decodes {
            continue;
        }
        if has_same_bits(&name, &graph, 12) {
            count += 1;
        } else {
            without.push(name);
        }
    }
    println!("{count} decoders have a program, and these have none: {without:?}");
    assert!(count >= 84, "{count} decoders have a program, and these have none: {without:?}");
}

/// The buffers of the cache grow in between, and products and heads are divided among threads.
#[test]
fn long_and_wide_steps_have_the_bits_of_tensors() {
    if super::super::backend::name() != "flex" {
        return;
    }
    let text = "trafo: 1
name: wide
vocab: 300
context: 400
d_model: 256
embed: {position: rotary}
norm: rms_norm
decoder:
  layers: 2
  attention: {heads: 8, kv_heads: 2}
  ffn: {glu: {hidden: 700}}
head: lm
";
    assert!(has_same_bits("wide", &spec(text), 200));
}

/// A gate that is read again is copied, and the product keeps the copy's memory while others are computed.
#[test]
fn a_gate_that_is_read_again_has_the_bits_of_tensors() {
    if super::super::backend::name() != "flex" {
        return;
    }
    let text = "trafo: 1
name: again
vocab: 30
context: 40
d_model: 32
parts:
  twice: |
    a = linear[a](x, 48)
    y = silu(a) * linear[b](x, 48)
    c = linear[c](x, 48)
    d = linear[d](x, 48)
    linear[out](y + c * a + d * c, d_model)
decoder:
  layers: 2
  attention: {heads: 4}
  ffn: twice
head: lm
";
    assert!(has_same_bits("again", &spec(text), 12));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn random_programs_of_steps_have_the_bits_of_tensors(tape in crate::laws::tape()) {
        let text = crate::random::spec(&tape).replace("1000000007", "3");
        let front = crate::front::Front::of_text("tiny.yaml", &text, "specs");
        let graph = front.compilation.graph.unwrap();
        if graph.decodes && super::super::backend::name() == "flex" {
            has_same_bits("tiny", &graph, 6);
        }
    }
}
