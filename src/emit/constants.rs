//! The sizes at the top of a file, and which number in the code is which of them.
//!
//! A size is named by the author's words, which it carries through the graph ([`Extent`]); a scalar by what it is
//! (an epsilon, a probability). Nothing is named because it happens to be equal to something else.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::name;
use crate::ir::extent::Word;
use crate::ir::op::FrequencyRule;
use crate::ir::{Extent, Graph, Init, Layer, MemberKind, Module, ModuleId, Op, stack_len};

/// What a number is that no field of the spec gives as a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A field of the spec.
    Field,
    /// Blocks of a stack.
    Layers,
    /// Base of rotary positions.
    Theta,
    /// Added to a variance.
    Eps,
    /// Probability of dropping.
    Dropout,
    /// Standard deviation of fresh weights.
    Std,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Field => "SIZE",
            Kind::Layers => "LAYERS",
            Kind::Theta => "THETA",
            Kind::Eps => "EPS",
            Kind::Dropout => "DROPOUT",
            Kind::Std => "INIT_STD",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Kind::Field => "A size of the spec.",
            Kind::Layers => "Blocks of the stack.",
            Kind::Theta => "Base of the rotary angles.",
            Kind::Eps => "Added to the variance in norms.",
            Kind::Dropout => "Probability of dropping a feature in training.",
            Kind::Std => "Standard deviation of fresh weights.",
        }
    }
}

/// Fields in the order they are written at the top of a file, and what each is. Others follow in the order they
/// are met.
const FIELDS: &[(&str, &str)] = &[
    ("vocab", "Token ids the model knows."),
    ("source_vocab", "Token ids of the source."),
    ("context", "The longest sequence the model is meant for."),
    ("d_model", "Features of the residual stream."),
    ("heads", "Heads of queries."),
    ("kv_heads", "Heads of keys and values, each shared by `HEADS / KV_HEADS` heads of queries."),
    ("head_dim", "Features of a head."),
    ("value_dim", "Features of a head of values."),
    ("query_rank", "Features of the latent vector that queries come from."),
    ("kv_rank", "Features of the latent vector that keys and values come from."),
    ("content_dim", "Features of a head that positions do not turn."),
    ("rotary_dim", "Features of a head that positions turn."),
    ("hidden", "Features inside a feed-forward."),
    ("experts", "Experts of a mixture."),
    ("top_k", "Experts a token is sent to."),
    ("groups", "Groups of experts."),
    ("groups_kept", "Groups of experts a token may use."),
    ("score_of", "Experts whose affinities make up the score of their group."),
    ("embed_dim", "Features of the token table."),
    ("segments", "Token types."),
    ("languages", "Languages the model knows."),
    ("channels", "Colour channels of an image."),
    ("patch_size", "Side of a patch, in pixels."),
    ("positions", "Patches of an image, and what is put before them."),
    ("registers", "Register tokens."),
    ("classes", "Classes."),
    ("project", "Features of the vector the model gives."),
    ("buckets", "Buckets of relative positions."),
];

/// A value as a key: integers and the bits of floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A `usize`.
    Int(u64),
    /// An `f64`.
    Float(f64),
}

#[derive(Clone, Debug)]
struct Constant {
    kind: Kind,
    /// The field's name in the spec, for [`Kind::Field`].
    field: &'static str,
    name: String,
    value: Number,
    /// For the length of a stack: whose.
    owner: Option<ModuleId>,
    /// The definition, when it is more than the number.
    formula: Option<String>,
}

/// The constants of a file. Only those that are asked for are written.
#[derive(Clone, Debug)]
pub struct Constants {
    all: Vec<Constant>,
    used: RefCell<BTreeSet<usize>>,
}

impl Constants {
    /// Finds them in a graph.
    pub fn of(graph: &Graph) -> Self {
        let mut found = Found::default();
        if let Some(vocab) = graph.vocab {
            found.size(Extent::new("vocab", vocab), "");
        }
        found.size(Extent::new("context", graph.context), "");
        found.walk(graph, graph.root);
        Self { all: found.name(), used: RefCell::default() }
    }

    /// A size as an expression that holds together like a product: `HEADS * HEAD_DIM`, `(KV_RANK + ROTARY_DIM)`.
    pub fn size(&self, size: Extent) -> String {
        match self.expression(size) {
            (text, true) => format!("({text})"),
            (text, false) => text,
        }
    }

    /// The same where a sum needs no parentheses: an argument, a size in a list.
    pub fn argument(&self, size: Extent) -> String {
        self.expression(size).0
    }

    /// The expression, and whether it is a sum. What all its products share is written once.
    fn expression(&self, size: Extent) -> (String, bool) {
        let terms = size.terms();
        let shared: Vec<Word> = match terms.as_slice() {
            [(_, first), rest @ ..] if !rest.is_empty() => {
                let is_shared = |word: &&Word| rest.iter().all(|(_, words)| words.contains(word));
                first.iter().filter(is_shared).copied().collect()
            }
            _ => Vec::new(),
        };
        let own = |words: &[Word]| {
            let mut rest = words.to_vec();
            for word in &shared {
                rest.iter().position(|own| own == word).map(|at| rest.remove(at));
            }
            rest
        };
        let terms: Vec<String> =
            terms.iter().map(|(times, words)| self.product(*times, &own(words))).collect();
        match (terms.as_slice(), shared.is_empty()) {
            ([], _) => ("0".to_owned(), false),
            ([one], _) => (one.clone(), false),
            (several, true) => (several.join(" + "), true),
            (several, false) => (format!("{} * ({})", self.product(1, &shared), several.join(" + ")), false),
        }
    }

    fn product(&self, times: u64, words: &[Word]) -> String {
        let named = words.iter().map(|word| self.field(*word));
        let number = (times != 1 || words.is_empty()).then(|| grouped(times));
        number.into_iter().chain(named).collect::<Vec<_>>().join(" * ")
    }

    /// The constant of a field, or its number where the file has none.
    fn field(&self, word: Word) -> String {
        let is =
            |c: &Constant| c.kind == Kind::Field && c.field == word.name && c.value == Number::Int(word.n);
        self.named(is).unwrap_or_else(|| grouped(word.n))
    }

    /// The constant of a field of that value, if there is one.
    pub fn known(&self, field: &str, n: u64) -> Option<String> {
        self.named(|c| c.kind == Kind::Field && c.field == field && c.value == Number::Int(n))
    }

    /// The text of a float.
    pub fn float(&self, kind: Kind, value: f64) -> String {
        self.named(|c| c.kind == kind && c.value == Number::Float(value)).unwrap_or_else(|| float(value))
    }

    /// The length of a stack of a module.
    pub fn layers(&self, owner: ModuleId, value: u64) -> String {
        let is = |c: &Constant| c.owner == Some(owner) && c.value == Number::Int(value);
        self.named(is).unwrap_or_else(|| value.to_string())
    }

    fn named(&self, is: impl Fn(&Constant) -> bool) -> Option<String> {
        let at = self.all.iter().position(is)?;
        self.used.borrow_mut().insert(at);
        self.all.get(at).map(|constant| constant.name.clone())
    }

    /// The definitions of those that were used, with the vocabulary and the context always.
    pub fn definitions(&self) -> Vec<String> {
        let mut used = self.used.borrow().clone();
        for (i, constant) in self.all.iter().enumerate() {
            let in_formula = self.all.iter().enumerate().any(|(j, other)| {
                used.contains(&j) && other.formula.as_ref().is_some_and(|f| f.contains(&constant.name))
            });
            if in_formula || matches!(constant.field, "vocab" | "context") {
                used.insert(i);
            }
        }
        let all = self.all.iter().enumerate().filter(|(i, _)| used.contains(i));
        all.map(|(_, constant)| {
            let (ty, number) = match constant.value {
                Number::Int(n) => ("usize", grouped(n)),
                Number::Float(x) => ("f64", float(x)),
            };
            let value = constant.formula.clone().unwrap_or(number);
            format!("/// {}\npub const {}: {ty} = {value};", constant.doc(), constant.name)
        })
        .collect()
    }
}

impl Constant {
    fn doc(&self) -> String {
        match (self.kind, self.name.strip_suffix("_LAYERS")) {
            (Kind::Layers, Some(stack)) => format!("Blocks of the {}.", stack.to_lowercase()),
            (Kind::Field, _) => match FIELDS.iter().find(|(field, _)| *field == self.field) {
                Some((_, doc)) => (*doc).to_owned(),
                None => format!("`{}` of the spec.", self.field),
            },
            _ => self.kind.doc().to_owned(),
        }
    }
}

/// A number that may become a constant.
#[derive(Clone, Debug)]
struct Candidate {
    kind: Kind,
    field: &'static str,
    /// What would tell it from another of its kind: a module's name.
    scope: String,
    value: Number,
    owner: Option<ModuleId>,
}

/// Numbers in order of appearance.
#[derive(Default)]
struct Found {
    all: Vec<Candidate>,
    seen: BTreeSet<usize>,
}

impl Found {
    fn size(&mut self, size: Extent, scope: &str) {
        for word in size.terms().into_iter().flat_map(|(_, words)| words) {
            self.add(Kind::Field, word.name, scope, Number::Int(word.n));
        }
    }

    fn add(&mut self, kind: Kind, field: &'static str, scope: &str, value: Number) {
        if !self.all.iter().any(|c| c.kind == kind && c.field == field && c.value == value) {
            self.all.push(Candidate { kind, field, scope: scope.to_owned(), value, owner: None });
        }
    }

    fn walk(&mut self, graph: &Graph, id: ModuleId) {
        let module = graph.module(id);
        let scope = name::snake(&module.name);
        for node in &module.nodes {
            if let Op::Scan { member, .. } = &node.op
                && let MemberKind::Stack(runs) = &module.member(*member).kind
            {
                let scope = if id == graph.root { &module.member(*member).name } else { &scope };
                self.all.push(Candidate {
                    kind: Kind::Layers,
                    field: "",
                    scope: scope.clone(),
                    value: Number::Int(stack_len(runs)),
                    owner: Some(id),
                });
            } else if let Op::Route(router) = &node.op {
                self.size(router.top_k, &scope);
                for size in router.groups.iter().flat_map(|g| [g.groups, g.keep, g.score_of]) {
                    self.size(size, &scope);
                }
            } else if let Op::Attention(attention) = &node.op
                && attention.dropout > 0.0
            {
                self.add(Kind::Dropout, "", &scope, Number::Float(attention.dropout));
            } else if let Op::Dropout { p } = &node.op {
                self.add(Kind::Dropout, "", &scope, Number::Float(*p));
            } else if let Op::RotaryTable { rotary, .. } = &node.op {
                self.size(rotary.dim, &scope);
                if rotary.rule == FrequencyRule::Plain {
                    self.add(Kind::Theta, "", &scope, Number::Float(rotary.theta));
                }
            }
        }
        for value in &module.values {
            for size in value.ty.shape.iter().filter_map(|dim| dim.extent()) {
                self.size(size, &scope);
            }
        }
        for member in &module.members {
            match &member.kind {
                MemberKind::Layer(layer) => self.layer(layer, module, &member.name),
                MemberKind::Module(child) => self.child(graph, *child),
                MemberKind::Stack(runs) => {
                    for child in super::plan::kinds(runs) {
                        self.child(graph, child);
                    }
                }
            }
        }
    }

    fn child(&mut self, graph: &Graph, id: ModuleId) {
        if self.seen.insert(id.0) {
            self.walk(graph, id);
        }
    }

    fn layer(&mut self, layer: &Layer, module: &Module, member: &str) {
        let scope = name::snake(&module.name);
        match layer {
            Layer::Linear { input, output, init, .. } => {
                self.size(*input, &scope);
                self.size(*output, &scope);
                self.std(init, member);
            }
            Layer::Embedding { rows, dim, init, .. } => {
                self.size(*rows, &scope);
                self.size(*dim, &scope);
                self.std(init, member);
            }
            Layer::Patches { channels, dim, size, init, .. } => {
                [channels, dim, size].into_iter().for_each(|size| self.size(*size, &scope));
                self.std(init, member);
            }
            Layer::Param { shape, init, .. } => {
                shape.iter().for_each(|size| self.size(*size, &scope));
                self.std(init, member);
            }
            Layer::LayerNorm { dim, eps, .. } | Layer::RmsNorm { dim, eps, .. } => {
                self.size(*dim, &scope);
                self.add(Kind::Eps, "", &scope, Number::Float(*eps));
            }
        }
    }

    fn std(&mut self, init: &Init, member: &str) {
        if let Init::Normal { std } | Init::TruncatedNormal { std, .. } = init {
            self.add(Kind::Std, "", member, Number::Float(*std));
        }
    }

    /// One value of a kind or field takes its name; several take their scope's before it.
    fn name(self) -> Vec<Constant> {
        let mut out: Vec<Constant> = Vec::new();
        let mut sorted = self.all.clone();
        sorted.sort_by_key(|c| order(c.kind, c.field));
        for Candidate { kind, field, scope, value, owner } in sorted {
            let is_same = |c: &&Candidate| c.kind == kind && c.field == field;
            let several = self.all.iter().filter(is_same).count() > 1;
            let first = out.iter().all(|c| c.kind != kind || c.field != field);
            let plain = !several || (kind == Kind::Std && first) || scope.is_empty();
            let whole = if kind == Kind::Field { name::constant(field) } else { kind.name().to_owned() };
            let base = if kind == Kind::Std && !first { "STD".to_owned() } else { whole.clone() };
            let wanted = if plain { whole } else { format!("{}_{base}", name::constant(&scope)) };
            let mut name = wanted.clone();
            let mut n = 2;
            while out.iter().any(|c| c.name == name) {
                name = format!("{wanted}_{n}");
                n += 1;
            }
            let formula = head_dim_formula(field, value, &out);
            out.push(Constant { kind, field, name, value, owner, formula });
        }
        out
    }
}

/// Sizes by [`FIELDS`], the lengths of stacks after the model's width, scalars last.
fn order(kind: Kind, field: &str) -> (Kind, usize) {
    let at = |field: &str| FIELDS.iter().position(|(known, _)| *known == field).unwrap_or(FIELDS.len());
    match kind {
        Kind::Layers => (Kind::Field, 2 * at("d_model") + 1),
        Kind::Field => (Kind::Field, 2 * at(field)),
        Kind::Theta | Kind::Eps | Kind::Dropout | Kind::Std => (kind, 0),
    }
}

/// `D_MODEL / HEADS` where that is what a head's width is.
fn head_dim_formula(field: &str, value: Number, known: &[Constant]) -> Option<String> {
    let only = |wanted: &str| {
        let mut all = known.iter().filter(|c| c.field == wanted);
        all.next().filter(|_| all.next().is_none())
    };
    let (d_model, heads) = (only("d_model")?, only("heads")?);
    match (field, value, d_model.value, heads.value) {
        ("head_dim", Number::Int(n), Number::Int(d), Number::Int(h)) if h.checked_mul(n) == Some(d) => {
            Some("D_MODEL / HEADS".to_owned())
        }
        _ => None,
    }
}

/// Digits in groups of three from five digits on: `40_000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(c);
    }
    out
}

/// A float that reads back to the same bits. What looks like a rounded mathematical constant is
/// written as the constant, or as a quotient, so that lints do not take it for one.
pub fn float(x: f64) -> String {
    use std::f64::consts;
    let known = [
        (consts::FRAC_1_SQRT_2, "std::f64::consts::FRAC_1_SQRT_2"),
        (consts::SQRT_2, "std::f64::consts::SQRT_2"),
        (consts::PI, "std::f64::consts::PI"),
        (consts::E, "std::f64::consts::E"),
        (consts::LN_2, "std::f64::consts::LN_2"),
        (consts::LN_10, "std::f64::consts::LN_10"),
    ];
    let others = [consts::FRAC_1_PI, consts::FRAC_2_PI, consts::FRAC_2_SQRT_PI, consts::LOG2_E];
    let more = [consts::LOG10_E, consts::LOG2_10, consts::LOG10_2, consts::FRAC_PI_2, consts::FRAC_PI_3];
    let last = [consts::FRAC_PI_4, consts::FRAC_PI_6, consts::FRAC_PI_8, consts::TAU];
    if let Some((_, name)) = known.iter().find(|(value, _)| *value == x) {
        return (*name).to_owned();
    }
    let all = known.iter().map(|(v, _)| *v).chain(others).chain(more).chain(last);
    if all.into_iter().any(|c| (x.abs() - c).abs() < 5e-3) && x.fract() != 0.0 {
        return format!("{:?} / 2.0", x * 2.0);
    }
    format!("{x:?}")
}
