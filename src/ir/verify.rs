//! Checks a graph; only a graph that passes can be run, emitted and counted.
//!
//! The checks do not depend on how the graph was built: values are defined once and before use, types are
//! those that [`Op::infer`](super::Op::infer) gives, members exist and are used, names are unique, modules
//! come before their parents, and no two are equal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::fuse::fused;
use super::losses::{is_loss, without_losses};
use super::{Graph, MemberId, MemberKind, Module, ModuleId, Type};

/// A graph that has passed all checks. Only [`verify`] creates it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The graph without the losses of its parts.
    graph: Graph,
    /// The graph with them, if there are any.
    with_losses: Option<Box<Graph>>,
}

impl Deref for Verified {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl Verified {
    /// Whether parts of the model have losses of their own.
    pub fn has_losses(&self) -> bool {
        self.with_losses.is_some()
    }

    /// The names of the losses that parts of the model have, each once.
    pub fn loss_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for module in self.with_losses.iter().flat_map(|graph| &graph.modules) {
            let losses = module.nodes.iter().filter(|node| is_loss(node));
            for id in losses.flat_map(|node| &node.outputs) {
                let name = module.value(*id).variable.as_str();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The graph that is run, in which some ops are fused ([`super::fuse`]).
    pub fn fused(&self) -> Self {
        let with_losses = self.with_losses.as_deref().map(|graph| Box::new(fused(graph)));
        Self { graph: fused(&self.graph), with_losses }
    }

    /// The graph that is trained, in which the losses of parts are values that nothing reads.
    pub fn for_training(&self) -> Cow<'_, Self> {
        match &self.with_losses {
            Some(graph) => Cow::Owned(Self { graph: (**graph).clone(), with_losses: None }),
            None => Cow::Borrowed(self),
        }
    }
}

/// A rule that the graph breaks. Lowering never creates such a graph, so this is a bug in trafoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the module.
    pub module: String,
    /// The rule that is broken, and where: `value 3 is defined twice`.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "module {}: {}", self.module, self.message)
    }
}

/// Checks all rules.
///
/// # Errors
/// Every rule that is broken.
pub fn verify(graph: Graph) -> Result<Verified, Vec<Violation>> {
    let mut violations = Vec::new();
    // All other checks look modules up by their ids, so a root that does not exist ends the verification.
    if graph.root.0 >= graph.modules.len() {
        let message = "the root is not a module".to_owned();
        return Err(vec![Violation { module: graph.name.clone(), message }]);
    }
    let mut namesakes: BTreeMap<&str, Vec<&Module>> = BTreeMap::new();
    for (index, module) in graph.modules.iter().enumerate() {
        let mut report =
            |message: String| violations.push(Violation { module: module.name.clone(), message });
        check_members(&graph, index, module, &mut report);
        check_body(&graph, module, &mut report);
        // Equal modules have equal names, so only namesakes are compared; comparing all pairs would take
        // quadratic time.
        let earlier = namesakes.entry(&module.name).or_default();
        if earlier.contains(&module) {
            report("equal to another module".to_owned());
        }
        earlier.push(module);
    }
    if !violations.is_empty() {
        return Err(violations);
    }
    Ok(match without_losses(&graph) {
        Some(plain) => Verified { graph: plain, with_losses: Some(Box::new(graph)) },
        None => Verified { graph, with_losses: None },
    })
}

fn check_members(graph: &Graph, index: usize, module: &Module, report: &mut dyn FnMut(String)) {
    let mut names = BTreeSet::new();
    for member in &module.members {
        // Members are fields of emitted types and segments of paths, so their names must differ.
        if !names.insert(member.name.as_str()) {
            report(format!("two members are called {}", member.name));
        }
        if !is_name(&member.name) {
            report(format!("`{}` is not a member's name", member.name));
        }
        let children: Vec<ModuleId> = match &member.kind {
            MemberKind::Layer(_) => Vec::new(),
            MemberKind::Module(id) => vec![*id],
            MemberKind::Stack(runs) => {
                if runs.iter().any(|r| r.count == 0 || r.cycle.is_empty()) {
                    report(format!("an empty run in {}", member.name));
                }
                runs.iter().flat_map(|r| r.cycle.iter().copied()).collect()
            }
        };
        for child in children {
            // Children come first, so that one pass over the modules can compute what depends on them.
            if child.0 >= index || child.0 >= graph.modules.len() {
                report(format!("{} is not an earlier module", member.name));
            }
        }
    }
    // A member that no op uses would be a parameter without an effect.
    let used: BTreeSet<MemberId> = module.nodes.iter().filter_map(|node| node.op.meaning().uses()).collect();
    for (i, member) in module.members.iter().enumerate() {
        if !used.contains(&MemberId(i)) {
            report(format!("{} is never used", member.name));
        }
    }
}

fn check_body(graph: &Graph, module: &Module, report: &mut dyn FnMut(String)) {
    let mut names = BTreeSet::new();
    for value in &module.values {
        // Values are captured by their paths, so names must tell them apart.
        if !names.insert(value.name.as_str()) {
            report(format!("two values are called {}", value.name));
        }
        if !is_name(&value.name) {
            report(format!("`{}` is not a value's name", value.name));
        }
    }
    let mut defined: BTreeSet<usize> = (0..module.args).collect();
    for node in &module.nodes {
        let mut types: Vec<&Type> = Vec::new();
        for id in &node.inputs {
            match module.values.get(id.0) {
                Some(value) if defined.contains(&id.0) => types.push(&value.ty),
                _ => report(format!("value {} is used before it is defined", id.0)),
            }
        }
        for id in &node.outputs {
            if id.0 >= module.values.len() || !defined.insert(id.0) {
                report(format!("value {} is defined twice", id.0));
            }
        }
        // An input that is not defined has been reported above, and there is no type to infer from.
        if types.len() != node.inputs.len() {
            continue;
        }
        match node.op.infer(&types, module, &graph.modules) {
            Ok(found) => {
                let stated: Vec<&Type> =
                    node.outputs.iter().filter_map(|id| module.values.get(id.0)).map(|v| &v.ty).collect();
                // Everything after this check relies on the stated types.
                if stated != found.iter().collect::<Vec<_>>() {
                    report(format!("stated types {stated:?} are not {found:?}"));
                }
            }
            Err(mismatch) => report(mismatch.0),
        }
    }
    for id in &module.results {
        if !defined.contains(&id.0) {
            report(format!("result {} is not defined", id.0));
        }
    }
}

/// Whether a name is valid in Rust and in files: `[a-z_][a-z0-9_]*`.
fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
