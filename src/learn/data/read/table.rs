//! Reads examples from tables: CSV, TSV, and JSON with one object per line.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;

use super::marks::{Marks, Spot, Stray};
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
    value: &'r dyn Fn(&str) -> Result<Vec<String>, Fault>,
}

/// What is wrong with a row, and what to write instead.
type Fault = (String, Option<&'static str>);

impl Row<'_> {
    /// All values of a column; `None` if the recipe names no such column.
    fn all(&self, column: &Option<String>) -> Result<Option<Vec<String>>, Fault> {
        column.as_deref().map(|c| (self.value)(c)).transpose()
    }

    /// The only value of a column; a list of several is an error.
    fn one(&self, column: &Option<String>) -> Result<Option<String>, Fault> {
        let (Some(column), Some(values)) = (column, self.all(column)?) else { return Ok(None) };
        match values.as_slice() {
            [only] => Ok(Some(only.clone())),
            more => {
                let found = counted(more.len(), "value");
                Err((format!("`{column}` has {found}, but one is expected"), None))
            }
        }
    }

    /// The row as an example of the task that its columns are for.
    fn raw(&self) -> Result<Raw, Fault> {
        let table = self.table;
        let filled = |column: &Option<String>| match self.one(column)? {
            // An example without text has nothing to learn from, and is mostly a sign of a wrong column.
            Some(text) if text.trim().is_empty() => {
                Err((format!("`{}` is empty", column.as_deref().unwrap_or("")), None))
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
        let labels: Vec<String> = all
            .iter()
            .map(|l| l.trim().to_owned())
            // An empty cell is an example with no class, which `multi_label` allows.
            .filter(|l| !l.is_empty())
            .collect();
        if labels.is_empty() && !self.several {
            let column = table.label.as_deref().unwrap_or("");
            let help = "write the class of the text there, or remove the line";
            return Err((format!("`{column}` is empty"), Some(help)));
        }
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
        let value = |column: &str| match object.get(column) {
            Some(Json::Array(all)) => all.iter().map(|value| text_of(value, column, several)).collect(),
            Some(value) => text_of(value, column, several).map(|v| vec![v]),
            None => Err((format!("it has no `{column}`"), None)),
        };
        match (Row { table, several, value: &value }).raw() {
            Ok(raw) => visit(raw, place, faults),
            Err((why, help)) => faults.line(place, &why, help),
        }
    })
}

/// The text of a JSON value of this key.
fn text_of(value: &Json, key: &str, several: bool) -> Result<String, Fault> {
    let found = match value {
        Json::String(text) => return Ok(text.clone()),
        // Classes are often numbers.
        Json::Number(number) => return Ok(number.to_string()),
        Json::Bool(bool) => return Ok(bool.to_string()),
        Json::Null => "`null`",
        Json::Array(_) => "a list in a list",
        Json::Object(_) => "an object",
    };
    let help = match value {
        Json::Null if several => "write `[]` where there is no class",
        Json::Null => "write the value there, or remove the line",
        _ => "write the text or the number itself",
    };
    Err((format!("`{key}` is {found}, but a text or a number is expected"), Some(help)))
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

/// Counts the bytes that are read for a row, and fails if they are more than a line may have.
struct Metered<R> {
    inner: R,
    taken: Rc<Cell<usize>>,
    /// What follows the quotation marks, where these are not characters like others.
    marks: Option<Rc<RefCell<Marks>>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let mut marks = self.marks.as_ref().map(|marks| marks.borrow_mut());
        if let Some(marks) = &mut marks {
            match buffer.get(..count) {
                Some(read) if count > 0 => marks.read(read),
                _ => marks.end(),
            }
        }
        self.taken.set(self.taken.get() + count);
        match self.taken.get() > limit::LINE {
            true => {
                let why = format!("a row is longer than {} bytes", limit::LINE);
                let why = match marks.and_then(|marks| marks.open()) {
                    Some(Spot { line, column }) => format!(
                        "{why}: the quotation mark at line {line}, column {column} is not closed before"
                    ),
                    None => why,
                };
                Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
            }
            false => Ok(count),
        }
    }
}

/// Where a stray quotation mark is, what is wrong with it, and what to write.
fn stray(Stray { opened, closed, .. }: Stray) -> (Spot, String, &'static str) {
    let twice = "inside quotation marks, write `\"\"` for each one of the text: `\"a 5\"\" screen\"`";
    match closed {
        None => {
            let help = "close it, or write it twice where it belongs to a text in quotation marks";
            (opened, "a quotation mark is opened here and not closed".to_owned(), help)
        }
        Some(closed) if closed.line == opened.line => {
            (closed, "text follows the quotation mark that closes a cell".to_owned(), twice)
        }
        // The lines between them are one cell, which is seldom meant, so the first mark is in doubt.
        Some(Spot { line, column }) => {
            let message = format!(
                "the quotation mark that is opened here is closed at line {line}, column {column}, where text follows"
            );
            (opened, message, twice)
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
    // Programs that write tabs between columns write a quotation mark as any other character.
    let marks = (separator == b',').then(|| Rc::new(RefCell::new(Marks::new())));
    let rows_of = Metered { inner: file::open(&file.path)?, taken: Rc::clone(&taken), marks: marks.clone() };
    let mut reader = csv::ReaderBuilder::new()
        // A header may have more than one line here, and the columns may be named by their numbers.
        .has_headers(false)
        // Rows of other lengths are reported with their lines; the reader itself would end at the first.
        .flexible(true)
        .delimiter(separator)
        .quoting(marks.is_some())
        .from_reader(rows_of);
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
        let end = reader.position().byte();
        let mark = marks.as_ref().and_then(|marks| marks.borrow_mut().before(end));
        if let Some((spot, why, help)) = mark.map(stray) {
            rows += 1;
            // The cells of the row cannot be trusted. If it has the names of the columns, the rows after it cannot be read either.
            if faults.at(place, spot, &why, Some(help)).is_break() || rows <= *table.header {
                return Ok(ControlFlow::Break(()));
            }
            continue;
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
            let short = || (format!("it has {found} {columns}, but no `{column}` is among them"), None);
            cell.map(|cell| vec![(*cell).to_owned()]).ok_or_else(short)
        };
        // A text with a separator in it would be cut there, and the columns after it would be others.
        let is_wide = has_names && cells.len() > names.len();
        let row = match is_wide {
            true => {
                let found = counted(cells.len(), "column");
                // Only a quotation mark at the very start of a cell opens it.
                let is_after_blank =
                    |cell: &&str| cell.starts_with(' ') && cell.trim_start().starts_with('"');
                let help = match separator {
                    b',' if cells.iter().any(is_after_blank) => {
                        "the blank before a quotation mark makes it part of the text: remove the blank"
                    }
                    b',' => "put a text with a comma in quotation marks",
                    _ => "a text cannot have a tab here: write a space",
                };
                Err((format!("it has {found}, but the header names {}", names.len()), Some(help)))
            }
            false => (Row { table, several, value: &value }).raw(),
        };
        let flow = match row {
            Ok(raw) => visit(raw, place, faults),
            Err((why, help)) => {
                // A forgotten quotation mark shows as one cell with many lines, far from where the row fails.
                let breaks = cells.iter().map(|cell| cell.matches('\n').count() as u64).sum::<u64>();
                let last = place.line + breaks;
                let taken = format!(
                    "its quotation marks span the lines up to {last}; an unclosed one spans too many"
                );
                faults.line(place, &why, if breaks > 0 { Some(taken.as_str()) } else { help })
            }
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
}
