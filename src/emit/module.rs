//! A module as a struct: fields named like its members, `new`, `forward`.

use codegen::{Block, Enum, Function as Method, Impl, Scope, Struct};

use super::choice;
use super::code::Code;
use super::file::File;
use super::function::{Function, Holder, Written, reserved, variant};
use super::op::rust_type;
use super::plan;
use super::{body, layer, name};
use crate::ir::{DType, Layer, MemberId, MemberKind, Module, ModuleId, Run, Type, Value, ValueId, stack_len};

/// Writes the struct and, below it, `new` and `forward`.
pub fn write(scope: &mut Scope, file: &File<'_>, id: ModuleId) {
    let module = file.graph.module(id);
    for (at, member) in module.members.iter().enumerate() {
        if let MemberKind::Stack(runs) = &member.kind {
            write_enum(scope, file, file.enum_of(id, MemberId(at)), runs);
        }
    }
    if let Some(bundle) = file.bundle_of(id) {
        let arguments: Vec<ValueId> = (1..module.args).map(ValueId).collect();
        let mut item = Struct::new(bundle);
        item.vis("pub").derive("Clone").derive("Debug");
        item.doc(format!("What a [`{}`] takes beside `x`.", file.type_of(id)));
        for (id, (called, ty)) in arguments.iter().zip(signature(module, &arguments)) {
            let field = item.new_field(&called, ty).vis("pub");
            field.doc(format!("`{}`", file.shape(&module.value(*id).ty)));
        }
        scope.push_struct(item);
    }
    if let Some(called) = file.free_function(id) {
        let mut function = forward(file, id, &called);
        function.doc(format!("{}\n\n{}", documentation(file, id), shapes_of(file, id)));
        scope.push_fn(function);
        return;
    }
    scope.push_struct(structure(file, id));
    let mut item = Impl::new(file.type_of(id));
    item.push_fn(constructor(file, id));
    let mut method = forward(file, id, "forward");
    method.vis("pub").arg_ref_self().doc(shapes_of(file, id));
    item.push_fn(method);
    scope.push_impl(item);
}

/// The struct of a module.
pub fn structure(file: &File<'_>, id: ModuleId) -> Struct {
    let module = file.graph.module(id);
    let mut item = Struct::new(file.type_of(id));
    item.vis("pub").derive("Module").derive("Debug").doc(documentation(file, id));
    for (at, member) in module.members.iter().enumerate() {
        let ty = match &member.kind {
            MemberKind::Layer(layer) => layer::field_type(layer, file),
            MemberKind::Module(child) if file.free_function(*child).is_some() => None,
            MemberKind::Module(child) => Some(file.type_of(*child).to_owned()),
            MemberKind::Stack(runs) => Some(format!("Vec<{}>", block_type(file, id, MemberId(at), runs))),
        };
        if let Some(ty) = ty {
            item.field(name::field(&member.name), ty);
        }
    }
    for (field, _) in file.facts(id).dropouts {
        item.field(field, file.import_nn("Dropout"));
    }
    item
}

/// What the struct says about itself: formulas, then the line of the spec.
fn documentation(file: &File<'_>, id: ModuleId) -> String {
    let module = file.graph.module(id);
    let doc: Vec<String> = module.doc.iter().map(|line| name::doc(line)).collect();
    let equations: Vec<&str> =
        doc.iter().filter_map(|line| line.strip_prefix('`')?.strip_suffix('`')).collect();
    // Several equations, and nothing else, stand on lines of their own.
    let mut lines = match equations.len() {
        n if n > 1 && n == doc.len() => {
            let block = ["```text"].into_iter().chain(equations).chain(["```"]);
            block.map(str::to_owned).collect()
        }
        _ => doc,
    };
    if let Some(origin) = file.origin(id) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!("From {origin}."));
    }
    lines.join("\n")
}

fn block_type<'a>(file: &'a File<'_>, id: ModuleId, member: MemberId, runs: &[Run]) -> &'a str {
    match plan::kinds(runs).as_slice() {
        [one] => file.type_of(*one),
        _ => file.enum_of(id, member),
    }
}

/// Whether kinds of blocks take so different room that they belong on the heap.
fn on_heap(file: &File<'_>, kinds: &[ModuleId]) -> bool {
    let sizes: Vec<usize> = kinds.iter().map(|id| parameters_inside(file, *id)).collect();
    sizes.iter().min() != sizes.iter().max()
}

/// Parameters a struct holds itself, not behind a `Vec`; an absent bias takes the room of one.
fn parameters_inside(file: &File<'_>, id: ModuleId) -> usize {
    let members = file.graph.module(id).members.iter();
    members
        .map(|member| match &member.kind {
            MemberKind::Layer(Layer::Linear { .. } | Layer::LayerNorm { .. } | Layer::Patches { .. }) => 2,
            MemberKind::Layer(Layer::Embedding { .. } | Layer::RmsNorm { .. } | Layer::Param { .. }) => 1,
            MemberKind::Module(child) => parameters_inside(file, *child),
            MemberKind::Stack(_) => 0,
        })
        .sum()
}

fn write_enum(scope: &mut Scope, file: &File<'_>, called: &str, runs: &[Run]) {
    let kinds = plan::kinds(runs);
    if kinds.len() < 2 {
        return;
    }
    let mut item = Enum::new(called);
    item.vis("pub").derive("Module").derive("Debug").doc("One block of a stack of unlike ones.");
    for kind in &kinds {
        let name = file.type_of(*kind);
        let ty =
            if on_heap(file, &kinds) { format!("{}<{name}>", file.kernel("Heap")) } else { name.to_owned() };
        item.new_variant(variant(file, &kinds, *kind)).tuple(ty).doc(format!("A [`{name}`]."));
    }
    scope.push_enum(item);
}

/// `new(device)`: every field with fresh weights.
pub fn constructor(file: &File<'_>, id: ModuleId) -> Method {
    let module = file.graph.module(id);
    let mut fields: Vec<(String, String)> = Vec::new();
    for (index, member) in module.members.iter().enumerate() {
        let value = match &member.kind {
            MemberKind::Layer(layer) => {
                if layer::field_type(layer, file).is_none() {
                    continue;
                }
                layer::build(layer, file)
            }
            MemberKind::Module(child) if file.free_function(*child).is_some() => continue,
            MemberKind::Module(child) => format!("{}::new(device)", file.type_of(*child)),
            MemberKind::Stack(runs) => stack(file, id, MemberId(index), runs),
        };
        fields.push((name::field(&member.name), value));
    }
    let uses_device = !fields.is_empty();
    for (field, p) in file.facts(id).dropouts {
        let p = file.constants.float(super::constants::Kind::Dropout, p);
        fields.push((field, format!("{}::new({p}).init()", file.import_nn("DropoutConfig"))));
    }
    let mut method = Method::new("new");
    method.vis("pub").doc("Fresh weights.").ret("Self");
    method.arg(if uses_device { "device" } else { "_device" }, "&Device");
    let mut block = Block::new("Self");
    for (field, value) in fields {
        block.line(format!("{field}: {value},"));
    }
    method.push_block(block);
    method
}

fn stack(file: &File<'_>, id: ModuleId, member: MemberId, runs: &[Run]) -> String {
    let kinds = plan::kinds(runs);
    let is_expert =
        file.graph.module(id).nodes.iter().any(
            |node| matches!(&node.op, crate::ir::Op::Experts { member: experts, .. } if *experts == member),
        );
    let count = stack_len(runs);
    let count = if is_expert {
        file.constants.known("experts", count).unwrap_or_else(|| count.to_string())
    } else {
        file.constants.layers(id, count)
    };
    let places: choice::Places<Option<ModuleId>> =
        runs.iter().map(|run| run.cycle.iter().copied().map(Some).collect()).collect();
    let make = |kind: &ModuleId| {
        let built = format!("{}::new(device)", file.type_of(*kind));
        Code::text(match kinds.len() {
            1 => built,
            _ if on_heap(file, &kinds) => {
                let heap = file.kernel("Heap");
                format!(
                    "{}::{}({heap}::new({built}))",
                    file.enum_of(id, member),
                    variant(file, &kinds, *kind)
                )
            }
            _ => format!("{}::{}({built})", file.enum_of(id, member), variant(file, &kinds, *kind)),
        })
    };
    let index = if choice::is_indexed(&places) { "i" } else { "_" };
    let made = choice::by_index(runs, &places, &make).map(|code| body::text(&code)).unwrap_or_default();
    format!("(0..{count}).map(|{index}| {made}).collect()")
}

/// `forward(x, ..)`.
fn forward(file: &File<'_>, id: ModuleId, called: &str) -> Method {
    let module = file.graph.module(id);
    let nodes: Vec<usize> = (0..module.nodes.len()).collect();
    let arguments: Vec<ValueId> = (0..module.args).map(ValueId).collect();
    let holder = holder(file, id);
    let written =
        Function::new(file, id, &nodes, &arguments, &module.results, holder).write(&nodes, &module.results);
    let mut method = Method::new(called);
    parameters(&mut method, file, id, &arguments, holder, &written);
    finish(&mut method, module, &module.results, &written);
    method
}

fn shapes_of(file: &File<'_>, id: ModuleId) -> String {
    let module = file.graph.module(id);
    let arguments: Vec<ValueId> = (0..module.args).map(ValueId).collect();
    shapes(file, module, &arguments, &module.results)
}

/// Who holds the caches of a module below the root.
fn holder(file: &File<'_>, id: ModuleId) -> Holder {
    let facts = file.facts(id);
    match (facts.caches, facts.list) {
        (0, _) => Holder::None,
        (_, false) => Holder::One,
        (_, true) => Holder::Several,
    }
}

/// Adds the parameters of a function over some values of a module.
pub fn parameters(
    method: &mut Method,
    file: &File<'_>,
    id: ModuleId,
    arguments: &[ValueId],
    holder: Holder,
    written: &Written,
) {
    let module = file.graph.module(id);
    let signature = signature(module, arguments);
    match file.bundle_of(id) {
        Some(bundle) => {
            if let Some((called, ty)) = signature.first() {
                method.arg(called, ty);
            }
            method.arg("inputs", bundle);
            let fields: Vec<&str> = signature.iter().skip(1).map(|(called, _)| called.as_str()).collect();
            method.line(format!("let {bundle} {{ {} }} = inputs;", fields.join(", ")));
        }
        None => {
            for (called, ty) in signature {
                method.arg(&called, ty);
            }
        }
    }
    for need in &file.facts(id).extra {
        method.arg(need.name(), need.ty());
    }
    let cache = match holder {
        Holder::None => return,
        Holder::One => format!("Option<&mut {}>", file.kernel("KvCache")),
        Holder::Several => format!("Option<&mut [{}]>", file.kernel("KvCache")),
        Holder::Model => format!("Option<&mut {}>", file.kernel("Cache")),
    };
    method.arg(if written.lends_cache { "mut cache" } else { "cache" }, cache);
}

/// Names and types of values as parameters.
pub fn signature(module: &Module, arguments: &[ValueId]) -> Vec<(String, String)> {
    let reserved = reserved();
    arguments
        .iter()
        .map(|id| {
            let value = module.value(*id);
            (body::argument(&value.name, &reserved), parameter_type(value))
        })
        .collect()
}

/// A parameter's type: masks may always be absent.
pub fn parameter_type(value: &Value) -> String {
    rust_type(&value.ty, value.ty.optional || value.ty.dtype == DType::Bool)
}

/// Adds the result's type and the body.
pub fn finish(method: &mut Method, module: &Module, results: &[ValueId], written: &Written) {
    method.ret(result_type(module, results));
    for line in &written.lines {
        method.line(line);
    }
}

/// The type of one result, or of a tuple.
pub fn result_type(module: &Module, results: &[ValueId]) -> String {
    let types: Vec<String> =
        results.iter().map(|id| rust_type(&module.value(*id).ty, module.value(*id).ty.optional)).collect();
    match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// "`x [B, T, 768]`, `mask [B, 1, 1, P+T]` → `[B, T, 768]`"
pub fn shapes(file: &File<'_>, module: &Module, arguments: &[ValueId], results: &[ValueId]) -> String {
    let reserved = reserved();
    let shape = |ty: &Type| file.shape(ty);
    let inputs: Vec<String> = arguments
        .iter()
        .map(|id| {
            let value = module.value(*id);
            format!("`{} {}`", body::argument(&value.name, &reserved), shape(&value.ty))
        })
        .collect();
    let several = results.len() > 1;
    let outputs: Vec<String> = results
        .iter()
        .map(|id| {
            let value = module.value(*id);
            if several {
                format!("`{} {}`", value.variable, shape(&value.ty))
            } else {
                format!("`{}`", shape(&value.ty))
            }
        })
        .collect();
    format!("{} → {}", inputs.join(", "), outputs.join(", "))
}
