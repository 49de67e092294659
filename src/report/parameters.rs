//! The number of parameters of a model by role, computed from modules, never from single blocks.
//!
//! Tied weights count once, because a tied weight is one member that is used twice. Buffers are counted
//! separately. A mixture's *active* parameters are those that a token uses: of `E` experts, the `active`
//! ones it is sent to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::serialize_count;
use crate::ir::paths::elements;
use crate::ir::{Graph, MemberKind, Module, Op, Role, stack_len};

/// The name of a role in reports.
pub fn word(role: Role) -> &'static str {
    match role {
        Role::Embedding => "embedding",
        Role::Attention => "attention",
        Role::Ffn => "ffn",
        Role::Norm => "norm",
        Role::Head => "head",
    }
}

/// The number of parameters in one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// The parameters of all copies of a module and of all experts; a tied one counts once.
    #[serde(serialize_with = "serialize_count")]
    pub total: u128,
    /// The parameters that a token uses; fewer than all only in a mixture of experts.
    #[serde(serialize_with = "serialize_count")]
    pub active: u128,
}

impl Count {
    /// Adds a count `total` times, of which a token uses the fraction `active` (numerator and denominator).
    fn add(&mut self, other: Count, total: u128, active: (u128, u128)) {
        let (times, of) = active;
        self.total = self.total.saturating_add(other.total.saturating_mul(total));
        // Multiplied before it is divided, so that at most the fraction of one parameter is rounded away.
        let part = other.active.saturating_mul(times).checked_div(of).unwrap_or(0);
        self.active = self.active.saturating_add(part);
    }
}

/// The parameters of a model or a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The counts by role; a role without parameters is absent.
    pub roles: BTreeMap<Role, Count>,
    /// Elements of tensors that training does not change; no other number here includes them.
    pub buffers: u128,
}

impl Parameters {
    /// The sum over all roles.
    pub fn all(&self) -> Count {
        self.roles.values().fold(Count::default(), |mut sum, count| {
            sum.add(*count, 1, (1, 1));
            sum
        })
    }

    /// The count of one role.
    pub fn of(&self, role: Role) -> Count {
        self.roles.get(&role).copied().unwrap_or_default()
    }

    /// Bytes of the weights, buffers included, at `element` bytes each.
    pub fn bytes(&self, element: u128) -> u128 {
        self.all().total.saturating_add(self.buffers).saturating_mul(element)
    }

    fn add(&mut self, other: &Parameters, total: u128, active: (u128, u128)) {
        for (role, count) in &other.roles {
            self.roles.entry(*role).or_default().add(*count, total, active);
        }
        self.buffers = self.buffers.saturating_add(other.buffers.saturating_mul(total));
    }
}

/// The parameters of every module, indexed like [`Graph::modules`]. Children come before parents, so one
/// pass is enough.
pub fn of_modules(graph: &Graph) -> Vec<Parameters> {
    let mut counted: Vec<Parameters> = Vec::with_capacity(graph.modules.len());
    for module in &graph.modules {
        let of_module = of_module(module, &counted);
        counted.push(of_module);
    }
    counted
}

fn of_module(module: &Module, counted: &[Parameters]) -> Parameters {
    let mut sum = Parameters::default();
    for (i, member) in module.members.iter().enumerate() {
        match &member.kind {
            MemberKind::Layer(layer) => {
                let role = module.role_of(layer);
                for parameter in layer.parameters() {
                    let n = elements(&parameter.shape);
                    if parameter.trained {
                        sum.roles.entry(role).or_default().add(Count { total: n, active: n }, 1, (1, 1));
                    } else {
                        sum.buffers = sum.buffers.saturating_add(n);
                    }
                }
            }
            MemberKind::Module(id) => {
                if let Some(child) = counted.get(id.0) {
                    sum.add(child, 1, (1, 1));
                }
            }
            MemberKind::Stack(runs) => {
                let experts = active_experts(module, i);
                for run in runs {
                    for (j, id) in run.cycle.iter().enumerate() {
                        let blocks = u128::from(run.blocks(j));
                        // A token is sent to this many of all experts, whichever runs of the stack they are
                        // in.
                        let active = match experts {
                            Some(active) => {
                                (blocks.saturating_mul(u128::from(active)), u128::from(stack_len(runs)))
                            }
                            None => (blocks, 1),
                        };
                        if let Some(child) = counted.get(id.0) {
                            sum.add(child, blocks, active);
                        }
                    }
                }
            }
        }
    }
    sum
}

/// The number of experts to which the stack `member` sends a token; `None` if it is not a stack of experts.
pub(super) fn active_experts(module: &Module, member: usize) -> Option<u64> {
    module.nodes.iter().find_map(|node| {
        if let Op::Experts { member: id, active } = &node.op
            && id.0 == member
        {
            return Some(*active);
        }
        None
    })
}
