//! The named numbers of a program, and which number in the code is which of them.
//!
//! A size is named by the author's words, which it carries through the graph ([`Extent`]); a scalar by what
//! it is (an epsilon, a probability). Nothing is named because it happens to be equal to something else.

use std::collections::BTreeSet;

use super::name;
use crate::ir::extent::{RULES, Word};
use crate::ir::factor::Root;
use crate::ir::op::quantity::{Named, Quantity};
use crate::ir::op::{FrequencyRule, LongRule, RotaryTable};
use crate::ir::{Extent, Factor, Graph, Init, Layer, MemberKind, Module, ModuleId, Op, stack_len};

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size: a field of the spec, by its name.
    Field(&'static str),
    /// The number of blocks of a stack.
    Layers,
    /// A number of an op.
    Named(Named),
    /// What is added to a variance.
    Eps,
    /// A number of the distribution of fresh weights.
    Fresh(Fresh),
}

/// A number of the distribution that fresh weights are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// A standard deviation.
    Std,
    /// The number of standard deviations at which a normal distribution is cut off.
    Cut,
    /// The largest absolute value of an even distribution.
    Bound,
    /// A factor on the distribution that follows from the sizes of a layer; there is no constant for a factor
    /// of 1.
    Gain,
    /// The value of all weights.
    Value,
}

impl Fresh {
    /// Its name in lower case.
    fn name(self) -> &'static str {
        match self {
            Fresh::Std => "std",
            Fresh::Cut => "cut",
            Fresh::Bound => "bound",
            Fresh::Gain => "gain",
            Fresh::Value => "value",
        }
    }

    /// The numbers of a distribution.
    fn numbers(init: &Init) -> Vec<(Fresh, f64)> {
        match init {
            Init::Zeros | Init::Ones => Vec::new(),
            Init::Constant(value) => vec![(Fresh::Value, *value)],
            Init::Normal { std } => vec![(Fresh::Std, *std)],
            Init::TruncatedNormal { std, cut } => vec![(Fresh::Std, *std), (Fresh::Cut, *cut)],
            Init::Uniform { bound } => vec![(Fresh::Bound, *bound)],
            Init::XavierUniform { gain }
            | Init::XavierNormal { gain }
            | Init::KaimingUniform { gain }
            | Init::KaimingNormal { gain }
            | Init::Orthogonal { gain } => {
                (*gain != 1.0).then_some((Fresh::Gain, *gain)).into_iter().collect()
            }
        }
    }
}

impl Kind {
    fn name(self) -> String {
        match self {
            Kind::Field(field) => field.to_owned(),
            Kind::Layers => "layers".to_owned(),
            Kind::Named(named) => named.name().to_owned(),
            Kind::Eps => "eps".to_owned(),
            Kind::Fresh(fresh) => format!("init_{}", fresh.name()),
        }
    }

    /// What it is, for readers. `name` is the constant's, which may tell whose it is.
    fn sentence(self, name: &str) -> String {
        match self {
            Kind::Field(field) => match FIELDS.iter().find(|(known, _)| *known == field) {
                Some((_, sentence)) => (*sentence).to_owned(),
                None => format!("`{field}` of the spec."),
            },
            Kind::Layers => match name.strip_suffix("_layers") {
                Some(stack) => format!("Blocks of the {stack}."),
                None => "Blocks of the stack.".to_owned(),
            },
            Kind::Named(named) => named.sentence().to_owned(),
            Kind::Eps => "Added to the variance in norms.".to_owned(),
            Kind::Fresh(Fresh::Std) => "Standard deviation of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Cut) => "Standard deviations at which fresh weights are cut off.".to_owned(),
            Kind::Fresh(Fresh::Bound) => "Largest absolute value of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Gain) => "Factor on the distribution of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Value) => "Value of fresh weights.".to_owned(),
        }
    }

    /// Sizes by [`FIELDS`], the lengths of stacks after the model's width, scalars last.
    fn order(self) -> (usize, usize) {
        let at = |field: &str| FIELDS.iter().position(|(known, _)| *known == field).unwrap_or(FIELDS.len());
        match self {
            Kind::Field(field) => (0, 2 * at(field)),
            Kind::Layers => (0, 2 * at("d_model") + 1),
            Kind::Named(Named::Dropout) => (3, 0),
            Kind::Named(named) => (1, named as usize),
            Kind::Eps => (2, 0),
            Kind::Fresh(fresh) => (4, fresh as usize),
        }
    }
}

/// Fields in the order they are written at the top of a file, and what each is. Others follow in the order
/// they are met.
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
    ("image_size", "Side of an image, in pixels."),
    ("patch_size", "Side of a patch, in pixels."),
    ("patches", "Patches of an image."),
    ("registers", "Register tokens."),
    ("classes", "Classes."),
    ("project", "Features of the vector the model gives."),
    ("buckets", "Buckets of relative positions."),
];

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
        let whole = match shared.is_empty() {
            true => sum,
            false => product(self.factors(1, &shared).into_iter().chain([sum]).collect()),
        };
        match size.divisor() {
            (1, words) if words.is_empty() => whole,
            (times, words) => Size::Quotient(Box::new(whole), Box::new(product(self.factors(times, &words)))),
        }
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
    pub fn known(&self, field: &'static str, n: u64) -> Option<Size> {
        self.find(|c| c.kind == Kind::Field(field) && c.value == Number::Int(n)).map(Size::Constant)
    }

    /// A real number of that kind.
    pub fn scalar(&self, kind: Kind, value: f64) -> Scalar {
        self.find(|c| c.kind == kind && c.value == Number::Float(value))
            .map_or(Scalar::Number(value), Scalar::Constant)
    }

    /// A real number of an op.
    pub fn real(&self, named: Named, value: f64) -> Scalar {
        self.scalar(Kind::Named(named), value)
    }

    /// A whole number of an op.
    pub fn count(&self, named: Named, n: u64) -> Size {
        self.find(|c| c.kind == Kind::Named(named) && c.value == Number::Int(n))
            .map_or(Size::Number(n), Size::Constant)
    }

    /// The length of a stack of a module.
    pub fn layers(&self, owner: ModuleId, value: u64) -> Size {
        self.find(|c| c.owner == Some(owner) && c.value == Number::Int(value))
            .map_or(Size::Number(value), Size::Constant)
    }

    /// A factor on a tensor: the root of a size if it was given as one.
    pub fn factor(&self, by: Factor) -> Scalar {
        match by.root() {
            Some(Root { of, is_inverse: false }) => Scalar::Root(self.size(of)),
            Some(Root { of, is_inverse: true }) => Scalar::InverseRoot(self.size(of)),
            None => Scalar::Number(*by),
        }
    }

    /// The factor on the scores of attention.
    pub fn score_scale(&self, by: Factor) -> Scalar {
        match self.factor(by) {
            Scalar::Number(by) => self.real(Named::ScoreScale, by),
            root @ (Scalar::Constant(_) | Scalar::Root(_) | Scalar::InverseRoot(_)) => root,
        }
    }

    fn find(&self, is: impl Fn(&Constant) -> bool) -> Option<ConstantId> {
        self.all.iter().position(is).map(ConstantId)
    }

    /// The table of these numbers.
    pub fn table(&self, values: &[f64]) -> Option<TableId> {
        self.tables.iter().position(|table| table.values == values).map(TableId)
    }

    /// The constants to define where these are used: they, what their formulas refer to, and the vocabulary
    /// and the context, which users of a model ask for.
    pub fn with_formulas(&self, used: &BTreeSet<ConstantId>) -> BTreeSet<ConstantId> {
        let mut all = used.clone();
        let always = |c: &Constant| matches!(c.kind, Kind::Field("vocab" | "context"));
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

/// The most numbers of a table that is written into a source file: far above the features of any model, so
/// that absurd sizes do not fill memory.
const LONGEST_TABLE: u64 = 1 << 16;

/// Why a graph cannot be emitted, if a table of it would be too long; one sentence without a full stop.
pub fn refusal(graph: &Graph) -> Option<String> {
    let length = |node: &crate::ir::Node| {
        if let Op::RotaryTable { rotary, .. } = &node.op {
            written(rotary).next().map(|_| ("frequencies", rotary.pairs()))
        } else {
            None
        }
    };
    let mut lengths = graph.modules.iter().flat_map(|module| &module.nodes).filter_map(length);
    let (what, count) = lengths.find(|(_, count)| *count > LONGEST_TABLE)?;
    Some(format!("the source would list {count} {what}, and at most {LONGEST_TABLE} are written"))
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
        if let Op::RotaryTable { rotary, .. } = &node.op {
            for rule in written(rotary) {
                let doc = "Angle of every pair of features from one position to the next.";
                add("inverse_frequencies", doc, frequencies(rotary, rule));
            }
        }
    }
    tables
}

/// The rules of a table of rotary positions whose frequencies are listed; those of the others follow from a
/// formula.
fn written(rotary: &RotaryTable) -> impl Iterator<Item = &FrequencyRule> {
    let long = rotary.long.iter().filter_map(|long| match &long.rule {
        LongRule::Frequencies(rule) => Some(rule),
        LongRule::Dynamic { .. } => None,
    });
    long.chain([&rotary.rule]).filter(|rule| **rule != FrequencyRule::Plain)
}

/// The inverse frequencies of all pairs of features under a rule.
pub fn frequencies(rotary: &RotaryTable, rule: &FrequencyRule) -> Vec<f64> {
    (0..rotary.pairs()).map(|i| rotary.frequency_under(rule, i)).collect()
}

/// A number that may become a constant.
#[derive(Clone, Debug)]
struct Candidate {
    kind: Kind,
    /// What would tell it from another of its kind: a module's name.
    scope: String,
    value: Number,
    owner: Option<ModuleId>,
    /// For a field: whether it follows from others by the rule of the spec wherever it occurs.
    is_by_rule: bool,
}

/// Numbers in order of appearance.
#[derive(Default)]
struct Found {
    all: Vec<Candidate>,
    seen: BTreeSet<usize>,
}

impl Found {
    fn size(&mut self, size: Extent, scope: &str) {
        for word in size.words() {
            self.add_or_follow(Kind::Field(word.name), scope, Number::Int(word.n), word.is_by_rule);
        }
    }

    fn add(&mut self, kind: Kind, scope: &str, value: Number) {
        self.add_or_follow(kind, scope, value, false);
    }

    fn add_or_follow(&mut self, kind: Kind, scope: &str, value: Number, is_by_rule: bool) {
        match self.all.iter_mut().find(|c| c.kind == kind && c.value == value) {
            Some(known) => known.is_by_rule &= is_by_rule,
            None => {
                let scope = scope.to_owned();
                self.all.push(Candidate { kind, scope, value, owner: None, is_by_rule });
            }
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
                let value = Number::Int(stack_len(runs));
                let scope = scope.clone();
                let kind = Kind::Layers;
                self.all.push(Candidate { kind, scope, value, owner: Some(id), is_by_rule: false });
            }
            for quantity in node.op.meaning().quantities() {
                let (named, value) = match quantity {
                    Quantity::Size(size) => {
                        self.size(size, &scope);
                        continue;
                    }
                    Quantity::Count(named, n) => (named, Number::Int(n)),
                    Quantity::Real(named, x) => (named, Number::Float(x)),
                };
                self.add(Kind::Named(named), &scope, value);
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
            Layer::Linear { input, output, bias, init, bias_init } => {
                self.size(*input, &scope);
                self.size(*output, &scope);
                self.fresh(init, member);
                self.fresh(if *bias { bias_init } else { &Init::Zeros }, member);
            }
            Layer::Embedding { rows, dim, init, .. } => {
                self.size(*rows, &scope);
                self.size(*dim, &scope);
                self.fresh(init, member);
            }
            Layer::Patches { channels, dim, size, bias, init, bias_init } => {
                [channels, dim, size].into_iter().for_each(|size| self.size(*size, &scope));
                self.fresh(init, member);
                self.fresh(if *bias { bias_init } else { &Init::Zeros }, member);
            }
            Layer::Param { shape, init, .. } => {
                shape.iter().for_each(|size| self.size(*size, &scope));
                self.fresh(init, member);
            }
            Layer::LayerNorm { dim, eps, .. } | Layer::RmsNorm { dim, eps, .. } => {
                self.size(*dim, &scope);
                self.add(Kind::Eps, &scope, Number::Float(*eps));
            }
        }
    }

    fn fresh(&mut self, init: &Init, member: &str) {
        for (fresh, x) in Fresh::numbers(init) {
            self.add(Kind::Fresh(fresh), member, Number::Float(x));
        }
    }

    /// The only value of a kind takes its name; several take their scope's before it.
    fn name(self) -> Vec<Constant> {
        let mut out: Vec<Constant> = Vec::new();
        let mut sorted = self.all.clone();
        sorted.sort_by_key(|candidate| candidate.kind.order());
        for Candidate { kind, scope, value, owner, is_by_rule } in sorted {
            let several = self.all.iter().filter(|c| c.kind == kind).count() > 1;
            let first = out.iter().all(|c| c.kind != kind);
            let whole = kind.name();
            let (plain, base) = match kind {
                Kind::Fresh(_) if first => (true, whole.clone()),
                Kind::Fresh(fresh) => (!several, fresh.name().to_owned()),
                Kind::Field(_) | Kind::Layers | Kind::Named(_) | Kind::Eps => {
                    (!several || scope.is_empty(), whole.clone())
                }
            };
            let wanted = if plain { whole } else { format!("{scope}_{base}") };
            let mut name = wanted.clone();
            let mut n = 2;
            while out.iter().any(|c| c.name == name) {
                name = format!("{wanted}_{n}");
                n += 1;
            }
            let doc = kind.sentence(&name);
            let formula = if is_by_rule { follows(kind, value, &out) } else { None };
            out.push(Constant { name, doc, value, formula, kind, owner });
        }
        out
    }
}

/// How a field that follows from others by the rule of the spec ([`RULES`]) does so, if each of them has one
/// value in this model.
fn follows(kind: Kind, value: Number, earlier: &[Constant]) -> Option<Size> {
    let Kind::Field(field) = kind else { return None };
    let (_, factors, divisors) = RULES.iter().find(|(known, ..)| *known == field)?;
    let only = |wanted: &&'static str| {
        let mut all = earlier.iter().enumerate().filter(|(_, c)| c.kind == Kind::Field(wanted));
        let found = all.next().filter(|_| all.next().is_none());
        found.map(|(at, _)| Size::Constant(ConstantId(at)))
    };
    let whole = product(factors.iter().map(only).collect::<Option<_>>()?);
    let by = product(divisors.iter().map(only).collect::<Option<_>>()?);
    let formula = Size::Quotient(Box::new(whole), Box::new(by));
    (formula.value(earlier).map(Number::Int) == Some(value)).then_some(formula)
}
