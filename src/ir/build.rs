//! Builds modules node by node, checked by the type rules.
//!
//! Lowering opens a [`Builder`] for every module, adds members and nodes, and closes it into the shared
//! [`Arena`], in which equal modules become one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::infer::Mismatch;
use super::{
    Layer, Member, MemberId, MemberKind, Module, ModuleId, Node, Op, Part, Role, Run, Type, Value, ValueId,
};
use crate::field::value::MAX_SIZE;
use crate::source::Span;

/// The modules built so far, children before parents. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Arena(Rc<RefCell<Modules>>);

/// Modules, with indices for finding an equal module or an unused name quickly.
#[derive(Debug, Default)]
struct Modules {
    all: Vec<Module>,
    names: Names,
    /// The modules by the name that was requested and the digest of everything else.
    known: BTreeMap<(String, u64), Vec<ModuleId>>,
    too_large: Option<TooLarge>,
}

/// A size above [`MAX_SIZE`] that follows from the sizes of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The size; `u128::MAX` if it is larger than that.
    pub size: u128,
    /// The name of the value or layer that has this size.
    pub of: String,
    /// The place of the part that it comes from.
    pub place: Option<Span>,
}

/// The names in use, each with the number that its next duplicate gets.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, u64>);

impl Names {
    /// The name itself if it is unused, otherwise the first unused one of `numbered(2)`, `numbered(3)`, ...
    fn take(&mut self, name: &str, numbered: impl Fn(u64) -> String) -> String {
        let Some(next) = self.0.get(name).copied() else {
            self.0.insert(name.to_owned(), 2);
            return name.to_owned();
        };
        // The search begins after the last number that was given, so that many equal names take linear time.
        let free = (next..).map(|n| (n, numbered(n))).find(|(_, candidate)| !self.0.contains_key(candidate));
        let (n, candidate) = free.unwrap_or((next, numbered(next)));
        self.0.insert(name.to_owned(), n.saturating_add(1));
        // The numbered name is in use as well: a spec may itself call something `x_2`.
        self.0.insert(candidate.clone(), 2);
        candidate
    }
}

impl Arena {
    /// An arena without modules, which all builders of one model share.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a module, or returns an equal existing one. A different module with the same name gets a
    /// number.
    pub fn intern(&self, mut module: Module) -> ModuleId {
        let mut modules = self.0.borrow_mut();
        // Field by field, because `all` is read while `known` is borrowed.
        let Modules { all, names, known, too_large: _ } = &mut *modules;
        let base = module.name.clone();
        let alike = known.entry((base.clone(), digest(&module))).or_default();
        for id in alike.iter() {
            let Some(other) = all.get(id.0) else { continue };
            // An equal module may have got a number, and names take part in equality.
            module.name.clone_from(&other.name);
            if *other == module {
                return *id;
            }
        }
        // The number follows directly, as types are named: `Block2`.
        module.name = names.take(&base, |n| format!("{base}{n}"));
        let id = ModuleId(all.len());
        alike.push(id);
        all.push(module);
        id
    }

    /// All modules, in order; the arena is empty afterwards.
    pub fn into_modules(self) -> Vec<Module> {
        // Builders may have clones of the arena, so the modules are taken out of what they share.
        std::mem::take(&mut self.0.borrow_mut().all)
    }

    /// The first size that is too large. Sizes are multiplied with saturation, so if there is one, other
    /// errors that lowering finds in shapes have no meaning.
    pub fn too_large(&self) -> Option<TooLarge> {
        self.0.borrow().too_large.clone()
    }

    /// The types of a module's results.
    pub fn results(&self, id: ModuleId) -> Vec<Type> {
        let modules = &self.0.borrow().all;
        modules.get(id.0).map_or(Vec::new(), |m| m.results.iter().map(|r| m.value(*r).ty.clone()).collect())
    }
}

/// A module under construction.
#[derive(Debug)]
pub struct Builder {
    arena: Arena,
    module: Module,
    at: Option<Span>,
    members: Names,
    values: Names,
}

/// A value, or the reason why the op does not fit.
pub type Built = Result<ValueId, Mismatch>;

impl Builder {
    /// An empty module with this type name and role.
    pub fn new(arena: &Arena, name: impl Into<String>, role: Role) -> Self {
        let module = Module::empty(name.into(), role);
        let (members, values) = Default::default();
        Self { arena: arena.clone(), module, at: None, members, values }
    }

    /// The arena of the modules.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Adds a line of documentation: a formula or a sentence.
    pub fn doc(&mut self, line: impl Into<String>) -> &mut Self {
        self.module.doc.push(line.into());
        self
    }

    /// Sets the part of the spec that the module implements.
    pub fn part(&mut self, part: Part) -> &mut Self {
        self.module.part = Some(part);
        self
    }

    /// Sets the place in the spec from which the following nodes come; the first one becomes the module's
    /// place.
    pub fn at(&mut self, span: Span) -> &mut Self {
        self.at = Some(span);
        self.module.span.get_or_insert(span);
        self
    }

    /// Adds an argument. Arguments must be added before nodes.
    pub fn argument(&mut self, name: &str, ty: Type) -> ValueId {
        // The arguments are the first values of a module, so nothing may come before one.
        debug_assert!(self.module.nodes.is_empty(), "arguments come before nodes");
        let id = self.value(name, ty);
        self.module.args = self.module.values.len();
        id
    }

    /// Adds a value that nothing computes, for a module that is built to learn its types and then dropped.
    pub fn outside(&mut self, name: &str, ty: Type) -> ValueId {
        self.value(name, ty)
    }

    /// Adds a layer with this name; a name in use gets a number.
    pub fn layer(&mut self, name: &str, layer: Layer) -> MemberId {
        self.member(name, MemberKind::Layer(layer))
    }

    /// Adds a child module with this name.
    pub fn child(&mut self, name: &str, module: ModuleId) -> MemberId {
        self.member(name, MemberKind::Module(module))
    }

    /// Adds a stack of blocks with this name.
    pub fn stack(&mut self, name: &str, runs: Vec<Run>) -> MemberId {
        self.member(name, MemberKind::Stack(runs))
    }

    fn member(&mut self, name: &str, kind: MemberKind) -> MemberId {
        // With an underscore, as members are called in snake case.
        let name = self.members.take(name, |n| format!("{name}_{n}"));
        // A tensor of a layer may be larger than every value: no value has as many rows as a table of tokens.
        if let MemberKind::Layer(layer) = &kind {
            layer
                .parameters()
                .iter()
                .flat_map(|p| &p.shape)
                .for_each(|n| self.check_size(&name, u128::from(*n)));
        }
        let id = MemberId(self.module.members.len());
        self.module.members.push(Member { name, kind });
        id
    }

    /// The name of a member, which has a number if the requested name was in use.
    pub fn member_name(&self, id: MemberId) -> &str {
        self.module.members.get(id.0).map_or("", |m| m.name.as_str())
    }

    /// Records a size above [`MAX_SIZE`], unless one has been found before.
    fn check_size(&self, of: &str, size: u128) {
        let found = &mut self.arena.0.borrow_mut().too_large;
        if size > u128::from(MAX_SIZE) && found.is_none() {
            *found = Some(TooLarge { size, of: of.to_owned(), place: self.at.or(self.module.span) });
        }
    }

    fn value(&mut self, name: &str, ty: Type) -> ValueId {
        // A length of a call may be any number, so only coefficients are sizes of the spec.
        for dim in ty.shape.iter() {
            self.check_size(name, dim.largest());
        }
        let unique = self.values.take(name, |n| format!("{name}_{n}"));
        let id = ValueId(self.module.values.len());
        self.module.values.push(Value { ty, name: unique, variable: name.to_owned() });
        id
    }

    /// The nodes so far.
    pub fn nodes(&self) -> &[Node] {
        &self.module.nodes
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &Type {
        &self.module.value(id).ty
    }

    /// Adds an op with one result, which gets this name.
    pub fn op(&mut self, name: &str, op: Op, inputs: &[ValueId]) -> Built {
        match self.ops(&[name], op, inputs)?.as_slice() {
            [one] => Ok(*one),
            other => Err(Mismatch(format!("{} results where one is used", other.len()))),
        }
    }

    /// Adds an op with one result per name.
    pub fn ops(&mut self, names: &[&str], op: Op, inputs: &[ValueId]) -> Result<Vec<ValueId>, Mismatch> {
        // The types are inferred at once, so that the part that adds an op gets the error if it does not fit.
        let types = {
            let given: Vec<&Type> = inputs.iter().map(|id| self.ty(*id)).collect();
            op.infer(&given, &self.module, &self.arena.0.borrow().all)?
        };
        if types.len() != names.len() {
            return Err(Mismatch(format!("{} results, {} names", types.len(), names.len())));
        }
        let outputs: Vec<ValueId> = names.iter().zip(types).map(|(name, ty)| self.value(name, ty)).collect();
        let node = Node { op, inputs: inputs.to_vec(), outputs: outputs.clone(), span: self.at };
        self.module.nodes.push(node);
        Ok(outputs)
    }

    /// Adds a layer and applies it; the value gets the name of the layer.
    pub fn apply(&mut self, name: &str, layer: Layer, x: ValueId) -> Built {
        let member = self.layer(name, layer);
        let name = self.member_name(member).to_owned();
        self.op(&name, Op::Layer { member }, &[x])
    }

    /// Adds a parameter and reads its value.
    pub fn param(&mut self, name: &str, layer: Layer) -> Built {
        let member = self.layer(name, layer);
        let name = self.member_name(member).to_owned();
        self.op(&name, Op::Layer { member }, &[])
    }

    /// Adds a child with one result and calls it.
    pub fn call(&mut self, name: &str, module: ModuleId, args: &[ValueId]) -> Built {
        let member = self.child(name, module);
        let name = self.member_name(member).to_owned();
        self.op(&name, Op::Call { member }, args)
    }

    /// Adds dropout, unless `p` is 0.
    pub fn dropout(&mut self, p: f64, x: ValueId) -> Built {
        // With probability 0 it would do nothing, and still be drawn, counted and emitted.
        if p == 0.0 { Ok(x) } else { self.op("dropout", Op::Dropout { p }, &[x]) }
    }

    /// Closes the module into the arena.
    pub fn finish(mut self, results: &[ValueId]) -> ModuleId {
        let Module { values, nodes, members, .. } = &mut self.module;
        // A graph can have as many values as a hostile spec has call sites, so unused capacity is given back.
        values.shrink_to_fit();
        nodes.shrink_to_fit();
        members.shrink_to_fit();
        self.module.results = results.to_vec();
        self.arena.intern(self.module)
    }
}

/// A hash of a module without its name and spans, which makes equal modules quick to find. Of the types only
/// those of the arguments take part, from which the others follow.
fn digest(module: &Module) -> u64 {
    // All fields are named, so that a new one cannot be forgotten.
    let Module { name: _, doc, span: _, role, part, members, args, values, nodes, results } = module;
    // The digest only narrows the search: modules with equal ones are compared as a whole.
    let mut hasher = DefaultHasher::new();
    (doc, role, part, args, results).hash(&mut hasher);
    module.arguments().iter().for_each(|value| value.ty.hash(&mut hasher));
    values.iter().for_each(|value| (&value.name, &value.variable).hash(&mut hasher));
    for member in members {
        member.name.hash(&mut hasher);
        match &member.kind {
            MemberKind::Layer(layer) => digest_of(format_args!("{layer:?}")).hash(&mut hasher),
            MemberKind::Module(id) => id.hash(&mut hasher),
            MemberKind::Stack(runs) => runs.hash(&mut hasher),
        }
    }
    for node in nodes {
        (&node.inputs, &node.outputs).hash(&mut hasher);
        // Most nodes are of these kinds, which need not be formatted as text to be hashed.
        if let Op::Layer { member } | Op::Call { member } = &node.op {
            (std::mem::discriminant(&node.op), member).hash(&mut hasher);
        } else if matches!(node.op, Op::Add | Op::Mul) {
            std::mem::discriminant(&node.op).hash(&mut hasher);
        } else {
            digest_of(format_args!("{:?}", node.op)).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A number that is equal for modules whose documentation, members and nodes are equal, whatever the types of
/// their values, and that few others have.
pub fn code_digest(module: &Module) -> u64 {
    let Module { name: _, doc, span: _, role, part: _, members, args, values: _, nodes, results } = module;
    let nodes = computed(nodes);
    digest_of(format_args!("{doc:?} {role:?} {members:?} {args} {results:?} {nodes:?}"))
}

/// Nodes without their places in the spec, which make no difference.
fn computed(nodes: &[Node]) -> Vec<(&Op, &[ValueId], &[ValueId])> {
    nodes.iter().map(|node| (&node.op, node.inputs.as_slice(), node.outputs.as_slice())).collect()
}

/// The digest of a text. Floats do not implement `Hash`, but their text is just as exact.
fn digest_of(text: std::fmt::Arguments<'_>) -> u64 {
    struct Digest(DefaultHasher);
    impl std::fmt::Write for Digest {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut digest = Digest(DefaultHasher::new());
    let written = digest.write_fmt(text);
    debug_assert!(written.is_ok(), "a hasher takes every text");
    digest.0.finish()
}
