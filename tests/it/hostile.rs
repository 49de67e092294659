//! `tests/hostile`: texts made to harm, and odd ones that are right. A file's name is the code it is refused
//! with, or `ok`, with a detail behind it; what is too large for a file is made here. Each is dealt with in
//! a moment and in little memory.

use trafoc::diag::Code;
use trafoc::spec::load::NoFiles;
use trafoc::syntax::Notation;

use crate::bad::code_of;
use crate::compiled::repository;
use crate::front::Front;

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
        .map(|path| Case {
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            bytes: std::fs::read(path).unwrap(),
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases.extend(
        made().into_iter().map(|(name, text)| Case { name: name.to_owned(), bytes: text.into_bytes() }),
    );
    cases
}

/// Texts too large for files.
fn made() -> Vec<(&'static str, String)> {
    let spec = "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\n\
                decoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
    let model = |inside: &str| {
        format!(
            "model tiny {{ vocab = 32 context = 8 d_model = 8 head = lm\n\
             decoder x 1 {{ attention {{ heads = 2 }} {inside} }} }}\n"
        )
    };
    let steps = |n: usize| (0..n).map(|i| format!("{}a:\n", " ".repeat(i))).collect::<String>();
    let keys = |n: usize| (0..n).map(|i| format!("key{i}: {i}\n")).collect::<String>();
    let around = |open: &str, n: usize, close: &str| format!("{}{}", open.repeat(n), close.repeat(n));
    vec![
        ("too-large-file.yaml", format!("{spec}# {}\n", "x".repeat(1 << 20))),
        ("too-large-file.trafo", format!("{}// {}\n", model(""), "x".repeat(1 << 20))),
        ("ok-long-comment.yaml", format!("{spec}# {}\n", "x".repeat((1 << 20) - 400))),
        ("ok-long-comment.trafo", format!("{}// {}\n", model(""), "x".repeat((1 << 20) - 400))),
        ("too-large-aliases.yaml", format!("{spec}let: &a 1\nx: [{}]\n", "*a, ".repeat(50_000))),
        (
            "too-large-aliases-of-lists.yaml",
            format!("a: &a [{}]\nb: [{}]\n", "1, ".repeat(900), "*a, ".repeat(900)),
        ),
        (
            "too-large-anchors.yaml",
            format!("x: [{}]\n", (0..60_000).map(|i| format!("&a{i} 1, ")).collect::<String>()),
        ),
        ("too-large-keys.yaml", keys(100_000)),
        ("unknown-key-many.yaml", format!("{spec}{}", keys(5_000))),
        ("too-large-list.yaml", format!("x: [{}]\n", "1, ".repeat(200_000))),
        ("too-large-dashes.yaml", "- 1\n".repeat(100_000)),
        ("too-large-empty-maps.yaml", format!("x: [{}]\n", "{}, ".repeat(200_000))),
        ("too-deep-lists.yaml", around("[", 10_000, "]")),
        ("too-deep-lists-open.yaml", "[".repeat(1_000_000)),
        ("too-deep-maps.yaml", around("{a: ", 10_000, "}")),
        ("too-deep-maps-and-lists.yaml", "[{a: ".repeat(100_000)),
        ("too-deep-indents.yaml", steps(1_300)),
        ("too-deep-dashes.yaml", format!("{}x\n", "- ".repeat(100_000))),
        ("bad-key-questions.yaml", "? ".repeat(100_000)),
        (
            "too-deep-aliases.yaml",
            format!(
                "a0: &a0 [x]\n{}",
                (1..70).map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1)).collect::<String>()
            ),
        ),
        ("several-documents-storm.yaml", "---\n".repeat(100_000)),
        ("several-documents-storm-of-maps.yaml", "--- {a: 1}\n".repeat(90_000)),
        ("ok-long-name.yaml", spec.replace("tiny", &"n".repeat(1_000_000))),
        ("ok-long-quoted-name.yaml", spec.replace("tiny", &format!("\"{}\"", "\\x41".repeat(250_000)))),
        ("too-large-number.yaml", spec.replace("32", &format!("1{}", "+1".repeat(500_000)))),
        ("expression-overflow-digits.yaml", spec.replace("32", &"9".repeat(1_000_000))),
        ("too-large-parentheses.yaml", spec.replace("32", &around("(", 10_000, ")"))),
        ("too-deep-signs.yaml", spec.replace("32", &format!("{}1", "-".repeat(900)))),
        (
            "too-large-equation.yaml",
            format!("{spec}# \n")
                .replace("{heads: 2}", &format!("{{heads: 2}}, block: \"x{}\"", " + ffn(x)".repeat(100_000))),
        ),
        (
            "too-deep-equation.yaml",
            spec.replace(
                "{heads: 2}",
                &format!("{{heads: 2}}, block: \"{}x{}\"", "norm(".repeat(1_000), ")".repeat(1_000)),
            ),
        ),
        (
            "too-large-let.yaml",
            format!(
                "{spec}let: {{a0: 1, {}}}\n",
                (1..3_000).map(|i| format!("a{i}: a{}, ", i - 1)).collect::<String>()
            ),
        ),
        ("unknown-key-spaces.yaml", format!("a: b\n{}c", " ".repeat(1_000_000))),
        ("syntax-quotes.yaml", format!("a: {}\n", "\"x\" ".repeat(100_000))),
        ("syntax-colons.yaml", format!("a{}\n", ": a".repeat(100_000))),
        ("hidden-character-many.yaml", "\u{1}".repeat(1_000_000)),
        ("too-deep-braces.trafo", format!("model {}", around("{ a ", 10_000, "}"))),
        ("too-deep-parentheses.trafo", format!("model {{ a = {} }}", around("(", 10_000, ")"))),
        ("too-deep-lists.trafo", format!("model {{ a = {} }}", around("[", 10_000, "]"))),
        ("too-deep-calls.trafo", format!("model {{ a = {} }}", around("f(", 10_000, ")"))),
        ("syntax-signs.trafo", format!("model {{ a = {} }}", "-".repeat(100_000))),
        ("syntax-probe.trafo", format!("model {{ a = {} }}", "a ".repeat(20_000))),
        ("syntax-probe-calls.trafo", format!("model {{ a = {}+{} }}", "f(".repeat(60), ")+1".repeat(60))),
        ("syntax-probe-ranges.trafo", format!("model {{ layers {} }}", "0..".repeat(100_000))),
        ("syntax-probe-entries.trafo", format!("model {{ {} }}", "a x 1 ".repeat(20_000))),
        ("syntax-probe-quotes.trafo", format!("model {{ a = {} }}", "\"\" ".repeat(50_000))),
        ("too-large-entries.trafo", format!("model {{ {} }}", "a { } ".repeat(500_000))),
        ("too-large-sum.trafo", model("").replace("32", &format!("1{}", " + 1".repeat(50_000)))),
        ("duplicate-key-many.trafo", model("").replace("head = lm", &"head = lm\n".repeat(10_000))),
        (
            "unknown-key-many.trafo",
            model("").replace("head = lm", &format!("head = lm {}", keys(5_000).replace(':', " ="))),
        ),
        ("syntax-open-comment.trafo", format!("model {{ /*{} ", "*".repeat(1_000_000))),
        ("syntax-newlines.trafo", format!("model {{{}", "\n".repeat(1_000_000))),
    ]
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
