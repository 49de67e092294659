//! What the name in a slot means if no part of the slot has it.

use super::context::Context;
use super::definition::Definitions;
use super::elsewhere::Elsewhere;
use super::value::{DefaultDoc, SlotDoc};
use crate::diag::foreign::{foreign_among, in_slot, meanings};
use crate::diag::suggest::{another_name, suggest};
use crate::diag::{ideas, notes, terms};
use crate::syntax::tree::Node;

/// The part that was probably meant by a name. In a slot whose fields may be given without a part's name, a
/// name that is more similar to such a field means none, and neither does a part of which the value, if there is one,
/// has no field.
pub fn meant_part(name: &str, value: Option<&Node>, slot: &SlotDoc, cx: &Context<'_>) -> Option<String> {
    let own = cx.definitions();
    let all_own = if slot.takes_own { own.made_for(slot.name) } else { Vec::new() };
    let keys: Vec<&str> =
        value.and_then(Node::entries).unwrap_or(&[]).iter().map(|e| e.key.as_str()).collect();
    let fits = |part: &&str| keys.is_empty() || has_field(part, &keys, slot, own);
    let parts: Vec<&str> = slot.parts.iter().map(|p| p.name).chain(all_own).filter(fits).collect();
    let fields = slot.parts.iter().filter(|p| Some(p.name) == slot.implied).flat_map(|p| (p.fields)());
    // With the fields among the candidates, `hedas` is near `heads` and not taken for a part.
    let all: Vec<&str> = parts.iter().copied().chain(fields.map(|f| f.name)).collect();
    let another = || {
        in_slot(name, slot.name).skip(1).find_map(|word| {
            let part = parts.iter().find(|part| **part == word).map(|part| (*part).to_owned());
            part.or_else(|| another_name(&word, &parts))
        })
    };
    // What is known by this name is no slip of the fingers: `linear` of an attention means no `bilinear`.
    let is_known =
        || known_elsewhere(name, value, slot, cx).is_some_and(|known| !matches!(known, Known::Word(_)));
    let near = another_name(name, &all).or_else(another);
    let near = near.or_else(|| suggest(name, &all).filter(|_| !is_known()))?;
    parts.contains(&near.as_str()).then_some(near)
}

/// Whether a part has one of these keys, even misspelled, as its field or in its equation. A part with an error, of which
/// the fields are not known, may have it.
fn has_field(part: &str, keys: &[&str], slot: &SlotDoc, own: &Definitions) -> bool {
    let is_one = |fields: &[&str], key: &str| fields.contains(&key) || suggest(key, fields).is_some();
    if let Some(doc) = slot.parts.iter().find(|p| p.name == part) {
        let fields: Vec<&str> = (doc.fields)().iter().map(|f| f.name).collect();
        return keys.iter().any(|key| is_one(&fields, key));
    }
    let Some(definition) = own.get(part) else { return true };
    let fields: Vec<&str> = definition.fields.iter().map(|f| f.name.as_str()).collect();
    // The calls of an equation are keys, too.
    let text = definition.lines().join("\n");
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    keys.iter().any(|key| is_one(&fields, key) || words.contains(key))
}

/// What is known of a word that has no meaning where it was met.
pub enum Known {
    /// Why there is no part for it.
    None(String),
    /// What to write.
    Said(String),
    /// What it is in another place, which a slip of the fingers may be as well.
    Word(String),
}

impl Known {
    /// What is known, as a sentence of help.
    pub fn text(self) -> String {
        match self {
            Known::None(text) | Known::Said(text) | Known::Word(text) => text,
        }
    }
}

/// What is known of a name that no part of a slot has, and of what is given with it: it makes a value of a field of the slot's
/// implied part, or what [`known_word`] says.
pub fn known_elsewhere(name: &str, value: Option<&Node>, slot: &SlotDoc, cx: &Context<'_>) -> Option<Known> {
    let note = || notes::note(slot.name, name);
    let said = note().or_else(|| makes_field(name, value, slot)).map(Known::Said);
    said.or_else(|| known_word(name, slot.name, cx))
}

/// What is known of a word that has no meaning where it was met, in a slot or as the value of a key: what other tools mean
/// by it there, that it is an idea outside of the language, what it is in another place, another library's word for that, or
/// a term.
pub fn known_word(name: &str, place: &str, cx: &Context<'_>) -> Option<Known> {
    let note = || notes::note(place, name).map(Known::Said);
    let outside = || ideas::within(name, place, ideas::Met::Value).map(Known::None);
    let of_library = |word: &str| {
        let says = format!("a part that an equation calls, as in `x = x + {word}(norm(x))`");
        cx.definitions().has(word).then_some(Elsewhere { slot: None, says })
    };
    let of_another = |word: &str| cx.elsewhere(word).filter(|one| one.slot != Some(place));
    let own = |one: Elsewhere| format!("`{name}` is {}", one.says);
    let is_part = |one: &Elsewhere| one.slot.is_some();
    let of_slot = || of_another(name).filter(is_part).or_else(|| of_library(name)).map(own).map(Known::None);
    // What the words mean together is surer than what one of them means.
    let words: Vec<String> = in_slot(name, place).collect();
    let theirs = || {
        let mut meant = words.iter().skip(1).chain(words.first()).flat_map(|word| meanings(word));
        let ours = meant.find(|ours| !ORDINARY.contains(ours) && *ours != place && *ours != name)?;
        Some(match of_another(ours) {
            Some(one) => format!("trafoc calls this `{ours}`, {}", one.says),
            None => format!("trafoc calls this `{ours}`; `trafoc explain {ours}` says where it belongs"),
        })
    };
    let term = || {
        let word = words.iter().find(|word| terms::term(word).is_some())?;
        Some(format!("`trafoc explain {word}` says what it is here"))
    };
    let said = note().or_else(outside).or_else(of_slot).or_else(|| theirs().map(Known::Said));
    said.or_else(|| of_another(name).map(own).map(Known::Word)).or_else(|| term().map(Known::Said))
}

/// What is known of a word that none of a key's words is: that it is an idea outside of the language, or what it is in another
/// place. That a slot has a part of this name says nothing about it.
pub fn word_elsewhere(word: &str, cx: &Context<'_>) -> Option<String> {
    let own = || cx.elsewhere(word).filter(|one| one.slot.is_none());
    ideas::outside(word, ideas::Met::Value).or_else(|| Some(format!("`{word}` is {}", own()?.says)))
}

/// Words of trafoc that say too little to name what belongs elsewhere.
const ORDINARY: [&str; 2] = ["none", "bidirectional"];

/// For a name that another library gives a part because of a field of the slot's implied part, or of a value of such a field:
/// how that is written.
fn makes_field(name: &str, value: Option<&Node>, slot: &SlotDoc) -> Option<String> {
    let implied = slot.parts.iter().find(|p| Some(p.name) == slot.implied)?;
    let fields = (implied.fields)();
    let names: Vec<&str> = fields.iter().map(|f| f.name).collect();
    if let Some(field) = in_slot(name, slot.name).find_map(|word| foreign_among(&word, &names)) {
        let given = value.and_then(Node::entries).unwrap_or(&[]);
        let needed = fields.iter().filter(|f| matches!(f.default, DefaultDoc::Required) || f.name == field);
        let missing = needed.filter(|f| given.iter().all(|e| e.key != f.name));
        let missing = missing.map(|f| format!("{}: ...", f.name));
        let given = given.iter().map(|e| format!("{}: {}", e.key, e.value.text().unwrap_or("...")));
        let all: Vec<String> = missing.chain(given).collect();
        return Some(format!(
            "`{field}` is what makes it one: without a name for it, write `{{{}}}`",
            all.join(", ")
        ));
    }
    if name == "none" {
        return None;
    }
    in_slot(name, slot.name).find_map(|word| {
        fields.iter().find_map(|field| {
            let values = (field.shape)().words();
            let known = |ours: &str| values.iter().find(|(value, _)| *value == ours);
            let (value, has_fields) = known(&word).or_else(|| meanings(&word).find_map(known))?;
            let written = if *has_fields { format!("{{{value}: ...}}") } else { (*value).to_owned() };
            Some(format!("it is a value of `{0}`: write `{{{0}: {written}}}`", field.name))
        })
    })
}
