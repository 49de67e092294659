//! Reads and writes safetensors files. A file that is read is not trusted.
//!
//! The format: eight bytes of header length, a JSON header of `name → {dtype, shape, data_offsets}`, then
//! the data. Before memory is allocated for a tensor, the size of the header, the number of tensors, their
//! names, ranks and sizes are checked, and that every byte of the data belongs to exactly one tensor. Tensors
//! are then read one at a time.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::kind::Kind;
use crate::read::{self, limit};

/// The number of bytes that are read at a time while a tensor is decoded.
const STEP: usize = 1 << 20;
/// The most tensors in a file, so that a short header with many names takes little memory.
pub const TENSORS: usize = 100_000;
/// The most axes of a tensor.
const AXES: usize = 8;

/// The file with the matrices of low-rank changes, as the library peft names it.
pub const ADAPTER: &str = "adapter_model.safetensors";
/// The file that describes the changes to peft.
pub const ADAPTER_CONFIG: &str = "adapter_config.json";
/// The prefix of tensor names in peft's files.
pub const ADAPTER_PREFIX: &str = "base_model.model.";
/// The length of the longest name of a tensor, in bytes.
const NAME_BYTES: usize = 512;

/// The reason why a file cannot be read or written.
#[derive(Debug)]
pub enum FileError {
    /// The operating system reports an error.
    Io(PathBuf, io::Error),
    /// The file is not a valid safetensors file, for the reason that the text gives.
    Corrupt(PathBuf, String),
    /// The file is of another kind, which the text names.
    Foreign(PathBuf, &'static str),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Io(path, error) => {
                write!(f, "cannot use `{}`: {}", path.display(), read::reason(error))
            }
            FileError::Corrupt(path, why) => {
                write!(f, "{} is not a sound safetensors file: {why}", path.display())
            }
            FileError::Foreign(path, what) => {
                write!(f, "{} is {what}, not a safetensors file", path.display())
            }
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    /// What the user can do about it, if that is known.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            FileError::Foreign(..) => Some(ADVICE),
            FileError::Io(..) | FileError::Corrupt(..) => None,
        }
    }
}

/// How to convert a pickle to safetensors.
pub const ADVICE: &str = "a pickle may run code when it is opened, so trafoc opens none; where its origin is \
     trusted, `python -c \"import sys, torch; from safetensors.torch import save_file; save_file({k: \
     v.clone().contiguous() for k, v in torch.load(sys.argv[1], weights_only=True).items()}, \
     'model.safetensors')\" FILE` converts it";

/// What has these first bytes, if it is another file of tensors than safetensors.
fn foreign(start: &[u8; 8]) -> Option<&'static str> {
    match Kind::of(start)? {
        Kind::Zip => Some("a zip archive, which PyTorch's pickles are"),
        other @ (Kind::Pickle | Kind::Gguf | Kind::Hdf5) => Some(other.name()),
        Kind::Safetensors
        | Kind::SentencePiece
        | Kind::Picture(_)
        | Kind::Table(_)
        | Kind::Packed(_)
        | Kind::Gzip
        | Kind::Utf16 => None,
    }
}

/// The element types of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    F64,
    F32,
    F16,
    BF16,
    /// Any other type, with its bytes per element. Such tensors are listed, but their numbers are not read.
    Other(usize),
}

/// Whether the numbers of a tensor of this type, as a file spells it, can be read as floats.
pub fn is_float(dtype: &str) -> bool {
    Element::of(dtype).is_some_and(|element| !matches!(element, Element::Other(_)))
}

impl Element {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Element::F64,
            "F32" => Element::F32,
            "F16" => Element::F16,
            "BF16" => Element::BF16,
            "I64" | "U64" => Element::Other(8),
            "I32" | "U32" => Element::Other(4),
            "I16" | "U16" => Element::Other(2),
            "I8" | "U8" | "BOOL" | "F8_E4M3" | "F8_E5M2" => Element::Other(1),
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::F32 => 4,
            Element::F16 | Element::BF16 => 2,
            Element::Other(n) => n,
        }
    }
}

/// What the header says about one tensor, after it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The element type as the file spells it, such as `F32`.
    pub dtype: String,
    /// The length of every axis, outermost first.
    pub shape: Vec<usize>,
    element: Element,
    /// The offset of its first byte in the file, and the number of its bytes.
    at: (u64, usize),
}

/// An open file whose header has been checked.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    source: Source,
    entries: IndexMap<String, Entry>,
    metadata: IndexMap<String, String>,
}

#[derive(Debug)]
enum Source {
    File(File),
    Bytes(Vec<u8>),
}

impl TensorFile {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// The operating system reports an error, or the header is not valid.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        // An ordinary file, because it is read in several places and its length is needed first.
        let file = read::regular(path).map_err(|e| FileError::Io(path.to_owned(), e))?;
        let meta = file.metadata().map_err(|e| FileError::Io(path.to_owned(), e))?;
        Self::check(path.to_owned(), Source::File(file), meta.len())
    }

    /// Checks the header of a file in memory, which messages call `name`.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, FileError> {
        let length = bytes.len() as u64;
        Self::check(PathBuf::from(name), Source::Bytes(bytes), length)
    }

    fn check(path: PathBuf, source: Source, length: u64) -> Result<Self, FileError> {
        let mut file = Self { path, source, entries: IndexMap::new(), metadata: IndexMap::new() };
        let size = file.read_at(0, 8).ok().and_then(|b| <[u8; 8]>::try_from(b).ok()).map(u64::from_le_bytes);
        let Some(size) = size else { return Err(file.corrupt("it is shorter than 8 bytes")) };
        // The first bytes of other kinds of files, read as a size, are more than any header may have.
        if let Some(what) = foreign(&size.to_le_bytes()).filter(|_| size > limit::HEADER) {
            return Err(FileError::Foreign(file.path, what));
        }
        if size > limit::HEADER {
            let most = limit::HEADER;
            return Err(file.corrupt(format!("its header claims {size} bytes, more than {most}")));
        }
        // The data begins after the 8 bytes of the header's size and the header itself.
        let begin = size.saturating_add(8);
        let Some(data) = length.checked_sub(begin) else {
            return Err(file.corrupt(format!("its header claims {size} bytes, the file has {length}")));
        };
        let text = file.read_at(8, size as usize)?;
        let header: Header = match serde_json::from_slice(&text) {
            Ok(header) => header,
            Err(e) => return Err(file.corrupt(format!("its header: {e}"))),
        };
        match entries(header.tensors, begin, data) {
            Ok(entries) => file.entries = entries,
            Err(why) => return Err(file.corrupt(why)),
        }
        file.metadata = header.metadata;
        Ok(file)
    }

    /// The tensors by name, in the order of the header.
    pub fn entries(&self) -> &IndexMap<String, Entry> {
        &self.entries
    }

    /// The `__metadata__` of the header: pairs of texts that can be chosen freely.
    pub fn metadata(&self) -> &IndexMap<String, String> {
        &self.metadata
    }

    /// The path of the file, or the name that was given for bytes in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers of a float tensor in row-major order, converted to single precision.
    ///
    /// # Errors
    /// There is no tensor of that name, it is not a float tensor, or the file cannot be read.
    pub fn floats(&mut self, name: &str) -> Result<Vec<f32>, FileError> {
        let Some(entry) = self.entries.get(name).cloned() else {
            return Err(self.corrupt(format!("it has no tensor `{name}`")));
        };
        if let Element::Other(_) = entry.element {
            return Err(self.corrupt(format!("`{name}` holds {}, which is not a float type", entry.dtype)));
        }
        // One piece at a time, so that memory never has all bytes of the tensor in addition to its numbers.
        let mut values = Vec::with_capacity(entry.at.1.checked_div(entry.element.bytes()).unwrap_or(0));
        // These sums do not saturate: `entries` has checked that the tensor lies within the file.
        let end = entry.at.0.saturating_add(entry.at.1 as u64);
        let mut at = entry.at.0;
        while at < end {
            let bytes = self.read_at(at, STEP.min(end.saturating_sub(at) as usize))?;
            decode(entry.element, &bytes, &mut values);
            at = at.saturating_add(bytes.len() as u64);
        }
        Ok(values)
    }

    fn read_at(&mut self, start: u64, len: usize) -> Result<Vec<u8>, FileError> {
        let mut out = vec![0; len];
        let done = match &mut self.source {
            Source::File(file) => file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut out)),
            Source::Bytes(bytes) => {
                let from = usize::try_from(start).ok();
                let part = from.and_then(|s| bytes.get(s..s.checked_add(len)?));
                part.map(|p| out.copy_from_slice(p)).ok_or(io::ErrorKind::UnexpectedEof.into())
            }
        };
        done.map(|()| out).map_err(|e| FileError::Io(self.path.clone(), e))
    }

    fn corrupt(&self, why: impl Into<String>) -> FileError {
        FileError::Corrupt(self.path.clone(), why.into())
    }
}

fn decode(element: Element, bytes: &[u8], out: &mut Vec<f32>) {
    fn each<const N: usize>(bytes: &[u8], out: &mut Vec<f32>, f: impl Fn([u8; N]) -> f32) {
        // A piece has a whole number of elements: `STEP` is a multiple of every element's size, and so is
        // the tensor.
        out.extend(bytes.as_chunks::<N>().0.iter().map(|chunk| f(*chunk)));
    }
    match element {
        // A number beyond the range of single precision becomes infinite, and is then counted as not
        // finite.
        Element::F64 => each::<8>(bytes, out, |b| f64::from_le_bytes(b) as f32),
        Element::F32 => each::<4>(bytes, out, f32::from_le_bytes),
        Element::F16 => each::<2>(bytes, out, |b| f16::from_le_bytes(b).to_f32()),
        Element::BF16 => each::<2>(bytes, out, |b| bf16::from_le_bytes(b).to_f32()),
        Element::Other(_) => {}
    }
}

/// The header as it is written in the file. So far only the names are known to be unique.
#[derive(Default)]
struct Header {
    tensors: Vec<(String, RawEntry)>,
    metadata: IndexMap<String, String>,
}

#[derive(serde::Deserialize)]
// An unknown field could change what the numbers mean.
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                let mut names = BTreeSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    // In a map the second would replace the first, and other readers may take the other
                    // one.
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    if names.len() > TENSORS {
                        return Err(A::Error::custom(format!("more than {TENSORS} tensors")));
                    }
                    if name == "__metadata__" {
                        header.metadata = map.next_value()?;
                    } else {
                        header.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Checks the tensors of the header against the size of the data: every byte must belong to exactly one
/// tensor.
fn entries(raw: Vec<(String, RawEntry)>, start: u64, data: u64) -> Result<IndexMap<String, Entry>, String> {
    let mut out = IndexMap::new();
    let mut ranges = Vec::new();
    for (name, RawEntry { dtype, shape, data_offsets: (from, to) }) in raw {
        if name.len() > NAME_BYTES {
            return Err(format!("a tensor's name has {} bytes", name.len()));
        }
        if shape.len() > AXES {
            return Err(format!("`{name}` has {} axes", shape.len()));
        }
        let element = Element::of(&dtype).ok_or_else(|| format!("`{name}` holds `{dtype}`"))?;
        let shape: Vec<usize> = shape
            .into_iter()
            .map(usize::try_from)
            .collect::<Result<_, _>>()
            .map_err(|_| format!("`{name}` is too large"))?;
        let size = shape
            .iter()
            .try_fold(element.bytes(), |size, n| size.checked_mul(*n))
            .ok_or_else(|| format!("the sizes of `{name}` overflow"))?;
        // A shape that claims more than its bytes would let a short file take much memory.
        if to.checked_sub(from) != Some(size as u64) || to > data {
            return Err(format!("`{name}` has {size} bytes, its place is {from}..{to} of {data}"));
        }
        ranges.push((from, to, name.clone()));
        let at = (start.saturating_add(from), size);
        out.insert(name, Entry { dtype, shape, element, at });
    }
    // In the order of the data, which need not be that of the header.
    ranges.sort();
    let mut end = 0;
    for (from, to, name) in ranges {
        if from != end {
            return Err(format!("`{name}` begins at {from}, what is before it ends at {end}"));
        }
        end = to;
    }
    if end != data {
        return Err(format!("its tensors end at {end}, its data at {data}"));
    }
    Ok(out)
}

/// A tensor to be written, as the bytes of the file.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The element type as files spell it, such as `F32`.
    pub dtype: &'static str,
    /// The length of every axis, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers in row-major order, little-endian.
    pub bytes: Vec<u8>,
}

impl Saved {
    /// A tensor of single-precision numbers, `F32`, of which there must be as many as the shape says.
    pub fn floats(shape: Vec<usize>, values: impl IntoIterator<Item = f32>) -> Self {
        Self { dtype: "F32", shape, bytes: values.into_iter().flat_map(f32::to_le_bytes).collect() }
    }

    /// A tensor of 64-bit integers, `I64`, of which there must be as many as the shape says.
    pub fn ints(shape: Vec<usize>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { dtype: "I64", shape, bytes: values.into_iter().flat_map(i64::to_le_bytes).collect() }
    }

    /// A tensor of truth values, `BOOL`: a byte each, 0 or 1.
    pub fn bools(shape: Vec<usize>, values: impl IntoIterator<Item = bool>) -> Self {
        Self { dtype: "BOOL", shape, bytes: values.into_iter().map(u8::from).collect() }
    }
}

/// Writes tensors to a file, which is replaced only when all of them are written. `shapes` gives the name,
/// element type and shape of each in order; `tensor` is called with the index of one at a time, so that only
/// one is in memory.
///
/// # Errors
/// The operating system reports an error, or `tensor` fails.
pub fn write(
    path: &Path,
    shapes: &[(String, &'static str, Vec<usize>)],
    metadata: &IndexMap<String, String>,
    mut tensor: impl FnMut(usize) -> io::Result<Saved>,
) -> Result<(), FileError> {
    let io = |e: io::Error| FileError::Io(path.to_owned(), e);
    // The header comes first in the file, so all shapes must be known before the first tensor is computed.
    let header = header(shapes, metadata).map_err(|why| io(io::Error::other(why)))?;
    crate::write::replace(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        for i in 0..shapes.len() {
            file.write_all(&tensor(i)?.bytes)?;
        }
        Ok(())
    })
    .map_err(io)
}

fn header(
    shapes: &[(String, &'static str, Vec<usize>)],
    metadata: &IndexMap<String, String>,
) -> Result<Vec<u8>, String> {
    let mut map = serde_json::Map::new();
    // First, so that a mark in it is found near the beginning of the file.
    if !metadata.is_empty() {
        map.insert("__metadata__".into(), serde_json::to_value(metadata).map_err(|e| e.to_string())?);
    }
    let mut at = 0usize;
    for (name, dtype, shape) in shapes {
        let element = Element::of(dtype).map_or(0, Element::bytes);
        let size = shape.iter().try_fold(element, |n, d| n.checked_mul(*d)).ok_or("sizes overflow")?;
        let end = at.checked_add(size).ok_or("sizes overflow")?;
        let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]});
        map.insert(name.clone(), entry);
        at = end;
    }
    let mut text = serde_json::to_vec(&map).map_err(|e| e.to_string())?;
    // Programs that map the file into memory expect the data to be aligned.
    text.resize(text.len().next_multiple_of(8), b' ');
    Ok(text)
}
