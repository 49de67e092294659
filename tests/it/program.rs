//! The program that targets write as text: every model's is verified, and a broken one is refused by name.

use trafoc::emit::program::choice::Choice;
use trafoc::emit::program::constants::{ConstantId, Number, Size};
use trafoc::emit::program::function::{Action, Caches, Function, Lent, Statement};
use trafoc::emit::program::needs::{Need, Origin};
use trafoc::emit::program::verify::verify;
use trafoc::emit::program::{Body, Draft, FieldKind, Module, draft};
use trafoc::ir::{Dim, ModuleId, Sym, Type, ValueId};
use trafoc::source::SourceMap;

use crate::compiled::{graph, repository, specs};

fn program(spec: &str) -> Draft {
    draft(&graph(&repository(&format!("specs/{spec}.yaml"))), &SourceMap::new())
}

#[test]
fn programs_of_all_specs_are_verified() {
    for folder in ["tests/good", "specs"] {
        for (spec, path) in specs(folder) {
            let found = verify(draft(&graph(&path), &SourceMap::new()));
            assert!(found.is_ok(), "{spec}: {:?}", found.err());
        }
    }
}

fn module<'a>(draft: &'a mut Draft, name: &str) -> &'a mut Module {
    let names: Vec<String> = draft.modules.iter().map(|module| module.name.clone()).collect();
    let found = draft.modules.iter_mut().find(|module| module.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {names:?}"))
}

fn function<'a>(draft: &'a mut Draft, name: &str) -> &'a mut Function {
    match &mut module(draft, name).body {
        Body::Whole(function) | Body::Translation { decode: function, .. } => function,
    }
}

fn statement<'a>(draft: &'a mut Draft, name: &str, is: impl Fn(&Action) -> bool) -> &'a mut Statement {
    let found = function(draft, name).statements.iter_mut().find(|statement| is(&statement.action));
    found.unwrap_or_else(|| panic!("no such statement in {name}"))
}

fn constant(draft: &Draft, name: &str) -> usize {
    draft.constants.all.iter().position(|constant| constant.name == name).unwrap()
}

/// The type of a value of a module.
fn value<'a>(draft: &'a mut Draft, module: &str, name: &str) -> &'a mut Type {
    let module = draft.graph.modules.iter_mut().find(|own| own.name == module).unwrap();
    &mut module.values.iter_mut().find(|value| value.name == name).unwrap().ty
}

fn is_call(action: &Action) -> bool {
    matches!(action, Action::Call(_))
}

/// What is done to a program, and what its verification says then.
type Break = (&'static str, fn(&mut Draft), &'static str);

const BREAKS: &[Break] = &[
    ("d2l-nmt", |p| p.modules[0].name = "two words".to_owned(), "`two words` is not a module's name"),
    ("d2l-nmt", |p| p.modules[1].name = p.modules[0].name.clone(), "another module has this name"),
    ("d2l-nmt", |p| drop(p.modules.pop()), "modules have code, of"),
    (
        "gbt-mulm",
        |p| {
            let at = constant(p, "head_dim");
            p.constants.all[at].value = Number::Int(17);
        },
        "the formula of head_dim is not Int(17)",
    ),
    (
        "gbt-mulm",
        |p| {
            let at = constant(p, "head_dim");
            p.constants.all[at].formula = Some(Size::Constant(ConstantId(at)));
        },
        "the formula of head_dim refers to a later constant",
    ),
    (
        "gbt-mulm",
        |p| p.constants.all[1].name = p.constants.all[0].name.clone(),
        "two constants are called vocab",
    ),
    (
        "gbt-mulm",
        |p| {
            let fields = &mut module(p, "Block").fields;
            fields[1].name = fields[0].name.clone();
        },
        "module Block: two fields are called norm1",
    ),
    ("gbt-mulm", |p| module(p, "FeedForward").is_function = true, "FeedForward: it is a function and owns"),
    (
        "gbt-mulm",
        |p| {
            for field in &mut module(p, "Decoder").fields {
                if let FieldKind::Stack(stack) = &mut field.kind {
                    stack.count = Size::Number(3);
                }
            }
        },
        "module Decoder: blocks has another number of blocks",
    ),
    (
        "gbt-mulm",
        |p| {
            for field in &mut module(p, "Decoder").fields {
                if let FieldKind::Stack(stack) = &mut field.kind {
                    stack.blocks = Choice::One(ModuleId(0));
                }
            }
        },
        "a block of blocks is of no known kind",
    ),
    (
        "gbt-mulm",
        |p| {
            let statements = &mut function(p, "FeedForward").statements;
            statements.reverse();
        },
        "module FeedForward: up is used before it is defined",
    ),
    (
        "gbt-mulm",
        |p| {
            let statements = &mut function(p, "FeedForward").statements;
            let first = statements[0].clone();
            statements.insert(0, first);
        },
        "module FeedForward: up is defined twice",
    ),
    ("gbt-mulm", |p| function(p, "FeedForward").statements.truncate(2), "is not defined"),
    (
        "gbt-mulm",
        |p| {
            for statement in &mut function(p, "Block").statements {
                statement.folds = true;
            }
        },
        "module Block: a statement folds although its result is not used exactly once",
    ),
    (
        "gbt-mulm",
        |p| function(p, "Embedding").needs.clear(),
        "a statement needs Past, which the function does not have",
    ),
    (
        "gbt-mulm",
        |p| function(p, "Embedding").locals[0] = (Need::Time, Origin::Axis(ValueId(0), 0)),
        "Time cannot be found in Axis",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "Block", is_call).action {
                call.arguments.pop();
            }
        },
        "module Block: attention takes 2 arguments, not 1",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "Block", is_call).action {
                call.arguments.reverse();
            }
        },
        "is passed as x",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "Block", is_call).action {
                call.member = "norm1".to_owned();
            }
        },
        "norm1 is called, but it does not own it",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "Block", is_call).action {
                call.module = ModuleId(99);
            }
        },
        "attention calls what is not an earlier module",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "GbtMulm", is_call).action {
                call.needs.clear();
            }
        },
        "module GbtMulm: embed is not given what it needs",
    ),
    (
        "gbt-mulm",
        |p| {
            if let Action::Call(call) = &mut statement(p, "Block", is_call).action {
                call.caches = Some(Lent::Part { first: 1, count: 1, list: false });
            }
        },
        "cache 1 is used where cache 0 is the next",
    ),
    ("gbt-mulm", |p| function(p, "Attention").caches = Caches::List(2), "1 caches are filled, of 2"),
    (
        "gbt-mulm",
        |p| {
            if let Action::Scan(scan) = &mut statement(p, "Decoder", |a| a.scan().is_some()).action {
                scan.calls[0].arguments.clear();
            }
        },
        "module Decoder: Block is not given all that it takes",
    ),
    (
        "gbt-mulm",
        |p| {
            *value(p, "FeedForward", "up") = Type::float([Dim::sym(Sym::Batch), Dim::of(7u64)]);
        },
        "module FeedForward: up is not of the type",
    ),
    (
        "d2l-nmt",
        |p| {
            for at in 0..p.modules.len() {
                p.modules[at].fields.retain(|field| !matches!(field.kind, FieldKind::Dropout(_)));
            }
        },
        "a dropout is applied that it does not own",
    ),
    (
        "gpt2-small",
        |p| {
            let is_weight = |action: &Action| matches!(action, Action::Weight(_));
            if let Action::Weight(path) = &mut statement(p, "Gpt2Small", is_weight).action {
                path.pop();
            }
        },
        "is not the table of an embedding",
    ),
];

#[test]
fn a_broken_program_is_refused_by_name() {
    for (at, (spec, broken, wanted)) in BREAKS.iter().enumerate() {
        let mut draft = program(spec);
        broken(&mut draft);
        let said: Vec<String> = match verify(draft) {
            Ok(_) => panic!("break {at} of {spec} was not seen: {wanted}"),
            Err(found) => found.iter().map(ToString::to_string).collect(),
        };
        assert!(said.iter().any(|line| line.contains(wanted)), "break {at} of {spec}: {wanted}\n{said:#?}");
    }
}

/// The program of a model does not depend on how deep it is.
#[test]
fn programs_do_not_grow_with_layers() {
    let path = repository("specs/gpt1.yaml");
    let statements = |layers: &str| {
        let graph = crate::compiled::graph_with(&path, &[layers]);
        let draft = draft(&graph, &SourceMap::new());
        let functions = draft.modules.iter().flat_map(|module| module.body.functions());
        functions.map(|function| function.statements.len()).sum::<usize>()
    };
    assert_eq!(statements("decoder.layers=1000"), statements("decoder.layers=2"));
}
