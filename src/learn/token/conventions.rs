//! What the classes of the library make of a model of SentencePiece: which ids its pieces have, how texts are
//! normalized and divided first, and which special tokens frame them.

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use super::languages::{LANGUAGES, MORE_LANGUAGES};
use super::merges::all_merges;
use super::renumbered::{RENUMBERED, SPACE};
use super::second::Second;
use super::sentencepiece::{Algorithm, Entry, Model, Use};
use super::subword::set;
use super::vocabulary::{Files, Mark, Step, named, template, written};

/// Each class with rules of its own, or those of the model itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// What the model itself says, without special tokens around a text.
    Own,
    /// T5 and mT5: the sentinels `<extra_id_99>` to `<extra_id_0>` come last.
    T5,
    /// Llama, Mistral and Phi-3.
    Llama,
    /// XLM-RoBERTa: ids are moved by one, as in fairseq.
    XlmRoberta,
    /// ALBERT.
    Albert,
    /// Gemma.
    Gemma,
    /// PEGASUS: 103 tokens come before the pieces.
    Pegasus,
    /// CamemBERT: XLM-RoBERTa's ids moved further, with names that nothing uses.
    Camembert,
    /// mBART: XLM-RoBERTa's ids with the languages after them, one of which follows a text.
    Mbart,
    /// mBART-50: the same with more languages, one of which is before a text.
    Mbart50,
    /// NLLB: XLM-RoBERTa's ids, and languages to which the files give ids.
    Nllb,
    /// M2M-100: the ids of the pieces are those of a `vocab.json`, and the languages come after them.
    M2m,
    /// Marian: the ids of the pieces are those of a `vocab.json`, which source and target share.
    Marian,
    /// XLNet: its special tokens are pieces, and both follow a text.
    Xlnet,
    /// DeBERTa-v2: BERT's special tokens are pieces.
    Deberta,
}

/// A vocabulary: pieces with their scores, by id.
type Pieces = Vec<(String, f32)>;

impl Convention {
    /// How the class divides texts; `None` if the model itself decides.
    fn algorithm(self) -> Option<Algorithm> {
        match self {
            // These divide texts as the model itself says, whatever its algorithm is.
            Self::Own | Self::M2m | Self::Marian => None,
            Self::Llama | Self::Gemma | Self::Nllb => Some(Algorithm::Bpe),
            Self::T5
            | Self::XlmRoberta
            | Self::Albert
            | Self::Pegasus
            | Self::Camembert
            | Self::Mbart
            | Self::Mbart50
            | Self::Xlnet
            | Self::Deberta => Some(Algorithm::Unigram),
        }
    }

    /// The parts of a `tokenizer.json` that divides texts as the class does with this model.
    ///
    /// # Errors
    /// The model does not fit the class, or the files set what is not supported: a sentence without a full
    /// stop.
    pub(super) fn tokenizer(self, model: &Model, files: &Files) -> Result<Json, String> {
        if self.algorithm().is_some_and(|own| own != model.algorithm) {
            return Err(format!(
                "its class does not divide texts with the algorithm {:?} of its model of SentencePiece",
                model.algorithm
            ));
        }
        match self {
            // Their templates follow from the settings that the others must not have.
            Self::Llama | Self::Gemma => {}
            Self::Own
            | Self::T5
            | Self::XlmRoberta
            | Self::Albert
            | Self::Pegasus
            | Self::Camembert
            | Self::Mbart
            | Self::Mbart50
            | Self::Nllb
            | Self::M2m
            | Self::Marian
            | Self::Xlnet
            | Self::Deberta => files.without_ends()?,
        }
        let marks = Marks::of(self, files);
        let second = match self.has_other_ids() {
            true => Some(self.second(model, files, &marks)?),
            false => None,
        };
        let (pieces, unknown) = match &second {
            Some(second) => (second.pieces(model), model.unknown),
            None => self.pieces(model, files, &marks)?,
        };
        let ids: IndexMap<&str, u32> = pieces.iter().map(|(text, _)| text.as_str()).zip(0u32..).collect();
        let id = |text: &str| {
            let name = second.as_ref().map_or(text, |second| second.name(text));
            ids.get(name).copied()
        };
        let size = u32::try_from(pieces.len()).map_err(|_| "it has too many pieces")?;
        let mut added = match &second {
            Some(second) => second.added(size, id)?,
            None => {
                let control = model.pieces.iter().filter(|piece| piece.used == Use::Control);
                let control = control.map(|piece| Mark::of(piece.text.as_str()));
                let special: Vec<Mark> = marks.all(self, files).into_iter().chain(control).collect();
                files.added(&special, size, id)?
            }
        };
        // The files may add the token of a language.
        let listed: IndexMap<String, u32> =
            added.as_array().into_iter().flatten().filter_map(named).collect();
        // A list of special tokens in the files takes the place of one with the model's own symbols.
        let lists = ["additional_special_tokens", "extra_special_tokens"];
        let has_list = lists.iter().any(|key| files.config.get(*key).is_some_and(|own| !own.is_null()));
        if !(self.has_other_ids() || self == Self::Nllb && has_list) {
            symbols(&mut added, model, &id);
        }
        let any_id = |text: &str| id(text).or_else(|| listed.get(text).copied());
        let mut json = json!({
            "added_tokens": added,
            "normalizer": self.normalizer(model, files, second.as_ref()),
            "pre_tokenizer": self.splitter(model, files),
            "post_processor": self.processor(files, &marks, any_id)?,
            "decoder": self.decoder(model, files),
            "model": match model.algorithm {
                Algorithm::Unigram => json!({
                    "type": "Unigram", "unk_id": unknown, "vocab": pieces,
                    "byte_fallback": model.has_bytes && self == Self::Own,
                }),
                Algorithm::Bpe => json!({
                    "type": "BPE", "unk_token": pieces.get(unknown).map(|(text, _)| text), "fuse_unk": true,
                    "byte_fallback": self != Self::Nllb, "merges": all_merges(&ids)?, "vocab": ids,
                }),
            },
        });
        if let Some(second) = &second {
            let needed = [&marks.unknown, &marks.end, &marks.pad].map(String::as_str);
            let start = (self == Self::M2m).then_some(marks.start.as_str());
            set(&mut json, RENUMBERED, second.written(needed, start, self == Self::Marian)?);
        }
        Ok(json)
    }

    /// Whether the ids of the pieces are those of another file.
    pub(super) fn has_other_ids(self) -> bool {
        matches!(self, Self::M2m | Self::Marian)
    }

    /// The tokens of a class with the ids of another file.
    fn second(self, model: &Model, files: &Files, marks: &Marks) -> Result<Second, String> {
        let languages = if self == Self::M2m { files.languages()? } else { Vec::new() };
        Second::of(model, files, marks.all(self, files), &languages)
    }

    /// The vocabulary by id, and the id for unknown text.
    fn pieces(self, model: &Model, files: &Files, marks: &Marks) -> Result<(Pieces, usize), String> {
        let from = |first: usize| {
            let piece = |piece: &Entry| (piece.text.clone(), piece.score);
            model.pieces.iter().skip(first).map(piece)
        };
        let plain = |text: &str| (text.to_owned(), 0.0);
        Ok(match self {
            // The pieces of the last two have names of their own.
            Self::Own | Self::Llama | Self::M2m | Self::Marian => (from(0).collect(), model.unknown),
            Self::Gemma => {
                let at = model.pieces.iter().position(|piece| piece.text == marks.unknown);
                (from(0).collect(), at.unwrap_or(model.unknown))
            }
            Self::T5 => {
                let count = files.config.get("extra_ids").and_then(Json::as_u64).unwrap_or(100);
                // Each is a row of the vocabulary; a damaged file could ask for any number of them.
                if count > 10_000 {
                    return Err(format!("tokenizer_config.json asks for {count} extra_ids"));
                }
                let last = (0..count).rev().map(|i| (format!("<extra_id_{i}>"), 0.0));
                // T5's models begin with padding, the end and unknown text.
                (from(0).chain(last).collect(), 2)
            }
            Self::XlmRoberta => {
                // fairseq has four special tokens first, where the model has three in another order.
                let first = [&marks.start, &marks.pad, &marks.end, &marks.unknown];
                let first = first.into_iter().map(|mark| plain(mark));
                (first.chain(from(3)).chain([plain(&marks.mask)]).collect(), 3)
            }
            Self::Mbart => {
                let first = [&marks.start, &marks.pad, &marks.end, &marks.unknown];
                let first = first.into_iter().map(|mark| plain(mark));
                let last = LANGUAGES.into_iter().chain([marks.mask.as_str()]).map(plain);
                (first.chain(from(3)).chain(last).collect(), 3)
            }
            Self::Mbart50 => {
                let first = [&marks.start, &marks.pad, &marks.end, &marks.unknown];
                let first = first.into_iter().map(|mark| plain(mark));
                // In the order in which the model was trained: the ids of all languages follow from it.
                let languages = LANGUAGES.into_iter().chain(MORE_LANGUAGES);
                let last = languages.chain([marks.mask.as_str()]).map(plain);
                (first.chain(from(3)).chain(last).collect(), 3)
            }
            Self::Nllb => {
                let first = [&marks.start, &marks.pad, &marks.end, &marks.unknown];
                // Its model contains some of the special tokens at other ids, which nothing uses.
                let others = from(0).filter(|(text, _)| !first.contains(&text));
                (first.into_iter().map(|mark| plain(mark)).chain(others).collect(), 3)
            }
            Self::Camembert => {
                let first = ["<s>NOTUSED", &marks.pad, "</s>NOTUSED", &marks.unknown].map(plain);
                // The model's own piece for unknown text must never be the best.
                let unused = ("<unk>NOTUSED".to_owned(), -100.0);
                let all = first.into_iter().chain([unused]).chain(from(1));
                (all.chain([plain(&marks.mask)]).collect(), 3)
            }
            // ALBERT's models begin with padding and unknown text.
            Self::Albert => (from(0).collect(), 1),
            Self::Xlnet => (from(0).collect(), model.unknown),
            Self::Deberta => {
                let mut pieces: Pieces = from(0).collect();
                let unknown = pieces.iter().position(|piece| *piece == plain(&marks.unknown));
                // The models that were published do not have a piece for this one.
                if pieces.iter().all(|(text, _)| *text != marks.mask) {
                    pieces.push(plain(&marks.mask));
                }
                (pieces, unknown.unwrap_or(model.unknown))
            }
            Self::Pegasus => {
                let first = ["<pad>", "</s>", "<mask_1>", "<mask_2>"].map(plain);
                // With this score a piece is never part of the best division.
                let unused = (2..103).map(|i| (format!("<unk_{i}>"), -100.0));
                // Its model begins with padding and the end, which are among the tokens before it.
                let pieces: Pieces = first.into_iter().chain(unused).chain(from(2)).collect();
                let at = pieces.iter().position(|(text, _)| *text == marks.unknown);
                (pieces, at.ok_or_else(|| format!("it has no piece `{}`", marks.unknown))?)
            }
        })
    }

    /// The part that replaces characters before anything else.
    fn normalizer(self, model: &Model, files: &Files, second: Option<&Second>) -> Json {
        let map = match model.charsmap.is_empty() {
            true => None,
            false => {
                let map = crate::draw::raster::base64(&model.charsmap);
                Some(json!({ "type": "Precompiled", "precompiled_charsmap": map }))
            }
        };
        let replaced = |from: Json, to: &str| json!({ "type": "Replace", "pattern": from, "content": to });
        let text = |text: &str| json!({ "String": text });
        let pattern = |text: &str| json!({ "Regex": text });
        let all: Vec<Json> = match self {
            Self::T5 | Self::XlmRoberta | Self::Camembert => return map.unwrap_or(Json::Null),
            Self::Llama | Self::Mbart => return Json::Null,
            Self::Nllb if map.is_none() => return Json::Null,
            Self::Mbart50 | Self::Nllb => map.into_iter().chain([replaced(pattern(" {2,}"), " ")]).collect(),
            Self::Gemma => return replaced(text(" "), SPACE),
            // The library replaces these quotation marks itself; the model does not.
            Self::Albert => {
                let mut all = vec![replaced(text("``"), "\""), replaced(text("''"), "\"")];
                if !files.flag("keep_accents", false) {
                    all.extend([json!({ "type": "NFKD" }), json!({ "type": "StripAccents" })]);
                }
                all.extend(files.flag("do_lower_case", true).then(|| json!({ "type": "Lowercase" })));
                all.into_iter().chain(map).collect()
            }
            Self::Xlnet => {
                let mut all = vec![replaced(text("``"), "\""), replaced(text("''"), "\"")];
                all.extend([json!({ "type": "NFKD" }), json!({ "type": "StripAccents" })]);
                all.extend(files.flag("do_lower_case", false).then(|| json!({ "type": "Lowercase" })));
                all.into_iter().chain(map).collect()
            }
            Self::Deberta => {
                let lower = files.flag("do_lower_case", false).then(|| json!({ "type": "Lowercase" }));
                let spaces = replaced(pattern("\\s{2,}|[\\n\\r\\t]"), " ");
                let strip = json!({ "type": "Strip", "strip_left": false, "strip_right": true });
                lower.into_iter().chain([spaces, json!({ "type": "NFC" }), strip]).collect()
            }
            Self::Pegasus => match map {
                Some(map) => vec![map, replaced(pattern(" {2,}"), " ")],
                None => vec![replaced(pattern("\\n"), " "), replaced(pattern(" {2,}"), " ")],
            },
            Self::Own | Self::M2m | Self::Marian => {
                let mut all = match second {
                    Some(second) => second.normalizers(map),
                    None => map.into_iter().collect(),
                };
                if model.removes_spaces {
                    // Spaces at the beginning become the one that is put there in any case.
                    let first = if model.has_prefix { SPACE } else { "" };
                    all.push(replaced(pattern(" +$"), ""));
                    all.extend([replaced(pattern("^ +"), first), replaced(pattern(" {2,}"), " ")]);
                } else if model.has_prefix {
                    all.push(json!({ "type": "Prepend", "prepend": SPACE }));
                }
                all.push(replaced(text(" "), SPACE));
                all
            }
        };
        json!({ "type": "Sequence", "normalizers": all })
    }

    /// The part that divides a text before pieces are found, the `pre_tokenizer`.
    fn splitter(self, model: &Model, files: &Files) -> Json {
        let spaces = |scheme: &str, split: bool| {
            json!({
                "type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split,
            })
        };
        let words = |scheme: &str| {
            let all = [json!({ "type": "WhitespaceSplit" }), spaces(scheme, true)];
            json!({ "type": "Sequence", "pretokenizers": all })
        };
        match self {
            Self::T5 | Self::Mbart | Self::Xlnet => words("always"),
            Self::Deberta => {
                let marks = json!({ "type": "Punctuation", "behavior": "Isolated" });
                let marks = files.flag("split_by_punct", false).then_some(marks);
                let all: Vec<Json> =
                    marks.into_iter().chain([spaces(files.first_or_always(), true)]).collect();
                json!({ "type": "Sequence", "pretokenizers": all })
            }
            Self::XlmRoberta | Self::Albert | Self::Camembert => {
                words(if files.flag("add_prefix_space", true) { "always" } else { "never" })
            }
            Self::Pegasus | Self::Mbart50 | Self::Nllb => spaces("always", true),
            // Each part of a text between special tokens is divided as a text of its own.
            Self::M2m | Self::Marian if model.removes_spaces && model.has_prefix => spaces("always", false),
            Self::M2m | Self::Marian => Json::Null,
            Self::Gemma => json!({
                "type": "Split", "pattern": { "String": " " }, "behavior": "MergedWithPrevious",
                "invert": false,
            }),
            Self::Llama => spaces(files.scheme(), false),
            Self::Own if model.removes_spaces && model.has_prefix => spaces("first", false),
            Self::Own => Json::Null,
        }
    }

    /// The template that puts special tokens around a text.
    fn processor(
        self,
        files: &Files,
        marks: &Marks,
        id: impl Fn(&str) -> Option<u32>,
    ) -> Result<Json, String> {
        let (start, end) = (marks.start.as_str(), marks.end.as_str());
        let (first, second) = (Step::Text("A", 0), Step::Text("B", 0));
        match self {
            Self::Own => Ok(Json::Null),
            Self::Llama | Self::Gemma => Ok(files.ends(start, end, id)?.unwrap_or(Json::Null)),
            Self::T5 => {
                let end = Step::Mark(end, 0);
                template(&[first, end], &[first, end, second, end], id)
            }
            Self::Pegasus => {
                let end = Step::Mark(end, 0);
                template(&[first, end], &[first, second, end], id)
            }
            Self::Mbart => {
                let language = files.source_language("en_XX");
                let (end, language) = (Step::Mark(end, 0), Step::Mark(&language, 0));
                template(&[first, end, language], &[first, second, end, language], id)
            }
            Self::Mbart50 | Self::M2m => {
                let language = if matches!(self, Self::M2m) {
                    format!("__{}__", files.source_language("en"))
                } else {
                    files.source_language("en_XX")
                };
                let (end, language) = (Step::Mark(end, 0), Step::Mark(&language, 0));
                template(&[language, first, end], &[language, first, second, end], id)
            }
            Self::Nllb => {
                let language = files.source_language("eng_Latn");
                if id(&language).is_none() {
                    return Err(format!(
                        "its files do not give an id to the language `{language}`: `added_tokens_decoder` in \
                        tokenizer_config.json lists the languages with their ids"
                    ));
                }
                let (end, language) = (Step::Mark(end, 0), Step::Mark(&language, 0));
                match files.flag("legacy_behaviour", false) {
                    true => template(&[first, end, language], &[first, second, end, language], id),
                    false => template(&[language, first, end], &[language, first, second, end], id),
                }
            }
            Self::Marian => {
                let end = Step::Mark(end, 0);
                template(&[first, end], &[first, second, end], id)
            }
            Self::Xlnet => {
                // The names of the two are those of a sequence's start and end in the other classes.
                // XLNet's class token has a token type of its own, the third one.
                let (class, end) = (Step::Mark(start, 2), Step::Mark(end, 0));
                let last = [Step::Text("B", 1), Step::Mark(marks.end.as_str(), 1), class];
                template(&[first, end, class], &[&[first, end], &last[..]].concat(), id)
            }
            Self::XlmRoberta | Self::Camembert => {
                let (start, end) = (Step::Mark(start, 0), Step::Mark(end, 0));
                template(&[start, first, end], &[start, first, end, end, second, end], id)
            }
            Self::Albert | Self::Deberta => {
                let (start, last) = (Step::Mark(start, 0), Step::Mark(end, 0));
                let second = [Step::Text("B", 1), Step::Mark(end, 1)];
                let single = [start, first, last];
                let pair: Vec<Step<'_>> = single.iter().chain(&second).copied().collect();
                template(&single, &pair, id)
            }
        }
    }

    /// The part that makes a text of tokens again.
    fn decoder(self, model: &Model, files: &Files) -> Json {
        let spaces = |scheme: &str| {
            json!({
                "type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": true,
            })
        };
        let has_prefix = match self {
            Self::T5 | Self::Pegasus | Self::Mbart | Self::Mbart50 | Self::Nllb | Self::Xlnet => {
                return spaces("always");
            }
            // Tokens are decoded by the names of their other ids.
            Self::M2m | Self::Marian => return Json::Null,
            Self::Deberta => return spaces(files.first_or_always()),
            Self::XlmRoberta | Self::Albert | Self::Camembert => {
                return spaces(if files.flag("add_prefix_space", true) { "always" } else { "never" });
            }
            Self::Own => model.has_prefix,
            Self::Llama => files.flag("add_prefix_space", true),
            Self::Gemma => false,
        };
        let mut all = vec![
            json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " }),
            json!({ "type": "ByteFallback" }),
            json!({ "type": "Fuse" }),
        ];
        // The space that was put before a text is not part of it.
        all.extend(has_prefix.then(|| json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 })));
        json!({ "type": "Sequence", "decoders": all })
    }
}

/// The special tokens of a class by their roles, as its files name them.
struct Marks {
    start: String,
    end: String,
    pad: String,
    unknown: String,
    mask: String,
}

/// The keys of special tokens in the library's files.
const KEYS: &[&str] =
    &["bos_token", "eos_token", "unk_token", "pad_token", "cls_token", "sep_token", "mask_token"];

impl Marks {
    fn of(convention: Convention, files: &Files) -> Self {
        let (keys, [start, end, pad, unknown, mask]) = match convention {
            Convention::Albert => {
                (("cls_token", "sep_token"), ["[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"])
            }
            Convention::Deberta => {
                (("cls_token", "sep_token"), ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"])
            }
            Convention::Xlnet => (("cls_token", "sep_token"), ["<cls>", "<sep>", "<pad>", "<unk>", "<mask>"]),
            Convention::Gemma => (("bos_token", "eos_token"), ["<bos>", "<eos>", "<pad>", "<unk>", "<mask>"]),
            Convention::Pegasus => {
                (("bos_token", "eos_token"), ["<s>", "</s>", "<pad>", "<unk>", "<mask_2>"])
            }
            Convention::Own
            | Convention::T5
            | Convention::Llama
            | Convention::XlmRoberta
            | Convention::Camembert
            | Convention::Mbart
            | Convention::Mbart50
            | Convention::Nllb
            | Convention::M2m
            | Convention::Marian => (("bos_token", "eos_token"), ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]),
        };
        Self {
            start: files.special_token(keys.0, start),
            end: files.special_token(keys.1, end),
            pad: files.special_token("pad_token", pad),
            unknown: files.special_token("unk_token", unknown),
            mask: files.special_token("mask_token", mask),
        }
    }

    /// All of them, and those that only the files name.
    fn all(&self, convention: Convention, files: &Files) -> Vec<Mark> {
        let keyed = |key: &str, usual: &String| files.mark(key, usual);
        let fewer = || {
            vec![
                keyed("eos_token", &self.end),
                keyed("unk_token", &self.unknown),
                keyed("pad_token", &self.pad),
            ]
        };
        if convention == Convention::Marian {
            return fewer();
        }
        if convention == Convention::M2m {
            let more = [keyed("bos_token", &self.start), keyed("sep_token", &self.end)];
            return fewer().into_iter().chain(more).collect();
        }
        let mut usual =
            [&self.start, &self.end, &self.unknown, &self.pad, &self.start, &self.end, &self.mask];
        let (start, end) = ("<s>".to_owned(), "</s>".to_owned());
        if convention == Convention::Xlnet {
            // A sequence has other special tokens than a text that is written.
            [usual[0], usual[1]] = [&start, &end];
        }
        let mut all: Vec<Mark> = KEYS.iter().zip(usual).map(|(key, usual)| files.mark(key, usual)).collect();
        let takes_spaces = [Convention::Camembert, Convention::Mbart, Convention::Mbart50, Convention::Xlnet];
        if takes_spaces.contains(&convention) {
            all = all.into_iter().map(|mark| mark.taking_spaces_before(&self.mask)).collect();
        }
        if convention == Convention::Mbart {
            all.extend(LANGUAGES.map(Mark::of));
        }
        if convention == Convention::Mbart50 {
            all.extend(LANGUAGES.into_iter().chain(MORE_LANGUAGES).map(Mark::of));
        }
        // T5's sentinels, as far as the vocabulary has them.
        all.extend((0..100).map(|i| Mark::of(format!("<extra_id_{i}>"))));
        all
    }
}

/// Adds the pieces that are never divided or joined with others, unless they are special tokens.
fn symbols(added: &mut Json, model: &Model, id: &impl Fn(&str) -> Option<u32>) {
    let Some(added) = added.as_array_mut() else { return };
    for piece in model.pieces.iter().filter(|piece| piece.used == Use::Symbol) {
        if let Some(id) = id(&piece.text)
            && !added.iter().any(|token| token["id"] == id)
        {
            added.push(written(id, &piece.text, false, &Json::Null, false));
        }
    }
    // The crate gives tokens that the model lacks the next free ids, one after the other.
    added.sort_by_key(|token| token["id"].as_u64());
}
