//! Inserts a config's values into a family's spec, and shortens the result to what an author would have
//! written.

use serde_json::Value as Json;

use super::config::Config;
use super::shorten::shortened;
use super::template::condition;
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::value::plain;
use crate::names::formula::{Formula, Function, Operator, eval};
use crate::names::formula_of;
use crate::names::json;
use crate::source::{SourceMap, Span};
use crate::spec::{Parts, is_part, load};
use crate::syntax::merge::merge;
use crate::syntax::tree::{Entry, Kind, Node, Scalar, Style};
use crate::syntax::{Notation, parse, print};

/// The most layers that may each have a range of their own. A config may give any number of layers, each of
/// these ranges is an entry of the spec, which every decision of [`shortened`] decodes again.
const MAX_RANGES: u64 = 128;

/// The most layers for which a list is repeated: far more than any model has.
const MAX_LAYERS: u64 = 10_000;

/// The spec of a config, with every field that the family gives. Fields with errors are reported and left
/// out. Values that follow from the config have its places.
pub fn tree(config: &Config<'_>, name: &str, sink: &mut Sink) -> Option<Node> {
    let mut filler = Filler { config, sink };
    let body = filler.fill(&config.family.spec)?;
    let head = config.family.heads.get(&config.head).and_then(|h| filler.fill(&h.spec));
    let mut tree = match head {
        Some(head) => merge(&body, &head, &Parts::default(), sink),
        None => body,
    };
    let Kind::Map(entries) = &mut tree.kind else { return None };
    let span = tree.span;
    let entry =
        |key: &str, value: &str| Entry { key: key.into(), key_span: span, value: Node::plain(value, span) };
    entries.retain(|e| !matches!(e.key.as_str(), "trafo" | "name"));
    // Whatever the order in the family's file, a spec begins with these two.
    entries.splice(0..0, [entry("trafo", "1"), entry("name", name)]);
    for e in entries.iter_mut().filter(|e| matches!(e.key.as_str(), "encoder" | "decoder")) {
        e.value = with_pattern(&with_ranges(&e.value), sink);
    }
    without_unused_positions(entries);
    Some(with_used_parts(tree))
}

/// Leaves out the positions of the embeddings where no layer of any stack uses them: a config may say so of each of
/// its layers, and a spec says it once.
fn without_unused_positions(entries: &mut [Entry]) {
    const POSITION: &str = "position";
    let is_stack = |e: &Entry| matches!(e.key.as_str(), "encoder" | "decoder");
    let has_none = |e: &Entry| e.value.get(POSITION).and_then(Node::text) == Some("none");
    if !entries.iter().any(is_stack) || !entries.iter().filter(|e| is_stack(e)).all(has_none) {
        return;
    }
    for e in entries.iter_mut() {
        let is_stack = is_stack(e);
        let Kind::Map(inner) = &mut e.value.kind else { continue };
        if is_stack {
            inner.retain(|own| own.key != POSITION);
        }
        for own in inner.iter_mut().filter(|own| e.key == "embed" && own.key == POSITION) {
            own.value = Node::plain("none", own.value.span);
        }
    }
}

/// The spec without parts that nothing in it uses: a family has all that its configs may need.
fn with_used_parts(tree: Node) -> Node {
    fn words(node: &Node, out: &mut Vec<String>) {
        match &node.kind {
            Kind::Map(entries) => entries.iter().for_each(|e| {
                out.push(e.key.clone());
                words(&e.value, out);
            }),
            Kind::List(items) => items.iter().for_each(|item| words(item, out)),
            Kind::Scalar(scalar) => {
                let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                out.extend(scalar.text.split(is_end).map(str::to_owned));
            }
            Kind::Null | Kind::Delete => {}
        }
    }
    let Some(parts) = tree.get("parts").and_then(Node::entries) else { return tree };
    let mut known = Vec::new();
    let entries = tree.entries().unwrap_or(&[]);
    entries.iter().filter(|e| e.key != "parts").for_each(|e| words(&e.value, &mut known));
    let mut used: Vec<&Entry> = Vec::new();
    // A part may be used by another one alone, so each that is used adds the words of its equation.
    while let Some(next) =
        parts.iter().find(|e| known.contains(&e.key) && used.iter().all(|other| other.key != e.key))
    {
        used.push(next);
        words(&next.value, &mut known);
    }
    let is_used = |e: &&Entry| used.iter().any(|other| other.key == e.key);
    let kept: Vec<Entry> = parts.iter().filter(is_used).cloned().collect();
    let mut entries = entries.to_vec();
    entries.retain(|e| e.key != "parts" || !kept.is_empty());
    for e in entries.iter_mut().filter(|e| e.key == "parts") {
        e.value = Node::map(kept.clone(), e.value.span);
    }
    Node::map(entries, tree.span)
}

struct Filler<'a, 'f> {
    config: &'a Config<'f>,
    sink: &'a mut Sink,
}

impl Filler<'_, '_> {
    /// The tree with formulas replaced by their values; `None` if nothing is left.
    fn fill(&mut self, node: &Node) -> Option<Node> {
        match (&node.kind, formula_of(node)) {
            (_, Some(formula)) => {
                let value = self.value(&formula, node.span)?;
                let span = self.place(&formula).unwrap_or(node.span);
                if let Some(text) = worked(&formula, &value, self.config) {
                    return Some(Node::plain(text, span));
                }
                // `null` means that the config has no such setting, so the field is left out.
                (!value.is_null()).then(|| json::node(&value, span))
            }
            (Kind::Map(_), _) if condition(node).is_some() => {
                // Only `true` holds: a condition on an absent key is `null`.
                let holds = match condition(node) {
                    Some(formula) => self.value(&formula, node.span)? == Json::Bool(true),
                    None => false,
                };
                node.get(if holds { "then" } else { "else" }).and_then(|chosen| self.fill(chosen))
            }
            (Kind::Map(_), _) if node.get("match").is_some() => self.chosen(node),
            (Kind::Map(entries), _) => {
                let filled: Vec<Entry> = entries
                    .iter()
                    .filter_map(|e| self.fill(&e.value).map(|value| Entry { value, ..e.clone() }))
                    .collect();
                // An empty map is a part with its defaults; one whose entries are all left out says nothing.
                (entries.is_empty() || !filled.is_empty()).then(|| Node::map(filled, node.span))
            }
            (Kind::List(items), _) => {
                let filled: Vec<Node> = items.iter().filter_map(|item| self.fill(item)).collect();
                // A list of alternatives of which one remains is that one.
                match filled.as_slice() {
                    [only] if items.len() > 1 => Some(only.clone()),
                    _ => Some(Node { kind: Kind::List(filled), span: node.span }),
                }
            }
            (Kind::Null | Kind::Scalar(_) | Kind::Delete, _) => Some(node.clone()),
        }
    }

    /// Evaluates `{match: = key, word: ..., _: ...}`.
    fn chosen(&mut self, node: &Node) -> Option<Node> {
        let formula = node.get("match").and_then(formula_of)?;
        let value = self.value(&formula, node.span)?;
        let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(case) = node.get(&word).or_else(|| node.get("_")) {
            return self.fill(case);
        }
        let cases = node.entries().unwrap_or(&[]).iter().map(|e| e.key.as_str()).filter(|k| *k != "match");
        let known: Vec<&str> = cases.collect();
        let message = format!("`{word}` is not one of {}", known.join(", "));
        self.fault(&formula, node.span, message);
        None
    }

    fn value(&mut self, formula: &Formula, span: Span) -> Option<Json> {
        match eval(formula, self.config) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault(formula, span, fault.to_string());
                None
            }
        }
    }

    /// The place of the first key of a formula that the config gives.
    fn place(&self, formula: &Formula) -> Option<Span> {
        formula.keys().iter().find_map(|key| self.config.places.get(*key)).copied()
    }

    /// Reports an error at a key of the formula in the config, or in the family file.
    fn fault(&mut self, formula: &Formula, span: Span, message: String) {
        let keys = formula.keys();
        let key = keys.iter().find(|k| self.config.places.contains_key(**k));
        let place = key.and_then(|k| self.config.places.get(*k)).copied().unwrap_or(span);
        let message = match key.or(keys.first()) {
            Some(key) => format!("`{key}`: {message}"),
            None => message,
        };
        let family = &self.config.family.name;
        let diagnostic = Diagnostic::error(Code::OutOfRange, place, message);
        self.sink.push(diagnostic.help(format!("these are the values that the family {family} supports")));
    }
}

/// A number without a short decimal form as the expression it comes from, `1/sqrt(24)`.
fn worked(formula: &Formula, value: &Json, config: &Config<'_>) -> Option<String> {
    let number = value.as_f64()?;
    // `0.0883883476483184` says nothing to a reader, `1/sqrt(128)` says where it comes from.
    if value.as_i64().is_some() || format!("{number:?}").len() <= 8 {
        return None;
    }
    fn write(formula: &Formula, config: &Config<'_>, out: &mut String) -> Option<()> {
        match formula {
            Formula::Key(_) | Formula::Literal(_) => match eval(formula, config).ok()? {
                Json::Number(n) => out.push_str(&json::text(&n)),
                _ => return None,
            },
            Formula::Binary(operator, a, b) => {
                let mark = match operator {
                    Operator::Multiply => " * ",
                    Operator::Divide => "/",
                    _ => return None,
                };
                write(a, config, out)?;
                out.push_str(mark);
                // The text has no parentheses, so of `a / (b * c)` it would make `a / b * c`.
                let is_simple = !matches!(**b, Formula::Binary(..));
                is_simple.then(|| write(b, config, out))??;
            }
            Formula::Call(Function::Sqrt, args) => {
                out.push_str("sqrt(");
                write(args.first()?, config, out)?;
                out.push(')');
            }
            _ => return None,
        }
        Some(())
    }
    // A key alone would be written as the number itself.
    if matches!(formula, Formula::Key(_)) {
        return None;
    }
    let mut text = String::new();
    write(formula, config, &mut text)?;
    Some(text)
}

/// Replaces the range `{i}` with a range for every layer, in which the layer's number is inserted, and `{i} NAME` with
/// ranges for the layers whose block has that name.
fn with_ranges(stack: &Node) -> Node {
    const EACH: &str = "{i}";
    fn numbered(node: &Node, number: &str) -> Node {
        let kind = match &node.kind {
            Kind::Map(entries) => {
                let each = |e: &Entry| Entry { value: numbered(&e.value, number), ..e.clone() };
                Kind::Map(entries.iter().map(each).collect())
            }
            Kind::Scalar(s) if s.text.contains(EACH) => {
                return Node::plain(s.text.replace(EACH, number), node.span);
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Null | Kind::Delete => node.kind.clone(),
        };
        Node { kind, span: node.span }
    }
    let of_each = |e: &&Entry| e.key.starts_with(EACH);
    let each = stack.get("ranges").and_then(Node::entries).and_then(|ranges| ranges.iter().find(of_each));
    // Beyond the bound `{i}` stays as it is, and the spec is refused for a range of that name.
    let layers = stack.get("layers").and_then(|n| json::of(n).as_u64()).filter(|n| *n <= MAX_RANGES);
    let (Some(each), Some(layers), Kind::Map(entries)) = (each, layers, &stack.kind) else {
        return stack.clone();
    };
    let block = each.key.strip_prefix(EACH).map(str::trim).filter(|name| !name.is_empty());
    let pattern = stack.get("pattern").map(json::of);
    let names = pattern.as_ref().and_then(|list| list.as_array());
    let has_block = |i: &u64| {
        let of_layer = usize::try_from(*i).ok().and_then(|i| names?.get(i)?.as_str());
        block.is_none_or(|name| of_layer == Some(name))
    };
    let range = |i: u64| {
        let number = i.to_string();
        let value = numbered(&each.value, &number);
        Entry { key: number, key_span: stack.span, value }
    };
    let found: Vec<Entry> = (0..layers).filter(has_block).map(range).collect();
    let mut entries = entries.clone();
    // Where no layer has that block, there is no range.
    entries.retain(|e| e.key != "ranges" || !found.is_empty());
    for e in entries.iter_mut().filter(|e| e.key == "ranges") {
        e.value = Node::map(found.clone(), e.value.span);
    }
    Node::map(entries, stack.span)
}

/// Writes the order of named blocks as briefly as possible: unused blocks are left out, a single kind
/// becomes the stack's own block, a repeating list is written once, and long runs become `runs`.
fn with_pattern(stack: &Node, sink: &mut Sink) -> Node {
    let (Some(pattern), Some(entries)) = (stack.get("pattern").map(json::of), stack.entries()) else {
        return stack.clone();
    };
    let mut list: Vec<String> =
        pattern.as_array().into_iter().flatten().filter_map(|n| n.as_str().map(str::to_owned)).collect();
    // A list that is shorter is repeated. What repeats in it is looked for among all layers: its end need not be the
    // beginning of what would follow.
    let layers = stack.get("layers").and_then(|n| json::of(n).as_u64()).filter(|n| *n <= MAX_LAYERS);
    if let Some(layers) = layers.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > list.len()) {
        list = list.iter().cycle().take(layers).cloned().collect();
    }
    let mut kinds: Vec<&String> = Vec::new();
    list.iter().for_each(|name| {
        if !kinds.contains(&name) {
            kinds.push(name);
        }
    });
    let rest: Vec<Entry> =
        entries.iter().filter(|e| !matches!(e.key.as_str(), "blocks" | "pattern")).cloned().collect();
    let rest = Node::map(rest, stack.span);
    let blocks = stack.get("blocks");
    if let [only] = kinds.as_slice() {
        return match blocks.and_then(|b| b.get(only)) {
            Some(block) => merge(&rest, block, &Parts::default(), sink),
            None => rest,
        };
    }
    let named = blocks.and_then(Node::entries).unwrap_or(&[]).iter();
    let named: Vec<Entry> = named.filter(|e| kinds.contains(&&e.key)).cloned().collect();
    let (key, value) = shortest(&list);
    let Kind::Map(mut all) = rest.kind else { return stack.clone() };
    let entry = |key: &str, value: Node| Entry { key: key.into(), key_span: stack.span, value };
    all.push(entry("blocks", Node::map(named, stack.span)));
    all.push(entry(key, value));
    Node::map(all, stack.span)
}

/// The length of the shortest list that gives this one if it is repeated, where the last repetition may be
/// cut. It is found in linear time by the failure function of Knuth, Morris and Pratt: for each prefix, the
/// length of the longest shorter prefix that it also ends with.
fn period(list: &[String]) -> usize {
    let mut borders: Vec<usize> = Vec::with_capacity(list.len());
    for (i, name) in list.iter().enumerate() {
        let mut border = borders.last().copied().unwrap_or(0);
        while border > 0 && list.get(border) != Some(name) {
            border = border.checked_sub(1).and_then(|before| borders.get(before)).copied().unwrap_or(0);
        }
        let is_longer = i > 0 && list.get(border) == Some(name);
        borders.push(border.saturating_add(usize::from(is_longer)));
    }
    // What the list begins and ends with overlaps in all but one period.
    list.len().saturating_sub(borders.last().copied().unwrap_or(0))
}

/// The order of blocks as a `pattern` if it repeats or is short, otherwise as `runs` of equal blocks.
fn shortest(list: &[String]) -> (&'static str, Node) {
    let of = |items: Vec<Node>| Node { kind: Kind::List(items), span: Span::default() };
    let names = |list: &[String]| of(list.iter().map(plain).collect());
    let period = period(list);
    let mut runs: Vec<(&String, usize)> = Vec::new();
    for name in list {
        match runs.last_mut() {
            Some((last, count)) if *last == name => *count = count.saturating_add(1),
            _ => runs.push((name, 1)),
        }
    }
    // A pattern that repeats scales with the layers; one that does not is worth it only if `runs` is not
    // far shorter.
    if period <= runs.len().saturating_mul(2) || period < list.len() {
        return ("pattern", names(list.get(..period).unwrap_or(list)));
    }
    let run = |(name, count): &(&String, usize)| {
        let entry = crate::field::record::entry;
        let cycle = of(vec![plain(name.as_str())]);
        Node::map(vec![entry("count", plain(count.to_string())), entry("cycle", cycle)], Span::default())
    };
    ("runs", of(runs.iter().map(run).collect()))
}

/// The same spec as text, without values that equal a default. Returns `None` after reporting why the tree
/// is not a valid spec.
pub fn clean(tree: &Node, config: &Config<'_>, sources: &mut SourceMap, sink: &mut Sink) -> Option<String> {
    // Whether a key has an effect is determined by its place, so the tree is printed and parsed again to
    // give each value its own place.
    let text = print::yaml(tree);
    let id = sources.add("<import>", text);
    let parsed = parse(sources, id, Notation::Yaml, sink)?;
    let mut found = Sink::new();
    let whole = load::decode(sources, &parsed, &mut found);
    // Before the result is used: errors in the printed text mean nothing to a user, who has only the
    // config.
    report(&found, &places(tree, &parsed), config, sources, sink);
    let whole = whole.filter(|_| !sink.has_errors())?;
    let (parsed, _) = shortened(parsed, &whole, sources);
    Some(print::yaml(&tidied(&parsed)))
}

/// Pairs the places in a printed spec with those of the same values before.
fn places(before: &Node, printed: &Node) -> Vec<(Span, Span)> {
    let mut found = vec![(printed.span, before.span)];
    for e in printed.entries().unwrap_or(&[]) {
        if let Some(value) = before.get(&e.key) {
            found.push((e.key_span, value.span));
            found.extend(places(value, &e.value));
        }
    }
    if let (Kind::List(before), Kind::List(printed)) = (&before.kind, &printed.kind) {
        found.extend(before.iter().zip(printed).flat_map(|(before, printed)| places(before, printed)));
    }
    found
}

/// Reports the errors of a spec at the places of the config. If other errors are already known, only those
/// that do not follow from them are reported.
fn report(found: &Sink, places: &[(Span, Span)], config: &Config<'_>, sources: &SourceMap, sink: &mut Sink) {
    let given = |span: Span| {
        let place = places.iter().find(|(printed, _)| *printed == span).map(|(_, before)| *before);
        place.filter(|place| config.places.values().any(|p| p == place))
    };
    let is_first = !sink.has_errors();
    for diagnostic in found.iter() {
        let mut diagnostic = diagnostic.clone();
        let own = given(diagnostic.span());
        let mut known = diagnostic.labels.iter().filter_map(|label| given(label.span));
        if !is_first && (own.is_none() || known.any(|place| sink.has_error_in(place))) {
            continue;
        }
        for label in &mut diagnostic.labels {
            label.span = given(label.span).unwrap_or(label.span);
        }
        if let Some(place) = own {
            // The config is JSON, whose keys are in quotes.
            let key = sources.text(place).trim_matches('"');
            diagnostic.message = format!("`{key}`: {}", diagnostic.message);
        // A key that is `null` in the config gives no field, and this is the likeliest reason why one is
        // missing.
        } else if diagnostic.code == Code::MissingKey {
            let null = |key: &&String| config.values.get(*key).is_some_and(Json::is_null);
            for (key, place) in config.places.iter().filter(|(key, _)| null(key)) {
                diagnostic = diagnostic.label(*place, format!("`{key}` is null here"));
            }
        }
        sink.push(diagnostic);
    }
}

/// Writes parts without fields as words, and blocks of one line as plain text: `norm: {rms_norm: {}}` as
/// `norm: rms_norm`.
fn tidied(node: &Node) -> Node {
    match &node.kind {
        Kind::Map(entries) => {
            if let [only] = entries.as_slice()
                && is_part(&only.key)
                && only.value.entries().is_some_and(<[Entry]>::is_empty)
            {
                return Node::plain(only.key.clone(), node.span);
            }
            let each = |e: &Entry| Entry { value: tidied(&e.value), ..e.clone() };
            Node::map(entries.iter().map(each).collect(), node.span)
        }
        Kind::List(items) => Node { kind: Kind::List(items.iter().map(tidied).collect()), span: node.span },
        Kind::Scalar(Scalar { text, style: Style::Block }) if !text.trim().contains('\n') => {
            Node::plain(text.trim(), node.span)
        }
        Kind::Null | Kind::Scalar(_) | Kind::Delete => node.clone(),
    }
}
