//! The files that are exported together with the weights of a run: its tokenizer, the names of its classes,
//! the special tokens for generation and the preprocessing of images, in the formats of Hugging Face.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use super::beginning::recorded;
use super::companions::{SECOND, SENTENCEPIECE, tokenizers_of};
use super::exported_adapter;
use super::run_folder::{pick, read_codebook, report_damage, run_failure};
use crate::cli::directory::{PREPROCESSOR, TARGET_TOKENIZER, TOKENIZER, config_of};
use crate::cli::file;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::ui::Ui;
use crate::hub::code::{TOKENIZATION, tokenization};
use crate::hub::written::Written;
use crate::ir::Graph;
use crate::learn::data::Codebook;
use crate::learn::data::picture::Preparation;
use crate::learn::recipe::agree::Task;
use crate::learn::run_dir;
use crate::learn::session::files;
use crate::learn::token::Tokenizer;
use crate::learn::token::exchange::{config_json, tokenizer_json};
use crate::read::{self, limit};

/// The checkpoint of a run that is exported.
pub struct ExportedRun {
    folder: PathBuf,
    weights: PathBuf,
    codebook: Codebook,
    body: Option<PathBuf>,
}

/// The most runs that are followed, each to the one it started from; the recorded paths could form a circle.
const MOST_RUNS: usize = 100;

/// The config of the model directory from whose weights a run started, if it did and the directory is there.
fn config_of_body(root: &Path) -> Option<PathBuf> {
    let mut root = root.to_owned();
    for _ in 0..MOST_RUNS {
        let from = PathBuf::from(recorded(&root)?.from?.text);
        // A run that started from a run: the body is where the first of them started.
        if !run_dir::is_run(&from) {
            return config_of(&from);
        }
        root = from;
    }
    None
}

impl ExportedRun {
    /// The best checkpoint of a run; `None` if the path is not the folder of a run.
    ///
    /// # Errors
    /// The run has no checkpoint that can be used.
    pub fn open(path: &Path, ui: &mut Ui) -> Result<Option<Self>, Failure> {
        if !run_dir::is_run(path) {
            return Ok(None);
        }
        let found = pick(path, None).map_err(run_failure)?;
        report_damage(&found, ui);
        let codebook = read_codebook(&found.file(files::CODEBOOK))?;
        let weights = found.file(files::MODEL);
        let folder = weights.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Some(Self { folder, weights, codebook, body: config_of_body(path) }))
    }

    /// The config of the model directory from whose weights it started, if it did and the directory is there.
    pub fn body(&self) -> Option<&Path> {
        self.body.as_deref()
    }

    /// Writes what the run added to a trained body alone, under these names of the model's tensors. `head` is
    /// that of its spec. Returns the number of tensors.
    ///
    /// # Errors
    /// The run has no adapter, or the projections that it changes are parts of larger tensors.
    pub fn write_adapter(
        &self,
        tensors: &IndexMap<String, Written>,
        head: &str,
        to: &Path,
    ) -> Result<usize, Failure> {
        exported_adapter::write(&self.folder, tensors, (head, &self.codebook.classes), to)
    }

    /// The path of its weights.
    pub fn weights(&self) -> &PathBuf {
        &self.weights
    }

    /// Puts the names of the classes into a config with the same number of classes.
    pub fn name_classes(&self, config: &mut Json) {
        // A config has the number of classes, or names for all of them, from which the library takes it.
        let count = config["num_labels"].as_u64().or(config["id2label"].as_object().map(|o| o.len() as u64));
        let classes = match self.codebook.classes.as_slice() {
            // A single sigmoid is the probability of the second class.
            [_, of_one] if count == Some(1) => std::slice::from_ref(of_one),
            all => all,
        };
        // A config with another number of classes has names that are its own, or none.
        if classes.is_empty() || count != Some(classes.len() as u64) {
            return;
        }
        // Hugging Face's library needs the names in both directions.
        let names = classes.iter().enumerate();
        config["id2label"] = names.clone().map(|(i, name)| (i.to_string(), json!(name))).collect();
        config["label2id"] = names.map(|(i, name)| (name.clone(), json!(i))).collect();
    }

    /// Puts the ids of special tokens into a config.
    pub fn name_tokens(&self, config: &mut Json) {
        let Some(own) = self.writing(0) else {
            // A model that writes no texts needs the token of padding alone.
            config["pad_token_id"] = json!(self.codebook.special_tokens().pad);
            return;
        };
        for key in ["pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"] {
            if let Some(id) = own.get(key) {
                config[key] = id.clone();
            }
        }
    }

    /// How the model writes texts: its special tokens, and the same longest length as in `trafoc generate`.
    /// `None` if it writes none. `context` is the number of its positions.
    fn writing(&self, context: u64) -> Option<Json> {
        let codebook = &self.codebook;
        let special = codebook.special_tokens();
        let mut writing = json!({ "pad_token_id": special.pad });
        for (key, id) in [("bos_token_id", special.start), ("eos_token_id", special.end)] {
            if let Some(id) = id {
                writing[key] = json!(id);
            }
        }
        match codebook.task {
            // The last token takes no position, because none follows it.
            Task::NextToken => writing["max_length"] = json!(context.saturating_add(1)),
            Task::Translate => {
                writing["decoder_start_token_id"] = json!(codebook.first_of_target());
                if let Some(first) = codebook.writing.as_ref().and_then(|own| own.first) {
                    writing["forced_bos_token_id"] = json!(first);
                }
                writing["max_new_tokens"] = json!(codebook.longest);
            }
            Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => {
                return None;
            }
        }
        Some(writing)
    }

    /// The name and the text of the tokenizer's code, if it has code, for a model that is called `name`.
    pub fn code(&self, name: &str) -> Option<(String, String)> {
        let codebook = &self.codebook;
        (codebook.source.is_some() && codebook.tokenizer.is_some()).then(|| tokenization(name))
    }

    /// The files of the body's directory, by name, of which the run's tokenizer is made; `None` if they are no
    /// longer there, or describe another tokenizer by now.
    fn files_of_tokenizer(&self) -> Option<Vec<(&'static str, PathBuf)>> {
        let config = self.body.as_deref()?;
        let folder = config.parent()?;
        let json: Json = read::json(&read::bounded(config, limit::CODEBOOK).ok()?).ok()?;
        let (source, tokenizer) = tokenizers_of(folder, json["model_type"].as_str()?, None).ok()?;
        if (&source, &tokenizer) != (&self.codebook.source, &self.codebook.tokenizer) {
            return None;
        }
        let all = SENTENCEPIECE.iter().chain(SECOND).map(|name| (*name, folder.join(name)));
        Some(all.filter(|(_, path)| path.is_file()).collect())
    }

    /// Writes the files next to the weights and returns their names.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path, graph: &Graph, ui: &Ui) -> Result<Vec<String>, Failure> {
        let (mut written, mut copied) = (Vec::new(), Vec::new());
        let has_types = graph.root().arguments().iter().any(|input| input.name == "token_types");
        let mut put = |name: &str, text: String| {
            written.push(name.to_owned());
            file::write(&folder.join(name), &text)
        };
        let pretty = |json: &Json| {
            serde_json::to_string_pretty(json).map(|t| t + "\n").map_err(|e| Failure::bug(e.to_string()))
        };
        let codebook = &self.codebook;
        let json = |tokenizer: &Tokenizer| {
            // With the special tokens that the model saw around its texts, if those are not the tokenizer's
            // own.
            let text = tokenizer_json(tokenizer, codebook.frame(tokenizer));
            text.ok_or_else(|| Failure::bug("a tokenizer cannot be written"))
        };
        // Ids that a second file gives in place of the tokenizer's own have no place in a `tokenizer.json`.
        let is_plain = |tokenizer: &Tokenizer| match tokenizer {
            Tokenizer::Subword(own) => own.is_plain(),
            Tokenizer::Characters(_) | Tokenizer::Words(_) | Tokenizer::Bytes(_) => true,
        };
        let is_written = codebook.source_tokenizer().is_some_and(is_plain);
        if codebook.source_tokenizer().is_some() && !is_written {
            match self.files_of_tokenizer() {
                Some(files) => {
                    for (name, from) in files {
                        read::copy(&from, &folder.join(name), crate::read::limit::CODEBOOK).map_err(|e| {
                            let why = file::reason(&e);
                            Failure::new(Exit::File, format!("cannot copy `{}`: {why}", from.display()))
                        })?;
                        copied.push(name.to_owned());
                    }
                }
                None => ui.note(
                    "note: no tokenizer.json describes this model's tokenizer, so the tokenizer is not written: \
                     copy vocab.json, tokenizer_config.json and the models of SentencePiece from the directory of \
                     its body",
                ),
            }
        }
        if let Some(tokenizer) = codebook.source_tokenizer().filter(|_| is_written) {
            // The library reads the inputs of a model with this file, so it is the source's if there are two.
            put(TOKENIZER, json(tokenizer)?)?;
            let mut config = config_json(tokenizer, codebook.longest as u64, has_types && !codebook.untyped);
            if let (Some(target), Some(_)) = (&codebook.tokenizer, &codebook.source) {
                put(TARGET_TOKENIZER, json(target)?)?;
                let (file, class) = TOKENIZATION;
                config["tokenizer_class"] = json!(class);
                // The first place is for a tokenizer in plain Python, and there is none.
                config["auto_map"] = json!({ "AutoTokenizer": [null, format!("{file}.{class}")] });
                ui.note(
                    "note: source and target have separate vocabularies, so the tokenizer has its own code, \
                        which needs `trust_remote_code=True`",
                );
            }
            put("tokenizer_config.json", pretty(&config)?)?;
        }
        if let Some(writing) = self.writing(graph.context) {
            put("generation_config.json", pretty(&writing)?)?;
        }
        if let Some(form) = codebook.image {
            let size = json!({ "height": form.side, "width": form.side });
            // As in training with trafoc: numbers from 0 to 1, which are not normalised.
            let plain = json!({
                "image_processor_type": "ViTImageProcessor", "do_resize": true, "size": size, "resample": 2,
                "do_rescale": true, "rescale_factor": 1.0 / 255.0, "do_normalize": false,
            });
            // A body's own preprocessing comes before that of trafoc, because the run was trained with it.
            let own = codebook.preparation.as_ref().map(Preparation::config);
            put(PREPROCESSOR, pretty(&own.unwrap_or(plain))?)?;
        }
        written.extend(copied);
        Ok(written)
    }
}
