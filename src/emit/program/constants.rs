//! The named numbers of a program, and which number in the code is which of them.
//!
//! A size is named by the author's words, which it carries through the graph ([`Extent`]); a scalar by what it is
//! (an epsilon, a probability). Nothing is named because it happens to be equal to something else.

use std::collections::BTreeSet;

use super::name;
use crate::ir::extent::Word;
use crate::ir::op::{FrequencyRule, LongRule, RotaryTable};
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
            Kind::Field => "size",
            Kind::Layers => "layers",
            Kind::Theta => "theta",
            Kind::Eps => "eps",
            Kind::Dropout => "dropout",
            Kind::Std => "init_std",
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

/// The index of a constant in [`Constants::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstantId(pub usize);

/// The index of a table in [`Constants::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableId(pub usize);

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A size or a count.
    Int(u64),
    /// A real number.
    Float(f64),
}

/// A whole number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// The number itself.
    Number(u64),
    /// A constant.
    Constant(ConstantId),
    /// A sum of two sizes or more.
    Sum(Vec<Size>),
    /// A product of two sizes or more.
    Product(Vec<Size>),
    /// A quotient without remainder.
    Quotient(Box<Size>, Box<Size>),
}

/// A real number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// The number itself.
    Number(f64),
    /// A constant.
    Constant(ConstantId),
    /// The square root of a size.
    Root(Size),
    /// One divided by the square root of a size.
    InverseRoot(Size),
}

impl Size {
    /// The constants in it, each as often as it is there.
    pub fn constants(&self) -> Vec<ConstantId> {
        match self {
            Size::Number(_) => Vec::new(),
            Size::Constant(id) => vec![*id],
            Size::Sum(all) | Size::Product(all) => all.iter().flat_map(Size::constants).collect(),
            Size::Quotient(size, by) => [size, by].into_iter().flat_map(|size| size.constants()).collect(),
        }
    }

    /// Its value; `None` if it is no whole number or refers to a constant that is not there.
    pub fn value(&self, constants: &[Constant]) -> Option<u64> {
        match self {
            Size::Number(n) => Some(*n),
            Size::Constant(id) => match constants.get(id.0)?.value {
                Number::Int(n) => Some(n),
                Number::Float(_) => None,
            },
            Size::Sum(all) => all.iter().try_fold(0u64, |sum, size| sum.checked_add(size.value(constants)?)),
            Size::Product(all) => {
                all.iter().try_fold(1u64, |product, size| product.checked_mul(size.value(constants)?))
            }
            Size::Quotient(size, by) => {
                let (size, by) = (size.value(constants)?, by.value(constants)?);
                size.checked_div(by).filter(|quotient| quotient.checked_mul(by) == Some(size))
            }
        }
    }
}

/// A named number of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name in lower case: `kv_heads`.
    pub name: String,
    /// What it is, as a sentence.
    pub doc: String,
    /// Its value.
    pub value: Number,
    /// How it follows from earlier constants.
    pub formula: Option<Size>,
    kind: Kind,
    /// The field's name in the spec, for [`Kind::Field`].
    field: &'static str,
    /// For the length of a stack: whose.
    owner: Option<ModuleId>,
}

/// A list of numbers that follow from a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name in lower case: `slopes`.
    pub name: String,
    /// What its numbers are, as a sentence.
    pub doc: String,
    /// The numbers.
    pub values: Vec<f64>,
}

/// The constants of a program. A target writes those that its text refers to, and those that
/// [`Constants::with_formulas`] adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    /// In the order they are written; a formula refers to earlier ones only.
    pub all: Vec<Constant>,
    /// Lists of numbers, no two the same.
    pub tables: Vec<Table>,
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
        Self { all: found.name(), tables: tables(graph) }
    }

    /// A size in the author's words. What all products of a sum share is written once.
    pub fn size(&self, size: Extent) -> Size {
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
        let mut sum: Vec<Size> =
            terms.iter().map(|(times, words)| product(self.factors(*times, &own(words)))).collect();
        let sum = match sum.len() {
            0 => Size::Number(0),
            1 => sum.remove(0),
            _ => Size::Sum(sum),
        };
        if shared.is_empty() {
            return sum;
        }
        let mut factors = self.factors(1, &shared);
        factors.push(sum);
        product(factors)
    }

    fn factors(&self, times: u64, words: &[Word]) -> Vec<Size> {
        let number = (times != 1 || words.is_empty()).then_some(Size::Number(times));
        number.into_iter().chain(words.iter().map(|word| self.field(*word))).collect()
    }

    /// The constant of a field, or its number if there is none.
    fn field(&self, word: Word) -> Size {
        self.known(word.name, word.n).unwrap_or(Size::Number(word.n))
    }

    /// The constant of a field of that value, if there is one.
    pub fn known(&self, field: &str, n: u64) -> Option<Size> {
        self.find(|c| c.kind == Kind::Field && c.field == field && c.value == Number::Int(n))
            .map(Size::Constant)
    }

    /// A real number of that kind.
    pub fn scalar(&self, kind: Kind, value: f64) -> Scalar {
        self.find(|c| c.kind == kind && c.value == Number::Float(value))
            .map_or(Scalar::Number(value), Scalar::Constant)
    }

    /// The length of a stack of a module.
    pub fn layers(&self, owner: ModuleId, value: u64) -> Size {
        self.find(|c| c.owner == Some(owner) && c.value == Number::Int(value))
            .map_or(Size::Number(value), Size::Constant)
    }

    /// How often a head of keys is repeated: the heads of queries for each of a few heads of keys.
    pub fn repeats(&self, few: Option<Extent>, times: Extent) -> Size {
        let few = few.filter(|few| few.get() > 1);
        let many = few.and_then(|few| self.known("heads", few.get().saturating_mul(times.get())));
        match (many, few) {
            (Some(many), Some(few)) => Size::Quotient(Box::new(many), Box::new(self.size(few))),
            (None, _) | (_, None) => self.size(times),
        }
    }

    /// A factor on a tensor of that width: the root of the width where it is one.
    pub fn factor(&self, by: f64, width: Option<Extent>) -> Scalar {
        if let Some(width) = width {
            let root = (width.get() as f64).sqrt();
            if by == root {
                return Scalar::Root(self.size(width));
            }
            if by == 1.0 / root {
                return Scalar::InverseRoot(self.size(width));
            }
        }
        Scalar::Number(by)
    }

    fn find(&self, is: impl Fn(&Constant) -> bool) -> Option<ConstantId> {
        self.all.iter().position(is).map(ConstantId)
    }

    /// The table of these numbers.
    pub fn table(&self, values: &[f64]) -> Option<TableId> {
        self.tables.iter().position(|table| table.values == values).map(TableId)
    }

    /// The constants to define where these are used: they, what their formulas refer to, and the vocabulary and the
    /// context, which users of a model ask for.
    pub fn with_formulas(&self, used: &BTreeSet<ConstantId>) -> BTreeSet<ConstantId> {
        let mut all = used.clone();
        let always = |c: &Constant| matches!(c.field, "vocab" | "context");
        for (id, constant) in self.all.iter().enumerate().rev() {
            let id = ConstantId(id);
            if always(constant) {
                all.insert(id);
            }
            if all.contains(&id) {
                all.extend(constant.formula.iter().flat_map(Size::constants));
            }
        }
        all
    }
}

fn product(mut factors: Vec<Size>) -> Size {
    if factors.len() == 1 { factors.remove(0) } else { Size::Product(factors) }
}

/// The tables of a graph's ops.
fn tables(graph: &Graph) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut add = |name: &str, doc: &str, values: Vec<f64>| {
        if tables.iter().any(|table| table.values == values) {
            return;
        }
        let mut chosen = name.to_owned();
        let mut n = 2;
        while tables.iter().any(|table| table.name == chosen) {
            chosen = format!("{name}_{n}");
            n += 1;
        }
        tables.push(Table { name: chosen, doc: doc.to_owned(), values });
    };
    for node in graph.modules.iter().flat_map(|module| &module.nodes) {
        if let Op::AlibiBias { slopes, .. } = &node.op {
            let values = (0..slopes.heads).map(|head| slopes.slope(head)).collect();
            add("slopes", "Slope of every head.", values);
        } else if let Op::RotaryTable { rotary, .. } = &node.op {
            let long = rotary.long.iter().filter_map(|long| match &long.rule {
                LongRule::Frequencies(rule) => Some(rule),
                LongRule::Dynamic { .. } => None,
            });
            for rule in long.chain([&rotary.rule]).filter(|rule| **rule != FrequencyRule::Plain) {
                let doc = "Angle of every pair of features from one position to the next.";
                add("inverse_frequencies", doc, frequencies(rotary, rule));
            }
        }
    }
    tables
}

/// The inverse frequencies of all pairs of features under a rule.
pub fn frequencies(rotary: &RotaryTable, rule: &FrequencyRule) -> Vec<f64> {
    (0..rotary.pairs()).map(|i| rotary.frequency_under(rule, i)).collect()
}

/// What a constant is, for readers.
fn documented(kind: Kind, field: &str, name: &str) -> String {
    match (kind, name.strip_suffix("_layers")) {
        (Kind::Layers, Some(stack)) => format!("Blocks of the {stack}."),
        (Kind::Field, _) => match FIELDS.iter().find(|(known, _)| *known == field) {
            Some((_, doc)) => (*doc).to_owned(),
            None => format!("`{field}` of the spec."),
        },
        _ => kind.doc().to_owned(),
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
                    for child in super::needs::kinds(runs) {
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
            let whole = if kind == Kind::Field { field.to_owned() } else { kind.name().to_owned() };
            let base = if kind == Kind::Std && !first { "std".to_owned() } else { whole.clone() };
            let wanted = if plain { whole } else { format!("{scope}_{base}") };
            let mut name = wanted.clone();
            let mut n = 2;
            while out.iter().any(|c| c.name == name) {
                name = format!("{wanted}_{n}");
                n += 1;
            }
            let formula = head_dim_formula(field, value, &out);
            let doc = documented(kind, field, &name);
            out.push(Constant { name, doc, value, formula, kind, field, owner });
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
fn head_dim_formula(field: &str, value: Number, known: &[Constant]) -> Option<Size> {
    let only = |wanted: &str| {
        let mut all = known.iter().enumerate().filter(|(_, c)| c.field == wanted);
        all.next().filter(|_| all.next().is_none())
    };
    let ((d_model, wide), (heads, many)) = (only("d_model")?, only("heads")?);
    match (field, value, wide.value, many.value) {
        ("head_dim", Number::Int(n), Number::Int(d), Number::Int(h)) if h.checked_mul(n) == Some(d) => {
            let of = |id| Box::new(Size::Constant(ConstantId(id)));
            Some(Size::Quotient(of(d_model), of(heads)))
        }
        _ => None,
    }
}
