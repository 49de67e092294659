//! What commands print with `--format json`, against the schemas that `trafoc schema --output COMMAND` prints: all
//! that the tests of trafoc have made the program print, which they keep in the target folder.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value as Json, json};
use trafoc::cli::{Commands, output_schema};

/// The names and the contents of the files that the last build of the program has printed.
fn printed() -> Vec<(String, Json)> {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs");
    let folders = std::fs::read_dir(all).into_iter().flatten().map(|entry| entry.unwrap());
    let newest = folders.max_by_key(|entry| entry.file_name());
    let newest = newest.expect("run `cargo test --test it` first: it keeps what the program prints");
    let files = std::fs::read_dir(newest.path()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| {
            let json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            (path.display().to_string(), json)
        })
        .collect()
}

fn validator(schema: &Json) -> jsonschema::Validator {
    jsonschema::draft7::new(schema).unwrap_or_else(|why| panic!("no schema of draft-07: {why}"))
}

fn faults(schema: &jsonschema::Validator, json: &Json) -> Vec<String> {
    schema.iter_errors(json).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

#[test]
fn everything_printed_has_the_published_shape() {
    let (mut wrong, mut with_data, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for (name, json) in printed() {
        let Some(command) = json["command"].as_str() else { continue };
        let schema = validator(&output_schema(command).unwrap());
        let found = faults(&schema, &json);
        if !found.is_empty() {
            wrong.push(format!("{command}, {name}: {found:?}"));
        }
        if !json["data"].is_null() {
            with_data.insert(command.to_owned());
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    let missing: Vec<_> = Commands::NAMES.iter().filter(|name| !with_data.contains(**name)).collect();
    assert!(
        missing.is_empty(),
        "no test has made {missing:?} print data: run `cargo test --test it`, without a filter and with its \
         default features, first"
    );
}

#[test]
fn schemas_of_outputs_are_strict() {
    for name in Commands::NAMES {
        let schema = output_schema(name).unwrap();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        let schema = validator(&schema);
        let failed = json!({
            "schema": "trafoc/1", "command": name, "status": "failed", "error": "e", "diagnostics": [], "data": null
        });
        assert!(schema.is_valid(&failed), "{name}: {:?}", faults(&schema, &failed));
        let with = |key: &str, value: Json| {
            let mut changed = failed.clone();
            changed[key] = value;
            changed
        };
        for wrong in [
            with("schema", json!("trafoc/2")),
            with("command", json!("another")),
            with("status", json!("fine")),
            with("unknown", json!(1)),
            with("diagnostics", json!([{ "code": "syntax" }])),
        ] {
            assert!(!schema.is_valid(&wrong), "{name} accepts {wrong}");
        }
        // The schema that `schema` prints is an object of any shape.
        let data = with("data", json!({ "unknown": 1 }));
        assert_eq!(schema.is_valid(&data), *name == "schema", "{name}");
    }
    assert!(output_schema("another").is_none());
}

#[test]
fn every_sarif_log_has_the_shape_of_the_standard() {
    let schema: Json = serde_json::from_str(include_str!("../sarif.json")).unwrap();
    let schema = validator(&schema);
    let logs: Vec<_> = printed().into_iter().filter(|(_, json)| json["version"] == "2.1.0").collect();
    assert!(logs.len() > 3, "run `cargo test --test it` first");
    for (name, log) in logs {
        let found = faults(&schema, &log);
        assert!(found.is_empty(), "{name}: {found:?}");
        let run = &log["runs"][0];
        for result in run["results"].as_array().unwrap() {
            let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"]);
        }
    }
}
