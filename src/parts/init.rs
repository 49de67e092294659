//! Initial values of parameters.

use super::pattern::{matches, nearest};
use crate::diag::{Code, Diagnostic, Sink};
use crate::field::record::{record, slot};
use crate::field::value::Shape;
use crate::field::{Context, Positive, Real, Value};
use crate::ir::{self, Extent, Layer, Rows};
use crate::source::Span;
use crate::syntax::tree::{Kind, Node};

record! {
    /// All values are 0.
    pub struct Zeros as "zeros" {}
}
record! {
    /// All values are 1.
    pub struct Ones as "ones" {}
}
record! {
    /// All values are the same number.
    pub struct Constant as "constant" {
        /// The number that every element gets.
        value: Real = required;
    }
}
record! {
    /// Normal distribution around 0.
    pub struct Normal as "normal" {
        /// The standard deviation of every element.
        std: Positive = value(Positive(0.02));
    }
}
record! {
    /// Normal distribution around 0, truncated to within `cut` standard deviations.
    pub struct TruncatedNormal as "truncated_normal" {
        /// The standard deviation before truncation.
        std: Positive = value(Positive(0.02));
        /// The bound, in standard deviations.
        cut: Positive = value(Positive(2.0));
    }
}
record! {
    /// Uniform distribution in `±bound`.
    pub struct Uniform as "uniform" {
        /// The largest absolute value.
        bound: Positive = required;
    }
}
record! {
    /// Uniform in `±gain sqrt(6 / (in + out))` (Glorot and Bengio 2010).
    pub struct XavierUniform as "xavier_uniform" {
        /// Factor on the bound.
        gain: Positive = value(Positive(1.0));
    }
}
record! {
    /// Normal with standard deviation `gain sqrt(2 / (in + out))` (Glorot and Bengio 2010).
    pub struct XavierNormal as "xavier_normal" {
        /// Factor on the standard deviation.
        gain: Positive = value(Positive(1.0));
    }
}
record! {
    /// Uniform in `±gain sqrt(3 / in)` (He et al. 2015); `gain: 1/sqrt(3)` is PyTorch's default for a
    /// linear layer.
    pub struct KaimingUniform as "kaiming_uniform" {
        /// Factor on the bound; `sqrt(2)` before a ReLU.
        gain: Positive = value(Positive(std::f64::consts::SQRT_2));
    }
}
record! {
    /// Normal with standard deviation `gain / sqrt(in)` (He et al. 2015).
    pub struct KaimingNormal as "kaiming_normal" {
        /// Factor on the standard deviation; `sqrt(2)` before a ReLU.
        gain: Positive = value(Positive(std::f64::consts::SQRT_2));
    }
}
record! {
    /// Orthonormal rows or columns (Saxe et al. 2013).
    pub struct Orthogonal as "orthogonal" {
        /// Factor on the values.
        gain: Positive = value(Positive(1.0));
    }
}

record! {
    /// The logarithms of 1, 2, ... along the last axis, the same in every row: the decays of Mamba (Gu and Dao 2023).
    pub struct Logarithms as "logarithms" {
        /// Factor on the values.
        gain: Positive = value(Positive(1.0));
    }
}

slot! {
    /// The distribution of a parameter's initial values.
    pub enum Distribution as "distribution" {
        /// All values are 0.
        "zeros" => Zeros(Zeros),
        /// All values are 1.
        "ones" => Ones(Ones),
        /// All values are the same number.
        "constant" => Constant(Constant),
        /// Normal distribution around 0.
        "normal" => Normal(Normal),
        /// Normal distribution around 0, without its tails.
        "truncated_normal" => TruncatedNormal(TruncatedNormal),
        /// Uniform distribution in `±bound`.
        "uniform" => Uniform(Uniform),
        /// Glorot's uniform distribution, by the numbers of inputs and outputs (2010).
        "xavier_uniform" => XavierUniform(XavierUniform),
        /// Glorot's normal distribution, by the numbers of inputs and outputs (2010).
        "xavier_normal" => XavierNormal(XavierNormal),
        /// He's uniform distribution, by the number of inputs (2015).
        "kaiming_uniform" => KaimingUniform(KaimingUniform),
        /// He's normal distribution, by the number of inputs (2015).
        "kaiming_normal" => KaimingNormal(KaimingNormal),
        /// Orthonormal rows or columns.
        "orthogonal" => Orthogonal(Orthogonal),
        /// The logarithms of 1, 2, ... in every row (2023).
        "logarithms" => Logarithms(Logarithms),
    }
}

impl Distribution {
    /// The distribution as the graph represents it.
    pub fn init(&self) -> ir::Init {
        match self {
            Self::Zeros(_) => ir::Init::Zeros,
            Self::Ones(_) => ir::Init::Ones,
            Self::Constant(c) => ir::Init::Constant(*c.value),
            Self::Normal(n) => ir::Init::Normal { std: *n.std },
            Self::TruncatedNormal(n) => ir::Init::TruncatedNormal { std: *n.std, cut: *n.cut },
            Self::Uniform(u) => ir::Init::Uniform { bound: *u.bound },
            Self::XavierUniform(x) => ir::Init::XavierUniform { gain: *x.gain },
            Self::XavierNormal(x) => ir::Init::XavierNormal { gain: *x.gain },
            Self::KaimingUniform(k) => ir::Init::KaimingUniform { gain: *k.gain },
            Self::KaimingNormal(k) => ir::Init::KaimingNormal { gain: *k.gain },
            Self::Orthogonal(o) => ir::Init::Orthogonal { gain: *o.gain },
            Self::Logarithms(l) => ir::Init::Logarithms { gain: *l.gain },
        }
    }

    /// The place of a distribution that only a matrix can have: one of rows or columns that are orthogonal to
    /// each other.
    fn needs_matrix(&self) -> Option<Span> {
        match self {
            Self::Orthogonal(o) => Some(o.places.whole()),
            Self::Zeros(_)
            | Self::Ones(_)
            | Self::Constant(_)
            | Self::Normal(_)
            | Self::TruncatedNormal(_)
            | Self::Uniform(_)
            | Self::XavierUniform(_)
            | Self::XavierNormal(_)
            | Self::KaimingUniform(_)
            | Self::KaimingNormal(_)
            | Self::Logarithms(_) => None,
        }
    }
}

/// The usual distribution of weights: normal with standard deviation 0.02 (GPT).
fn normal() -> Distribution {
    Distribution::Normal(Normal { std: Positive(0.02), places: Default::default() })
}

fn zeros() -> Distribution {
    Distribution::Zeros(Zeros { places: Default::default() })
}

record! {
    defaults;
    /// Initial values of parameters. `init: {normal: {std: 0.02}}` is short for `init: {weights: {normal:
    /// ...}}`.
    pub struct InitFields as "init" {
        /// The weights of projections.
        weights: Distribution = value(normal());
        /// The biases of projections.
        biases: Distribution = value(zeros());
        /// Embedding tables; if absent, as `weights`.
        embeddings: Option<Distribution> = absent;
        /// Factor on the initial weights of the last projection of every residual branch; GPT-2 has
        /// `1/sqrt(2*layers)`.
        residual: Positive = value(Positive(1.0));
        /// Initial values by parameter path: a pattern such as `"*.value.weight"`, where `*` matches any
        /// text, and its distribution. The last pattern that matches applies.
        rules: Rules = value(Rules(Vec::new()));
    }
}

/// Patterns of parameter paths with their distributions, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules(pub Vec<Rule>);

/// A pattern and its distribution.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The pattern, in which `*` matches any text.
    pub pattern: String,
    /// The place of the pattern.
    pub span: Span,
    /// The initial values of the parameters that match.
    pub distribution: Distribution,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        // Where a rule was written makes no difference.
        self.pattern == other.pattern && self.distribution == other.distribution
    }
}

impl Value for Rules {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            crate::field::value::wrong_kind(node, "a map from path patterns to distributions", cx);
            return None;
        };
        // All rules are decoded before an error ends this, so that the errors of each are reported.
        let rules: Vec<Option<Rule>> = entries
            .iter()
            .map(|e| {
                let distribution = Distribution::decode(&e.value, cx)?;
                Some(Rule { pattern: e.key.clone(), span: e.key_span, distribution })
            })
            .collect();
        rules.into_iter().collect::<Option<Vec<Rule>>>().map(Rules)
    }
    fn encode(&self) -> Node {
        let entry = |r: &Rule| crate::field::record::entry(&r.pattern, r.distribution.encode());
        Node::map(self.0.iter().map(entry).collect(), Span::default())
    }
    fn describe() -> Shape {
        Shape::Map(Distribution::describe)
    }
}

/// The `init` key: its fields, or one distribution for the weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Init(pub InitFields);

impl Value for Init {
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        // `{normal: ..}` has a single key, which is no field of `init`.
        let is_distribution = match &node.kind {
            // A distribution by its name alone, as in `init: zeros`.
            Kind::Scalar(_) => true,
            Kind::Map(entries) => match entries.as_slice() {
                [only] => InitFields::fields().iter().all(|f| f.name != only.key),
                _ => false,
            },
            Kind::Null | Kind::List(_) | Kind::Delete => false,
        };
        if !is_distribution {
            return InitFields::decode(node, cx).map(Init);
        }
        // With the place of the short form, where an error in it is shown.
        let entry = crate::field::record::entry("weights", node.clone());
        InitFields::decode(&Node::map(vec![entry], node.span), cx).map(Init)
    }
    fn encode(&self) -> Node {
        self.0.encode()
    }
    fn describe() -> Shape {
        InitFields::describe()
    }
}

/// Decides the initial values of every parameter by its path.
#[derive(Debug)]
pub struct InitPlan {
    fields: InitFields,
    /// Whether each rule has matched a parameter.
    // A cell, because all parts that are lowered share the plan.
    used: std::cell::RefCell<Vec<bool>>,
    /// The places of distributions that only matrices can have, each with the first vector that got it.
    misplaced: std::cell::RefCell<Vec<(Span, String)>>,
    /// The paths for which rules have been asked.
    paths: std::cell::RefCell<std::collections::BTreeSet<String>>,
}

/// A distribution as it applies to a parameter, with its place if only a matrix can have it.
type Start = (ir::Init, Option<Span>);

/// How a distribution of the spec applies.
fn start(distribution: &Distribution) -> Start {
    (distribution.init(), distribution.needs_matrix())
}

impl InitPlan {
    /// The plan for these fields.
    pub fn new(init: &Init) -> Self {
        let used = std::cell::RefCell::new(vec![false; init.0.rules.0.len()]);
        let (misplaced, paths) = Default::default();
        Self { fields: init.0.clone(), used, misplaced, paths }
    }

    /// The initial values of a parameter with this number of axes.
    fn of(&self, path: &str, axes: usize, otherwise: Start) -> ir::Init {
        let (mut found, mut place) = otherwise;
        // All rules are tried, since the last one that matches applies and those before it count as used,
        // too.
        if self.depends_on_paths() {
            self.paths.borrow_mut().insert(path.to_owned());
        }
        for (i, rule) in self.fields.rules.0.iter().enumerate() {
            if matches(&rule.pattern, path) {
                (found, place) = start(&rule.distribution);
                if let Some(used) = self.used.borrow_mut().get_mut(i) {
                    *used = true;
                }
            }
        }
        if let Some(place) = place.filter(|_| axes < 2) {
            let mut misplaced = self.misplaced.borrow_mut();
            if misplaced.iter().all(|(known, _)| *known != place) {
                misplaced.push((place, path.to_owned()));
            }
        }
        found
    }

    /// Whether a parameter's path can matter to its initial values.
    pub fn depends_on_paths(&self) -> bool {
        !self.fields.rules.0.is_empty()
    }

    /// A projection `[.., input] → [.., output]`, initialised by the spec's rules for its path.
    pub fn linear(&self, path: &str, input: Extent, output: Extent, bias: bool) -> Layer {
        self.projection(path, input, output, bias, start(&self.fields.weights))
    }

    /// The last projection of a residual branch, whose weights are scaled by `residual`.
    pub fn branch_output(&self, path: &str, input: Extent, output: Extent, bias: bool) -> Layer {
        // Scaled before the rules are asked, so that a rule that matches says exactly what it gives.
        let (weights, place) = start(&self.fields.weights);
        self.projection(path, input, output, bias, (weights.scaled(*self.fields.residual), place))
    }

    fn projection(&self, path: &str, input: Extent, output: Extent, bias: bool, weights: Start) -> Layer {
        Layer::Linear {
            input,
            output,
            bias,
            init: self.of(&format!("{path}.weight"), 2, weights),
            bias_init: self.bias(path, bias),
        }
    }

    fn bias(&self, path: &str, has_bias: bool) -> ir::Init {
        // Without a bias there is nothing that a rule could match, so none must count as used.
        if !has_bias {
            return ir::Init::Zeros;
        }
        self.of(&format!("{path}.bias"), 1, start(&self.fields.biases))
    }

    /// An embedding table `[rows, dim]`, whose row `padding` is initialised to zero.
    pub fn embedding(&self, path: &str, of: Rows, rows: Extent, dim: Extent, padding: Option<u64>) -> Layer {
        let start = start(self.fields.embeddings.as_ref().unwrap_or(&self.fields.weights));
        Layer::Embedding { of, rows, dim, padding, init: self.of(&format!("{path}.weight"), 2, start) }
    }

    /// The projection of an image's patches.
    pub fn patches(&self, path: &str, channels: Extent, dim: Extent, size: Extent, bias: bool) -> Layer {
        let init = self.of(&format!("{path}.weight"), 2, start(&self.fields.weights));
        let bias_init = self.bias(path, bias);
        Layer::Patches { channels, dim, size, bias, init, bias_init }
    }

    /// A tensor that is not part of a layer; `otherwise` is its usual initialisation.
    pub fn param(&self, path: &str, shape: Vec<Extent>, otherwise: Option<ir::Init>) -> Layer {
        let start = otherwise.map_or_else(|| start(&self.fields.weights), |init| (init, None));
        Layer::Param { init: self.of(path, shape.len(), start), shape, trained: true }
    }

    /// As [`InitPlan::param`] with the distribution that the part itself gives.
    pub fn own_param(&self, path: &str, shape: Vec<Extent>, own: Option<&Distribution>) -> Layer {
        let start = start(own.unwrap_or(&self.fields.weights));
        Layer::Param { init: self.of(path, shape.len(), start), shape, trained: true }
    }

    /// Diagnostics for the rules that no parameter matched, and for distributions that their parameters
    /// cannot have.
    pub fn faults(&self) -> Vec<Diagnostic> {
        let mut found = self.unused();
        let misplaced = self.misplaced.borrow();
        found.extend(misplaced.iter().map(|(place, path)| {
            let message = format!("`{path}` is a vector, but only a matrix can be orthogonal");
            Diagnostic::error(Code::WrongPlace, *place, message)
                .help("choose another distribution, such as `zeros`, or a pattern that matches matrices only")
        }));
        found
    }

    fn unused(&self) -> Vec<Diagnostic> {
        let (used, paths) = (self.used.borrow(), self.paths.borrow());
        let rules = self.fields.rules.0.iter().zip(used.iter());
        rules
            .filter(|(_, used)| !**used)
            // No more would be kept, and to look for what each may mean takes its time.
            .take(Sink::LIMIT)
            .map(|(rule, _)| {
                let message = format!("no parameter's path matches `{}`", rule.pattern);
                let diagnostic = Diagnostic::error(Code::UnusedRule, rule.span, message);
                nearest(&rule.pattern, &*paths)
                    .into_iter()
                    .fold(diagnostic, |diagnostic, near| diagnostic.help(format!("`{near}` would match")))
                    .help("`trafoc show SPEC` lists the paths; a block's index is `*`")
            })
            .collect()
    }
}
