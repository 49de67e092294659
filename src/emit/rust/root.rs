//! The model itself: `forward`, decoding step by step, `encode` and `decode`, `load`.

use std::collections::BTreeSet;

use codegen::{Function as Method, Impl, Scope};

use super::code::{Code, References};
use super::file::File;
use super::function::reserved;
use super::{body, module, name};
use crate::emit::program::function::{Caches, Function};
use crate::emit::program::needs::{Need, Origin, origin};
use crate::emit::program::{Body, FieldKind};
use crate::ir::ValueId;
use crate::lower::Bug;

/// Writes the model's struct and its methods.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(file: &File<'_>) -> Result<Code, Bug> {
    let id = file.program.graph.root;
    let mut scope = Scope::new();
    let mut references = References::default();
    scope.push_struct(module::structure(file, id, &mut references)?);
    let mut item = Impl::new(file.type_of(id)?);
    item.push_fn(module::constructor(file, id, &mut references)?);
    item.push_fn(load(file, &mut references)?);
    let decoding = match &file.code(id)?.body {
        Body::Whole(function) => {
            let names = ["forward", "forward_cached", "run"];
            for method in passes(file, function, names, &mut references)? {
                item.push_fn(method);
            }
            function
        }
        Body::Translation { encode, decode } => {
            item.push_fn(forward_of_both(file, encode, decode, &mut references)?);
            // The first half fills no cache, so it has one method only.
            for (function, names) in
                [(encode, ["encode", "", ""]), (decode, ["decode", "decode_cached", "run_decoder"])]
            {
                for method in passes(file, function, names, &mut references)? {
                    item.push_fn(method);
                }
            }
            decode
        }
    };
    if decoding.caches != Caches::None {
        item.push_fn(cache(file, &mut references)?);
    }
    scope.push_impl(item);
    Ok(references.finished(scope.to_string()))
}

/// A function of the model as methods: one without caches, or one without and one with them, which both run
/// the same code. The names are theirs.
fn passes(
    file: &File<'_>,
    function: &Function,
    names: [&str; 3],
    references: &mut References,
) -> Result<Vec<Method>, Bug> {
    let id = file.program.graph.root;
    let module = file.values(id);
    let [plain, cached, shared] = names;
    let shapes = module::shapes(file, module, &function.parameters, &function.results);
    let shapes = references.text(&shapes)?;
    if function.caches == Caches::None {
        let mut method = module::method(file, id, plain, function, references)?;
        method.vis("pub").arg_ref_self().doc(shapes);
        return Ok(vec![method]);
    }
    let signature = module::signature(module, &function.parameters);
    let given: Vec<&str> = signature.iter().map(|(name, _)| name.as_str()).collect();
    let given = given.join(", ");
    let public = |called: &str, doc: String| {
        let mut method = Method::new(called);
        method.vis("pub").arg_ref_self().doc(doc).ret(module::result_type(module, &function.results));
        for (name, ty) in &signature {
            method.arg(name, ty);
        }
        method
    };
    let mut full = public(plain, format!("{shapes}\n\nThe whole sequence at once: `P` is 0."));
    full.line(format!("self.{shared}({given}, None)"));
    let time = match origin(Need::Time, module, &function.parameters) {
        Some(Origin::Axis(id, axis)) => {
            let name = body::parameter(&module.value(id).name, &reserved());
            format!("{name}.dims()[{axis}]")
        }
        Some(Origin::DeviceOf(_) | Origin::Cache) | None => {
            return Err(Bug("the model fills a cache and does not know the length of its input".to_owned()));
        }
    };
    let returned = match function.results.as_slice() {
        [one] => name::variable(&module.value(*one).variable),
        _ => "results".to_owned(),
    };
    let doc = format!("{shapes}\n\nThe tokens after those in the cache, to which they are added.");
    let mut step = public(cached, doc);
    step.arg("cache", format!("&mut {}", references.text(&Code::kernel("Cache"))?));
    // Read before the call, which takes the inputs.
    step.line(format!("let time = {time};"));
    step.line(format!("let {returned} = self.{shared}({given}, Some(&mut *cache));"));
    // Only once all layers have appended: they find the first position of these tokens in it.
    step.line("cache.past += time;");
    step.line(&returned);
    let mut inner = module::method(file, id, shared, function, references)?;
    inner.arg_ref_self();
    Ok(vec![full, step, inner])
}

/// `forward` of a model with a source and a target: `encode`, then `decode`.
fn forward_of_both(
    file: &File<'_>,
    encode: &Function,
    decode: &Function,
    references: &mut References,
) -> Result<Method, Bug> {
    let root = file.program.graph.root();
    let all: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    let reserved = reserved();
    let called = |id: &ValueId| body::parameter(&root.value(*id).name, &reserved);
    let pass = |id: &ValueId| match decode.parameters.contains(id) {
        // The decoder is called last and takes the original.
        true => format!("{}.clone()", called(id)),
        false => called(id),
    };
    let encoded: Vec<String> = encode.parameters.iter().map(pass).collect();
    let memory: Vec<String> = encode.results.iter().map(called).collect();
    let memory = if let [one] = memory.as_slice() { one.clone() } else { format!("({})", memory.join(", ")) };
    let decoded: Vec<String> = decode.parameters.iter().map(called).collect();
    let shapes = module::shapes(file, root, &all, &root.results);
    let mut method = Method::new("forward");
    method.vis("pub").arg_ref_self().doc(references.text(&shapes)?);
    method.ret(module::result_type(root, &root.results));
    for (name, ty) in module::signature(root, &all) {
        method.arg(&name, ty);
    }
    method.line(format!("let {memory} = self.encode({});", encoded.join(", ")));
    method.line(format!("self.decode({})", decoded.join(", ")));
    Ok(method)
}

/// `load(path, device)`: weights by path, in PyTorch's layout.
fn load(file: &File<'_>, references: &mut References) -> Result<Method, Bug> {
    let fields = file.program.modules.iter().flat_map(|module| &module.fields);
    // A dropout has no weights, so no file names it.
    let names = fields.filter(|field| !matches!(field.kind, FieldKind::Dropout(_))).map(|field| &field.name);
    let renamed: BTreeSet<&String> = names.filter(|name| name::field(name) != **name).collect();
    let renamed: Vec<String> =
        renamed.iter().map(|name| format!("({name:?}, {:?})", name::field(name))).collect();
    let (path, load) = (Code::import("std::path::Path"), Code::kernel("load_safetensors"));
    let mut method = Method::new("load");
    method
        .vis("pub")
        .doc(
            "Weights from a safetensors file: names are the paths of fields, linear weights are `[out, in]`.\n\n\
             # Errors\n\
             The file cannot be read, or its tensors are not exactly those of the model.",
        )
        .arg("path", format!("impl AsRef<{}>", references.text(&path)?))
        .arg("device", "&Device")
        .ret("Result<Self, String>");
    // Burn loads weights into a model that exists. Its fresh weights cost nothing, because they would be
    // drawn only when they are first read.
    let load = references.text(&load)?;
    method.line(format!("{load}(Self::new(device), path, &[{}], device)", renamed.join(", ")));
    Ok(method)
}

/// `cache()`, where decoding begins.
fn cache(file: &File<'_>, references: &mut References) -> Result<Method, Bug> {
    let cache = references.text(&Code::kernel("Cache"))?;
    let count = references.text(&file.size(&file.program.cache_count()))?;
    let mut method = Method::new("cache");
    method
        .vis("pub")
        .arg_ref_self()
        .doc("What decoding remembers of the tokens so far: nothing yet.")
        .ret(&cache)
        .line(format!("{cache}::new({count})"));
    Ok(method)
}
