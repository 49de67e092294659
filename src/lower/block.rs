//! Lowers one kind of block: its parts, connected as its equations state.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ir::build::{Builder, Built};
use crate::ir::infer::Mismatch;
use crate::ir::op::Op;
use crate::ir::{Dim, ModuleId, Role, Sym, Type, ValueId};
use crate::parts::scope::{AmbientId, Scope};
use crate::parts::{Gain, Position, StackNorm, attention, ffn, own};
use crate::spec::block::Instance;
use crate::spec::wiring::Flow;
use crate::spec::{Block, Part};

/// A lowered block. Its arguments are `x`, the memory if it takes it, and the ambient values that it needs.
pub struct Lowered {
    /// The module of the block.
    pub module: ModuleId,
    /// Whether the memory is its second argument.
    pub takes_memory: bool,
    /// The ambient values that are its last arguments, in this order.
    pub needs: Vec<AmbientId>,
}

/// What a call site of the equation becomes: a call of a module, or ops of a norm or a gain in the block
/// itself.
enum Prepared<'a> {
    Module { id: ModuleId, needs: Vec<AmbientId> },
    Norm(&'a StackNorm),
    Gain(&'a Gain),
}

/// The modules of parts that call sites of a stack share, each built once.
#[derive(Default)]
pub struct BuiltModules<'a> {
    /// The key is the part's address, since a part that several blocks inherit is decoded once, and the name
    /// of the call site if initial values depend on paths. Each module is listed with the positional scheme,
    /// which an attention's module contains.
    modules: BTreeMap<(*const Part, &'a str), Vec<(&'a Position, PartModule)>>,
}

type PartModule = crate::parts::scope::Lowered;

impl<'a> BuiltModules<'a> {
    /// The module of a part; `None` for norms and gains, whose ops are added to the block itself.
    fn module(
        &mut self,
        instance: &'a Instance,
        site: &attention::Site<'a>,
    ) -> Result<Option<PartModule>, Mismatch> {
        // Only the rules of `init` can make modules differ by the names of their call sites.
        let name = if site.scope.init.depends_on_paths() { site.name } else { "" };
        let alike = self.modules.entry((Arc::as_ptr(&instance.part), name)).or_default();
        if let Some((_, known)) = alike.iter().find(|(position, _)| *position == site.position) {
            return Ok(Some(known.clone()));
        }
        let scope = site.scope;
        let lowered = match instance.part.as_ref() {
            Part::Norm(_) | Part::Gain(_) => return Ok(None),
            Part::Attention(part) => part.lower(site)?,
            Part::Cross(part) => part.lower(site)?,
            Part::Ffn(part) => {
                let path = format!("blocks.*.{}", instance.name);
                let module = format!("{}FeedForward", scope.prefix);
                let module = part.lower(&ffn::Site { scope, path, module, is_expert: false })?;
                PartModule { module, needs: Vec::new() }
            }
            Part::Own(part) | Part::Reading(part) => {
                let stack = own::lower::Stack { scope, position: site.position, context: site.context };
                part.lower(&own::lower::Site::called(part, &instance.name, stack))?
            }
        };
        alike.push((site.position, lowered.clone()));
        Ok(Some(lowered))
    }
}

/// Lowers a block to a module. `known` are the parts of the stack's earlier blocks.
pub fn lower<'a>(
    block: &'a Block,
    name: &str,
    scope: &'a Scope,
    context: u64,
    known: &mut BuiltModules<'a>,
) -> Result<Lowered, Mismatch> {
    let mut prepared = Vec::with_capacity(block.instances.len());
    for instance in &block.instances {
        let site = attention::Site { scope, name: &instance.name, position: &block.position, context };
        let module = known.module(instance, &site)?;
        prepared.push(match (instance.part.as_ref(), module) {
            (_, Some(PartModule { module, needs })) => Prepared::Module { id: module, needs },
            (Part::Norm(norm), None) => Prepared::Norm(norm),
            (Part::Gain(gain), None) => Prepared::Gain(gain),
            (Part::Attention(_) | Part::Cross(_) | Part::Ffn(_) | Part::Own(_) | Part::Reading(_), None) => {
                return Err(Mismatch("a part without a module".into()));
            }
        });
    }
    // The parts are lowered before the block, because only they know which values the block must be given.
    let mut needs: Vec<AmbientId> = Vec::new();
    for part in &prepared {
        if let Prepared::Module { needs: of_part, .. } = part {
            needs.extend(of_part);
        }
    }
    // Several parts may need the same value, which is one argument of the block.
    needs.sort();
    needs.dedup();
    let takes_memory = block.instances.iter().any(|i| i.part.reads_memory());

    // The role is for what the block itself owns: norms and gains.
    let mut b = Builder::new(&scope.arena, name, Role::Norm);
    b.at(block.wiring.span);
    for line in block.wiring.text.lines() {
        b.doc(format!("`{line}`"));
    }
    let mut variables = BTreeMap::new();
    let x = b.argument(&variable(&block.wiring.stream), scope.activations(scope.d_model));
    variables.insert(block.wiring.stream.clone(), x);
    if takes_memory && let (Some(name), Some(memory)) = (&block.wiring.memory, &scope.memory) {
        let ty = Type::float([Dim::sym(Sym::Batch), memory.sequence.queries(), Dim::from(memory.width)]);
        variables.insert(name.clone(), b.argument(&variable(name), ty));
    }
    let given = scope.arguments(&mut b, &needs);
    let ambient = |id: &AmbientId| -> Vec<ValueId> {
        needs.iter().position(|n| n == id).and_then(|i| given.get(i)).cloned().unwrap_or_default()
    };
    let mut wired = Wired { b, block, prepared: &prepared, ambient: &ambient, variables, scope };
    for step in &block.wiring.steps {
        wired.b.at(step.span);
        let value = wired.flow(&step.value, Naming::Variable(&variable(&step.target)))?;
        // A variable may be assigned again, as the residual stream is; later lines read the last value.
        wired.variables.insert(step.target.clone(), value);
    }
    let result = wired.variables.get(&block.wiring.stream).copied();
    let result = result.ok_or(Mismatch("a block without a result".into()))?;
    Ok(Lowered { module: wired.b.finish(&[result]), takes_memory, needs })
}

/// The name in the graph for an author's variable: in lower case, with `_` for anything but letters and
/// digits.
fn variable(name: &str) -> String {
    // The names of values are identifiers in emitted Rust and Python, and in the graph's text form.
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

/// How a value that an equation describes is named.
#[derive(Clone, Copy)]
enum Naming<'a> {
    /// It is named after the variable to which the equation assigns it.
    Variable(&'a str),
    /// The result of a call is named after the part that is called, any other value by this word.
    Unnamed(&'static str),
}

/// A block while its equations are lowered. `variables` has the values of the author's variables so far.
struct Wired<'a> {
    b: Builder,
    block: &'a Block,
    prepared: &'a [Prepared<'a>],
    ambient: &'a dyn Fn(&AmbientId) -> Vec<ValueId>,
    variables: BTreeMap<String, ValueId>,
    scope: &'a Scope,
}

impl<'a> Naming<'a> {
    /// The name of a value that is not the result of a call.
    fn word(self) -> &'a str {
        match self {
            Naming::Variable(word) | Naming::Unnamed(word) => word,
        }
    }
}

impl Wired<'_> {
    /// Adds the nodes that compute one expression of an equation.
    fn flow(&mut self, flow: &Flow, naming: Naming<'_>) -> Built {
        match flow {
            Flow::Name(variable) => {
                let value = self.variables.get(variable).copied();
                value.ok_or_else(|| Mismatch(format!("no variable {variable}")))
            }
            Flow::Scale(by, inner) => {
                let inner = self.flow(inner, Naming::Unnamed("scaled"))?;
                // `1 * x` is `x` and needs no op.
                if *by == 1.0 {
                    return Ok(inner);
                }
                self.b.op(naming.word(), Op::Scale { by: (*by).into() }, &[inner])
            }
            Flow::Sum(terms) => self.fold(terms, naming, || Op::Add),
            Flow::Product(factors) => self.fold(factors, naming, || Op::Mul),
            Flow::Call(site, args) => self.call(*site, args, naming),
        }
    }

    fn fold(&mut self, flows: &[Flow], naming: Naming<'_>, op: fn() -> Op) -> Built {
        let mut sum = None;
        for flow in flows {
            let value = self.flow(flow, Naming::Unnamed("y"))?;
            sum = Some(match sum {
                None => value,
                Some(sum) => self.b.op(naming.word(), op(), &[sum, value])?,
            });
        }
        sum.ok_or(Mismatch("an empty sum".into()))
    }

    fn call(&mut self, site: usize, args: &[Flow], naming: Naming<'_>) -> Built {
        let instance = self.block.instances.get(site).ok_or(Mismatch("no such call site".into()))?;
        let mut inputs = Vec::new();
        for arg in args {
            inputs.push(self.flow(arg, Naming::Unnamed("h"))?);
        }
        let value = match naming {
            Naming::Variable(name) => name,
            Naming::Unnamed(_) => &instance.name,
        };
        let x = inputs.first().copied().ok_or(Mismatch("a call without an argument".into()))?;
        match self.prepared.get(site) {
            Some(Prepared::Module { id, needs }) => {
                inputs.extend(needs.iter().flat_map(|n| (self.ambient)(n)));
                let member = self.b.child(&variable(&instance.name), *id);
                self.b.op(&variable(value), Op::Call { member }, &inputs)
            }
            Some(Prepared::Norm(norm)) => {
                let (member, value) = (variable(&instance.name), variable(value));
                let below = format!("blocks.*.{}", instance.name);
                norm.lower(&mut self.b, self.scope, &below, &member, &value, x)
            }
            Some(Prepared::Gain(gain)) => gain.lower(&mut self.b, self.scope, &variable(&instance.name), x),
            None => Err(Mismatch("no such call site".into())),
        }
    }
}
