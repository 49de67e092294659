//! The files next to the weights of a Hugging Face model: its tokenizer, the names of its classes, its
//! special tokens and the preprocessing of its images.

use std::path::Path;

use super::language::language_id;
use crate::cli::directory::{PREPROCESSOR, PROCESSOR, TARGET_TOKENIZER, TOKENIZER, config_of};
use crate::cli::file;
use crate::cli::outcome::{Exit, Failure};
use crate::cli::subject::Subject;
use crate::cli::ui::Ui;
use crate::diag::count::counted;
use crate::hub::peft;
use crate::learn::data::picture::Preparation;
use crate::learn::data::{Codebook, Form, Refused};
use crate::learn::recipe::agree::Task;
use crate::learn::token::configured::{configured, gives_types, missing, remade};
use crate::learn::token::vocabulary::Files;
use crate::learn::token::{Fault, Subword, Tokenizer, from_files};
use crate::learn::writing::Writing;
use crate::parts::Head;
use crate::read::{self, limit};

/// The meaning of ids and classes, from the files next to a Hugging Face model; without a tokenizer if no
/// file describes one.
///
/// # Errors
/// A file cannot be read, or has settings that are not supported.
pub fn codebook_of(subject: &Subject, folder: &Path, root: &Path, ui: &Ui) -> Result<Codebook, Failure> {
    let body = peft::body_of(folder).map_err(|why| Failure::new(Exit::File, why))?;
    let folder = body.as_path();
    let config = match &subject.model {
        Some(model) => model.config.clone(),
        // The import has read the same file, so what is wrong with it has been reported.
        None => {
            let config = config_of(root).and_then(|path| read::bounded(&path, limit::CODEBOOK).ok());
            config.and_then(|bytes| read::python_json(&bytes).ok()).unwrap_or_default()
        }
    };
    let model = config["model_type"].as_str().unwrap_or_default();
    let (source, tokenizer) = tokenizers_of(folder, model, Some(ui))?;
    let of_target = tokenizer.as_ref().filter(|_| matches!(&subject.spec.head, Head::Translate(_)));
    let of_target = of_target.cloned();
    let mut classes: Vec<(usize, String)> = Vec::new();
    // A config has two names of classes even if the model has no classes.
    let has_classes = matches!(&subject.spec.head, Head::Classify(_) | Head::Tag(_));
    for (id, name) in config["id2label"].as_object().filter(|_| has_classes).into_iter().flatten() {
        if let (Ok(id), Some(name)) = (id.parse(), name.as_str()) {
            classes.push((id, name.to_owned()));
        }
    }
    // Keys of JSON are texts, of which `10` comes before `2`.
    classes.sort();
    let mut classes: Vec<String> = classes.into_iter().map(|(_, name)| name).collect();
    if let (Head::Classify(head), [one]) = (&subject.spec.head, classes.as_slice())
        && head.multi_label
    {
        // A single sigmoid gives the probability of this class, and the rest is that of its opposite.
        classes = vec![format!("not {one}"), one.clone()];
    }
    let sentence = subject.model.as_ref().and_then(|model| model.sentence.as_ref());
    if let Some(prompt) = sentence.and_then(|own| own.prompt.as_ref()) {
        ui.note(&format!(
            "note: the library sentence-transformers puts `{prompt}` before every text, but trafoc leaves \
                that to the author of the text"
        ));
    }
    let longest = sentence.and_then(|own| own.longest).unwrap_or(usize::MAX);
    let has_types = subject.graph.root().arguments().iter().any(|input| input.name == "token_types");
    let image = Form::of(&subject.spec);
    // Only a head that embeds images has none, and what is done with images does not depend on it.
    let task = Task::of(&subject.spec).unwrap_or(Task::ClassifyText);
    Ok(Codebook {
        task,
        tokenizer,
        source,
        classes,
        // The languages of such models are tokens of the vocabulary.
        languages: Vec::new(),
        several: matches!(&subject.spec.head, Head::Classify(head) if head.multi_label),
        // A model without types has no use for any.
        untyped: has_types && !gives_types(&tokenizer_config(folder)?),
        image,
        preparation: match image {
            Some(_) => {
                let usual = subject.model.as_ref().and_then(|m| m.imported.family.processor.as_deref());
                preparation_of(folder, usual)?
            }
            None => None,
        },
        writing: match task {
            // Only what writes texts begins and ends them.
            Task::NextToken | Task::Translate => {
                let own = writing_of(folder, &config, subject.spec.vocab.unwrap_or(0), ui)?;
                Some(with_language(own, folder, of_target)?)
            }
            Task::HiddenToken
            | Task::ClassifyText
            | Task::ClassifyImage
            | Task::Tag
            | Task::Span
            | Task::Embed => None,
        },
        longest: usize::try_from(subject.graph.context).unwrap_or(usize::MAX).min(longest),
        // What its authors trained it with is unknown.
        longest_target: None,
    })
}

/// The tokenizers of a directory, for a model of this `model_type`: that of sources, if they have one of their
/// own, and that of all other texts. What is odd about them is said to `ui`.
///
/// # Errors
/// A file cannot be read, or has settings that are not supported.
pub fn tokenizers_of(
    folder: &Path,
    model: &str,
    ui: Option<&Ui>,
) -> Result<(Option<Tokenizer>, Option<Tokenizer>), Failure> {
    let first = tokenizer_of(folder, model, Side::Source, ui)?;
    // With a file for the target, the usual one is that of the source.
    match file_of_tokenizer(folder, TARGET_TOKENIZER, model, ui)? {
        Some(target) => Ok((first, Some(target))),
        // Marian divides source and target with a model each.
        None if !read::is_there(&folder.join(TOKENIZER)) && read::is_there(&folder.join(TARGET_PIECES)) => {
            let target = tokenizer_of(folder, model, Side::Target, ui)?;
            let ends = |one: &Option<Tokenizer>| {
                one.as_ref().map(|own| own.special_tokens()).map(|s| (s.end, s.pad))
            };
            // The library frames targets with the ids that sources have.
            if ends(&first) != ends(&target) {
                let message = format!(
                    "the vocabularies for sources and targets in `{}` give the tokens for the end of a text and \
                     for padding different ids, which is not supported",
                    folder.display()
                );
                return Err(Failure::new(Exit::File, message));
            }
            Ok((first, target))
        }
        None => Ok((None, first)),
    }
}

/// The file with the settings of a tokenizer.
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The file that says how a model writes.
const GENERATION: &str = "generation_config.json";

/// Models of SentencePiece by the names that the library's tokenizers give them.
pub const SENTENCEPIECE: &[&str] =
    &["spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model", "source.spm"];

/// The model of SentencePiece for targets, where sources have one of their own.
const TARGET_PIECES: &str = "target.spm";

/// The files that a tokenizer with a second vocabulary is made of, in addition to [`SENTENCEPIECE`].
pub const SECOND: &[&str] = &[
    "vocab.json",
    "target_vocab.json",
    TARGET_PIECES,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
];

/// Whose texts a tokenizer divides: those that are read, or the translations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Target,
}

/// How a model writes, with the language of its translations if a file of its tokenizer names it and nothing
/// else does.
fn with_language(writing: Writing, folder: &Path, tokenizer: Option<Tokenizer>) -> Result<Writing, Failure> {
    let path = folder.join(TOKENIZER_CONFIG);
    let Some(Tokenizer::Subword(tokenizer)) =
        tokenizer.filter(|_| writing.first.is_none() && read::is_there(&path))
    else {
        return Ok(writing);
    };
    let config = tokenizer_config(folder)?;
    // As NLLB and mBART have it; most tokenizers have none.
    let Some(name) = config["tgt_lang"].as_str() else { return Ok(writing) };
    match language_id(&tokenizer, name) {
        // Where the language is the start token, it is not there a second time.
        Some(id) if writing.start == Some(id) => Ok(writing),
        Some(id) => Ok(Writing { first: Some(id), ..writing }),
        None => {
            Err(cannot_use(&path, &format!("the vocabulary has no token for `tgt_lang`, which is `{name}`")))
        }
    }
}

/// The tokenizer in a `tokenizer.json`, or a file like it, if it is there.
fn file_of_tokenizer(
    folder: &Path,
    name: &str,
    model: &str,
    ui: Option<&Ui>,
) -> Result<Option<Tokenizer>, Failure> {
    let path = folder.join(name);
    if !read::is_there(&path) {
        return Ok(None);
    }
    let read = from_files(&path, None).map_err(|fault| {
        let why = match fault {
            Fault::Bad(why) => why,
            Fault::Refused(Refused::File { why, .. }) => why,
            Fault::Refused(Refused::Data) => "it cannot be read".to_owned(),
        };
        Failure::new(Exit::File, format!("`{}`: {why}", path.display()))
    })?;
    let config = tokenizer_config(folder)?;
    let left_out = missing(&read, &config);
    if let (Some(ui), [first, ..]) = (ui, left_out.as_slice()) {
        ui.note(&format!(
            "note: `{TOKENIZER_CONFIG}` has {} that `{name}` lacks, which trafoc does not read and the library adds: \
             `{first}`{}",
            counted(left_out.len(), "token"),
            if left_out.len() > 1 { ", ..." } else { "" }
        ));
    }
    let read = configured(read, &config)
        .and_then(|read| remade(read, &config, model))
        .map_err(|why| Failure::new(Exit::File, format!("`{}`: {why}", path.display())))?;
    own_frame(read, folder)
}

/// The `tokenizer_config.json` of a directory; `null` if it has none.
fn tokenizer_config(folder: &Path) -> Result<serde_json::Value, Failure> {
    let path = folder.join(TOKENIZER_CONFIG);
    if !read::is_there(&path) {
        return Ok(serde_json::Value::Null);
    }
    let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| cannot_use(&path, &file::reason(&e)))?;
    read::json(&bytes).map_err(|why| cannot_use(&path, &why))
}

/// The tokenizer of a directory: its `tokenizer.json`, or what the library would make of its vocabulary or
/// model of SentencePiece. `None` if there is none of them.
fn tokenizer_of(
    folder: &Path,
    model: &str,
    side: Side,
    ui: Option<&Ui>,
) -> Result<Option<Tokenizer>, Failure> {
    // As the library does, which reads the other files only where this one is missing.
    if let Some(read) = file_of_tokenizer(folder, TOKENIZER, model, ui)? {
        return Ok(Some(read));
    }
    let text = |name: &str| -> Result<Option<String>, Failure> {
        let path = folder.join(name);
        if !read::is_there(&path) {
            return Ok(None);
        }
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
        let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
        read::text(bytes).map(Some).ok_or_else(|| failed("it is not UTF-8 text".to_owned()))
    };
    let json = |name: &str| -> Result<serde_json::Value, Failure> {
        let Some(text) = text(name)? else { return Ok(serde_json::Value::Null) };
        let path = folder.join(name);
        let failed = |why| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
        read::json(text.as_bytes()).map_err(failed)
    };
    let config = json("tokenizer_config.json")?;
    // Marian's setting for models whose two languages do not share their ids.
    let is_separate = side == Side::Target && config["separate_vocabs"].as_bool() == Some(true);
    let ids = text(if is_separate { "target_vocab.json" } else { "vocab.json" })?;
    let words = text("vocab.txt")?;
    let names = match side {
        Side::Source => SENTENCEPIECE,
        Side::Target => &[TARGET_PIECES],
    };
    let pieces = names.iter().map(|name| folder.join(name)).find(|path| read::is_there(path));
    // The other files only add to one of these three.
    if words.is_none() && ids.is_none() && pieces.is_none() {
        return Ok(None);
    }
    let pieces = pieces.map(|path| {
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot read `{}`: {why}", path.display()));
        read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))
    });
    let help =
        "the library writes a tokenizer.json: `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`";
    let files = Files {
        words,
        ids,
        merges: text("merges.txt")?,
        pieces: pieces.transpose()?,
        config,
        special: json("special_tokens_map.json")?,
        more: json("added_tokens.json")?,
        model: model.to_owned(),
    };
    if let (true, Some(ui)) = (files.has_unused_capitals(), ui) {
        ui.note(&format!(
            "note: the words in `{}` have capitals, but texts are read in lower case, as the library does: \
             `\"do_lower_case\": false` in tokenizer_config.json keeps their capitals",
            folder.join("vocab.txt").display()
        ));
    }
    let made = files.tokenizer().map_err(|why| {
        Failure::new(Exit::File, format!("the tokenizer of `{}`: {why}", folder.display())).help(help)
    })?;
    own_frame(made, folder)
}

/// A tokenizer of a directory, which puts no special tokens around texts unless its files say so.
fn own_frame(read: Subword, folder: &Path) -> Result<Option<Tokenizer>, Failure> {
    // Its files say all there is, so without a template no special tokens are put around a text.
    let own = read
        .with_own_frame()
        .map_err(|why| Failure::new(Exit::File, format!("the tokenizer of `{}`: {why}", folder.display())))?;
    Ok(Some(Tokenizer::Subword(Box::new(own))))
}

/// The `generation_config.json` of a directory; `None` if it has none.
fn generation_config(folder: &Path) -> Result<Option<serde_json::Value>, Failure> {
    let path = folder.join(GENERATION);
    // Anything of this name, so that what is no file is refused like other files that are none.
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let failed = |why: String| cannot_use(&path, &why);
    let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
    read::json(&bytes).map(Some).map_err(failed)
}

/// What the `generation_config.json` of a model's directory sets and is not followed.
///
/// # Errors
/// The file cannot be read.
pub fn left_aside(folder: &Path) -> Result<Vec<String>, Failure> {
    let body = peft::body_of(folder).map_err(|why| Failure::new(Exit::File, why))?;
    Ok(generation_config(&body)?.as_ref().map(Writing::left_aside).unwrap_or_default())
}

/// The tokens with which a text of a Hugging Face model begins and ends: those of its
/// `generation_config.json`, or of its config if it has none.
fn writing_of(folder: &Path, config: &serde_json::Value, vocab: u64, ui: &Ui) -> Result<Writing, Failure> {
    let own = generation_config(folder)?;
    let aside = own.as_ref().map(Writing::left_aside).unwrap_or_default();
    if !aside.is_empty() {
        let aside = aside.join(", ");
        ui.note(&format!(
            "note: {GENERATION} sets {aside}, which is ignored: options choose how tokens are selected"
        ));
    }
    // Not merged: the library reads these keys from the config only if the other file is missing.
    Writing::of(own.as_ref().unwrap_or(config), vocab).map_err(|faults| match &own {
        Some(_) => first_of(faults, |why| cannot_use(&folder.join(GENERATION), &why)),
        None => first_of(faults, |why| Failure::new(Exit::File, format!("the config: {why}"))),
    })
}

fn cannot_use(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()))
}

/// A failure from several sentences: the first is its message, the others are its help.
fn first_of(faults: Vec<String>, failed: impl Fn(String) -> Failure) -> Failure {
    let mut faults = faults.into_iter();
    let first = failed(faults.next().unwrap_or_default());
    faults.fold(first, Failure::help)
}

/// How images become numbers for a Hugging Face model, if a file next to it describes that.
fn preparation_of(folder: &Path, usual: Option<&str>) -> Result<Option<Preparation>, Failure> {
    // The newer file has the processors of all kinds of input, the older one only that of images.
    for (name, inside) in [(PROCESSOR, Some("image_processor")), (PREPROCESSOR, None)] {
        let path = folder.join(name);
        if !read::is_there(&path) {
            continue;
        }
        let failed =
            |why: String| Failure::new(Exit::File, format!("cannot use `{}`: {why}", path.display()));
        let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(file::reason(&e)))?;
        let json: serde_json::Value = read::json(&bytes).map_err(failed)?;
        let own = match inside {
            Some(key) => json.get(key),
            None => Some(&json),
        };
        // A processor of texts alone says nothing of images.
        let Some(own) = own else { continue };
        let refused = |faults| first_of(faults, failed).help("`trafoc run` takes images as numbers");
        return Preparation::of(own, usual).map(Some).map_err(refused);
    }
    Ok(None)
}
