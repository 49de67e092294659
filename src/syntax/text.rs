//! Bytes → text that is safe to parse and to show.
//!
//! The first door for a hostile file: size, encoding and characters that hide what a text says are
//! settled here, so the parsers behind it see plain UTF-8 of bounded length.

use crate::diag::{Code, Diagnostic, Sink};
pub use crate::source::is_hidden;
use crate::source::{SourceId, SourceMap, Span};

/// A source may be this many bytes long.
pub const MAX_BYTES: usize = 1 << 20;
/// Maps and lists may nest this deep.
pub const MAX_DEPTH: usize = 64;
/// A key may have this many characters.
pub const MAX_KEY: usize = 256;
/// A text may hold this many maps, lists and values.
pub const MAX_NODES: usize = 20_000;

/// Adds a file's bytes to the sources. A text that is no UTF-8 is added with its bad bytes
/// replaced, so that the diagnostic has a place to point at, and `None` comes back.
pub fn decode(sources: &mut SourceMap, name: &str, bytes: &[u8], sink: &mut Sink) -> Option<SourceId> {
    if bytes.len() > MAX_BYTES {
        let id = sources.add(name, "");
        sink.push(too_long(id, bytes.len()));
        return None;
    }
    let wide = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        // Without a mark: Latin letters and NUL bytes in turn.
        [a, 0, b, 0, ..] | [0, a, 0, b, ..] if *a != 0 && *b != 0 => Some("UTF-16"),
        _ => None,
    };
    if let Some(encoding) = wide {
        let id = sources.add(name, "");
        let message = format!("the file is written in {encoding}, and a spec is UTF-8");
        let help = "save it as UTF-8, which every editor offers beside the file name";
        sink.push(Diagnostic::error(Code::Encoding, Span::new(id, 0, 0), message).help(help));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(sources.add(name, text)),
        Err(fault) => {
            let at = fault.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let id = sources.add(name, String::from_utf8_lossy(bytes));
            let span = Span::new(id, at, at + '\u{fffd}'.len_utf8());
            let message = format!("the byte 0x{byte:02x} is not UTF-8");
            let help = "save the file as UTF-8, or take the character out";
            sink.push(Diagnostic::error(Code::Encoding, span, message).help(help));
            None
        }
    }
}

/// Whether a text may go to a parser: short enough and without characters that hide what it says.
pub fn check(sources: &SourceMap, id: SourceId, sink: &mut Sink) -> bool {
    let text = sources.get(id).map_or("", |s| s.text.as_str());
    if text.len() > MAX_BYTES {
        sink.push(too_long(id, text.len()));
        return false;
    }
    let mut clean = true;
    for (at, found) in text.char_indices().filter(|(_, c)| is_hidden(*c)).take(20) {
        let name = match found {
            '\0' => "a NUL character".to_owned(),
            '\u{1b}' => "an escape character, which commands a terminal,".to_owned(),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                format!("the character U+{:04X}, which changes the order text is shown in,", found as u32)
            }
            other => format!("the control character U+{:04X}", other as u32),
        };
        let span = Span::new(id, at, at + found.len_utf8());
        let message = format!("{name} stands in the text");
        sink.push(Diagnostic::error(Code::HiddenCharacter, span, message).help("take it out"));
        clean = false;
    }
    clean
}

/// The diagnostic of a source beyond [`MAX_BYTES`].
fn too_long(id: SourceId, bytes: usize) -> Diagnostic {
    let message = format!("the text is {bytes} bytes long, more than the {MAX_BYTES} a spec may have");
    Diagnostic::error(Code::TooLarge, Span::new(id, 0, 0), message)
        .help("a spec describes an architecture in a page or two: check that this is the file you mean")
}
