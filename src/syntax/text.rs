//! Turns bytes into text that is safe to parse and to show.
//!
//! Every file passes these checks first: its size, its encoding, and characters that hide what a text says.
//! So the parsers see only plain UTF-8 of bounded length.

use std::borrow::Cow;

use crate::diag::{Code, Diagnostic, Sink};
use crate::kind::Kind;
pub use crate::source::is_hidden;
use crate::source::{SourceId, SourceMap, Span};
use crate::tensor_file::ADVICE;

/// What is wrong with comments as other languages have them.
pub const NO_COMMENT: &str = "`/*` begins no comment";
/// How comments are written instead.
pub const COMMENTS: &str = "a comment begins with `//` or `#` and ends with its line";

/// What the names are made of that authors give to values, calls, parts and numbers.
pub const NAMES: &str = "a name has letters, digits and `_`, and begins with a letter";

/// A source may be this many bytes long.
pub const MAX_BYTES: usize = crate::read::limit::SPEC;
/// Maps and lists may nest this deep. Later passes recurse on them, and a spec needs about ten levels.
pub const MAX_DEPTH: usize = 64;
/// The longest key in characters. Keys are repeated in messages.
pub const MAX_KEY: usize = 256;

/// How large a text may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes.
    pub bytes: usize,
    /// The most keys, maps, lists and other values.
    pub nodes: usize,
    /// Which texts have these limits.
    of: &'static str,
}

impl Limits {
    /// The limits of what people write.
    pub const SPEC: Self = Self { bytes: MAX_BYTES, nodes: 20_000, of: "a spec or a recipe" };
    /// Those of a model's config, which a program has written. It may have two maps with every class.
    pub const CONFIG: Self = Self { bytes: crate::read::limit::CONFIG, nodes: 100_000, of: "a config" };
}

/// Adds a file's bytes to the sources. A text that is not UTF-8 is added with replacement characters, so
/// that the diagnostic can point to the place, and `None` is returned.
pub fn decode(sources: &mut SourceMap, name: &str, bytes: &[u8], sink: &mut Sink) -> Option<SourceId> {
    decode_within(Limits::SPEC, sources, name, bytes, sink)
}

/// As [`decode`] for a text with these limits.
pub fn decode_within(
    limits: Limits,
    sources: &mut SourceMap,
    name: &str,
    bytes: &[u8],
    sink: &mut Sink,
) -> Option<SourceId> {
    // First, because such a file is usually longer than any text.
    if let Some((kind, help)) = another_kind(bytes) {
        let id = sources.add(name, "");
        let message = format!("the file is {}, and not a text", kind.name());
        sink.push(Diagnostic::error(Code::Encoding, Span::new(id, 0, 0), message).help(help));
        return None;
    }
    if bytes.len() > limits.bytes {
        // The diagnostic names the file; its text would only take memory.
        let id = sources.add(name, "");
        sink.push(too_long(limits, id));
        return None;
    }
    // UTF-32 first: its little-endian mark begins with that of UTF-16.
    let wide = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        // UTF-16 without a byte order mark: Latin letters alternate with NUL bytes.
        [a, 0, b, 0, ..] | [0, a, 0, b, ..] if *a != 0 && *b != 0 => Some("UTF-16"),
        _ => None,
    };
    if let Some(encoding) = wide {
        let id = sources.add(name, "");
        let message = format!("the file is encoded in {encoding}, but a spec must be UTF-8");
        let help = "save it as UTF-8 in your editor";
        sink.push(Diagnostic::error(Code::Encoding, Span::new(id, 0, 0), message).help(help));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(sources.add(name, text)),
        Err(fault) => {
            let at = fault.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            // Only what follows the valid bytes is replaced, so their offset is right in the new text, too.
            let id = sources.add(name, String::from_utf8_lossy(bytes));
            let span = Span::new(id, at, at.saturating_add('\u{fffd}'.len_utf8()));
            let message = format!("the byte 0x{byte:02x} is not UTF-8");
            let help = "save the file as UTF-8, or remove the character";
            sink.push(Diagnostic::error(Code::Encoding, span, message).help(help));
            None
        }
    }
}

/// The kind of a file that is no text, with what it is for.
fn another_kind(bytes: &[u8]) -> Option<(Kind, Cow<'static, str>)> {
    // A text may begin with the same letters, but has no such bytes.
    if std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) {
        return None;
    }
    let kind = Kind::of(bytes)?;
    let help = match kind {
        // What is said of encodings has a way to save it.
        Kind::Utf16 => return None,
        Kind::Safetensors => {
            "it has weights, which `--weights FILE` takes next to a spec; `trafoc import DIR` makes a spec from the \
             folder of a Hugging Face model"
        }
        Kind::Pickle => ADVICE,
        Kind::Zip => return Some((kind, format!("unpack it; if it is of PyTorch, {ADVICE}").into())),
        Kind::Gguf | Kind::Hdf5 => {
            "trafoc does not read it: the folder of the same model from Hugging Face has safetensors, and `trafoc import DIR` makes \
             a spec from it"
        }
        Kind::SentencePiece => "it belongs to a model's folder; in a recipe, `tokens` names a tokenizer",
        Kind::Picture(_) => {
            "images are data, which a recipe names under `data`; `trafoc predict MODEL --image FILE` takes one"
        }
        Kind::Table(_) => "it has data, which a recipe names under `data` once they are CSV or JSON lines",
        Kind::Packed(_) | Kind::Gzip => "unpack it, and name the file that was in it",
    };
    Some((kind, help.into()))
}

/// Whether a text can be given to a parser: it is short enough and contains no characters that hide what it
/// says.
pub fn check(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> bool {
    check_within(Limits::SPEC, sources, id, sink)
}

/// As [`check`] for a text with these limits.
pub fn check_within(limits: Limits, sources: &SourceMap, id: SourceId, sink: &mut Sink) -> bool {
    let text = sources.get(id).map_or("", |s| s.text.as_str());
    if text.len() > limits.bytes {
        sink.push(too_long(limits, id));
        return false;
    }
    // All faults in one run, as everywhere, not only the first.
    let mut clean = true;
    let is_mark = |at: usize, c: char| c == MARK && at > 0;
    // A file of another kind may have thousands; twenty show what is wrong.
    let hidden = text.char_indices().filter(|(at, c)| is_hidden(*c) || is_mark(*at, *c));
    for (at, found) in hidden.take(20) {
        clean = false;
        let span = Span::new(id, at, at.saturating_add(found.len_utf8()));
        if found == MARK {
            sink.push(mark_inside(span));
            continue;
        }
        let name = match found {
            '\0' => "a NUL character".to_owned(),
            '\u{1b}' => "an escape character, which controls a terminal".to_owned(),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                format!("the character U+{:04X}, which changes the direction of text", found as u32)
            }
            other => format!("the control character U+{:04X}", other as u32),
        };
        let message = format!("the text contains {name}");
        sink.push(Diagnostic::error(Code::HiddenCharacter, span, message).help("remove it"));
    }
    clean
}

/// The byte order mark. At the beginning of a text it tells the encoding; anywhere else it is invisible, and the printers
/// cannot write it into a text of several lines.
const MARK: char = '\u{feff}';

/// The diagnostic for a byte order mark that is not before the text.
fn mark_inside(span: Span) -> Diagnostic {
    Diagnostic::error(Code::Encoding, span, "there is a byte order mark inside the text").help("remove it")
}

/// The diagnostic for a source that is too long.
fn too_long(Limits { bytes, of, .. }: Limits, id: SourceId) -> Diagnostic {
    // Of a longer file no more is read, so its length is unknown.
    let message = format!("the text is longer than the {bytes} bytes that {of} may have");
    Diagnostic::error(Code::TooLarge, Span::new(id, 0, 0), message)
        .help("it usually takes a page or two: check that this is the file you mean")
}

/// The diagnostic for a text with too many keys and values.
pub fn too_many_values(limits: Limits, at: Span) -> Diagnostic {
    let message = format!("the text contains more than {} keys and values", limits.nodes);
    Diagnostic::error(Code::TooLarge, at, message)
}

/// A text on lines of its own, as both notations read it: without the indent its lines share, without blanks
/// at the ends of lines, and without empty lines above and below. What follows the opening mark on its line
/// has no indent. A carriage return ends a line as it does in YAML.
pub fn dedent(written: &str) -> String {
    let blank = [' ', '\t'];
    let unix = if written.contains('\r') {
        Cow::Owned(written.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(written)
    };
    let lines: Vec<&str> = unix.split('\n').map(|l| l.trim_end_matches(blank)).collect();
    let indent = |l: &&str| l.len().saturating_sub(l.trim_start_matches(blank).len());
    // The first line follows the opening mark, so its own indentation tells nothing.
    let shared = lines.iter().skip(1).filter(|l| !l.is_empty()).map(indent).min().unwrap_or(0);
    let mut text: Vec<&str> = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        text.push(if i == 0 { line.trim_start_matches(blank) } else { line.get(shared..).unwrap_or("") });
    }
    text.join("\n").trim_matches('\n').to_owned()
}

/// Whether a text on lines of its own reads back as itself.
pub fn is_dedented(text: &str) -> bool {
    dedent(&format!("\n{text}")) == text
}

/// An expression without the line ends, tabs and comments its author put into it.
pub fn one_line(written: &str) -> String {
    // Nearly all expressions are on one line already.
    if !written.contains(['\n', '\r', '\t', '#']) && !written.contains("//") {
        return written.to_owned();
    }
    let code = |line: &str| split_comment(line).0.replace(['\r', '\t'], " ").trim_matches(' ').to_owned();
    let parts: Vec<String> = written.split('\n').map(code).filter(|l| !l.is_empty()).collect();
    parts.join(" ")
}

/// The comments that [`one_line`] leaves out, with their marks.
pub fn comments_in(written: &str) -> Vec<String> {
    let comments = written.split('\n').map(|line| as_comment(split_comment(line).1));
    comments.filter(|comment| !comment.is_empty()).collect()
}

/// A comment as both notations can write it: a carriage return or a mark of byte order would end it in YAML.
pub fn as_comment(written: &str) -> String {
    written.replace(['\r', '\u{feff}'], " ").trim_end().to_owned()
}

/// A line of an expression, and its comment.
fn split_comment(line: &str) -> (&str, &str) {
    let at = line.find('#').into_iter().chain(line.find("//")).min().unwrap_or(line.len());
    line.split_at(at)
}
