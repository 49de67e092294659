//! What is refused, and with which messages.

use indexmap::IndexMap;
use safetensors::SafeTensors;
use serde_json::json;
use trafoc::interp::tensor_file::TensorFile;
use trafoc::interp::{Captures, device};

use super::*;

const LEARNED: &str = "
trafo: 1
name: small
vocab: 11
context: 6
d_model: 8
embed: {position: learned}
decoder: {layers: 2, attention: {heads: 2}}
head: lm
";

const ENCODER: &str = "
trafo: 1
name: small
vocab: 11
context: 6
d_model: 8
encoder: {layers: 1, attention: {heads: 2}}
head: {classify: {classes: 3}}
";

fn refused(model: &Model, json: serde_json::Value) -> String {
    match Inputs::from_json(model.plan(), &json, &device()) {
        Err(error) => error.to_string(),
        Ok(inputs) => model.forward(&inputs, &Options::default()).unwrap_err().to_string(),
    }
}

#[test]
fn inputs_that_do_not_fit() {
    let decoder = model(spec(LEARNED));
    let encoder = model(spec(ENCODER));
    let seen = [
        refused(&decoder, json!({"token": [[1]]})),
        refused(&decoder, json!({})),
        refused(&decoder, json!([1, 2])),
        refused(&decoder, json!({"tokens": [1, 2]})),
        refused(&decoder, json!({"tokens": [[[1], [2]]]})),
        refused(&decoder, json!({"tokens": [[1, 2], [3]]})),
        refused(&decoder, json!({"tokens": [[1, 11]]})),
        refused(&decoder, json!({"tokens": [[1, -1]]})),
        refused(&decoder, json!({"tokens": [[1, 2.5]]})),
        refused(&decoder, json!({"tokens": [[1, "two"]]})),
        refused(&decoder, json!({"tokens": [[]]})),
        refused(&decoder, json!({"tokens": [[1, 2, 3, 4, 5, 6, 7]]})),
        refused(&encoder, json!({"tokens": [[1, 2]], "mask": [[1, 2]]})),
        refused(&encoder, json!({"tokens": [[1, 2]], "mask": [[1, 1, 0]]})),
        refused(&encoder, json!({"tokens": [[12]], "mask": 1, "masc": [[1]]})),
    ];
    insta::assert_snapshot!(seen.join("\n"), @r#"
    the model has no input `token`; did you mean `tokens`?
    the input `tokens` (int[B,T]) is missing
    inputs must be an object that maps names to nested lists
    input `tokens`: its numbers are nested 1 deep, but int[B,T] needs 2
    input `tokens`: there is a list at [0][0], where int[B,T] must have a number
    input `tokens`: the list at [1] has 1, but the first one has 2
    input `tokens`: 11 at [0][1] is outside of embed.tokens, whose rows are 0 to 10
    input `tokens`: -1 at [0][1] is not an id
    input `tokens`: 2.5 at [0][1] is not an id
    input `tokens`: `"two"` at [0][1] is not a number
    input `tokens`: it is empty
    the sequence has 7 positions, but `embed.positions` has only 6 rows
    input `mask`: 2 at [0][1] is neither 1 (keep) nor 0 (padding)
    the input `mask` has the shape [1, 3], but int[B,T]? is [1, 2]
    input `tokens`: 12 at [0][0] is outside of embed.tokens, whose rows are 0 to 10
    input `mask`: its numbers are nested 0 deep, but int[B,T]? needs 2
    the model has no input `masc`; did you mean `mask`?
    "#);
}

#[test]
fn the_next_position_beyond_a_learned_table_is_refused_while_decoding() {
    let model = model(spec(LEARNED));
    let tokens = |n: usize| {
        let ids = TensorData::new(vec![1i64; n], [1, n]);
        Inputs::new().with("tokens", Tensor::<2, Int>::from_data(ids, &device()))
    };
    let mut cache = model.cache();
    model.forward_cached(&tokens(5), &mut cache).unwrap();
    model.forward_cached(&tokens(1), &mut cache).unwrap();
    let error = model.forward_cached(&tokens(1), &mut cache).unwrap_err();
    insta::assert_snapshot!(error, @"the sequence has 7 positions, but `embed.positions` has only 6 rows");
    assert_eq!(cache.len(), 6);
}

#[test]
fn a_model_that_sees_the_future_has_no_cache() {
    let model = model(spec(ENCODER));
    let error = model.forward_cached(&Inputs::new(), &mut model.cache()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("its decoder is not causal, or its rotary angles change with the length"),
        "{error}"
    );
}

#[test]
fn captures_that_name_nothing() {
    let graph = spec(LEARNED);
    let error = |path: &str| Plan::new(&graph, &Captures::of([path])).unwrap_err().to_string();
    // The norms of the block are more like a third one than its other values.
    let third = error("decoder.blocks.0.norm3");
    assert!(third.contains("there are decoder.blocks.0.norm1, decoder.blocks.0.norm2"), "{third}");
    let seen = [
        error("decoder.blocks.3.attention.weights"),
        error("decoder.blocks.0.attention.weight"),
        error("decoder.blocks.*.atention.weights"),
        error("nope"),
        error("attention.qkv"),
    ];
    insta::assert_snapshot!(seen.join("\n"), @r"
    no value is called `decoder.blocks.3.attention.weights`; there are decoder.blocks.0.attention.weights, decoder.blocks.1.attention.weights, decoder.blocks.0.attention, ...
    no value is called `decoder.blocks.0.attention.weight`; there are decoder.blocks.0.attention.weights, decoder.blocks.0.attention, decoder.blocks.0.attention.x, ...
    no value is called `decoder.blocks.*.atention.weights`; there are decoder.blocks.0.attention.weights, decoder.blocks.1.attention.weights, ...
    no value is called `nope`; there are decoder.blocks.0.norm1, decoder.blocks.0.norm2, tokens, ...
    no value is called `attention.qkv`; there are decoder.blocks.0.attention.q, decoder.blocks.0.attention.k, decoder.blocks.0.attention.v, ...
    ");
}

/// What can be captured by the name of a part is suggested for a slip in that name.
#[test]
fn a_misspelled_part_is_suggested() {
    let graph = spec(LEARNED);
    for (typed, meant) in [("nrm2", "norm2"), ("nomr1", "norm1")] {
        let path = format!("decoder.blocks.1.{typed}");
        let said = Plan::new(&graph, &Captures::of([path])).unwrap_err().to_string();
        assert!(said.contains(&format!("there are decoder.blocks.1.{meant},")), "{said}");
    }
}

/// A part is captured by the name the equation gives it, though its result goes by the variable it is
/// assigned to.
#[test]
fn parts_are_captured_by_their_names() {
    let graph = spec(LEARNED);
    for path in ["decoder.blocks.0.attention", "decoder.blocks.*.ffn", "decoder.blocks.1", "decoder"] {
        assert!(Plan::new(&graph, &Captures::of([path])).is_ok(), "{path}");
    }
}

/// The table `tokens` of the embedding looks up ids of the same name: the path means the module's result.
#[test]
fn a_module_is_captured_rather_than_an_argument_of_its_name() {
    let model = model(spec(LEARNED));
    let inputs = Inputs::from_json(model.plan(), &json!({ "tokens": [[1, 2, 3]] }), &device()).unwrap();
    let captures = Captures::of(["embed.tokens", "tokens"]);
    let outputs = model.forward(&inputs, &Options { training: false, captures }).unwrap();
    assert_eq!(outputs["embed.tokens"].dims(), Some(vec![1, 3, 8]));
    assert_eq!(outputs["tokens"].dims(), Some(vec![1, 3]));
}

#[test]
fn devices_by_name() {
    let error = |name: &str| device::device(name).unwrap_err().to_string();
    assert_eq!(device::device("FLEX").unwrap().name, "flex");
    assert!(device::device("auto").is_ok());
    insta::assert_snapshot!([error("flexx"), error("tpu"), error("flex:0"), error("wgpu:x")].join("\n"), @r"
    no device is called `flexx`; did you mean `flex`?
    no device is called `tpu`; the devices are auto, flex, wgpu, vulkan, metal, cuda, rocm, tch, tch-cuda, cpu
    `flex:0`: there is only one flex, so it takes no number
    `wgpu:x`: `x` is not the number of a device; the first one is wgpu:0
    ");
    for backend in device::BACKENDS.iter().filter(|b| !b.compiled) {
        let said = error(backend.name);
        assert!(said.contains(&format!("--features {}", backend.feature)), "{said}");
    }
}

#[test]
fn weights_survive_a_file_and_other_readers_read_it() {
    let graph = spec(LEARNED);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let weights = Weights::init(&graph, &device(), 5).unwrap();
    let metadata = IndexMap::from([("spec".to_owned(), "small".to_owned())]);
    weights.save(&path, &metadata).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the file");
    let (again, report) = Weights::load(&graph, &path, &device()).unwrap();
    assert!(report.not_finite.is_empty());
    let bytes = std::fs::read(&path).unwrap();
    let other = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(other.len(), weights.layout().len());
    for (path, slot) in weights.layout() {
        assert_eq!(weights.values(path), again.values(path));
        assert_eq!(other.tensor(path).unwrap().shape(), slot.shape);
    }
}

#[test]
fn every_difference_between_file_and_model_is_said_at_once() {
    let graph = spec(LEARNED);
    let wider =
        spec(&LEARNED.replace("vocab: 11", "vocab: 12").replace("position: learned", "position: none"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    Weights::init(&wider, &device(), 5).unwrap().save(&path, &IndexMap::new()).unwrap();
    let error = Weights::load(&graph, &path, &device()).unwrap_err().to_string();
    let error = error.replace(folder.path().to_str().unwrap(), "");
    insta::assert_snapshot!(error, @r"
    /model.safetensors does not contain this model's parameters
      embed.tokens.weight has the shape [12, 8], the model's has [11, 8]
      missing: embed.positions.weight [6, 8]
      head.output.weight has the shape [12, 8], the model's has [11, 8]
    ");
}

#[test]
fn nan_and_infinite_numbers_are_counted() {
    let graph = spec(LEARNED);
    let mut first = true;
    let weights = Weights::build(&graph, &device(), |_, slot| {
        let mut values = vec![0.5; slot.shape.iter().product()];
        if std::mem::take(&mut first) {
            (values[0], values[2]) = (f32::NAN, f32::INFINITY);
        }
        Ok(values)
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    weights.save(&path, &IndexMap::new()).unwrap();
    let (_, report) = Weights::load(&graph, &path, &device()).unwrap();
    assert_eq!(report.not_finite.into_values().collect::<Vec<_>>(), [2]);
}

/// A file with a header and `data` bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn hostile_files_are_refused() {
    let tensor = |shape: &str, from: u64, to: u64| {
        format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let one = |shape: &str, from, to| format!(r#"{{"a":{}}}"#, tensor(shape, from, to));
    let two = |a: String, b: String| format!(r#"{{"a":{a},"b":{b}}}"#);
    let mut long = one("[2]", 0, 8);
    long.insert_str(2, &"a".repeat(600));
    let many: Vec<String> = (0..100_001).map(|i| format!(r#""t{i}":{}"#, tensor("[0]", 0, 0))).collect();
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("only a length", 8u64.to_le_bytes().to_vec()),
        ("a header of 2^63 bytes", [(1u64 << 63).to_le_bytes().to_vec(), vec![0; 64]].concat()),
        ("a header longer than the file", [1000u64.to_le_bytes().to_vec(), vec![b'{'; 64]].concat()),
        ("not JSON", file("{{{{", 0)),
        ("a list", file("[]", 0)),
        ("sizes that overflow", file(&one("[4294967296,4294967296,4294967296]", 0, 8), 8)),
        ("a place smaller than the tensor", file(&one("[3]", 0, 8), 8)),
        ("a place beyond the data", file(&one("[4]", 0, 16), 8)),
        ("a place that ends before it begins", file(&one("[2]", 8, 0), 8)),
        ("overlapping tensors", file(&two(tensor("[2]", 0, 8), tensor("[2]", 4, 12)), 12)),
        ("a hole", file(&two(tensor("[2]", 0, 8), tensor("[2]", 12, 20)), 20)),
        ("a tail", file(&one("[2]", 0, 8), 12)),
        ("a name twice", file(&format!(r#"{{"a":{0},"a":{0}}}"#, tensor("[2]", 0, 8)), 8)),
        ("an unknown element type", file(&one("[2]", 0, 8).replace("F32", "F7"), 8)),
        ("a name of 600 bytes", file(&long, 8)),
        ("nine axes", file(&one("[1,1,1,1,1,1,1,1,2]", 0, 8), 8)),
        ("a negative size", file(&one("[-2]", 0, 8), 8)),
        ("more than 100000 tensors", file(&format!("{{{}}}", many.join(",")), 0)),
    ];
    let mut said = Vec::new();
    for (what, bytes) in files {
        let error = TensorFile::from_bytes("it", bytes).err().unwrap_or_else(|| panic!("{what} is accepted"));
        said.push(format!(
            "{what}: {}",
            error.to_string().trim_start_matches("it is not a sound safetensors file: ")
        ));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    empty: it is shorter than 8 bytes
    only a length: its header claims 8 bytes, the file has 8
    a header of 2^63 bytes: its header claims 9223372036854775808 bytes, more than 33554432
    a header longer than the file: its header claims 1000 bytes, the file has 72
    not JSON: its header: key must be a string at line 1 column 2
    a list: its header: invalid type: sequence, expected a map of tensors at line 1 column 0
    sizes that overflow: the sizes of `a` overflow
    a place smaller than the tensor: `a` has 12 bytes, its place is 0..8 of 8
    a place beyond the data: `a` has 16 bytes, its place is 0..16 of 8
    a place that ends before it begins: `a` has 8 bytes, its place is 8..0 of 8
    overlapping tensors: `b` begins at 4, what is before it ends at 8
    a hole: `b` begins at 12, what is before it ends at 8
    a tail: its tensors end at 8, its data at 12
    a name twice: its header: `a` is there twice at line 1 column 57
    an unknown element type: `a` holds `F7`
    a name of 600 bytes: a tensor's name has 601 bytes
    nine axes: `a` has 9 axes
    a negative size: its header: invalid value: integer `-2`, expected u64 at line 1 column 31
    more than 100000 tensors: its header: more than 100000 tensors at line 1 column 5788900
    ");
}

#[test]
fn a_model_too_large_for_any_memory_is_refused_at_once() {
    let graph = spec(
        &LEARNED
            .replace("vocab: 11", "vocab: 1_000_000_000_000")
            .replace("d_model: 8", "d_model: 1_000_000_000"),
    );
    insta::assert_snapshot!(Weights::init(&graph, &device(), 1).unwrap_err(), @"the model's parameters need 8096000000136000000000 bytes");
    let graph = spec(&LEARNED.replace("layers: 2", "layers: 1_000_000"));
    insta::assert_snapshot!(Weights::init(&graph, &device(), 1).unwrap_err(), @"the model has 16000005 tensors, but at most 100000 are supported");
}

/// Graphics APIs limit the size of one tensor (128 MiB with Mesa's software Vulkan). burn reports that only
/// when numbers are read back, and without a name.
#[test]
fn a_tensor_beyond_the_bound_of_the_device_is_refused_by_name() {
    let name = crate::backend::name();
    let chosen = device::device(&name).unwrap();
    let Some(most) = chosen.largest else {
        assert!(["flex", "tch", "tch-cuda"].contains(&name.as_str()), "{name} has no bound");
        return;
    };
    // A row has 8 numbers of 4 bytes.
    let rows = most / 4 / 8;
    let graph = spec(&LEARNED.replace("vocab: 11", &format!("vocab: {}", rows + 1)));
    let why = Weights::init(&graph, &chosen.device, 1).unwrap_err().to_string();
    let bytes = (rows + 1) * 8 * 4;
    let said = format!(
        "`embed.tokens.weight` takes {bytes} bytes, but on `{name}` a single tensor can have at most {most}"
    );
    assert!(why.starts_with(&said), "{why}");

    let model = model(spec(&LEARNED.replace("vocab: 11", "vocab: 4096")));
    // Each of the 6 positions of a sequence has 4096 numbers of 4 bytes.
    let batch = usize::try_from(most).unwrap() / 4 / 4096 / 6 + 1;
    let why = refused(&model, json!({"tokens": vec![[1, 2, 3, 4, 5, 6]; batch]}));
    assert!(why.starts_with(&format!("`head.logits` takes {} bytes", batch * 6 * 4096 * 4)), "{why}");
}
