//! What the parts of one emitted file share: names, sizes, and what the code written so far asks for.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::constants::{Constants, float};
use super::kernel::Library;
use super::layer::{LinearInit, linear_init};
use super::merge::{Merged, merge};
use super::name;
use super::plan::{self, Facts, Plan};
use crate::ir::{Graph, MemberKind, ModuleId, Type};
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
    imports: RefCell<BTreeSet<String>>,
    kernels: RefCell<BTreeSet<String>>,
    helpers: RefCell<BTreeSet<String>>,
    numbers: RefCell<Vec<(String, Vec<f64>)>>,
}

impl<'a> File<'a> {
    /// An empty file.
    pub fn new(graph: &Graph, sources: &'a SourceMap) -> Self {
        let Merged { graph, origins } = merge(graph);
        let mut types: Vec<String> = Vec::new();
        for module in &graph.modules {
            let mut chosen = name::type_name(&module.name);
            while types.contains(&chosen) {
                chosen.push('_');
            }
            types.push(chosen);
        }
        Self {
            constants: Constants::of(&graph),
            plan: plan::plan(&graph),
            linear_init: linear_init(&graph),
            graph,
            origins,
            sources,
            library: Library::read(),
            types,
            imports: RefCell::default(),
            kernels: RefCell::default(),
            helpers: RefCell::default(),
            numbers: RefCell::default(),
        }
    }

    /// The struct of a module.
    pub fn type_of(&self, id: ModuleId) -> &str {
        self.types.get(id.0).map_or("Missing", String::as_str)
    }

    /// The struct of what a module takes beside its first argument, where a function would take more
    /// than is easily read.
    pub fn bundle_of(&self, id: ModuleId) -> Option<String> {
        let facts = self.facts(id);
        let parameters = self.graph.module(id).args + facts.extra.len() + usize::from(facts.caches > 0);
        (parameters > MOST_PARAMETERS).then(|| format!("{}Inputs", self.type_of(id)))
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
        let mut called = name::snake(self.type_of(id));
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

    /// The type of a stack of unlike blocks, kept apart from the structs and from other such stacks:
    /// `Block` for `blocks`, or `EncoderBlock`.
    pub fn enum_of(&self, owner: ModuleId, member: &str) -> String {
        let camel_of = |member: &str| name::camel(member.strip_suffix('s').unwrap_or(member));
        let camel = camel_of(member);
        let unlike =
            |kind: &MemberKind| matches!(kind, MemberKind::Stack(runs) if plan::kinds(runs).len() > 1);
        let members = self.graph.modules.iter().flat_map(|m| &m.members);
        let alike = members.filter(|m| unlike(&m.kind) && camel_of(&m.name) == camel).count();
        let mut chosen = if alike > 1 || self.types.contains(&camel) {
            format!("{}{camel}", self.type_of(owner))
        } else {
            camel
        };
        while self.types.contains(&chosen) {
            chosen.push_str("Kind");
        }
        chosen
    }

    /// Facts about a module.
    pub fn facts(&self, id: ModuleId) -> Facts {
        self.plan.modules.get(id.0).cloned().unwrap_or_default()
    }

    /// The method of a cache that appends these tensors: `append`, and longer names for further sets.
    pub fn append_method(&self, slot: &[(String, usize)]) -> String {
        match self.plan.slots.iter().position(|known| known == slot) {
            Some(0) | None => "append".to_owned(),
            Some(_) => {
                let names: Vec<&str> = slot.iter().map(|(name, _)| name.as_str()).collect();
                format!("append_{}", names.join("_"))
            }
        }
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

    /// A function or type the file brings along.
    pub fn kernel(&self, name: &str) -> String {
        debug_assert!(self.library.has(name), "no text defines {name}");
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

    /// The texts brought along, and every import of the file.
    pub fn library(&self) -> (Vec<String>, BTreeSet<String>) {
        let (texts, mut imports) = self.library.select(&self.kernels.borrow());
        imports.extend(self.imports.borrow().iter().cloned());
        (texts, imports)
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

    /// A shape as documentation has it, `[B, T, D_MODEL]` in letters and numbers.
    pub fn shape(&self, ty: &Type) -> String {
        let dims: Vec<String> = ty.shape.iter().map(ToString::to_string).collect();
        format!("[{}]", dims.join(", "))
    }
}
