//! The tokenizer of a Hugging Face model whose directory has a vocabulary and no `tokenizer.json`: the
//! `tokenizer.json` that the library would make of it, by the class of tokenizers that it would use.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::conventions::Convention;
use super::sentencepiece::Model;
use super::subword::{Subword, bert_normalizer, bpe, set, whole};
use super::vocabulary::{Files, Mark, Step, template};

/// The classes of the library that read such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Bert,
    Gpt2,
    Roberta,
    Gpt1,
    Pieces(Convention),
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
    (Class::Pieces(Convention::T5), &["T5Tokenizer"], &["t5", "mt5"]),
    (
        Class::Pieces(Convention::Llama),
        &["LlamaTokenizer", "Phi3Tokenizer"],
        &["llama", "mistral", "mixtral", "phi3"],
    ),
    (Class::Pieces(Convention::XlmRoberta), &["XLMRobertaTokenizer"], &["xlm-roberta"]),
    (Class::Pieces(Convention::Albert), &["AlbertTokenizer"], &["albert"]),
    (Class::Pieces(Convention::Gemma), &["GemmaTokenizer"], &["gemma", "gemma2", "gemma3", "gemma3_text"]),
    (Class::Pieces(Convention::Pegasus), &["PegasusTokenizer"], &["pegasus"]),
    (Class::Pieces(Convention::Camembert), &["CamembertTokenizer"], &["camembert"]),
    (Class::Pieces(Convention::Mbart), &["MBartTokenizer"], &["mbart"]),
    (Class::Pieces(Convention::Mbart50), &["MBart50Tokenizer"], &["mbart50"]),
    (Class::Pieces(Convention::Nllb), &["NllbTokenizer"], &["nllb", "nllb-moe"]),
    (Class::Pieces(Convention::M2m), &["M2M100Tokenizer"], &["m2m_100"]),
    (Class::Pieces(Convention::Marian), &["MarianTokenizer"], &["marian"]),
    (Class::Pieces(Convention::Xlnet), &["XLNetTokenizer"], &["xlnet"]),
    (Class::Pieces(Convention::Deberta), &["DebertaV2Tokenizer"], &["deberta-v2"]),
];

impl Files {
    /// The tokenizer, or what of the files is not supported: a sentence without a full stop.
    ///
    /// # Errors
    /// The class is not one of those that are known, or a file is not what it must be.
    pub fn tokenizer(&self) -> Result<Subword, String> {
        let class = self.class()?;
        let json = match class {
            Class::Bert => self.wordpiece()?,
            Class::Gpt2 | Class::Gpt1 | Class::Roberta => self.pairs(class)?,
            Class::Pieces(convention) => {
                let Some(bytes) = &self.pieces else {
                    return Err("its class needs a model of SentencePiece, which is missing".to_owned());
                };
                convention.tokenizer(&Model::read(bytes)?, self)?
            }
        };
        Subword::from_json(&whole(json).to_string())
    }

    /// The class that the files name, or that of the model. It must read the kind of vocabulary that there
    /// is.
    fn class(&self) -> Result<Class, String> {
        let given = self.config.get("tokenizer_class").and_then(Json::as_str);
        // Newer versions of the library write a class that says nothing about the rules.
        let given = given
            // The library has each class twice, in Python and in Rust, with the same rules.
            .map(|name| name.trim_end_matches("Fast"))
            .filter(|name| !matches!(*name, "PreTrainedTokenizer" | "TokenizersBackend"));
        let found = CLASSES.iter().find(|(_, names, models)| match given {
            Some(name) => names.contains(&name),
            None => models.contains(&self.model.as_str()),
        });
        let has_pieces = self.words.is_none() && self.ids.is_none();
        match (found, given) {
            (Some((class, ..)), _) => match (class, has_pieces) {
                // These need both files: a model that divides, and a vocabulary that gives ids.
                (Class::Pieces(convention), _) if convention.has_other_ids() => Ok(*class),
                (Class::Pieces(_), true) => Ok(*class),
                (Class::Pieces(_), false) => {
                    Err("its class needs a SentencePiece model, but there is another vocabulary".to_owned())
                }
                (_, true) => Err("its class does not read a model of SentencePiece".to_owned()),
                (_, false) => Ok(*class),
            },
            (None, Some(name)) => Err(format!("the rules of the class `{name}` are not known")),
            // Without a class, the model of SentencePiece itself says enough to divide a text.
            (None, None) if has_pieces => Ok(Class::Pieces(Convention::Own)),
            (None, None) => Err(format!("the rules of the model type `{}` are not known", self.model)),
        }
    }

    /// WordPiece as in BERT (Devlin et al. 2018). The id of a token is the number of its line, counted from
    /// 0.
    fn wordpiece(&self) -> Result<Json, String> {
        let Some(words) = &self.words else { return Err("there is no vocab.txt".to_owned()) };
        // A token that is there twice has the id of its last line, as in the library.
        let lines = words.strip_suffix('\n').unwrap_or(words).split('\n').zip(0u32..);
        let ids: BTreeMap<String, u32> =
            lines.map(|(line, id)| (line.strip_suffix('\r').unwrap_or(line).to_owned(), id)).collect();
        self.without_ends()?;
        let marks = [
            ("unk_token", "[UNK]"),
            ("cls_token", "[CLS]"),
            ("sep_token", "[SEP]"),
            ("pad_token", "[PAD]"),
            ("mask_token", "[MASK]"),
        ]
        .map(|(key, usual)| self.mark(key, usual));
        let [unknown, start, end, ..] = &marks;
        // The template and the model need these three; padding and the mask may be missing.
        for mark in [unknown, start, end] {
            if !ids.contains_key(&mark.text) {
                return Err(format!("vocab.txt does not have the token `{}`", mark.text));
            }
        }
        let mut normalizer = bert_normalizer(self.flag("do_lower_case", true));
        set(&mut normalizer, "handle_chinese_chars", json!(self.flag("tokenize_chinese_chars", true)));
        set(
            &mut normalizer,
            "strip_accents",
            self.config.get("strip_accents").cloned().unwrap_or(Json::Null),
        );
        let id = |text: &str| ids.get(text).copied();
        let (first, last) = (start.text.as_str(), end.text.as_str());
        let single = [Step::Mark(first, 0), Step::Text("A", 0), Step::Mark(last, 0)];
        let second = [Step::Text("B", 1), Step::Mark(last, 1)];
        let pair: Vec<Step<'_>> = single.iter().chain(&second).copied().collect();
        Ok(json!({
            "added_tokens": self.added(&marks, count(&ids), id)?,
            "normalizer": normalizer,
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "post_processor": template(&single, &pair, id)?,
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": unknown.text, "continuing_subword_prefix": "##",
                       "max_input_chars_per_word": 100, "vocab": ids },
        }))
    }

    /// Byte pair encoding as in GPT-1, GPT-2 or RoBERTa.
    fn pairs(&self, class: Class) -> Result<Json, String> {
        let (Some(encoder), Some(merges)) = (&self.ids, &self.merges) else {
            return Err(
                "a vocab.json and a merges.txt belong together, but one of them is missing".to_owned()
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
            Class::Gpt2 | Class::Bert | Class::Pieces(_) => &[
                ("bos_token", "<|endoftext|>"),
                ("eos_token", "<|endoftext|>"),
                ("unk_token", "<|endoftext|>"),
                // These tokenizers have no token for padding unless a file names one.
                ("pad_token", ""),
            ],
        };
        let id = |text: &str| ids.get(text).copied();
        let named: Vec<Mark> = marks.iter().map(|(key, usual)| self.mark(key, usual)).collect();
        set(&mut json, "added_tokens", self.added(&named, count(&ids), id)?);
        // Of these classes only GPT-2's reads the settings that put its tokens around a text.
        if class == Class::Gpt2 {
            let (start, end) = (
                self.special_token("bos_token", "<|endoftext|>"),
                self.special_token("eos_token", "<|endoftext|>"),
            );
            if let Some(ends) = self.ends(&start, &end, id)? {
                set(&mut json, "post_processor", ends);
            }
        } else {
            self.without_ends()?;
        }
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

fn count(ids: &BTreeMap<String, u32>) -> u32 {
    u32::try_from(ids.len()).unwrap_or(u32::MAX)
}
