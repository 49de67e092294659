//! Reports misspelled keys and parts with what was probably meant, and corrects them in the tree, so that
//! nothing else is reported that only follows from the misspelling.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::context::Context;
use super::indexed::without_brackets;
use super::mend_part::{mended_part, nested};
use super::missing::{in_its_place, the_missing};
use super::seek::{Destination, Found, Parts, Search, destination, has_one_place, names_below};
use super::taken::Taken;
use super::value::{Field, Shape};
use super::words::{is_no_number, listed, titled};
use crate::diag::foreign::{foreign, foreign_among, is_same, meanings};
use crate::diag::suggest::{likely, suggest};
use crate::diag::{Certainty, Code, Diagnostic, Fix, ideas, notes};
use crate::syntax::merge::are_alternatives;
use crate::syntax::set::{argument_at, as_typed};
use crate::syntax::tree::{Entry, Kind, Node};

/// Reports every key of a map that is neither a field nor one of `more`, and returns the map without them. A
/// key that was probably misspelled becomes the field it was meant for, and one that belongs further down is
/// moved there, so that nothing else is reported about it.
pub fn mended<'n>(
    node: &'n Node,
    title: &str,
    fields: &[Field],
    more: &[String],
    cx: &mut Context<'_>,
) -> Cow<'n, Node> {
    let Kind::Map(entries) = &node.kind else { return Cow::Borrowed(node) };
    let mut names: Vec<&str> = fields.iter().map(|f| f.name).collect();
    names.extend(more.iter().map(String::as_str).filter(|name| fields.iter().all(|f| f.name != *name)));
    let known = |key: &str| names.contains(&key);
    // The usual case, in which nothing is copied.
    if entries.iter().all(|e| known(&e.key)) {
        return Cow::Borrowed(node);
    }
    let mut kept: Vec<Entry> = entries.iter().filter(|e| known(&e.key)).cloned().collect();
    if cx.is_again() {
        for e in entries.iter().filter(|e| !known(&e.key)) {
            let message = format!("{} has no key `{}`", titled(title), e.key);
            cx.report(Diagnostic::error(Code::UnknownKey, e.key_span, message));
        }
        return Cow::Owned(Node::map(kept, node.span));
    }
    // Searches take time: only for a key that some field or part has is its place looked for.
    let somewhere = names_below(fields);
    // A misplaced key belongs more probably to a map that the author has written than to one that is missing.
    let (given, other): (Vec<Field>, Vec<Field>) = fields.iter().partition(|f| node.get(f.name).is_some());
    let unknown = entries.iter().filter(|e| !known(&e.key));
    // Nor in a trial, where each would be looked for again: it compares two documents that both have it.
    let has_slips = !cx.is_trial() && unknown.clone().count() <= MOST_SLIPS;
    let is_only = unknown.clone().count() == 1;
    let mut moves = Vec::new();
    let all =
        if names.is_empty() { "it has no fields".to_owned() } else { format!("it has {}", listed(&names)) };
    let mut names_of = Names { all: Some(&all), below: &somewhere, has_slips };
    for e in unknown {
        // To look for what was meant takes time, and nothing more would be reported.
        if cx.is_full() {
            break;
        }
        if let Some((written, text)) = assigned(e)
            && let Some(key) =
                if known(written) { Some(written.to_owned()) } else { suggest(written, &names) }
            && kept.iter().all(|k| k.key != key)
        {
            let message = format!("{} has no key `{}`", titled(title), e.key);
            let diagnostic = Diagnostic::error(Code::UnknownKey, e.key_span, message);
            let diagnostic = diagnostic.help(format!("write `{key}: {text}`"));
            let fix = Fix::Assign { key: key.clone(), value: text.to_owned() };
            // A name that is misspelled as well needs another look.
            cx.report(if written == key { diagnostic.fix(fix) } else { diagnostic });
            kept.push(Entry { key, key_span: e.key_span, value: Node::plain(text, e.key_span) });
            continue;
        }
        // A name that exists deeper down is not misspelled.
        // Whether a field takes a map can be told, and of words and numbers many fields take any.
        let value = Some(&e.value).filter(|value| value.text().is_none());
        let search = Search { key: &e.key, value, above: &[] };
        let is_somewhere = somewhere.contains(e.key.as_str());
        let is_deeper = is_somewhere
            && (search.below(&other, node, 1, Parts::Any).next().is_some()
                || (1..=3).any(|depth| search.below(&given, node, depth, Parts::Any).next().is_some()));
        // Unless another library calls a key of this very map so: `iterations` of a recipe are its `steps`.
        let is_theirs = |near: &String| foreign_among(&e.key, &names).is_some() && node.get(near).is_none();
        let meant = meant(e, (node, title), &names, cx)
            .filter(|near| !is_deeper || is_theirs(near))
            .filter(|near| is_taken(e, near, node, cx));
        let missing =
            if meant.is_none() && !is_deeper && is_only { the_missing(e, fields, node, cx) } else { None };
        let (mut diagnostic, places) =
            unknown_key(e, title, node, (&given, &other), names_of, meant.as_deref(), cx);
        // The list of all keys is the same for every key of this map.
        let is_listed = diagnostic.help.contains(&all);
        if is_listed {
            names_of.all = None;
        }
        // Few fields take a word or a map, but many a number, which may be meant for one elsewhere.
        let is_number = e.value.text().is_some_and(|text| text.parse::<f64>().is_ok());
        let missing = missing.filter(|_| places.is_empty() && (is_listed || !is_number));
        if let Some(key) = missing {
            diagnostic.help = vec![format!("did you mean `{key}`, which is missing?")];
            diagnostic.fix = Some(Box::new(Fix::Guess { from: e.key.clone(), to: key.to_owned() }));
        }
        let meant = meant.or(missing.map(str::to_owned));
        cx.report(diagnostic);
        if meant.is_none()
            && let Some(one) = in_its_place(e, fields, &kept)
        {
            cx.doubt(e.value.span);
            kept.push(one);
        }
        if let Some(key) = meant {
            cx.doubt(e.value.span);
            // The right name would have replaced its alternative in the map over which this one was laid.
            let is_beside = |k: &Entry| node.span.contains(k.key_span) && node.span.contains(e.key_span);
            kept.retain(|k| !are_alternatives(&k.key, &key) || is_beside(k));
            let there = kept.iter().find(|k| k.key == key);
            if there.is_none() {
                kept.push(Entry { key, ..e.clone() });
            } else if !there.is_some_and(|k| node.span.contains(k.key_span)) {
                // What a variant misspells replaces what the spec has there, as its right name would. What it has by the
                // right name replaces what the spec misspells.
                moves.push((e, Destination { path: vec![key], part: None }));
            }
        }
        moves.extend(places.into_iter().map(|place| (e, place)));
    }
    let map = Node::map(kept, node.span);
    // Merged, because the map may have other keys at that place. Not in the place of a list, which is wrong there itself.
    let moved =
        moves.into_iter().filter(|(_, place)| !leads_into_list(&map, &place.path)).collect::<Vec<_>>();
    let moved = moved.into_iter().fold(map, |map, (entry, place)| {
        let value = place.value(entry);
        cx.with_entry(&map, entry, &place.path, &value).unwrap_or(map)
    });
    // Merged, it would have the place of the last entry, and what it lacks would be missing there.
    Cow::Owned(Node { span: node.span, ..moved })
}

/// Whether a list is where a path needs a map.
fn leads_into_list(map: &Node, path: &[String]) -> bool {
    let mut nodes = path.iter().scan(map, |node, key| {
        *node = node.get(key)?;
        Some(*node)
    });
    nodes.any(|node| matches!(node.kind, Kind::List(_)))
}

/// The key and the value of an entry of YAML that is written with the sign of the DSL, `heads=4`, and so is a key alone.
/// `None` if the value has signs that may need quotation marks.
fn assigned(entry: &Entry) -> Option<(&str, &str)> {
    let (key, value) = entry.key.split_once('=').filter(|_| matches!(entry.value.kind, Kind::Null))?;
    let (key, value) = (key.trim(), value.trim());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
    let is_word = |text: &str| !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain);
    (is_word(key) && is_word(value.strip_prefix('-').unwrap_or(value))).then_some((key, value))
}

/// The name that was probably meant by a key. One in another case is, even if the key is another library's word.
fn meant(entry: &Entry, (map, title): (&Node, &str), names: &[&str], cx: &Context<'_>) -> Option<String> {
    // A dotted word is the path that another library's word has here: `ffn.hidden` is `hidden` in the map `ffn`, and in
    // the part that this holds.
    let here = || {
        let mut around = None;
        meanings(&entry.key).find_map(|ours| {
            let (maps, last) = ours.rsplit_once('.').filter(|(_, last)| names.contains(last))?;
            let map = maps.rsplit('.').next().unwrap_or(maps);
            let around = around.get_or_insert_with(|| cx.above(entry));
            (title == map || around.iter().rev().take(2).any(|key| key == map)).then_some(last)
        })
    };
    // A path is no misspelled word.
    if nested(entry, names).is_some() {
        return None;
    }
    let ours = foreign_among(&entry.key, names).or_else(here).map(str::to_owned);
    // A word that another library uses is not a misspelled one of ours.
    let or_near = || {
        let all = likely(&entry.key, names);
        // One that the author has written next to it is not meant if another one may be.
        let is_beside = |name: &String| {
            let own = map.entry(name).filter(|own| map.span.contains(own.key_span));
            own.is_some() && map.span.contains(entry.key_span)
        };
        let free: Vec<String> = all.iter().filter(|name| !is_beside(name)).cloned().collect();
        let near =
            cx.accepted(entry, if free.is_empty() { all } else { free }).or_else(|| begun(entry, names, cx));
        near.filter(|_| foreign(&entry.key).is_none())
    };
    let same = names.iter().find(|name| is_same(&entry.key, name));
    same.map(|name| (*name).to_owned()).or(ours).or_else(or_near)
}

/// The only one of the names that a key is the first word of, if the checker accepts the value there: `distillation` of
/// `distillation_token`.
fn begun(entry: &Entry, names: &[&str], cx: &Context<'_>) -> Option<String> {
    let goes_on =
        |name: &&&str| name.strip_prefix(entry.key.as_str()).is_some_and(|rest| rest.starts_with('_'));
    let mut longer = names.iter().filter(goes_on);
    let (only, None) = (longer.next()?, longer.next()) else { return None };
    let is_accepted = cx.can_try() && cx.would_accept(entry, &[(*only).to_owned()], &entry.value);
    is_accepted.then(|| (*only).to_owned())
}

/// Whether a key may mean the name that is near to it. A name that is there already is meant only if it can have the
/// value: `decoders: 3` means no stack.
fn is_taken(entry: &Entry, near: &str, map: &Node, cx: &Context<'_>) -> bool {
    // The meaning may be a path, whose last key is the name in this map.
    if meanings(&entry.key).any(|ours| ours.rsplit('.').next() == Some(near)) {
        return true;
    }
    if continues(&entry.key, near) {
        return false;
    }
    let is_doubtful = map.get(near).is_some();
    // What is wrong inside of a map is reported there.
    let is_simple = entry.value.text().is_some();
    !(is_doubtful && is_simple) || cx.may_hold(entry, &[near.to_owned()])
}

/// Whether a key is a word that goes on after another one, which no slip of the fingers does:
/// `decoder_start_token_id` and `mask_time_prob` are other words than `decoder` and `mask`.
fn continues(key: &str, near: &str) -> bool {
    /// As many letters may be typed too much.
    const SLIP: usize = 2;
    /// With one of these it is another form of the same word: `softcapping` of `softcap`.
    const ENDINGS: [&str; 4] = ["ing", "ings", "er", "ers"];
    let Some(rest) = key.strip_prefix(near) else { return false };
    // The last letter may be doubled before an ending.
    let doubled = near.chars().last().and_then(|last| rest.strip_prefix(last));
    let is_form = |rest: &str| ENDINGS.contains(&rest);
    let is_longer = rest.len() > SLIP || rest.starts_with('_');
    is_longer && !is_form(rest) && !doubled.is_some_and(is_form)
}

/// The most unknown keys of a map for which misspelled words are looked for in other places. A map with more
/// of them is something else than a spec, and each search takes time.
const MOST_SLIPS: usize = 20;

/// The names that are known where an unknown key is.
#[derive(Clone, Copy)]
struct Names<'a> {
    /// The list of the keys that the map itself may have, unless it has been reported.
    all: Option<&'a str>,
    /// The names of all fields and parts below them, at any depth.
    below: &'a BTreeSet<&'static str>,
    /// Whether a key may be both misspelled and in the wrong place; see [`MOST_SLIPS`].
    has_slips: bool,
}

fn unknown_key(
    entry: &Entry,
    title: &str,
    map: &Node,
    // Fields that are written come before those that could be.
    (given, other): (&[Field], &[Field]),
    names: Names<'_>,
    meant: Option<&str>,
    cx: &Context<'_>,
) -> (Diagnostic, Vec<Destination>) {
    let key = entry.key.as_str();
    let message = format!("{} has no key `{key}`", titled(title));
    let mut diagnostic = Diagnostic::error(Code::UnknownKey, entry.key_span, message);
    let fields: Vec<&str> = given.iter().chain(other).map(|f| f.name).collect();
    if let Some(maps) = nested(entry, &fields) {
        let path = key.split('.').map(str::to_owned).collect();
        let help = format!("write `{maps}`: paths are for `--set` and for variants");
        return (
            diagnostic.help(help).fix(Fix::Move { path, up: 0, certainty: Certainty::Certain }),
            Vec::new(),
        );
    }
    if let Some(help) = without_brackets(entry, map, (given, other), cx) {
        return (diagnostic.help(help), Vec::new());
    }
    let ours = foreign(key).filter(|_| !meant.is_some_and(|name| is_same(key, name)));
    // What the language does not have belongs nowhere in it, so no place is looked for.
    let outside = notes::note(title, key).or_else(|| {
        ideas::within(key, title, if title == "recipe" { ideas::Met::Recipe } else { ideas::Met::Value })
    });
    if let Some(idea) = outside.filter(|_| meant.is_none()) {
        return (diagnostic.help(idea), Vec::new());
    }
    if let Some(name) = meant {
        if let Some(taken) = Taken::find(entry, &[name.to_owned()], map) {
            let help = match ours {
                Some(_) => format!("trafoc calls this `{name}`, {}", taken.says(entry)),
                None => format!("did you mean `{name}`, {}?", taken.says(entry)),
            };
            return (taken.fixed(entry, diagnostic.help(help)), Vec::new());
        }
        if let Some(help) = number_in_place(entry, name, (given, other)).filter(|_| ours.is_some()) {
            return (diagnostic.help(help), Vec::new());
        }
        return (
            if ours.is_some() { diagnostic.called(key, name) } else { diagnostic.meant(key, name) },
            Vec::new(),
        );
    }
    // The likeliest meaning that has a place here. The word itself may be one of this language, too: what another library
    // means by it is only meant where that is accepted.
    let is_below = |wanted: &str| wanted.rsplit('.').next().is_some_and(|last| names.below.contains(last));
    let place = |wanted: &str| {
        let found = destination(wanted, entry, map, (given, other), cx).filter(|_| is_below(wanted))?;
        // A word of both documents that no place here accepts is that of the other one.
        let is_theirs = !found.is_accepted && cx.help_for_other(wanted).is_some();
        (!is_theirs).then_some(found)
    };
    let above = given_above(entry, cx);
    if let Some((name, beside, Same::Yes)) = &above {
        return (diagnostic.help(is_given_above(name, beside)), Vec::new());
    }
    let theirs = meanings(key).find_map(|wanted| Some((wanted, place(wanted)?)));
    let is_accepted = theirs.as_ref().is_some_and(|(_, found)| found.is_accepted);
    let own = if is_accepted || !names.below.contains(key) { None } else { place(key) };
    let ours = ours.filter(|_| own.is_none());
    let (wanted, found) = match (own, theirs) {
        (Some(own), _) => (key, Some(own)),
        (None, Some((wanted, found))) => (wanted, Some(found)),
        (None, None) => (ours.unwrap_or(key), None),
    };
    // `causal: false` does not choose `causal`.
    let is_denied = |found: &Found| found.place.part.is_some() && entry.value.text() == Some("false");
    let found = found.filter(|found| !is_denied(found));
    let twin = found.as_ref().and_then(|found| found.twin(entry, map, cx));
    // A word of the other document is surer than what other libraries mean by it.
    let mut sought = std::iter::once(key).chain(meanings(key).map(|ours| -> &str { ours }));
    let help = match &found {
        Some(Found { place: Destination { path, part: Some(part) }, .. }) => {
            format!("write `{part}` as the value of `{}`", path.join("."))
        }
        Some(found)
            if let Some((at, own)) = own_part(&found.place.path, map, cx).filter(|_| !found.is_accepted) =>
        {
            // Only the author can change a part of the spec.
            let more = if cx.definitions().shared.contains(&own) {
                format!("`trafoc explain {own}` shows its fields")
            } else {
                "or give the part such a field".to_owned()
            };
            format!("remove it: `{at}` is the part `{own}`, which has no key `{key}`; {more}")
        }
        // On the command line a path is written as a whole, and it replaces what is there.
        Some(found) if let Some(set) = set_at(entry, &found.place.path, cx) => {
            let other = twin.as_ref().and_then(|twin| set_at(entry, &twin.path, cx));
            let other = other.map(|other| format!(", or `{other}`")).unwrap_or_default();
            format!("write `{set}`{other}")
        }
        Some(found)
            if let Some(taken) = Taken::find(entry, &found.place.path, map)
                .filter(|_| found.fits && !found.is_accepted && twin.is_none()) =>
        {
            let verb = if ours.is_some() { "trafoc calls this" } else { "it belongs at" };
            let help = format!("{verb} `{}`, {}", found.place.path.join("."), taken.says(entry));
            return (taken.fixed(entry, diagnostic.help(help)), Vec::new());
        }
        Some(found) => {
            let path = found.place.path.join(".");
            let also =
                twin.as_ref().map(|twin| format!(", and `{}`", twin.path.join("."))).unwrap_or_default();
            let verb = if ours.is_some() { "trafoc calls this" } else { "it belongs at" };
            format!("{verb} `{path}`{also}")
        }
        None if let Some((up, beside, solved)) = higher(entry, wanted, names, cx) => {
            diagnostic = diagnostic.followed_by(solved).fix(Fix::Move {
                path: vec![wanted.to_owned()],
                up,
                certainty: Certainty::Likely,
            });
            match ours {
                Some(_) => format!("trafoc calls this `{wanted}`: put it next to `{beside}`"),
                None => format!("put `{wanted}` next to `{beside}`"),
            }
        }
        None if let Some((name, beside, _)) = &above => is_given_above(name, beside),
        // The word may be one of the other document, by another name or by this one.
        None if let Some((theirs, help)) = sought.find_map(|w| Some((w, cx.help_for_other(w)?))) => {
            if theirs != key { format!("trafoc calls this `{theirs}`; {help}") } else { help.to_owned() }
        }
        None if ours.is_some() => match cx.elsewhere(wanted) {
            Some(one) => format!("trafoc calls this `{wanted}`, {}", one.says),
            None => format!("trafoc calls this `{wanted}`, elsewhere"),
        },
        // The name of a part may be misspelled where it is defined.
        None if let Some(own) = suggest(key, &cx.definitions().own_names()) => {
            format!("did you mean `{own}`?")
        }
        None if let Some((help, fix, place)) = slip_elsewhere(entry, map, (given, other), names, cx) => {
            return (diagnostic.help(help).fix(fix), place.into_iter().collect());
        }
        None => {
            // A part of a slot is not what turns the word off.
            let is_off = entry.value.text() == Some("false");
            if let Some(one) = cx.elsewhere(key).filter(|one| !(is_off && one.slot.is_some())) {
                diagnostic = diagnostic.help(format!("`{key}` is {}", one.says));
                // A part is none of the keys that are listed.
                if one.slot.is_some() {
                    return (diagnostic, Vec::new());
                }
            }
            match names.all {
                Some(all) => all.to_owned(),
                None => return (diagnostic, Vec::new()),
            }
        }
    };
    // What is not accepted of a map may be what is misspelled within it, which can be mended there.
    if let Some(Found { place: Destination { path, part: None }, is_accepted: false, .. }) = &found
        && entry.value.entries().is_some()
    {
        let fix = Fix::Move { path: path.clone(), up: 0, certainty: Certainty::Guess };
        return (diagnostic.help(help).fix(fix), Vec::new());
    }
    let place = found.filter(|found| found.is_accepted).map(|found| found.place);
    let diagnostic = match &place {
        // Of two places, the author has to choose.
        Some(_) if twin.is_some() => diagnostic,
        Some(Destination { path, part: None }) => {
            // A key that several maps have may be meant for any of them.
            let is_only = has_one_place(wanted, entry, map, (given, other), cx);
            let certainty = if is_only { Certainty::Likely } else { Certainty::Guess };
            diagnostic.fix(Fix::Move { path: path.clone(), up: 0, certainty })
        }
        Some(Destination { path, part: Some(part) }) => {
            diagnostic.fix(Fix::Choose { path: path.clone(), part: (*part).to_owned() })
        }
        None => diagnostic,
    };
    // In both, nothing follows from its being in neither.
    let places = place.into_iter().flat_map(|place| std::iter::once(place).chain(twin.clone())).collect();
    (diagnostic.help(help), places)
}

/// What to write in place of an entry that means a number by this name, if it has something else: `true`, or a map in which
/// the number is.
fn number_in_place(entry: &Entry, name: &str, (given, other): (&[Field], &[Field])) -> Option<String> {
    let field = |name: &str| given.iter().chain(other).find(|f| f.name == name);
    let shape = (field(name)?.shape)();
    if !matches!(shape, Shape::Integer(_) | Shape::Number(_)) {
        return None;
    }
    if let Some(entries @ [_, ..]) = entry.value.entries() {
        let written =
            |e: &Entry| field(&e.key).map(|f| format!("`{}: {}`", f.name, e.value.text().unwrap_or("...")));
        let has = |e: &&Entry| given.iter().any(|f| f.name == e.key);
        let all: Vec<String> = entries.iter().filter(|e| !has(e)).map(written).collect::<Option<_>>()?;
        let all = if all.is_empty() { format!("`{name}: ...`") } else { all.join(" and ") };
        let beside: Vec<String> = entries.iter().filter(has).map(|e| format!("`{}`", e.key)).collect();
        let beside = match beside.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} is already set next to it"),
            several => format!("; {} are already set next to it", several.join(" and ")),
        };
        let map = &entry.key;
        return Some(format!("what is in `{map}` is written without that map: write {all} instead{beside}"));
    }
    let wanted = shape.wanted();
    entry.value.text().filter(|text| is_no_number(text))?;
    Some(format!("trafoc calls this `{name}`, {wanted}: write `{name}: ...`, or remove it"))
}

/// The setting that gives the value of an entry of `--set` to a path below its map; `None` for an entry of a file.
pub(super) fn set_at(entry: &Entry, path: &[String], cx: &Context<'_>) -> Option<String> {
    let (option, _) = argument_at(cx.sources(), entry.key_span)?;
    let whole = [&cx.above(entry), path].concat().join(".");
    as_typed(option, &format!("{whole}={}", entry.value.text()?))
}

/// The first slot on the way to a place in which there is a part of the spec or of the library, and that part: the place
/// would be one in another part, instead of it.
fn own_part(path: &[String], map: &Node, cx: &Context<'_>) -> Option<(String, String)> {
    let mut node = map;
    let mut at = String::new();
    for key in path {
        node = node.get(key)?;
        at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let names =
            node.text().into_iter().chain(node.entries().unwrap_or(&[]).iter().map(|e| e.key.as_str()));
        let mut own = names.filter(|name| cx.definitions().has(name));
        if let Some(own) = own.next() {
            return Some((at, own.to_owned()));
        }
    }
    None
}

/// For a key that is too deep in the document, and that the checker accepts further up: how many levels, the path of the
/// key next to which it belongs, and the messages that vanish there.
fn higher(
    entry: &Entry,
    wanted: &str,
    names: Names<'_>,
    cx: &Context<'_>,
) -> Option<(usize, String, BTreeSet<String>)> {
    if !names.has_slips {
        return None;
    }
    let above = cx.above(entry);
    let (up, solved) = cx.levels_up(entry, wanted)?;
    let kept = above.len().checked_sub(up)?;
    Some((up, above.get(..=kept)?.join("."), solved))
}

/// Whether a key has the value that is given further up.
#[derive(Clone, Copy)]
enum Same {
    Yes,
    No,
}

/// What another library's word for a key means, if a map further up in the document has that key already, and the key of
/// that map which leads to the entry: `hidden_size` in a stack means the `d_model` next to it, above all if the values
/// are the same.
fn given_above(entry: &Entry, cx: &Context<'_>) -> Option<(&'static str, String, Same)> {
    meanings(&entry.key).find_map(|name| {
        let (beside, given) = cx.given_above(entry, name)?;
        let is_same = given.text().is_some() && given.text() == entry.value.text();
        Some((name, beside, if is_same { Same::Yes } else { Same::No }))
    })
}

fn is_given_above(name: &str, beside: &str) -> String {
    format!("trafoc calls this `{name}`, and it is already set next to `{beside}`")
}

/// A suggestion for a key that is misspelled and in the wrong place as well, with the change that it means, and the place if
/// the checker accepts the entry there.
fn slip_elsewhere(
    entry: &Entry,
    map: &Node,
    (given, other): (&[Field], &[Field]),
    names: Names<'_>,
    cx: &Context<'_>,
) -> Option<(String, Fix, Option<Destination>)> {
    if !names.has_slips {
        return None;
    }
    let words: Vec<&str> = names.below.iter().copied().collect();
    // The entry keeps its misspelled key here; only the help gives the right one.
    let near = suggest(&entry.key, &words).filter(|near| !continues(&entry.key, near))?;
    let Found { place, is_accepted, .. } = destination(&near, entry, map, (given, other), cx)?;
    let (path, shown) = (place.path.clone(), place.path.join("."));
    let (help, fix) = match place.part {
        Some(part) => {
            let help = format!("did you mean `{part}` as the value of `{shown}`?");
            (help, Fix::Choose { path, part: part.to_owned() })
        }
        None => (
            format!("did you mean `{near}`, at `{shown}`?"),
            Fix::Move { path, up: 0, certainty: Certainty::Likely },
        ),
    };
    Some((help, fix, Some(place).filter(|_| is_accepted)))
}

/// Reports and corrects the misspelled keys and parts of a whole tree of this shape, for code that reads the
/// tree before it is decoded.
pub fn mended_deep(node: &Node, shape: Shape, cx: &mut Context<'_>) -> Node {
    let below = |node: &Node, title: &str, fields: &[Field], cx: &mut Context<'_>| {
        let mut node = mended(node, title, fields, &[], cx).into_owned();
        let Kind::Map(entries) = &mut node.kind else { return node };
        for e in entries {
            // After `mended`, only keys of `more` are no fields, and there are none.
            if let Some(field) = fields.iter().find(|f| f.name == e.key) {
                e.value = mended_deep(&e.value, (field.shape)(), cx);
            }
        }
        node
    };
    match shape {
        Shape::Record(title, fields) => below(node, title, &fields(), cx),
        Shape::Slot(doc) => {
            let slot = doc();
            let mut node = mended_part(node, &slot, cx).into_owned();
            if let Kind::Map(entries) = &mut node.kind
                && let [only] = entries.as_mut_slice()
                && let Some(part) = slot.parts.iter().find(|p| p.name == only.key)
            {
                only.value = below(&only.value, part.name, &(part.fields)(), cx);
            }
            node
        }
        Shape::Bool
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Text
        | Shape::Texts
        | Shape::Choice(_)
        | Shape::List(..)
        | Shape::Map(_)
        | Shape::Equation
        | Shape::Part
        | Shape::Any => node.clone(),
    }
}
