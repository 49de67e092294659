//! Files opened for reading: which may be opened, and how much of each is read.
//!
//! Every file a user names comes through here. What is read once may come through a pipe; what is read twice,
//! or from its end, must be an ordinary file, or a link to one: a model's directory in the cache of Hugging
//! Face contains nothing but links. Nothing is read without a bound, and all bounds are in [`limit`].

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_json::error::Category;

/// The most bytes that are read of each kind of file.
pub mod limit {
    /// A spec, a recipe, a family.
    pub const SPEC: usize = 1 << 20;
    /// The config of a model, which may name every class twice: some models have more than twenty thousand.
    pub const CONFIG: usize = 4 << 20;
    /// A file of settings, which has a few lines.
    pub const SETTINGS: usize = 64 << 10;
    /// An emitted file, and one in the system's folders about itself.
    pub const SOURCE: usize = 64 << 20;
    /// The header of a safetensors file, without the eight bytes of its length.
    pub const HEADER: u64 = 32 << 20;
    /// The index of a checkpoint in several files.
    pub const INDEX: usize = 32 << 20;
    /// A tokenizer, a codebook, and whatever else a model's directory contains in addition to its weights.
    pub const CODEBOOK: usize = 256 << 20;
    /// Texts that a model continues or classifies.
    pub const TEXTS: usize = 256 << 20;
    /// The inputs of a model as JSON: some hundred large images.
    pub const INPUTS: usize = 256 << 20;
    /// A line of a data file, and a row of a table: far above any text, so that a file without line breaks
    /// does not fill memory.
    pub const LINE: usize = 16 << 20;
    /// Columns of a table of data, such as CSV.
    pub const COLUMNS: usize = 10_000;
    /// A file of questions about texts, with the texts.
    pub const QUESTIONS: usize = 1 << 30;
    /// An image, packed and unpacked.
    pub const IMAGE: u64 = 512 << 20;
    /// What any compressed file may unpack to, however small it is.
    pub const UNPACKED: u64 = 64 << 20;
    /// How many times its own size a larger compressed file may unpack to. Texts shrink to about a tenth;
    /// hardly anything but a file that is made to do harm shrinks to less than a hundredth.
    pub const UNPACKED_TIMES: u64 = 200;
}

/// Whether a folder has an entry of this name, whatever it is. Where a file may be absent, this is asked, so that one
/// which cannot be read (a folder, a pipe, a link to nothing) is refused with the reason and not taken to be absent.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Opens an ordinary file, or a link to one.
///
/// # Errors
/// The system refuses, or it is a folder, a pipe or a device. A pipe is not opened, which would wait for a
/// writer.
pub fn regular(path: &Path) -> io::Result<File> {
    ordinary(&fs::metadata(path).map_err(|error| of_link(path, error))?)?;
    let file = File::open(path)?;
    // The path may lead to another file by now.
    ordinary(&file.metadata()?)?;
    Ok(file)
}

/// Says of a link to nothing that it is one, since a file of its name is there to see.
pub fn of_link(path: &Path, error: io::Error) -> io::Error {
    match error.kind() == io::ErrorKind::NotFound && is_there(path) {
        true => io::Error::other("it is a link to a file that does not exist"),
        false => error,
    }
}

/// The bytes of an ordinary file; an error beyond `most`.
///
/// # Errors
/// As [`regular`], or there is more.
pub fn bounded(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    all(regular(path)?, most)
}

/// A file in which the system says something about itself, such as `/proc/meminfo`; `None` if it does not
/// have it.
pub fn system(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(limit::SOURCE as u64).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The reason of an I/O error in words, without its number.
pub fn reason(error: &io::Error) -> String {
    // In words of our own for the usual reasons, because those of the systems differ.
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => {
            let said = error.to_string();
            // Ours, in which a name may have capital letters.
            if error.get_ref().is_some() {
                return said;
            }
            // The system's texts begin with a capital letter and end with a number.
            let said = said.split(" (os error").next().unwrap_or(&said).to_lowercase();
            // The standard library has no stable kind for it.
            if said.starts_with("too many levels of symbolic links") {
                return "it is a link in a chain of links that leads back to itself".to_owned();
            }
            said
        }
    }
}

/// Copies an ordinary file, or what a link leads to, to a new file.
///
/// # Errors
/// As [`regular`], there is more than `most`, or the new file exists or cannot be written.
pub fn copy(from: &Path, to: &Path, most: usize) -> io::Result<()> {
    let from = regular(from)?;
    // Before anything is written: a file may say that it is larger than the disk.
    if from.metadata()?.len() > most as u64 {
        return Err(too_long(most));
    }
    let mut to = File::options().write(true).create_new(true).open(to)?;
    io::copy(&mut from.take(most as u64), &mut to)?;
    // A copy that is renamed into place must be on the disk before its name is.
    to.sync_all()
}

/// The mark of byte order that some editors write before a text in UTF-8. It is no part of the text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without a byte order mark before it.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// A text from its bytes, without a byte order mark; `None` if it is not UTF-8.
pub fn text(mut bytes: Vec<u8>) -> Option<String> {
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    String::from_utf8(bytes).ok()
}

/// The text of a file that is read once and so may be a pipe, or of stdin for `-`, without a byte order mark.
///
/// # Errors
/// As [`once`], or it is not UTF-8.
pub fn text_once(path: &Path, most: usize) -> io::Result<String> {
    text(once(path, most)?).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Decodes a JSON text. Nesting of more than 128 levels, the limit of serde_json, is an error.
///
/// # Errors
/// What is wrong with it, in lower case without a full stop.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(unmarked(bytes)).map_err(|error| json_fault(&error))
}

/// Decodes a config as Python writes it: with the words `NaN`, `Infinity` and `-Infinity`, which JSON does not have.
/// Each becomes what `transformers` 5 writes in its place, `{"__float__": "Infinity"}`.
///
/// # Errors
/// As those of [`json`].
pub fn python_json(bytes: &[u8]) -> Result<Json, String> {
    const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
    let text = std::str::from_utf8(unmarked(bytes)).map_err(|_| "it is not UTF-8".to_owned())?;
    if !WORDS.iter().any(|word| text.contains(word)) {
        return json(bytes);
    }
    let mut whole = String::with_capacity(text.len());
    let (mut rest, mut is_text, mut is_escaped) = (text, false, false);
    while let Some(first) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !is_text && rest.starts_with(**word));
        let taken = word.map_or(first.len_utf8(), |word| word.len());
        match word {
            Some(word) => whole.push_str(&format!("{{\"__float__\": \"{word}\"}}")),
            None => whole.push(first),
        }
        // A quote after a backslash ends no text, unless the backslash is itself after one.
        is_text ^= first == '"' && !is_escaped;
        is_escaped = first == '\\' && !is_escaped;
        rest = rest.get(taken..).unwrap_or_default();
    }
    json(whole.as_bytes())
}

/// What is wrong with a JSON text, in lower case without a full stop.
pub fn json_fault(error: &serde_json::Error) -> String {
    // A text of one line is usually a line of a file, whose number the caller adds.
    let place = match (error.line(), error.column()) {
        (0 | 1, 0) => String::new(),
        (0 | 1, column) => format!(" (column {column})"),
        (line, column) => format!(" (line {line}, column {column})"),
    };
    let text = error.to_string();
    let quoted = |start: &str| text.strip_prefix(start)?.split('`').next().map(str::to_owned);
    let what = match error.classify() {
        Category::Io => return text,
        Category::Eof => "it is not JSON: it ends too early".to_owned(),
        Category::Syntax => "it is not JSON".to_owned(),
        Category::Data => {
            match (quoted("missing field `"), quoted("unknown field `"), quoted("duplicate field `")) {
                (Some(field), _, _) => format!("`{field}` is missing"),
                (_, Some(field), _) => format!("`{field}` has no meaning there"),
                (_, _, Some(field)) => format!("`{field}` is given twice"),
                // serde's own words name Rust's types, which mean nothing to a user.
                (None, None, None) => "a value is of another kind than expected".to_owned(),
            }
        }
    };
    what + &place
}

/// The bytes of a spec, from stdin for `-`. At most one byte more than allowed is read, from which decoding
/// sees that the text is too long.
///
/// # Errors
/// The system refuses, or it is a folder.
pub fn spec(path: &Path) -> io::Result<Vec<u8>> {
    beginning(path, limit::SPEC, stream(path)?)
}

/// The bytes of a model's config, cut off like those of a [`spec`].
///
/// # Errors
/// As [`regular`].
pub fn config(path: &Path) -> io::Result<Vec<u8>> {
    beginning(path, limit::CONFIG, regular(path)?)
}

fn beginning(path: &Path, most: usize, from: impl Read) -> io::Result<Vec<u8>> {
    crate::followed::note(path);
    let mut bytes = Vec::new();
    from.take((most as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file that is read once and so may be a pipe, or of stdin for `-`; an error beyond `most`.
///
/// # Errors
/// The system refuses, it is a folder or a device, or there is more.
pub fn once(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    all(opened_once(path)?, most)
}

/// Decodes JSON from a file that is read once and so may be a pipe, or from stdin for `-`. What is no JSON is
/// refused where that shows, without reading on.
///
/// `free` is the memory that it may take, as far as that is known.
///
/// # Errors
/// As [`once`], or what is wrong with the JSON, in lower case without a full stop. If it takes more memory than is free, the
/// error is of the kind `OutOfMemory`.
pub fn json_once<T: DeserializeOwned>(path: &Path, most: usize, free: Option<u128>) -> io::Result<T> {
    let mut from = opened_once(path)?.take((most as u64).saturating_add(1));
    let mut first = Vec::new();
    (&mut from).take(MARK.len() as u64).read_to_end(&mut first)?;
    let tallied = Tallied { from: &mut from, taken: 0, free };
    let whole = unmarked(&first).chain(io::BufReader::new(tallied));
    let found = serde_json::from_reader(whole);
    // The text ends too early only because no more of it is read.
    if from.limit() == 0 {
        return Err(too_long(most));
    }
    found.map_err(|error| match error.classify() {
        Category::Io => io::Error::from(error),
        Category::Syntax | Category::Data | Category::Eof => {
            io::Error::new(io::ErrorKind::InvalidData, json_fault(&error))
        }
    })
}

/// A reader of JSON that stops before its values take more memory than is free: the system would end the process.
struct Tallied<R> {
    from: R,
    /// Bytes that the values read so far take.
    taken: u128,
    free: Option<u128>,
}

impl<R> Tallied<R> {
    /// A value in a list: 32 bytes, of which a list has up to twice as many as it needs, and once more as a number.
    const VALUE: u128 = 2 * 32 + 24;
    /// The shortest list has room for four values.
    const LIST: u128 = 4 * 32;
}

impl<R: Read> Read for Tallied<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        for byte in buffer.get(..count).unwrap_or_default() {
            self.taken = self.taken.saturating_add(match byte {
                b',' => Self::VALUE,
                b'[' | b'{' => Self::LIST,
                _ => 0,
            });
        }
        match self.free {
            Some(free) if self.taken > free => {
                Err(io::Error::new(io::ErrorKind::OutOfMemory, "its values need more memory than is free"))
            }
            _ => Ok(count),
        }
    }
}

/// Opens what is read once and is no device.
fn opened_once(path: &Path) -> io::Result<Box<dyn Read>> {
    // `/dev/zero` would be read up to the bound.
    if let Some(meta) = fs::metadata(path).ok().filter(is_device) {
        // The terminal behind `/dev/stdin` is a device, too.
        if !File::open(path)?.is_terminal() {
            let why = format!("it is {}, and must be a file or a pipe", special(&meta));
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    }
    stream(path)
}

/// Whether stdin has been opened, which gives its text once.
static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);

/// Opens what is read once: a file, a pipe, stdin for `-`.
fn stream(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        // A second reader would get nothing, and its empty text would be blamed.
        if STDIN_IS_READ.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other("stdin can be given once"));
        }
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        false => Ok(Box::new(file)),
    }
}

fn all(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, which tells a file of exactly that length from a longer one.
    from.take((most as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() > most {
        true => Err(too_long(most)),
        false => Ok(bytes),
    }
}

fn too_long(most: usize) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {most} bytes"))
}

/// Refuses what is not an ordinary file, and says what it is.
fn ordinary(meta: &fs::Metadata) -> io::Result<()> {
    if meta.is_file() {
        return Ok(());
    }
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    let what = special(meta);
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("it is {what}, and must be an ordinary file")))
}

#[cfg(unix)]
fn special(meta: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = meta.file_type();
    match (kind.is_fifo(), kind.is_socket()) {
        (true, _) => "a pipe",
        (_, true) => "a socket",
        _ => "a device",
    }
}

/// Whether it is a device other than `/dev/null`, which is an empty file to whoever reads it.
#[cfg(unix)]
fn is_device(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let kind = meta.file_type();
    let is_null = || fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == meta.rdev());
    (kind.is_char_device() || kind.is_block_device()) && !is_null()
}

#[cfg(not(unix))]
fn is_device(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn special(_: &fs::Metadata) -> &'static str {
    "a device"
}

/// The unpacked content of a compressed file of this size; an error if it is larger than any text would be.
#[derive(Debug)]
pub struct Unpacked<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Unpacked<R> {
    /// Reads from what unpacks `packed` bytes.
    pub fn new(inner: R, packed: u64) -> Self {
        Self { inner, left: packed.saturating_mul(limit::UNPACKED_TIMES).max(limit::UNPACKED) }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        // Counted while it is unpacked: the size that a compressed file states about itself may be a lie.
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            let times = limit::UNPACKED_TIMES;
            let why =
                format!("it unpacks to more than {times} times its size, as no text does; unpack it first");
            io::Error::new(io::ErrorKind::FileTooLarge, why)
        })?;
        Ok(count)
    }
}
