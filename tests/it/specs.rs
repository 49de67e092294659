//! The shipped specs: if a model exists in both notations, both are the same model.

use crate::compiled::{graph_with, repository};

#[test]
fn both_notations_of_a_spec_are_one_model() {
    let mut pairs = 0;
    for entry in std::fs::read_dir(repository("specs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "trafo") {
            let yaml = path.with_extension("yaml");
            assert_eq!(graph_with(&path, &[]), graph_with(&yaml, &[]), "{} and its YAML", path.display());
            pairs += 1;
        }
    }
    assert!(pairs >= 3, "only {pairs} specs exist in both notations");
}
