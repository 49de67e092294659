//! Directories that are meant to do harm: no file outside of them is opened, nothing is run, nothing uses
//! much memory.

use std::path::Path;

use trafoc::hub::checkpoint::Checkpoint;

use super::imported;
use crate::compiled::repository;

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn refused(folder: &Path) -> String {
    let error = Checkpoint::open(folder).unwrap_err();
    format!("{error}; {}", error.help().unwrap_or_default())
}

fn index(names: &[&str]) -> Vec<u8> {
    let map: serde_json::Map<_, _> =
        names.iter().enumerate().map(|(i, n)| (format!("t{i}"), serde_json::json!(n))).collect();
    serde_json::to_vec(&serde_json::json!({ "weight_map": map })).unwrap()
}

#[test]
fn an_index_cannot_leave_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("model");
    std::fs::create_dir(&inside).unwrap();
    let tensor = std::fs::read(repository("tests/hub/bert-qa/model.safetensors")).unwrap();
    write(folder.path(), "outside.safetensors", &tensor);
    let long = "a".repeat(300);
    let names = [
        "../outside.safetensors",
        "a/../../outside.safetensors",
        "./outside.safetensors",
        "/etc/passwd",
        "..",
        ".",
        "",
        "sub/file.safetensors",
        "C:\\outside.safetensors",
        "C:outside.safetensors",
        "..\\outside.safetensors",
        "a\nb.safetensors",
        "a\0b.safetensors",
        long.as_str(),
    ];
    for name in names {
        write(&inside, "model.safetensors.index.json", &index(&[name]));
        let why = refused(&inside);
        assert!(why.contains("only files of the directory itself are opened"), "{name:?}: {why}");
    }
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_directory_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("model");
    std::fs::create_dir(&inside).unwrap();
    let tensor = std::fs::read(repository("tests/hub/bert-qa/model.safetensors")).unwrap();
    write(folder.path(), "outside.safetensors", &tensor);
    for name in ["shard.safetensors", "model.safetensors"] {
        std::os::unix::fs::symlink(folder.path().join("outside.safetensors"), inside.join(name)).unwrap();
        write(&inside, "model.safetensors.index.json", &index(&[name]));
        let why = refused(&inside);
        assert!(
            why.contains(
                "is a link that leaves the directory; only files of the directory itself are opened"
            ),
            "{why}"
        );
    }
    // The hub's cache links from `snapshots/<revision>` to `blobs`.
    let cache = folder.path().join("cache");
    let snapshot = cache.join("snapshots").join("abc");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(cache.join("blobs")).unwrap();
    write(&cache.join("blobs"), "0123", &tensor);
    std::os::unix::fs::symlink("../../blobs/0123", snapshot.join("model.safetensors")).unwrap();
    assert!(Checkpoint::open(&snapshot).is_ok());
}

#[test]
fn pickles_are_recognised_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "pytorch_model.bin", b"\x80\x02}q\x00.");
    let why = refused(folder.path());
    assert!(why.contains("`pytorch_model.bin` is a pickle") && why.contains("torch.load"), "{why}");
    for (bytes, word) in [
        (b"PK\x03\x04archive/data.pkl".as_slice(), "a zip archive"),
        (b"\x80\x02}q\x00.\0\0\0\0", "a Python pickle"),
        (b"GGUF\x03\0\0\0\0\0", "a GGUF file"),
    ] {
        write(folder.path(), "model.safetensors", bytes);
        let why = refused(folder.path());
        assert!(why.contains(word) && why.contains("not a safetensors file"), "{why}");
    }
}

/// A header with a length of 640 bytes begins with the same bytes as a pickle, 0x80 and 2.
#[test]
fn a_header_may_have_any_length() {
    let folder = tempfile::tempdir().unwrap();
    for size in [0x280usize, 0x380, 0x480, 0x580] {
        let mut bytes = size.to_le_bytes().to_vec();
        let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        bytes.extend(format!("{header:<size$}").bytes());
        bytes.extend(1.0f32.to_le_bytes());
        write(folder.path(), "model.safetensors", &bytes);
        assert!(Checkpoint::open(folder.path()).is_ok(), "{size}");
    }
}

#[test]
fn an_index_must_say_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let tensor = std::fs::read(repository("tests/hub/bert-qa/model.safetensors")).unwrap();
    write(folder.path(), "a.safetensors", &tensor);
    write(folder.path(), "model.safetensors.index.json", &index(&["a.safetensors"]));
    assert!(refused(folder.path()).contains("says that a.safetensors holds `t0`"));
    write(folder.path(), "b.safetensors", &tensor);
    write(folder.path(), "model.safetensors.index.json", &index(&["a.safetensors", "b.safetensors"]));
    assert!(refused(folder.path()).contains("is both in "));
    for text in ["", "[", "{}", "{\"weight_map\": 3}", "{\"weight_map\": {\"a\": 3}}"] {
        write(folder.path(), "model.safetensors.index.json", text.as_bytes());
        refused(folder.path());
    }
}

#[test]
fn odd_configs_are_read_or_refused() {
    let text = std::fs::read_to_string(repository("tests/hub/gemma2/config.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let values =
        ["null", "-1", "0", "1e400", "1000000000", "9223372036854775807", "true", "\"x\"", "[]", "{}"];
    for (i, key) in json.as_object().unwrap().keys().enumerate() {
        // Each value is tried for a third of the keys, and each key with a third of the values.
        for value in values.iter().skip(i % 3).step_by(3) {
            let mut odd = json.clone();
            odd[key.as_str()] = serde_json::json!("@@");
            // `serde_json` has no value for `1e400`, so it is put into the text.
            let odd = odd.to_string().replace("\"@@\"", value);
            // Accepted or refused, there must be no panic and little memory must be used.
            let _ = imported("odd", &odd);
        }
    }
    let with = |key: &str, value: serde_json::Value| {
        let mut odd = json.clone();
        odd[key] = value;
        imported("odd", &odd.to_string()).unwrap_err()
    };
    // The library has the class of this config, and takes it rather than code that comes along.
    let mut coded = json.clone();
    coded["auto_map"] = serde_json::json!({"AutoModel": "x.Y"});
    imported("odd", &coded.to_string()).unwrap();
    coded["architectures"] = serde_json::json!(["Y"]);
    assert!(imported("odd", &coded.to_string()).unwrap_err().contains("never runs"));
    assert!(with("quantization_config", serde_json::json!({"bits": 4})).contains("quantised"));
    assert!(
        imported("odd", "").is_err() && imported("odd", "[1, 2").is_err() && imported("odd", "3").is_err()
    );
}

/// A list of the kinds of layers is made short in time that grows with its length, not with the square.
#[test]
fn a_long_list_of_layers_is_read_in_linear_time() {
    let text = std::fs::read_to_string(repository("tests/hub/gemma2/config.json")).unwrap();
    let took = |layers: usize| {
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        // Only the last differs, so no shorter list repeats.
        let mut kinds = vec!["full_attention"; layers - 1];
        kinds.push("sliding_attention");
        json["num_hidden_layers"] = layers.into();
        json["layer_types"] = kinds.into();
        let once = || {
            let start = std::time::Instant::now();
            let model = imported("long", &json.to_string()).unwrap();
            assert!(model.text.len() < 2_000, "{}", model.text.len());
            start.elapsed()
        };
        // The shorter of two times is less disturbed by other processes.
        once().min(once())
    };
    let (short, long) = (took(4_000), took(16_000));
    // It would be about 16 times as long if it grew with the square.
    assert!(long < 9 * short, "{short:?} for 4,000 layers, {long:?} for 16,000");
}

/// A model of images may name more than twenty thousand classes in its config, each of them twice. What has far more
/// values is refused.
#[test]
fn a_config_may_name_twenty_thousand_classes() {
    let text = std::fs::read_to_string(repository("tests/hub/beit/config.json")).unwrap();
    let of = |classes: usize| {
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let name = |i: usize| format!("a class with a name of usual length, {i}");
        config["id2label"] = (0..classes).map(|i| (i.to_string(), serde_json::json!(name(i)))).collect();
        config["label2id"] = (0..classes).map(|i| (name(i), serde_json::json!(i))).collect();
        imported("beit", &config.to_string())
    };
    let model = of(21_841).unwrap();
    assert!(model.text.contains("classes: 21841"), "{}", model.text);
    let why = of(25_001).unwrap_err();
    assert!(why.contains("the text contains more than 100000 keys and values"), "{why}");
}

/// Python writes infinity as a word that JSON does not have, also in the configs of published models. What else such a
/// config says is not lost, and a text that is no JSON is refused.
#[test]
fn a_config_may_have_the_words_of_python() {
    let folder = tempfile::tempdir().unwrap();
    let source = repository("tests/hub/mamba2");
    let text = std::fs::read_to_string(source.join("config.json")).unwrap();
    let older = text.replace("\n    {\n      \"__float__\": \"Infinity\"\n    }", " Infinity");
    assert!(older.contains(" Infinity\n"), "{older}");
    std::fs::copy(source.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let export = |config: &str| {
        write(folder.path(), "config.json", config.as_bytes());
        let mut command = crate::compiled::program();
        command.args(["export", ".", "--to", "made", "--force", "--quiet"]).current_dir(folder.path());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(export(&older), (Some(0), String::new()));
    let made = std::fs::read(folder.path().join("made/config.json")).unwrap();
    let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
    assert_eq!(made["eos_token_id"], 2, "{made}");
    let (code, why) = export(&text.replacen('{', "{ # a comment\n", 1));
    assert_eq!(code, Some(4), "{why}");
    assert!(why.contains("it is not JSON (column 3)"), "{why}");
    for (config, wanted) in [
        (
            r#"{"a": [NaN, -Infinity], "b": "Infinity \" NaN \\", "c": Infinity}"#,
            r#"{"a":[{"__float__":"NaN"},{"__float__":"-Infinity"}],"b":"Infinity \" NaN \\","c":{"__float__":"Infinity"}}"#,
        ),
        (r#"{"a": 1}"#, r#"{"a":1}"#),
    ] {
        assert_eq!(trafoc::read::python_json(config.as_bytes()).unwrap().to_string(), wanted);
    }
    assert!(trafoc::read::python_json(b"{\"a\": NaNs}").is_err());
}
