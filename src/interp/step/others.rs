//! What a step does beyond kernels on slices: experts, each of which is a list of work itself, and ops that burn computes on
//! small tensors.

use std::mem;

use super::compile::{Compiler, Found, Unsupported};
use super::known::Known;
use super::program::{Expert, Work};
use crate::interp::plan::Body;
use crate::ir::{DType, Dim, Module, Op, Role, Type};

impl Compiler<'_> {
    /// The sum of the experts that a position is sent to, of all of which there is the work.
    pub fn experts(&mut self, experts: &[Body], inputs: &[Known]) -> Found<Known> {
        let [x, weights] = inputs else { return Err(Unsupported) };
        let (from, dims) = Self::row(Some(x))?;
        let (weights, _) = Self::row(Some(weights))?;
        if weights.len != experts.len() {
            return Err(Unsupported);
        }
        let to = self.slot(from.len);
        let mut all = Vec::with_capacity(experts.len());
        for expert in experts {
            let rows = Known::Row { span: from, dims: vec![1, from.len] };
            all.push(self.expert(expert, rows)?);
        }
        self.program.work.push(Work::Experts { weights, experts: all, to: to.slot });
        Ok(Known::Row { span: to, dims })
    }

    fn expert(&mut self, body: &Body, rows: Known) -> Found<Expert> {
        let before = mem::take(&mut self.program.work);
        let registers = mem::replace(&mut self.registers, vec![None; body.registers]);
        // One more user, because other experts read the rows, too.
        self.use_slot(&rows, true);
        if let Some(Some(register)) = body.arguments.first() {
            *self.register(*register)? = Some(rows);
        }
        self.instructions(body)?;
        let result = self.read(*body.results.first().ok_or(Unsupported)?)?;
        self.use_slot(&result, false);
        let (result, _) = Self::row(Some(&result))?;
        self.registers = registers;
        Ok(Expert { work: mem::replace(&mut self.program.work, before), result })
    }

    /// An op that burn computes, whose inputs and result have the same sizes in every step.
    pub fn by_tensors(&mut self, op: &Op, inputs: &[Known]) -> Found<Known> {
        let meaning = op.meaning();
        if !meaning.along().is_empty() || meaning.is_random() {
            return Err(Unsupported);
        }
        let all: Vec<Vec<usize>> =
            inputs.iter().map(|x| x.dims().ok_or(Unsupported)).collect::<Found<_>>()?;
        let types: Vec<Type> =
            all.iter().map(|dims| Type::float(dims.iter().map(|n| Dim::of(*n as u64)))).collect();
        // The ops of a plan have no members, so that they read nothing of a module.
        let module = Module::empty(String::new(), Role::Ffn);
        let found = op.infer(&types.iter().collect::<Vec<_>>(), &module, &[]);
        let Ok([Type { dtype: DType::Float, shape, .. }]) = found.as_deref() else { return Err(Unsupported) };
        let size = |dim: &Dim| dim.constant().and_then(|n| usize::try_from(n).ok()).ok_or(Unsupported);
        let dims: Vec<usize> = shape.iter().map(size).collect::<Found<_>>()?;
        let inputs = inputs.iter().zip(all).map(|(x, dims)| Ok((self.from(x)?, dims)));
        let inputs = inputs.collect::<Found<_>>()?;
        let to = self.slot(dims.iter().product());
        self.program.work.push(Work::ByTensors { op: op.clone(), inputs, to: to.slot });
        Ok(Known::Row { span: to, dims })
    }
}
