//! The files that a spec extends.

use std::path::{Component, Path, PathBuf};

use super::file;
use super::shelf::{shipped, shipped_near};
use crate::followed;
use crate::read;
use crate::source::{SourceId, SourceMap};
use crate::spec::load::Files;
use crate::syntax::Notation;
use crate::syntax::text;

/// Where a spec comes from, which determines what it can extend. Shipped specs can always be extended.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A file: it can extend files in its folder or below it, and in the folder in which the user works.
    File,
    /// A shipped spec: it can extend other shipped specs.
    Shelf,
    /// Stdin, or an imported config: it can extend no files.
    Elsewhere,
}

impl Files for Origin {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        from: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let from = sources.get(from).map(|s| s.name.clone()).unwrap_or_default();
        // A shipped spec names its base as a file, `bert-base.yaml`, which is another shipped spec.
        let is_shipped = path.starts_with('@') || from.starts_with('@');
        match self {
            // What a shipped spec extends is shipped as well, wherever the spec that extends it comes from.
            Origin::File | Origin::Elsewhere if is_shipped => Origin::Shelf.open_shipped(sources, path),
            Origin::File => {
                let (name, bytes) = read_extended(Path::new(&from), Path::new(path)).map_err(|why| {
                    let near = meant(Path::new(&from), path);
                    near.map_or(why.clone(), |near| format!("{why}; did you mean `{near}`?"))
                })?;
                let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
                let notation = Notation::from_path(path).unwrap_or_else(|| Notation::guess(&text));
                Ok((sources.add(name, text), notation))
            }
            Origin::Shelf => self.open_shipped(sources, path),
            Origin::Elsewhere => {
                Err("this spec does not come from a file; only shipped specs such as `@gpt1` can be extended"
                    .to_owned())
            }
        }
    }
}

impl Origin {
    /// Adds a spec that comes with trafoc to the sources, by its name with or without `@` and extension.
    fn open_shipped(&self, sources: &mut SourceMap, path: &str) -> Result<(SourceId, Notation), String> {
        let Some(found) = shipped(path) else {
            let near = shipped_near(path).map_or(String::new(), |near| format!("; did you mean `@{near}`?"));
            return Err(format!("no spec of that name comes with trafoc{near}"));
        };
        Ok((sources.add(format!("@{}", found.name), found.text), Notation::Yaml))
    }
}

/// The spec that was probably meant by a path that cannot be extended: the file in the folder of the spec that names it, or the
/// shipped spec, of the same name but for its ending, or else one of these that is spelt like it. The names in other folders
/// are not shown, as their contents are not.
fn meant(from: &Path, path: &str) -> Option<String> {
    let beside = from.with_file_name(path);
    let mut steps = Path::new(path).components();
    let is_here = matches!((steps.next(), steps.next()), (Some(Component::Normal(_)), None));
    let here = Some(beside.as_path()).filter(|beside| is_here && !beside.exists());
    let name = |file: PathBuf| file.file_name()?.to_str().map(str::to_owned);
    let same = here.and_then(file::of_other_ending).and_then(name);
    let alike =
        || here.and_then(|path| file::alike(path, |name| Notation::from_path(name).is_some())).and_then(name);
    same.or_else(|| shipped(path).map(|known| format!("@{}", known.name)))
        .or_else(alike)
        .or_else(|| shipped_near(path).map(|near| format!("@{near}")))
}

/// Reads a file that another one extends; returns its name and its bytes. With all links followed, it must be
/// in the other's folder or below it, or in the folder in which the user works, and be an ordinary file of
/// bounded size.
fn read_extended(from: &Path, path: &Path) -> Result<(String, Vec<u8>), String> {
    // A spec can come from someone else: it must not read, and quote in a diagnostic, any file of the user's.
    if path.is_absolute() || path.components().any(|c| matches!(c, Component::Prefix(_))) {
        return Err("an absolute path can be outside of the spec's folder".to_owned());
    }
    let folder = from.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = folder.canonicalize().map_err(|e| file::reason(&e))?;
    let name: PathBuf = folder.join(path).components().filter(|c| *c != Component::CurDir).collect();
    // Links are followed before the check, because one inside of the folder can lead out of it.
    let target = folder.join(path).canonicalize();
    // A command that watches waits for a file that is missing.
    let target = target.inspect_err(|_| followed::note(&name)).map_err(|e| file::reason(&e))?;
    // The user has chosen the working folder. If that is the root of the disk, it would allow any file.
    let working = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok();
    let is_within = |folder: &Path| folder.parent().is_some() && target.starts_with(folder);
    if !target.starts_with(&root) && !working.is_some_and(|folder| is_within(&folder)) {
        return Err("it is outside of the spec's folder and of the working folder; start trafoc in a folder that has \
            both of them"
            .to_owned());
    }
    let metadata = target.metadata().map_err(|e| file::reason(&e))?;
    // A pipe or a device would be read without an end.
    if !metadata.is_file() {
        return Err("it is not an ordinary file".to_owned());
    }
    let bytes = read::spec(&target).map_err(|e| file::reason(&e))?;
    // `read::spec` reads one byte more than that, by which a longer file is noticed.
    if bytes.len() > text::MAX_BYTES {
        return Err(format!("it is longer than {} bytes", text::MAX_BYTES));
    }
    Ok((name.display().to_string(), bytes))
}
