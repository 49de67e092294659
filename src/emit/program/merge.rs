//! Modules that would be the same code become one.
//!
//! The graph tells modules apart by exact types: a block under a window takes a mask `[B,1,T,K]`, one
//! without takes `[B,1,1,K]` or none; a feed-forward of the encoder runs along `S`, the decoder's along
//! `T`. Code does not differ by the lengths of tensors, and a person would write it once.

use std::collections::BTreeMap;

use crate::ir::build::code_digest;
use crate::ir::{DType, Dim, Graph, MemberKind, Module, ModuleId, Op, Type, ValueId};
use crate::source::Span;

/// A graph of which no two modules make the same code, and where each module comes from.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The modules, children before parents.
    pub graph: Graph,
    /// The spans of the modules that became one, in order.
    pub origins: Vec<Vec<Span>>,
}

/// Merges the modules that are the same code.
pub fn merge(graph: &Graph) -> Merged {
    let mut kept: Vec<Module> = Vec::new();
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut origins: Vec<Vec<Span>> = Vec::new();
    let mut ids: BTreeMap<usize, ModuleId> = BTreeMap::new();
    // Places in `kept` by digest: comparing every module with every other one would take minutes for
    // thousands of blocks.
    let mut known: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let new_id = |ids: &BTreeMap<usize, ModuleId>, id: ModuleId| ids.get(&id.0).copied().unwrap_or(id);
    for (index, module) in graph.modules.iter().enumerate() {
        let mut module = module.clone();
        // Children come first, so their new ids are known here. Parents that differ in merged children alone
        // become equal, and one pass over the modules is enough.
        for member in &mut module.members {
            match &mut member.kind {
                MemberKind::Layer(_) => {}
                MemberKind::Module(id) => *id = new_id(&ids, *id),
                MemberKind::Stack(runs) => {
                    for id in runs.iter_mut().flat_map(|run| &mut run.cycle) {
                        *id = new_id(&ids, *id);
                    }
                }
            }
        }
        let alike = known.entry(code_digest(&module)).or_default();
        let at =
            alike.iter().copied().find(|at| kept.get(*at).is_some_and(|other| is_same_code(other, &module)));
        let at = match at {
            Some(at) => at,
            None => {
                kept.push(module.clone());
                names.push(Vec::new());
                origins.push(Vec::new());
                alike.push(kept.len() - 1);
                kept.len() - 1
            }
        };
        // All three lists have an entry for each module that is kept.
        if let (Some(one), Some(names), Some(origins)) =
            (kept.get_mut(at), names.get_mut(at), origins.get_mut(at))
        {
            widen(one, &module);
            if !names.contains(&module.name) {
                names.push(module.name.clone());
            }
            origins.extend(module.span.filter(|span| !origins.contains(span)));
        }
        ids.insert(index, ModuleId(at));
    }
    // Masks are built one by one, so two of them may each compute the padding that both include.
    kept.iter_mut().for_each(share);
    let root = new_id(&ids, graph.root);
    rename(&mut kept, &names, root);
    Merged { graph: Graph { modules: kept, root, ..graph.clone() }, origins }
}

/// Masks and tables that are computed twice from the same are computed once.
fn share(module: &mut Module) {
    let mut known: Vec<(Op, Vec<ValueId>, Vec<ValueId>)> = Vec::new();
    let mut instead: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    module.nodes.retain_mut(|node| {
        for id in &mut node.inputs {
            *id = instead.get(id).copied().unwrap_or(*id);
        }
        if !node.op.meaning().is_table() {
            return true;
        }
        // Only tables: two dropouts or two layers with equal inputs must stay two.
        match known.iter().find(|(op, inputs, _)| *op == node.op && *inputs == node.inputs) {
            Some((_, _, outputs)) => {
                instead.extend(node.outputs.iter().copied().zip(outputs.iter().copied()));
                false
            }
            None => {
                known.push((node.op.clone(), node.inputs.clone(), node.outputs.clone()));
                true
            }
        }
    });
    for id in &mut module.results {
        *id = instead.get(id).copied().unwrap_or(*id);
    }
}

fn is_same_code(a: &Module, b: &Module) -> bool {
    // Names of values become names of variables: with other names, the code would be other code.
    let same_values = a.values.len() == b.values.len()
        && a.values
            .iter()
            .zip(&b.values)
            .all(|(x, y)| (&x.name, &x.variable) == (&y.name, &y.variable) && is_same_type(&x.ty, &y.ty));
    same_values
        && a.doc == b.doc
        && (a.role, a.args) == (b.role, b.args)
        && a.members == b.members
        && a.nodes == b.nodes
        && a.results == b.results
}

/// Whether code that works on one type works on the other. Types differ by rank and by fixed sizes; a mask
/// may always be absent, and its axes of length 1 stretch.
pub fn is_same_type(a: &Type, b: &Type) -> bool {
    let is_mask = a.dtype == DType::Bool;
    let same_dims = a
        .shape
        .iter()
        .zip(b.shape.iter())
        .all(|(x, y)| is_mask || x == y || (x.constant().is_none() && y.constant().is_none()));
    a.dtype == b.dtype && a.shape.len() == b.shape.len() && same_dims && (is_mask || a.optional == b.optional)
}

/// Gives the masks of a module the widest shapes among the modules that became it, for its documentation.
fn widen(module: &mut Module, other: &Module) {
    // The other module may run along another sequence: its `T` is this one's `S`.
    let mut lengths: Vec<(Dim, Dim)> = Vec::new();
    let floats = module.values.iter().zip(&other.values).filter(|(value, _)| value.ty.dtype != DType::Bool);
    for (own, theirs) in floats.flat_map(|(a, b)| a.ty.shape.iter().zip(b.ty.shape.iter())) {
        if theirs.constant().is_none() && lengths.iter().all(|(known, _)| known != theirs) {
            lengths.push((theirs.clone(), own.clone()));
        }
    }
    for (value, wider) in module.values.iter_mut().zip(&other.values) {
        if value.ty.dtype == DType::Bool {
            for (dim, other) in value.ty.shape_mut().iter_mut().zip(wider.ty.shape.iter()) {
                if dim.constant() == Some(1) {
                    let own = lengths.iter().find(|(theirs, _)| theirs == other).map(|(_, own)| own);
                    *dim = own.unwrap_or(other).clone();
                }
            }
        }
    }
}

/// A merged module is called by the words that all its names end in, if no other module has that name. The
/// model keeps its name, whose digits are the author's.
fn rename(modules: &mut [Module], names: &[Vec<String>], root: ModuleId) {
    for (at, all) in names.iter().enumerate().filter(|(at, _)| *at != root.0) {
        let [first, rest @ ..] = all.as_slice() else { continue };
        // Lowering tells modules of one name apart by digits at the end, which mean nothing to readers.
        let mut shared = super::name::words(first.trim_end_matches(|c: char| c.is_ascii_digit()));
        for other in rest {
            let other = super::name::words(other.trim_end_matches(|c: char| c.is_ascii_digit()));
            // From the end, because the last words say what a module is: `DecoderBlock` and `EncoderBlock`
            // are blocks.
            let alike = shared.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
            shared.drain(..shared.len() - alike);
        }
        // Names that have no word in common at their ends leave this empty, and the first of them is kept.
        let name = shared.concat();
        let is_taken = modules.iter().enumerate().any(|(i, m)| i != at && m.name == name);
        if let Some(module) = modules.get_mut(at)
            && !name.is_empty()
            && !is_taken
            && (all.len() > 1 || module.name != name)
        {
            module.name = name;
        }
    }
}
