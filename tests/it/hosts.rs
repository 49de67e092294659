//! Diagnostics in the formats of code hosts.

use serde_json::{Value as Json, json};

use crate::cli::trafoc_in;

/// The diagnostics of a spec with errors in a file, in an option and in stdin, for code hosts.
#[test]
fn check_speaks_the_formats_of_code_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a,b: 100%.yaml";
    let spec = "name: tiny\nvocab: 32\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 1\n  attention:\n    haeds: 2\nhead: lm\n";
    std::fs::write(folder.path().join(name), spec).unwrap();
    let check = |arguments: &[&str]| trafoc_in(folder.path(), &[&["check"], arguments].concat());
    let said = check(&["--format", "github", name]);
    assert!(said.code == 1 && said.err.is_empty(), "{}", said.err);
    let line = said.out.lines().next().unwrap();
    assert!(
        line.starts_with(
            "::error file=a%2Cb%3A 100%25.yaml,line=8,endLine=8,col=5,endColumn=9,title=unknown-key::"
        ),
        "{line}"
    );
    assert!(line.contains("`haeds`") && line.contains("%0Ahelp: did you mean `heads`?"), "{line}");
    let said = check(&["--format", "github", "@gpt1", "--set", "vocab=many"]);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    assert!(said.out.starts_with("::error title=unknown-name::--set #1:1:7: "), "{}", said.out);
    // The whole message of a failure without diagnostics, on one line.
    let said = check(&["--format", "github", "nowhere.yaml"]);
    assert_eq!((said.code, said.out.lines().count()), (4, 1), "{}", said.out);
    assert!(said.out.starts_with("::error::cannot read `nowhere.yaml`"), "{}", said.out);
    // Logs are shown in terminals.
    let steering = spec.replace("haeds", r#""he\x9b31m\u202eads""#);
    std::fs::write(folder.path().join("steering.yaml"), steering).unwrap();
    let said = check(&["--format", "github", "steering.yaml"]);
    assert!(said.code == 1 && said.out.contains(r"`he\u{9b}31m\u{202e}ads`"), "{}", said.out);
    let fine = check(&["--format", "github", "@gpt1"]);
    assert!(fine.code == 0 && fine.out.is_empty() && fine.err.is_empty());
    let log = |arguments: &[&str], code: i32| -> Json {
        let said = check(&[&["--format", "sarif"], arguments].concat());
        assert!(said.code == code && said.err.is_empty(), "{arguments:?}: {}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    let run = &log(&[name, "@gpt1"], 1)["runs"][0];
    let result = &run["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("unknown-key"), &json!("error")));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%2Cb%3A%20100%25.yaml");
    assert_eq!(place["region"]["startLine"], 8);
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let run = &log(&["@gpt1", "--set", "decoder.attention.heads=7"], 1)["runs"][0];
    assert_eq!(run["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "--set #1");
    assert!(!run["results"][0]["relatedLocations"][0]["message"]["text"].as_str().unwrap().is_empty());
    assert_eq!(log(&["@gpt1"], 0)["runs"][0]["results"], json!([]));
    for (arguments, code) in [(vec!["nowhere.yaml"], 4), (vec!["--no-such-flag"], 2)] {
        let invocation = &log(&arguments, code)["runs"][0]["invocations"][0];
        assert_eq!(
            (&invocation["executionSuccessful"], &invocation["exitCode"]),
            (&json!(false), &json!(code))
        );
        assert!(!invocation["toolExecutionNotifications"].as_array().unwrap().is_empty());
    }
}

/// A message is one line in the formats of one line, whatever the words of the file are.
#[test]
fn a_diagnostic_stays_in_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), format!("{}\"x\\n::error::y\": 1\n", crate::cli::TINY))
        .unwrap();
    for format in ["short", "agent"] {
        let said = trafoc_in(folder.path(), &["check", "a.yaml", "--format", format, "-q"]);
        let lines: Vec<&str> = said.err.lines().collect();
        assert!(
            lines.iter().all(|line| line.starts_with("a.yaml:7:") || line.starts_with("error: ")),
            "{lines:?}"
        );
    }
    let name = "ok\n::error::x.yaml";
    std::fs::write(folder.path().join(name), crate::cli::TINY).unwrap();
    let said = trafoc_in(folder.path(), &["check", name, name]);
    assert!(said.code == 0 && !said.out.contains("\n::"), "{}", said.out);
}
