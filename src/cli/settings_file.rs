//! A file of settings, `trafoc.toml`: its text, with what is wrong in it as diagnostics.

use std::ffi::OsString;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::setting::{Kind, SETTINGS, Setting};
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::words::listed;
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::text;

/// What a file says of one setting.
#[derive(Clone, Debug)]
pub struct Said {
    /// The setting's key.
    pub key: &'static str,
    /// Its value, with the whole path of a folder.
    pub value: OsString,
    /// The line of the value, counted from 1.
    pub line: usize,
}

/// Reads the settings of a file in `folder`; of what is wrong nothing is returned, and the sink has it.
pub fn parse(name: &str, bytes: &[u8], folder: &Path, sources: &mut SourceMap, sink: &mut Sink) -> Vec<Said> {
    let bytes = crate::read::unmarked(bytes);
    let Some(id) = text::decode(sources, name, bytes, sink) else { return Vec::new() };
    if !text::check(sources, id, sink) {
        return Vec::new();
    }
    let whole = sources.get(id).map_or("", |source| source.text.as_str());
    let (table, faults) = DeTable::parse_recoverable(whole);
    for fault in &faults {
        let range = fault.span().unwrap_or_default();
        let span = Span::within(id, whole, range.start, range.end);
        sink.push(in_our_words(fault.message(), whole, span));
    }
    // What is read after a mistake may be in the wrong place.
    if !faults.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (key, value) in table.get_ref() {
        let at = |range: std::ops::Range<usize>| Span::within(id, whole, range.start, range.end);
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key.get_ref().as_ref()) else {
            sink.push(unknown(key.get_ref(), at(key.span())));
            continue;
        };
        match taken(setting, value.get_ref(), at(value.span())) {
            Ok(text) => {
                let value = match setting.kind {
                    Kind::Folder => folder.join(text).into_os_string(),
                    Kind::Word(_) | Kind::Name | Kind::Count(_) => text.into(),
                };
                all.push(Said { key: setting.key, value, line: line_of(sources, id, at(key.span())) });
            }
            Err(wrong) => sink.push(*wrong),
        }
    }
    all
}

/// What is wrong with a text that is no TOML. The parser's words are kept where none of ours say more.
fn in_our_words(message: &str, whole: &str, span: Span) -> Diagnostic {
    let word = whole.get(span.range()).unwrap_or_default();
    let before = whole.get(..span.start as usize).unwrap_or_default();
    // The parser takes some words for the beginning of a number, such as `nan`.
    match before.trim_end_matches([' ', '\t']).ends_with('=') {
        true if word.is_empty() => Diagnostic::error(Code::Syntax, span, "a value is missing"),
        true if word.starts_with(char::is_alphabetic) => {
            let help = format!("write `\"{word}\"`");
            Diagnostic::error(Code::Syntax, span, "a text is without quotes").help(help)
        }
        _ if message == "duplicate key" => {
            Diagnostic::error(Code::DuplicateKey, span, format!("`{word}` is given twice"))
        }
        _ => Diagnostic::error(Code::Syntax, span, message),
    }
}

fn line_of(sources: &SourceMap, id: SourceId, span: Span) -> usize {
    sources.get(id).map_or(1, |source| source.line_at(span.start as usize))
}

/// A key that is no setting.
fn unknown(key: &str, span: Span) -> Diagnostic {
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let diagnostic = Diagnostic::error(Code::UnknownKey, span, format!("there is no setting `{key}`"));
    match suggest(key, &keys) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!(
            "the settings are {}; everything else is said on the command line, in a spec or in a recipe",
            listed(&keys)
        )),
    }
}

/// The text of a value that a setting takes, or what is wrong with it.
fn taken(setting: &Setting, value: &DeValue<'_>, span: Span) -> Result<String, Box<Diagnostic>> {
    let Setting { key, kind, .. } = setting;
    let wrong = |code, message: String| Diagnostic::error(code, span, message);
    let found = match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let kind_of = |expected: &str| {
        let message = format!("expected {expected}, found {found}");
        let fix = format!("write it as in `{key} = {}`", setting.example);
        Err(Box::new(wrong(Code::WrongKind, message).help(fix)))
    };
    match (kind, value) {
        (Kind::Word(words), DeValue::String(word)) if words.contains(&word.as_ref()) => Ok(word.to_string()),
        (Kind::Word(words), DeValue::String(word)) => {
            let diagnostic = wrong(Code::UnknownWord, format!("`{word}` is not one of {}", listed(words)));
            Err(Box::new(match suggest(word, words) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            }))
        }
        (Kind::Word(_), _) => kind_of("a word in quotes"),
        (Kind::Name | Kind::Folder, DeValue::String(text)) if text.is_empty() => {
            let message = format!("`{key}` is empty");
            Err(Box::new(wrong(Code::OutOfRange, message).help("leave the line out, or give it a value")))
        }
        // No name of a device and no path has one, and the system takes none.
        (Kind::Name | Kind::Folder, DeValue::String(text)) if text.contains('\0') => {
            let message = format!("`{key}` has a NUL character");
            Err(Box::new(wrong(Code::HiddenCharacter, message).help("remove it")))
        }
        (Kind::Name | Kind::Folder, DeValue::String(text)) => Ok(text.to_string()),
        (Kind::Name, _) => kind_of("a name in quotes"),
        (Kind::Folder, _) => kind_of("a path in quotes"),
        (Kind::Count(most), DeValue::Integer(number)) => {
            let count = u16::from_str_radix(number.as_str(), number.radix()).ok();
            let count = count.filter(|count| (1..=*most).contains(count)).map(|count| count.to_string());
            let message = || format!("`{key}` is a whole number from 1 to {most}");
            count.ok_or_else(|| Box::new(wrong(Code::OutOfRange, message())))
        }
        (Kind::Count(_), _) => kind_of("a whole number"),
    }
}
