//! What the parts of one emitted file share: names, sizes, and what the code written so far asks for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::constants::{Constants, float};
use super::kernel::Library;
use super::layer::{LinearInit, linear_init};
use super::merge::{Merged, merge};
use super::name::{self, Types};
use super::plan::{self, Facts, Plan};
use crate::ir::{Dim, Graph, MemberId, MemberKind, ModuleId, Type};
use crate::lower::Bug;
use crate::source::{SourceMap, Span};

/// Most parameters a function has beside `self`.
const MOST_PARAMETERS: usize = 6;

/// One emitted file in the making.
pub struct File<'a> {
    /// The graph.
    pub graph: Graph,
    /// Where each module comes from.
    origins: Vec<Vec<Span>>,
    /// The texts, for lines of the spec.
    pub sources: &'a SourceMap,
    /// Sizes.
    pub constants: Constants,
    /// Facts about the modules.
    pub plan: Plan,
    /// What `linear(..)` is told.
    pub linear_init: LinearInit,
    library: Library,
    types: Vec<String>,
    enums: BTreeMap<(ModuleId, MemberId), String>,
    bundles: BTreeMap<ModuleId, String>,
    imports: RefCell<BTreeSet<String>>,
    kernels: RefCell<BTreeSet<String>>,
    helpers: RefCell<BTreeSet<String>>,
    numbers: RefCell<Vec<(String, Vec<f64>)>>,
}

impl<'a> File<'a> {
    /// An empty file.
    ///
    /// # Errors
    /// A fault of trafoc: the kernels cannot be read.
    pub fn new(graph: &Graph, sources: &'a SourceMap) -> Result<Self, Bug> {
        let Merged { graph, origins } = merge(graph);
        let plan = plan::plan(&graph);
        let mut given = Types::default();
        let types: Vec<String> = graph.modules.iter().map(|module| given.give(&module.name)).collect();
        let enums = enums(&graph, &types, &mut given);
        let bundles = bundles(&graph, &plan, &types, &mut given);
        Ok(Self {
            constants: Constants::of(&graph),
            plan,
            linear_init: linear_init(&graph),
            graph,
            origins,
            sources,
            library: Library::read()?,
            types,
            enums,
            bundles,
            imports: RefCell::default(),
            kernels: RefCell::default(),
            helpers: RefCell::default(),
            numbers: RefCell::default(),
        })
    }

    /// The struct of a module.
    pub fn type_of(&self, id: ModuleId) -> &str {
        self.types.get(id.0).map_or("Missing", String::as_str)
    }

    /// The struct of what a module takes beside its first argument, where a function would take more
    /// than is easily read.
    pub fn bundle_of(&self, id: ModuleId) -> Option<&str> {
        self.bundles.get(&id).map(String::as_str)
    }

    /// The function that stands for a module without fields, outside of stacks.
    pub fn free_function(&self, id: ModuleId) -> Option<String> {
        let in_stack =
            self.graph.modules.iter().flat_map(|m| &m.members).any(
                |member| matches!(&member.kind, MemberKind::Stack(runs) if plan::kinds(runs).contains(&id)),
            );
        if in_stack || id == self.graph.root || self.has_fields(id) {
            return None;
        }
        let mut called = name::variable(&name::snake(self.type_of(id)));
        while self.library.has(&called) {
            called.push_str("_of");
        }
        Some(called)
    }

    fn has_fields(&self, id: ModuleId) -> bool {
        let is_field = |kind: &MemberKind| match kind {
            MemberKind::Layer(layer) => super::layer::field_type(layer, self).is_some(),
            MemberKind::Module(child) => self.free_function(*child).is_none(),
            MemberKind::Stack(_) => true,
        };
        !self.facts(id).dropouts.is_empty()
            || self.graph.module(id).members.iter().any(|member| is_field(&member.kind))
    }

    /// The type of a stack of unlike blocks.
    pub fn enum_of(&self, owner: ModuleId, member: MemberId) -> &str {
        self.enums.get(&(owner, member)).map_or("Missing", String::as_str)
    }

    /// Facts about a module.
    pub fn facts(&self, id: ModuleId) -> Facts {
        self.plan.modules.get(id.0).cloned().unwrap_or_default()
    }

    /// Imports a path and returns its last word.
    pub fn import(&self, path: &str) -> String {
        self.imports.borrow_mut().insert(path.to_owned());
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// A type of `burn::nn`, which the prelude names `nn`.
    pub fn import_nn(&self, path: &str) -> String {
        format!("nn::{path}")
    }

    /// A function or type of the crate of kernels.
    pub fn kernel(&self, name: &str) -> String {
        debug_assert!(self.library.has(name), "no kernel is called {name}");
        self.kernels.borrow_mut().insert(name.to_owned());
        name.to_owned()
    }

    /// A function of the file whose text depends on the model.
    pub fn helper(&self, name: &str) -> String {
        self.helpers.borrow_mut().insert(name.to_owned());
        name.to_owned()
    }

    /// The model's own helpers asked for so far.
    pub fn helpers(&self) -> BTreeSet<String> {
        self.helpers.borrow().clone()
    }

    /// A named list of numbers; equal lists are one.
    pub fn numbers(&self, name: &str, values: &[f64]) -> String {
        let mut numbers = self.numbers.borrow_mut();
        if let Some((known, _)) = numbers.iter().find(|(_, v)| v == values) {
            return known.clone();
        }
        let mut chosen = name.to_owned();
        let mut n = 2;
        while numbers.iter().any(|(known, _)| *known == chosen) {
            chosen = format!("{name}_{n}");
            n += 1;
        }
        numbers.push((chosen.clone(), values.to_vec()));
        chosen
    }

    /// The lists of numbers as constants.
    pub fn number_definitions(&self) -> Vec<String> {
        let numbers = self.numbers.borrow();
        numbers
            .iter()
            .map(|(name, values)| {
                let list: Vec<String> = values.iter().map(|x| float(*x)).collect();
                let doc = match name.starts_with("SLOPES") {
                    true => "Slope of every head.",
                    false => "Angle of every pair of features from one position to the next.",
                };
                format!("/// {doc}\npub const {name}: [f64; {}] = [{}];", list.len(), list.join(", "))
            })
            .collect()
    }

    /// Every import of the file; kernels are those of `from`.
    pub fn imports(&self, from: &str) -> BTreeSet<String> {
        let kernels = self.kernels.borrow();
        let own = self.imports.borrow();
        kernels.iter().map(|name| format!("{from}::{name}")).chain(own.iter().cloned()).collect()
    }

    /// The module of all kernels that were asked for.
    pub fn kernel_module(&self) -> String {
        self.library.module(&self.kernels.borrow())
    }

    /// `specs/gpt1.yaml:12` of a module, if it comes from there.
    pub fn origin(&self, id: ModuleId) -> Option<String> {
        let mut places: Vec<String> = Vec::new();
        for span in self.origins.get(id.0)? {
            let source = self.sources.get(span.source)?;
            let place = format!("`{}:{}`", name::shown(&source.name), self.sources.line(*span));
            if !places.contains(&place) {
                places.push(place);
            }
        }
        (!places.is_empty()).then(|| places.join(" and "))
    }

    /// A shape as documentation has it, `[B, T, D_MODEL]`.
    pub fn shape(&self, ty: &Type) -> String {
        let size =
            |dim: &Dim| dim.extent().map_or_else(|| dim.to_string(), |size| self.constants.argument(size));
        let dims: Vec<String> = ty.shape.iter().map(size).collect();
        format!("[{}]", dims.join(", "))
    }
}

/// The types of stacks of unlike blocks, kept apart from the structs and from other such stacks: `Block` for
/// `blocks`, or `EncoderBlock`.
fn enums(graph: &Graph, types: &[String], given: &mut Types) -> BTreeMap<(ModuleId, MemberId), String> {
    let singular = |member: &str| name::camel(member.strip_suffix('s').unwrap_or(member));
    let mut stacks: Vec<(ModuleId, MemberId, String)> = Vec::new();
    for (id, module) in graph.modules.iter().enumerate() {
        for (at, member) in module.members.iter().enumerate() {
            if matches!(&member.kind, MemberKind::Stack(runs) if plan::kinds(runs).len() > 1) {
                stacks.push((ModuleId(id), MemberId(at), singular(&member.name)));
            }
        }
    }
    let mut enums = BTreeMap::new();
    for (id, at, name) in &stacks {
        let is_one = stacks.iter().filter(|(.., other)| other == name).count() == 1;
        let owner = types.get(id.0).map_or("", String::as_str);
        let of_owner = format!("{owner}{name}");
        let wanted = match (is_one && !given.has(name), given.has(&of_owner)) {
            (true, _) => name.clone(),
            (false, false) => of_owner,
            (false, true) => format!("{of_owner}Kind"),
        };
        enums.insert((*id, *at), given.give(&wanted));
    }
    enums
}

/// The structs of what functions take that would take more than is easily read.
fn bundles(graph: &Graph, plan: &Plan, types: &[String], given: &mut Types) -> BTreeMap<ModuleId, String> {
    let mut bundles = BTreeMap::new();
    for (index, ((module, facts), name)) in graph.modules.iter().zip(&plan.modules).zip(types).enumerate() {
        let parameters = module.args + facts.extra.len() + usize::from(facts.caches > 0);
        if parameters > MOST_PARAMETERS && ModuleId(index) != graph.root {
            bundles.insert(ModuleId(index), given.give(&format!("{name}Inputs")));
        }
    }
    bundles
}
