//! Decides with which weights training starts, from the command line, the recipe and the model.

use std::path::{Path, PathBuf};

use super::body::{Body, Started};
use super::companions::codebook_of;
use super::run_folder::{newest, read_codebook};
use crate::cli::directory::{PREPROCESSOR, config_of};
use crate::cli::outcome::Failure;
use crate::cli::subject::Subject;
use crate::cli::ui::Ui;
use crate::diag::Sink;
use crate::learn::data::{Dataset, Form, Inherited};
use crate::learn::marker::is_run;
use crate::learn::recipe::agree;
use crate::learn::recipe::{self, Location, Pattern, Recipe, Start};
use crate::learn::run_dir;
use crate::learn::session::files;
use crate::learn::start::Wish;
use crate::learn::token::Tokenizer;
use crate::parts::Head;
use crate::read::{self, limit};
use crate::source::{SourceMap, Span};
use crate::syntax::text;

/// What a command says about the weights with which training starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'p> {
    /// The run that is continued, used or made again.
    pub run: Option<&'p Path>,
    /// Whether that run is made again from its first step.
    pub begins_again: bool,
    /// A file of weights, which is taken in place of any other weights.
    pub weights: Option<&'p Path>,
    /// Whether all parameters start fresh, whatever the model has.
    pub from_scratch: bool,
    /// Whether the model has a new head.
    pub has_new_head: bool,
    /// Whether it is trained, and not only used.
    pub trains: bool,
    /// The folder of the user's own family files.
    pub families: Option<&'p Path>,
}

/// What training starts with: weights, and what the trained model brings along.
#[derive(Default)]
pub struct Beginning {
    /// What is taken over from a trained model in addition to weights.
    pub inherited: Inherited,
    /// The weights; `None` if all of them are fresh, or those of a checkpoint that it continues from.
    pub started: Option<Started>,
    continues: bool,
}

impl Beginning {
    /// What a recipe is checked against: whether a tokenizer is taken over, and from where the weights
    /// come.
    pub fn body(&self) -> agree::Body<'_> {
        let start = match &self.started {
            Some(started) => agree::Weights::Trained(&started.origins),
            None if self.continues => agree::Weights::Checkpoint,
            None => agree::Weights::Fresh,
        };
        agree::Body { has_tokenizer: self.inherited.tokenizer.is_some(), start }
    }

    /// Decides with which weights training starts, and writes that into the recipe, from which it starts
    /// again if it is interrupted before its first checkpoint.
    ///
    /// # Errors
    /// The trained model cannot be read, or does not have what the model needs.
    pub fn of(
        choice: &Choice<'_>,
        recipe: &mut Recipe,
        subject: &Subject,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let mut continues = false;
        if let Some(root) = choice.run {
            // The run has recorded where its weights came from, so the command line need not say it again.
            if recipe.start.as_ref().is_none_or(|start| start.from.is_none()) {
                recipe.start = recorded(root);
            }
            // Training an adapted model further takes the weights of its body, which its checkpoints lack.
            let found = newest(root)?;
            // The weights of its checkpoint are not taken if it is made again.
            continues = found.is_some() && !choice.begins_again;
            let takes_all = match choice.begins_again {
                true => recipe.start.is_none(),
                false => recipe.adapt.is_none() || !choice.trains,
            };
            if let Some(found) = found.filter(|_| takes_all) {
                // What the recipe leaves open was brought by a trained model when the run began, and its
                // codebook has it.
                let is_brought = recipe.start.is_some() || recipe.tokens.is_none();
                let inherited = match is_brought {
                    true => Inherited::of(read_codebook(&found.file(files::CODEBOOK))?),
                    false => Inherited::default(),
                };
                return Ok(Self { inherited, started: None, continues });
            }
        }
        if choice.from_scratch {
            // The run records this recipe, and must not take the weights when it is continued.
            recipe.start = None;
            return Self::fresh(subject, ui);
        }
        let start = recipe.start.clone();
        let own = own_weights(subject);
        let from = match (choice.weights, start.as_ref().and_then(|start| start.from.as_ref())) {
            // The command line comes before the recipe, which others may have written, and that before the
            // model's own.
            (Some(path), _) => path.to_owned(),
            (None, Some(location)) => location.path(&subject.sources),
            (None, None) => match own {
                Some(own) => own,
                None if start.is_some() => {
                    let message =
                        format!("`start` names no trained model, and `{}` has no weights", subject.name);
                    return Err(Failure::usage(message).help("write `start: {from: DIR}`"));
                }
                None => {
                    // A user whose spec names the tensors of a checkpoint may expect that it is read.
                    if subject.spec.weights.is_some() {
                        ui.note(&format!(
                            "note: all parameters are fresh: `{}` names the tensors of a checkpoint, and \
                             `--weights` would read one",
                            subject.name
                        ));
                    }
                    return Self::fresh(subject, ui);
                }
            },
        };
        // Someone who names a trained model in place of a spec need not write `start` as well.
        let start = start.unwrap_or_else(Start::usual);
        let body = Body::open(&from, (subject, choice.has_new_head), choice.families, ui)?;
        let is_excepted = |path: &str| start.except.matches(path);
        let wish = Wish { is_excepted: &is_excepted, has_new_head: choice.has_new_head };
        let mut started = body.start(subject, wish)?;
        let mut inherited = std::mem::take(&mut started.body.inherited);
        let reads_images = Form::of(&subject.spec).is_some();
        // A run has trained on such numbers, so the note is for model directories alone.
        if reads_images && inherited.preparation.is_none() && config_of(&from).is_some() {
            ui.note(&format!(
                "note: {} has no {PREPROCESSOR}, so images become numbers from 0 to 1, which may not be what it \
                 was trained on",
                started.body.name
            ));
        }
        // Names of classes belong to the scores of a head, and this head's scores are fresh.
        if !started.origins.has_scores() {
            inherited.classes.clear();
        } else if inherited.classes.is_empty()
            && matches!(subject.spec.head, Head::Classify(_) | Head::Tag(_))
        {
            ui.note(&format!(
                "note: {} does not name the classes of its trained head, so they get the names in the data, sorted; \
                 `--head {}` starts with a new head",
                started.body.name,
                subject.spec.head.part()
            ));
        }
        // From this recipe the run knows, when it is continued, what it started from.
        recipe.start = Some(written(start, &from, &started));
        Ok(Self { inherited, started: Some(started), continues })
    }

    /// A beginning with random weights. A model directory or a run brings its tokenizer along nevertheless.
    fn fresh(subject: &Subject, ui: &mut Ui) -> Result<Self, Failure> {
        let root = Path::new(&subject.name);
        let codebook = match &subject.model {
            Some(model) => codebook_of(subject, &model.folder, root, ui)?,
            None if is_run(root) => match newest(root)? {
                Some(found) => read_codebook(&found.file(files::CODEBOOK))?,
                None => return Ok(Self::default()),
            },
            None => return Ok(Self::default()),
        };
        // Classes, languages and the way of writing belong to a trained head, which is not taken over.
        let inherited = Inherited {
            classes: Vec::new(),
            languages: Vec::new(),
            writing: None,
            ..Inherited::of(codebook)
        };
        Ok(Self { inherited, ..Self::default() })
    }

    /// Checks that the ids of the data mean the same as in the trained model whose table of tokens is taken
    /// over.
    ///
    /// # Errors
    /// An id has different tokens in the two vocabularies.
    pub fn agree(&self, dataset: &Dataset, ui: &Ui) -> Result<(), Failure> {
        // With fresh embeddings no id means anything yet.
        let Some(started) = self.started.as_ref().filter(|started| started.origins.has_tokens()) else {
            return Ok(());
        };
        let (name, codebook) = (&started.body.name, &dataset.codebook);
        let sides =
            [(&codebook.tokenizer, &self.inherited.tokenizer), (&codebook.source, &self.inherited.source)];
        for (own, there) in sides {
            let Some(own) = own else { continue };
            let Some(there) = there else {
                ui.note(&format!(
                    "note: {name} has no tokenizer, so it is not known whether ids mean the same to it"
                ));
                return Ok(());
            };
            // The usual case: the tokenizer was taken over.
            if own == there {
                continue;
            }
            if let Some((id, own, there)) = difference(own, there) {
                let message = format!(
                    "the recipe's tokens are not those of {name}, whose embeddings the model starts with: \
                     the id {id} is {own} here and {there} there"
                );
                return Err(Failure::usage(message)
                    .help("without `tokens` in the recipe, the tokenizer of the trained model is used")
                    .help("`start: {except: [\"*embed.tokens.weight\"]}` begins with fresh embeddings"));
            }
            ui.note(&format!(
                "note: the recipe's tokenizer has the tokens of {name}, but other rules for dividing a text"
            ));
        }
        Ok(())
    }
}

/// The trained weights of a model that is named in place of a spec: a run, or a Hugging Face model directory.
fn own_weights(subject: &Subject) -> Option<PathBuf> {
    let path = Path::new(&subject.name);
    // Someone who names a config alone means the architecture.
    let is_directory = subject.model.is_some() && path.is_dir();
    (is_directory || is_run(path)).then(|| path.to_owned())
}

/// The start that a run has recorded.
pub fn recorded(root: &Path) -> Option<Start> {
    let path = match run_dir::newest(root) {
        Ok(found) => found.file(files::RECIPE),
        // A run that was ended before its first checkpoint has only the documents that it began with.
        Err(_) => run_dir::start_file(root, files::RECIPE)?,
    };
    let bytes = read::bounded(&path, limit::SPEC).ok()?;
    let (mut sources, mut sink) = (SourceMap::new(), Sink::new());
    let id = text::decode(&mut sources, &path.display().to_string(), &bytes, &mut sink)?;
    recipe::read(&sources, id, &[], &mut sink)?.start
}

/// The start as a run records it: the whole path of the trained model, and every parameter that is fresh
/// because the head is new.
fn written(start: Start, from: &Path, started: &Started) -> Start {
    // The run may be continued from another working folder.
    let text = from.canonicalize().unwrap_or_else(|_| from.to_owned()).display().to_string();
    let span = start.from.as_ref().map_or(Span::default(), |from| from.span);
    let mut except = start.except;
    let implied = started.origins.fresh.iter().filter(|path| !except.matches(path));
    let implied: Vec<Pattern> =
        implied.map(|path| Pattern { text: path.clone(), span: Span::default() }).collect();
    // Continued without `--head`, the run would otherwise miss these parameters in the trained model.
    except.0.extend(implied);
    Start { from: Some(Location { text, span }), except, places: start.places }
}

/// The first id that means something else in two vocabularies, with both meanings.
fn difference(own: &Tokenizer, there: &Tokenizer) -> Option<(usize, String, String)> {
    let shown = |token: Option<String>| token.map_or("nothing".to_owned(), |token| format!("`{token}`"));
    (0..own.vocab()).find_map(|id| {
        let at = u32::try_from(id).ok()?;
        let (own, there) = (own.token(at), there.token(at));
        // An id that the data cannot contain cannot mean something else in it.
        (own.is_some() && own != there).then(|| (id, shown(own), shown(there)))
    })
}
