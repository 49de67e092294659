//! The parts against PyTorch: every spec of `tests/numeric` has weights, inputs and expected outputs,
//! computed by its `make.py` from the definitions in the papers.

use std::collections::BTreeMap;
use std::path::Path;

use trafoc::ir::paths::expanded;

use crate::compiled;

/// The shapes in a safetensors file, by name.
fn shapes(path: &Path) -> BTreeMap<String, Vec<u64>> {
    let file = std::fs::read(path).unwrap();
    let (length, rest) = file.split_at(8);
    let header = &rest[..u64::from_le_bytes(length.try_into().unwrap()) as usize];
    let header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header).unwrap();
    let sizes = |entry: &serde_json::Value| {
        entry["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    };
    header.iter().map(|(name, entry)| (name.clone(), sizes(entry))).collect()
}

#[test]
fn every_spec_has_a_fixture_of_its_parameters() {
    let specs = compiled::specs("tests/numeric");
    assert!(specs.len() > 80);
    for (name, path) in specs {
        let given: BTreeMap<String, Vec<u64>> = shapes(&path.with_extension("safetensors"))
            .into_iter()
            .filter_map(|(key, shape)| Some((key.strip_prefix("weights.")?.to_owned(), shape)))
            .collect();
        let parameters = expanded(&compiled::graph(&path)).unwrap().into_iter();
        let wanted: BTreeMap<String, Vec<u64>> = parameters.map(|(path, p)| (path, p.shape)).collect();
        assert_eq!(given, wanted, "{name}");
    }
}
