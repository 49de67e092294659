//! For which spec and which recipe data was prepared, and from which files.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::field::Value as _;
use crate::field::record::entry;
use crate::learn::data::form::Form;
use crate::learn::data::prepare::{classes, languages, longest, several};
use crate::learn::data::{Refused, file, shipped};
use crate::learn::recipe::agree::Task;
use crate::learn::recipe::{Location, Recipe, Tokens};
use crate::learn::whole::Sum;
use crate::source::{SourceMap, Span};
use crate::spec::ModelSpec;
use crate::syntax::print;
use crate::syntax::tree::{Kind, Node};

/// The sizes of a spec on which prepared data depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// The name of the spec, which another spec need not have.
    pub name: String,
    /// The task of the spec's head, which determines the arrays.
    pub task: Task,
    /// The rows of the embedding table of the sequence, or of the target.
    pub vocab: Option<u64>,
    /// The rows of the source's own embedding table.
    pub source_vocab: Option<u64>,
    /// The number of classes of the head.
    pub classes: Option<u64>,
    /// Whether several classes may apply to one example.
    pub several: bool,
    /// The number of languages that the spec distinguishes, if it does.
    pub languages: Option<u64>,
    /// The size and the channels of images.
    pub image: Option<Form>,
    /// The most positions of an example; null if nothing bounds them.
    pub longest: Option<u64>,
}

impl Needs {
    /// What a spec needs, with the length that a recipe allows.
    pub fn of(recipe: &Recipe, spec: &ModelSpec, task: Task) -> Self {
        Self {
            name: spec.name.clone(),
            task,
            vocab: spec.vocab,
            source_vocab: spec.source_vocab,
            classes: classes(spec).map(|(count, _)| count),
            several: several(spec),
            languages: languages(spec).map(|(count, _)| count),
            image: Form::of(spec),
            longest: Some(longest(recipe, spec)).filter(|l| *l != usize::MAX).map(|l| l as u64),
        }
    }

    /// The first size that differs from that of a spec, with both values.
    pub fn difference(&self, spec: &Self) -> Option<(&'static str, String, String)> {
        let count = |n: Option<u64>| n.map_or("absent".to_owned(), |n| n.to_string());
        let image = |i: Option<Form>| match i {
            Some(Form { channels, side }) => format!("{channels} x {side} x {side}"),
            None => "absent".to_owned(),
        };
        let head = |task: Task| format!("for {}", task.needs());
        let all = [
            // First, because another task changes most of the other sizes, too.
            ("head", head(self.task), head(spec.task)),
            ("head.multi_label", self.several.to_string(), spec.several.to_string()),
            ("vocab", count(self.vocab), count(spec.vocab)),
            ("source_vocab", count(self.source_vocab), count(spec.source_vocab)),
            ("head.classes", count(self.classes), count(spec.classes)),
            ("embed.languages", count(self.languages), count(spec.languages)),
            ("embed.patches.image", image(self.image), image(spec.image)),
            ("context", count(self.longest), count(spec.longest)),
        ];
        let is_same_task = self.task == spec.task;
        all.into_iter().find(|(key, there, here)| match *key {
            // Two tasks may need data that is described in the same words.
            "head" => !is_same_task,
            _ => there != here,
        })
    }
}

/// A file from which data was prepared, or a folder of images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The last part of its path.
    pub name: String,
    /// The number of bytes, of all files of a folder together.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal digits; of a folder, that of the list of its files with their own.
    pub sha256: String,
}

/// The last part of a path, by which a file is known wherever it is.
fn name(path: &Path) -> String {
    let name = file::name(path);
    name.strip_prefix('@').map(str::to_owned).unwrap_or(name)
}

/// The files that a recipe names, in order: the data, then those of the tokenizer.
fn locations<'r>(recipe: &'r Recipe, sources: &SourceMap) -> Vec<PathBuf> {
    // Always in this order, because `changed` compares the lists place by place.
    let data = &recipe.data;
    let parts = [Some(&data.train), data.validation.as_ref(), data.test.as_ref()];
    let mut all: Vec<&'r Location> = parts.into_iter().flatten().flat_map(|l| &l.0).collect();
    if let Some(Tokens::File(from)) = &recipe.tokens {
        all.push(&from.path);
        all.extend(&from.merges);
    }
    all.into_iter().map(|location| location.path(sources)).collect()
}

/// The part of a recipe that is about the data and the tokens, as YAML, with the names of files in place of
/// their paths: the same data may be somewhere else on another machine.
pub fn essence(recipe: &Recipe, sources: &SourceMap) -> String {
    let mut data = recipe.data.clone();
    let mut tokens = recipe.tokens.clone();
    let mut bare = |location: &mut Location| location.text = name(&location.path(sources));
    let parts = [Some(&mut data.train), data.validation.as_mut(), data.test.as_mut()];
    parts.into_iter().flatten().flat_map(|l| &mut l.0).for_each(&mut bare);
    if let Some(Tokens::File(from)) = &mut tokens {
        bare(&mut from.path);
        from.merges.iter_mut().for_each(bare);
    }
    let mut entries = vec![entry("data", data.encode())];
    entries.extend(tokens.map(|tokens| entry("tokens", tokens.encode())));
    // The seed selects which examples are held out, and nothing else that is written.
    entries.extend(data.split.as_ref().map(|_| entry("seed", recipe.seed.encode())));
    print::yaml(&Node { kind: Kind::Map(entries), span: Span::default() })
}

/// The first lines in which two texts differ.
pub fn difference(there: &str, here: &str) -> Option<(String, String)> {
    let (mut a, mut b) = (there.lines(), here.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                let line = |line: Option<&str>| line.map_or("nothing", str::trim).to_owned();
                return Some((line(a), line(b)));
            }
        }
    }
}

/// The files of a recipe as they are now.
///
/// # Errors
/// A file cannot be read.
pub fn origins(recipe: &Recipe, sources: &SourceMap) -> Result<Vec<Origin>, Refused> {
    locations(recipe, sources).iter().map(|path| origin(path)).collect()
}

/// The first file of a recipe that is there and is not the one of the list. A file that is not there is taken
/// as unchanged: prepared data is used on machines that do not have it.
///
/// # Errors
/// A file cannot be read.
pub fn changed(before: &[Origin], recipe: &Recipe, sources: &SourceMap) -> Result<Option<PathBuf>, Refused> {
    for (path, before) in locations(recipe, sources).into_iter().zip(before) {
        let is_shipped = path.to_str().is_some_and(|p| p.starts_with('@'));
        let length = std::fs::metadata(&path);
        if !is_shipped && matches!(&length, Err(e) if e.kind() == io::ErrorKind::NotFound) {
            continue;
        }
        // If the length differs, the checksum of a large file need not be computed.
        let is_other = matches!(&length, Ok(meta) if meta.is_file() && meta.len() != before.bytes);
        if is_other || origin(&path)? != *before {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The length and the checksum of a file, of a data set that comes with trafoc, or of a folder of images.
fn origin(path: &Path) -> Result<Origin, Refused> {
    let fail = |path: &Path, error: &io::Error| file::refused(path, error);
    let of = |path: &Path| Sum::of_file(path).map_err(|e| fail(path, &e));
    let sum = if let Some(found) = path.to_str().and_then(|p| p.strip_prefix('@')).and_then(shipped::shipped)
    {
        Sum::of(&mut Cursor::new(found.bytes)).map_err(|e| fail(path, &e))?
    } else if path.is_dir() {
        let mut hash = Sha256::new();
        let mut bytes = 0u64;
        for class in file::folders(path)? {
            for image in file::entries(&class)?.into_iter().filter(|p| p.is_file()) {
                let own = of(&image)?;
                bytes = bytes.saturating_add(own.bytes);
                // The names are part of the sum: the same image in the folder of another class is other data.
                hash.update(format!("{}/{} {}\n", file::name(&class), file::name(&image), own.sha256));
            }
        }
        Sum { bytes, sha256: hash.finalize().iter().map(|b| format!("{b:02x}")).collect() }
    } else {
        of(path)?
    };
    Ok(Origin { name: name(path), bytes: sum.bytes, sha256: sum.sha256 })
}
