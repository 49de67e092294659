//! A module as a struct: fields named like the program's, `new`, `forward`.

use codegen::{Block, Enum, Function as Method, Impl, Scope, Struct};

use super::code::{Code, References, code};
use super::file::File;
use super::function::reserved;
use super::statement::write as body_of;
use super::{body, choice, layer, name};
use crate::emit::program::function::{Caches, Function};
use crate::emit::program::needs::Need;
use crate::emit::program::{Body, Draft, FieldKind, Stack};
use crate::ir::{self, DType, Layer, ModuleId, Type, ValueId};
use crate::lower::Bug;

/// Writes the struct and, below it, `new` and `forward`.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(file: &File<'_>, id: ModuleId) -> Result<Code, Bug> {
    let module = file.code(id)?;
    let Body::Whole(function) = &module.body else {
        return Err(Bug(format!("{} has two functions and is not the model", module.name)));
    };
    let mut scope = Scope::new();
    let mut references = References::default();
    for field in &module.fields {
        if let FieldKind::Stack(stack) = &field.kind
            && stack.kinds.len() > 1
        {
            scope.push_enum(blocks(file, id, stack, &mut references)?);
        }
    }
    if let Some(bundle) = file.bundle_of(id) {
        scope.push_struct(inputs(file, id, bundle, function, &mut references)?);
    }
    let shapes = shapes(file, file.values(id), &function.parameters, &function.results);
    let shapes = references.text(&shapes)?;
    if let Some(called) = file.function_of(id) {
        let mut item = method(file, id, called, function, &mut references)?;
        item.doc(format!("{}\n\n{shapes}", documentation(file, id)?));
        scope.push_fn(item);
    } else {
        scope.push_struct(structure(file, id, &mut references)?);
        let mut item = Impl::new(file.type_of(id)?);
        item.push_fn(constructor(file, id, &mut references)?);
        let mut forward = method(file, id, "forward", function, &mut references)?;
        forward.vis("pub").arg_ref_self().doc(shapes);
        item.push_fn(forward);
        scope.push_impl(item);
    }
    Ok(references.finished(scope.to_string()))
}

/// The struct of the arguments of a function that takes many.
fn inputs(
    file: &File<'_>,
    id: ModuleId,
    bundle: &str,
    function: &Function,
    references: &mut References,
) -> Result<Struct, Bug> {
    let module = file.values(id);
    let mut item = Struct::new(bundle);
    item.vis("pub").derive("Clone").derive("Debug");
    item.doc(format!("What a [`{}`] takes in addition to `x`.", file.type_of(id)?));
    // The first argument is what the module transforms, which callers pass by itself.
    let fields = function.parameters.iter().zip(signature(module, &function.parameters)).skip(1);
    for (id, (called, ty)) in fields {
        let shape = references.text(&file.shape(&module.value(*id).ty))?;
        item.new_field(&called, ty).vis("pub").doc(format!("`{shape}`"));
    }
    Ok(item)
}

/// The struct of a module.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn structure(file: &File<'_>, id: ModuleId, references: &mut References) -> Result<Struct, Bug> {
    let mut item = Struct::new(file.type_of(id)?);
    item.vis("pub").derive("Module").derive("Debug").doc(documentation(file, id)?);
    for field in &file.code(id)?.fields {
        let ty = match &field.kind {
            FieldKind::Layer(layer) => layer::field_type(layer)?,
            FieldKind::Module(child) => file.type_of(*child)?.into(),
            FieldKind::Stack(stack) => format!("Vec<{}>", file.block_type(id, stack)?).into(),
            FieldKind::Dropout(_) => "nn::Dropout".into(),
        };
        item.field(name::field(&field.name), references.text(&ty)?);
    }
    Ok(item)
}

/// What the struct says about itself: formulas, then the line of the spec.
fn documentation(file: &File<'_>, id: ModuleId) -> Result<String, Bug> {
    let module = file.code(id)?;
    let equations: Vec<&str> =
        module.doc.iter().filter_map(|line| line.strip_prefix('`')?.strip_suffix('`')).collect();
    // Several equations, and nothing else, get lines of their own.
    let mut lines: Vec<String> = match equations.len() {
        n if n > 1 && n == module.doc.len() => {
            // Marked as text: rustdoc would take a block without a mark for an example and compile it.
            let block = ["```text"].into_iter().chain(equations).chain(["```"]);
            block.map(str::to_owned).collect()
        }
        _ => module.doc.clone(),
    };
    if !module.places.is_empty() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let places: Vec<String> = module.places.iter().map(|place| format!("`{place}`")).collect();
        lines.push(format!("From {}.", places.join(" and ")));
    }
    Ok(lines.join("\n"))
}

/// Whether kinds of blocks have so different sizes that they belong on the heap.
fn on_heap(file: &File<'_>, kinds: &[ModuleId]) -> Result<bool, Bug> {
    // An enum takes the room of its largest variant for every block; clippy warns of it
    // (`large_enum_variant`).
    // Parameters are counted, because how many bytes a struct has only the compiler knows.
    let sizes = kinds.iter().map(|id| parameters_inside(file, *id)).collect::<Result<Vec<_>, Bug>>()?;
    Ok(sizes.iter().min() != sizes.iter().max())
}

/// The parameters inside of a struct, without those in a `Vec`; an absent bias takes the room of one, too.
fn parameters_inside(file: &File<'_>, id: ModuleId) -> Result<usize, Bug> {
    let mut sum = 0;
    for field in &file.code(id)?.fields {
        sum += match &field.kind {
            FieldKind::Layer(Layer::Linear { .. } | Layer::LayerNorm { .. } | Layer::Patches { .. }) => 2,
            FieldKind::Layer(Layer::Embedding { .. } | Layer::RmsNorm { .. } | Layer::Param { .. }) => 1,
            FieldKind::Module(child) => parameters_inside(file, *child)?,
            FieldKind::Stack(_) | FieldKind::Dropout(_) => 0,
        };
    }
    Ok(sum)
}

/// The enum of the blocks of a stack of different modules.
fn blocks(file: &File<'_>, id: ModuleId, stack: &Stack, references: &mut References) -> Result<Enum, Bug> {
    let on_heap = on_heap(file, &stack.kinds)?;
    let mut item = Enum::new(file.enum_of(id, stack.member)?);
    item.vis("pub").derive("Module").derive("Debug").doc("One block of a stack of different ones.");
    for kind in &stack.kinds {
        let name = file.type_of(*kind)?;
        let ty: Code = if on_heap { code![Code::kernel("Heap"), format!("<{name}>")] } else { name.into() };
        let variant = file.variant(&stack.kinds, *kind)?;
        item.new_variant(variant).tuple(references.text(&ty)?).doc(format!("A [`{name}`]."));
    }
    Ok(item)
}

/// `new(device)`: every field with fresh weights.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn constructor(file: &File<'_>, id: ModuleId, references: &mut References) -> Result<Method, Bug> {
    let mut uses_device = false;
    let mut block = Block::new("Self");
    for field in &file.code(id)?.fields {
        let value = match &field.kind {
            FieldKind::Layer(layer) => layer::build(layer, file)?,
            FieldKind::Module(child) => format!("{}::new(device)", file.type_of(*child)?).into(),
            FieldKind::Stack(stack) => new_stack(file, id, stack)?,
            FieldKind::Dropout(p) => code!["nn::DropoutConfig::new(", file.scalar(p), ").init()"],
        };
        // An unused parameter would be a warning; callers pass the device to every module alike.
        uses_device |= !matches!(field.kind, FieldKind::Dropout(_));
        block.line(format!("{}: {},", name::field(&field.name), references.text(&value)?));
    }
    let mut method = Method::new("new");
    method.vis("pub").doc("Fresh weights.").ret("Self");
    method.arg(if uses_device { "device" } else { "_device" }, "&Device");
    method.push_block(block);
    Ok(method)
}

fn new_stack(file: &File<'_>, id: ModuleId, stack: &Stack) -> Result<Code, Bug> {
    let on_heap = on_heap(file, &stack.kinds)?;
    let mut created: Vec<(ModuleId, Code)> = Vec::new();
    for kind in &stack.kinds {
        let new = Code::text(format!("{}::new(device)", file.type_of(*kind)?));
        if stack.kinds.len() == 1 {
            created.push((*kind, new));
            continue;
        }
        let variant = format!("{}::{}(", file.enum_of(id, stack.member)?, file.variant(&stack.kinds, *kind)?);
        let new = if on_heap { code![Code::kernel("Heap"), "::new(", new, ")"] } else { new };
        created.push((*kind, code![variant, new, ")"]));
    }
    let of = |kind: &ModuleId| {
        let found = created.iter().find(|(id, _)| id == kind);
        // Verification has refused a block of an unknown kind.
        found.map_or_else(|| Code::text(""), |(_, code)| code.clone())
    };
    let index = if stack.blocks.is_indexed() { "i" } else { "_" };
    let block = choice::written(&stack.blocks, &of);
    Ok(code!["(0..", file.size(&stack.count), format!(").map(|{index}| "), block, ").collect()"])
}

/// A function over some values of a module, without documentation.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn method(
    file: &File<'_>,
    id: ModuleId,
    called: &str,
    function: &Function,
    references: &mut References,
) -> Result<Method, Bug> {
    let written = body_of(file, id, function)?;
    let module = file.values(id);
    let mut method = Method::new(called);
    let signature = signature(module, &function.parameters);
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
            let read: Vec<ValueId> = function.statements.iter().flat_map(|s| s.action.inputs()).collect();
            for (id, (called, ty)) in function.parameters.iter().zip(signature) {
                // Where nothing attends, nothing reads the mask.
                let is_read = !module.value(*id).ty.optional || read.contains(id);
                method.arg(&if is_read { called } else { format!("_{called}") }, ty);
            }
        }
    }
    for need in &function.needs {
        let ty = match need {
            Need::Past | Need::Time | Need::Source => "usize",
            Need::Device => "&Device",
        };
        method.arg(need.variable(), ty);
    }
    let kept = || Code::kernel("KvCache");
    let cache = match function.caches {
        Caches::None => None,
        Caches::One => Some(code!["Option<&mut ", kept(), ">"]),
        Caches::List(_) => Some(code!["Option<&mut [", kept(), "]>"]),
        Caches::Model(_) => Some(code!["Option<&mut ", Code::kernel("Cache"), ">"]),
    };
    if let Some(ty) = cache {
        // A `mut` that is not needed would be a warning.
        method.arg(if written.lends_cache { "mut cache" } else { "cache" }, references.text(&ty)?);
    }
    method.ret(result_type(module, &function.results));
    method.line(references.text(&written.body)?);
    Ok(method)
}

/// Names and types of values as parameters.
pub fn signature(module: &ir::Module, parameters: &[ValueId]) -> Vec<(String, String)> {
    let reserved = reserved();
    parameters
        .iter()
        .map(|id| {
            let value = module.value(*id);
            let ty = rust_type(&value.ty, Draft::may_be_absent(value));
            (body::parameter(&value.name, &reserved), ty)
        })
        .collect()
}

/// A tensor's type in Rust, which has its rank and not its sizes.
fn rust_type(ty: &Type, is_option: bool) -> String {
    let rank = ty.shape.len();
    let tensor = match ty.dtype {
        DType::Float => format!("Tensor<{rank}>"),
        DType::Int => format!("Tensor<{rank}, Int>"),
        DType::Bool => format!("Tensor<{rank}, Bool>"),
    };
    if is_option { format!("Option<{tensor}>") } else { tensor }
}

/// The type of one result, or of a tuple.
pub fn result_type(module: &ir::Module, results: &[ValueId]) -> String {
    // Not by `may_be_absent`, which is about what callers pass: a result has been computed.
    let types: Vec<String> =
        results.iter().map(|id| rust_type(&module.value(*id).ty, module.value(*id).ty.optional)).collect();
    match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// "`x [B, T, D_MODEL]`, `mask [B, 1, 1, P+T]` → `[B, T, D_MODEL]`"
pub fn shapes(file: &File<'_>, module: &ir::Module, parameters: &[ValueId], results: &[ValueId]) -> Code {
    let reserved = reserved();
    let inputs = parameters.iter().map(|id| {
        let value = module.value(*id);
        let name = body::parameter(&value.name, &reserved);
        code![format!("`{name} "), file.shape(&value.ty), "`"]
    });
    let several = results.len() > 1;
    let outputs = results.iter().map(|id| {
        let value = module.value(*id);
        let name = if several { format!("{} ", value.variable) } else { String::new() };
        code![format!("`{name}"), file.shape(&value.ty), "`"]
    });
    code![Code::separated(inputs, ", "), " → ", Code::separated(outputs, ", ")]
}
