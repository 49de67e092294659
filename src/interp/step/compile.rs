//! Makes a program from a plan.

use std::collections::BTreeMap;

use trafoc_kernels::Packed;
use trafoc_kernels::row::{Activation, Held, Lookup, Norm, Pairing};

use super::known::{Known, repeats};
use super::program::{
    Binary, From, Index, Output, Product, Program, Rows, Shared, Size, Span, Unary, Work, is_tokens,
};
use crate::interp::plan::{Action, Body, Constant, Operand, Plan};
use crate::interp::value::{Ranked, Value, with};
use crate::interp::weights::Weights;
use crate::ir::Op;
use crate::ir::op;

/// The fewest bytes of a weight whose product is divided among threads.
const WORTH: usize = 1 << 18;
/// The most bytes of a weight that a part of a product reads, and how many parts there are for each of two threads where
/// that gives smaller ones.
const MOST: usize = 1 << 19;
const PARTS: usize = 8;
/// The most numbers of a parameter that is an operand.
const LARGEST: usize = 1 << 16;

/// Something that the program cannot do, so that the plan is run by ops on tensors.
pub struct Unsupported;

pub type Found<T> = Result<T, Unsupported>;

/// The program of a step of one sequence by one position; `None` if some instruction of the plan is not one of a program.
///
/// `memory` is what a first pass has left in the registers that the plan keeps.
pub fn compile(plan: &Plan, weights: &Weights, memory: &[Value]) -> Option<Program> {
    if weights.packed.is_empty() || weights.is_changed() {
        return None;
    }
    let mut compiler = Compiler {
        plan,
        weights,
        program: Program { appended: vec![None; plan.buffers], ..Program::default() },
        registers: vec![None; plan.body.registers],
        users: Vec::new(),
        free: BTreeMap::new(),
    };
    compiler.plan(memory).ok()?;
    Some(compiler.program)
}

pub struct Compiler<'a> {
    plan: &'a Plan,
    pub weights: &'a Weights,
    pub program: Program,
    pub registers: Vec<Option<Known>>,
    /// How many registers use each slot.
    users: Vec<usize>,
    /// The slots of each size that nothing uses.
    free: BTreeMap<usize, Vec<usize>>,
}

impl Compiler<'_> {
    fn plan(&mut self, memory: &[Value]) -> Found<()> {
        for (input, register) in self.plan.inputs.iter().zip(&self.plan.body.arguments) {
            // Where steps read an input of the memory, its register is kept.
            if input.memory {
                continue;
            }
            let known = if is_tokens(input) {
                Known::Index(Index::Input(input.name.clone()))
            } else if input.ty.optional {
                Known::Absent
            } else {
                return Err(Unsupported);
            };
            if let Some(register) = register {
                *self.register(*register)? = Some(known);
            }
        }
        for (value, register) in memory.iter().zip(&self.plan.kept) {
            *self.register(*register)? = self.held(value);
        }
        let plan = self.plan;
        self.instructions(&plan.body)?;
        for operand in &self.plan.body.results {
            match self.read(*operand)? {
                Known::Row { span, dims } => self.program.outputs.push(Output { from: span, dims }),
                _ => return Err(Unsupported),
            }
        }
        // A buffer that nothing is appended to would be put to another use.
        if self.program.appended.iter().any(Option::is_none) { Err(Unsupported) } else { Ok(()) }
    }

    /// The work of a body, whose arguments are in its registers.
    pub fn instructions(&mut self, body: &Body) -> Found<()> {
        for instruction in body.instructions.iter().filter(|instruction| !instruction.memory) {
            let inputs: Vec<Known> =
                instruction.inputs.iter().map(|operand| self.read(*operand)).collect::<Found<_>>()?;
            let last: Vec<bool> = instruction.inputs.iter().map(|o| is_last(*o)).collect();
            let made = self.results(&instruction.action, &inputs, &last)?;
            if instruction.outputs.iter().skip(made.len()).any(Option::is_some) {
                return Err(Unsupported);
            }
            // First the user of the result, so that a slot that both use is not free in between.
            made.iter().for_each(|made| self.use_slot(made, true));
            for (known, _) in inputs.iter().zip(&last).filter(|(_, last)| **last) {
                self.use_slot(known, false);
            }
            for (register, made) in instruction.outputs.iter().zip(made) {
                match register {
                    Some(register) => *self.register(*register)? = Some(made),
                    // Nothing reads it, so that its slot is free.
                    None => self.use_slot(&made, false),
                }
            }
        }
        Ok(())
    }

    pub fn register(&mut self, index: usize) -> Found<&mut Option<Known>> {
        self.registers.get_mut(index).ok_or(Unsupported)
    }

    pub fn read(&mut self, operand: Operand) -> Found<Known> {
        match operand {
            Operand::Constant(index) => self.constant(index),
            Operand::Register { index, .. } => self.register(index)?.clone().ok_or(Unsupported),
        }
    }

    fn constant(&mut self, index: usize) -> Found<Known> {
        let constant: &Constant = self.plan.constants.get(index).ok_or(Unsupported)?;
        match constant.op {
            Op::Positions { .. } => return Ok(Known::Index(Index::Constant(index))),
            Op::RelativeBuckets { .. } => return Ok(Known::Buckets { index }),
            _ => {}
        }
        // A value of a single position has the same size in every step, and the scores of all keys grow.
        let (dims, grows) = match (&constant.op, constant.result) {
            (Op::Mask { .. } | Op::EitherMask | Op::AlibiBias { .. }, _) => (Vec::new(), true),
            (Op::RotaryTable { rotary, .. }, _) => (vec![1, rotary.pairs() as usize], false),
            (Op::Sinusoid { dim, .. }, _) => (vec![1, dim.get() as usize], false),
            _ => return Err(Unsupported),
        };
        Ok(Known::Constant { index, dims, grows })
    }

    /// What a value of the memory is to a step; `None` if a program cannot read it.
    fn held(&mut self, value: &Value) -> Option<Known> {
        match value {
            Value::Absent => Some(Known::Absent),
            Value::Float(Ranked::R4(x)) => {
                let held = Held::new(x.clone())?;
                let [heads, width] = held.sizes();
                self.program.held.push(held);
                Some(Known::Held { index: self.program.held.len() - 1, heads, width })
            }
            Value::Bool(Ranked::R4(mask)) => {
                let data = mask.clone().try_into_data().ok()?;
                self.program.held_masks.push(data.iter::<bool>().map(u8::from).collect());
                Some(Known::HeldMask { index: self.program.held_masks.len() - 1 })
            }
            Value::Float(_) | Value::Int(_) | Value::Bool(_) => None,
        }
    }

    /// Counts a user of the slot of a value, or one user fewer.
    pub fn use_slot(&mut self, known: &Known, more: bool) {
        let (Known::Row { span, .. } | Known::Kept { span, .. }) = known else { return };
        let Some(users) = self.users.get_mut(span.slot) else { return };
        *users = if more { *users + 1 } else { users.saturating_sub(1) };
        if *users == 0 {
            let size = self.program.slots.get(span.slot).copied().unwrap_or_default();
            self.free.entry(size).or_default().push(span.slot);
        }
    }

    /// A slot of this length, which nothing else uses.
    pub fn slot(&mut self, len: usize) -> Span {
        let slot = match self.free.get_mut(&len).and_then(Vec::pop) {
            Some(slot) => slot,
            None => {
                self.program.slots.push(len);
                self.users.push(0);
                self.program.slots.len() - 1
            }
        };
        Span { slot, start: 0, len }
    }

    /// Where a value is read, as numbers.
    pub fn from(&mut self, known: &Known) -> Found<From> {
        Ok(match known {
            Known::Row { span, .. } => From::Slot(*span),
            Known::Parameter { index, .. } => From::Parameter(*index),
            Known::Constant { index, dims, grows: false } => {
                let len = dims.iter().product();
                self.numbers_of(*index, Size::Always(len));
                From::Constant(*index)
            }
            _ => return Err(Unsupported),
        })
    }

    /// Notes that a constant is read as numbers.
    pub fn numbers_of(&mut self, index: usize, size: Size) {
        if !self.program.constants.contains(&(index, size)) {
            self.program.constants.push((index, size));
        }
    }

    /// A slot that may be overwritten and has the numbers of a value: its own if nothing else reads it.
    fn writable(&mut self, known: &Known, is_last: bool) -> Found<(Span, Vec<usize>)> {
        let dims = known.dims().ok_or(Unsupported)?;
        if let Known::Row { span, .. } = known
            && is_last
            && self.users.get(span.slot) == Some(&1)
            && self.program.slots.get(span.slot) == Some(&span.len)
        {
            return Ok((*span, dims));
        }
        let from = self.from(known)?;
        let to = self.slot(dims.iter().product());
        self.program.work.push(Work::Copy { from, to });
        Ok((to, dims))
    }

    pub fn row(known: Option<&Known>) -> Found<(Span, Vec<usize>)> {
        match known {
            Some(Known::Row { span, dims }) => Ok((*span, dims.clone())),
            _ => Err(Unsupported),
        }
    }

    fn vector(&self, index: usize) -> Found<Vec<f32>> {
        let parameter = self.weights.vectors.get(index).ok_or(Unsupported)?;
        parameter.val().into_data().try_into_vec().map_err(|_| Unsupported)
    }

    fn norm(
        &mut self,
        norm: Norm,
        x: Option<&Known>,
        weight: Option<usize>,
        bias: Option<usize>,
        unit_offset: bool,
    ) -> Found<Known> {
        let (from, dims) = Self::row(x)?;
        let width = dims.last().copied().ok_or(Unsupported)?;
        let mut weight = match weight {
            Some(weight) => self.vector(weight)?,
            None => vec![1.0; width],
        };
        if unit_offset {
            weight.iter_mut().for_each(|weight| *weight += 1.0);
        }
        let bias = bias.map(|bias| self.vector(bias)).transpose()?.unwrap_or_default();
        if weight.len() != width || !(bias.is_empty() || bias.len() == width) {
            return Err(Unsupported);
        }
        let to = self.slot(from.len);
        self.program.work.push(Work::Norm { norm, weight, bias, from, to: to.slot });
        Ok(Known::Row { span: to, dims })
    }

    fn product(&mut self, x: Option<&Known>, weight: usize, bias: Option<usize>) -> Found<Known> {
        let (from, mut dims) = Self::row(x)?;
        let weight: Packed = self.weights.packed(weight).ok_or(Unsupported)?.clone();
        let bias = bias.map(|bias| self.vector(bias)).transpose()?;
        let [inputs, outputs] = weight.sizes();
        // Other axes than that of the features would be rows of their own.
        if from.len != inputs || inputs == 0 || outputs == 0 {
            return Err(Unsupported);
        }
        if let Some(last) = dims.last_mut() {
            *last = outputs;
        }
        let to = self.slot(outputs);
        let bytes = weight.bytes();
        self.program.bytes += bytes;
        let shared = (bytes >= WORTH).then(|| {
            let panel = weight.panel();
            let panels = outputs.div_ceil(panel);
            let of_part = panels.div_ceil(PARTS).min((MOST * panels / bytes).max(1));
            self.share(outputs, of_part * panel)
        });
        let product = Product { weight, bias, from, to: to.slot, then: None, shared };
        match self.program.work.last_mut() {
            Some(Work::Products(group)) if group.iter().all(|p| p.to != from.slot) => group.push(product),
            _ => self.program.work.push(Work::Products(vec![product])),
        }
        Ok(Known::Row { span: to, dims })
    }

    /// Notes work that is divided among threads.
    pub fn share(&mut self, len: usize, part: usize) -> usize {
        self.program.shared.push(Shared { len, part });
        self.program.shared.len() - 1
    }

    fn look_up(&mut self, rows: Rows, [count, width]: [usize; 2], at: Option<&Known>) -> Found<Known> {
        let Some(Known::Index(index)) = at else { return Err(Unsupported) };
        self.program.indices.push((index.clone(), count));
        let to = self.slot(width);
        let index = self.program.indices.len() - 1;
        self.program.work.push(Work::Row { rows, index, to: to.slot });
        Ok(Known::Row { span: to, dims: vec![1, 1, width] })
    }

    fn unary(&mut self, unary: Unary, x: &Known, is_last: bool) -> Found<Known> {
        let (span, dims) = self.writable(x, is_last)?;
        // An activation is applied to the parts of a product by the threads that compute them.
        if let (Unary::Kernel(activation), Some(Work::Products(group))) =
            (unary, self.program.work.last_mut())
            && let Some(product) = group.iter_mut().find(|product| product.to == span.slot)
            && product.then.is_none()
        {
            product.then = Some(activation);
        } else {
            self.program.work.push(Work::Unary { unary, to: span.slot });
        }
        Ok(Known::Row { span, dims })
    }

    fn binary(&mut self, binary: Binary, [a, b]: [&Known; 2], last: [bool; 2]) -> Found<Known> {
        let (of_a, of_b) = (a.dims().ok_or(Unsupported)?, b.dims().ok_or(Unsupported)?);
        let ([a, b], last) = if repeats(&of_b, &of_a) {
            ([a, b], last)
        } else if repeats(&of_a, &of_b) && !matches!(binary, Binary::Divide) {
            // The order of a sum or a product does not change its bits.
            ([b, a], [last[1], last[0]])
        } else {
            return Err(Unsupported);
        };
        let by = self.from(b)?;
        // Both operands may be the same value, which is then still needed.
        let is_same =
            matches!((a, b), (Known::Row { span: a, .. }, Known::Row { span: b, .. }) if a.slot == b.slot);
        let (span, mut dims) = self.writable(a, last[0] && !is_same)?;
        while dims.len() < of_a.len().max(of_b.len()) {
            dims.insert(0, 1);
        }
        self.program.work.push(Work::Binary { binary, to: span.slot, by });
        Ok(Known::Row { span, dims })
    }

    /// The results of an action, as far as a program has them.
    fn results(&mut self, action: &Action, inputs: &[Known], last: &[bool]) -> Found<Vec<Known>> {
        match (action, inputs, last) {
            // A row is in the cache in any case, so the sum and its norm are separate work.
            (Action::LayerNorm { .. } | Action::RmsNorm { .. }, [x, residual], [of_x, of_residual]) => {
                let sum = self.binary(Binary::Add, [x, residual], [*of_x, *of_residual])?;
                let y = self.action(action, std::slice::from_ref(&sum), &[false])?;
                Ok(vec![y, sum])
            }
            _ => Ok(vec![self.action(action, inputs, last)?]),
        }
    }

    fn action(&mut self, action: &Action, inputs: &[Known], last: &[bool]) -> Found<Known> {
        let x = inputs.first();
        match action {
            Action::Linear { weight, bias, then } => {
                let y = self.product(x, *weight, *bias)?;
                let Some(activation) = then else { return Ok(y) };
                self.op(&Op::Activate(*activation), std::slice::from_ref(&y), &[true])
            }
            Action::Unembed { weight } => self.product(x, *weight, None),
            Action::Embedding { weight } if matches!(x, Some(Known::Buckets { .. })) => {
                self.distance_table(*weight, x)
            }
            Action::Embedding { weight } => {
                if let Some(packed) = self.weights.packed(*weight) {
                    let [width, count] = packed.sizes();
                    return self.look_up(Rows::Packed(packed.clone()), [count, width], x);
                }
                let table = self.weights.matrices.get(*weight).ok_or(Unsupported)?.val();
                let table = Lookup::new(table).ok_or(Unsupported)?;
                let sizes = table.sizes();
                self.look_up(Rows::Plain(table), sizes, x)
            }
            Action::LayerNorm { weight, bias, eps, unit_offset } => {
                self.norm(Norm::Layer { eps: *eps }, x, *weight, *bias, *unit_offset)
            }
            Action::RmsNorm { weight, eps, unit_offset } => {
                self.norm(Norm::Rms { eps: *eps }, x, *weight, None, *unit_offset)
            }
            Action::Param(place) => {
                let value = self.weights.value(*place).ok_or(Unsupported)?;
                let dims = value.dims().ok_or(Unsupported)?;
                let Value::Float(numbers) = value else { return Err(Unsupported) };
                if dims.iter().product::<usize>() > LARGEST {
                    return Err(Unsupported);
                }
                let numbers = with!(numbers, x => x.into_data()).try_into_vec().map_err(|_| Unsupported)?;
                self.program.parameters.push(numbers);
                Ok(Known::Parameter { index: self.program.parameters.len() - 1, dims })
            }
            Action::Cache { slot } => {
                let (span, dims) = Self::row(x)?;
                let [1, heads, 1, width] = dims[..] else { return Err(Unsupported) };
                *self.program.appended.get_mut(*slot).ok_or(Unsupported)? = Some(span);
                let kept = Known::Kept { buffer: *slot, span, heads, width, times: 1 };
                // Once more, so that the numbers are there until the step ends and they are appended.
                self.use_slot(&kept, true);
                Ok(kept)
            }
            Action::Last => x.cloned().ok_or(Unsupported),
            Action::Op(op) => self.op(op, inputs, last),
            Action::Experts(experts) => self.experts(experts, inputs),
            Action::Patches { .. } | Action::State { .. } => Err(Unsupported),
        }
    }

    fn op(&mut self, op: &Op, inputs: &[Known], last: &[bool]) -> Found<Known> {
        let (x, is_last) = (inputs.first().ok_or(Unsupported)?, last.first() == Some(&true));
        let pair = || match inputs {
            [a, b] => Ok([a, b]),
            _ => Err(Unsupported),
        };
        let both = [is_last, last.get(1) == Some(&true)];
        match op {
            Op::Dropout { .. } => Ok(x.clone()),
            Op::PaddingMask => match x {
                Known::Absent => Ok(Known::Absent),
                _ => Err(Unsupported),
            },
            Op::EitherMask => match pair()? {
                [Known::Absent, mask] | [mask, Known::Absent] => Ok(mask.clone()),
                _ => Err(Unsupported),
            },
            Op::SplitHeads { heads } => {
                let (span, _) = Self::row(Some(x))?;
                let heads = heads.get() as usize;
                Ok(Known::Row { span, dims: vec![1, heads, 1, span.len / heads] })
            }
            Op::MergeHeads => {
                let (span, _) = Self::row(Some(x))?;
                Ok(Known::Row { span, dims: vec![1, 1, span.len] })
            }
            Op::RepeatHeads { times } => match x {
                Known::Kept { buffer, span, heads, width, times: before } => Ok(Known::Kept {
                    buffer: *buffer,
                    span: *span,
                    heads: *heads,
                    width: *width,
                    times: before * times.get() as usize,
                }),
                _ => Err(Unsupported),
            },
            Op::Unsqueeze => {
                let (span, mut dims) = Self::row(Some(x))?;
                dims.push(1);
                Ok(Known::Row { span, dims })
            }
            Op::Squeeze => {
                let (span, mut dims) = Self::row(Some(x))?;
                dims.pop();
                Ok(Known::Row { span, dims })
            }
            Op::Rotate { pairing } => self.rotate(*pairing, inputs),
            Op::Slice { axis_from_last: 0, start, len } => {
                self.slice(x, start.get() as usize, len.get() as usize)
            }
            Op::Concat { axis_from_last: 0 } => self.join(inputs),
            Op::Add => self.binary(Binary::Add, pair()?, both).or_else(|_| self.by_tensors(op, inputs)),
            Op::Mul => self.binary(Binary::Multiply, pair()?, both).or_else(|_| self.by_tensors(op, inputs)),
            Op::Divide => self.binary(Binary::Divide, pair()?, both).or_else(|_| self.by_tensors(op, inputs)),
            Op::Scale { by } => self.unary(Unary::Scale(**by as f32), x, is_last),
            Op::Shift { by } => self.unary(Unary::Shift(*by as f32), x, is_last),
            Op::Activate(activation) => match (activation, kernel(*activation)) {
                (_, Some(kernel)) => self.unary(Unary::Kernel(kernel), x, is_last),
                (op::Activation::Relu, None) => self.unary(Unary::Relu, x, is_last),
                (_, None) => self.by_tensors(op, inputs),
            },
            Op::Gate(activation) => {
                let Some(kernel) = kernel(*activation) else { return self.by_tensors(op, inputs) };
                let gate = self.unary(Unary::Kernel(kernel), x, is_last)?;
                // Where the gate has a slot of its own, the product is the only user of it.
                let own = gate.slot().filter(|slot| Some(*slot) != x.slot());
                if own.is_some() {
                    self.use_slot(&gate, true);
                }
                let y = self.binary(Binary::Multiply, [&gate, pair()?[1]], [true, both[1]])?;
                match own.and_then(|slot| self.users.get_mut(slot)) {
                    // The caller notes the user of the result. Until then the slot must not be free.
                    Some(users) if y.slot() == own => *users = users.saturating_sub(1),
                    Some(_) => self.use_slot(&gate, false),
                    None => {}
                }
                Ok(y)
            }
            Op::BiasFromTable => self.distance_bias(x),
            Op::Attention(fields) => self.attend(fields, inputs),
            _ => self.by_tensors(op, inputs),
        }
    }

    fn rotate(&mut self, pairing: op::Pairing, inputs: &[Known]) -> Found<Known> {
        let [x, cos, sin] = inputs else { return Err(Unsupported) };
        let (from, dims) = Self::row(Some(x))?;
        let mut angles = [0; 2];
        for (to, table) in angles.iter_mut().zip([cos, sin]) {
            let Known::Constant { index, dims, grows: false } = table else { return Err(Unsupported) };
            self.numbers_of(*index, Size::Always(dims.iter().product()));
            *to = *index;
        }
        let pairing = match pairing {
            op::Pairing::Half => Pairing::Half,
            op::Pairing::Interleaved => Pairing::Interleaved,
        };
        let [1, _, 1, width] = dims[..] else { return Err(Unsupported) };
        let to = self.slot(from.len);
        self.program.work.push(Work::Rotate { from, width, angles, pairing, to: to.slot });
        Ok(Known::Row { span: to, dims })
    }

    fn slice(&mut self, x: &Known, start: usize, len: usize) -> Found<Known> {
        let (from, mut dims) = Self::row(Some(x))?;
        let width = dims.last().copied().ok_or(Unsupported)?;
        if start + len > width {
            return Err(Unsupported);
        }
        if let Some(last) = dims.last_mut() {
            *last = len;
        }
        // The features of one head follow each other.
        if from.len == width {
            return Ok(Known::Row { span: Span { start: from.start + start, len, ..from }, dims });
        }
        let to = self.slot(from.len / width * len);
        self.program.work.push(Work::Columns { from, width, start, to });
        Ok(Known::Row { span: to, dims })
    }

    fn join(&mut self, inputs: &[Known]) -> Found<Known> {
        let parts: Vec<(Span, Vec<usize>)> =
            inputs.iter().map(|x| Self::row(Some(x))).collect::<Found<_>>()?;
        let mut dims = parts.first().ok_or(Unsupported)?.1.clone();
        let width: usize = parts.iter().filter_map(|(_, dims)| dims.last()).sum();
        if let Some(last) = dims.last_mut() {
            *last = width;
        }
        let to = self.slot(dims.iter().product());
        let mut start = 0;
        for (span, dims) in parts {
            let of = dims.last().copied().unwrap_or_default();
            self.program.work.push(Work::Join { from: From::Slot(span), of, width, start, to: to.slot });
            start += of;
        }
        Ok(Known::Row { span: to, dims })
    }
}

/// The kernel of an activation, if it has one of its own.
fn kernel(activation: op::Activation) -> Option<Activation> {
    match activation {
        op::Activation::Gelu => Some(Activation::Gelu),
        op::Activation::GeluTanh => Some(Activation::GeluTanh),
        op::Activation::QuickGelu => Some(Activation::QuickGelu),
        op::Activation::Silu => Some(Activation::Silu),
        op::Activation::Relu | op::Activation::Relu2 | op::Activation::Tanh | op::Activation::Sigmoid => None,
    }
}

fn is_last(operand: Operand) -> bool {
    matches!(operand, Operand::Register { last: true, .. })
}
