//! Prepared data in a folder: arrays that any program can map into memory, with their tokenizers.
//!
//! ```text
//! DIR/whole.json       every other file with its size and SHA-256, written last
//! DIR/data.json        what the arrays are, and for what they were prepared
//! DIR/codebook.json    the meaning of ids and classes, as in the folder of a run
//! DIR/spec.yaml, DIR/recipe.yaml
//! DIR/train.ids.i32    an array: little endian, in row-major order, without a header
//! ```
//! The ending of an array's name is the type of its values. A list of lists is two arrays: all values, and
//! the offsets at which the lists begin, followed by the number of values.
//!
//! [`write()`] writes a folder, [`open`] reads one for a spec and a recipe. Nothing in a folder is trusted:
//! checksums, shapes, offsets and ids are checked before anything is used.

mod array;
mod manifest;
mod part;
mod purpose;

pub use manifest::{ArrayEntry, FORMAT, Manifest, PartEntry, Sequence, SourceRow};
pub use purpose::{Needs, Origin};

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::Refused;
use super::codebook::Codebook;
use super::dataset::Dataset;
use super::examples::Part;
use super::inherited::Inherited;
use super::prepare::Plan;
use crate::diag::Sink;
use crate::learn::format;
use crate::learn::recipe::{Recipe, Split};
use crate::learn::whole::{FileList, LIST, MAX_LIST, at, to_json};
use crate::read::{self, limit};
use crate::source::SourceMap;
use crate::spec::ModelSpec;
use crate::write;

/// The file that describes the arrays.
pub const MANIFEST: &str = "data.json";
/// The file with the meaning of ids and classes.
pub const CODEBOOK: &str = "codebook.json";

/// Why a folder of prepared data cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// A file cannot be read or written.
    Io(PathBuf, io::Error),
    /// The folder has no list of its files: it is another folder, or its preparation was interrupted.
    NotPrepared(PathBuf),
    /// A file is damaged, or not what the others say.
    Damaged {
        /// The path of the folder.
        folder: PathBuf,
        /// What is wrong, in lower case without a full stop.
        why: String,
    },
    /// The folder was prepared for a spec with other sizes.
    OtherSpec {
        /// The path of the folder.
        folder: PathBuf,
        /// The key of the size.
        key: &'static str,
        /// Its value in the folder.
        there: String,
        /// Its value in the spec.
        here: String,
    },
    /// The folder was prepared by a recipe with other data or tokens.
    OtherRecipe {
        /// The path of the folder.
        folder: PathBuf,
        /// The first line that differs, as it is in the folder.
        there: String,
        /// The same line of the recipe.
        here: String,
    },
    /// A file that the recipe names is not the one that was prepared.
    Changed {
        /// The path of the folder.
        folder: PathBuf,
        /// The path of the file.
        file: PathBuf,
    },
    /// The files or the data cannot be used; diagnostics are in the sink.
    Refused(Refused),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "`{}`: {error}", path.display()),
            Self::NotPrepared(folder) => write!(
                f,
                "`{}` holds no prepared data: it has no `{LIST}`, which `trafoc data` writes last",
                folder.display()
            ),
            Self::Damaged { folder, why } => write!(f, "the data in `{}`: {why}", folder.display()),
            Self::OtherSpec { folder, key, there, here } => write!(
                f,
                "`{}` was prepared for a spec whose `{key}` is {there}, but that of this spec is {here}",
                folder.display()
            ),
            Self::OtherRecipe { folder, there, here } => write!(
                f,
                "`{}` was prepared by another recipe: it says `{there}` where this one says `{here}`",
                folder.display()
            ),
            Self::Changed { folder, file } => write!(
                f,
                "`{}` was prepared from another `{}` than the one that is there now",
                folder.display(),
                file.display()
            ),
            Self::Refused(Refused::File { path, why }) => {
                write!(f, "cannot read `{}`: {why}", path.display())
            }
            Self::Refused(Refused::Data) => f.write_str("the data cannot be used"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<Refused> for StoreError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// The size of a folder that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of files, the list of all included.
    pub files: usize,
    /// The number of their bytes.
    pub bytes: u64,
}

/// Whether a folder is one that [`write()`] has written or begun to write, of any version.
pub fn is_prepared(folder: &Path) -> bool {
    let bytes = read::bounded(&folder.join(MANIFEST), MAX_LIST).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    // Of any version, so that a folder of an older one can be prepared again in its place.
    json["format"].as_str().is_some_and(|format| format.starts_with("trafoc-data/"))
}

/// Writes prepared data into a folder, with `documents` by the names of their files. Files of the same names
/// are replaced one by one, and the list of all files is removed first and written last: a folder is complete
/// or has no list. What an earlier preparation has left is deleted.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(
    folder: &Path,
    dataset: &Dataset,
    recipe: &Recipe,
    spec: &ModelSpec,
    sources: &SourceMap,
    documents: &[(&'static str, String)],
) -> Result<Written, StoreError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::Io(path, error)
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    // Only what an earlier list names is deleted: other files in the folder are the user's.
    let before: Vec<String> = match FileList::read(folder, FORMAT) {
        Ok(list) => list.names().map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    };
    let list = folder.join(LIST);
    write::unless_missing(fs::remove_file(&list)).map_err(failed(&list))?;
    // Without this, the list could be there again after a power failure, next to files of two preparations.
    write::flush_folder(folder).map_err(failed(folder))?;
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        write::replace_own(&path, |file| file.write_all(bytes)).map_err(failed(&path))
    };
    let mut names = Vec::new();
    let codebook = &dataset.codebook;
    let mut manifest = Manifest {
        format: FORMAT.to_owned(),
        spec: Needs::of(recipe, spec, codebook.task),
        recipe: purpose::essence(recipe, sources),
        sources: purpose::origins(recipe, sources)?,
        sequence: Sequence::of(codebook),
        source: SourceRow::of(codebook),
        parts: IndexMap::new(),
    };
    // The mark of a folder that was begun, so that the next preparation may replace what is in it.
    put(MANIFEST, &to_json(&manifest))?;
    for split in Split::ALL.iter().copied() {
        let Some(part) = dataset.part(split) else { continue };
        let mut writer = array::Writer::new(folder, split.word());
        let entry = part::write(part, codebook, &mut writer).map_err(|(path, e)| StoreError::Io(path, e))?;
        names.extend(writer.files());
        manifest.parts.insert(split.word().to_owned(), entry);
    }
    put(MANIFEST, &to_json(&manifest))?;
    names.push(MANIFEST.to_owned());
    for (name, text) in documents {
        put(name, text.as_bytes())?;
        names.push((*name).to_owned());
    }
    // In the order of names, so that equal data has an equal list.
    names.sort();
    for old in before.iter().filter(|old| !names.contains(old)) {
        let path = folder.join(old);
        write::unless_missing(fs::remove_file(&path)).map_err(failed(&path))?;
    }
    let all = FileList::of(folder, FORMAT, names).map_err(failed(folder))?;
    all.write(folder).map_err(failed(&list))?;
    write::flush_folder(folder).map_err(failed(folder))?;
    Ok(Written { files: all.names().count().saturating_add(1), bytes: all.bytes() })
}

/// Reads a folder of prepared data for a spec and a recipe, which have been checked against each other
/// before. A difference between the data and the spec that is worth a warning is in the sink.
///
/// # Errors
/// The folder is incomplete or damaged, or was prepared for something else.
pub fn open(
    folder: &Path,
    recipe: &Recipe,
    spec: &ModelSpec,
    inherited: &Inherited,
    sources: &SourceMap,
    sink: &mut Sink,
) -> Result<Dataset, StoreError> {
    let damaged = |why: String| StoreError::Damaged { folder: folder.to_owned(), why };
    if !read::is_there(&folder.join(LIST)) {
        return Err(match fs::metadata(folder) {
            Ok(_) => StoreError::NotPrepared(folder.to_owned()),
            Err(error) => StoreError::Io(folder.to_owned(), error),
        });
    }
    // Everything is read once for its checksums before anything is parsed.
    let list = FileList::check(folder, FORMAT).map_err(damaged)?;
    let document = |name: &str, most: usize| {
        if !list.names().any(|listed| listed == name) {
            return Err(damaged(format!("{LIST} does not list {name}")));
        }
        read::bounded(&folder.join(name), most).map_err(|e| damaged(at(name, &e)))
    };
    let manifest = document(MANIFEST, MAX_LIST)?;
    format::check(&manifest, FORMAT).map_err(|why| damaged(format!("{MANIFEST}: {why}")))?;
    let manifest: Manifest =
        serde_json::from_slice(&manifest).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
    let plan = Plan::new(recipe, spec, inherited, sources)?;
    // First what users may have changed: sizes, recipe, files. Then the contents, which only damage changes.
    if let Some((key, there, here)) = manifest.spec.difference(&Needs::of(recipe, spec, plan.task)) {
        return Err(StoreError::OtherSpec { folder: folder.to_owned(), key, there, here });
    }
    if let Some((there, here)) = purpose::difference(&manifest.recipe, &purpose::essence(recipe, sources)) {
        return Err(StoreError::OtherRecipe { folder: folder.to_owned(), there, here });
    }
    if let Some(file) = purpose::changed(&manifest.sources, recipe, sources)? {
        return Err(StoreError::Changed { folder: folder.to_owned(), file });
    }
    let text = String::from_utf8(document(CODEBOOK, limit::CODEBOOK)?)
        .map_err(|_| damaged(format!("{CODEBOOK} is not UTF-8 text")))?;
    let codebook = Codebook::from_json(&text).map_err(|e| damaged(format!("{CODEBOOK}: {e}")))?;
    if let Some(key) = manifest.contradicts(&codebook) {
        return Err(damaged(format!("{MANIFEST} and {CODEBOOK} differ in `{key}`")));
    }
    let mut parts = Vec::new();
    for split in Split::ALL.iter().copied() {
        let read = |entry: &PartEntry| {
            let mut reader = array::Reader::new(folder, split.word(), &list, entry);
            part::read(&mut reader, &codebook).map_err(damaged)
        };
        parts.push(manifest.parts.get(split.word()).map(read).transpose()?);
    }
    // A part of an unknown name would be left out of training without a word.
    if let Some(name) = manifest.parts.keys().find(|name| Split::ALL.iter().all(|s| s.word() != *name)) {
        return Err(damaged(format!("{MANIFEST} has a part `{name}`")));
    }
    // The same warnings as where the files themselves are read.
    plan.fits(&codebook, sink);
    let mut parts = parts.into_iter();
    let mut next = || parts.next().flatten().filter(|part: &Part| !part.is_empty());
    let (train, validation, test) = (next(), next(), next());
    let Some(train) = train else { return Err(damaged("it has no training examples".to_owned())) };
    if sink.has_errors() {
        return Err(Refused::Data.into());
    }
    Ok(plan.dataset(codebook, train, validation, test))
}
