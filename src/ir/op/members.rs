//! Ops that refer to a member of their module: a layer, a child module, the blocks of a stack, experts.

use super::activation::Activation;
use super::callee::{Callee, Runs};
use super::layer;
use super::meaning::{Given, Meaning, Note, Picture, Site, Types};
use super::training::Training;
use crate::ir::infer::{Mismatch, fail};
use crate::ir::work::Work;
use crate::ir::{Dim, Layer, MemberId, MemberKind, Module, ModuleId, Run, Type, stack_len};

fn name(module: &Module, id: MemberId) -> &str {
    // Graphs are printed before they are verified, too, when a member need not exist.
    module.members.get(id.0).map_or("?", |member| member.name.as_str())
}

fn kind<'a>(given: &Given<'a>, id: MemberId) -> Option<&'a MemberKind> {
    given.module.members.get(id.0).map(|member| &member.kind)
}

/// The types that a module returns for inputs of these types.
fn called(inputs: &[&Type], callee: &Module) -> Types {
    if inputs.len() != callee.args {
        return fail(format!("{} takes {} arguments, not {}", callee.name, callee.args, inputs.len()));
    }
    for (given, wanted) in inputs.iter().zip(callee.arguments()) {
        // A value that is always given fits an argument that may be absent, but not the other way round.
        let fits = given.dtype == wanted.ty.dtype
            && given.shape == wanted.ty.shape
            && (!given.optional || wanted.ty.optional);
        if !fits {
            return fail(format!("{} takes {} of {}, not {given}", callee.name, wanted.name, wanted.ty));
        }
    }
    Ok(callee.results.iter().map(|id| callee.value(*id).ty.clone()).collect())
}

/// The work of all called modules together.
fn work_of(callees: Vec<Callee>, site: &Site<'_>) -> Work {
    let mut sum = Work::default();
    for callee in callees {
        if let Some(work) = site.measured.get(callee.module.0) {
            sum.add(&callee.runs.of(work));
        }
    }
    sum
}

/// The modules in the cycles of a stack's runs, each with the number of its blocks.
fn blocks(runs: &[Run]) -> impl Iterator<Item = (ModuleId, u128)> {
    runs.iter()
        .flat_map(|run| run.cycle.iter().enumerate().map(move |(i, id)| (*id, u128::from(run.blocks(i)))))
}

/// The meaning of [`Op::Layer`](super::Op::Layer) and of [`Op::ActivatedLayer`](super::Op::ActivatedLayer).
pub(super) struct Apply {
    pub member: MemberId,
    /// What is applied to the result.
    pub activation: Option<Activation>,
}

impl Meaning for Apply {
    fn text(&self, module: &Module) -> String {
        let layer = format!("self.{}", name(module, self.member));
        match self.activation {
            Some(activation) => format!("{layer} {}", activation.name()),
            None => layer,
        }
    }
    fn sentence(&self) -> &'static str {
        match self.activation {
            Some(_) => "a layer with weights of its own, and a nonlinearity of its result",
            None => "a layer with weights of its own",
        }
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match kind(given, self.member) {
            Some(MemberKind::Layer(layer)) => layer::infer(layer, given),
            Some(MemberKind::Module(_) | MemberKind::Stack(_)) => fail("a layer is applied that is a module"),
            None => fail("no such member"),
        }
    }
    fn is_by_position(&self, site: &Site<'_>) -> bool {
        match site.module.members.get(self.member.0).map(|member| &member.kind) {
            Some(MemberKind::Layer(layer)) => layer::is_by_position(layer),
            Some(MemberKind::Module(_) | MemberKind::Stack(_)) | None => false,
        }
    }
    fn work(&self, site: &Site<'_>) -> Work {
        match site.module.members.get(self.member.0).map(|member| &member.kind) {
            Some(MemberKind::Layer(layer)) => {
                let mut work = layer::work(layer, site);
                if let Some(activation) = self.activation {
                    work.add(&activation.work(site));
                }
                work
            }
            // `infer` has refused such an op.
            Some(MemberKind::Module(_) | MemberKind::Stack(_)) | None => Work::default(),
        }
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::Member
    }
    fn training(&self, site: &Site<'_>) -> Training {
        match site.module.members.get(self.member.0).map(|member| &member.kind) {
            Some(MemberKind::Layer(layer)) => {
                let training = layer::training(layer, site.node.inputs.len());
                match self.activation {
                    Some(activation) => training.then(activation.training(site)),
                    None => training,
                }
            }
            Some(MemberKind::Module(_) | MemberKind::Stack(_)) | None => Training::Member,
        }
    }
    fn member(&self) -> Option<MemberId> {
        Some(self.member)
    }
    fn layer(&self) -> Option<(MemberId, Option<Activation>)> {
        Some((self.member, self.activation))
    }
}

/// The meaning of [`Op::Weight`](super::Op::Weight).
pub(super) struct Weight<'a> {
    pub path: &'a [MemberId],
}

impl Meaning for Weight<'_> {
    fn text(&self, _: &Module) -> String {
        // The ids on the path are those of members of other modules, which this one cannot name.
        format!("weight {} level(s) down", self.path.len())
    }
    fn sentence(&self) -> &'static str {
        "the table of an embedding, used a second time"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let mut at = given.module;
        for (i, id) in self.path.iter().enumerate() {
            match at.members.get(id.0).map(|member| &member.kind) {
                Some(MemberKind::Module(child)) => at = given.callee(child.0)?,
                Some(MemberKind::Layer(Layer::Embedding { rows, dim, .. }))
                    if i.saturating_add(1) == self.path.len() =>
                {
                    return Ok(vec![Type::float([Dim::from(*rows), Dim::from(*dim)])]);
                }
                Some(MemberKind::Layer(_) | MemberKind::Stack(_)) | None => {
                    return fail("only an embedding's weight can be used elsewhere");
                }
            }
        }
        fail("a path that ends at a module")
    }
    fn work(&self, _: &Site<'_>) -> Work {
        Work::default()
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::notes([Note::Words("tied to the embedding".into())])
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Training::Member
    }
    fn uses(&self) -> Option<MemberId> {
        self.path.first().copied()
    }
}

/// What follows from running the modules of a member and nothing else.
macro_rules! runs_member {
    () => {
        fn work(&self, site: &Site<'_>) -> Work {
            work_of(self.callees(site), site)
        }
        fn picture(&self, _: &Site<'_>) -> Picture {
            Picture::Member
        }
        fn training(&self, _: &Site<'_>) -> Training {
            Training::Member
        }
        fn member(&self) -> Option<MemberId> {
            Some(self.member)
        }
    };
}

/// The meaning of [`Op::Call`](super::Op::Call).
pub(super) struct Call {
    pub member: MemberId,
}

impl Meaning for Call {
    fn text(&self, module: &Module) -> String {
        format!("call self.{}", name(module, self.member))
    }
    fn sentence(&self) -> &'static str {
        "a module"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        match kind(given, self.member) {
            Some(MemberKind::Module(id)) => called(given.inputs, given.callee(id.0)?),
            Some(MemberKind::Layer(_) | MemberKind::Stack(_)) | None => {
                fail("a call of something that is not a module")
            }
        }
    }
    runs_member!();
    fn callees(&self, site: &Site<'_>) -> Vec<Callee> {
        match &site.module.member(self.member).kind {
            MemberKind::Module(id) => vec![Callee { module: *id, runs: Runs::Whole(1) }],
            MemberKind::Layer(_) | MemberKind::Stack(_) => Vec::new(),
        }
    }
}

/// The meaning of [`Op::Scan`](super::Op::Scan).
pub(super) struct Scan<'a> {
    pub member: MemberId,
    pub each: u64,
    pub args: &'a [Vec<Vec<usize>>],
}

impl Meaning for Scan<'_> {
    fn text(&self, module: &Module) -> String {
        let Self { member, each, args } = self;
        let each = if *each == 1 { String::new() } else { format!(" each={each}") };
        format!("scan self.{}{each} args={args:?}", name(module, *member))
    }
    fn sentence(&self) -> &'static str {
        "blocks one after the other, each given what the last one returned"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let Some(MemberKind::Stack(runs)) = kind(given, self.member) else {
            return fail("a scan over something that is not a stack");
        };
        let Some((carry, pool)) = given.inputs.split_first() else { return fail("a scan needs a value") };
        // A block that is never applied would have parameters without an effect.
        if self.each == 0 || runs.len() != self.args.len() {
            return fail("a scan's runs and arguments differ");
        }
        for (run, cycle) in runs.iter().zip(self.args) {
            if run.cycle.len() != cycle.len() || run.cycle.is_empty() {
                return fail("a scan's cycle and arguments differ");
            }
            for (id, extra) in run.cycle.iter().zip(cycle) {
                let mut of_block = vec![*carry];
                for index in extra {
                    // Input 0 is the value that is folded, so the others are counted from 1.
                    let ty = index.checked_sub(1).and_then(|i| pool.get(i));
                    of_block.push(ty.ok_or(Mismatch("a scan's argument is out of range".into()))?);
                }
                let results = called(&of_block, given.callee(id.0)?)?;
                // The next block takes what this one returns.
                if results.len() != 1 || results.first() != Some(carry) {
                    return fail("a block does not return what it takes");
                }
            }
        }
        Ok(vec![(*carry).clone()])
    }
    runs_member!();
    fn callees(&self, site: &Site<'_>) -> Vec<Callee> {
        let MemberKind::Stack(runs) = &site.module.member(self.member).kind else { return Vec::new() };
        let times = |n: u128| Runs::Whole(n.saturating_mul(u128::from(self.each)));
        blocks(runs).map(|(module, n)| Callee { module, runs: times(n) }).collect()
    }
}

/// The meaning of [`Op::Experts`](super::Op::Experts).
pub(super) struct Experts {
    pub member: MemberId,
    pub active: u64,
}

impl Meaning for Experts {
    fn text(&self, module: &Module) -> String {
        format!("experts self.{} active={}", name(module, self.member), self.active)
    }
    fn sentence(&self) -> &'static str {
        "the experts a token is sent to, their outputs weighted and added"
    }
    fn infer(&self, given: &Given<'_>) -> Types {
        let Some(MemberKind::Stack(runs)) = kind(given, self.member) else {
            return fail("experts that are not a stack");
        };
        let [x, weights] = given.inputs else { return fail("experts take the input and the weights") };
        let experts = Dim::of(stack_len(runs));
        if weights.last() != Some(&experts) || weights.shape.len() != 3 {
            return fail(format!("{experts} experts, weights {weights}"));
        }
        for id in runs.iter().flat_map(|r| &r.cycle) {
            let expert = given.callee(id.0)?;
            // An expert takes rows `[N, D]`, whose number is not a length of the op's input, so only the rank
            // is compared.
            let takes_rows = expert.args == 1 && expert.arguments().iter().all(|v| v.ty.shape.len() == 2);
            if !takes_rows {
                return fail("an expert takes rows `[N, D]`");
            }
        }
        Ok(vec![(*x).clone()])
    }
    fn work(&self, site: &Site<'_>) -> Work {
        let mut sum = work_of(self.callees(site), site);
        let out = site.out();
        // Each expert's rows are multiplied by their weight and added up.
        sum.elementwise = sum.elementwise + &out * &Dim::of(u128::from(self.active).saturating_mul(2));
        sum.activations = sum.activations + out;
        sum
    }
    fn picture(&self, _: &Site<'_>) -> Picture {
        Picture::step("experts")
    }
    fn training(&self, _: &Site<'_>) -> Training {
        Training::Member
    }
    fn member(&self) -> Option<MemberId> {
        Some(self.member)
    }
    fn callees(&self, site: &Site<'_>) -> Vec<Callee> {
        let MemberKind::Stack(runs) = &site.module.member(self.member).kind else { return Vec::new() };
        let rows = site.input(0).map(Type::rows).unwrap_or_default();
        let of = u128::from(stack_len(runs));
        let routed = |n: u128| Runs::Routed {
            rows: rows.clone(),
            taken: n.saturating_mul(u128::from(self.active)),
            of,
        };
        blocks(runs).map(|(module, n)| Callee { module, runs: routed(n) }).collect()
    }
}
