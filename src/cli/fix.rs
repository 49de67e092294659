//! `check --fix`: carries out the suggestions of diagnostics, in the text, where the checker finds the result better.

use std::path::Path;

use clap::Args;
use similar::TextDiff;

use super::agreement::RECIPE_SETTING;
use super::directory;
use super::file;
use super::format::Format;
use super::mending::{File, Fixed, Found, Mended, mended};
use super::next_step::is_lasting;
use super::outcome::{Exit, Failure};
use super::subject::{OverArgs, open};
use super::ui::{Color, Ui};
use crate::compile::{Compilation, compile_tree};
use crate::diag::Sink;
use crate::diag::render::visible_name;
use crate::learn::recipe;
use crate::read;
use crate::source::SourceMap;
use crate::spec::load;
use crate::syntax::set::{parse_set, parse_setting};
use crate::syntax::{Notation, edit, text};

/// `--fix`, `--unsafe-fixes` and `--diff`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FixArg {
    /// Carry out what `help` says where that is certain to mend an error, and write the files back
    #[arg(long, conflicts_with_all = ["variant", "watch"])]
    fix: bool,
    /// With `--fix` or `--diff`: remove what has no effect, too, and replace values
    #[arg(long)]
    unsafe_fixes: bool,
    /// Show what `--fix` would change, and write nothing
    #[arg(long, conflicts_with_all = ["fix", "variant", "watch"])]
    diff: bool,
}

/// The files of a command after their fixes.
#[derive(Debug, Default)]
pub struct Repair {
    /// All changes, in the order in which they were made.
    pub fixed: Vec<Fixed>,
    /// The changes as a unified diff.
    pub diff: String,
}

impl FixArg {
    /// Whether fixes are made or shown.
    pub fn fixes(self) -> bool {
        self.fix || self.diff
    }

    /// Whether only the changes are shown.
    pub fn shows(self) -> bool {
        self.diff
    }

    /// Fixes specs and a recipe and writes them back, or only says what would be changed. What is no file of the user's
    /// is left as it is.
    ///
    /// # Errors
    /// A usage error, or a file cannot be written.
    pub fn repair(
        self,
        specs: &[String],
        over: &OverArgs,
        recipe: Option<(&str, &[String])>,
        ui: &Ui,
    ) -> Result<Repair, Failure> {
        if self.unsafe_fixes && !self.fix && !self.diff {
            return Err(Failure::usage("`--unsafe-fixes` says what `--fix` and `--diff` may change")
                .help("`trafoc check SPEC --fix --unsafe-fixes`"));
        }
        let mut repair = Repair::default();
        if !self.fix && !self.diff {
            return Ok(repair);
        }
        let all = specs.iter().map(String::as_str).chain(recipe.map(|(name, _)| name));
        // A shipped spec may be checked with a recipe of the user's own, and the reverse.
        if let (Some(name), false) = (all.clone().find(|name| !is_own(name)), all.clone().any(is_own)) {
            let failure = Failure::usage(format!("`{name}` is no file that could be written back"));
            return Err(failure.help("fixes are for specs and recipes in files of your own"));
        }
        for spec in specs.iter().filter(|spec| is_own(spec)) {
            // What cannot be read is reported when it is checked.
            let Some(file) = spec_file(spec, over, ui) else { continue };
            self.mend(file, &mut repair, ui)?;
        }
        if let Some((name, with)) = recipe.filter(|(name, _)| is_own(name))
            && let Some(file) = recipe_file(name, with)
        {
            self.mend(file, &mut repair, ui)?;
        }
        Ok(repair)
    }

    fn mend(self, file: File<'_>, repair: &mut Repair, ui: &Ui) -> Result<(), Failure> {
        if file.text.len() > edit::LONGEST {
            ui.note(&format!("note: `{}` is longer than 64 KiB, and is not fixed", file.name));
            return Ok(());
        }
        let Mended { text, fixed, left } = mended(&file, self.unsafe_fixes)?;
        if let Some(left) = left {
            ui.note(&format!("note: {left}"));
        }
        if fixed.is_empty() {
            return Ok(());
        }
        if self.fix {
            let path = Path::new(file.name);
            // A rename would replace it all the same.
            if path.metadata().is_ok_and(|data| data.permissions().readonly()) {
                let message = format!("`{}` is read-only, so its fixes are not written", file.name);
                return Err(Failure::new(Exit::File, message).help("`--diff` shows them"));
            }
            file::write(path, &text)?;
            for Fixed { file, line, column, change, .. } in &fixed {
                ui.note(&visible_name(&format!("fixed {file}:{line}:{column}: {change}")));
            }
        }
        let diff = TextDiff::from_lines(&file.text, &text);
        let name = visible_name(file.name);
        repair.diff += &diff.unified_diff().header(&name, &name).to_string();
        repair.fixed.extend(fixed);
        Ok(())
    }
}

/// Whether a name is that of a file which the user can have written.
pub fn is_own(name: &str) -> bool {
    // `/dev/stdin` may be a file of another name.
    let path = Path::new(name);
    let is_stream = path.starts_with("/dev") || path.starts_with("/proc");
    is_lasting(name) && !name.starts_with('@') && !is_stream && !path.is_dir()
}

/// A spec as a file, if it can be read.
fn spec_file<'f>(spec: &'f str, over: &'f OverArgs, ui: &Ui) -> Option<File<'f>> {
    // The spec of a model's config is made by the import, so there is no text of the user to fix.
    if directory::config_of(Path::new(spec)).is_some() {
        return None;
    }
    // What is wrong with the file is said when it is checked.
    let mut silent = Ui::new(ui.command(), Format::Json, Color::Never, true, ui.program());
    let opened = open(spec, over.lang(), over.families(), &mut silent).ok()?;
    let (text, notation) = (opened.sources.get(opened.id)?.text.clone(), opened.notation);
    let check = move |text: &str| {
        let (mut sources, mut origin, mut sink) = (opened.sources.clone(), opened.origin, Found::sink());
        let id = sources.add(opened.name.clone(), text);
        let settings: Vec<_> = over.set.iter().filter_map(|set| parse_set(&mut sources, set).ok()).collect();
        let tree = load::tree(&mut sources, id, notation, &settings, &mut origin, &mut sink);
        let Compilation { diagnostics, spec, .. } = compile_tree(&sources, tree, sink)?;
        Ok(Found { sources, id, diagnostics, meaning: spec.map(|spec| spec.encode()) })
    };
    Some(File { name: spec, notation, text, check: Box::new(check) })
}

/// A recipe as a file, if it can be read.
fn recipe_file<'f>(name: &'f str, with: &'f [String]) -> Option<File<'f>> {
    let bytes = read::spec(Path::new(name)).ok()?;
    let mut sources = SourceMap::new();
    let id = text::decode(&mut sources, name, &bytes, &mut Sink::new())?;
    let text = sources.get(id)?.text.clone();
    let check = move |text: &str| {
        let (mut sources, mut sink) = (SourceMap::new(), Found::sink());
        let id = sources.add(name, text);
        let settings: Vec<_> =
            with.iter().filter_map(|with| parse_setting(&mut sources, RECIPE_SETTING, with).ok()).collect();
        recipe::read(&sources, id, &settings, &mut sink);
        Ok(Found { sources, id, diagnostics: sink.into_sorted(), meaning: None })
    };
    Some(File { name, notation: Notation::Yaml, text, check: Box::new(check) })
}
