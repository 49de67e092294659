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

pub use verify::Program;

use constants::{Constants, Scalar, Size};
use function::{Caches, Extract, Function, function};
use merge::{Merged, merge};
use needs::Needs;

use crate::ir::op::quantity::Named;
use crate::ir::{
    DType, Graph, Layer, MemberId, MemberKind, ModuleId, Op, Run, Sym, Value, ValueId, Verified, stack_len,
};
use crate::lower::Bug;
use crate::source::{SourceMap, Span};
use choice::Choice;

/// A program before it is verified.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The modules that are left after merging, with their values, members and nodes.
    pub graph: Graph,
    /// The code of each, by module id, children before parents.
    pub modules: Vec<Module>,
    /// Its named numbers.
    pub constants: Constants,
}

/// The code of one module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Its name, which no other module has: `DecoderBlock`.
    pub name: String,
    /// What it computes, a formula or sentence per line.
    pub doc: Vec<String>,
    /// Where it comes from: `specs/gpt1.yaml:12`.
    pub places: Vec<String>,
    /// Whether it is no more than a function: it owns nothing and is not a block of a stack.
    pub is_function: bool,
    /// What it owns, in order.
    pub fields: Vec<Field>,
    /// What it computes.
    pub body: Body,
}

/// Something a module owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, the segment of a parameter's path.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
}

/// What a module can own.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A layer with parameters.
    Layer(Layer),
    /// Another module.
    Module(ModuleId),
    /// Numbered blocks.
    Stack(Stack),
    /// The dropout of that probability.
    Dropout(Scalar),
}

/// Numbered blocks that a module owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The member that holds them.
    pub member: MemberId,
    /// How many there are.
    pub count: Size,
    /// The modules that are blocks, each once.
    pub kinds: Vec<ModuleId>,
    /// Which of them is the block of an index.
    pub blocks: Choice<ModuleId>,
}

/// The functions of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One, from its arguments to its results.
    Whole(Function),
    /// Two, of a model with a source and a target.
    Translation {
        /// From the inputs of the source to the memory.
        encode: Function,
        /// From the inputs of the target and the memory to the outputs.
        decode: Function,
    },
}

impl Body {
    /// The functions in order.
    pub fn functions(&self) -> Vec<&Function> {
        match self {
            Body::Whole(one) => vec![one],
            Body::Translation { encode, decode } => vec![encode, decode],
        }
    }
}

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
        let is_function = fields.is_empty() && id != graph.root && !is_block(&graph, id);
        modules.push(Module {
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
    let count = match are_experts {
        true => constants.known("experts", length).unwrap_or(Size::Number(length)),
        false => constants.layers(id, length),
    };
    let places: choice::Places<ModuleId> =
        runs.iter().map(|run| run.cycle.iter().copied().map(Some).collect()).collect();
    Some(Stack { member, count, kinds: needs::kinds(runs), blocks: Choice::of(runs, &places)? })
}

fn body(graph: &Graph, all: &[Needs], id: ModuleId, own: &Needs) -> Body {
    let module = graph.module(id);
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

impl Draft {
    /// The code of a module.
    pub fn code(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0)
    }

    /// The model itself.
    pub fn model(&self) -> Option<&Module> {
        self.code(self.graph.root)
    }

    /// Whether a tensor may be absent where a function takes it: what is optional in the graph, and every
    /// mask.
    pub fn may_be_absent(value: &Value) -> bool {
        value.ty.optional || value.ty.dtype == DType::Bool
    }

    /// Whether the model reads a source in addition to what it computes.
    pub fn reads_source(&self) -> bool {
        let source = crate::ir::Dim::sym(Sym::Source);
        self.graph.root().arguments().iter().any(|value| value.ty.shape.contains(&source))
    }

    /// How many caches the whole model fills, as a size: the length of the stack whose blocks fill one each,
    /// where there is one.
    pub fn cache_count(&self) -> Size {
        let caches = self.model().map_or(0, |model| {
            model.body.functions().iter().map(|function| function.caches.count()).max().unwrap_or(0)
        });
        let fills = |module: &Module| {
            let functions = module.body.functions();
            let mut statements = functions.iter().flat_map(|function| &function.statements);
            statements.any(|statement| {
                let scanned = statement.action.scan().and_then(|scan| scan.caches);
                scanned.is_some_and(|own| own.count == caches)
            })
        };
        match self.modules.iter().position(fills) {
            Some(owner) => self.constants.layers(ModuleId(owner), caches),
            None => Size::Number(caches),
        }
    }
}
