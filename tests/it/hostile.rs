//! `tests/hostile`: texts made to harm, and odd ones that are right. A file's name is the code it is refused
//! with, or `ok`, with a detail behind it; what is too large for a file is made. Each is dealt with in
//! a moment and in little memory.

use trafoc::diag::Code;
use trafoc::spec::load::NoFiles;
use trafoc::syntax::Notation;

use crate::bad::code_of;
use crate::compiled::repository;
use crate::front::Front;

#[path = "../hostile/made.rs"]
mod made;

/// What a process that checks one text may take, in KiB.
const MEMORY: usize = 64 << 10;
/// Seconds of the processor, its least limit; what a text really takes is measured in `benches/`.
const SECONDS: usize = 1;

/// A text by its name: `CODE-detail.yaml` or `.trafo`.
struct Case {
    name: String,
    bytes: Vec<u8>,
}

impl Case {
    fn compile(&self) -> Front {
        let notation = Notation::from_path(&self.name).unwrap();
        Front::of_bytes(&self.name, &self.bytes, notation, &mut NoFiles)
    }
}

/// Every text, those of the folder and those that are made.
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

fn fault(case: &Case) -> Option<String> {
    let front = case.compile();
    let found = front.codes();
    let (stem, _) = case.name.rsplit_once('.').unwrap();
    let wanted = code_of(stem).map(Code::slug);
    if wanted.is_none() && !stem.starts_with("ok-") {
        return Some(format!("{}: no such code", case.name));
    }
    (found.first().copied() != wanted || front.compilation.graph.is_some() != wanted.is_none()).then(|| {
        let first = found.get(..found.len().min(9));
        format!("{}: found {first:?}\n{}", case.name, cut(&front.rendered()))
    })
}

fn cut(text: &str) -> String {
    text.lines().take(40).map(|l| l.chars().take(200).collect::<String>() + "\n").collect()
}

#[test]
fn texts_are_refused_with_their_code_or_read() {
    let wrong: Vec<String> = cases().iter().filter_map(fault).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The limits are set by the shell; that of memory holds for all private memory, heap and stacks.
#[cfg(target_os = "linux")]
#[test]
fn texts_are_refused_or_read_in_little_memory_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for case in cases() {
        let path = folder.path().join(&case.name);
        std::fs::write(&path, &case.bytes).unwrap();
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -d {MEMORY} && ulimit -t {SECONDS} && exec \"$0\" check \"$1\""))
            .arg(env!("CARGO_BIN_EXE_trafoc"))
            .arg(&path)
            .output()
            .unwrap();
        let wanted = i32::from(!case.name.starts_with("ok-"));
        if output.status.code() != Some(wanted) {
            let said = cut(&String::from_utf8_lossy(&output.stderr));
            wrong.push(format!("{}: {}\n{said}", case.name, output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
