//! The tokenizer of a Hugging Face model whose directory has a vocabulary and no `tokenizer.json`: the
//! `tokenizer.json` that the library would make of it, by the class of tokenizers that it would use.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::subword::{Subword, added, bert_normalizer, bpe, set, whole};

/// The files of a directory, as texts.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// `vocab.txt`: a token on each line.
    pub words: Option<String>,
    /// `vocab.json`: tokens with their ids.
    pub ids: Option<String>,
    /// `merges.txt`: a pair of tokens on each line.
    pub merges: Option<String>,
    /// `tokenizer_config.json`; null if there is none.
    pub config: Json,
    /// `special_tokens_map.json`; null if there is none.
    pub special: Json,
    /// The `model_type` of the model's config, by which the library chooses the class if no file names one.
    pub model: String,
}

/// The classes of the library that read such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Bert,
    Gpt2,
    Roberta,
    Gpt1,
}

/// Each class with its names and the models whose tokenizer it is.
const CLASSES: &[(Class, &[&str], &[&str])] = &[
    (
        Class::Bert,
        &["BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"],
        &["bert", "distilbert", "electra"],
    ),
    (Class::Gpt2, &["GPT2Tokenizer", "CodeGenTokenizer"], &["gpt2", "gpt_neo", "gptj", "codegen"]),
    (Class::Roberta, &["RobertaTokenizer", "BartTokenizer"], &["roberta", "bart"]),
    (Class::Gpt1, &["OpenAIGPTTokenizer"], &["openai-gpt"]),
];

/// Settings of `tokenizer_config.json` that change ids in a way that is not supported, unless they have this
/// value.
const ONLY: &[(&str, Json)] = &[("add_bos_token", Json::Bool(false)), ("add_eos_token", Json::Bool(false))];

impl Files {
    /// The tokenizer, or what of the files is not supported: a sentence without a full stop.
    ///
    /// # Errors
    /// The class is not one of those that are known, or a file is not what it must be.
    pub fn tokenizer(&self) -> Result<Subword, String> {
        let class = self.class()?;
        for (key, value) in ONLY {
            if self.config.get(*key).is_some_and(|own| own != value && !own.is_null()) {
                return Err(format!(
                    "tokenizer_config.json sets `{key}`, which is read from a tokenizer.json alone"
                ));
            }
        }
        let json = match class {
            Class::Bert => self.wordpiece()?,
            Class::Gpt2 | Class::Gpt1 | Class::Roberta => self.pairs(class)?,
        };
        Subword::from_json(&whole(json).to_string())
    }

    fn class(&self) -> Result<Class, String> {
        let given = self.config.get("tokenizer_class").and_then(Json::as_str);
        // Newer versions of the library write a class that says nothing about the rules.
        let given =
            given.map(|name| name.trim_end_matches("Fast")).filter(|name| *name != "PreTrainedTokenizer");
        let found = CLASSES.iter().find(|(_, names, models)| match given {
            Some(name) => names.contains(&name),
            None => models.contains(&self.model.as_str()),
        });
        match (found, given) {
            (Some((class, ..)), _) => Ok(*class),
            (None, Some(name)) => Err(format!("the rules of the class `{name}` are not known")),
            (None, None) => Err(format!("the rules of the model type `{}` are not known", self.model)),
        }
    }

    /// The content of a special token.
    fn special_token(&self, key: &str, usual: &str) -> String {
        let text = |json: &Json| {
            let own = json.get(key)?;
            own.as_str().or_else(|| own.get("content")?.as_str()).map(str::to_owned)
        };
        text(&self.config).or_else(|| text(&self.special)).unwrap_or_else(|| usual.to_owned())
    }

    fn flag(&self, key: &str, usual: bool) -> bool {
        self.config.get(key).and_then(Json::as_bool).unwrap_or(usual)
    }

    /// Special tokens and others that are never divided: those of the class, and those that the config adds.
    fn added(&self, marks: &[&str], ids: &BTreeMap<String, u32>) -> Json {
        let known: Vec<&str> = marks.iter().copied().filter(|mark| ids.contains_key(*mark)).collect();
        let mut all = added(&known, |mark| ids.get(mark).copied().unwrap_or(0));
        let more = self.config.get("added_tokens_decoder").and_then(Json::as_object);
        for (id, token) in more.into_iter().flatten() {
            let (Ok(id), Some(content)) = (id.parse::<u32>(), token["content"].as_str()) else { continue };
            let flag = |key: &str| token[key].as_bool().unwrap_or(false);
            let own = json!({
                "id": id, "content": content, "single_word": flag("single_word"), "lstrip": flag("lstrip"),
                "rstrip": flag("rstrip"), "normalized": flag("normalized"), "special": flag("special"),
            });
            if let Some(all) = all.as_array_mut() {
                all.retain(|other| other["content"] != own["content"]);
                all.push(own);
            }
        }
        if let Some(all) = all.as_array_mut() {
            all.sort_by_key(|token| token["id"].as_u64());
        }
        all
    }

    /// WordPiece as in BERT (Devlin et al. 2018). The id of a token is the number of its line, counted from
    /// 0.
    fn wordpiece(&self) -> Result<Json, String> {
        let Some(words) = &self.words else { return Err("there is no vocab.txt".to_owned()) };
        let lines = words.strip_suffix('\n').unwrap_or(words).split('\n').zip(0u32..);
        let ids: BTreeMap<String, u32> =
            lines.map(|(line, id)| (line.strip_suffix('\r').unwrap_or(line).to_owned(), id)).collect();
        let [unknown, start, end, pad, mask] = [
            ("unk_token", "[UNK]"),
            ("cls_token", "[CLS]"),
            ("sep_token", "[SEP]"),
            ("pad_token", "[PAD]"),
            ("mask_token", "[MASK]"),
        ]
        .map(|(key, usual)| self.special_token(key, usual));
        for mark in [&unknown, &start, &end] {
            if !ids.contains_key(mark) {
                return Err(format!("vocab.txt does not have the token `{mark}`"));
            }
        }
        let mut normalizer = bert_normalizer(self.flag("do_lower_case", true));
        set(&mut normalizer, "handle_chinese_chars", json!(self.flag("tokenize_chinese_chars", true)));
        set(
            &mut normalizer,
            "strip_accents",
            self.config.get("strip_accents").cloned().unwrap_or(Json::Null),
        );
        let special = |mark: &str| json!({ "id": mark, "ids": [ids.get(mark)], "tokens": [mark] });
        let mark = |mark: &str, which: u32| json!({ "SpecialToken": { "id": mark, "type_id": which } });
        let text = |name: &str, which: u32| json!({ "Sequence": { "id": name, "type_id": which } });
        Ok(json!({
            "added_tokens": self.added(&[&unknown, &end, &pad, &start, &mask], &ids),
            "normalizer": normalizer,
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [mark(&start, 0), text("A", 0), mark(&end, 0)],
                "pair": [mark(&start, 0), text("A", 0), mark(&end, 0), text("B", 1), mark(&end, 1)],
                "special_tokens": { (start.as_str()): special(&start), (end.as_str()): special(&end) },
            },
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": ids },
        }))
    }

    /// Byte pair encoding as in GPT-1, GPT-2 or RoBERTa.
    fn pairs(&self, class: Class) -> Result<Json, String> {
        let (Some(encoder), Some(merges)) = (&self.ids, &self.merges) else {
            return Err(
                "a vocab.json and a merges.txt belong together, and one of them is missing".to_owned()
            );
        };
        let ids: BTreeMap<String, u32> =
            serde_json::from_str(encoder).map_err(|error| format!("vocab.json: {error}"))?;
        let prefix = self.flag("add_prefix_space", false);
        let mut json = bpe(encoder, merges, prefix)?;
        let marks: &[(&str, &str)] = match class {
            Class::Roberta => &[
                ("bos_token", "<s>"),
                ("pad_token", "<pad>"),
                ("eos_token", "</s>"),
                ("unk_token", "<unk>"),
                ("mask_token", "<mask>"),
            ],
            Class::Gpt1 => &[("unk_token", "<unk>")],
            Class::Gpt2 | Class::Bert => &[
                ("bos_token", "<|endoftext|>"),
                ("eos_token", "<|endoftext|>"),
                ("unk_token", "<|endoftext|>"),
                // These tokenizers have no token for padding unless a file names one.
                ("pad_token", ""),
            ],
        };
        let mut names: Vec<String> =
            marks.iter().map(|(key, usual)| self.special_token(key, usual)).collect();
        names.sort();
        names.dedup();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        set(&mut json, "added_tokens", self.added(&names, &ids));
        if class == Class::Roberta {
            let (start, end) =
                (self.special_token("cls_token", "<s>"), self.special_token("sep_token", "</s>"));
            let (Some(first), Some(last)) = (ids.get(&start), ids.get(&end)) else {
                return Err(format!("vocab.json does not have the tokens `{start}` and `{end}`"));
            };
            let processor = json!({
                "type": "RobertaProcessing", "sep": [end, last], "cls": [start, first],
                "trim_offsets": self.flag("trim_offsets", true), "add_prefix_space": prefix,
            });
            set(&mut json, "post_processor", processor);
        }
        Ok(json)
    }
}
