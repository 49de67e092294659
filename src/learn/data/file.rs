//! Reads data files line by line, and decompresses those that are compressed.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{Refused, shipped};
use crate::diag::suggest::suggest;
use crate::kind::Kind;
use crate::read::{self, Unpacked, limit};

/// An I/O error as a refusal with a readable reason.
pub fn refused(path: &Path, error: &io::Error) -> Refused {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "you are not allowed to read it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        // With these the decoder of gzip reports bytes that are not gzip, and an end that is missing.
        io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => format!("it is damaged: {error}"),
        io::ErrorKind::NotADirectory => "it is not a folder".to_owned(),
        _ => error.to_string(),
    };
    Refused::File { path: path.to_owned(), why }
}

/// Opens an ordinary file, or a data set that comes with trafoc, whose name follows `@`. Data that begins
/// with gzip's magic number is decompressed, and reading it fails if it becomes far longer than text would.
///
/// # Errors
/// The file cannot be opened, or it is a folder, a pipe or a device, from which data cannot be read twice.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, Refused> {
    let fail = |error: io::Error| refused(path, &error);
    if let Some(name) = path.to_str().and_then(|p| p.strip_prefix('@')) {
        let Some(found) = shipped::shipped(name) else {
            let names: Vec<&str> = shipped::SHIPPED.iter().map(|s| s.name).collect();
            let why = match suggest(name, &names) {
                Some(near) => format!("no such data comes with trafoc; did you mean `@{near}`?"),
                None => format!("no such data comes with trafoc; there are @{}", names.join(", @")),
            };
            return Err(Refused::File { path: path.to_owned(), why });
        };
        let length = found.bytes.len() as u64;
        return Ok(unpacked(found.bytes, length, found.bytes.starts_with(&GZIP)));
    }
    let mut reader = plain(path)?;
    // Also of what was compressed, which may be an archive.
    let found = foreign(reader.fill_buf().map_err(fail)?);
    found.map_or(Ok(reader), |why| Err(Refused::File { path: path.to_owned(), why }))
}

/// Opens an ordinary file, whatever is in it.
fn plain(path: &Path) -> Result<Box<dyn BufRead>, Refused> {
    let fail = |error: io::Error| refused(path, &error);
    let file = read::regular(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    let mut reader = BufReader::with_capacity(BUFFER, file);
    // By the content, which stays in the buffer: files keep it when they are renamed.
    let is_packed = reader.fill_buf().map_err(fail)?.starts_with(&GZIP);
    Ok(unpacked(reader, length, is_packed))
}

/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const PANDAS: &str = "write it as CSV or as a JSON object a line, as with pandas";
const UNPACK: &str = "unpack it; of compressed files only gzip is read";

/// What a file is that begins with these bytes, and what to do with it, if it is known to be no text. A reader of images is given
/// pictures, and knows more about them.
fn foreign(begin: &[u8]) -> Option<String> {
    let kind = Kind::of(begin)?;
    let (name, help) = match kind {
        Kind::Zip => ("a zip archive, or a file of an office program", "unpack it, or save it as CSV"),
        Kind::Table(name) => (name, PANDAS),
        Kind::Hdf5 => (kind.name(), PANDAS),
        Kind::Packed(name) => (name, UNPACK),
        Kind::Utf16 => (kind.name(), "save the file as UTF-8"),
        Kind::Gzip
        | Kind::Picture(_)
        | Kind::Safetensors
        | Kind::Pickle
        | Kind::Gguf
        | Kind::SentencePiece => return None,
    };
    Some(format!("it is {name}; {help}"))
}

/// The number of bytes that are read at a time.
const BUFFER: usize = 1 << 16;

/// The bytes of a file of this length, decompressed if it is packed.
fn unpacked(reader: impl BufRead + 'static, length: u64, is_packed: bool) -> Box<dyn BufRead> {
    match is_packed {
        true => {
            // Several gzip files joined together are a gzip file, too. A simple decoder would end after the
            // first one without an error.
            let unpacked = Unpacked::new(MultiGzDecoder::new(reader), length);
            Box::new(BufReader::with_capacity(BUFFER, unpacked))
        }
        false => Box::new(reader),
    }
}

/// All bytes of a file, decompressed, of which there may be at most `most`.
///
/// # Errors
/// The file cannot be read, or is longer.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    // One more than allowed, so that a file that is too long can be told from one that just fits.
    open(path)?.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|e| refused(path, &e))?;
    match bytes.len() > most {
        true => Err(Refused::File { path: path.to_owned(), why: format!("it is longer than {most} bytes") }),
        false => Ok(bytes),
    }
}

/// A line of a file, or what is wrong with it.
pub type Line<'a> = Result<&'a str, String>;

/// A function that is called with every line and its number, counted from 1.
pub type VisitLine<'v> = dyn FnMut(u64, Line<'_>) -> Result<ControlFlow<()>, Refused> + 'v;

/// Calls `visit` with every line, without its line break, and its number, counted from 1.
///
/// # Errors
/// The file cannot be read, or `visit` returns an error.
pub fn lines(path: &Path, visit: &mut VisitLine<'_>) -> Result<(), Refused> {
    let mut reader = open(path)?;
    let mut buffer = Vec::new();
    // Whether the line before ended with CR, of which an LF may be the second half.
    let mut after_cr = false;
    for number in 1.. {
        buffer.clear();
        let end = read_line(&mut reader, after_cr, &mut buffer).map_err(|e| refused(path, &e))?;
        if buffer.is_empty() && end.is_none() {
            break;
        }
        // A file without line breaks would otherwise be one line of any size in memory.
        if buffer.len() >= limit::LINE {
            let why = format!("line {number} is longer than {} bytes", limit::LINE);
            return Err(Refused::File { path: path.to_owned(), why });
        }
        after_cr = end == Some(b'\r');
        let mut line = buffer.as_slice();
        if number == 1 {
            line = read::unmarked(line);
        }
        let text = std::str::from_utf8(line).map_err(|fault| {
            let byte = line.get(fault.valid_up_to()).copied().unwrap_or_default();
            format!("the byte 0x{byte:02x} is not UTF-8")
        });
        if visit(number, text)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads a line up to its end, which is LF, CR LF or CR, as in tables, and is not kept; or as much of one that is too
/// long as a line may have. Returns the first byte of the end; the last line of a file may have none.
fn read_line(reader: &mut dyn BufRead, after_cr: bool, line: &mut Vec<u8>) -> io::Result<Option<u8>> {
    if after_cr && reader.fill_buf()?.first() == Some(&b'\n') {
        reader.consume(1);
    }
    while line.len() < limit::LINE {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        line.extend_from_slice(text);
        let found = rest.first().copied();
        let taken = text.len() + usize::from(found.is_some());
        reader.consume(taken);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// What is in a folder, by name, without hidden files.
///
/// # Errors
/// The folder cannot be read.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, Refused> {
    let fail = |error: io::Error| refused(folder, &error);
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(fail)?;
    // Systems leave files such as `.DS_Store` in folders of images.
    paths.retain(|p| !name(p).starts_with('.'));
    // The order of a folder is that of its file system, and the order of examples must not depend on it.
    paths.sort();
    Ok(paths)
}

/// The folders in a folder, by name. Files next to them are passed over.
///
/// # Errors
/// The folder cannot be read, or a link in it leads nowhere: what it should lead to may be one of the folders.
pub fn folders(folder: &Path) -> Result<Vec<PathBuf>, Refused> {
    let mut folders = Vec::new();
    for path in entries(folder)? {
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => folders.push(path),
            Ok(_) => {}
            Err(error) => return Err(refused(&path, &read::of_link(&path, error))),
        }
    }
    Ok(folders)
}

/// The name of a file in messages: the last part of its path.
pub fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// A path, with the place in the recipe that names it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The path as it is opened.
    pub path: PathBuf,
    /// The place in the recipe.
    pub span: crate::source::Span,
}
