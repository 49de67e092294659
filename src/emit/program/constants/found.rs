//! Finds the numbers of a graph that get a name, and names them.

use std::collections::BTreeSet;

use super::kind::{Fresh, Kind};
use super::number::{Constant, ConstantId, Number, Size, product};
use crate::emit::program::{name, needs};
use crate::ir::extent::RULES;
use crate::ir::op::quantity::Quantity;
use crate::ir::{Extent, Graph, Init, Layer, MemberKind, Module, ModuleId, Op, stack_len};

/// A number that may become a constant.
#[derive(Clone, Debug)]
struct Candidate {
    kind: Kind,
    /// What tells it from others of its kind in its name: a module or a member.
    scope: String,
    value: Number,
    owner: Option<ModuleId>,
    /// For a field: whether it follows from others by the rule of the spec in every place.
    is_by_rule: bool,
}

/// Numbers in order of appearance.
#[derive(Default)]
pub(super) struct Found {
    all: Vec<Candidate>,
    // The modules that have been visited.
    seen: BTreeSet<usize>,
}

impl Found {
    pub(super) fn size(&mut self, size: Extent, scope: &str) {
        for word in size.words() {
            self.add_or_follow(Kind::Field(word.name), scope, Number::Int(word.n), word.is_by_rule);
        }
    }

    fn add(&mut self, kind: Kind, scope: &str, value: Number) {
        self.add_or_follow(kind, scope, value, false);
    }

    fn add_or_follow(&mut self, kind: Kind, scope: &str, value: Number, is_by_rule: bool) {
        match self.all.iter_mut().find(|c| c.kind == kind && c.value == value) {
            // If the author gave the number in one place, it does not follow from others there.
            Some(known) => known.is_by_rule &= is_by_rule,
            None => {
                let scope = scope.to_owned();
                self.all.push(Candidate { kind, scope, value, owner: None, is_by_rule });
            }
        }
    }

    pub(super) fn walk(&mut self, graph: &Graph, id: ModuleId) {
        let module = graph.module(id);
        let scope = name::snake(&module.name);
        for node in &module.nodes {
            if let Op::Scan { member, .. } = &node.op
                // The lengths of stacks in the model itself are named by the stack (`ENCODER_LAYERS`): the
                // module is the same for all of them.
                && let MemberKind::Stack(runs) = &module.member(*member).kind
            {
                let scope = if id == graph.root { &module.member(*member).name } else { &scope };
                let value = Number::Int(stack_len(runs));
                let scope = scope.clone();
                let kind = Kind::Layers;
                // Unlike other numbers, lengths are not joined if they are equal: each stack has its own
                // constant.
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
                    for child in needs::kinds(runs) {
                        self.child(graph, child);
                    }
                }
            }
        }
    }

    fn child(&mut self, graph: &Graph, id: ModuleId) {
        // A block that many stacks share is visited once; visiting it for each would take time in proportion
        // to the layers and find nothing new.
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
                // A layer without a bias draws none, and a constant for it would name a number that nothing
                // uses.
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
                // As for a linear layer: without a bias there is no distribution to name.
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

    /// Names each number: the only one of its kind by the kind alone, one of several also by its scope.
    pub(super) fn name(self) -> Vec<Constant> {
        let mut out: Vec<Constant> = Vec::new();
        let mut sorted = self.all.clone();
        // The sort is stable: numbers of one kind keep the order in which a reader of the spec meets them.
        sorted.sort_by_key(|candidate| candidate.kind.order());
        for Candidate { kind, scope, value, owner, is_by_rule } in sorted {
            // A number that is alone of its kind needs no scope: `EPS`, not `BLOCK_EPS`.
            let several = self.all.iter().filter(|c| c.kind == kind).count() > 1;
            let first = out.iter().all(|c| c.kind != kind);
            let whole = kind.name();
            let (plain, base) = match kind {
                // The distribution met first keeps the plain name (`INIT_STD`); others are named after the
                // member whose weights they are for (`OUTPUT_STD`).
                Kind::Fresh(_) if first => (true, whole.clone()),
                Kind::Fresh(fresh) => (!several, fresh.name().to_owned()),
                Kind::Field(_) | Kind::Layers | Kind::Named(_) | Kind::Eps => {
                    (!several || scope.is_empty(), whole.clone())
                }
            };
            let wanted = if plain { whole } else { format!("{scope}_{base}") };
            let mut name = wanted.clone();
            let mut n = 2;
            // Members of different modules may have one name and weights of different distributions.
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
    // With two values of a field in one model, its name alone would not say which of them is meant.
    let only = |wanted: &&'static str| {
        let mut all = earlier.iter().enumerate().filter(|(_, c)| c.kind == Kind::Field(wanted));
        let found = all.next().filter(|_| all.next().is_none());
        found.map(|(at, _)| Size::Constant(ConstantId(at)))
    };
    let whole = product(factors.iter().map(only).collect::<Option<_>>()?);
    let by = product(divisors.iter().map(only).collect::<Option<_>>()?);
    let formula = Size::Quotient(Box::new(whole), Box::new(by));
    // The rule is that of the spec; where the numbers do not obey it, the formula would be wrong.
    (formula.value(earlier).map(Number::Int) == Some(value)).then_some(formula)
}
