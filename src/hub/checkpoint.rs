//! The weights of a model directory: one safetensors file, or several with an index.
//!
//! No file outside of the directory is opened: a shard must have a plain name, and a link must lead to a
//! file in the directory or, in the layout of Hugging Face's download cache, in the cache that contains it.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize as _;
use serde_json::{Map, Value as Json};

use super::peft::{self, Adapter};
use crate::read::{self, limit};
use crate::tensor_file::{Entry, FileError, TENSORS, TensorFile};

/// The most files that an index may name. Each is opened, and a short index could name any number.
const SHARDS: usize = 1_000;

/// The tensors of a directory or file.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<TensorFile>,
    /// For each tensor, the index of its file.
    tensors: IndexMap<String, usize>,
    /// What a directory of peft adds to them.
    adapter: Option<Adapter>,
}

/// Why weights cannot be read.
#[derive(Debug)]
pub enum CheckpointError {
    /// A file cannot be read.
    File(FileError),
    /// There are no weights, or the index is invalid.
    Directory {
        /// What is wrong, in one sentence.
        message: String,
        /// How to fix it.
        help: Option<String>,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::File(error) => write!(f, "{error}"),
            CheckpointError::Directory { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl From<FileError> for CheckpointError {
    fn from(error: FileError) -> Self {
        CheckpointError::File(error)
    }
}

impl CheckpointError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        CheckpointError::Directory { message: message.into(), help: None }
    }

    /// How the user can fix it, if that is known, such as by converting a pickle.
    pub fn help(&self) -> Option<&str> {
        match self {
            CheckpointError::File(error) => error.advice(),
            CheckpointError::Directory { help, .. } => help.as_deref(),
        }
    }
}

impl Checkpoint {
    /// Whether a directory has weights that [`open`](Self::open) can read.
    pub fn is_in(folder: &Path) -> bool {
        let names = ["model.safetensors", "model.safetensors.index.json"];
        peft::body_of(folder).is_ok_and(|body| names.iter().any(|name| read::is_there(&body.join(name))))
    }

    /// Opens the weights of a directory, or a single file. Only headers are read.
    ///
    /// # Errors
    /// There are no weights, or a file is invalid.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        if !path.is_dir() {
            return Self::of(vec![TensorFile::open(path)?]);
        }
        if peft::is_adapter(path) {
            let mut body = Self::open(&peft::body_of(path).map_err(CheckpointError::new)?)?;
            // Shapes alone, so that an adapter can be refused before any number of the body is read.
            let shape = |name: &str| body.entry(name).map(|entry| entry.shape.clone());
            let names = body.tensors.keys().map(String::as_str);
            body.adapter = Some(Adapter::open(path, names, shape).map_err(CheckpointError::new)?);
            return Ok(body);
        }
        let whole = path.join("model.safetensors");
        // As in the library: one file is used even if there is an index, too.
        if read::is_there(&whole) {
            return Self::of(vec![TensorFile::open(&inside(path, "model.safetensors")?)?]);
        }
        let index = path.join("model.safetensors.index.json");
        if read::is_there(&index) {
            return Self::of_index(path, &inside(path, "model.safetensors.index.json")?);
        }
        Err(none_in(path))
    }

    fn of_index(folder: &Path, index: &Path) -> Result<Self, CheckpointError> {
        let map = weight_map(index)?;
        let mut names: Vec<&str> = Vec::new();
        for name in map.values() {
            let Some(name) = name.as_str() else {
                return Err(CheckpointError::new(format!(
                    "{} does not name a file for each tensor",
                    index.display()
                )));
            };
            // A list and not a set, because it keeps the order, and there are at most a thousand files.
            if !names.contains(&name) {
                names.push(name);
            }
            // Within the loop, so that a long index costs no more time than the bound allows.
            if names.len() > SHARDS {
                return Err(CheckpointError::new(format!(
                    "{} names more than {SHARDS} files",
                    index.display()
                )));
            }
        }
        let open = |name: &&str| Ok(TensorFile::open(&inside(folder, name)?)?);
        let files = names.iter().map(|name| open(name).map_err(|error| named_by(index, error)));
        let checkpoint = Self::of(files.collect::<Result<_, CheckpointError>>()?)?;
        // A file from another download would have the right name and the wrong tensors.
        for (tensor, file) in &map {
            let held = checkpoint.tensors.get(tensor).and_then(|i| names.get(*i));
            if held.copied() != file.as_str() {
                let file = file.as_str().unwrap_or_default();
                let message =
                    format!("{} says that {file} holds `{tensor}`, but it does not", index.display());
                return Err(CheckpointError::new(message));
            }
        }
        Ok(checkpoint)
    }

    fn of(files: Vec<TensorFile>) -> Result<Self, CheckpointError> {
        let mut tensors = IndexMap::new();
        for (i, file) in files.iter().enumerate() {
            for name in file.entries().keys() {
                // Which of the two is meant would depend on the order of the files.
                if let Some(other) = tensors.insert(name.clone(), i) {
                    let other = files.get(other).map(|f| f.path().display().to_string()).unwrap_or_default();
                    let message = format!("`{name}` is both in {other} and in {}", file.path().display());
                    return Err(CheckpointError::new(message));
                }
            }
            // Each file has this bound for itself; many files must not exceed it together.
            if tensors.len() > TENSORS {
                return Err(CheckpointError::new(format!("there are more than {TENSORS} tensors")));
            }
        }
        Ok(Self { files, tensors, adapter: None })
    }

    /// What a directory of peft changes in its body; `None` if the weights are no such directory's.
    pub fn adapter(&self) -> Option<&Adapter> {
        self.adapter.as_ref()
    }

    /// The names of all tensors, in the order of their files, and of those that a directory of peft adds.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let added = self.adapter.iter().flat_map(Adapter::whole);
        let added = added.filter(|name| !self.tensors.contains_key(*name));
        self.tensors.keys().map(String::as_str).chain(added)
    }

    /// The element type and shape of a tensor.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        if let Some(own) = self.adapter.as_ref().and_then(|adapter| adapter.entry(name)) {
            return Some(own);
        }
        self.files.get(*self.tensors.get(name)?)?.entries().get(name)
    }

    /// A tensor's numbers in single precision.
    ///
    /// # Errors
    /// The elements of the tensor are not floating-point numbers, or it cannot be read.
    pub fn floats(&mut self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        if let Some(own) = self.adapter.as_mut().and_then(|adapter| adapter.floats(name)) {
            return own.map_err(CheckpointError::new);
        }
        let file = self.tensors.get(name).and_then(|i| self.files.get_mut(*i));
        let Some(file) = file else {
            return Err(CheckpointError::new(format!("there is no tensor `{name}`")));
        };
        let mut values = file.floats(name)?;
        if let Some(adapter) = &mut self.adapter {
            // Added as tensors are read, so that everything after it sees the merged model as if it were
            // saved so.
            adapter.add(name, &mut values).map_err(CheckpointError::new)?;
        }
        Ok(values)
    }
}

/// The path of a file in the folder, given its plain name.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, CheckpointError> {
    let refuse = |why: &str| Err(CheckpointError::new(format!("the file `{}` {why}", name.escape_debug())));
    let mut parts = Path::new(name).components();
    // A backslash and a colon are part of a name on one system and separate names on another.
    let (first, second) = (parts.next(), parts.next());
    // Compared with the whole name, because `a/.` and `a/` have a single normal part as well.
    if name.len() > 255 || name.contains(['\0', '\n']) {
        return refuse("has a name that no file has; only files of the directory itself are opened");
    }
    let is_plain = matches!((first, second), (Some(Component::Normal(part)), None) if part == name)
        && !name.contains(['/', '\\', ':']);
    if !is_plain {
        return refuse("has a name that is a path; only files of the directory itself are opened");
    }
    let path = folder.join(name);
    // Links are resolved before they are compared: `..` after a link would leave the directory unnoticed.
    let reason = |error| CheckpointError::File(FileError::Io(path.clone(), error));
    let root = folder.canonicalize().map_err(reason)?;
    let target = path.canonicalize().map_err(|error| reason(read::of_link(&path, error)))?;
    // A snapshot in the hub's cache links to `blobs`, a sibling of `snapshots`.
    let is_snapshot = root.parent().is_some_and(|p| p.file_name().is_some_and(|n| n == "snapshots"));
    let blobs = root.parent().and_then(Path::parent).map(|p| p.join("blobs")).filter(|_| is_snapshot);
    if !target.starts_with(&root) && !blobs.is_some_and(|blobs| target.starts_with(blobs)) {
        return refuse(
            "is a link that leaves the directory; only files of the directory itself are opened, so copy the file \
             into it (`cp -L`)",
        );
    }
    Ok(path)
}

fn weight_map(index: &Path) -> Result<Map<String, Json>, CheckpointError> {
    let io = |error| CheckpointError::File(FileError::Io(index.to_owned(), error));
    let bytes = read::bounded(index, limit::INDEX).map_err(io)?;
    let wrong = |why: &str| CheckpointError::new(format!("{} is no index: {why}", index.display()));
    let mut reader = serde_json::Deserializer::from_slice(read::unmarked(&bytes));
    let json = Json::deserialize(&mut reader).map_err(|e| wrong(&e.to_string()))?;
    match json.get("weight_map") {
        Some(Json::Object(map)) => Ok(map.clone()),
        Some(_) | None => Err(wrong("it has no map `weight_map`")),
    }
}

/// The error of a file that an index names: where it is missing, the index says that it belongs to the directory.
fn named_by(index: &Path, error: CheckpointError) -> CheckpointError {
    match &error {
        CheckpointError::File(FileError::Io(_, reason)) if reason.kind() == io::ErrorKind::NotFound => {
            let message = format!("{error}, but `{}` names it", index.display());
            let help = "the tensors are in several files, which the directory must have all".to_owned();
            CheckpointError::Directory { message, help: Some(help) }
        }
        _ => error,
    }
}

fn none_in(folder: &Path) -> CheckpointError {
    let message = format!("`{}` has no model.safetensors", folder.display());
    // Pickles are named so that the message can say how to convert them. They are never opened, because
    // loading one may run code.
    let pickles =
        ["pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth", "model.ckpt"];
    let found = pickles.iter().find(|name| folder.join(name).exists());
    let help = found.map(|name| format!("`{name}` is a pickle: {}", crate::tensor_file::ADVICE));
    CheckpointError::Directory { message, help }
}
