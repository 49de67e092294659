//! The model itself: `forward`, decoding step by step, `encode` and `decode`, `load`.

use std::collections::BTreeSet;

use super::code::{Code, code};
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
    let model = file.code(id)?;
    let mut methods = vec![module::constructor(file, id)?, load(file)];
    let decoding = match &model.body {
        Body::Whole(function) => {
            methods.push(passes(file, function, ["forward", "forward_cached", "run"])?);
            function
        }
        Body::Translation { encode, decode } => {
            methods.push(forward_of_both(file, encode, decode));
            methods.push(passes(file, encode, ["encode", "", ""])?);
            methods.push(passes(file, decode, ["decode", "decode_cached", "run_decoder"])?);
            decode
        }
    };
    if decoding.caches != Caches::None {
        methods.push(cache(file));
    }
    Ok(code![
        module::documentation(file, id)?,
        module::structure(file, id)?,
        format!("impl {} {{\n", file.type_of(id)?),
        Code::all(methods),
        "}\n"
    ])
}

/// A function of the model as methods: one without caches, or one without and one with them, which both run the
/// same code. The names are theirs.
fn passes(file: &File<'_>, function: &Function, names: [&str; 3]) -> Result<Code, Bug> {
    let id = file.program.graph.root;
    let module = file.values(id);
    let [plain, cached, shared] = names;
    let shapes = || module::shapes(file, module, &function.parameters, &function.results);
    if function.caches == Caches::None {
        let method = module::method(file, id, plain, "&self, ", function)?;
        return Ok(code![shapes().documentation("///"), "pub ", method]);
    }
    let signature = module::signature(module, &function.parameters);
    let given: Vec<&str> = signature.iter().map(|(name, _)| name.as_str()).collect();
    let given = given.join(", ");
    let parameters: Vec<String> = signature.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let parameters = parameters.join(", ");
    let result = module::result_type(module, &function.results);
    let full = code![
        shapes().then("\n\nThe whole sequence at once: `P` is 0.").documentation("///"),
        format!("pub fn {plain}(&self, {parameters}) -> {result} {{\nself.{shared}({given}, None)\n}}\n")
    ];
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
    let step = code![
        shapes()
            .then("\n\nThe tokens after those in the cache, which then holds them too.")
            .documentation("///"),
        format!("pub fn {cached}(&self, {parameters}, cache: &mut "),
        Code::kernel("Cache"),
        format!(
            ") -> {result} {{\nlet time = {time};\nlet {returned} = self.{shared}({given}, Some(&mut *cache));\n\
             cache.past += time;\n{returned}\n}}\n"
        )
    ];
    Ok(code![full, step, module::method(file, id, shared, "&self, ", function)?])
}

/// `forward` of a model with a source and a target: `encode`, then `decode`.
fn forward_of_both(file: &File<'_>, encode: &Function, decode: &Function) -> Code {
    let root = file.program.graph.root();
    let all: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    let reserved = reserved();
    let called = |id: &ValueId| body::parameter(&root.value(*id).name, &reserved);
    let signature = module::signature(root, &all);
    let parameters: Vec<String> = signature.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let pass = |id: &ValueId| match decode.parameters.contains(id) {
        true => format!("{}.clone()", called(id)),
        false => called(id),
    };
    let encoded: Vec<String> = encode.parameters.iter().map(pass).collect();
    let memory: Vec<String> = encode.results.iter().map(called).collect();
    let memory = if let [one] = memory.as_slice() { one.clone() } else { format!("({})", memory.join(", ")) };
    let decoded: Vec<String> = decode.parameters.iter().map(called).collect();
    code![
        module::shapes(file, root, &all, &root.results).documentation("///"),
        format!(
            "pub fn forward(&self, {}) -> {} {{\nlet {memory} = self.encode({});\nself.decode({})\n}}\n",
            parameters.join(", "),
            module::result_type(root, &root.results),
            encoded.join(", "),
            decoded.join(", ")
        )
    ]
}

/// `load(path, device)`: weights by path, in PyTorch's layout.
fn load(file: &File<'_>) -> Code {
    let fields = file.program.modules.iter().flat_map(|module| &module.fields);
    let names = fields.filter(|field| !matches!(field.kind, FieldKind::Dropout(_))).map(|field| &field.name);
    let renamed: BTreeSet<&String> = names.filter(|name| name::field(name) != **name).collect();
    let renamed: Vec<String> =
        renamed.iter().map(|name| format!("({name:?}, {:?})", name::field(name))).collect();
    code![
        "/// Weights from a safetensors file: names are the paths of fields, linear weights are `[out, in]`.\n///\n\
         /// # Errors\n\
         /// The file cannot be read, or its tensors are not exactly those of the model.\n\
         pub fn load(path: impl AsRef<",
        Code::import("std::path::Path"),
        ">, device: &Device) -> Result<Self, String> {\n",
        Code::kernel("load_safetensors"),
        format!("(Self::new(device), path, &[{}], device)\n}}\n", renamed.join(", "))
    ]
}

/// `cache()`, where decoding begins.
fn cache(file: &File<'_>) -> Code {
    let cache = || Code::kernel("Cache");
    code![
        "/// What decoding remembers of the tokens so far: nothing yet.\npub fn cache(&self) -> ",
        cache(),
        " {\n",
        cache(),
        "::new(",
        file.size(&file.program.cache_count()),
        ")\n}\n"
    ]
}
