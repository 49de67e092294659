//! The model itself: `forward`, `encode` and `decode`, its cache, fresh weights, and the stacks that are
//! sharded.

use super::file::File;
use super::function::{parameter as name_of, tensor_type};
use super::layer::member;
use super::module::{cache_type, class, keep_config, result_type, shapes, simplified, wrapped};
use super::number::harmless;
use super::statement::write as body_of;
use super::syntax::{Argument, Class, Def, Expr, Item, Parameter, Sign, Stmt, Target, parameter};
use crate::emit::program::Draft;
use crate::emit::program::function::{Caches, Function};
use crate::emit::program::needs::{Need, Origin, origin};
use crate::emit::program::{Body, FieldKind};
use crate::ir::{ModuleId, ValueId};
use crate::lower::Bug;

/// Writes the class of the model, and before it that of its outputs if there are several.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(file: &File<'_>) -> Result<Vec<Item>, Bug> {
    let id = file.program.graph.root;
    let mut items: Vec<Item> = outputs(file).into_iter().map(Item::Class).collect();
    let mut class = class(file, id)?;
    if let Some(config) = class.methods.first_mut().and_then(|new| new.parameters.get_mut(1)) {
        // The parameter after `self`. All calls share the default, which is safe because `Config` is frozen.
        config.default = Some(Expr::from("Config").call(Vec::<Argument>::new()));
    }
    // The model keeps its sizes for those who use it.
    if let Some(new) = class.methods.first_mut() {
        new.body.insert(1, Stmt::own(Expr::own("config"), "config".into()));
    }
    let mut passes = Vec::new();
    let decoding = match &file.code(id)?.body {
        Body::Whole(function) => {
            passes.push(pass(file, "forward", function)?);
            function
        }
        Body::Translation { encode, decode } => {
            passes.push(forward_of_both(file, encode, decode)?);
            passes.push(pass(file, "encode", encode)?);
            passes.push(pass(file, "decode", decode)?);
            decode
        }
    };
    for mut method in passes {
        keep_config(&mut class, &mut method.body);
        class.methods.push(method);
    }
    if decoding.caches != Caches::None {
        let mut new = Def::method("new_cache", Vec::new(), Expr::Runtime("Cache"));
        new.doc = vec!["A cache of no tokens, where decoding begins.".to_owned()];
        new.body = vec![Stmt::Return(Expr::Runtime("Cache").call([file.size(&file.program.cache_count())]))];
        keep_config(&mut class, &mut new.body);
        class.methods.push(new);
    }
    class.methods.push(init_weights());
    class.methods.push(stacks(file)?);
    items.push(Item::Class(class));
    Ok(items)
}

/// The outputs by name, if there are several.
fn outputs(file: &File<'_>) -> Option<Class> {
    let root = file.program.graph.root();
    if root.results.len() < 2 {
        return None;
    }
    let field = |id: &ValueId| Stmt::Field {
        name: root.value(*id).name.clone(),
        ty: tensor_type(root, *id),
        value: None,
        doc: file.shape(&root.value(*id).ty),
    };
    Some(Class {
        decorators: Vec::new(),
        name: "Outputs".to_owned(),
        base: Some(Expr::Import("NamedTuple")),
        doc: vec!["What the model returns.".to_owned()],
        fields: root.results.iter().map(field).collect(),
        methods: Vec::new(),
    })
}

/// The results of the model as they are returned: one tensor, or all by name.
fn returned(file: &File<'_>, results: &[ValueId], values: Vec<Expr>) -> Expr {
    let root = file.program.graph.root();
    match (<[Expr; 1]>::try_from(values), results == root.results) {
        (Ok([one]), _) => one,
        (Err(several), true) => {
            let call = Expr::from("Outputs").call(Vec::<Argument>::new());
            let named = results.iter().map(|id| root.value(*id).name.clone()).zip(several);
            named.fold(call, |call, (name, value)| call.with(&name, value))
        }
        // What the encoder returns is no output of the model and has no names.
        (Err(several), false) => Expr::Tuple(several),
    }
}

fn returns(file: &File<'_>, results: &[ValueId]) -> Expr {
    let id = file.program.graph.root;
    if results.len() > 1 && results == file.values(id).results {
        return "Outputs".into();
    }
    result_type(file, id, results)
}

/// The parameters of a function of the model: those that must be given, then the others, each with its
/// default.
fn signature(file: &File<'_>, parameters: &[ValueId]) -> Vec<Parameter> {
    let root = file.program.graph.root();
    // Python allows no parameter without a default after one with a default.
    let (optional, required): (Vec<&ValueId>, Vec<&ValueId>) =
        parameters.iter().partition(|id| Draft::may_be_absent(root.value(**id)));
    let of = |id: &ValueId| parameter(&name_of(file, root, *id), tensor_type(root, *id));
    let absent = |id: &ValueId| Parameter { default: Some(Expr::None), ..of(id) };
    required.into_iter().map(of).chain(optional.into_iter().map(absent)).collect()
}

/// A function of the model as a method.
fn pass(file: &File<'_>, called: &str, function: &Function) -> Result<Def, Bug> {
    let id = file.program.graph.root;
    let module = file.values(id);
    let mut parameters = signature(file, &function.parameters);
    let cache = cache_type(function.caches);
    parameters.extend(cache.map(|ty| Parameter { default: Some(Expr::None), ..parameter("cache", ty) }));
    let mut method = Def::method(called, parameters, returns(file, &function.results));
    let time = match origin(Need::Time, module, &function.parameters) {
        Some(Origin::Axis(id, axis)) => {
            Expr::from(name_of(file, module, id).as_str()).attr("shape").index([Expr::Int(axis as u64)])
        }
        // Without a cache, nobody asks for the length.
        Some(Origin::DeviceOf(_) | Origin::Cache) | None if function.caches == Caches::None => Expr::None,
        Some(Origin::DeviceOf(_) | Origin::Cache) | None => {
            return Err(Bug("the model fills a cache and does not know the length of its input".to_owned()));
        }
    };
    let advance = Stmt::If(vec![(
        Some(Expr::from("cache").binary(Sign::Compare("is not"), Expr::None)),
        vec![Stmt::Add(Expr::from("cache").attr("past"), time)],
    )]);
    let finish = |values: Vec<Expr>| {
        if function.caches == Caches::None {
            return vec![Stmt::Return(returned(file, &function.results, values))];
        }
        // The cache counts the tokens when all of them are in it.
        let mut last = Vec::new();
        let mut names = Vec::new();
        for (id, value) in function.results.iter().zip(values) {
            if value != Expr::Value(*id) {
                last.push(Stmt::Assign { targets: vec![Target::Value(*id)], value, comment: None });
            }
            names.push(Expr::Value(*id));
        }
        last.push(advance.clone());
        last.push(Stmt::Return(returned(file, &function.results, names)));
        last
    };
    method.body = simplified(body_of(file, id, function, &finish)?);
    method.doc = wrapped(&[shapes(file, id, &function.parameters, &function.results)], 8);
    if function.caches != Caches::None {
        method.doc.push(String::new());
        method
            .doc
            .push("With a cache, these are the tokens after those in it, and are added to it.".to_owned());
    }
    Ok(method)
}

/// `forward` of a model with a source and a target: `encode`, then `decode`.
fn forward_of_both(file: &File<'_>, encode: &Function, decode: &Function) -> Result<Def, Bug> {
    let id = file.program.graph.root;
    let root = file.values(id);
    let all: Vec<ValueId> = (0..root.args).map(ValueId).collect();
    let mut method = Def::method("forward", signature(file, &all), returns(file, &root.results));
    let name = |id: &ValueId| Expr::from(name_of(file, root, *id).as_str());
    // Both methods have their optional parameters last, so the arguments follow the signatures and not the
    // program's order.
    let ordered = |function: &Function| -> Vec<Expr> {
        let names = signature(file, &function.parameters).into_iter();
        names.map(|parameter| Expr::from(parameter.name.as_str())).collect()
    };
    let targets = encode.results.iter().map(|id| Target::Expr(name(id))).collect();
    let memory = Expr::own("encode").call(ordered(encode));
    method.body = vec![
        Stmt::Assign { targets, value: memory, comment: None },
        Stmt::Return(Expr::own("decode").call(ordered(decode))),
    ];
    method.doc = wrapped(&[shapes(file, id, &all, &root.results)], 8);
    Ok(method)
}

/// `init_weights()`: every layer's `reset_parameters`, as torch calls it.
fn init_weights() -> Def {
    let mut method = Def::method("init_weights", Vec::new(), Expr::None);
    method.doc = vec!["Draws all weights anew, as is needed after `to_empty`.".to_owned()];
    // Of the class, as a member may have the name of a method.
    let class = Expr::from("type").call([Expr::from("module")]);
    let reset = Expr::from("getattr").call([class, Expr::Str("reset_parameters".to_owned()), Expr::None]);
    let call = Stmt::Expr(Expr::from("reset").call([Expr::from("module")]));
    method.body = vec![Stmt::For {
        targets: vec!["module".to_owned()],
        source: Expr::own("modules").call(Vec::<Argument>::new()),
        body: vec![
            Stmt::set("reset", reset),
            Stmt::If(vec![(
                Some(Expr::from("reset").binary(Sign::Compare("is not"), Expr::None)),
                vec![call],
            )]),
        ],
    }];
    method
}

/// `stacks()`: the modules that own blocks.
fn stacks(file: &File<'_>) -> Result<Def, Bug> {
    let mut found: Vec<(Expr, String)> = Vec::new();
    collect(file, file.program.graph.root, &Expr::from("self"), &mut found)?;
    let mut types: Vec<String> = Vec::new();
    for (_, class) in &found {
        if !types.contains(class) {
            types.push(class.clone());
        }
    }
    let types = types.iter().map(|class| Expr::from(class.as_str()));
    // The list of a model without stacks is empty, and its type names any module.
    let ty = types.reduce(|a, b| a.binary(Sign::Or, b)).unwrap_or_else(|| Expr::nn("Module"));
    let mut method = Def::method("stacks", Vec::new(), Expr::from("list").index([ty]));
    method.doc = vec!["The modules with `blocks`, each of which is a unit of work and memory.".to_owned()];
    method.body = vec![Stmt::Return(Expr::List(found.into_iter().map(|(path, _)| path).collect()))];
    Ok(method)
}

/// The modules below one that own blocks through which a value is folded.
fn collect(file: &File<'_>, id: ModuleId, path: &Expr, found: &mut Vec<(Expr, String)>) -> Result<(), Bug> {
    let module = file.code(id)?;
    for field in &module.fields {
        match &field.kind {
            // The experts of a mixture are a stack, too, but no value is folded through them.
            FieldKind::Stack(_) if field.name == "blocks" => {
                found.push((path.clone(), file.class_of(id)?.to_owned()));
            }
            FieldKind::Module(child) => collect(file, *child, &member(path.clone(), &field.name), found)?,
            FieldKind::Stack(_) | FieldKind::Layer(_) | FieldKind::Dropout(_) => {}
        }
    }
    Ok(())
}

/// The first sentence about the model, for the head of the file.
pub fn introduction(file: &File<'_>) -> Vec<String> {
    let lines = file.program.model().map_or_else(Vec::new, |model| model.doc.clone());
    let mut doc = wrapped(&lines.iter().map(|line| harmless(line)).collect::<Vec<_>>(), 0);
    let mut letters = vec!["`B` sequences", "`T` tokens"];
    if file.program.reads_source() {
        letters.push("`S` tokens of the source");
    }
    if file.program.graph.decodes {
        letters.push("`P` tokens in the cache");
    }
    doc.push(String::new());
    doc.push(format!("Shapes: {}.", letters.join(", ")));
    doc.push(
        "Masks are 1 or True where a key is seen. Needs PyTorch 2.6 or later and nothing else.".to_owned(),
    );
    doc
}
