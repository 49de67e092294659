//! Lowers a stack: ambient values, the blocks, the final norm.

use super::block;
use crate::ir::build::Builder;
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, ModuleId, Part, Role, Run, Slot, Sym, Type};
use crate::parts::scope::{Masks, Scope};
use crate::spec::Stack;

/// A lowered stack: its module, and what the root module must pass to it.
pub struct Lowered {
    /// Its module. Its arguments are `x` and then the values that it takes.
    pub module: ModuleId,
    /// The values that it takes, in the order of the arguments.
    pub takes: Vec<Takes>,
}

/// A value that a stack takes in addition to `x`.
#[derive(Clone, Copy)]
pub enum Takes {
    /// The encoder's output, `[B, S, D]`.
    Memory,
    /// The padding mask of its own sequence, `[B, T]` with 1 for tokens.
    Mask,
    /// The padding mask of the memory, `[B, S]`.
    MemoryMask,
}

/// Lowers a stack, which is an encoder or a decoder, to a module with this name.
pub fn lower(
    stack: &Stack,
    (slot, name): (Slot, &str),
    scope: &Scope,
    context: u64,
) -> Result<Lowered, Mismatch> {
    let mut blocks = Vec::new();
    let mut known = block::BuiltModules::default();
    for of_block in &stack.blocks {
        // The only kind of block in a stack needs no name to be told from others.
        let kind = of_block.name.as_deref().filter(|_| stack.blocks.len() > 1).map(camel).unwrap_or_default();
        let module = format!("{}{kind}Block", scope.prefix);
        blocks.push(block::lower(of_block, &module, scope, context, &mut known)?);
    }
    // As in a block: the role is for what the stack itself owns, its final norm.
    let mut b = Builder::new(&scope.arena, camel(name), Role::Norm);
    b.at(stack.places.whole());
    b.part(Part::new(slot, camel(name)));
    b.doc(match stack.layers {
        1 => "A stack of one block.".to_owned(),
        layers => format!("A stack of {layers} blocks."),
    });
    let batch = || Dim::sym(Sym::Batch);
    let x = b.argument("x", scope.activations(scope.d_model));
    // A stack is given the memory if any of its blocks attends to it.
    let takes_memory = blocks.iter().any(|block| block.takes_memory);
    let memory = scope.memory.as_ref().filter(|_| takes_memory).map(|memory| {
        b.argument("memory", Type::float([batch(), memory.sequence.queries(), Dim::from(memory.width)]))
    });
    let takes_mask = scope.is_padded && scope.ambients.need_mask();
    let own = takes_mask.then(|| b.argument("mask", Type::int([batch(), scope.sequence.keys()]).or_absent()));
    let of_memory =
        scope.memory.as_ref().filter(|memory| takes_memory && memory.is_padded).map(|memory| {
            b.argument("memory_mask", Type::int([batch(), memory.sequence.keys()]).or_absent())
        });
    let takes =
        [memory.map(|_| Takes::Memory), own.map(|_| Takes::Mask), of_memory.map(|_| Takes::MemoryMask)];
    let takes = takes.into_iter().flatten().collect();
    // After the blocks, because these request the values.
    let ambients = scope.build_ambients(&mut b, &Masks { own, memory: of_memory })?;

    let mut inputs = vec![x];
    inputs.extend(memory);
    inputs.extend(ambients.iter().flatten());
    // The arguments are `x`, then the memory if it is taken, then the values of each ambient.
    let mut next = usize::from(memory.is_some()).saturating_add(1);
    let of_ambients: Vec<std::ops::Range<usize>> = ambients
        .iter()
        .map(|values| {
            let first = next;
            next = next.saturating_add(values.len());
            first..next
        })
        .collect();
    let place = |block: &block::Lowered| -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        if block.takes_memory {
            places.push(1);
        }
        for need in &block.needs {
            places.extend(of_ambients.get(need.index()).cloned().unwrap_or_default());
        }
        places
    };
    let mut runs = Vec::new();
    let mut args = Vec::new();
    for segment in &stack.segments {
        // Blocks of one stack may need different values, so the op says for each which of its inputs it
        // takes.
        let cycle: Vec<&block::Lowered> = segment.cycle.iter().filter_map(|i| blocks.get(*i)).collect();
        runs.push(Run { count: segment.count, cycle: cycle.iter().map(|block| block.module).collect() });
        args.push(cycle.iter().map(|block| place(block)).collect());
    }
    let member = b.stack("blocks", runs);
    let mut x = b.op("x", Op::Scan { member, each: stack.each, args }, &inputs)?;
    if let Some(norm) = &stack.final_norm {
        x = norm.lower(&mut b, scope, "final_norm", "final_norm", "x", x)?;
    }
    Ok(Lowered { module: b.finish(&[x]), takes })
}

/// `local_block` in camel case: `LocalBlock`.
pub fn camel(name: &str) -> String {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + chars.as_str())
        })
        .collect()
}
