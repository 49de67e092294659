//! Runs a text through the front end, for all tests of specs.
//!
//! A file may begin with comments of the form `# set: decoder.layers=3` (`// set:` in the DSL): each is a
//! `--set`. `extends` is relative to the folder of the file.

use std::path::Path;

use trafoc::compile::{Compilation, compile};
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::report::compare::nearest::Known;
use trafoc::source::SourceMap;
use trafoc::spec::load::{self, Files};
use trafoc::syntax::set::parse_set;
use trafoc::syntax::{Notation, text};

use crate::compiled::{Folder, repository, specs};

/// A compiled text, with the sources of its diagnostics.
pub struct Front {
    pub sources: SourceMap,
    pub compilation: Compilation,
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

    /// Compiles a text as if it were a file in `folder`.
    pub fn of_text(name: &str, source: &str, folder: &str) -> Front {
        let notation = Notation::from_path(name).unwrap();
        Front::of_bytes(name, source.as_bytes(), notation, &mut Folder(repository(folder)))
    }

    /// Compiles a file.
    pub fn of_file(path: &Path) -> Front {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let notation = Notation::from_path(&name).unwrap();
        let mut files = Folder(path.parent().unwrap().to_owned());
        Front::of_bytes(&name, &std::fs::read(path).unwrap(), notation, &mut files)
    }

    /// The names of the codes that were reported, in order.
    pub fn codes(&self) -> Vec<&'static str> {
        self.compilation.diagnostics.iter().map(|d| d.code.slug()).collect()
    }

    /// Whether a random spec has no faults. A decoder of it may have any mask, also one under which it sees what it
    /// predicts, which has a warning.
    pub fn is_sound(&self) -> bool {
        self.compilation.graph.is_some() && self.codes().iter().all(|code| *code == "head-mismatch")
    }

    /// The diagnostics as a terminal without colours shows them.
    pub fn rendered(&self) -> String {
        render::render(&self.compilation.diagnostics, &self.sources, false, render::DEFAULT_WIDTH)
    }
}

/// The shipped specs in YAML, by their names.
pub fn shipped() -> Vec<(String, Front)> {
    specs("specs")
        .into_iter()
        .filter(|(_, path)| path.extension().is_some_and(|e| e == "yaml"))
        .map(|(name, path)| (name, Front::of_file(&path)))
        .collect()
}

/// Specs among which the nearest is looked for.
pub fn known(all: &[(String, Front)]) -> Vec<Known<'_>> {
    all.iter()
        .map(|(name, front)| Known {
            name,
            spec: front.compilation.spec.as_ref().unwrap(),
            graph: front.compilation.graph.as_ref().unwrap(),
        })
        .collect()
}
