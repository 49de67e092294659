//! Turns a graph into a plan: unrolls calls and stacks, replaces the paths of parameters by indices, and
//! finds out which values are constants and which belong to the memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use indexmap::IndexMap;

use super::depends::{Depends, lengths_of};
use super::error::PlanError;
use super::instruction::{Action, Body, Constant, Input, Lookup};
use super::registers::{FlatNode, Source, assign};
use crate::interp::weights::{Layout, TensorIndex};
use crate::ir::last::{for_last_position, is_along_time};
use crate::ir::op::Activation;
use crate::ir::op::meaning::Indices;
use crate::ir::paths::join;
use crate::ir::{
    DType, Dim, Layer, Lengths, Member, MemberId, MemberKind, Module, Op, Sym, Type, ValueId, Verified,
};

/// A value of one call of its module.
#[derive(Clone, Debug)]
pub(super) struct FlatValue {
    pub ty: Type,
    pub depends: Depends,
    pub from: Source,
    /// The op that computes it, if it is a constant.
    made: Option<Op>,
    /// The index of the input that it is or whose integers it contains, as a slice of that input does.
    input: Option<usize>,
}

/// A loss of a part.
pub(super) struct FlatLoss {
    /// The author's name for it.
    pub name: String,
    /// The path of the value, with a number if several have the same.
    pub path: String,
    pub weight: f64,
    pub value: usize,
}

/// A graph without modules: each of its calls is unrolled.
pub(super) struct Flat<'a> {
    graph: &'a Verified,
    layout: &'a Layout,
    pub values: Vec<FlatValue>,
    pub nodes: Vec<FlatNode>,
    pub constants: Vec<Constant>,
    /// The numbers of the values with each path, one for each time the value is computed.
    pub names: IndexMap<String, Vec<usize>>,
    /// The results of each layer, module and block by its path, one for each time it is applied. Thus a
    /// capture can name a part, such as the `norm2` of an equation.
    pub parts: IndexMap<String, Vec<usize>>,
    pub inputs: Vec<Input>,
    pub lookups: Vec<Lookup>,
    pub buffers: usize,
    pub losses: Vec<FlatLoss>,
    /// The number of the block that is being unrolled, and the number of blocks so far.
    block: Option<usize>,
    blocks: usize,
}

/// The names of applied layers and modules that another value of the module has, too: the embedding `tokens`
/// looks up the ids `tokens`. Such a path means the result of the layer or module.
fn taken(module: &Module) -> Vec<&str> {
    let applied = |op: &Op| match op {
        Op::Layer { member } | Op::Call { member } => Some(module.member(*member).name.as_str()),
        _ => None,
    };
    let shared = |name: &&str| {
        module.values.iter().enumerate().any(|(at, value)| {
            let makes = |op: &Op, outputs: &[ValueId]| {
                applied(op) == Some(*name) && outputs.first().is_some_and(|id| id.0 == at)
            };
            value.name == *name && !module.nodes.iter().any(|node| makes(&node.op, &node.outputs))
        })
    };
    module.nodes.iter().filter_map(|node| applied(&node.op)).filter(shared).collect()
}

/// Flattens the whole graph. Returns the numbers of its results, too.
pub(super) fn whole<'a>(
    graph: &'a Verified,
    layout: &'a Layout,
) -> Result<(Flat<'a>, Vec<usize>), PlanError> {
    let mut flat = Flat::new(graph, layout);
    let root = graph.root();
    let mut arguments = Vec::new();
    for (i, value) in root.arguments().iter().enumerate() {
        // An input along neither `T` nor `P` belongs to the encoder, which runs in the first call only.
        let time = value.ty.shape.iter().any(|d| d.uses(Sym::Time) || d.uses(Sym::Past));
        let depends = Depends { inputs: true, time, source: !time, weights: false };
        arguments.push(flat.value(value.ty.clone(), depends, None, Some(i))?);
        flat.inputs.push(Input {
            name: value.name.clone(),
            ty: value.ty.clone(),
            memory: !time,
            keep: false,
            rows: None,
        });
    }
    let results = flat.module(root, "", &arguments)?;
    // What may be left out is a mask or looked up. Where nothing attends, nothing reads the mask.
    for input in flat.inputs.iter_mut().filter(|input| input.ty.optional && input.rows.is_none()) {
        input.keep |= input.ty.dtype == DType::Int;
    }
    Ok((flat, results))
}

impl<'a> Flat<'a> {
    fn new(graph: &'a Verified, layout: &'a Layout) -> Self {
        Self {
            graph,
            layout,
            values: Vec::new(),
            nodes: Vec::new(),
            constants: Vec::new(),
            names: IndexMap::new(),
            parts: IndexMap::new(),
            inputs: Vec::new(),
            lookups: Vec::new(),
            buffers: 0,
            losses: Vec::new(),
            block: None,
            blocks: 0,
        }
    }
}

impl Flat<'_> {
    fn value(
        &mut self,
        ty: Type,
        depends: Depends,
        made: Option<Op>,
        input: Option<usize>,
    ) -> Result<usize, PlanError> {
        // The ranks of [`Ranked`](crate::interp::value::Ranked).
        if !(1..=4).contains(&ty.shape.len()) {
            return Err(PlanError::Refused(format!("a value is {ty}; tensors have 1 to 4 axes")));
        }
        let id = self.values.len();
        self.values.push(FlatValue { ty, depends, from: Source::Value(id), made, input });
        Ok(id)
    }

    /// Unrolls one call of a module. `arguments` and the returned results are numbers of values.
    fn module(
        &mut self,
        module: &Module,
        prefix: &str,
        arguments: &[usize],
    ) -> Result<Vec<usize>, PlanError> {
        // In a verified graph, every value is an argument or the output of an earlier node when it is read,
        // so none of these placeholders is ever used.
        let mut of: Vec<usize> = vec![usize::MAX; module.values.len()];
        let taken = taken(module);
        for (at, value) in arguments.iter().enumerate() {
            of[at] = *value;
            self.name(prefix, module, (at, &taken), *value);
        }
        // The next token follows from the last position, and the root is where the head is called.
        let for_last = match std::ptr::eq(module, self.graph.root()) {
            true => for_last_position(self.graph, module),
            false => Vec::new(),
        };
        let mut cut: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, node) in module.nodes.iter().enumerate() {
            let mut inputs: Vec<usize> = node.inputs.iter().map(|id| of[id.0]).collect();
            if for_last.get(i) == Some(&true) {
                for (input, id) in inputs.iter_mut().zip(&node.inputs) {
                    *input = self.last(&mut cut, *input, &module.value(*id).ty)?;
                }
            }
            let types: Vec<&Type> = node.outputs.iter().map(|id| &module.value(*id).ty).collect();
            let outputs = self.node(module, prefix, &node.op, &inputs, &types)?;
            if let (Op::Layer { member } | Op::Call { member }, [value, ..]) = (&node.op, outputs.as_slice())
            {
                let name = &module.member(*member).name;
                let path = join(prefix, name);
                if taken.contains(&name.as_str()) {
                    self.names.entry(path.clone()).or_default().push(*value);
                }
                self.parts.entry(path).or_default().push(*value);
            }
            if let (Some(weight), [id], [value]) =
                (node.op.meaning().loss_weight(), node.outputs.as_slice(), outputs.as_slice())
            {
                let variable = &module.value(*id).variable;
                // A layer that is applied again has the same path, and a loss of its own each time.
                let path = format!("{}#{}", join(prefix, &module.value(*id).name), self.losses.len());
                self.losses.push(FlatLoss { name: variable.clone(), path, weight, value: *value });
            }
            for (id, value) in node.outputs.iter().zip(outputs) {
                if for_last.get(i) == Some(&true) {
                    cut.insert(value, value);
                }
                of[id.0] = value;
                self.name(prefix, module, (id.0, &taken), value);
            }
        }
        Ok(module.results.iter().map(|id| of[id.0]).collect())
    }

    /// The value of which an op reads the last position, if only that one is wanted. `cut` has those that exist:
    /// the values that have one position already, and what was cut from others.
    fn last(&mut self, cut: &mut BTreeMap<usize, usize>, x: usize, ty: &Type) -> Result<usize, PlanError> {
        if !is_along_time(ty) {
            return Ok(x);
        }
        if let Some(known) = cut.get(&x) {
            return Ok(*known);
        }
        let value = self.push(Action::Last, &[x], &[ty], Depends::default())?;
        let value = value.first().copied().unwrap_or(x);
        cut.insert(x, value);
        Ok(value)
    }

    /// Names a value, unless a member has its name: the path then means the member's result.
    fn name(&mut self, prefix: &str, module: &Module, (at, taken): (usize, &[&str]), value: usize) {
        let name = &module.values[at].name;
        if !taken.contains(&name.as_str()) {
            self.names.entry(join(prefix, name)).or_default().push(value);
        }
    }

    fn node(
        &mut self,
        module: &Module,
        prefix: &str,
        op: &Op,
        inputs: &[usize],
        types: &[&Type],
    ) -> Result<Vec<usize>, PlanError> {
        let weights = Depends { weights: true, ..Depends::default() };
        if let Some((member, then)) = op.meaning().layer() {
            let (path, layer) = self.layer(module, prefix, &[member])?;
            let action = self.bind(&path, &layer, then)?;
            if let (Layer::Embedding { rows, .. }, [ids]) = (&layer, inputs) {
                self.looked_up(*ids, rows.get(), path)?;
            }
            self.push(action, inputs, types, weights)
        } else if let Op::Weight { path } = op {
            let (path, _) = self.layer(module, prefix, path)?;
            let action = Action::Param(self.place(&join(&path, "weight"))?);
            self.push(action, inputs, types, weights)
        } else if let Op::Call { member } = op {
            let member = module.member(*member);
            let MemberKind::Module(id) = &member.kind else { return Err(contradiction(&member.name)) };
            self.module(self.graph.module(*id), &join(prefix, &member.name), inputs)
        } else if let Op::Scan { member, each, args } = op {
            self.scan(module.member(*member), prefix, *each, args, inputs)
        } else if let Op::Experts { member, .. } = op {
            let experts = self.experts(module.member(*member), prefix)?;
            self.push(Action::Experts(experts), inputs, types, weights)
        } else if *op == Op::Cache {
            // Each time the op is applied it has a buffer of its own: shared layers have other keys in each
            // repetition.
            let slot = self.buffers;
            self.buffers += 1;
            self.push(Action::Cache { slot }, inputs, types, Depends::default())
        } else if op.meaning().has_state() {
            let slot = self.buffers;
            self.buffers += 1;
            self.push(Action::State { op: op.clone(), slot }, inputs, types, Depends::default())
        } else if let (Op::Unembed, [x, table]) = (op, inputs)
            && let Some(weight) = self.matrix(*table)
        {
            // With the index of the parameter instead of its value, the product can use packed weights.
            self.push(Action::Unembed { weight }, &[*x], types, weights)
        } else if let (true, [table, ids]) = (op.meaning().looks_up(), inputs)
            && let Some(weight) = self.matrix(*table)
        {
            self.looks_up(op, inputs)?;
            self.push(Action::Embedding { weight }, &[*ids], types, weights)
        } else {
            self.without_members(op, inputs, types)
        }
    }

    /// The index of the matrix that a value is, if it is a parameter.
    fn matrix(&self, value: usize) -> Option<usize> {
        let made = self.nodes.iter().find(|node| node.outputs.contains(&value))?;
        if let Action::Param(TensorIndex { rank: 2, index }) = made.action { Some(index) } else { None }
    }

    /// Unrolls the blocks of a stack, each of them `each` times in a row.
    fn scan(
        &mut self,
        member: &Member,
        prefix: &str,
        each: u64,
        args: &[Vec<Vec<usize>>],
        inputs: &[usize],
    ) -> Result<Vec<usize>, PlanError> {
        let MemberKind::Stack(runs) = &member.kind else { return Err(contradiction(&member.name)) };
        let mut x = inputs.first().copied().ok_or_else(|| contradiction(&member.name))?;
        let mut index = 0u64;
        for (run, extra) in runs.iter().zip(args) {
            for i in 0..run.count {
                // A verified graph has no empty cycle, so the divisor is at least 1.
                let at = (i % run.cycle.len() as u64) as usize;
                let block = self.graph.module(run.cycle[at]);
                let path = format!("{}.{index}", join(prefix, &member.name));
                // Repetitions in a row have the same path, and therefore the same parameters, as in ALBERT.
                for _ in 0..each {
                    let mut arguments = vec![x];
                    arguments.extend(extra[at].iter().map(|input| inputs[*input]));
                    // A stack within a block is part of that block.
                    let outer = self.block;
                    self.block = outer.or(Some(self.blocks));
                    self.blocks += 1;
                    let results = self.module(block, &path, &arguments)?;
                    self.block = outer;
                    x = *results.first().ok_or_else(|| contradiction(&path))?;
                    self.parts.entry(path.clone()).or_default().push(x);
                }
                index += 1;
            }
        }
        Ok(vec![x])
    }

    /// The experts of a mixture, each as a separate body: how many rows one gets is known only when tokens
    /// are routed.
    fn experts(&self, member: &Member, prefix: &str) -> Result<Vec<Body>, PlanError> {
        let MemberKind::Stack(runs) = &member.kind else { return Err(contradiction(&member.name)) };
        let mut experts = Vec::new();
        for run in runs {
            for i in 0..run.count {
                // As in `scan`, the divisor is at least 1.
                let id = run.cycle[(i % run.cycle.len() as u64) as usize];
                let path = format!("{}.{}", join(prefix, &member.name), experts.len());
                experts.push(self.expert(self.graph.module(id), &path)?);
            }
        }
        Ok(experts)
    }

    /// Adds an op that refers to no member, and records how it uses inputs of the graph: as padding, or as
    /// ids that are looked up in a table.
    fn without_members(
        &mut self,
        op: &Op,
        inputs: &[usize],
        types: &[&Type],
    ) -> Result<Vec<usize>, PlanError> {
        let meaning = op.meaning();
        self.keeps(meaning.keeps_by().and_then(|i| inputs.get(i)));
        self.looks_up(op, inputs)?;
        self.pure(op, inputs, types, lengths_of(&meaning.along()))
    }

    /// Records what must hold of the indices of an op that looks rows up in a table that is an input.
    fn looks_up(&mut self, op: &Op, inputs: &[usize]) -> Result<(), PlanError> {
        let (true, [table, ids]) = (op.meaning().looks_up(), inputs) else { return Ok(()) };
        // If the number of rows is not known, no id is one of them.
        let rows = self.values[*table].ty.shape.first().and_then(Dim::constant).unwrap_or(0);
        let path = self.names.iter().find(|(_, times)| times.contains(table));
        let path = path.map_or_else(|| "a table".to_owned(), |(path, _)| path.clone());
        self.looked_up(*ids, u64::try_from(rows).unwrap_or(u64::MAX), path)
    }

    /// Adds an op that refers to no member. If it depends only on lengths, it becomes a constant, and equal
    /// ops share one.
    fn pure(
        &mut self,
        op: &Op,
        inputs: &[usize],
        types: &[&Type],
        own: Depends,
    ) -> Result<Vec<usize>, PlanError> {
        let depends = inputs.iter().fold(own, |all, v| all.and(self.values[*v].depends));
        // A random op draws again in each run, even if it depends on nothing that changes.
        if !depends.is_constant() || op.meaning().is_random() {
            // Masks are few, and blocks often use the same one, so a mask is computed once for the same
            // inputs.
            let is_mask = types.iter().all(|ty| ty.dtype == DType::Bool);
            let sources: Vec<Source> = inputs.iter().map(|v| self.values[*v].from).collect();
            if is_mask && let Some(same) = self.same(op, &sources) {
                return Ok(same);
            }
            let outputs = self.push(Action::Op(op.clone()), inputs, types, own)?;
            // Zeros and slices of an input have the same bounds as the input.
            if let (true, [x, ..], [y]) = (op.meaning().keeps_indices(), inputs, outputs.as_slice()) {
                self.values[*y].input = self.values[*x].input;
            }
            return Ok(outputs);
        }
        let sources: Vec<usize> = inputs
            .iter()
            .filter_map(|v| match self.values[*v].from {
                Source::Constant(constant) => Some(constant),
                // An op is a constant only if all its inputs are.
                Source::Value(_) => None,
            })
            .collect();
        let mut outputs = Vec::new();
        for (result, ty) in types.iter().enumerate() {
            let known = |c: &Constant| c.op == *op && c.inputs == sources && c.result == result;
            let at = self.constants.iter().position(known).unwrap_or_else(|| {
                let needs = |yes: bool| u64::from(yes);
                self.constants.push(Constant {
                    op: op.clone(),
                    inputs: sources.clone(),
                    result,
                    depends: Lengths {
                        batch: 0,
                        // Positions start at `P`, so what depends on `T` may depend on `P`.
                        time: needs(depends.time),
                        past: needs(depends.time),
                        source: needs(depends.source),
                        rows: 0,
                    },
                    by_step: false,
                    known: Mutex::default(),
                });
                self.constants.len() - 1
            });
            let value = self.value((*ty).clone(), depends, Some(op.clone()), None)?;
            self.values[value].from = Source::Constant(at);
            outputs.push(value);
        }
        Ok(outputs)
    }

    fn same(&self, op: &Op, sources: &[Source]) -> Option<Vec<usize>> {
        // No action with a parameter or a cache computes a mask.
        let alike = |node: &&FlatNode| node.action.op() == Some(op) && node.inputs == sources;
        self.nodes.iter().find(alike).map(|node| node.outputs.clone())
    }

    fn push(
        &mut self,
        action: Action,
        inputs: &[usize],
        types: &[&Type],
        own: Depends,
    ) -> Result<Vec<usize>, PlanError> {
        let depends = inputs.iter().fold(own, |all, v| all.and(self.values[*v].depends));
        let outputs: Vec<usize> = types
            .iter()
            .map(|ty| self.value((*ty).clone(), depends, None, None))
            .collect::<Result<_, _>>()?;
        self.nodes.push(FlatNode {
            action,
            inputs: inputs.iter().map(|v| self.values[*v].from).collect(),
            outputs: outputs.clone(),
            memory: depends.is_memory(),
            block: self.block,
        });
        Ok(outputs)
    }

    /// Flattens an expert into a separate body, which is run on the rows sent to it.
    fn expert(&self, module: &Module, path: &str) -> Result<Body, PlanError> {
        let mut flat = Flat::new(self.graph, self.layout);
        let depends = Depends { inputs: true, time: true, ..Depends::default() };
        let mut arguments = Vec::new();
        for argument in module.arguments() {
            arguments.push(flat.value(argument.ty.clone(), depends, None, None)?);
        }
        let results = flat.module(module, path, &arguments)?;
        // The rows sent to an expert are no sequence: they have no positions of their own, and no past.
        if !flat.constants.is_empty() || flat.buffers > 0 {
            return Err(PlanError::Refused(format!("{path} is an expert with positions or a cache")));
        }
        let results: Vec<Source> = results.iter().map(|v| flat.values[*v].from).collect();
        Ok(assign(flat.values.len(), &arguments, flat.nodes, &results, &[]).0)
    }

    /// The layer at the end of a chain of members, starting in `module`, and its path.
    fn layer(
        &self,
        module: &Module,
        prefix: &str,
        members: &[MemberId],
    ) -> Result<(String, Layer), PlanError> {
        let (mut at, mut path) = (module, prefix.to_owned());
        for id in members {
            let member = at.member(*id);
            path = join(&path, &member.name);
            match &member.kind {
                MemberKind::Layer(layer) => return Ok((path, layer.clone())),
                MemberKind::Module(id) => at = self.graph.module(*id),
                MemberKind::Stack(_) => break,
            }
        }
        Err(contradiction(&path))
    }

    fn place(&self, path: &str) -> Result<TensorIndex, PlanError> {
        self.layout.get(path).map(|slot| slot.place).ok_or_else(|| contradiction(path))
    }

    /// The action of a layer. Only that of a projection is followed by an activation.
    fn bind(&self, path: &str, layer: &Layer, then: Option<Activation>) -> Result<Action, PlanError> {
        let index = |name: &str| self.place(&join(path, name)).map(|place| place.index);
        let some = |yes: bool, name: &str| if yes { index(name).map(Some) } else { Ok(None) };
        Ok(match layer {
            Layer::Linear { bias, .. } => {
                Action::Linear { weight: index("weight")?, bias: some(*bias, "bias")?, then }
            }
            Layer::Embedding { .. } => Action::Embedding { weight: index("weight")? },
            Layer::LayerNorm { eps, affine, bias, unit_offset, .. } => Action::LayerNorm {
                weight: some(*affine, "weight")?,
                bias: some(*bias, "bias")?,
                eps: *eps,
                unit_offset: *unit_offset,
            },
            Layer::RmsNorm { eps, affine, unit_offset, .. } => {
                Action::RmsNorm { weight: some(*affine, "weight")?, eps: *eps, unit_offset: *unit_offset }
            }
            Layer::Patches { bias, .. } => {
                Action::Patches { weight: index("weight")?, bias: some(*bias, "bias")? }
            }
            // Its parameter has no name of its own, so the path of the layer is that of the parameter.
            Layer::Param { .. } => Action::Param(self.place(path)?),
        })
    }

    /// Records that ids are looked up in a table with this number of rows, so that a run can check inputs and
    /// positions. Fails if nothing bounds the ids.
    fn looked_up(&mut self, ids: usize, rows: u64, path: String) -> Result<(), PlanError> {
        let value = &self.values[ids];
        if let Some(input) = value.input.and_then(|i| self.inputs.get_mut(i)) {
            if input.rows.as_ref().is_none_or(|(least, _)| rows < *least) {
                input.rows = Some((rows, path));
            }
            return Ok(());
        }
        match value.made.as_ref().and_then(|op| op.meaning().indices()) {
            Some(Indices::Positions { along, offset }) => {
                self.lookups.push(Lookup { along, offset, rows, path });
                Ok(())
            }
            Some(Indices::Below(most)) if most <= rows => Ok(()),
            // An index out of range stops some backends, and reads other memory on others.
            Some(Indices::Below(_)) | None => {
                Err(PlanError::Refused(format!("what is looked up in {path} has no bounds")))
            }
        }
    }

    /// Records that the values of an input must be 0 (padding) or 1 (keep), if the value is an input.
    fn keeps(&mut self, value: Option<&usize>) {
        let input = value.and_then(|v| self.values[*v].input);
        if let Some(input) = input.and_then(|i| self.inputs.get_mut(i)) {
            input.keep = true;
        }
    }
}

fn contradiction(path: &str) -> PlanError {
    PlanError::Refused(format!("the graph contradicts itself at {path}, which is a fault of trafoc"))
}
