//! From a spec to its normal form.
//!
//! Of two fields that determine each other, such as the width of a feed-forward part and its multiple of `d_model`,
//! the normal form derives one from the other. [`Wirings::comparable`] derives the other one if that is what all
//! authors wrote.

use std::sync::Arc;

use super::form::{Fields, Form, node, part};
use crate::diag::Sink;
use crate::field::Context;
use crate::field::definition::{Definition, Definitions};
use crate::field::record::entry;
use crate::field::value::{DefaultDoc, Field, Value, plain};
use crate::parts::ffn::mixture::Expert;
use crate::parts::{Cross, Ffn};
use crate::source::{SourceMap, Span};
use crate::spec::block::WIRING;
use crate::spec::reach::with_compared_masks;
use crate::spec::wiring::{self, PartKind, Wiring};
use crate::spec::{Block, ModelSpec, Part, Stack, library, load};
use crate::syntax::tree::{Kind, Node, Style};

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
        let apart = Apart { positions: with_own_positions(&[spec]), last: Vec::new() };
        self.normal_with(spec, &apart)
    }

    /// The normal form with what these stacks show apart.
    fn normal_with(&self, spec: &ModelSpec, apart: &Apart) -> Form {
        let mut form = self.whole(spec, apart);
        let mut open = Vec::new();
        formulas(&form, &mut Vec::new(), &mut open);
        // Fields that are left out together must decode to the same values; a field that does not is
        // written again. A field may follow from another that is left out, so this is repeated; a few
        // rounds are enough.
        for _ in 0..4 {
            mark(&mut form, &open, true);
            let Some(again) = self.decode(&form).map(|spec| self.whole(&spec, apart)) else { break };
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
    /// remain as they are. Masks that hide the same are the same, and the last norms of stacks are compared with each
    /// other unless all are those of the blocks.
    pub fn comparable(&self, specs: &[&ModelSpec]) -> Vec<Form> {
        let specs: Vec<ModelSpec> = specs.iter().map(|spec| with_compared_masks(spec)).collect();
        let specs: Vec<&ModelSpec> = specs.iter().collect();
        let apart = Apart { positions: with_own_positions(&specs), last: Vec::new() };
        let wholes: Vec<Form> = specs.iter().map(|spec| self.whole(spec, &apart)).collect();
        let has_own = |stack: &&str| {
            let at = [(*stack).to_owned(), FINAL_NORM.to_owned()];
            wholes.iter().any(|form| matches!(form.get(&at), Some(Form::Part(..))))
        };
        let apart = Apart { last: ["encoder", "decoder"].into_iter().filter(has_own).collect(), ..apart };
        let forms: Vec<Form> = specs.iter().map(|spec| self.normal_with(spec, &apart)).collect();
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
        forms.iter().zip(&specs).map(as_written).collect::<Option<_>>().unwrap_or(forms)
    }

    /// The form with every field written out.
    fn whole(&self, spec: &ModelSpec, apart: &Apart) -> Form {
        let encoded = spec.encode();
        let stack = |key: &str, stack: &Option<Stack>| {
            let apart = (apart.positions.contains(&key), apart.last.contains(&key));
            stack.as_ref().map(|stack| self.stack(stack, apart, &spec.parts))
        };
        let mut fields = Fields::new();
        for e in encoded.entries().unwrap_or(&[]) {
            let value = match e.key.as_str() {
                // The version of the language is not a property of the model.
                "trafo" => continue,
                // Neither is what every spec can use without defining it.
                "parts" => own_parts(&spec.parts).map(|own| Form::from_node(&own, &spec.parts)),
                "encoder" => stack("encoder", &spec.encoder),
                "decoder" => stack("decoder", &spec.decoder),
                _ => Some(Form::from_node(&e.value, &spec.parts)),
            };
            fields.extend(value.map(|value| (e.key.clone(), value)));
        }
        Form::Record(fields)
    }

    fn stack(&self, stack: &Stack, (positions, last): (bool, bool), own: &Definitions) -> Form {
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
        let blocks: Vec<(&String, Fields)> =
            names.iter().zip(stack.blocks.iter().map(|block| self.block(block, positions, own))).collect();
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
                if !last && fields.get("norm") == Some(&norm) { Form::word("true") } else { norm }
            }
        };
        fields.insert(FINAL_NORM.into(), last);
        Form::Record(fields)
    }

    /// A block. Instances of one kind that are all equal are written once, for the kind.
    fn block(&self, block: &Block, positions: bool, own: &Definitions) -> Fields {
        let mut fields = Fields::new();
        fields.insert(WIRING.into(), self.name(&block.wiring));
        if positions && block.is_positioned() {
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

/// The key of a stack for the norm after its last block.
const FINAL_NORM: &str = "final_norm";

/// The stacks of which the forms show something apart that others have from elsewhere.
struct Apart {
    /// Those whose blocks have their positions, and not those of the embedding.
    positions: Vec<&'static str>,
    /// Those with the norm after the last block, and not whether it is that of the blocks.
    last: Vec<&'static str>,
}

/// The parts that a spec defines or has from files; `None` if it has none but those of the library.
fn own_parts(parts: &Definitions) -> Option<Node> {
    let is_own = |part: &&Arc<Definition>| !library::all().contains(part);
    let own: Vec<_> = parts.all.iter().filter(is_own).map(|definition| definition.encode()).collect();
    (!own.is_empty()).then(|| Node::map(own, Span::default()))
}

/// The stacks in which a block of some spec has positions other than those of the embedding. In any other stack all
/// blocks have those, and they are shown there alone. The forms of all specs show the same, to be compared.
fn with_own_positions(specs: &[&ModelSpec]) -> Vec<&'static str> {
    let has_own = |stack: &Option<Stack>| {
        stack.iter().any(|stack| {
            let own = |block: &Block| block.is_positioned() && block.position != stack.embed.position;
            stack.blocks.iter().any(own)
        })
    };
    let encoder = specs.iter().any(|spec| has_own(&spec.encoder)).then_some("encoder");
    let decoder = specs.iter().any(|spec| has_own(&spec.decoder)).then_some("decoder");
    encoder.into_iter().chain(decoder).collect()
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
    let Some(fields) = form.inside() else { return };
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
    let Some(fields) = form.inside() else { return };
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
