//! Compiles specs from files; a spec with an error fails the test with its diagnostics.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use trafoc::compile::{Compilation, compile};
use trafoc::ir::Verified;
use trafoc::source::{SourceId, SourceMap};
use trafoc::spec::load::{self, Files};
use trafoc::syntax::Notation;
use trafoc::syntax::set::{Setting, parse_set};

/// The files of one folder.
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn open(
        &mut self,
        sources: &mut SourceMap,
        _: SourceId,
        path: &str,
    ) -> Result<(SourceId, Notation), String> {
        let text = std::fs::read_to_string(self.0.join(path)).map_err(|_| "there is no such file")?;
        let notation = Notation::from_path(path).unwrap_or(Notation::Yaml);
        Ok((sources.add(path, text), notation))
    }
}

/// The path of the program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_trafoc");

/// The program in a process of its own, which reads none of the configuration files of whoever runs the tests.
pub fn program() -> Command {
    alone(PROGRAM)
}

/// Another program, such as a shell that starts trafoc, with the same in its environment.
pub fn alone(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("TRAFOC_NO_CONFIG", "1").env_remove("TRAFOC_THREADS");
    command
}

/// The path of a file in the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The graph of a spec file with settings such as `decoder.layers=2`.
pub fn graph_with(path: &Path, settings: &[&str]) -> Verified {
    let mut folder = Folder(path.parent().unwrap().to_owned());
    let mut sources = load::sources();
    let name = path.file_name().unwrap().to_str().unwrap();
    let (id, notation) = folder.open(&mut sources, SourceId::default(), name).unwrap();
    let settings: Vec<Setting> = settings.iter().map(|s| parse_set(&mut sources, s).unwrap()).collect();
    let Compilation { diagnostics, graph, .. } =
        compile(&mut sources, id, notation, &settings, &mut folder).unwrap();
    graph.unwrap_or_else(|| panic!("{name}: {diagnostics:#?}"))
}

/// The graph of a spec file.
pub fn graph(path: &Path) -> Verified {
    graph_with(path, &[])
}

/// The specs of a folder by name, in order.
pub fn specs(folder: &str) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(repository(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| Notation::from_path(path.to_str().unwrap()).is_some())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    found.sort();
    found
}
