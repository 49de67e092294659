//! The files that describe the tokenizer of a Hugging Face model without a `tokenizer.json`, and what they
//! say about special tokens.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::subword::set;

/// The files of a directory, as texts.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// `vocab.txt`: a token on each line.
    pub words: Option<String>,
    /// `vocab.json`: tokens with their ids.
    pub ids: Option<String>,
    /// `merges.txt`: a pair of tokens on each line.
    pub merges: Option<String>,
    /// The bytes of a model of SentencePiece, which is used if there is neither of the vocabularies above.
    pub pieces: Option<Vec<u8>>,
    /// `tokenizer_config.json`; null if there is none.
    pub config: Json,
    /// `special_tokens_map.json`; null if there is none.
    pub special: Json,
    /// `added_tokens.json`: more tokens with their ids; null if there is none.
    pub more: Json,
    /// The `model_type` of the model's config, by which the library chooses the class if no file names one.
    pub model: String,
}

/// A special token of the class of tokenizers.
pub(super) struct Mark {
    /// Its text, by which the vocabulary finds its id.
    pub text: String,
    /// What a file says about it, such as whether spaces next to it belong to it; null if no file
    /// says anything.
    own: Json,
}

impl Mark {
    /// A special token of which no file says anything.
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), own: Json::Null }
    }

    /// It is found in a text as it is written there.
    pub fn found_as_written(mut self) -> Self {
        set(&mut self.own, "normalized", json!(false));
        self
    }

    /// If it is the token with this text, and no file says otherwise, spaces before it belong to it.
    pub fn taking_spaces_before(self, text: &str) -> Self {
        match self.text == text && self.own.is_null() {
            // The library's classes create their mask token in this way: like a word, it includes the space
            // before it.
            true => Self { own: json!({ "lstrip": true, "normalized": false }), ..self },
            false => self,
        }
    }
}

/// A token that files add to those of the class.
pub(super) struct AddedMark {
    /// Its text, and what the files say about it.
    pub mark: Mark,
    /// Whether it is left out where tokens become text.
    pub is_special: bool,
    /// The id that a file gives it, if one does.
    pub id: Option<u64>,
}

/// A step of a template: a special token, or the first or second text; and its token type.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    /// A special token.
    Mark(&'a str, u32),
    /// The text `A` or `B`.
    Text(&'a str, u32),
}

/// The template that frames one text, and two.
///
/// # Errors
/// The vocabulary does not have one of the special tokens.
pub(super) fn template(
    single: &[Step<'_>],
    pair: &[Step<'_>],
    id: impl Fn(&str) -> Option<u32>,
) -> Result<Json, String> {
    let mut marks = serde_json::Map::new();
    let mut written = |steps: &[Step<'_>]| -> Result<Json, String> {
        let step = |step: &Step<'_>| match step {
            Step::Text(name, which) => Ok(json!({ "Sequence": { "id": name, "type_id": which } })),
            Step::Mark(name, which) => {
                let id =
                    id(name).ok_or_else(|| format!("its vocabulary does not have the token `{name}`"))?;
                let own = json!({ "id": name, "ids": [id], "tokens": [name] });
                marks.insert((*name).to_owned(), own);
                Ok(json!({ "SpecialToken": { "id": name, "type_id": which } }))
            }
        };
        steps.iter().map(step).collect()
    };
    let (single, pair) = (written(single)?, written(pair)?);
    Ok(json!({ "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": marks }))
}

impl Files {
    /// Refuses the settings that put special tokens around a text, which the class does not have.
    ///
    /// # Errors
    /// One of them is set.
    pub(super) fn without_ends(&self) -> Result<(), String> {
        for key in ["add_bos_token", "add_eos_token"] {
            if self.config.get(key).is_some_and(|own| own != &Json::Bool(false) && !own.is_null()) {
                return Err(format!(
                    "tokenizer_config.json sets `{key}`, which is read from a tokenizer.json alone"
                ));
            }
        }
        Ok(())
    }

    /// The template of the classes whose special tokens around a text are settings; `None` if there are none.
    ///
    /// # Errors
    /// The vocabulary does not have them.
    pub(super) fn ends(
        &self,
        start: &str,
        end: &str,
        id: impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<Json>, String> {
        let (has_start, has_end) = (self.flag("add_bos_token", false), self.flag("add_eos_token", false));
        if !has_start && !has_end {
            return Ok(None);
        }
        let around = |text: &'static str, which: u32| {
            let start = has_start.then_some(Step::Mark(start, which));
            let end = has_end.then_some(Step::Mark(end, which));
            start.into_iter().chain([Step::Text(text, which)]).chain(end)
        };
        let single: Vec<Step<'_>> = around("A", 0).collect();
        let pair: Vec<Step<'_>> = around("A", 0).chain(around("B", 1)).collect();
        template(&single, &pair, id).map(Some)
    }

    /// Whether the words of `vocab.txt` have capitals, which texts then do not have, because the class removes
    /// them unless `do_lower_case` says otherwise, and no file does.
    pub fn has_unused_capitals(&self) -> bool {
        let Some(words) = self.words.as_ref().filter(|_| self.config.get("do_lower_case").is_none()) else {
            return false;
        };
        let (mut all, mut capital) = (0usize, 0usize);
        // Special tokens are in brackets.
        for word in words.lines().filter(|word| !word.starts_with('[')) {
            all = all.saturating_add(1);
            capital = capital.saturating_add(usize::from(word.chars().any(char::is_uppercase)));
        }
        // A vocabulary of lower case may have a few, such as names of special tokens; another has a third.
        capital.saturating_mul(100) > all
    }

    /// What a file says of a special token: its text, or more than that.
    fn named(&self, key: &str) -> Option<&Json> {
        // The library reads the older file only where the newer one does not list the tokens.
        let older = match self.config.get("added_tokens_decoder") {
            Some(_) => None,
            None => self.special.get(key),
        };
        older.or_else(|| self.config.get(key)).filter(|own| !own.is_null())
    }

    /// The special token under a key of the files, with what they say about it; `usual` is its text if they
    /// do not name it.
    pub(super) fn mark(&self, key: &str, usual: &str) -> Mark {
        let own = self.named(key);
        let text = own.and_then(|own| own.as_str().or_else(|| own.get("content")?.as_str()));
        let mut more = own.filter(|own| own.is_object()).cloned().unwrap_or(Json::Null);
        // A special token of the class is always found in the text as it was written.
        set(&mut more, "normalized", json!(false));
        Mark { text: text.unwrap_or(usual).to_owned(), own: more }
    }

    /// The text of a special token, as [`Self::mark`] finds it.
    pub(super) fn special_token(&self, key: &str, usual: &str) -> String {
        self.mark(key, usual).text
    }

    /// A setting of `tokenizer_config.json`; `usual` if it is absent or not a truth value.
    pub(super) fn flag(&self, key: &str, usual: bool) -> bool {
        self.config.get(key).and_then(Json::as_bool).unwrap_or(usual)
    }

    /// Where DeBERTa's tokenizer puts a space before a text.
    pub(super) fn first_or_always(&self) -> &'static str {
        if self.flag("add_prefix_space", true) { "always" } else { "first" }
    }

    /// Where Llama's tokenizer puts a space before a text.
    pub(super) fn scheme(&self) -> &'static str {
        // With `legacy`, a space is put before every part between special tokens, and not only before the
        // first.
        match (self.flag("add_prefix_space", true), self.flag("legacy", false)) {
            (false, _) => "never",
            (true, true) => "always",
            (true, false) => "first",
        }
    }

    /// The tokens that the files add, by the ids that they give them: each with what they say about it, and
    /// whether it is special.
    fn more_tokens(&self) -> Result<BTreeMap<u64, (String, Json, bool)>, String> {
        let is_special = |text: &str| {
            // The library reads lists of the older name only from the newer file.
            let older = self.special.as_object().into_iter().flatten();
            let older = older.filter(|(key, _)| *key != "additional_special_tokens");
            let named = older.chain(self.config.as_object().into_iter().flatten());
            named.filter(|(key, _)| key.ends_with("_token") || key.ends_with("_special_tokens")).any(
                |(_, own)| {
                    let is = |own: &Json| own.as_str().or_else(|| own["content"].as_str()) == Some(text);
                    is(own) || own.as_array().is_some_and(|all| all.iter().any(is))
                },
            )
        };
        let mut more: BTreeMap<u64, (String, Json, bool)> = BTreeMap::new();
        if let Some(newer) = self.config.get("added_tokens_decoder").and_then(Json::as_object) {
            for (id, token) in newer {
                let (Ok(id), Some(text)) = (id.parse(), token["content"].as_str()) else {
                    return Err(
                        "tokenizer_config.json has an `added_tokens_decoder` that is not a table from \
                                ids to tokens"
                            .to_owned(),
                    );
                };
                let special = token["special"].as_bool().unwrap_or(false);
                more.insert(id, (text.to_owned(), token.clone(), special));
            }
        } else {
            for (text, id) in self.more.as_object().into_iter().flatten() {
                let Some(id) = id.as_u64() else {
                    return Err(format!("added_tokens.json gives `{text}` an id that is not a number"));
                };
                more.insert(id, (text.clone(), Json::Null, is_special(text)));
            }
        }
        Ok(more)
    }

    /// The tokens that the files add to those of the class, in the order in which the library does.
    ///
    /// # Errors
    /// A file that gives ids is damaged.
    pub(super) fn more_marks(&self) -> Result<Vec<AddedMark>, String> {
        let mut all: Vec<AddedMark> = self
            .more_tokens()?
            .into_iter()
            .map(|(id, (text, own, _))| AddedMark {
                mark: Mark { text, own },
                is_special: false,
                id: Some(id),
            })
            .collect();
        for key in ["additional_special_tokens", "extra_special_tokens"] {
            for token in self.named(key).and_then(Json::as_array).into_iter().flatten() {
                let Some(text) = token.as_str().or_else(|| token["content"].as_str()) else { continue };
                match all.iter_mut().find(|other| other.mark.text == text) {
                    // The library leaves out the tokens of these lists, and no others that files add.
                    Some(other) => other.is_special = true,
                    None => {
                        let own = if token.is_object() { token.clone() } else { Json::Null };
                        let mark = Mark { text: text.to_owned(), own };
                        all.push(AddedMark { mark, is_special: true, id: None });
                    }
                }
            }
        }
        Ok(all)
    }

    /// Special tokens and others that are never divided: those of the class as far as the vocabulary has
    /// them, and those that the files add. `size` is the number of ids of the vocabulary alone.
    ///
    /// # Errors
    /// The files give a token another id than the library would.
    pub(super) fn added(
        &self,
        marks: &[Mark],
        size: u32,
        id: impl Fn(&str) -> Option<u32>,
    ) -> Result<Json, String> {
        let mut all: BTreeMap<u32, Json> = BTreeMap::new();
        for mark in marks {
            if let Some(id) = id(&mark.text) {
                let own = written(id, &mark.text, true, &mark.own, false);
                // Several keys may name one token, and the first of them decides.
                all.entry(id).or_insert(own);
            }
        }
        let more = self.more_tokens()?;
        let mut next = size;
        for (given, (text, own, special)) in more {
            // The library gives a token that the vocabulary does not have the next free id.
            let own_id = id(&text).unwrap_or(next);
            // With other ids a model would read other tokens than it was trained with, and give no error.
            if u64::from(own_id) != given {
                return Err(format!(
                    "the files give the token `{text}` the id {given}, and the library would give it {own_id}"
                ));
            }
            next = next.max(own_id.saturating_add(1));
            // Replaces what was said of a token of the class, because the files know better.
            all.insert(own_id, written(own_id, &text, special, &own, !special));
        }
        Ok(all.into_values().collect())
    }
}

/// A token as `tokenizer.json` lists it. What `own` does not say is as usual.
pub(super) fn written(id: u32, text: &str, special: bool, own: &Json, normalized: bool) -> Json {
    let flag = |key: &str, usual: bool| own[key].as_bool().unwrap_or(usual);
    json!({
        "id": id, "content": text, "single_word": flag("single_word", false), "lstrip": flag("lstrip", false),
        "rstrip": flag("rstrip", false), "normalized": flag("normalized", normalized), "special": special,
    })
}

/// The text and the id of an added token.
pub(super) fn named(token: &Json) -> Option<(String, u32)> {
    let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok())?;
    Some((token["content"].as_str()?.to_owned(), id))
}
