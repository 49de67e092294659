//! What a word of specs is, for one that was written in another place than its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::explain::{Sort, catalogue};
use super::kind::PartKind;
use super::slot_of;
use crate::field::elsewhere::Elsewhere;
use crate::field::value::{DefaultDoc, SlotDoc};
use crate::field::words::listed;
use crate::parts::own::vocabulary;

/// Slots whose parts are written otherwise than as the value of a key of the same name: how, with `PART` for the part.
const WRITTEN: &[(&str, &str)] = &[
    ("distribution", "init: PART"),
    ("mask", "attention: {mask: PART}"),
    ("scaling", "position: {rotary: {scaling: PART}}"),
];

/// Keys with words that are written in the map of another key: how, with `WORD` for the word.
const WORDS_WRITTEN: &[(&str, &str)] = &[("activation", "ffn: {activation: WORD}")];

/// The most maps that are said to have a key.
const MOST_OWNERS: usize = 3;

/// The words of one kind in the tables of specs.
fn names(sort: Sort) -> BTreeSet<String> {
    catalogue().into_iter().filter(|topic| topic.sort == sort).map(|topic| topic.name).collect()
}

static WIRINGS: LazyLock<BTreeSet<String>> = LazyLock::new(|| names(Sort::Wiring));
/// The keys of specs, each with the slots and parts that have it.
static KEYS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let implied: Vec<&str> =
        PartKind::ALL.iter().filter_map(|kind| kind.slot()).filter_map(|slot| slot.implied).collect();
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for topic in catalogue().into_iter().filter(|topic| topic.sort == Sort::Key) {
        // The name of a part that is implied may be left out.
        let mut above = topic.path.rsplit('.').skip(1).filter(|name| !implied.contains(name));
        let above = above.next().map(str::to_owned);
        keys.entry(topic.name).or_default().extend(above);
    }
    keys
});
/// The words that keys take, each with these keys.
static WORDS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for topic in catalogue().into_iter().filter(|topic| topic.sort == Sort::Word) {
        words.entry(topic.name).or_default().extend(topic.path.rsplit('.').next().map(str::to_owned));
    }
    words
});

/// The only one of some names.
fn alone(names: &BTreeSet<String>) -> Option<&String> {
    names.first().filter(|_| names.len() == 1)
}

/// What a word is, as far as it is one of specs that has its place: a part of the only slot that has it, a call of an
/// equation, a wiring or a key.
pub fn elsewhere(word: &str) -> Option<Elsewhere> {
    if let Some(kind) = PartKind::from_word(word) {
        let call = match kind {
            PartKind::Cross => "cross(norm(x), memory)".to_owned(),
            PartKind::Norm => "attention(norm(x))".to_owned(),
            PartKind::Gain => "gain(attention(norm(x)))".to_owned(),
            PartKind::Attention | PartKind::Ffn | PartKind::Own => format!("{word}(norm(x))"),
        };
        let says = format!("a call of a block's equation, as in `x = x + {call}`");
        return Some(Elsewhere { slot: None, says });
    }
    // `linear` is rather the layer than the scaling of rotary positions.
    let is_layer = vocabulary::word(word).is_some()
        && vocabulary::activation(word).is_none()
        && PartKind::with_value(word).is_none();
    if let Some(slot) = slot_of(word).filter(|_| !is_layer) {
        let says = format!("a part of the slot `{}`: write `{}`", slot.name, written(word, &slot));
        return Some(Elsewhere { slot: Some(slot.name), says });
    }
    let says = if WIRINGS.contains(word) {
        format!("a wiring: write `block: {word}`")
    } else if let Some(above) = KEYS.get(word) {
        let above: Vec<&str> = above.iter().map(String::as_str).collect();
        let of = if (1..=MOST_OWNERS).contains(&above.len()) {
            format!(" of {}", listed(&above))
        } else {
            String::new()
        };
        format!("a key{of}; `trafoc explain {word}` shows it")
    } else if is_layer {
        format!("a call in a part of your own; `trafoc explain {word}` shows one")
    } else if let Some(key) = WORDS.get(word).and_then(alone) {
        let written = match WORDS_WRITTEN.iter().find(|(name, _)| name == key) {
            Some((_, how)) => how.replace("WORD", word),
            None => format!("{key}: {word}"),
        };
        format!("a value of `{key}`: write `{written}`")
    } else {
        return None;
    };
    Some(Elsewhere { slot: None, says })
}

/// How a part of a slot is written in a spec.
fn written(part: &str, slot: &SlotDoc) -> String {
    let fields = slot.parts.iter().filter(|doc| doc.name == part).flat_map(|doc| (doc.fields)());
    let needs_some = fields.into_iter().any(|field| matches!(field.default, DefaultDoc::Required));
    let part = if needs_some { format!("{{{part}: {{...}}}}") } else { part.to_owned() };
    match WRITTEN.iter().find(|(name, _)| *name == slot.name) {
        Some((_, how)) => how.replace("PART", &part),
        None => format!("{}: {part}", slot.name),
    }
}
