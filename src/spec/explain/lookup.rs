//! The topics that a word or a path names; of one that names none, what is misspelled in it, and what there is where it leads.

use std::collections::BTreeSet;

use super::topic::{Item, Sort, Topic};
use crate::diag::suggest::{difference, suggest};
use crate::spec::kind::PartKind;
use crate::spec::library;

/// The topics among these that a word or a dotted path names; see [`find`](super::find).
pub fn find_in(word: &str, all: Vec<Topic>) -> Vec<Topic> {
    let found = named(word, all.clone());
    if !found.is_empty() || !word.contains('.') {
        return found;
    }
    // A slot and a record that several keys have are described once, so that the path through another key is none of
    // the table: `decoder.final_norm.rms_norm.eps` is described below `norm`.
    let wanted = segments(word);
    let splits = (1..wanted.len().saturating_sub(1)).filter_map(|at| wanted.split_at_checked(at));
    let below = splits.filter(|(above, below)| {
        let holds = |topic: &Topic| topic.items.iter().any(|item| below.first() == Some(&item.name));
        named(&above.join("."), all.clone()).iter().any(holds)
    });
    below
        .map(|(_, below)| named(&below.join("."), all.clone()))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// The topics that a word names, or a path as the tables have it.
fn named(word: &str, all: Vec<Topic>) -> Vec<Topic> {
    let mut wanted = segments(word);
    // The fields of a part of the library are on its page.
    if let [.., part, field] = wanted.as_slice()
        && fields(part).contains(&field.as_str())
    {
        wanted.pop();
    }
    let Some(last) = wanted.last() else { return Vec::new() };
    let mut found: Vec<Topic> = all
        .into_iter()
        .filter(|t| match t.sort {
            Sort::Slot | Sort::Part | Sort::Key => {
                t.chain.last() == Some(last) && is_within(&wanted, &t.chain)
            }
            Sort::Word | Sort::Wiring | Sort::Function | Sort::Call | Sort::Subject => {
                wanted.len() == 1 && t.name == *last
            }
        })
        .collect();
    // A complete path names one topic, even if other paths have the same end.
    if word.contains('.')
        && let Some(exact) = found.iter().position(|t| t.path == word && t.sort == Sort::Key)
    {
        return vec![found.swap_remove(exact)];
    }
    found.sort_by_key(|t| (t.sort, t.chain.len()));
    // The parts of a slot are listed once, and not again for each key that holds one.
    if found.iter().any(|t| t.sort == Sort::Slot) {
        let slots: Vec<Vec<Item>> =
            found.iter().filter(|t| t.sort == Sort::Slot).map(|t| t.items.clone()).collect();
        for topic in found.iter_mut().filter(|t| t.sort == Sort::Key && slots.contains(&t.items)) {
            topic.items.clear();
            topic.takes =
                topic.takes.as_ref().map(|takes| takes.replace("the parts below", "the parts above"));
        }
    }
    // And so are the words that several keys take, as `activation` of each part does.
    let mut listed: Vec<Vec<Item>> = Vec::new();
    for topic in found.iter_mut().filter(|t| t.sort == Sort::Key) {
        let Some(takes) = topic.takes.as_mut().filter(|takes| takes.contains("the words below")) else {
            continue;
        };
        if listed.contains(&topic.items) {
            topic.items.clear();
            *takes = takes.replace("the words below", "the words above");
        } else {
            listed.push(topic.items.clone());
        }
    }
    found
}

/// The word among these that is most similar to one that names no topic.
pub fn nearest_in(word: &str, all: &[Topic]) -> Option<String> {
    let last = segments(word).pop()?;
    let names: BTreeSet<&str> = all.iter().map(|t| t.name.as_str()).collect();
    let plural =
        [format!("{last}s"), format!("{last}es")].into_iter().find(|name| names.contains(name.as_str()));
    // Of a path of words that do not belong together, the last one.
    let known = || (word.contains('.') && names.contains(last.as_str())).then(|| last.clone());
    plural.or_else(known).or_else(|| suggest(&last, &names.into_iter().collect::<Vec<_>>()))
}

/// The most words of a path in which misspelled ones are looked for.
const MOST_WORDS: usize = 8;

/// For a path with misspelled words, or with another library's words for ours: the path that was meant.
pub fn repaired(word: &str, all: &[Topic]) -> Option<String> {
    let wanted = segments(word);
    if !(2..=MOST_WORDS).contains(&wanted.len()) {
        return None;
    }
    let names: BTreeSet<&str> = all.iter().flat_map(|topic| topic.chain.iter()).map(String::as_str).collect();
    // Both stacks have the same keys, which are described under `decoder`.
    let stack = |first: &String| match first.as_str() {
        "encoder" | "decoder" => first.clone(),
        other => suggest(other, &["decoder", "encoder"]).unwrap_or_default(),
    };
    let is_in_encoder = wanted.first().map(stack).as_deref() == Some("encoder");
    let near = |written: &String| -> BTreeSet<String> {
        let is_near = |name: &&&str| **name == written || suggest(written, &[**name]).is_some();
        names.iter().filter(is_near).map(|name| (*name).to_owned()).collect()
    };
    let own = |written: &String| {
        if names.contains(written.as_str()) { BTreeSet::from([written.clone()]) } else { near(written) }
    };
    let is_path = |topic: &&Topic| matches!(topic.sort, Sort::Slot | Sort::Part | Sort::Key);
    let best = |meant: &[BTreeSet<String>]| {
        let found = all.iter().filter(is_path).filter_map(|topic| {
            let mut chain = topic.chain.iter().map(String::as_str);
            let is_one = |name: &str, means: &BTreeSet<String>| {
                means.contains(name) || name == "decoder" && means.contains("encoder")
            };
            let words: Option<Vec<&str>> =
                meant.iter().map(|means| chain.find(|name| is_one(name, means))).collect();
            let words = words.filter(|_| chain.next().is_none())?;
            let in_stack = |word| if word == "decoder" && is_in_encoder { "encoder" } else { word };
            let words: Vec<&str> = words.into_iter().map(in_stack).collect();
            let pairs = || words.iter().zip(&wanted);
            let changed = pairs().filter(|(word, written)| *word != written).count();
            let far = pairs().map(|(word, written)| difference(written, word)).fold(0, usize::saturating_add);
            Some((changed, far, topic.chain.len(), words.join(".")))
        });
        found.min().map(|(_, _, _, path)| path)
    };
    // A word that is one of ours means itself, unless no path has it there.
    let all_own: Vec<BTreeSet<String>> = wanted.iter().map(own).collect();
    best(&all_own).or_else(|| best(&wanted.iter().map(near).collect::<Vec<_>>()))
}

/// For a path that leads nowhere, the longest part of its beginning that is a topic, or that was meant for one.
pub fn beginning(path: &str, all: &[Topic]) -> Option<String> {
    let (above, _) = path.rsplit_once('.').filter(|(above, _)| above.split('.').count() < MOST_WORDS)?;
    if !find_in(above, all.to_vec()).is_empty() {
        return Some(above.to_owned());
    }
    let meant =
        || repaired(above, all).or_else(|| if above.contains('.') { None } else { nearest_in(above, all) });
    // Below a number or a word nothing can be meant.
    let is_above = |topic: &Topic| {
        let below = format!("{}.", topic.path);
        all.iter().any(|other| other.path.starts_with(&below))
    };
    let has_keys = |meant: &String| find_in(meant, all.to_vec()).iter().any(is_above);
    meant().filter(has_keys).or_else(|| beginning(above, all))
}

/// For a path of which only the last segment is unknown: the path of the key or the part that was found, with the names of the
/// keys below it.
pub fn keys_below(path: &str, all: &[Topic]) -> Option<(String, Vec<String>)> {
    let (parent, _) = path.rsplit_once('.')?;
    let mut found = find_in(parent, all.to_vec());
    // Of `embed` rather the key at the top than the head of that name.
    found.sort_by_key(|topic| topic.chain.len());
    found.into_iter().find_map(|topic| {
        let below = format!("{}.", topic.path);
        let names = all.iter().filter(|t| t.sort == Sort::Key).filter_map(|t| t.path.strip_prefix(&below));
        let mut names: Vec<String> = names.filter(|name| !name.contains('.')).map(str::to_owned).collect();
        if topic.sort == Sort::Part {
            names.extend(fields(&topic.name).iter().map(|name| (*name).to_owned()));
        }
        (!names.is_empty()).then_some((topic.path, names))
    })
}

/// The fields of a part of the library.
fn fields(part: &str) -> Vec<&'static str> {
    let part = library::all().iter().find(|own| own.name == part);
    part.into_iter().flat_map(|own| &own.fields).map(|field| field.name.as_str()).collect()
}

/// The segments of a path as the tables know them: `decoder.blocks.local.attention1.mask` is
/// `decoder.attention.mask`.
fn segments(word: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut parts = word.split('.').peekable();
    while let Some(part) = parts.next() {
        // What is below them is of the author, and no key.
        if out.is_empty() && matches!(part, "parts" | "let" | "weights" | "uses") {
            out.push(part.to_owned());
            break;
        }
        // What follows is a name or a range of the author, and below it are the keys of a block, or of a spec.
        if matches!(part, "blocks" | "ranges") || part == "sweep" && out.is_empty() {
            let name = parts.next();
            if parts.peek().is_none() {
                // What a sweep may have in the place of a name has a page of its own.
                let is_grid = part == "sweep" && name == Some("grid");
                out.push(if is_grid { "grid" } else { part }.to_owned());
            }
            continue;
        }
        let kind = PartKind::from_word(part.trim_end_matches(|c: char| c.is_ascii_digit()));
        let is_call = kind.is_some_and(|k| k.word() != part);
        let part = match kind {
            Some(kind) if is_call => kind.word(),
            Some(_) | None => part,
        };
        out.push(part.to_owned());
    }
    out
}

/// Whether the words occur in the chain in this order.
fn is_within(words: &[String], chain: &[String]) -> bool {
    let mut rest = chain.iter();
    // Keys that both stacks have are described once, under `decoder`.
    words.iter().all(|w| rest.any(|c| c == w || (w == "encoder" && c == "decoder")))
}
