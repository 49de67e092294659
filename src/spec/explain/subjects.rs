//! Topics that are no field, part or word: wirings, functions, what a part's equation calls, and what several
//! places have in common.

use std::collections::BTreeMap;

use super::topic::{Item, Sort, Topic, said, tidy};
use crate::field::definition::OwnField;
use crate::names::layout;
use crate::parts::own::vocabulary;
use crate::spec::library;
use crate::spec::wiring::{PRELUDE, PartKind};
use crate::syntax::expr::Function;

/// A topic that is no field, part or word.
fn other(sort: Sort, name: &str, path: &str, doc: String, takes: Option<String>, items: Vec<Item>) -> Topic {
    let (name, path) = (name.to_owned(), path.to_owned());
    let chain = vec![name.clone()];
    Topic { sort, name, path, doc, takes, default: None, example: None, pytorch: None, items, chain }
}

/// The functions of expressions.
pub fn functions() -> Vec<Topic> {
    let topic = |f: &Function, path: &str, of: &str, doc: String| {
        let takes = match f.arity() {
            (1, 1) => format!("one {of}"),
            (least, most) if least == most => format!("{least} {of}s"),
            (least, most) => format!("{least} to {most} {of}s"),
        };
        other(Sort::Function, f.name(), path, doc, Some(takes), Vec::new())
    };
    let numbers = Function::NUMBERS.iter().map(|f| {
        let doc = format!("`{}(..)` is {}.", f.name(), tidy(f.explanation()));
        topic(f, "any number of a spec", "number", doc)
    });
    let values = Function::VALUES.iter().map(|f| {
        let said = tidy(f.explanation());
        let is_call = said.starts_with('`');
        let doc = if is_call { format!("{said}.") } else { format!("`{}(..)` is {said}.", f.name()) };
        topic(f, "a formula in weights", "value", doc)
    });
    numbers.chain(values).collect()
}

/// The key with the names of a checkpoint's tensors.
pub const WEIGHTS: &str = "weights";

/// The keys of rows of `weights`.
pub fn rows() -> Vec<Topic> {
    let topic = |key: &layout::Key| {
        let path = format!("{WEIGHTS}.{}", key.name);
        let takes = Some(key.takes.words().to_owned());
        let topic = other(Sort::Key, key.name, &path, tidy(key.doc), takes, Vec::new());
        let chain = [WEIGHTS, key.name].map(str::to_owned).to_vec();
        Topic { chain, example: Some(key.example.to_owned()), ..topic }
    };
    layout::KEYS.iter().map(topic).collect()
}

/// What the equation of a part calls: the words of the vocabulary, apart from the activations, which
/// `activation` lists.
pub fn calls() -> Vec<Topic> {
    let is_layer_or_op = |word: &vocabulary::Word| vocabulary::activation(word.name).is_none();
    let topic = |word: vocabulary::Word| {
        let fields = (word.fields)();
        let doc = format!("`{}`: {}.", word.usage(), tidy(word.doc));
        let named: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let takes = match named.as_slice() {
            [] => "no fields".to_owned(),
            _ => format!("the fields below, with their names: `{}: ...`", named.join(": ...`, `")),
        };
        let items = fields.iter().map(|f| Item { name: f.name.to_owned(), doc: said(f) }).collect();
        let topic = other(Sort::Call, word.name, "parts", doc, Some(takes), items);
        Topic { example: Some(word.example()), pytorch: Some(word.pytorch()), ..topic }
    };
    vocabulary::words().filter(is_layer_or_op).map(topic).collect()
}

/// What several places have in common, and keys that are checked where they are read.
pub fn subjects() -> Vec<Topic> {
    let item = |name: &str, doc: &str| Item { name: name.to_owned(), doc: doc.to_owned() };
    let mut operators = vec![
        item("1e-5, 8/3, 40_000", "numbers, exact as long as they are ratios of whole numbers"),
        item("+ - * / ^ ( )", "the usual operators, `^` for powers"),
        item("d_model, heads, ...", "a size that is given above, or a name under `let`"),
    ];
    operators.extend(Function::NUMBERS.iter().map(|f| item(f.name(), &tidy(f.explanation()))));
    let mut names: Vec<Item> = Vec::new();
    for wiring in wirings() {
        names.push(Item { doc: wiring.doc, name: wiring.name });
    }
    let mut calls: Vec<Item> = PartKind::ALL
        .iter()
        .map(|kind| item(kind.word(), "a part; each call has its own parameters, and is a key of the block"))
        .collect();
    calls.push(item("norm[name](x)", "the same, called `name` instead of `norm1`, `norm2`, ..."));
    calls.push(item(
        "swiglu(x)",
        "a part of the library, or of your own, which `parts` defines; its fields are under that key",
    ));
    calls.push(item("+ - * /", "sums, products, and numbers as factors"));
    let words = vocabulary::words().filter(|word| vocabulary::activation(word.name).is_none());
    let mut of_parts: Vec<Item> = vec![
        item("hidden = 4 * d_model", "a field with its default: a number, `true`, `false` or an activation"),
        item("width = required", "a field, a number, that must be given"),
        item("h = silu(x)", "a named tensor; the last line has no name and is the result"),
        item("(a, b):", "the inputs, on the first line; without it there is one, `x`"),
        item("+ - * /", "sums, products and quotients, element by element"),
        item("silu(x), gelu(x), ...", "every activation; `activation(x)` if a field of that name is one"),
        item(
            "other[name](x)",
            "another part, of the spec or of the library; its fields have names: `width: 64`",
        ),
    ];
    of_parts.extend(words.map(|word| Item { name: word.usage(), doc: tidy(word.doc) }));
    let of_library = library().into_iter().map(|part| Item { name: part.name, doc: part.doc }).collect();
    vec![
        other(
            Sort::Subject,
            "library",
            "decoder.ffn",
            "Parts that every spec can use: in `ffn: swiglu` or `attention: mamba`, or called in a block's equation, `x + adapter(x)`. They are \
             written in this language; `trafoc explain NAME` shows the equation."
                .to_owned(),
            None,
            of_library,
        ),
        other(
            Sort::Subject,
            "part",
            "parts",
            "A part of your own: `unit: linear(silu(x), d_model)` under `parts`, or `part unit(x) { ... }` in the DSL. \
             Every call of a layer has its own parameters, and a name, `linear[up](x, hidden)`."
                .to_owned(),
            Some("the equation of the part; of the spec's numbers it sees only d_model, vocab, context and layers".to_owned()),
            of_parts,
        ),
        other(
            Sort::Subject,
            "!delete",
            "any key of a spec with `extends`",
            "Removes a key that the spec under `extends` has, or that a variant of a sweep would keep: `final_norm: !delete`. In \
             the DSL it is `final_norm = delete!`."
                .to_owned(),
            None,
            Vec::new(),
        ),
        other(
            Sort::Subject,
            "expression",
            "any number of a spec",
            "What can be written in place of a number: `8/3 * d_model`, `sqrt(d_model)`.".to_owned(),
            None,
            operators,
        ),
        other(
            Sort::Subject,
            "wiring",
            "decoder.block",
            "A named equation of a block: `block: pre_norm`. `trafoc explain NAME` shows its lines.".to_owned(),
            None,
            names,
        ),
        other(
            Sort::Subject,
            "equation",
            "decoder.block",
            "What a block computes, one statement per line: `x = x + attention(norm(x))`. The last value of \
                `x` is the block's result. With an encoder it begins with `(x, memory):`."
                .to_owned(),
            None,
            calls,
        ),
        other(
            Sort::Subject,
            "grid",
            "sweep.grid",
            "Every combination of values: `grid: {decoder.layers: [6, 12], d_model: [512, 768]}` is four variants, \
             such as `decoder.layers=6,d_model=512`."
                .to_owned(),
            Some("a map from paths of keys to lists of values".to_owned()),
            Vec::new(),
        ),
        other(
            Sort::Subject,
            "allow",
            "any comment of a spec or a recipe",
            "The comment `# trafoc: allow(beyond-end) the reason` leaves out warnings of this code in its line, or, on a line of \
             its own, in the entry that follows. Errors cannot be allowed, and `trafoc check` warns if there is nothing to leave \
             out."
                .to_owned(),
            None,
            Vec::new(),
        ),
    ]
}

/// The equations of the prelude, grouped by name, with the comments above them.
pub fn wirings() -> Vec<Topic> {
    equations(PRELUDE, "block ", |name| {
        other(Sort::Wiring, name, "decoder.block", String::new(), None, Vec::new())
    })
}

/// The parts of the library with their equations, and the comments above them.
pub fn library() -> Vec<Topic> {
    let fields = |name: &str| {
        let part = library::all().iter().find(|part| part.name == name)?;
        let lines: Vec<String> = part.fields.iter().map(OwnField::line).collect();
        Some(format!("the fields `{}`", lines.join("`, `")))
    };
    let of = |(text, slot): (&str, &str)| {
        equations(text, "part ", |name| {
            let path = format!("decoder.{slot}.{name}");
            let chain = path.split('.').map(str::to_owned).collect();
            Topic { chain, ..other(Sort::Part, name, &path, String::new(), fields(name), Vec::new()) }
        })
    };
    library::TEXTS.into_iter().flat_map(of).collect()
}

/// The equations of a text that begin with this word, grouped by name.
fn equations(text: &str, word: &str, topic: impl Fn(&str) -> Topic) -> Vec<Topic> {
    // Read as lines and not parsed, because the descriptions are comments, which no equation holds.
    let mut found: Vec<Topic> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    let mut comment = String::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("//") {
            comment = format!("{comment} {}", said.trim());
        } else if let Some(head) = line.strip_prefix(word) {
            let name = head.split('(').next().unwrap_or(head).to_owned();
            let index = *at.entry(name.clone()).or_insert_with(|| {
                found.push(Topic { doc: tidy(&comment), ..topic(&name) });
                found.len().saturating_sub(1)
            });
            current = Some(index);
            if let Some(topic) = found.get_mut(index) {
                topic.items.push(Item { name: head.trim_end_matches(" {").to_owned(), doc: String::new() });
            }
        } else if line.is_empty() {
            // What is above a blank line describes no equation: the head of the file.
            comment.clear();
        } else if line != "}"
            && let Some(item) = current.and_then(|i| found.get_mut(i)).and_then(|t| t.items.last_mut())
        {
            let gap = if item.doc.is_empty() { "" } else { "\n" };
            item.doc = format!("{}{gap}{}", item.doc, line.trim());
        }
    }
    found
}
