//! `tests/hostile`: texts that are meant to do harm, and odd ones that are valid. The name of a file begins
//! with the code it is refused with, or `ok`; texts that are too large for a file are generated. Each must
//! be handled quickly and with little memory.

use std::path::Path;
use std::process::Command;

use trafoc::diag::{Code, Sink};
use trafoc::source::SourceMap;
use trafoc::syntax::Notation;
use trafoc::syntax::fmt::convert;

use crate::bad::code_of;
use crate::compiled::repository;

#[path = "../hostile/made.rs"]
mod made;

/// The memory that a process may use to check one text, in KiB.
const MEMORY: usize = 64 << 10;
/// The CPU time it may use; one second is the smallest limit of `ulimit`. `benches/` measures the real
/// times.
const SECONDS: usize = 1;

/// The most that is said about one text, in bytes: a person reads it.
const SAID: usize = 16 << 10;

/// A text with its name: `CODE-detail.yaml` or `.trafo`.
struct Case {
    name: String,
    bytes: Vec<u8>,
}

/// Every text, from the folder and generated.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = std::fs::read_dir(repository("tests/hostile"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() != Some("rs".as_ref()))
        .map(|path| Case {
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            bytes: std::fs::read(path).unwrap(),
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases.extend(
        made::made().into_iter().map(|(name, text)| Case { name: name.to_owned(), bytes: text.into_bytes() }),
    );
    cases
}

fn cut(text: &str) -> String {
    text.lines().take(40).map(|l| l.chars().take(200).collect::<String>() + "\n").collect()
}

/// A process that checks the text of a file with settings, as users start it. The shell sets the limits; that of memory
/// covers all private memory, heap and stacks.
fn check(path: &Path, settings: &[String]) -> Command {
    // Elsewhere, this limit does not bound the memory that a process maps.
    let mut command = if cfg!(target_os = "linux") {
        let limits = format!("ulimit -d {MEMORY} && ulimit -t {SECONDS} && exec \"$0\" \"$@\"");
        let mut command = crate::compiled::alone("sh");
        command.arg("-c").arg(limits).arg(crate::compiled::PROGRAM);
        command
    } else {
        crate::compiled::program()
    };
    command.arg("check").arg(path);
    for setting in settings {
        command.arg("--set").arg(setting);
    }
    command
}

#[test]
fn texts_are_refused_with_their_code_or_read_in_little_memory_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for case in cases() {
        let path = folder.path().join(&case.name);
        std::fs::write(&path, &case.bytes).unwrap();
        let output = check(&path, &[]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let (stem, _) = case.name.rsplit_once('.').unwrap();
        let wanted = code_of(stem).map(Code::slug);
        assert!(wanted.is_some() || stem.starts_with("ok-"), "{}: no such code", case.name);
        // Warnings are rendered too; only the first error counts.
        let errors = said.lines().filter_map(|line| line.strip_prefix("error[")?.split_once(']'));
        let found = errors.map(|(code, _)| code).next();
        if output.status.code() != Some(i32::from(wanted.is_some())) || found != wanted {
            wrong.push(format!("{}: {}, {found:?}\n{}", case.name, output.status, cut(&said)));
        }
        if said.len() > SAID {
            wrong.push(format!("{}: a message of {} bytes", case.name, said.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Formats or converts a text: the text that is written, or the code it is refused with.
fn written(text: &str, from: Notation, to: Notation) -> Result<String, Code> {
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    let id = sources.add("text", text);
    let written = convert(&sources, id, from, to, &|_| false, &mut sink);
    written.ok_or_else(|| sink.into_sorted().first().expect("a reason").code)
}

/// A text that is short in one layout or notation may be too long in another, which nothing could read.
#[test]
fn what_is_written_can_be_read() {
    let (yaml, dsl) = (Notation::Yaml, Notation::Dsl);
    let all = |n: usize, each: &str| (0..n).map(|i| each.replace('#', &i.to_string())).collect::<String>();
    let text = format!("model m {{ decoder {{ ffn = swiglu({}) }} }}", all(9_500, "a#:#,"));
    for to in [dsl, yaml] {
        let once = written(&text, dsl, to).unwrap();
        assert_eq!(written(&once, to, to).unwrap(), once);
        assert!(written(&once, to, dsl).is_ok());
    }
    let aliases = format!("a: &a [{}]\nb: [{}]\n", all(1_000, "#,"), all(40, "*a,"));
    assert!(written(&aliases, yaml, yaml).is_ok());
    assert_eq!(written(&aliases, yaml, dsl), Err(Code::TooLarge));
}

/// Laying a setting into a tree goes as deep as its path has keys.
#[test]
fn a_setting_of_many_keys_is_refused() {
    let mut sources = trafoc::source::SourceMap::new();
    let setting = format!("{}a=1", "a.".repeat(50_000));
    let refused = trafoc::syntax::set::parse_set(&mut sources, &setting).unwrap_err();
    assert_eq!(refused.code, Code::TooDeep, "{refused:?}");
}

/// What a setting takes does not depend on how many were laid into the same map before it.
#[test]
fn thousands_of_settings_of_one_map_take_little_time() {
    let spec = repository("specs/gpt2-small.yaml");
    let each = |name: &dyn Fn(usize) -> String| (1..=10_000).map(name).collect::<Vec<String>>();
    let cases = [
        (each(&|i| format!("let.a{i}=1")), 1),
        (each(&|i| format!("decoder.ffn.k{i}=1")), 1),
        // Each replaces the one before it.
        (each(&|i| format!("decoder.ffn.hidden={i}")), 0),
        // Alternatives of each other, of which a command may give one.
        (each(&|i| format!("decoder.ffn.{}=4", if i % 2 == 0 { "hidden" } else { "expansion" })), 1),
    ];
    for (settings, code) in cases {
        let output = check(&spec, &settings).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}: {}", settings[0], output.status);
    }
}
