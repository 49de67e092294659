//! Reads examples from tables: CSV, TSV, and JSON with one object per line.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;

use super::raw::{Faults, Place, Raw, Visit, each_line};
use crate::diag::count::counted;
use crate::diag::suggest::suggest;
use crate::diag::{Code, Diagnostic};
use crate::field::words::listed;
use crate::learn::data::Refused;
use crate::learn::data::file::{self, Named};
use crate::learn::recipe::data::{Separator, Table};
use crate::read::{json_fault, limit};

/// The separator that the recipe gives, otherwise the one that the file's extension suggests.
fn separator(table: &Table, file: &Named) -> Separator {
    let name = file::name(&file.path).to_lowercase();
    // The ending before it says what is inside.
    let name = name.trim_end_matches(".gz");
    table.separator.unwrap_or(match name.rsplit('.').next() {
        Some("jsonl" | "ndjson" | "json") => Separator::Json,
        Some("tsv" | "tab" | "txt") => Separator::Tab,
        Some(_) | None => Separator::Comma,
    })
}

/// One row of a table, from which the columns that the recipe names are read.
struct Row<'r> {
    table: &'r Table,
    /// Whether a text may have several classes.
    several: bool,
    /// The values of the column with this name: several if a cell of JSON is a list, otherwise one.
    value: &'r dyn Fn(&str) -> Result<Vec<String>, String>,
}

impl Row<'_> {
    /// All values of a column; `None` if the recipe names no such column.
    fn all(&self, column: &Option<String>) -> Result<Option<Vec<String>>, String> {
        column.as_deref().map(|c| (self.value)(c)).transpose()
    }

    /// The only value of a column; a list of several is an error.
    fn one(&self, column: &Option<String>) -> Result<Option<String>, String> {
        let values = self.all(column)?;
        values
            .map(|values| match values.as_slice() {
                [only] => Ok(only.clone()),
                more => Err(format!("{}, but one is expected", counted(more.len(), "value"))),
            })
            .transpose()
    }

    /// The row as an example of the task that its columns are for.
    fn raw(&self) -> Result<Raw, String> {
        let table = self.table;
        let filled = |column: &Option<String>| match self.one(column)? {
            // An example without text has nothing to learn from, and is mostly a sign of a wrong column.
            Some(text) if text.trim().is_empty() => {
                Err(format!("`{}` is empty", column.as_deref().unwrap_or("")))
            }
            other => Ok(other),
        };
        if let (Some(source), Some(target)) = (filled(&table.source)?, filled(&table.target)?) {
            return Ok(Raw::Pair { source, target, language: filled(&table.language)? });
        }
        let text = filled(&table.text)?.unwrap_or_default();
        // Which columns there must be has been checked with the recipe, so a missing one is not asked for
        // here.
        let Some(labels) = self.all(&table.label)? else { return Ok(Raw::Text(text)) };
        // A cell with several classes separates them by `|`, which otherwise is a character of the class's name.
        let cells = labels.iter().map(String::as_str);
        let all: Vec<&str> = match self.several {
            true => cells.flat_map(|cell| cell.split('|')).collect(),
            false => cells.collect(),
        };
        let labels = all
            .iter()
            .map(|l| l.trim().to_owned())
            // An empty cell is an example with no class, which `multi_label` allows.
            .filter(|l| !l.is_empty())
            .collect();
        Ok(Raw::Labelled { text, second: self.one(&table.second)?, labels })
    }
}

/// Visits every row of some files. `several` says whether a text may have several classes.
///
/// # Errors
/// A file cannot be read, or a row is longer than a line may be. Rows that are wrong are reported to
/// `faults`.
pub fn read(
    table: &Table,
    several: bool,
    files: &[Named],
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<(), Refused> {
    for file in files {
        let flow = match separator(table, file) {
            Separator::Json => json(table, several, file, faults, visit)?,
            Separator::Comma => columns(table, several, file, b',', faults, visit)?,
            Separator::Tab => columns(table, several, file, b'\t', faults, visit)?,
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// Visits the objects of a file, one on each line.
fn json(
    table: &Table,
    several: bool,
    file: &Named,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Refused> {
    let mut is_first = true;
    each_line(std::slice::from_ref(file), faults, &mut |line, place, faults| {
        if line.trim().is_empty() {
            return ControlFlow::Continue(());
        }
        let object = serde_json::from_str::<Json>(line);
        // A file whose values are not a line each is wrong on every line, so this is said once.
        if std::mem::replace(&mut is_first, false)
            && let Some((why, filter)) = not_a_line(line, &object)
        {
            let help = format!("each object must be on its own line: `jq -c {filter} FILE` writes it so");
            let _ = faults.line(place, why, Some(&help));
            return ControlFlow::Break(());
        }
        let object = match object {
            Ok(object) => object,
            Err(fault) => return faults.line(place, &json_fault(&fault), None),
        };
        if let Some(twice) =
            repeated(line).into_iter().find(|key| given(table).any(|(_, column)| column == key))
        {
            return faults.line(place, &format!("`{twice}` is given twice"), Some("keep one of them"));
        }
        let text = |value: &Json| match value {
            Json::String(text) => Ok(text.clone()),
            // Classes are often numbers.
            Json::Number(number) => Ok(number.to_string()),
            Json::Bool(bool) => Ok(bool.to_string()),
            Json::Null | Json::Array(_) | Json::Object(_) => {
                Err("a value is no text and no number".to_owned())
            }
        };
        let value = |column: &str| match object.get(column) {
            Some(Json::Array(all)) => all.iter().map(text).collect(),
            Some(value) => text(value).map(|v| vec![v]),
            None => Err(format!("it has no `{column}`")),
        };
        match (Row { table, several, value: &value }).raw() {
            Ok(raw) => visit(raw, place, faults),
            Err(why) => faults.line(place, &why, None),
        }
    })
}

/// The keys of a JSON object that it has more than once, of which a value keeps only the last.
fn repeated(line: &str) -> Vec<String> {
    struct Keys(Vec<String>);
    impl<'de> Deserialize<'de> for Keys {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Names;
            impl<'de> Visitor<'de> for Names {
                type Value = Keys;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                    let (mut seen, mut twice) = (BTreeSet::new(), Vec::new());
                    while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                        if let Some(key) = seen.replace(key) {
                            twice.push(key);
                        }
                    }
                    Ok(Keys(twice))
                }
            }
            from.deserialize_map(Names)
        }
    }
    // What is no object has no keys.
    serde_json::from_str(line).map_or_else(|_| Vec::new(), |Keys(keys)| keys)
}

/// What the first line shows of a file whose objects are not a line each, with the filter of jq that would make
/// them so.
fn not_a_line(line: &str, read: &serde_json::Result<Json>) -> Option<(&'static str, &'static str)> {
    match read {
        Ok(Json::Array(_)) => Some(("it is an array of JSON", "'.[]'")),
        Err(fault) if fault.is_eof() => Some(match line.trim_start().starts_with('[') {
            true => ("an array of JSON begins here", "'.[]'"),
            false => ("an object of JSON begins here and does not end on this line", "."),
        }),
        Ok(_) | Err(_) => None,
    }
}

/// The index of a column, which is given by its name or by its number, counted from 1.
fn index_of(names: &[String], column: &str) -> Option<usize> {
    // The name first: a column can be called `1`.
    let named = names.iter().position(|n| n == column);
    named.or_else(|| column.parse::<usize>().ok()?.checked_sub(1))
}

/// The keys of the recipe that give a column, with the column.
fn given(table: &Table) -> impl Iterator<Item = (&'static str, &str)> {
    let columns = [
        ("text", &table.text),
        ("second", &table.second),
        ("label", &table.label),
        ("source", &table.source),
        ("target", &table.target),
        ("language", &table.language),
    ];
    columns.into_iter().filter_map(|(key, column)| Some((key, column.as_deref()?)))
}

/// Reports the columns that the recipe names and the file has twice, or does not have. Returns whether there are any.
fn unknown_columns(table: &Table, file: &Named, names: &[String], faults: &mut Faults<'_>) -> bool {
    let mut any = false;
    for (key, column) in given(table) {
        let name = file::name(&file.path);
        let mut places = names.iter().enumerate().filter(|(_, name)| *name == column).map(|(i, _)| i + 1);
        if let (Some(first), Some(second)) = (places.next(), places.next()) {
            let message = format!("`{name}` has several columns `{column}`");
            let help =
                format!("write the number of the one that is meant, such as `{key}: {first}` or `{second}`");
            faults.push(Diagnostic::error(Code::BadData, table.places.of(key), message).help(help));
            any = true;
            continue;
        }
        if index_of(names, column).is_some() {
            continue;
        }
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let (message, help) = match words.as_slice() {
            [] => (
                format!("`{name}` is read without a header, but `{column}` is not the number of a column"),
                "columns are counted from 1".to_owned(),
            ),
            // A single name with separators in it is a line of another kind of table.
            [only] if let Some(help) = other_separator(only) => {
                (format!("`{name}` has no column `{column}`"), help.to_owned())
            }
            words => {
                let near = suggest(column, words).map(|near| format!("did you mean `{near}`?"));
                let help = near.unwrap_or_else(|| format!("its columns are {}", listed(words)));
                (format!("`{name}` has no column `{column}`"), help)
            }
        };
        faults.push(Diagnostic::error(Code::BadData, table.places.of(key), message).help(help));
        any = true;
        // The other columns are missing for the same reason.
        if let [only] = words.as_slice()
            && other_separator(only).is_some()
        {
            break;
        }
    }
    any
}

/// How a table is read whose whole header was taken for one name, because its columns are separated otherwise.
fn other_separator(header: &str) -> Option<&'static str> {
    match header {
        _ if header.contains('\t') => Some("its columns are separated by tabs: write `separator: tab`"),
        _ if header.contains(';') => Some("its columns are separated by `;`: write them with commas"),
        _ if header.contains(',') => Some("its columns are separated by commas: write `separator: comma`"),
        _ => None,
    }
}

// The CSV reader accepts a quotation mark that is never closed. To find one, `END` is appended to every
// comma-separated file. If a quotation mark is open there, `END` closes it, and the last cell ends in `OPEN`.
// Otherwise `END` is a row of its own with the single cell `AFTER`, which text does not contain.

const END: &[u8] = b"\n\"\0\"\n";
const OPEN: &[u8] = b"\n\0\"";
const AFTER: &[u8] = b"\0";

/// Counts the bytes that are read for a row, and fails if they are more than a line may have.
struct Metered<R> {
    inner: R,
    taken: Rc<Cell<usize>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.set(self.taken.get() + count);
        match self.taken.get() > limit::LINE {
            true => {
                let why = format!("a row is longer than {} bytes", limit::LINE);
                Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
            }
            false => Ok(count),
        }
    }
}

/// Visits the rows of a file with columns. Returns whether reading was stopped.
fn columns(
    table: &Table,
    several: bool,
    file: &Named,
    separator: u8,
    faults: &mut Faults<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Refused> {
    let taken = Rc::new(Cell::new(0));
    let end: &[u8] = if separator == b',' { END } else { b"" };
    let rows_of = Metered { inner: file::open(&file.path)?, taken: Rc::clone(&taken) };
    let mut reader = csv::ReaderBuilder::new()
        // A header may have more than one line here, and the columns may be named by their numbers.
        .has_headers(false)
        // Rows of other lengths are reported with their lines; the reader itself would end at the first.
        .flexible(true)
        .delimiter(separator)
        // Programs that write tabs between columns write a quotation mark as any other character.
        .quoting(separator == b',')
        .from_reader(rows_of.chain(end));
    let mut record = csv::ByteRecord::new();
    let mut names: Vec<String> = Vec::new();
    // A first line of another kind, which no column is named after, says nothing of the rows.
    let mut has_names = false;
    let mut rows = 0u64;
    // Without a header the columns are known before the first row.
    if *table.header == 0 && unknown_columns(table, file, &names, faults) {
        return Ok(ControlFlow::Break(()));
    }
    loop {
        let line = reader.position().line();
        // The reader fills its buffer ahead, so a row may be charged for bytes of the next ones. They are few
        // next to the limit.
        taken.set(0);
        // Bytes and not text, so that a cell that is not UTF-8 is reported with its line.
        let more = reader.read_byte_record(&mut record);
        let place = Place { file, line: record.position().map_or(line, csv::Position::line) };
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(ControlFlow::Continue(())),
            Err(fault) => match fault.into_kind() {
                csv::ErrorKind::Io(error) => return Err(file::refused(&file.path, &error)),
                other => {
                    let why = format!("the row cannot be read: {other:?}");
                    return Ok(faults.line(place, &why, None));
                }
            },
        }
        if record.len() > limit::COLUMNS {
            let (found, most) = (record.len(), limit::COLUMNS);
            let why = format!("the row has {}, but {most} is the limit", counted(found, "column"));
            let _ =
                faults.line(place, &why, Some("`separator` of the table says what is between its columns"));
            return Ok(ControlFlow::Break(()));
        }
        if record.len() == 1 && record.get(0) == Some(AFTER) {
            return Ok(ControlFlow::Continue(()));
        }
        if separator == b',' && record.iter().next_back().is_some_and(|cell| cell.ends_with(OPEN)) {
            let help = "close it, or write it twice where it belongs to a text in quotation marks";
            return Ok(faults.line(
                place,
                "a quotation mark is opened in this row and not closed",
                Some(help),
            ));
        }
        rows += 1;
        let cells: Result<Vec<&str>, _> = record.iter().map(std::str::from_utf8).collect();
        let Ok(mut cells) = cells else {
            if faults.line(place, "it is not UTF-8", Some("save the file as UTF-8")).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        };
        if rows == 1
            && let Some(first) = cells.first_mut()
        {
            // The byte order mark that spreadsheets write before UTF-8.
            *first = first.trim_start_matches('\u{feff}');
        }
        if rows <= *table.header {
            if rows == 1 {
                names = cells.iter().map(|c| c.trim().to_owned()).collect();
                if unknown_columns(table, file, &names, faults) {
                    return Ok(ControlFlow::Break(()));
                }
                has_names = given(table).any(|(_, column)| names.iter().any(|name| name == column));
            }
            continue;
        }
        let value = |column: &str| {
            let found = cells.len();
            let cell = index_of(&names, column).and_then(|i| cells.get(i));
            let columns = if found == 1 { "column" } else { "columns" };
            let short = || format!("it has {found} {columns}, but no `{column}` is among them");
            cell.map(|cell| vec![(*cell).to_owned()]).ok_or_else(short)
        };
        // A text with a separator in it would be cut there, and the columns after it would be others.
        let is_wide = has_names && cells.len() > names.len();
        let row = match is_wide {
            true => Err(format!(
                "it has {}, but the header names {}",
                counted(cells.len(), "column"),
                names.len()
            )),
            false => (Row { table, several, value: &value }).raw(),
        };
        let flow = match row {
            Ok(raw) => visit(raw, place, faults),
            Err(why) => {
                // A forgotten quotation mark shows as one cell with many lines, far from where the row fails.
                let breaks = cells.iter().map(|cell| cell.matches('\n').count() as u64).sum::<u64>();
                let last = place.line + breaks;
                let taken = format!(
                    "its quotation marks span the lines up to {last}; an unclosed one spans too many"
                );
                let help = match separator {
                    _ if breaks > 0 => Some(taken.as_str()),
                    b',' if is_wide => Some("put a text with a comma in quotation marks"),
                    _ if is_wide => Some("a text cannot have a tab here: write a space"),
                    _ => None,
                };
                faults.line(place, &why, help)
            }
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
}
