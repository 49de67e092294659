//! A directory of the library sentence-transformers: a body, and files that say which vector is made of its
//! positions.
//!
//! `modules.json` lists what a text passes through: `Transformer`, which is the directory itself, `Pooling` with a
//! `config.json` in a folder of its own, and perhaps `Normalize`. A module with weights of its own, such as
//! `Dense`, cannot be read, because a spec reads its weights from one place.

use std::path::{Component, Path, PathBuf};

use serde_json::Value as Json;

use crate::field::record::entry;
use crate::read::{self, limit};
use crate::syntax::tree::Node;

/// The file that makes a directory one of that library.
const MODULES: &str = "modules.json";
/// The file of a prompt that the library puts before every text.
const PROMPTS: &str = "config_sentence_transformers.json";
/// The file of the longest text, which the library calls after the kind of its body.
const LENGTHS: &[&str] = &[
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
];

/// The ways of pooling, each with the key that was used before there was one for all, and with the word of a
/// spec if it has one.
const POOLS: &[(&str, &str, Option<&str>)] = &[
    ("cls", "pooling_mode_cls_token", Some("cls")),
    ("mean", "pooling_mode_mean_tokens", Some("mean")),
    ("max", "pooling_mode_max_tokens", Some("max")),
    ("lasttoken", "pooling_mode_lasttoken", Some("last")),
    ("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", None),
    ("weightedmean", "pooling_mode_weightedmean_tokens", None),
];

/// The head that gives such a directory's vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pooled {
    /// The word of a spec for how positions are pooled.
    pub pool: &'static str,
    /// Whether vectors are scaled to unit length.
    pub normalize: bool,
}

impl Pooled {
    /// A spec with this head in place of its own.
    pub fn on(self, tree: &Node) -> Node {
        let span = tree.span;
        let map = |entries: &[(&str, Node)]| {
            let entry = |(key, value): &(&str, Node)| entry(key, value.clone());
            Node::map(entries.iter().map(entry).collect(), span)
        };
        let fields = map(&[
            ("pool", Node::plain(self.pool, span)),
            ("normalize", Node::plain(self.normalize.to_string(), span)),
        ]);
        let own = tree.entries().unwrap_or_default().iter().filter(|entry| entry.key != "head").cloned();
        Node::map(own.chain([entry("head", map(&[("embed", fields)]))]).collect(), span)
    }
}

/// What such a directory says in addition to its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// How the body's positions become one vector.
    pub pooled: Pooled,
    /// The most tokens of a text, if a file says so.
    pub longest: Option<usize>,
    /// What the library puts before every text, if a file says so.
    pub prompt: Option<String>,
}

/// The files that make a directory one of that library, relative to it, whether or not a spec can say what they
/// do: in the order of their names, and none for another directory.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(Some(Json::Array(modules))) = json(folder, Path::new(MODULES)) else { return Vec::new() };
    let usual = [MODULES, PROMPTS].into_iter().chain(LENGTHS.iter().copied()).map(PathBuf::from);
    let own = modules.iter().filter_map(|module| module.get("path")?.as_str()).map(Path::new);
    let inner = own.filter(|own| own.components().next().is_some() && is_inside(own)).flat_map(|own| {
        let all = std::fs::read_dir(folder.join(own)).into_iter().flatten().flatten();
        all.map(|entry| own.join(entry.file_name())).collect::<Vec<_>>()
    });
    let mut found: Vec<PathBuf> = usual.chain(inner).filter(|name| folder.join(name).is_file()).collect();
    found.sort();
    found.dedup();
    found
}

/// Whether a path leads to no other place than one inside of the directory that it is relative to.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// A file of JSON in the directory; `None` if there is none.
fn json(folder: &Path, name: &Path) -> Result<Option<Json>, String> {
    let path = folder.join(name);
    if !read::is_there(&path) {
        return Ok(None);
    }
    let failed = |why: String| format!("cannot use `{}`: {why}", path.display());
    let bytes = read::bounded(&path, limit::CODEBOOK).map_err(|e| failed(e.to_string()))?;
    read::json(&bytes).map(Some).map_err(failed)
}

/// The way of pooling that a `Pooling` module has: one, of which a spec can say what it is.
fn pool(config: &Json) -> Result<&'static str, String> {
    let named: Vec<&str> = match config.get("pooling_mode") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).collect(),
        _ => {
            // A key that is missing has the library's default.
            let is_on = |word: &str, key: &str| match config.get(key) {
                Some(value) => value.as_bool() == Some(true),
                None => word == "mean",
            };
            POOLS.iter().filter(|(word, key, _)| is_on(word, key)).map(|(word, ..)| *word).collect()
        }
    };
    let known = || {
        let known: Vec<&str> =
            POOLS.iter().filter(|(.., own)| own.is_some()).map(|(word, ..)| *word).collect();
        known.join(", ")
    };
    match named.as_slice() {
        [one] => POOLS
            .iter()
            .find(|(word, ..)| word == one)
            .and_then(|(.., own)| *own)
            .ok_or_else(|| format!("it pools by `{one}`, but only {} are supported", known())),
        [] => Err(format!("it names no way of pooling, such as {}", known())),
        several => Err(format!(
            "it concatenates the vectors of several ways of pooling ({}), but a head has one",
            several.join(", ")
        )),
    }
}

impl Sentence {
    /// What a directory says; `None` if it is not one of that library.
    ///
    /// # Errors
    /// A file cannot be read, or says what no spec can: one sentence without a full stop.
    pub fn of(folder: &Path) -> Result<Option<Self>, String> {
        let Some(modules) = json(folder, Path::new(MODULES))? else { return Ok(None) };
        let own = folder.join(MODULES);
        let odd = |why: String| format!("`{}` {why}", own.display());
        let modules = modules.as_array().ok_or_else(|| odd("is no list of modules".to_owned()))?;
        let text =
            |module: &Json, key: &str| module.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        // The last word of a path of Python: other versions of the library have it in other packages.
        let kind = |module: &Json| text(module, "type").rsplit('.').next().unwrap_or_default().to_owned();
        let kinds: Vec<String> = modules.iter().map(kind).collect();
        let normalize = match kinds.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["Transformer", "Pooling"] => false,
            ["Transformer", "Pooling", "Normalize"] => true,
            _ => {
                return Err(odd(format!(
                    "lists the modules {}, and only Transformer and Pooling, perhaps with Normalize, can be read",
                    kinds.join(", ")
                )));
            }
        };
        let places: Vec<String> = modules.iter().map(|module| text(module, "path")).collect();
        let (body, pooling) = match places.as_slice() {
            [body, pooling, ..] => (body.as_str(), Path::new(pooling).join("config.json")),
            [] | [_] => return Err(odd("is too short".to_owned())),
        };
        if !matches!(body, "" | ".") {
            return Err(odd(format!("has its body in `{body}`, which is a model's directory of its own")));
        }
        // No file outside of the directory is opened, whatever another file says.
        if !is_inside(&pooling) {
            return Err(odd("names a folder that is not in the directory".to_owned()));
        }
        let missing = || odd(format!("needs `{}`, which is missing", pooling.display()));
        let config = json(folder, &pooling)?.ok_or_else(missing)?;
        let pool = pool(&config)
            .map_err(|why| format!("cannot use `{}`: {why}", folder.join(&pooling).display()))?;
        let mut longest = None;
        for name in LENGTHS {
            let Some(own) = json(folder, Path::new(name))? else { continue };
            if own.get("do_lower_case").and_then(Json::as_bool) == Some(true) {
                return Err(format!(
                    "`{}` sets `do_lower_case`, which is not supported: a tokenizer itself can do it",
                    folder.join(name).display()
                ));
            }
            longest = longest
                .or(own.get("max_seq_length").and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok()));
        }
        let mut prompt = None;
        if let Some(prompts) = json(folder, Path::new(PROMPTS))? {
            let name = prompts.get("default_prompt_name").and_then(Json::as_str);
            let own = name.and_then(|name| prompts.get("prompts")?.get(name)?.as_str());
            prompt = own.filter(|own| !own.is_empty()).map(str::to_owned);
        }
        Ok(Some(Self { pooled: Pooled { pool, normalize }, longest, prompt }))
    }
}
