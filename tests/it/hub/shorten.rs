//! What an import leaves out of a spec, and how long it takes to find it.

use std::time::Instant;

use trafoc::diag::Sink;
use trafoc::spec::load;
use trafoc::syntax::Notation;

use super::imported;
use crate::compiled::repository;

/// The config of a model in `tests/hub` with other layers.
fn config(model: &str, layers: u64) -> String {
    let path = repository("tests/hub").join(model).join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    config["num_hidden_layers"] = layers.into();
    config.to_string()
}

#[test]
fn the_time_of_an_import_grows_with_the_layers_and_not_with_their_square() {
    for model in ["rwkv", "diffllama"] {
        let text = config(model, 24);
        let begun = Instant::now();
        let imported = imported(model, &text).unwrap();
        let whole = begun.elapsed();
        assert!(imported.text.contains("    23: {"), "{}", imported.text);
        // Compared with reading the result once, so that the machine does not matter: its entries were tried one by
        // one, with a search for what was meant by each key that an attempt left without a meaning.
        let mut sources = load::sources();
        let id = sources.add("spec", imported.text);
        let mut sink = Sink::new();
        let tree = load::tree(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles, &mut sink).unwrap();
        let begun = Instant::now();
        assert!(load::decode(&sources, &tree, &mut sink).is_some());
        let once = begun.elapsed();
        assert!(whole < once * 60, "{model}: {whole:?}, and {once:?} to read the result");
    }
}

#[test]
fn each_layer_keeps_only_what_it_has_of_its_own() {
    // Layer 0 has the default of the part, and the others have not.
    let text = imported("rwkv", &config("rwkv", 3)).unwrap().text;
    let ranges = "  ranges:\n    1: {time_mixing: {layer: 1}, channel_mixing: {layer: 1}}\n    \
                  2: {time_mixing: {layer: 2}, channel_mixing: {layer: 2}}\n";
    assert!(text.contains(ranges), "{text}");
}
