//! Diagnostics in the formats of other programs: workflow commands of GitHub Actions ([`github`]) and SARIF
//! 2.1.0 ([`sarif`]), which code hosts and editors read.

use serde_json::{Value as Json, json};

use super::render::{Data, EditData, FixData, LabelData, visible};
use super::{Code, Severity};

/// How the command ended that reported the diagnostics.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// The exit code of the process: 0 if nothing failed, 1 if a spec has errors.
    pub code: u8,
    /// Whether the specs could be examined at all.
    pub is_examined: bool,
    /// Why the command failed, unless the diagnostics have said it; one reason for each spec that could not be
    /// read.
    pub reasons: &'a [Reason<'a>],
}

/// Why a command failed.
#[derive(Clone, Copy, Debug)]
pub struct Reason<'a> {
    /// One sentence.
    pub message: &'a str,
    /// How to fix it, one suggestion each.
    pub help: &'a [String],
}

/// Whether a source is a file. The others are texts of the command line (`--set #1`), of the program
/// (`@gpt1`) or of a stream (`<stdin>`), to which no other program can link.
fn is_file(name: &str) -> bool {
    !name.is_empty() && !name.starts_with("--") && !name.starts_with(['@', '<'])
}

/// The message, the text at the primary place and the suggestions, each on a line of its own.
fn whole_message(data: &Data) -> String {
    let mut lines = vec![data.message.clone()];
    if let Some(first) = data.labels.first().filter(|first| !first.text.is_empty()) {
        lines.push(first.text.clone());
    }
    lines.extend(data.help.iter().map(|help| format!("help: {help}")));
    lines.join("\n")
}

/// The message of a workflow command, in which line ends would end the command, and which is shown in a terminal.
fn escaped(text: &str) -> String {
    // `%` comes first, because the other replacements add it.
    visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command, which a colon or a comma would end too.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

/// Workflow commands of GitHub Actions, one line each, which the service shows at the lines of a change.
///
/// The format: "Workflow commands for GitHub Actions", GitHub Docs.
pub fn github(diagnostics: &[Data], ending: Ending<'_>) -> String {
    let mut text = String::new();
    for data in diagnostics {
        let severity = match data.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let place = data.labels.first().filter(|place| is_file(&place.file));
        let mut properties: Vec<String> = place.map(github_place).into_iter().flatten().collect();
        properties.push(format!("title={}", property(&data.code)));
        // A source that is not a file is named in the message.
        let named = match (place, data.labels.first()) {
            (None, Some(LabelData { file, line, column, .. })) if !file.is_empty() => {
                format!("{file}:{line}:{column}: ")
            }
            (_, _) => String::new(),
        };
        let message = escaped(&format!("{named}{}", whole_message(data)));
        text += &format!("::{severity} {}::{message}\n", properties.join(","));
    }
    for reason in ending.reasons {
        let lines = std::iter::once(reason.message.to_owned());
        let lines: Vec<String> = lines.chain(reason.help.iter().map(|h| format!("help: {h}"))).collect();
        text += &format!("::error::{}\n", escaped(&lines.join("\n")));
    }
    text
}

/// Columns are only allowed if the place is in one line.
fn github_place(place: &LabelData) -> Vec<String> {
    let mut all = vec![
        format!("file={}", property(&place.file)),
        format!("line={}", place.line),
        format!("endLine={}", place.end_line),
    ];
    if place.line == place.end_line {
        // GitHub counts the last column as part of the place; ours is one past it.
        let last = place.end_column.saturating_sub(1).max(place.column);
        all.extend([format!("col={}", place.column), format!("endColumn={last}")]);
    }
    all
}

/// A log in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS standard).
pub fn sarif(diagnostics: &[Data], ending: Ending<'_>, version: &str) -> Json {
    // Only codes that occur, so that a log stays short.
    let rules: Vec<Code> = Code::ALL.iter().copied().filter(|c| has(diagnostics, *c)).collect();
    let results: Vec<Json> = diagnostics.iter().map(|data| result(data, &rules)).collect();
    let notification = |reason: &Reason<'_>| {
        let lines = std::iter::once(reason.message).chain(reason.help.iter().map(String::as_str));
        let text: Vec<&str> = lines.collect();
        json!({ "level": "error", "message": { "text": text.join("\n") } })
    };
    let notifications: Vec<Json> = ending.reasons.iter().map(notification).collect();
    // Only now, because results refer to rules by their index in this list.
    let rules: Vec<Json> = rules.into_iter().map(rule).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "trafoc", "version": version, "rules": rules } },
            // Columns are counted in characters here, and in units of UTF-16 by many other tools.
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": ending.is_examined,
                "exitCode": ending.code,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

fn has(diagnostics: &[Data], code: Code) -> bool {
    diagnostics.iter().any(|data| data.code == code.slug())
}

/// A code with its explanation.
fn rule(code: Code) -> Json {
    let explanation = code.explanation();
    // The format asks for a single sentence here.
    let first = explanation.why.split_inclusive(". ").next().unwrap_or_default().trim();
    let mut help = explanation.why.to_owned();
    if !explanation.right.is_empty() {
        help += &format!("\n\nWrong:\n{}\nRight:\n{}", explanation.wrong, explanation.right);
    }
    json!({
        "id": explanation.slug,
        "shortDescription": { "text": first },
        "fullDescription": { "text": explanation.why },
        "help": { "text": help },
    })
}

fn result(data: &Data, rules: &[Code]) -> Json {
    let mut object = serde_json::Map::new();
    let mut add = |key: &str, value: Json| drop(object.insert(key.to_owned(), value));
    add("ruleId", json!(data.code));
    // The words for severities are those of the format.
    add("level", json!(data.severity));
    add("message", json!({ "text": whole_message(data) }));
    add("locations", data.labels.first().map(location).into_iter().collect());
    if let Some(index) = rules.iter().position(|code| code.slug() == data.code) {
        add("ruleIndex", json!(index));
    }
    // The first place is the location itself; the others explain it.
    let related: Vec<Json> = data.labels.iter().skip(1).map(related).collect();
    if !related.is_empty() {
        add("relatedLocations", json!(related));
    }
    if let (Some(fix), Some(place)) = (&data.fix, data.labels.first().filter(|place| is_file(&place.file))) {
        add("fixes", json!([fixed(fix, &place.file, data.help.first())]));
    }
    Json::Object(object)
}

/// The changes of a file that carry out a suggestion.
fn fixed(fix: &FixData, file: &str, help: Option<&String>) -> Json {
    let replacement = |edit: &EditData| {
        json!({
            "deletedRegion": { "byteOffset": edit.start, "byteLength": edit.end.saturating_sub(edit.start) },
            "insertedContent": { "text": edit.text },
        })
    };
    let replacements: Vec<Json> = fix.edits.iter().map(replacement).collect();
    json!({
        "description": { "text": help },
        "artifactChanges": [{ "artifactLocation": { "uri": uri(file) }, "replacements": replacements }],
    })
}

/// A secondary place with its text.
fn related(place: &LabelData) -> Json {
    let mut found = location(place);
    if let Json::Object(object) = &mut found {
        object.insert("message".to_owned(), json!({ "text": place.text }));
    }
    found
}

fn location(place: &LabelData) -> Json {
    // A text of the command line is no file that a viewer could open.
    if !is_file(&place.file) {
        return json!({ "logicalLocations": [{ "fullyQualifiedName": place.file }] });
    }
    let region = json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "byteOffset": place.start,
        "byteLength": place.end.saturating_sub(place.start),
    });
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&place.file) }, "region": region } })
}

/// A path as the reference of a URI: relative to the folder in which trafoc was called, or absolute.
fn uri(path: &str) -> String {
    // Paths of Windows have the other slash, which a URI does not have.
    let path = path.replace('\\', "/");
    // Viewers compare paths as texts, and `./a.yaml` is `a.yaml`.
    let path = path.trim_start_matches("./");
    let mut text = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}
