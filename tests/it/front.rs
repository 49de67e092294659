//! A text through the front end, as every test of specs wants it.
//!
//! A file may begin with comments of the form `# set: decoder.layers=3` (`// set:` in the DSL): each is
//! a `--set`. `extends` is seen from the folder the file stands in.

use std::path::{Path, PathBuf};

use trafoc::compile::{Compilation, compile};
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load::{self, Files};
use trafoc::syntax::set::parse_set;
use trafoc::syntax::{Notation, text};

/// A compiled text with the sources its diagnostics point into.
pub struct Front {
    pub sources: SourceMap,
    pub compilation: Compilation,
}

/// Files below one folder.
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let notation = Notation::from_path(path).ok_or("its name does not end in .yaml or .trafo")?;
        let text = std::fs::read_to_string(self.0.join(path)).map_err(|_| "there is no such file")?;
        Ok((sources.add(path, text), notation))
    }
}

/// A folder of this repository.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The files of a folder that are specs, sorted by name.
pub fn specs_in(name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.retain(|f| Notation::from_path(&f.to_string_lossy()).is_some());
    files.sort();
    files
}

/// The last part of a path without its extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

impl Front {
    /// Compiles the bytes of a file.
    pub fn of_bytes(name: &str, bytes: &[u8], notation: Notation, files: &mut dyn Files) -> Front {
        let mut sources = load::sources();
        let mut sink = Sink::new();
        let failed =
            |diagnostics: Vec<Diagnostic>| Compilation { diagnostics, tree: None, spec: None, graph: None };
        let Some(id) = text::decode(&mut sources, name, bytes, &mut sink) else {
            return Front { sources, compilation: failed(sink.into_sorted()) };
        };
        let source = sources.get(id).unwrap().text.clone();
        let comments = source.lines().map_while(|l| l.strip_prefix('#').or(l.strip_prefix("//")));
        let mut settings = Vec::new();
        for argument in comments.filter_map(|c| c.trim_start().strip_prefix("set:")) {
            match parse_set(&mut sources, argument.trim()) {
                Ok(setting) => settings.push(setting),
                Err(diagnostic) => return Front { sources, compilation: failed(vec![diagnostic]) },
            }
        }
        let compilation = compile(&mut sources, id, notation, &settings, files).unwrap();
        Front { sources, compilation }
    }

    /// Compiles a text that extends nothing.
    pub fn of_text(name: &str, source: &str) -> Front {
        let notation = Notation::from_path(name).unwrap();
        Front::of_bytes(name, source.as_bytes(), notation, &mut load::NoFiles)
    }

    /// Compiles a file.
    pub fn of_file(path: &Path) -> Front {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let notation = Notation::from_path(&name).unwrap();
        let mut files = Folder(path.parent().unwrap().to_owned());
        Front::of_bytes(&name, &std::fs::read(path).unwrap(), notation, &mut files)
    }

    /// The slugs of what was found, in order.
    pub fn codes(&self) -> Vec<&'static str> {
        self.compilation.diagnostics.iter().map(|d| d.code.slug()).collect()
    }

    /// What was found, as a terminal without colour shows it.
    pub fn rendered(&self) -> String {
        render::render(&self.compilation.diagnostics, &self.sources, false, render::DEFAULT_WIDTH)
    }
}
