//! A directory of Hugging Face's library with code of its own: for a spec that no family can express.
//!
//! The model is the Python file that [`crate::emit::pytorch`] emits. The files next to it are Python too, in
//! this folder, where Python's own tools check them: `configuration_placeholder.py` and `modeling.py` are
//! given the model's names, and the others, which contain everything that such models share, are written as
//! they are. The config has the sizes under the usual names, and the spec itself as text, from which trafoc
//! reads such a directory ([`read`]).

pub mod read;

use serde_json::{Map, Value as Json, json};

use crate::emit::MARK;
use crate::emit::program::constants::Number;
use crate::emit::program::name::shown;
use crate::emit::pytorch;
use crate::ir::Verified;
use crate::lower::Bug;
use crate::parts::Head;
use crate::source::SourceMap;
use crate::spec::ModelSpec;
use crate::spec::expand::expand;
use crate::syntax::Notation;

/// The key of the config under which the spec is.
pub const SPEC: &str = "trafo_spec";

/// The library's key for the number of classes.
const CLASSES: &str = "num_labels";

/// The most classes that are named one by one: more than any data set has, and few enough to write.
const MOST_NAMED: u64 = 100_000;

/// The files of a directory, without its weights.
#[derive(Clone, Debug)]
pub struct Code {
    /// The class of the model with its head: `GbtMulmForCausalLM`.
    pub architecture: String,
    /// The content of `config.json`, with the spec under the key [`SPEC`].
    pub config: Json,
    /// The names and texts of the files with code.
    pub files: Vec<(String, String)>,
}

/// The spec's name of a size, and the usual one in configs of the library.
const USUAL: &[(&str, &str)] = &[
    ("vocab", "vocab_size"),
    ("source_vocab", "source_vocab_size"),
    ("context", "max_position_embeddings"),
    ("d_model", "hidden_size"),
    ("embed_dim", "embedding_size"),
    ("layers", "num_hidden_layers"),
    ("heads", "num_attention_heads"),
    ("kv_heads", "num_key_value_heads"),
    ("value_dim", "v_head_dim"),
    ("query_rank", "q_lora_rank"),
    ("kv_rank", "kv_lora_rank"),
    ("hidden", "intermediate_size"),
    ("experts", "num_experts"),
    // The library takes `top_k` for a setting of generation.
    ("top_k", "num_experts_per_tok"),
    ("segments", "type_vocab_size"),
    ("channels", "num_channels"),
    ("classes", "num_labels"),
    ("eps", "norm_eps"),
    ("init_std", "initializer_range"),
];

/// Names that the library reads, each with the usual name under which such a model has the size instead.
const ALIASES: &[(&str, &str)] =
    &[("num_hidden_layers", "encoder_layers"), ("num_attention_heads", "encoder_attention_heads")];

/// How the library treats models with a certain head.
struct Task {
    /// The end of the model's class, and the class of the shared code that it extends.
    class: &'static str,
    /// The module of the shared code that defines it: `answers`, `decoding` or `seq2seq`.
    module: &'static str,
    /// The class of the library that loads such models by their config.
    auto: &'static str,
}

const fn task(class: &'static str, module: &'static str, auto: &'static str) -> Task {
    Task { class, module, auto }
}

/// How the library treats models with the spec's head; `None` if it has only `AutoModel` for them.
fn task_of(spec: &ModelSpec, reads_image: bool) -> Option<Task> {
    Some(match &spec.head {
        Head::Lm(_) => task("CausalLM", "decoding", "AutoModelForCausalLM"),
        Head::Translate(_) if reads_image => task("Seq2SeqLM", "seq2seq", "AutoModelForImageTextToText"),
        Head::Translate(_) => task("Seq2SeqLM", "seq2seq", "AutoModelForSeq2SeqLM"),
        Head::Mlm(_) => task("MaskedLM", "answers", "AutoModelForMaskedLM"),
        Head::Classify(_) if reads_image => {
            task("ImageClassification", "answers", "AutoModelForImageClassification")
        }
        Head::Classify(_) => task("SequenceClassification", "answers", "AutoModelForSequenceClassification"),
        Head::Tag(_) => task("TokenClassification", "answers", "AutoModelForTokenClassification"),
        Head::Span(_) => task("QuestionAnswering", "answers", "AutoModelForQuestionAnswering"),
        Head::Embed(_) => return None,
    })
}

const CONFIGURATION: &str = include_str!("configuration_placeholder.py");
const MODELING: &str = include_str!("modeling.py");
const MODELING_EMBEDDING: &str = include_str!("modeling_embedding.py");

/// The shared code by the names of its modules, each with those that it imports.
const SHARED: &[(&str, &str, &[&str])] = &[
    ("pretrained", include_str!("pretrained.py"), &[]),
    ("answers", include_str!("answers.py"), &["pretrained"]),
    ("decoding", include_str!("decoding.py"), &["pretrained"]),
    ("seq2seq", include_str!("seq2seq.py"), &["pretrained", "decoding"]),
];

/// The file, without its ending, and the class of the tokenizer of two vocabularies.
pub const TOKENIZATION: (&str, &str) = ("tokenization", "TranslationTokenizer");

/// The name and the text of the code of a tokenizer of two vocabularies, for a directory made from `name`.
pub fn tokenization(name: &str) -> (String, String) {
    (format!("{}.py", TOKENIZATION.0), header(name) + include_str!("tokenization.py"))
}

/// The first line of every file: by the mark in it, a later export knows that it may replace the file.
fn header(name: &str) -> String {
    format!("# @generated{MARK}{}, as `trafoc export` writes it.\n", shown(name))
}

/// The directory's code and config. `name` is what the header of every file says it was made from.
///
/// # Errors
/// A fault of trafoc: the emitted Python is wrong.
pub fn code(graph: &Verified, spec: &ModelSpec, sources: &SourceMap, name: &str) -> Result<Code, Bug> {
    let model = pytorch::model(graph, sources, name)?;
    let file = pytorch::name::file(&spec.name);
    let class = class_name(&graph.root().name);
    let reads_image = graph.root().arguments().iter().any(|input| input.name == "image");
    let task = task_of(spec, reads_image);
    let filled = |text: &str| {
        let text = match &task {
            Some(Task { class: head, module, .. }) => {
                // The text is written for a language model, so that Python's tools can check it as it is.
                text.replace("decoding", module).replace("CausalLM", head)
            }
            None => text.to_owned(),
        };
        // The class comes last: it may be any word, even another of the placeholders.
        text.replace("placeholder", &file)
            .replace("MODEL_TYPE", &type_of(&file))
            .replace("PLACEHOLDER", &class)
    };
    let header = header(name);
    let tables = |text: String| {
        let aliases = aliases(&model.sizes);
        let usual: Vec<(&str, &str)> =
            USUAL.iter().filter(|(own, _)| model.sizes.iter().any(|(n, _)| n == own)).copied().collect();
        // The files have empty tables, so that they are valid Python and can be checked before they are
        // filled.
        text.replace("USUAL: dict[str, str] = {}", &format!("USUAL: dict[str, str] = {}", dict(&usual, 0)))
            .replace(
                "attribute_map: ClassVar[dict[str, str]] = {}",
                &format!("attribute_map: ClassVar[dict[str, str]] = {}", dict(&aliases, 4)),
            )
    };
    // The library has no class for models that embed, so such a directory has the bare model alone.
    let own = if task.is_some() { MODELING } else { MODELING_EMBEDDING };
    let first = task.as_ref().map_or("answers", |task| task.module);
    let needed: &[&str] = SHARED.iter().find(|(name, ..)| *name == first).map_or(&[], |(.., needs)| needs);
    let mut files = vec![
        ("model.py".to_owned(), model.text.clone()),
        (format!("configuration_{file}.py"), header.clone() + &tables(filled(CONFIGURATION))),
        (format!("modeling_{file}.py"), header.clone() + &filled(own)),
    ];
    // Only the modules that this model imports: what a directory contains should be needed.
    let shared = SHARED.iter().filter(|(name, ..)| *name == first || needed.contains(name));
    files.extend(shared.map(|(name, text, _)| (format!("{name}.py"), header.clone() + text)));
    for (name, text) in &files {
        // Names of the author were inserted, so the texts are read once more before they are written.
        pytorch::check::check(text).map_err(|why| Bug(format!("{name}: {why}")))?;
    }
    let architecture =
        class.clone() + &task.as_ref().map_or("Model".to_owned(), |t| format!("For{}", t.class));
    let mut auto_map = Map::new();
    auto_map.insert("AutoConfig".into(), json!(format!("configuration_{file}.{class}Config")));
    auto_map.insert("AutoModel".into(), json!(format!("modeling_{file}.{class}Model")));
    if let Some(task) = &task {
        auto_map.insert(task.auto.into(), json!(format!("modeling_{file}.{architecture}")));
    }
    let mut config = config(spec, &model.sizes);
    // The library derives the number of classes from the number of their names. Of very many it gets the number,
    // from which it makes the names.
    let classes = config.get(CLASSES).and_then(Json::as_u64).filter(|classes| *classes <= MOST_NAMED);
    if let Some(classes) = classes {
        config.remove(CLASSES);
        // The names that the library gives classes without names of their own.
        let label = |i: u64| format!("LABEL_{i}");
        let named: Map<String, Json> = (0..classes).map(|i| (i.to_string(), json!(label(i)))).collect();
        let numbered: Map<String, Json> = (0..classes).map(|i| (label(i), json!(i))).collect();
        config.insert("id2label".into(), Json::Object(named));
        config.insert("label2id".into(), Json::Object(numbered));
    }
    config.insert("architectures".into(), json!([architecture]));
    config.insert("auto_map".into(), Json::Object(auto_map));
    config.insert("model_type".into(), json!(type_of(&file)));
    // The type in which an export writes weights.
    config.insert("dtype".into(), json!("float32"));
    // `weights` would name the tensors of another file; those of this directory have the parameters' paths.
    config.insert(SPEC.into(), json!(expand(&ModelSpec { weights: None, ..spec.clone() }, Notation::Yaml)));
    Ok(Code { architecture, config: Json::Object(config), files })
}

fn type_of(file: &str) -> String {
    // Without the prefix it might be a `model_type` of the library, such as `gpt2`, whose config class would
    // then be used.
    format!("trafoc_{file}")
}

/// The name of the graph's root as that of a Python class: letters and digits, a capital first.
fn class_name(root: &str) -> String {
    // A class of Python does not begin with a digit, and by convention begins with a capital.
    let plain: String = root.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.starts_with(|c: char| c.is_ascii_uppercase()) { plain } else { format!("Model{plain}") }
}

/// What the config says about the model itself. Trafoc does not read it again, and refuses a directory in
/// which it contradicts the spec.
fn config(spec: &ModelSpec, sizes: &[(String, Number)]) -> Map<String, Json> {
    let mut config = Map::new();
    for (name, number) in sizes {
        let value = match number {
            Number::Int(n) => json!(n),
            Number::Float(x) => json!(x),
        };
        config.insert(usual(name).to_owned(), value);
    }
    config.insert("is_encoder_decoder".into(), json!(spec.encoder.is_some() && spec.decoder.is_some()));
    config.insert("tie_word_embeddings".into(), json!(spec.head.is_tied()));
    let (classes, problem) = match &spec.head {
        Head::Classify(head) if head.multi_label => (Some(head.classes), Some("multi_label_classification")),
        // The library refuses `single_label_classification` with a single class, but not its absence.
        Head::Classify(head) if *head.classes == 1 => (Some(head.classes), None),
        Head::Classify(head) => (Some(head.classes), Some("single_label_classification")),
        Head::Tag(head) => (Some(head.classes), None),
        Head::Lm(_) | Head::Translate(_) | Head::Mlm(_) | Head::Span(_) | Head::Embed(_) => (None, None),
    };
    if let Some(problem) = problem {
        config.insert("problem_type".into(), json!(problem));
    }
    if let Some(classes) = classes {
        config.insert(CLASSES.into(), json!(classes.0));
    }
    config
}

fn usual(name: &str) -> &str {
    USUAL.iter().find(|(own, _)| *own == name).map_or(name, |(_, usual)| usual)
}

/// The aliases that this config needs: those whose own name it lacks, and whose other name it has.
fn aliases(sizes: &[(String, Number)]) -> Vec<(&'static str, &'static str)> {
    let has = |wanted: &str| sizes.iter().any(|(name, _)| usual(name) == wanted);
    ALIASES.iter().filter(|(alias, of)| !has(alias) && has(of)).copied().collect()
}

/// A dictionary of texts in the form of Python's formatters, in a line with this indentation in spaces.
fn dict(entries: &[(&str, &str)], indent: usize) -> String {
    if entries.is_empty() {
        return "{}".to_owned();
    }
    let space = " ".repeat(indent);
    let lines: String =
        entries.iter().map(|(key, value)| format!("{space}    \"{key}\": \"{value}\",\n")).collect();
    format!("{{\n{lines}{space}}}")
}

/// Adds what the config of another directory says about the use of the model: the names of classes and the
/// ids of special tokens.
pub fn keep(config: &mut Json, own: &Json) {
    const KEPT: &[&str] =
        &["pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "decoder_start_token_id"];
    let count = |config: &Json| config.get("id2label").and_then(Json::as_object).map(Map::len);
    // A new head may have other classes, whose names those of the body's config are not.
    let is_as_many = count(config).is_some() && count(config) == count(own);
    let names = ["id2label", "label2id"].iter().filter(|_| is_as_many);
    let Json::Object(config) = config else { return };
    for key in KEPT.iter().chain(names) {
        if let Some(value) = own.get(key).filter(|value| !value.is_null()) {
            config.insert((*key).to_owned(), value.clone());
        }
    }
}
