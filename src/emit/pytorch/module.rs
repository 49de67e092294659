//! A module as a class: members named like the program's, `forward`, and how its own tensors are filled.

use super::file::File;
use super::function::{parameter as name_of, tensor_type};
use super::layer::Axes;
use super::number::harmless;
use super::statement::{needs_config, returned, stack, uses_of_config, write as body_of};
use super::syntax::{Argument, Class, Def, Expr, Item, Parameter, Stmt, Target, parameter};
use super::{layer, name};
use crate::emit::program::function::{Caches, Function};
use crate::emit::program::needs::Need;
use crate::emit::program::{Body, FieldKind};
use crate::ir::{Init, Layer, ModuleId, ValueId};
use crate::lower::Bug;

/// Writes a module that is not the model: a class, or a function if it owns nothing.
///
/// # Errors
/// A fault of trafoc: the program says something that its verification should have refused.
pub fn write(file: &File<'_>, id: ModuleId) -> Result<Item, Bug> {
    let module = file.code(id)?;
    let Body::Whole(function) = &module.body else {
        return Err(Bug(format!("{} has two functions and is not the model", module.name)));
    };
    let shapes = shapes(file, id, &function.parameters, &function.results);
    let Some(called) = file.function_of(id) else {
        let mut class = class(file, id)?;
        let mut forward = method(file, id, "forward", function)?;
        forward.doc = wrapped(&[shapes], 8);
        keep_config(&mut class, &mut forward.body);
        class.methods.push(forward);
        return Ok(Item::Class(class));
    };
    let mut def = method(file, id, called, function)?;
    // A function has no `self`.
    def.parameters.remove(0);
    if needs_config(file, id)? {
        def.parameters.insert(0, parameter("config", "Config".into()));
    }
    let mut doc = documentation(file, id)?;
    doc.extend([String::new()]);
    doc.extend(wrapped(&[shapes], 4));
    def.doc = doc;
    Ok(Item::Def(def))
}

/// Lets a method read `Config`: the module keeps it, and a method that reads it more than once has a variable
/// for it.
pub fn keep_config(class: &mut Class, body: &mut Vec<Stmt>) {
    let uses = uses_of_config(body);
    if uses == 0 {
        return;
    }
    if uses > 1 {
        body.insert(0, Stmt::set("config", Expr::own("config")));
    } else {
        let own = |expr: &mut Expr| {
            if let Expr::Constant(_) = expr {
                *expr = Expr::Own(Box::new(expr.clone()));
            // A function of the file may be passed `config` as a whole.
            } else if *expr == Expr::from("config") {
                *expr = Expr::own("config");
            }
        };
        body.iter_mut().for_each(|stmt| stmt.change(&mut { own }));
    }
    let keep = Stmt::own(Expr::own("config"), "config".into());
    if let Some(constructor) = class.methods.first_mut()
        && !constructor.body.contains(&keep)
    {
        // After `super().__init__()`, which is the first line of every constructor.
        constructor.body.insert(1, keep);
    }
}

/// The class of a module with its constructor.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn class(file: &File<'_>, id: ModuleId) -> Result<Class, Bug> {
    let fields = &file.code(id)?.fields;
    let mut class = Class {
        decorators: Vec::new(),
        name: file.class_of(id)?.to_owned(),
        base: Some(Expr::nn("Module")),
        doc: documentation(file, id)?,
        fields: Vec::new(),
        methods: Vec::new(),
    };
    let mut constructor = Def::method("__init__", vec![parameter("config", "Config".into())], Expr::None);
    let mut inits =
        Inits::new(
            file,
            fields.iter().filter_map(|field| {
                if let FieldKind::Layer(layer) = &field.kind { Some(layer) } else { None }
            }),
        );
    let mut members = Vec::new();
    let mut resets = Vec::new();
    for field in fields {
        let value = match &field.kind {
            FieldKind::Layer(Layer::Param { shape, init, trained }) => {
                let empty = layer::build(
                    &Layer::Param { shape: shape.clone(), init: init.clone(), trained: *trained },
                    file,
                    // A tensor of the module itself is filled below, and not when it is created.
                    &|_, _| Expr::None,
                )?;
                let registry = if *trained { "_parameters" } else { "_buffers" };
                let own = layer::target(&field.name, registry);
                let width = match shape.as_slice() {
                    [one] => Some(one.get()),
                    _ => None,
                };
                let tensor = layer::member(Expr::from("self"), &field.name);
                // No layer's `reset_parameters` would fill a tensor that the module owns itself.
                resets.push(Stmt::Expr(layer::filled(init, tensor, file, width)));
                match (trained, name::is_attribute(&field.name)) {
                    (true, _) => members.push(Stmt::own(own, Expr::nn("Parameter").call([empty]))),
                    // The annotation tells type checkers that the attribute is a tensor; `register_buffer`
                    // alone leaves it `Tensor | Module`.
                    (false, true) => {
                        class.fields.push(Stmt::Field {
                            name: field.name.clone(),
                            ty: Expr::Import("Tensor"),
                            value: None,
                            doc: String::new(),
                        });
                        let register = Expr::own("register_buffer");
                        members.push(Stmt::Expr(register.call([Expr::Str(field.name.clone()), empty])));
                    }
                    // `register_buffer` refuses a name that the module has as an attribute; the registry
                    // takes any.
                    (false, false) => members.push(Stmt::own(own, empty)),
                }
                continue;
            }
            FieldKind::Layer(layer) => layer::build(layer, file, &|init, axes| inits.expr(init, axes))?,
            FieldKind::Module(child) => Expr::from(file.class_of(*child)?).call([Expr::from("config")]),
            FieldKind::Stack(of) => stack(file, of)?,
            FieldKind::Dropout(p) => Expr::nn("Dropout").call([file.scalar(p)]),
        };
        members.push(Stmt::own(layer::target(&field.name, "_modules"), value));
    }
    let start = Expr::from("super").call(Vec::<Argument>::new()).method("__init__", []);
    constructor.body.push(Stmt::Expr(start));
    constructor.body.append(&mut inits.variables);
    constructor.body.append(&mut members);
    // Layers fill their weights when they are created, so a module with tensors of its own does, too.
    if !resets.is_empty() {
        constructor.body.push(Stmt::Expr(Expr::own("reset_parameters").call(Vec::<Argument>::new())));
    }
    class.methods.push(constructor);
    if !resets.is_empty() {
        let mut reset = Def::method("reset_parameters", Vec::new(), Expr::None);
        reset.body = resets;
        keep_config(&mut class, &mut reset.body);
        class.methods.push(reset);
    }
    Ok(class)
}

/// The distributions of a module's weights: those used more than once have a variable.
struct Inits<'a> {
    file: &'a File<'a>,
    named: Vec<(Init, Axes, String)>,
    variables: Vec<Stmt>,
}

impl<'a> Inits<'a> {
    fn new<'l>(file: &'a File<'a>, layers: impl Iterator<Item = &'l Layer>) -> Self {
        let mut found: Vec<(Init, Axes, usize)> = Vec::new();
        for (init, axes) in layers.flat_map(layer::inits) {
            match found.iter_mut().find(|(known, of, _)| known == init && *of == axes) {
                Some((.., count)) => *count += 1,
                None => found.push((init.clone(), axes, 1)),
            }
        }
        let mut inits = Self { file, named: Vec::new(), variables: Vec::new() };
        for (init, axes, _) in found.into_iter().filter(|(.., count)| *count > 1) {
            let name = match inits.named.len() {
                0 => "init".to_owned(),
                n => format!("init_{}", n + 1),
            };
            let value = layer::filler(&init, file, axes.width);
            inits.variables.push(Stmt::set(&name, value));
            inits.named.push((init, axes, name));
        }
        inits
    }

    fn expr(&self, init: &Init, axes: Axes) -> Expr {
        let named = self.named.iter().find(|(known, of, _)| known == init && *of == axes);
        named.map_or_else(
            || layer::filler(init, self.file, axes.width),
            |(.., name)| Expr::from(name.as_str()),
        )
    }
}

/// The characters next to a formula that is the whole documentation of a class: four spaces, and three and one
/// quotes on both sides.
const DOC_SIGNS: usize = 4 + 2 * (3 + 1);

/// What a class says about itself: formulas, then the line of the spec.
pub fn documentation(file: &File<'_>, id: ModuleId) -> Result<Vec<String>, Bug> {
    let module = file.code(id)?;
    let equation = |line: &String| {
        let inner = line.strip_prefix('`')?.strip_suffix('`')?;
        // Two quotes in one line, such as "`a` and `b`", are no equation.
        (!inner.contains('`')).then(|| harmless(inner))
    };
    let equations: Vec<String> = module.doc.iter().filter_map(equation).collect();
    // Several equations, and nothing else, get lines of their own; so does one that is too long for a line.
    let longest = super::printer::WIDTH.saturating_sub(DOC_SIGNS);
    let has_own_lines = equations.len() > 1 || equations.iter().any(|one| one.chars().count() > longest);
    let mut lines = if has_own_lines && equations.len() == module.doc.len() {
        std::iter::once(String::new()).chain(equations.iter().flat_map(|line| broken(line))).collect()
    } else {
        wrapped(&module.doc, 4)
    };
    if !module.places.is_empty() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let places: Vec<String> = module.places.iter().map(|place| format!("`{place}`")).collect();
        lines.extend(wrapped(&[format!("From {}.", places.join(" and "))], 4));
    }
    if lines.is_empty() {
        lines.push(format!("The module `{}`.", harmless(&module.name)));
    }
    Ok(lines)
}

/// An equation in lines that are no longer than a line of code; those after the first are indented.
fn broken(equation: &str) -> Vec<String> {
    // The lines are inside a class.
    let longest = super::printer::WIDTH.saturating_sub(4);
    let mut lines = vec![String::new()];
    for word in equation.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.trim().is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= longest {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("    {word}"));
        }
    }
    lines
}

/// Lines of documentation that are no longer than a line of code, broken outside of quotes.
pub fn wrapped(lines: &[String], indent: usize) -> Vec<String> {
    // Room for the quotes around the text.
    let longest = super::printer::WIDTH.saturating_sub(indent + 6);
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let mut current = String::new();
        for part in unbroken(&harmless(line)) {
            let fits = current.chars().count() + 1 + part.chars().count() <= longest;
            if !current.is_empty() && !fits {
                out.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(&part);
        }
        out.push(current);
    }
    out
}

/// The words of a line; what is in quotes is one word.
fn unbroken(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut is_quoted = false;
    for word in line.split(' ') {
        match parts.last_mut().filter(|_| is_quoted) {
            Some(part) => {
                part.push(' ');
                part.push_str(word);
            }
            None => parts.push(word.to_owned()),
        }
        // A word with one mark begins or ends a quote.
        is_quoted ^= word.matches('`').count() % 2 == 1;
    }
    parts
}

/// A function over some values of a module, without documentation.
///
/// # Errors
/// A fault of trafoc, as in [`write`].
pub fn method(file: &File<'_>, id: ModuleId, called: &str, function: &Function) -> Result<Def, Bug> {
    let mut method =
        Def::method(called, signature(file, id, function), result_type(file, id, &function.results));
    method.body = simplified(body_of(file, id, function, &returned)?);
    Ok(method)
}

/// `y = f(x)`, `return y` → `return f(x)`, also for several values.
pub fn simplified(mut body: Vec<Stmt>) -> Vec<Stmt> {
    if let [.., Stmt::Assign { targets, value, .. }, Stmt::Return(returned)] = body.as_slice() {
        let names: Vec<Expr> = targets
            .iter()
            .filter_map(|target| if let Target::Expr(expr) = target { Some(expr.clone()) } else { None })
            .collect();
        let whole = if let [one] = names.as_slice() { one.clone() } else { Expr::Tuple(names.clone()) };
        if names.len() == targets.len() && whole == *returned {
            let value = value.clone();
            body.truncate(body.len().saturating_sub(2));
            body.push(Stmt::Return(value));
        }
    }
    body
}

/// What a function takes after `self`.
fn signature(file: &File<'_>, id: ModuleId, function: &Function) -> Vec<Parameter> {
    let module = file.values(id);
    let mut all: Vec<Parameter> = function
        .parameters
        .iter()
        .map(|value| parameter(&name_of(file, module, *value), tensor_type(module, *value)))
        .collect();
    for need in &function.needs {
        let ty = match need {
            Need::Past | Need::Time | Need::Source => Expr::from("int"),
            Need::Device => Expr::torch("device"),
        };
        all.push(parameter(need.variable(), ty));
    }
    all.extend(cache_type(function.caches).map(|ty| parameter("cache", ty)));
    all
}

/// The type of the caches that a function takes.
pub fn cache_type(caches: Caches) -> Option<Expr> {
    let one = || Expr::Runtime("KVCache");
    Some(match caches {
        Caches::None => return None,
        Caches::One => one().or_none(),
        Caches::List(_) => Expr::from("list").index([one()]).or_none(),
        Caches::Model(_) => Expr::Runtime("Cache").or_none(),
    })
}

/// The type of one result, or of a tuple.
pub fn result_type(file: &File<'_>, id: ModuleId, results: &[ValueId]) -> Expr {
    let module = file.values(id);
    let mut types: Vec<Expr> = results.iter().map(|id| tensor_type(module, *id)).collect();
    match types.len() {
        1 => types.remove(0),
        _ => Expr::from("tuple").index(types),
    }
}

/// "`x [B, T, d_model]`, `mask [B, 1, 1, P+T]` → `[B, T, d_model]`"
pub fn shapes(file: &File<'_>, id: ModuleId, parameters: &[ValueId], results: &[ValueId]) -> String {
    let module = file.values(id);
    let inputs: Vec<String> = parameters
        .iter()
        .map(|value| format!("`{} {}`", name_of(file, module, *value), file.shape_of(id, *value)))
        .collect();
    let several = results.len() > 1;
    let outputs: Vec<String> = results
        .iter()
        .map(|id| {
            let value = module.value(*id);
            let name = if several { format!("{} ", value.variable) } else { String::new() };
            format!("`{name}{}`", file.shape(&value.ty))
        })
        .collect();
    format!("{} → {}", inputs.join(", "), outputs.join(", "))
}
