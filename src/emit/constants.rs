//! The sizes at the top of a file, and which number in the code is which of them.
//!
//! A number becomes a constant by what it is (a width, a count of heads, an epsilon), never because
//! it happens to be equal to another: 12 heads and 12 layers are two constants.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::name;
use crate::ir::op::FrequencyRule;
use crate::ir::{Dim, Graph, Init, Layer, MemberKind, Module, ModuleId, Op, Role, stack_len};

/// What a number counts or measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Token ids.
    Vocab,
    /// Positions.
    Context,
    /// Features of the residual stream.
    DModel,
    /// Blocks of a stack.
    Layers,
    /// Heads of queries.
    Heads,
    /// Heads of keys and values, where fewer.
    KvHeads,
    /// Features of a head.
    HeadDim,
    /// Features inside a feed-forward.
    Hidden,
    /// Experts of a mixture.
    Experts,
    /// Experts a token is sent to.
    TopK,
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
            Kind::Vocab => "VOCAB",
            Kind::Context => "CONTEXT",
            Kind::DModel => "D_MODEL",
            Kind::Layers => "LAYERS",
            Kind::Heads => "HEADS",
            Kind::KvHeads => "KV_HEADS",
            Kind::HeadDim => "HEAD_DIM",
            Kind::Hidden => "HIDDEN",
            Kind::Experts => "EXPERTS",
            Kind::TopK => "TOP_K",
            Kind::Theta => "THETA",
            Kind::Eps => "EPS",
            Kind::Dropout => "DROPOUT",
            Kind::Std => "INIT_STD",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Kind::Vocab => "Token ids the model knows.",
            Kind::Context => "The longest sequence the model is meant for.",
            Kind::DModel => "Features of the residual stream.",
            Kind::Layers => "Blocks of the stack.",
            Kind::Heads => "Heads of queries.",
            Kind::KvHeads => "Heads of keys and values, each shared by `HEADS / KV_HEADS` heads of queries.",
            Kind::HeadDim => "Features of a head.",
            Kind::Hidden => "Features inside a feed-forward.",
            Kind::Experts => "Experts of a mixture.",
            Kind::TopK => "Experts a token is sent to.",
            Kind::Theta => "Base of the rotary angles.",
            Kind::Eps => "Added to the variance in norms.",
            Kind::Dropout => "Probability of dropping a feature in training.",
            Kind::Std => "Standard deviation of fresh weights.",
        }
    }
}

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
            found.add(Kind::Vocab, "", Number::Int(vocab));
        }
        found.add(Kind::Context, "", Number::Int(graph.context));
        found.walk(graph, graph.root);
        Self { all: found.name(), used: RefCell::default() }
    }

    /// The text of an integer of one of these kinds, in order of preference.
    pub fn int(&self, kinds: &[Kind], value: u64) -> String {
        self.find(kinds, Number::Int(value)).unwrap_or_else(|| value.to_string())
    }

    /// The constant for an integer, if there is one.
    pub fn known(&self, kinds: &[Kind], value: u64) -> Option<String> {
        self.find(kinds, Number::Int(value))
    }

    /// The integers of a kind.
    pub fn of_kind(&self, kind: Kind) -> Vec<u64> {
        let all = self.all.iter().filter(|c| c.kind == kind);
        all.filter_map(|c| if let Number::Int(n) = c.value { Some(n) } else { None }).collect()
    }

    /// The text of a float.
    pub fn float(&self, kind: Kind, value: f64) -> String {
        self.find(&[kind], Number::Float(value)).unwrap_or_else(|| float(value))
    }

    /// The length of a stack of a module.
    pub fn layers(&self, owner: ModuleId, value: u64) -> String {
        let is = |c: &Constant| c.owner == Some(owner) && c.value == Number::Int(value);
        match self.all.iter().enumerate().find(|(_, c)| is(c)) {
            Some((i, constant)) => {
                self.used.borrow_mut().insert(i);
                constant.name.clone()
            }
            None => value.to_string(),
        }
    }

    /// A feature width in a module of that role.
    pub fn width(&self, role: Role, value: u64) -> String {
        let kinds: &[Kind] = match role {
            Role::Embedding | Role::Attention | Role::Norm => &[Kind::DModel],
            Role::Ffn => &[Kind::DModel, Kind::Hidden],
            Role::Head => &[Kind::DModel, Kind::Vocab],
        };
        self.int(kinds, value)
    }

    /// The width of so many heads side by side: `HEADS * HEAD_DIM`, `D_MODEL` where that is the same.
    pub fn heads_width(&self, heads: u64, value: u64) -> String {
        if let Some(known) = self.known(&[Kind::DModel], value) {
            return known;
        }
        let each = value.checked_div(heads).unwrap_or(value);
        let each = self.int(&[Kind::HeadDim], each);
        if heads == 1 { each } else { format!("{} * {each}", self.int(&[Kind::Heads, Kind::KvHeads], heads)) }
    }

    fn find(&self, kinds: &[Kind], value: Number) -> Option<String> {
        for kind in kinds {
            let at = self.all.iter().position(|c| c.kind == *kind && c.value == value);
            if let Some(constant) = at.and_then(|i| self.all.get(i)) {
                self.used.borrow_mut().extend(at);
                return Some(constant.name.clone());
            }
        }
        None
    }

    /// The definitions of those that were used, with the vocabulary and the context always.
    pub fn definitions(&self) -> Vec<String> {
        let mut used = self.used.borrow().clone();
        for (i, constant) in self.all.iter().enumerate() {
            let in_formula = self.all.iter().enumerate().any(|(j, other)| {
                used.contains(&j) && other.formula.as_ref().is_some_and(|f| f.contains(&constant.name))
            });
            if in_formula || matches!(constant.kind, Kind::Vocab | Kind::Context) {
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
            let doc = match (constant.kind, constant.name.strip_suffix("_LAYERS")) {
                (Kind::Layers, Some(stack)) => format!("Blocks of the {}.", stack.to_lowercase()),
                _ => constant.kind.doc().to_owned(),
            };
            format!("/// {doc}\npub const {}: {ty} = {value};", constant.name)
        })
        .collect()
    }
}

/// Numbers by kind in order of appearance, with the names that would tell them apart.
#[derive(Default)]
struct Found {
    all: Vec<(Kind, String, Number, Option<ModuleId>)>,
    seen: BTreeSet<usize>,
}

impl Found {
    fn add(&mut self, kind: Kind, scope: &str, value: Number) {
        if !self.all.iter().any(|(k, _, v, _)| *k == kind && *v == value) {
            self.all.push((kind, scope.to_owned(), value, None));
        }
    }

    fn walk(&mut self, graph: &Graph, id: ModuleId) {
        let module = graph.module(id);
        let scope = name::snake(&module.name);
        for node in &module.nodes {
            if let Op::Scan { member, .. } = &node.op {
                let carry = node.inputs.first().map(|v| module.value(*v));
                if let Some(n) = carry.and_then(|v| v.ty.last()).and_then(constant) {
                    self.add(Kind::DModel, &scope, Number::Int(n));
                }
                if let MemberKind::Stack(runs) = &module.member(*member).kind {
                    let scope = if id == graph.root { &module.member(*member).name } else { &scope };
                    let count = Number::Int(stack_len(runs));
                    self.all.push((Kind::Layers, scope.clone(), count, Some(id)));
                }
            } else if let Op::Experts { member, .. } = &node.op {
                if let MemberKind::Stack(runs) = &module.member(*member).kind {
                    self.add(Kind::Experts, &scope, Number::Int(stack_len(runs)));
                }
            } else if let Op::Route(router) = &node.op {
                self.add(Kind::TopK, &scope, Number::Int(router.top_k));
            } else if let Op::Attention(attention) = &node.op {
                if let Some(shape) = node.inputs.first().map(|q| &module.value(*q).ty.shape)
                    && let [_, heads, _, dim] = shape.as_slice()
                    && let (Some(heads), Some(dim)) = (constant(heads), constant(dim))
                {
                    self.add(Kind::Heads, &scope, Number::Int(heads));
                    self.add(Kind::HeadDim, &scope, Number::Int(dim));
                }
                if attention.dropout > 0.0 {
                    self.add(Kind::Dropout, &scope, Number::Float(attention.dropout));
                }
            } else if let Op::Dropout { p } = &node.op {
                self.add(Kind::Dropout, &scope, Number::Float(*p));
            } else if let Op::RotaryTable { rotary, .. } = &node.op {
                if rotary.rule == FrequencyRule::Plain {
                    self.add(Kind::Theta, &scope, Number::Float(rotary.theta));
                }
            } else if let Op::RepeatHeads { .. } = &node.op
                && let Some(shape) = node.inputs.first().map(|q| &module.value(*q).ty.shape)
                && let Some(heads) = shape.get(1).and_then(constant)
            {
                self.add(Kind::KvHeads, &scope, Number::Int(heads));
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
                // A mixture's own projections are its router and gates.
                let is_mixture = module.nodes.iter().any(|node| matches!(node.op, Op::Route(_)));
                let inner = [*output, *input].into_iter().find(|n| !self.is_known(Kind::DModel, *n));
                if let (Role::Ffn, false, Some(inner)) = (module.role, is_mixture, inner) {
                    self.add(Kind::Hidden, &scope, Number::Int(inner));
                }
                self.std(init, member);
            }
            Layer::Embedding { init, .. } | Layer::Patches { init, .. } | Layer::Param { init, .. } => {
                self.std(init, member);
            }
            Layer::LayerNorm { eps, .. } | Layer::RmsNorm { eps, .. } => {
                self.add(Kind::Eps, &scope, Number::Float(*eps));
            }
        }
    }

    fn std(&mut self, init: &Init, member: &str) {
        if let Init::Normal { std } | Init::TruncatedNormal { std, .. } = init {
            self.add(Kind::Std, member, Number::Float(*std));
        }
    }

    fn is_known(&self, kind: Kind, value: u64) -> bool {
        self.all.iter().any(|(k, _, v, _)| *k == kind && *v == Number::Int(value))
    }

    /// One value of a kind takes the kind's name; several take their scope's before it.
    fn name(self) -> Vec<Constant> {
        let mut out: Vec<Constant> = Vec::new();
        let mut sorted = self.all.clone();
        sorted.sort_by_key(|(kind, ..)| *kind);
        for (kind, scope, value, owner) in sorted {
            let several = self.all.iter().filter(|(k, ..)| *k == kind).count() > 1;
            let first = out.iter().all(|c| c.kind != kind);
            let plain = !several || (kind == Kind::Std && first) || scope.is_empty();
            let base = if kind == Kind::Std && !first { "STD" } else { kind.name() };
            let name =
                if plain { kind.name().to_owned() } else { format!("{}_{base}", name::constant(&scope)) };
            if out.iter().any(|c| c.name == name) {
                continue;
            }
            let formula = head_dim_formula(kind, value, &out);
            out.push(Constant { kind, name, value, owner, formula });
        }
        out
    }
}

/// `D_MODEL / HEADS` where that is what a head's width is.
fn head_dim_formula(kind: Kind, value: Number, known: &[Constant]) -> Option<String> {
    let only = |wanted: Kind| {
        let mut all = known.iter().filter(|c| c.kind == wanted);
        all.next().filter(|_| all.next().is_none())
    };
    let (d_model, heads) = (only(Kind::DModel)?, only(Kind::Heads)?);
    match (kind, value, d_model.value, heads.value) {
        (Kind::HeadDim, Number::Int(n), Number::Int(d), Number::Int(h)) if h.checked_mul(n) == Some(d) => {
            Some("D_MODEL / HEADS".to_owned())
        }
        _ => None,
    }
}

fn constant(dim: &Dim) -> Option<u64> {
    dim.constant().and_then(|n| u64::try_from(n).ok())
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
