//! The model itself: `forward`, decoding step by step, `encode` and `decode`, `load`.

use std::collections::BTreeSet;

use codegen::{Function as Method, Impl, Scope};

use super::file::File;
use super::function::{Function, Holder};
use super::{body, module, name, plan};
use crate::ir::op::Sequence;
use crate::ir::{Module, ModuleId, Node, Op, Sym, ValueId};

/// Writes the model's struct and its methods.
pub fn write(scope: &mut Scope, file: &File<'_>) {
    let id = file.graph.root;
    let root = file.graph.module(id);
    scope.push_struct(module::structure(file, id));
    let mut item = Impl::new(file.type_of(id));
    item.push_fn(module::constructor(file, id));
    item.push_fn(load(file));
    let all: Vec<usize> = (0..root.nodes.len()).collect();
    let arguments: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    match split(root) {
        Some(split) => write_translating(&mut item, file, &split),
        None => write_plain(&mut item, file, &all, &arguments),
    }
    if holder(file) == Holder::Model {
        item.push_fn(cache(file));
    }
    scope.push_impl(item);
}

fn holder(file: &File<'_>) -> Holder {
    if file.graph.decodes { Holder::Model } else { Holder::None }
}

/// One function from the inputs to the outputs, and the same with a cache.
fn write_plain(item: &mut Impl, file: &File<'_>, nodes: &[usize], arguments: &[ValueId]) {
    let id = file.graph.root;
    let root = file.graph.module(id);
    let results = &root.results;
    let shapes = module::shapes(file, root, arguments, results);
    if holder(file) == Holder::None {
        item.push_fn(whole(file, "forward", &shapes, nodes, arguments, results));
        return;
    }
    for method in with_and_without_cache(file, root, arguments, results, ["forward", "forward_cached"], "run")
    {
        item.push_fn(method);
    }
    item.push_fn(inner(file, "run", nodes, arguments, results));
}

/// `encode`, `decode`, `decode_cached` and, over both, `forward`.
fn write_translating(item: &mut Impl, file: &File<'_>, split: &Split) {
    let id = file.graph.root;
    let root = file.graph.module(id);
    let all: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    let shapes = module::shapes(file, root, &all, &root.results);
    item.push_fn(forward_of_both(file, split, &shapes));
    let shapes = module::shapes(file, root, &split.source, &split.memory);
    item.push_fn(whole(file, "encode", &shapes, &split.encoding, &split.source, &split.memory));
    let shapes = module::shapes(file, root, &split.target, &root.results);
    if holder(file) == Holder::None {
        item.push_fn(whole(file, "decode", &shapes, &split.decoding, &split.target, &root.results));
        return;
    }
    let names = ["decode", "decode_cached"];
    for method in with_and_without_cache(file, root, &split.target, &root.results, names, "run_decoder") {
        item.push_fn(method);
    }
    item.push_fn(inner(file, "run_decoder", &split.decoding, &split.target, &root.results));
}

/// A public function without a cache.
fn whole(
    file: &File<'_>,
    called: &str,
    doc: &str,
    nodes: &[usize],
    arguments: &[ValueId],
    results: &[ValueId],
) -> Method {
    let id = file.graph.root;
    let written = Function::new(file, id, nodes, arguments, results, Holder::None).write(nodes, results);
    let mut method = Method::new(called);
    method.vis("pub").arg_ref_self().doc(doc);
    module::parameters(&mut method, file, id, arguments, Holder::None, &written);
    module::finish(&mut method, file.graph.module(id), results, &written);
    method
}

/// The private function both kinds of decoding share.
fn inner(
    file: &File<'_>,
    called: &str,
    nodes: &[usize],
    arguments: &[ValueId],
    results: &[ValueId],
) -> Method {
    let id = file.graph.root;
    let written = Function::new(file, id, nodes, arguments, results, Holder::Model).write(nodes, results);
    let mut method = Method::new(called);
    method.arg_ref_self();
    module::parameters(&mut method, file, id, arguments, Holder::Model, &written);
    module::finish(&mut method, file.graph.module(id), results, &written);
    method
}

/// `forward(..)` and `forward_cached(.., cache)`, which both run the same code.
fn with_and_without_cache(
    file: &File<'_>,
    root: &Module,
    arguments: &[ValueId],
    results: &[ValueId],
    names: [&str; 2],
    shared: &str,
) -> [Method; 2] {
    let signature = module::signature(root, arguments);
    let given: Vec<&str> = signature.iter().map(|(name, _)| name.as_str()).collect();
    let shapes = module::shapes(file, root, arguments, results);
    let make = |called: &str, doc: String| {
        let mut method = Method::new(called);
        method.vis("pub").arg_ref_self().doc(doc).ret(module::result_type(root, results));
        for (name, ty) in &signature {
            method.arg(name, ty);
        }
        method
    };
    let [plain, cached] = names;
    let mut full = make(plain, format!("{shapes}\n\nThe whole sequence at once: `P` is 0."));
    full.line(format!("self.{shared}({}, None)", given.join(", ")));
    let text = format!("{shapes}\n\nThe tokens after those in the cache, which then holds them too.");
    let mut step = make(cached, text);
    step.arg("cache", format!("&mut {}", file.kernel("Cache")));
    let timed = arguments.iter().zip(&given).find_map(|(id, name)| {
        let value = root.value(*id);
        let axis = value.ty.shape.iter().position(|dim| dim.symbol() == Some(Sym::Time))?;
        (!value.ty.optional).then(|| format!("{name}.dims()[{axis}]"))
    });
    step.line(format!("let time = {};", timed.unwrap_or_else(|| "0".to_owned())));
    let result =
        if results.len() == 1 { root.value(results[0]).variable.clone() } else { "results".to_owned() };
    let result = name::variable(&result);
    step.line(format!("let {result} = self.{shared}({}, Some(&mut *cache));", given.join(", ")));
    step.line("cache.past += time;");
    step.line(&result);
    [full, step]
}

fn forward_of_both(file: &File<'_>, split: &Split, shapes: &str) -> Method {
    let root = file.graph.root();
    let all: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    let reserved = super::function::reserved();
    let called = |id: &ValueId| body::argument(&root.value(*id).name, &reserved);
    let mut method = Method::new("forward");
    method.vis("pub").arg_ref_self().doc(shapes).ret(module::result_type(root, &root.results));
    for (name, ty) in module::signature(root, &all) {
        method.arg(&name, ty);
    }
    let pass = |id: &ValueId, last: bool| {
        let name = called(id);
        if last { name } else { format!("{name}.clone()") }
    };
    let encoded: Vec<String> = split.source.iter().map(|id| pass(id, !split.target.contains(id))).collect();
    let memory: Vec<String> = split.memory.iter().map(called).collect();
    let memory = if let [one] = memory.as_slice() { one.clone() } else { format!("({})", memory.join(", ")) };
    method.line(format!("let {memory} = self.encode({});", encoded.join(", ")));
    let decoded: Vec<String> = split.target.iter().map(|id| pass(id, true)).collect();
    method.line(format!("self.decode({})", decoded.join(", ")));
    method
}

/// A model cut in two: what depends on the source alone, and the rest.
struct Split {
    encoding: Vec<usize>,
    decoding: Vec<usize>,
    /// Arguments of `encode`.
    source: Vec<ValueId>,
    /// What `encode` returns.
    memory: Vec<ValueId>,
    /// Arguments of `decode`: inputs first, then the memory.
    target: Vec<ValueId>,
}

fn split(root: &Module) -> Option<Split> {
    let of_source = |id: &ValueId| {
        let shape = &root.value(*id).ty.shape;
        shape.iter().any(|dim| dim.symbol() == Some(Sym::Source))
    };
    let of_target = |id: &ValueId| root.value(*id).ty.shape.iter().any(|dim| dim.symbol() == Some(Sym::Time));
    let arguments: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    if !arguments.iter().any(of_source) || !arguments.iter().any(of_target) {
        return None;
    }
    // Values that can be had from the source's inputs: all inputs but the target's.
    let mut known: BTreeSet<ValueId> = arguments.iter().copied().filter(|id| !of_target(id)).collect();
    let mut encoding = Vec::new();
    for (i, node) in root.nodes.iter().enumerate() {
        if !node.inputs.is_empty() && node.inputs.iter().all(|id| known.contains(id)) && !is_timed(node) {
            encoding.push(i);
            known.extend(node.outputs.iter().copied());
        }
    }
    // Nodes without inputs go where they are used: `self.embed.tokens.weight.val()` costs nothing.
    let free: Vec<usize> = (0..root.nodes.len()).filter(|i| root.nodes[*i].inputs.is_empty()).collect();
    let inputs_of = |nodes: &[usize]| -> BTreeSet<ValueId> {
        nodes.iter().filter_map(|i| root.nodes.get(*i)).flat_map(|n| n.inputs.iter().copied()).collect()
    };
    let used_in_encoding = inputs_of(&encoding);
    let outputs = |i: &usize| root.nodes.get(*i).map(|n| n.outputs.clone()).unwrap_or_default();
    encoding.extend(free.iter().filter(|i| outputs(i).iter().any(|o| used_in_encoding.contains(o))));
    encoding.sort_unstable();
    let mut decoding: Vec<usize> = (0..root.nodes.len()).filter(|i| !encoding.contains(i)).collect();
    let used_in_decoding: BTreeSet<ValueId> =
        inputs_of(&decoding).into_iter().chain(root.results.iter().copied()).collect();
    let shared = free
        .iter()
        .filter(|i| encoding.contains(i) && outputs(i).iter().any(|o| used_in_decoding.contains(o)));
    decoding.extend(shared);
    decoding.sort_unstable();
    let made: BTreeSet<ValueId> = encoding.iter().flat_map(outputs).collect();
    let remade: BTreeSet<ValueId> = decoding.iter().flat_map(outputs).collect();
    let used_in_encoding = inputs_of(&encoding);
    let source = arguments.iter().copied().filter(|id| used_in_encoding.contains(id)).collect();
    let memory: Vec<ValueId> =
        made.iter().copied().filter(|id| used_in_decoding.contains(id) && !remade.contains(id)).collect();
    let inputs = arguments.iter().copied().filter(|id| used_in_decoding.contains(id));
    let mut target: Vec<ValueId> = inputs.clone().filter(of_target).collect();
    target.extend(&memory);
    target.extend(inputs.filter(|id| !of_target(id)));
    Some(Split { encoding, decoding, source, memory, target })
}

/// Whether an op runs along the target by itself.
fn is_timed(node: &Node) -> bool {
    let is_timed = |along: &Sequence| matches!(along, Sequence::Cached | Sequence::Whole);
    node.op.meaning().along().iter().any(is_timed)
}

/// `load(path, device)`: weights by path, in PyTorch's layout.
fn load(file: &File<'_>) -> Method {
    let path = file.import("std::path::Path");
    let mut method = Method::new("load");
    method
        .vis("pub")
        .doc(
            "Weights from a safetensors file: names are the paths of fields, linear weights are `[out, in]`.\n\n\
             # Errors\n\
             The file cannot be read, or its tensors are not exactly those of the model.",
        )
        .arg("path", format!("impl AsRef<{path}>"))
        .arg("device", "&Device")
        .ret("Result<Self, String>");
    let renamed: Vec<String> =
        renamed(file).iter().map(|name| format!("({name:?}, {:?})", name::field(name))).collect();
    let load = file.kernel("load_safetensors");
    method.line(format!("{load}(Self::new(device), path, &[{}], device)", renamed.join(", ")));
    method
}

/// The module whose stack fills all the caches, one a block.
fn stack_with_caches(file: &File<'_>, caches: u64) -> Option<ModuleId> {
    let fills = |module: &Module| {
        let mut scans = module.nodes.iter().filter(|n| matches!(n.op, Op::Scan { .. }));
        scans.any(|n| plan::node_caches(&n.op, module, &file.plan.modules) == caches)
    };
    file.graph.modules.iter().position(fills).map(ModuleId)
}

/// Members that have another name as fields.
fn renamed(file: &File<'_>) -> BTreeSet<String> {
    let members = file.graph.modules.iter().flat_map(|m| &m.members);
    members.map(|m| m.name.clone()).filter(|n| name::field(n) != *n).collect()
}

/// `cache()`, where decoding begins.
fn cache(file: &File<'_>) -> Method {
    let caches = file.facts(file.graph.root).caches;
    let count = stack_with_caches(file, caches)
        .map_or_else(|| caches.to_string(), |owner| file.constants.layers(owner, caches));
    let cache = file.kernel("Cache");
    let mut method = Method::new("cache");
    method
        .vis("pub")
        .arg_ref_self()
        .doc("What decoding remembers of the tokens so far: nothing yet.")
        .ret(&cache)
        .line(format!("{cache}::new({count})"));
    method
}
