//! Writes the data of a recipe as arrays for `trafoc data`.

use std::fs;
use std::path::Path;

use super::beginning::Choice;
use super::failures::store_failure;
use super::prepared::{Prepared, Source, documents, prepare_all};
use crate::cli::command::Command;
use crate::cli::data::{Data, Part, Prepare};
use crate::cli::file;
use crate::cli::format::Format;
use crate::cli::next_step::quoted;
use crate::cli::outcome::{Exit, Failure, Output};
use crate::cli::overwrite::ForceArg;
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::learn::data::store;
use crate::learn::recipe::Split;
use crate::learn::token::Tokenizer;
use crate::report::number;
use crate::write::is_abandoned;

impl Command for Prepare {
    type Data = Data;

    fn format(&self) -> Format {
        self.format.format
    }

    /// Writes the folder; the last line is its path.
    fn run(&self, ui: &mut Ui) -> Result<Output<Data>, Failure> {
        // Before the data is read, which can take long.
        permit(&self.out, self.force)?;
        let over = self.start.over(&self.over)?;
        let subject = over.compile(&self.spec, ui)?;
        let choice = Choice {
            from_scratch: self.start.from_scratch,
            has_new_head: self.start.head.is_some(),
            families: over.families(),
            ..Choice::default()
        };
        let prepared = prepare_all(subject, &self.recipe, &self.with, Source::Files, &choice, ui)?;
        let documents = documents(&prepared)?;
        let Prepared { subject, recipe, dataset, .. } = &prepared;
        let written = store::write(&self.out, dataset, recipe, &subject.spec, &subject.sources, &documents)
            .map_err(store_failure)?;
        let book = &dataset.codebook;
        let part = |split: &Split| {
            let part = dataset.part(*split)?;
            Some(Part { part: split.word(), examples: part.len(), tokens: part.tokens() })
        };
        let folder = self.out.display().to_string();
        let data = Data {
            folder: folder.clone(),
            parts: Split::ALL.iter().filter_map(part).collect(),
            vocab: book.tokenizer.as_ref().map(Tokenizer::vocab),
            source_vocab: book.source.as_ref().map(Tokenizer::vocab),
            classes: book.classes.clone(),
            files: written.files,
            bytes: written.bytes,
        };
        for Part { part, examples, tokens } in &data.parts {
            // Images have no tokens.
            let tokens = match book.tokenizer {
                Some(_) => format!(", {}", counted(number::exact(*tokens as u128), "token")),
                None => String::new(),
            };
            ui.note(&format!("{part}: {}{tokens}", counted(number::exact(*examples as u128), "example")));
        }
        ui.note(&format!(
            "{} in {}",
            number::bytes(u128::from(written.bytes)),
            counted(written.files, "file")
        ));
        // A spec from stdin cannot be read again, and `train` reads the recipe without these changes, for
        // which the prepared data would be refused.
        if self.spec != "-" && self.with.is_empty() {
            let changes = self.over.as_options() + &self.start.as_options();
            let recipe = quoted(&self.recipe.display().to_string());
            let (spec, folder) = (quoted(&self.spec), quoted(&folder));
            ui.next(&format!("trafoc train {spec}{changes} --recipe {recipe} --data {folder} --out run"));
        }
        Ok(Output::new(format!("{folder}\n"), data))
    }
}

/// Checks that a folder may be written: it is new, empty, or one that trafoc prepared.
fn permit(folder: &Path, force: ForceArg) -> Result<(), Failure> {
    let failed = |error| {
        Failure::new(Exit::File, format!("cannot write `{}`: {}", folder.display(), file::reason(&error)))
    };
    let is_used = match fs::read_dir(folder) {
        // What a killed preparation left of a file is removed by this one.
        Ok(mut entries) => entries.any(|entry| !entry.is_ok_and(|entry| is_abandoned(&entry.path()))),
        // A file of that name is another error, and reported as such.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error)),
    };
    if !is_used || force.force || store::is_prepared(folder) {
        return Ok(());
    }
    let message = format!("`{}` is not empty, and trafoc did not prepare it", folder.display());
    let help =
        "`--force` writes into it and overwrites files of the same names; another `--out` writes elsewhere";
    Err(Failure::new(Exit::Refused, message).help(help))
}
