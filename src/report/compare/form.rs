//! A spec's normal form: the same tree for the same model, however its author wrote it.
//!
//! Two specs that differ in one knob have normal forms that differ in one place. Defaults are written out. A value
//! that follows from other fields (`head_dim` = `d_model / heads`) is marked with [`Form::Word::follows`]. Norms
//! that are all equal become one `norm`, and an equation of the prelude becomes its name. The blocks of a pattern
//! become one block, in which a field that varies has a value for [`Form::Each`] of them. [`node`] turns a form
//! into a tree that decodes to the original spec.
//!
//! Of two fields that determine each other, such as the width of a feed-forward part and its multiple of `d_model`,
//! the normal form derives one from the other. [`Wirings::comparable`] derives the other one if that is what all
//! authors wrote.

use indexmap::IndexMap;

use crate::diag::Sink;
use crate::field::definition::Definitions;
use crate::field::record::entry;
use crate::field::value::{DefaultDoc, Field, PartDoc, SlotDoc, Value, plain};
use crate::field::{Context, Places};
use crate::parts::ffn::mixture::Expert;
use crate::parts::position::scaling::Scaling;
use crate::parts::{Attention, Cross, Ffn, Head, Norm, OwnPart, Position, init, mask};
use crate::source::{SourceMap, Span};
use crate::spec::block::WIRING;
use crate::spec::wiring::{self, PartKind, Wiring};
use crate::spec::{Block, ModelSpec, Part, Stack, is_part, load};
use crate::syntax::tree::{Entry, Kind, Node, Style};

/// Fields by name, in the order in which they are read.
pub type Fields = IndexMap<String, Form>;

/// A value in a normal form.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A word, a number, a text or a list.
    Word {
        /// The value as a node of the spec's tree.
        node: Node,
        /// Whether it is derived from other fields, so that a spec may leave it out.
        follows: bool,
    },
    /// A part with its fields.
    Part(String, Fields),
    /// Fields that belong to no part, such as `bias: {qkv: false, out: true}`.
    Record(Fields),
    /// A value for each named block.
    Each(Fields),
}

impl Form {
    /// A word that is not derived from other fields.
    pub fn word(text: impl Into<String>) -> Form {
        Form::Word { node: plain(text), follows: false }
    }

    /// Whether this is a word that is derived from other fields.
    pub fn follows(&self) -> bool {
        matches!(self, Form::Word { follows: true, .. })
    }

    /// The fields of a part or a record.
    pub fn fields(&self) -> Option<&Fields> {
        match self {
            Form::Part(_, fields) | Form::Record(fields) => Some(fields),
            Form::Word { .. } | Form::Each(_) => None,
        }
    }

    fn fields_mut(&mut self) -> Option<&mut Fields> {
        match self {
            Form::Part(_, fields) | Form::Record(fields) => Some(fields),
            Form::Word { .. } | Form::Each(_) => None,
        }
    }

    /// Whether the author wrote the word at a path.
    fn is_written(&self, path: &[String]) -> bool {
        // Only what an author wrote has a place.
        matches!(self.get(path), Some(Form::Word { node, .. }) if node.span != Span::default())
    }

    /// Notes which fields of a part the author wrote, by giving their words a place.
    fn note_written(&mut self, places: &Places) {
        for (key, field) in self.fields_mut().into_iter().flatten() {
            if let Form::Word { node, .. } = field
                && places.has(key)
            {
                node.span = places.of(key);
            }
        }
    }

    /// Marks the fields of a part of the spec's own that have their defaults.
    fn note_followers(&mut self, part: &OwnPart) {
        for (key, field) in self.fields_mut().into_iter().flatten() {
            if let Form::Word { follows, .. } = field {
                *follows = part.follows.contains(key);
            }
        }
    }

    /// The value at a path of field names.
    pub fn get(&self, path: &[String]) -> Option<&Form> {
        path.iter().try_fold(self, |form, key| form.fields()?.get(key))
    }

    /// A path as `--set` takes it: it contains the names of parts, except those that are implied.
    pub fn spelled(&self, path: &[String]) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut at = Some(self);
        for key in path {
            if let Some(Form::Part(name, _)) = at
                && !is_implied(name)
            {
                words.push(name);
            }
            words.push(key);
            at = at.and_then(|form| form.fields()?.get(key));
        }
        words.join(".")
    }

    /// Sets or removes the value at a path. Does nothing if a part of the path is missing.
    pub fn put(&mut self, path: &[String], value: Option<Form>) {
        let Some((last, parent)) = path.split_last() else { return };
        let Some(fields) = self.at(parent).and_then(Form::fields_mut) else { return };
        match value {
            Some(value) => {
                fields.insert(last.clone(), value);
            }
            None => {
                fields.shift_remove(last);
            }
        }
    }

    fn at(&mut self, path: &[String]) -> Option<&mut Form> {
        path.iter().try_fold(self, |form, key| form.fields_mut()?.get_mut(key))
    }

    /// The form of a node, in which these parts may be of the spec's own.
    fn from_node(node: &Node, own: &Definitions) -> Form {
        let fields = |entries: &[Entry]| -> Fields {
            entries.iter().map(|e| (e.key.clone(), Form::from_node(&e.value, own))).collect()
        };
        match &node.kind {
            Kind::Map(entries) => match entries.as_slice() {
                // A map with one key is a part only if the key names one: `{qkv: false}` is a record.
                [only] if (is_part(&only.key) || own.has(&only.key)) && only.value.entries().is_some() => {
                    Form::Part(only.key.clone(), fields(only.value.entries().unwrap_or(&[])))
                }
                all => Form::Record(fields(all)),
            },
            Kind::Scalar(_) | Kind::List(_) | Kind::Null | Kind::Delete => {
                Form::Word { node: node.clone(), follows: false }
            }
        }
    }
}

/// The wirings of the prelude by name, for stacks without and with cross attention.
pub struct Wirings {
    sources: SourceMap,
    named: Vec<(String, Wiring)>,
}

impl Default for Wirings {
    fn default() -> Self {
        let sources = load::sources();
        let mut sink = Sink::new();
        let equations = wiring::prelude(&sources);
        let mut named = Vec::new();
        for equation in equations {
            let Some(name) = &equation.name else { continue };
            // A second parameter is the encoder's output, which only cross attention reads.
            let has_memory = equation.params.len() == 2;
            let cx = &mut Context::new(&sources, &mut sink);
            // Resolved, because wirings are compared without their texts: an author's equation that equals
            // one of these is recognised, however it is spaced.
            if let Some(wiring) = wiring::resolve(&plain(name.clone()), equations, has_memory, cx) {
                named.push((name.clone(), wiring));
            }
        }
        Self { sources, named }
    }
}

impl Wirings {
    /// Decodes a form as a spec; `None` if it is not a valid one.
    pub fn decode(&self, form: &Form) -> Option<ModelSpec> {
        load::decode(&self.sources, &node(form), &mut Sink::new())
    }

    fn name(&self, wiring: &Wiring) -> Form {
        match self.named.iter().find(|(_, known)| known == wiring) {
            Some((name, _)) => Form::word(name.clone()),
            None => {
                // An equation that is no wiring of the prelude is shown as a whole.
                let text = format!("{}\n", wiring.spelled);
                Form::Word { node: Node::scalar(text, Style::Block, Span::default()), follows: false }
            }
        }
    }

    /// The normal form of a spec.
    pub fn normal(&self, spec: &ModelSpec) -> Form {
        let mut form = self.whole(spec);
        let mut open = Vec::new();
        formulas(&form, &mut Vec::new(), &mut open);
        // Fields that are left out together must decode to the same values; a field that does not is
        // written again. A field may follow from another that is left out, so this is repeated; a few
        // rounds are enough.
        for _ in 0..4 {
            mark(&mut form, &open, true);
            let Some(again) = self.decode(&form).map(|spec| self.whole(&spec)) else { break };
            let differs = |path: &&Vec<String>| match (again.get(path), form.get(path)) {
                (Some(Form::Word { node: a, .. }), Some(Form::Word { node: b, .. })) => a != b,
                (_, _) => true,
            };
            let given: Vec<Vec<String>> = open.iter().filter(differs).cloned().collect();
            if given.is_empty() {
                return form;
            }
            mark(&mut form, &given, false);
            open.retain(|path| !given.contains(path));
        }
        // The rounds did not settle. So the fields are left out one at a time, each only if the spec stays
        // the same.
        mark(&mut form, &open, false);
        let mut settled = form;
        for path in &open {
            let mut less = settled.clone();
            mark(&mut less, std::slice::from_ref(path), true);
            if self.decode(&less).as_ref() == Some(spec) {
                settled = less;
            }
        }
        settled
    }

    /// The normal forms of specs that are compared with each other, by the fields that their authors wrote:
    /// where all wrote a field with a formula, and none wrote the field in this formula that has a default,
    /// the latter follows from the former. If a form changed in this way no longer decodes to its spec, all
    /// remain as they are.
    pub fn comparable(&self, specs: &[&ModelSpec]) -> Vec<Form> {
        let forms: Vec<Form> = specs.iter().map(|spec| self.normal(spec)).collect();
        let mut pairs = Vec::new();
        // What all forms share is in the first one, too.
        forms.iter().take(1).for_each(|form| determining(form, &mut Vec::new(), &mut pairs));
        pairs.retain(|(by_default, by_formula)| {
            forms.iter().all(|form| form.is_written(by_formula) && !form.is_written(by_default))
        });
        let as_written = |(form, spec): (&Form, &&ModelSpec)| {
            let mut form = form.clone();
            for (by_default, by_formula) in &pairs {
                mark(&mut form, std::slice::from_ref(by_formula), false);
                mark(&mut form, std::slice::from_ref(by_default), true);
            }
            (self.decode(&form).as_ref() == Some(*spec)).then_some(form)
        };
        // All or none: forms in which different fields follow could not be compared.
        forms.iter().zip(specs).map(as_written).collect::<Option<_>>().unwrap_or(forms)
    }

    /// The form with every field written out.
    fn whole(&self, spec: &ModelSpec) -> Form {
        let encoded = spec.encode();
        let mut fields = Fields::new();
        for e in encoded.entries().unwrap_or(&[]) {
            let value = match e.key.as_str() {
                // The version of the language is not a property of the model.
                "trafo" => continue,
                "encoder" => spec.encoder.as_ref().map(|stack| self.stack(stack, &spec.parts)),
                "decoder" => spec.decoder.as_ref().map(|stack| self.stack(stack, &spec.parts)),
                _ => Some(Form::from_node(&e.value, &spec.parts)),
            };
            fields.extend(value.map(|value| (e.key.clone(), value)));
        }
        Form::Record(fields)
    }

    fn stack(&self, stack: &Stack, own: &Definitions) -> Form {
        let mut fields = Fields::new();
        fields.insert("embed".into(), Form::from_node(&stack.embed.encode(), own));
        fields.insert("layers".into(), Form::word(stack.layers.to_string()));
        // The stack says how often each block is applied, the spec how many different blocks there are.
        if let Some(share) = stack.layers.checked_div(stack.each).filter(|_| stack.each > 1) {
            fields.insert("share".into(), Form::word(share.to_string()));
        }
        let names: Vec<String> = (0..stack.blocks.len()).map(|i| stack.block_name(i)).collect();
        if let Some((key, order)) = order(stack, &names) {
            fields.insert(key.into(), Form::Word { node: order, follows: false });
        }
        let position = &stack.embed.position;
        // All blocks have the position of the embedding, where it is shown, unless one of them has its own.
        let own_position = stack.blocks.iter().any(|block| block.position != *position);
        let blocks: Vec<(&String, Fields)> =
            names.iter().zip(stack.blocks.iter().map(|block| self.block(block, own_position, own))).collect();
        let mut keys: Vec<&String> = Vec::new();
        for key in blocks.iter().flat_map(|(_, block)| block.keys()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for key in keys {
            let values: Vec<(&String, &Form)> =
                blocks.iter().filter_map(|(name, block)| Some((*name, block.get(key)?))).collect();
            let value = match values.as_slice() {
                [(_, only)] if blocks.len() == 1 => (*only).clone(),
                all if all.len() == blocks.len() => merged(all),
                // Merged, it would be a field of all blocks.
                some => each(some),
            };
            fields.insert(key.clone(), value);
        }
        let last = match &stack.final_norm {
            None => Form::word("false"),
            Some(norm) => {
                let norm = Form::from_node(&norm.encode(), own);
                // Otherwise a norm that both share would be two differences, in the blocks and after them.
                if fields.get("norm") == Some(&norm) { Form::word("true") } else { norm }
            }
        };
        fields.insert("final_norm".into(), last);
        Form::Record(fields)
    }

    /// A block. Instances of one kind that are all equal are written once, for the kind.
    fn block(&self, block: &Block, own_position: bool, own: &Definitions) -> Fields {
        let mut fields = Fields::new();
        fields.insert(WIRING.into(), self.name(&block.wiring));
        if own_position {
            fields.insert("position".into(), Form::from_node(&block.position.encode(), own));
        }
        let mut words: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
        for site in block.wiring.sites.iter().filter(|site| site.kind == PartKind::Own) {
            if !words.contains(&site.word.as_str()) {
                words.push(&site.word);
            }
        }
        for word in words {
            let of_word = |name: &str| block.wiring.sites.iter().any(|s| s.word == word && s.name == name);
            let instances: Vec<(&String, Form)> = block
                .instances
                .iter()
                .filter(|i| of_word(&i.name))
                .map(|i| (&i.name, instance(&i.part, own)))
                .collect();
            match instances.as_slice() {
                [] => {}
                [(_, first), rest @ ..] if rest.iter().all(|(_, form)| form == first) => {
                    fields.insert(word.to_owned(), first.clone());
                }
                all => fields.extend(all.iter().map(|(name, form)| ((*name).clone(), form.clone()))),
            }
        }
        fields
    }
}

/// The form of an instance's part, in which the fields that the author wrote have a place.
fn instance(part: &Part, own: &Definitions) -> Form {
    let mut form = Form::from_node(&part.encode(), own);
    match part {
        Part::Norm(part) => form.note_written(part.places()),
        Part::Attention(part) => form.note_written(part.places()),
        Part::Cross(part) => form.note_written(&part.places),
        Part::Ffn(part) => {
            form.note_written(part.places());
            if let Ffn::Own(part) = part {
                form.note_followers(part);
            }
            if let Ffn::Mixture(mixture) = part
                && let Some(expert) = form.fields_mut().and_then(|fields| fields.get_mut("expert"))
            {
                expert.note_written(mixture.expert.places());
                if let Expert::Own(part) = mixture.expert.as_ref() {
                    expert.note_followers(part);
                }
            }
        }
        Part::Gain(part) => form.note_written(&part.places),
        Part::Own(part) | Part::Reading(part) => form.note_written(&part.places),
    }
    if let Some(part) = part.own() {
        form.note_followers(part);
    }
    form
}

/// The order of the blocks: a `pattern` if one cycle covers all layers, else `runs`.
fn order(stack: &Stack, names: &[String]) -> Option<(&'static str, Node)> {
    let list = |items: Vec<Node>| Node { kind: Kind::List(items), span: Span::default() };
    let cycle = |ids: &[usize]| list(ids.iter().filter_map(|i| names.get(*i)).map(plain).collect());
    match (stack.blocks.as_slice(), stack.segments.as_slice()) {
        // Whatever order the author wrote, with one block it says no more than `layers`.
        ([_], _) | ([], _) => None,
        (_, [only]) => Some(("pattern", cycle(&only.cycle))),
        (_, several) => {
            let run = |s: &crate::spec::Segment| {
                let count = entry("count", plain(s.count.to_string()));
                Node::map(vec![count, entry("cycle", cycle(&s.cycle))], Span::default())
            };
            Some(("runs", list(several.iter().map(run).collect())))
        }
    }
}

/// Merges the values of all blocks; only the innermost fields that vary become [`Form::Each`].
fn merged(values: &[(&String, &Form)]) -> Form {
    let Some((_, first)) = values.first() else { return Form::Record(Fields::new()) };
    if values.iter().all(|(_, value)| value == first) {
        return (*first).clone();
    }
    let inside = || -> Option<Fields> {
        let fields: Vec<(&String, &Fields)> =
            values.iter().map(|(name, value)| Some((*name, value.fields()?))).collect::<Option<_>>()?;
        let (_, keys) = fields.first()?;
        let alike = values.iter().all(|(_, value)| match (first, value) {
            (Form::Part(a, _), Form::Part(b, _)) => a == b,
            (Form::Record(_), Form::Record(_)) => true,
            (Form::Word { .. } | Form::Part(..) | Form::Record(_) | Form::Each(_), _) => false,
        });
        let same_keys =
            fields.iter().all(|(_, f)| f.len() == keys.len() && f.keys().all(|k| keys.contains_key(k)));
        if !alike || !same_keys {
            return None;
        }
        let of = |key: &String| {
            let values: Vec<(&String, &Form)> =
                fields.iter().filter_map(|(name, f)| Some((*name, f.get(key)?))).collect();
            (key.clone(), merged(&values))
        };
        Some(keys.keys().map(of).collect())
    };
    match (first, inside()) {
        (Form::Part(name, _), Some(fields)) => Form::Part(name.clone(), fields),
        (_, Some(fields)) => Form::Record(fields),
        (_, None) => each(values),
    }
}

fn each(values: &[(&String, &Form)]) -> Form {
    Form::Each(values.iter().map(|(name, value)| ((*name).clone(), (*value).clone())).collect())
}

/// The paths of all fields whose default is a formula.
fn formulas(form: &Form, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let Some(fields) = form.fields() else { return };
    let known: Vec<Field> = match form {
        Form::Part(name, _) => part(name).map(|p| (p.fields)()).unwrap_or_default(),
        // `cross` is a part without a slot, so its form has no name.
        Form::Record(_) if path.last().is_some_and(|key| key == PartKind::Cross.word()) => Cross::fields(),
        Form::Record(_) | Form::Word { .. } | Form::Each(_) => Vec::new(),
    };
    for (key, value) in fields {
        path.push(key.clone());
        let of_formula = |f: &Field| f.name == key && matches!(f.default, DefaultDoc::Formula(_));
        if known.iter().any(of_formula) && matches!(value, Form::Word { .. }) {
            found.push(path.clone());
        }
        formulas(value, path, found);
        path.pop();
    }
}

/// The paths of a field with a default and of one whose formula mentions it, for all such pairs in parts.
fn determining(form: &Form, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Vec<String>)>) {
    let Some(fields) = form.fields() else { return };
    let known: Vec<Field> = match form {
        Form::Part(name, _) => part(name).map(|p| (p.fields)()).unwrap_or_default(),
        Form::Record(_) | Form::Word { .. } | Form::Each(_) => Vec::new(),
    };
    let at = |field: &Field| [path.as_slice(), &[field.name.to_owned()]].concat();
    for field in &known {
        let DefaultDoc::Formula(formula) = &field.default else { continue };
        let mentions = |other: &&Field| {
            matches!(other.default, DefaultDoc::Value(_))
                // Whole words, so that a name within a longer one is not found.
                && formula.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == other.name)
        };
        found.extend(known.iter().filter(mentions).map(|other| (at(other), at(field))));
    }
    for (key, value) in fields {
        path.push(key.clone());
        determining(value, path, found);
        path.pop();
    }
}

fn mark(form: &mut Form, paths: &[Vec<String>], on: bool) {
    for path in paths {
        if let Some(Form::Word { follows, .. }) = form.at(path) {
            *follows = on;
        }
    }
}

/// The part with this name, in any slot.
pub fn part(name: &str) -> Option<PartDoc> {
    SLOTS.iter().find_map(|slot| slot().parts.into_iter().find(|p| p.name == name))
}

/// Whether the part's fields may be written without its name.
fn is_implied(name: &str) -> bool {
    SLOTS.iter().any(|slot| slot().implied == Some(name))
}

const SLOTS: [fn() -> SlotDoc; 9] = [
    Norm::documentation,
    Position::documentation,
    Scaling::documentation,
    Attention::documentation,
    Ffn::documentation,
    Expert::documentation,
    mask::MaskPart::documentation,
    Head::documentation,
    init::Distribution::documentation,
];

/// The tree of a form, without the values that are derived from others.
pub fn node(form: &Form) -> Node {
    let Form::Record(fields) = form else { return value(form, None) };
    let entries = fields.iter().map(|(key, form)| match (key.as_str(), form) {
        ("encoder" | "decoder", Form::Record(fields)) => entry(key, stack_node(fields)),
        _ => entry(key, value(form, None)),
    });
    Node::map(entries.collect(), Span::default())
}

/// Fields of a stack that do not belong to its blocks.
const OF_STACK: &[&str] = &["embed", "layers", "share", "pattern", "runs", "final_norm"];

fn stack_node(fields: &Fields) -> Node {
    let (own, of_block): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(key, _)| OF_STACK.contains(&key.as_str()));
    let mut entries: Vec<Entry> = own.iter().map(|(key, form)| entry(key, value(form, None))).collect();
    let names = blocks(fields);
    // The fields that all blocks share are written in the stack; each block has only what differs.
    let (varied, shared): (Vec<_>, Vec<_>) =
        of_block.into_iter().partition(|(_, form)| varies(form) && !names.is_empty());
    entries.extend(shared.into_iter().map(|(key, form)| entry(key, value(form, None))));
    let block = |name: &String| {
        let here = |form: &Form| !matches!(form, Form::Each(values) if !values.contains_key(name));
        let own = varied.iter().filter(|(_, form)| here(form));
        entry(
            name,
            Node::map(own.map(|(key, form)| entry(key, value(form, Some(name)))).collect(), Span::default()),
        )
    };
    if !names.is_empty() {
        entries.push(entry("blocks", Node::map(names.iter().map(block).collect(), Span::default())));
    }
    Node::map(entries, Span::default())
}

/// Whether the form has a value somewhere that varies between blocks.
fn varies(form: &Form) -> bool {
    matches!(form, Form::Each(_)) || form.fields().is_some_and(|fields| fields.values().any(varies))
}

/// The names of the blocks in a pattern or in runs, each once.
fn blocks(fields: &Fields) -> Vec<String> {
    fn collect(node: &Node, names: &mut Vec<String>) {
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| collect(item, names)),
            Kind::Scalar(s) if !names.contains(&s.text) => names.push(s.text.clone()),
            Kind::Map(_) => node.get("cycle").into_iter().for_each(|cycle| collect(cycle, names)),
            Kind::Scalar(_) | Kind::Null | Kind::Delete => {}
        }
    }
    let mut names = Vec::new();
    for key in ["pattern", "runs"] {
        if let Some(Form::Word { node, .. }) = fields.get(key) {
            collect(node, &mut names);
        }
    }
    names
}

/// The tree of a value as the named block has it.
fn value(form: &Form, block: Option<&str>) -> Node {
    let map = |fields: &Fields| {
        let is_given = |form: &Form| !matches!(form, Form::Word { follows: true, .. });
        let entries = fields.iter().filter(|(_, form)| is_given(form));
        Node::map(entries.map(|(key, form)| entry(key, value(form, block))).collect(), Span::default())
    };
    match form {
        // A place would only say that the author wrote the field.
        Form::Word { node, .. } => Node { span: Span::default(), ..node.clone() },
        Form::Part(name, fields) => Node::map(vec![entry(name, map(fields))], Span::default()),
        Form::Record(fields) => map(fields),
        Form::Each(values) => {
            // Without a block, as after a knob that removed the pattern, the first value is used for all.
            let own = block.and_then(|name| values.get(name)).or(values.values().next());
            own.map_or_else(|| plain("none"), |form| value(form, block))
        }
    }
}
