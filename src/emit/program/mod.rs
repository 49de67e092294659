//! From the graph to a program: everything about the code of a model that does not depend on its language.
//!
//! A [`Program`] says which modules become one (`merge`), what modules, members and numbers are called, what
//! every module owns, which functions it has, what these take (values, lengths, the device, caches), and
//! their statements in order. It is plain data. A target turns it into text: it makes names legal, chooses
//! types and calls, and may write an expression where its value is used ([`function::Statement::folds`]).
//!
//! Merging changes modules after the graph was verified, so a program is verified again: only
//! [`verify::verify`] creates a [`Program`], so a target can rely on its rules.

pub mod choice;
mod code;
pub mod constants;
pub mod fold;
pub mod function;
mod merge;
pub mod name;
pub mod needs;
pub mod operands;
pub mod rotary;
mod split;
pub mod verify;

pub use code::{Body, Draft, Field, FieldKind, Module, Stack};
pub use verify::Program;

use constants::{Constants, Size};
use function::{Caches, Extract, function};
use merge::{Merged, merge};
use needs::Needs;

use crate::ir::op::quantity::Named;
use crate::ir::{Graph, MemberId, MemberKind, ModuleId, Op, Run, ValueId, Verified, stack_len};
use crate::lower::Bug;
use crate::source::{SourceMap, Span};
use choice::Choice;

/// The program of a model.
///
/// # Errors
/// A fault of trafoc: the program breaks a rule.
pub fn program(graph: &Verified, sources: &SourceMap) -> Result<Program, Bug> {
    Ok(verify::verify(draft(graph, sources))?)
}

/// The program of a model, not verified yet.
pub fn draft(graph: &Graph, sources: &SourceMap) -> Draft {
    let Merged { graph, origins } = merge(graph);
    let needs = needs::of_graph(&graph);
    let constants = Constants::of(&graph);
    let mut given = name::Names::default();
    let mut modules: Vec<Module> = Vec::new();
    for (index, module) in graph.modules.iter().enumerate() {
        let id = ModuleId(index);
        let own = needs.get(index).cloned().unwrap_or_default();
        let fields = fields(&graph, id, &own, &modules, &constants);
        // A block is an element of a list, for which it needs a type even if it owns nothing.
        let is_function = fields.is_empty() && id != graph.root && !is_block(&graph, id);
        modules.push(Module {
            // Which names are reserved depends on the language, so the targets choose among the reserved
            // ones.
            name: given.give(&module.name, &|_| false),
            doc: module.doc.iter().map(|line| name::one_line(line)).collect(),
            places: origins.get(index).map_or_else(Vec::new, |spans| places(spans, sources)),
            is_function,
            fields,
            body: body(&graph, &needs, id, &own),
        });
    }
    Draft { graph, modules, constants }
}

/// `specs/gpt1.yaml:12`, for each span that has a text. All or none: a place without the others would
/// mislead.
fn places(spans: &[Span], sources: &SourceMap) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for span in spans {
        let Some(source) = sources.get(span.source) else { return Vec::new() };
        let place = format!("{}:{}", name::shown(&source.name), sources.line(*span));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn is_block(graph: &Graph, id: ModuleId) -> bool {
    let is_block =
        |kind: &MemberKind| matches!(kind, MemberKind::Stack(runs) if needs::kinds(runs).contains(&id));
    graph.modules.iter().flat_map(|module| &module.members).any(|member| is_block(&member.kind))
}

/// What a module owns: members with something of their own, then dropouts. `done` are the modules before it.
fn fields(graph: &Graph, id: ModuleId, own: &Needs, done: &[Module], constants: &Constants) -> Vec<Field> {
    let module = graph.module(id);
    let mut fields = Vec::new();
    for (at, member) in module.members.iter().enumerate() {
        let kind = match &member.kind {
            MemberKind::Layer(layer) => {
                (!layer.parameters().is_empty()).then(|| FieldKind::Layer(layer.clone()))
            }
            MemberKind::Module(child) if done.get(child.0).is_some_and(|child| child.is_function) => None,
            MemberKind::Module(child) => Some(FieldKind::Module(*child)),
            MemberKind::Stack(runs) => stack(graph, id, MemberId(at), runs, constants).map(FieldKind::Stack),
        };
        fields.extend(kind.map(|kind| Field { name: member.name.clone(), kind }));
    }
    let dropout = |(name, p): &(String, f64)| Field {
        name: name.clone(),
        kind: FieldKind::Dropout(constants.real(Named::Dropout, *p)),
    };
    fields.extend(own.dropouts.iter().map(dropout));
    fields
}

fn stack(
    graph: &Graph,
    id: ModuleId,
    member: MemberId,
    runs: &[Run],
    constants: &Constants,
) -> Option<Stack> {
    let mut nodes = graph.module(id).nodes.iter();
    let are_experts =
        nodes.any(|node| matches!(&node.op, Op::Experts { member: experts, .. } if *experts == member));
    let length = stack_len(runs);
    // The number of experts is a field of the spec; every other stack has a constant of its own for its
    // length.
    let count = match are_experts {
        true => constants.known("experts", length).unwrap_or(Size::Number(length)),
        false => constants.layers(id, length),
    };
    let places: choice::PerBlock<ModuleId> =
        runs.iter().map(|run| run.cycle.iter().copied().map(Some).collect()).collect();
    Some(Stack { member, count, kinds: needs::kinds(runs), blocks: Choice::of(runs, &places)? })
}

fn body(graph: &Graph, all: &[Needs], id: ModuleId, own: &Needs) -> Body {
    let module = graph.module(id);
    // The model gets all caches with the number of tokens in them, a module only its part of them.
    let caches = match (id == graph.root, own.caches, own.list) {
        (true, n, _) if graph.decodes => Caches::Model(n),
        (true, ..) | (false, 0, _) => Caches::None,
        (false, _, false) => Caches::One,
        (false, n, true) => Caches::List(n),
    };
    if id == graph.root
        && let Some(split) = split::split(module)
    {
        let encode = Extract {
            nodes: &split.encoding,
            parameters: &split.source,
            results: &split.memory,
            // The source is read as a whole before the first token is decoded, so its half has nothing to
            // append.
            caches: Caches::None,
        };
        let decode =
            Extract { nodes: &split.decoding, parameters: &split.target, results: &module.results, caches };
        return Body::Translation {
            encode: function(graph, all, id, &encode),
            decode: function(graph, all, id, &decode),
        };
    }
    let nodes: Vec<usize> = (0..module.nodes.len()).collect();
    let parameters: Vec<ValueId> = (0..module.args).map(ValueId).collect();
    let whole = Extract { nodes: &nodes, parameters: &parameters, results: &module.results, caches };
    Body::Whole(function(graph, all, id, &whole))
}
