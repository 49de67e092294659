//! What an import leaves out of a spec, and how many attempts that takes.

use trafoc::diag::Sink;
use trafoc::hub::shorten::shortened;
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
fn layers_are_tried_together() {
    for model in ["rwkv", "diffllama"] {
        let attempts = [8, 24].map(|layers| {
            let text = imported(model, &config(model, layers)).unwrap().text;
            assert!(text.contains(&format!("    {}: {{", layers - 1)), "{text}");
            let mut sources = load::sources();
            let id = sources.add("spec", text);
            let mut sink = Sink::new();
            let tree =
                load::tree(&mut sources, id, Notation::Yaml, &[], &mut load::NoFiles, &mut sink).unwrap();
            let whole = load::decode(&sources, &tree, &mut sink).unwrap();
            shortened(tree, &whole, &sources).1
        });
        // Each layer has four entries. One attempt for each layer is allowed, where a fault is in no layer of its own.
        assert!(attempts[1] <= attempts[0] + 24 - 8, "{model}: {attempts:?}");
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
