//! Published models by the keys of their config.json: the parameters that they have here are those of the
//! library's class.

use trafoc::report::cost::cost;

use super::{compiled, imported};
use crate::compiled::repository;

#[test]
fn published_models_have_their_parameters() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(repository("tests/published")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let facts: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let model =
            imported(&name, &facts["config"].to_string()).unwrap_or_else(|why| panic!("{name}: {why}"));
        let (_, graph) = compiled(&model);
        let (found, wanted) =
            (cost(&graph).parameters.all().total.to_string(), facts["parameters"].to_string());
        if found != wanted {
            wrong.push(format!("{name}: {found}, and published are {wanted}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "{count}");
}
