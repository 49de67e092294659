//! A module as a struct: fields named like the program's, `new`, `forward`.

use super::code::{Code, code};
use super::file::File;
use super::function::{Written, reserved, variable, write as body_of};
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
    let mut items = Vec::new();
    for field in &module.fields {
        if let FieldKind::Stack(stack) = &field.kind
            && stack.kinds.len() > 1
        {
            items.push(blocks(file, id, stack)?);
        }
    }
    if let Some(bundle) = file.bundle_of(id) {
        items.push(inputs(file, id, bundle, function)?);
    }
    let shapes = shapes(file, file.values(id), &function.parameters, &function.results);
    let head = documentation(file, id)?;
    if let Some(called) = file.function_of(id) {
        items.push(code![
            head,
            "///\n",
            shapes.documentation("///"),
            method(file, id, called, "", function)?
        ]);
        return Ok(Code::all(items));
    }
    items.push(code![head, structure(file, id)?]);
    let forward = method(file, id, "forward", "&self, ", function)?;
    items.push(code![
        format!("impl {} {{\n", file.type_of(id)?),
        constructor(file, id)?,
        shapes.documentation("///"),
        "pub ",
        forward,
        "}\n"
    ]);
    Ok(Code::all(items))
}

/// The struct of the arguments of a function that takes many.
fn inputs(file: &File<'_>, id: ModuleId, bundle: &str, function: &Function) -> Result<Code, Bug> {
    let module = file.values(id);
    let fields = function.parameters.iter().zip(signature(module, &function.parameters)).skip(1);
    let fields = fields.map(|(id, (called, ty))| {
        let shape = code!["`", file.shape(&module.value(*id).ty), "`"];
        code![shape.documentation("///"), format!("pub {called}: {ty},\n")]
    });
    Ok(code![
        format!("/// What a [`{}`] takes in addition to `x`.\n", file.type_of(id)?),
        format!("#[derive(Clone, Debug)]\npub struct {bundle} {{\n"),
        Code::all(fields),
        "}\n"
    ])
}

/// The struct of a module, without its documentation.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn structure(file: &File<'_>, id: ModuleId) -> Result<Code, Bug> {
    let mut fields = Vec::new();
    for field in &file.code(id)?.fields {
        let ty = match &field.kind {
            FieldKind::Layer(layer) => layer::field_type(layer)?,
            FieldKind::Module(child) => file.type_of(*child)?.into(),
            FieldKind::Stack(stack) => format!("Vec<{}>", file.block_type(id, stack)?).into(),
            FieldKind::Dropout(_) => "nn::Dropout".into(),
        };
        fields.push(code![format!("{}: ", name::field(&field.name)), ty, ",\n"]);
    }
    let head = format!("#[derive(Module, Debug)]\npub struct {} {{\n", file.type_of(id)?);
    Ok(code![head, Code::all(fields), "}\n"])
}

/// What the struct says about itself: formulas, then the line of the spec.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn documentation(file: &File<'_>, id: ModuleId) -> Result<Code, Bug> {
    let module = file.code(id)?;
    let equations: Vec<&str> =
        module.doc.iter().filter_map(|line| line.strip_prefix('`')?.strip_suffix('`')).collect();
    // Several equations, and nothing else, get lines of their own.
    let mut lines: Vec<String> = match equations.len() {
        n if n > 1 && n == module.doc.len() => {
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
    Ok(Code::text(lines.join("\n")).documentation("///"))
}

/// Whether kinds of blocks have so different sizes that they belong on the heap.
fn on_heap(file: &File<'_>, kinds: &[ModuleId]) -> Result<bool, Bug> {
    let sizes = kinds.iter().map(|id| parameters_inside(file, *id)).collect::<Result<Vec<_>, Bug>>()?;
    Ok(sizes.iter().min() != sizes.iter().max())
}

/// The parameters that a struct holds itself, not in a `Vec`; an absent bias takes the room of one.
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
fn blocks(file: &File<'_>, id: ModuleId, stack: &Stack) -> Result<Code, Bug> {
    let on_heap = on_heap(file, &stack.kinds)?;
    let mut variants = Vec::new();
    for kind in &stack.kinds {
        let name = file.type_of(*kind)?;
        let ty: Code = if on_heap { code![Code::kernel("Heap"), format!("<{name}>")] } else { name.into() };
        let variant = file.variant(&stack.kinds, *kind)?;
        variants.push(code![format!("/// A [`{name}`].\n{variant}("), ty, "),\n"]);
    }
    Ok(code![
        "/// One block of a stack of different ones.\n",
        format!("#[derive(Module, Debug)]\npub enum {} {{\n", file.enum_of(id, stack.member)?),
        Code::all(variants),
        "}\n"
    ])
}

/// `new(device)`: every field with fresh weights.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn constructor(file: &File<'_>, id: ModuleId) -> Result<Code, Bug> {
    let mut uses_device = false;
    let mut fields = Vec::new();
    for field in &file.code(id)?.fields {
        let value = match &field.kind {
            FieldKind::Layer(layer) => layer::build(layer, file)?,
            FieldKind::Module(child) => format!("{}::new(device)", file.type_of(*child)?).into(),
            FieldKind::Stack(stack) => new_stack(file, id, stack)?,
            FieldKind::Dropout(p) => code!["nn::DropoutConfig::new(", file.scalar(p), ").init()"],
        };
        uses_device |= !matches!(field.kind, FieldKind::Dropout(_));
        fields.push(code![format!("{}: ", name::field(&field.name)), value, ",\n"]);
    }
    let device = if uses_device { "device" } else { "_device" };
    Ok(code![
        format!("/// Fresh weights.\npub fn new({device}: &Device) -> Self {{\nSelf {{\n"),
        Code::all(fields),
        "}\n}\n"
    ])
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
        found.map_or_else(|| Code::text(""), |(_, code)| code.clone())
    };
    let index = if stack.blocks.is_indexed() { "i" } else { "_" };
    let block = choice::written(&stack.blocks, &of);
    Ok(code!["(0..", file.size(&stack.count), format!(").map(|{index}| "), block, ").collect()"])
}

/// `fn forward(&self, x, ..)`; `receiver` is what the function takes first.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn method(
    file: &File<'_>,
    id: ModuleId,
    called: &str,
    receiver: &str,
    function: &Function,
) -> Result<Code, Bug> {
    let written = body_of(file, id, function)?;
    let (parameters, first) = parameters(file, id, function, &written);
    let module = file.values(id);
    Ok(code![
        format!("fn {called}({receiver}"),
        Code::separated(parameters, ", "),
        format!(") -> {} {{\n{first}", result_type(module, &function.results)),
        written.body,
        "}\n"
    ])
}

/// The parameters of a function over some values of a module, and the statement that unpacks them.
fn parameters(file: &File<'_>, id: ModuleId, function: &Function, written: &Written) -> (Vec<Code>, String) {
    let signature = signature(file.values(id), &function.parameters);
    let mut parameters: Vec<Code> = Vec::new();
    let mut first = String::new();
    match file.bundle_of(id) {
        Some(bundle) => {
            parameters.extend(signature.first().map(|(called, ty)| format!("{called}: {ty}").into()));
            parameters.push(format!("inputs: {bundle}").into());
            let fields: Vec<&str> = signature.iter().skip(1).map(|(called, _)| called.as_str()).collect();
            first = format!("let {bundle} {{ {} }} = inputs;\n", fields.join(", "));
        }
        None => {
            parameters.extend(signature.iter().map(|(called, ty)| format!("{called}: {ty}").into()));
        }
    }
    let needed = |need: &Need| {
        let ty = match need {
            Need::Past | Need::Time | Need::Source => "usize",
            Need::Device => "&Device",
        };
        Code::text(format!("{}: {ty}", variable(*need)))
    };
    parameters.extend(function.needs.iter().map(needed));
    let cache = if written.lends_cache { "mut cache: Option<&mut " } else { "cache: Option<&mut " };
    let kept = || Code::kernel("KvCache");
    parameters.extend(match function.caches {
        Caches::None => None,
        Caches::One => Some(code![cache, kept(), ">"]),
        Caches::List(_) => Some(code![cache, "[", kept(), "]>"]),
        Caches::Model(_) => Some(code![cache, Code::kernel("Cache"), ">"]),
    });
    (parameters, first)
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

/// A tensor's type in Rust.
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
