//! Mixture of experts: a router sends every token to a few of many feed-forward parts and adds their
//! outputs, weighted (Shazeer et al. 2017; Mixtral, DeepSeek, Qwen, GPT-OSS).

use super::{Glu, Mlp, OwnPart, Site};
use crate::diag::count::counted;
use crate::diag::fix::REMOVE_IT;
use crate::diag::{Code, Diagnostic};
use crate::field::record::{choice, record, slot};
use crate::field::rule::{Is, Rule};
use crate::field::{Context, Positive, Size};
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::{self, Elementary, Op, Reduction, Router, padded};
use crate::ir::text::thousands;
use crate::ir::{Extent, Init, Layer, ModuleId, Part, Role, Run, Slot, ValueId};

slot! {
    /// One expert, which is a feed-forward part.
    pub enum Expert as "expert" implied "mlp" own OwnPart {
        /// `down(activation(up(x)))` (Vaswani et al. 2017)
        "mlp" => Mlp(Mlp),
        /// `down(activation(gate(x)) * up(x))` (Shazeer 2020)
        "glu" => Glu(Glu),
    }
}

impl Expert {
    fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        match self {
            Expert::Mlp(f) => f.lower(site),
            Expert::Glu(f) => f.lower(site),
            Expert::Own(f) => site.own(f),
        }
    }

    fn described(&self, d_model: Extent) -> Part {
        match self {
            Expert::Mlp(f) => f.described(d_model),
            Expert::Glu(f) => f.described(d_model),
            Expert::Own(f) => f.described(),
        }
    }
}

choice! {
    /// How router scores become affinities.
    pub enum Score {
        /// Softmax over all experts, then the choice (Mixtral, Qwen)
        "softmax" => Softmax,
        /// The choice, then softmax over the chosen (GPT-OSS)
        "softmax_of_chosen" => SoftmaxOfChosen,
        /// A separate sigmoid for every expert (DeepSeek-V3)
        "sigmoid" => Sigmoid,
    }
}

record! {
    /// Restricts the choice to the best groups of experts (DeepSeek).
    pub struct Groups as "groups" {
        /// The number of groups, all of equal size.
        count: Size = required;
        /// The number of groups that a token may use.
        keep: Size = required;
        /// How many of a group's best experts add up to its score (2 in DeepSeek-V3, 1 in V2).
        score_of: Size = value(Size(2));
    }
}

record! {
    /// Experts that every token is sent to, combined into one feed-forward part.
    pub struct Shared as "shared" {
        /// The feed-forward part that every token goes through.
        expert: Expert = required;
        /// Whether its output is weighted by a sigmoid of a projection of the token (Qwen2-MoE).
        gate: bool = value(false);
    }
}

record! {
    /// Mixture of experts: a router sends every token to a few of many feed-forward parts.
    pub struct Mixture as "moe" {
        /// The number of experts.
        experts: Size = required;
        /// The number of experts that a token is sent to.
        top_k: Size = required;
        /// The kind of expert.
        expert: Box<Expert> = required;
        /// How router scores become affinities.
        score: Score = value(Score::Softmax);
        /// Whether the chosen weights are divided by their sum.
        normalize: bool = value(false);
        /// Factor on the weights.
        scale: Positive = value(Positive(1.0));
        /// Whether the router has a bias.
        router_bias: bool = value(false);
        /// Whether there is a bias on the scores that only affects the choice and is not trained by gradients
        /// (DeepSeek-V3).
        correction: bool = value(false);
        /// Restricts the choice to the best groups.
        groups: Option<Groups> = absent;
        /// Experts that every token is sent to.
        shared: Option<Box<Shared>> = absent;
        /// Factor on a loss that training adds for tokens that are spread unevenly over the experts,
        /// `experts` times the sum over all experts of the share of tokens sent to one times its mean
        /// affinity (Fedus et al. 2021). Each token counts for `top_k` experts, so these shares add up to
        /// `top_k`; the affinities of a token, with `score: sigmoid` divided by their sum, add up to 1.
        /// Padding does not count.
        balance: Option<Positive> = absent;
        /// Factor on a loss that training adds for large router scores, the mean of the squares of
        /// `log(sum(exp(scores)))` over all tokens but padding (Zoph et al. 2022).
        z_loss: Option<Positive> = absent;
    } rules [
        Rule::at_most("top_k", "experts"),
        Rule::excludes(
            ("correction", Is::True),
            ("score", Is::Word("softmax_of_chosen")),
            "`softmax_of_chosen` chooses by the scores themselves, so `correction` cannot be used",
        )
        .help("`score: sigmoid` or `score: softmax`"),
        Rule::excludes(
            ("normalize", Is::True),
            ("score", Is::Word("softmax_of_chosen")),
            "the softmax over the chosen already sums to 1, so `normalize` would have no effect",
        )
        .help(REMOVE_IT),
        Rule::divides("groups.count", "experts"),
        Rule::at_most("groups.keep", "groups.count"),
    ]; check Self::check;
}

impl Mixture {
    fn check(&self, cx: &mut Context<'_>) -> Option<()> {
        let mut ok = Some(());
        let mut report = |diagnostic: Diagnostic| {
            cx.report(diagnostic);
            ok = None;
        };
        // A rule of the field tables is about two fields; these conditions are about three.
        // Where two fields contradict each other already, a third one says nothing new.
        let is_sound = |groups: &Groups| {
            self.top_k <= self.experts
                && self.experts.checked_rem(*groups.count) == Some(0)
                && groups.keep <= groups.count
        };
        if let Some(groups) = self.groups.as_ref().filter(|groups| is_sound(groups)) {
            let places = &groups.places;
            let size = self.experts.checked_div(*groups.count).unwrap_or(0);
            let left = groups.keep.saturating_mul(size);
            if *groups.score_of > size {
                let message =
                    format!("a group of {} has fewer than {}", counted(size, "expert"), *groups.score_of);
                report(
                    Diagnostic::error(Code::OutOfRange, places.of("score_of"), message)
                        .help(format!("at most {size}")),
                );
            // Only if the groups are sound: with the fault above, the number of experts left means nothing.
            } else if *self.top_k > left {
                let message = format!(
                    "top_k ({}) is more than the kept groups have: {}",
                    *self.top_k,
                    counted(left, "expert")
                );
                report(Diagnostic::error(Code::OutOfRange, self.places.of("top_k"), message));
            }
        }
        ok
    }

    /// What it is, in a few words.
    fn described(&self, d_model: Extent) -> Part {
        let size = |n: u64| thousands(n.into());
        let chosen = format!(
            "{}, {} per token",
            crate::diag::count::counted(size(*self.experts), "expert"),
            size(*self.top_k)
        );
        let mut part = Part::new(Slot::Ffn, "Mixture of experts").note(chosen);
        part.notes.extend(self.expert.described(d_model).notes);
        if self.shared.is_some() { part.note("and 1 for every token") } else { part }
    }

    /// The losses of the router, from its scores and the weights of experts, both `[B, T, E]`.
    fn losses(&self, b: &mut Builder, scores: ValueId, weights: ValueId) -> Result<(), Mismatch> {
        if let Some(weight) = &self.balance {
            let affinities = match self.score {
                Score::Softmax | Score::SoftmaxOfChosen => b.op("affinities", Op::Softmax, &[scores])?,
                Score::Sigmoid => {
                    let affinities = b.op("affinities", Op::Activate(op::Activation::Sigmoid), &[scores])?;
                    let total = b.op("total", Op::Reduce(Reduction::Sum), &[affinities])?;
                    b.op("affinities", Op::Divide, &[affinities, total])?
                }
            };
            // The weight of an expert that a token is sent to is above 0.
            let chosen = b.op("chosen", Op::Elementary(Elementary::Sign), &[weights])?;
            let along = padded(b.ty(chosen));
            let share = b.op("share", Op::BatchMean { along }, &[chosen])?;
            let affinity = b.op("affinity", Op::BatchMean { along }, &[affinities])?;
            let product = b.op("product", Op::Mul, &[share, affinity])?;
            let sum = b.op("sum", Op::Reduce(Reduction::Sum), &[product])?;
            let value = b.op("imbalance", Op::Scale { by: (*self.experts as f64).into() }, &[sum])?;
            b.op("balance", Op::ExtraLoss { weight: **weight, along: None }, &[value])?;
        }
        if let Some(weight) = &self.z_loss {
            // The largest score is taken out, so that no exponential overflows.
            let most = b.op("most", Op::Reduce(Reduction::Max), &[scores])?;
            let minus = b.op("minus", Op::Scale { by: (-1.0).into() }, &[most])?;
            let below = b.op("below", Op::Add, &[scores, minus])?;
            let exp = b.op("exp", Op::Elementary(Elementary::Exp), &[below])?;
            let sum = b.op("sum", Op::Reduce(Reduction::Sum), &[exp])?;
            let log = b.op("log", Op::Elementary(Elementary::Log), &[sum])?;
            let z = b.op("z", Op::Add, &[log, most])?;
            let value = b.op("z2", Op::Elementary(Elementary::Square), &[z])?;
            let along = padded(b.ty(value));
            b.op("z_loss", Op::ExtraLoss { weight: **weight, along }, &[value])?;
        }
        Ok(())
    }

    /// The module, `[B, T, D] → [B, T, D]`.
    pub fn lower(&self, site: &Site<'_>) -> Result<ModuleId, Mismatch> {
        // The field tables allow no mixture as an expert.
        if site.is_expert {
            return Err(Mismatch("an expert that is a mixture".into()));
        }
        let scope = site.scope;
        // In the rules of `init`, `*` is any expert, as it is any block.
        let expert = self.expert.lower(&site.child("experts.*", "Expert", true))?;
        let shared = match &self.shared {
            // The shared expert takes the whole sequence, and not rows that are sent to it.
            Some(shared) => Some(shared.expert.lower(&site.child("shared", "SharedExpert", false))?),
            None => None,
        };
        let mut b = Builder::new(&scope.arena, format!("{}Mixture", scope.prefix), Role::Ffn);
        b.at(self.places.whole());
        b.part(self.described(scope.d_model));
        b.doc(format!(
            "Sends every token to {} of {} and adds their weighted outputs.",
            *self.top_k,
            counted(*self.experts, "expert")
        ));
        let x = b.argument("x", site.input());
        let path = |member: &str| format!("{}.{member}", site.path);
        let experts = Extent::new("experts", *self.experts);
        let router = scope.linear(&path("router"), scope.d_model, experts, self.router_bias);
        let scores = b.apply("router", router, x)?;
        let mut inputs = vec![scores];
        // `e_score_correction_bias` of DeepSeek-V3, which is not trained by gradients.
        if self.correction {
            let layer = Layer::Param { shape: vec![experts], init: Init::Zeros, trained: false };
            inputs.push(b.param("correction", layer)?);
        }
        let route = Router {
            top_k: Extent::new("top_k", *self.top_k),
            score: match self.score {
                Score::Softmax => op::RouterScore::Softmax,
                Score::SoftmaxOfChosen => op::RouterScore::SoftmaxOfChosen,
                Score::Sigmoid => op::RouterScore::Sigmoid,
            },
            normalize: self.normalize,
            scale: *self.scale,
            groups: self.groups.as_ref().map(|g| op::RouterGroups {
                groups: Extent::new("groups", *g.count),
                keep: Extent::new("groups_kept", *g.keep),
                score_of: Extent::new("score_of", *g.score_of),
            }),
            has_correction: self.correction,
        };
        let weights = b.op("weights", Op::Route(route), &inputs)?;
        self.losses(&mut b, scores, weights)?;
        // As the blocks of a stack, experts are one module with a count, so the graph stays small however
        // many there are.
        let member = b.stack("experts", vec![Run { count: *self.experts, cycle: vec![expert] }]);
        let mut y = b.op("y", Op::Experts { member, active: *self.top_k }, &[x, weights])?;
        if let (Some(fields), Some(module)) = (&self.shared, shared) {
            let mut always = b.call("shared", module, &[x])?;
            if fields.gate {
                let gate = b.apply(
                    "shared_gate",
                    // One number for each token, without a bias (`shared_expert_gate` of Qwen2-MoE).
                    scope.linear(&path("shared_gate"), scope.d_model, Extent::from(1), false),
                    x,
                )?;
                let gate = b.op("gate", Op::Activate(op::Activation::Sigmoid), &[gate])?;
                always = b.op("always", Op::Mul, &[always, gate])?;
            }
            y = b.op("y", Op::Add, &[y, always])?;
        }
        Ok(b.finish(&[y]))
    }
}
