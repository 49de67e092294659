//! How parameters start, as far as it follows from their place in the model.

use std::collections::BTreeMap;

use trafoc::ir::{Init, Layer, MemberKind};

use crate::compiled::{graph_with, repository};

#[test]
fn only_the_ends_of_residual_branches_start_smaller() {
    let gpt2 = repository("specs/gpt2-small.yaml");
    let graph =
        graph_with(&gpt2, &["head.lm.tied=false", "init.residual=0.5", "init.weights.normal.std=0.02"]);
    let layers = graph.modules.iter().flat_map(|module| {
        module.members.iter().filter_map(|member| match &member.kind {
            MemberKind::Layer(Layer::Linear { init, .. }) => {
                Some(((module.name.as_str(), member.name.as_str()), init))
            }
            MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => None,
        })
    });
    let found: BTreeMap<_, _> = layers.collect();
    let std = |module, member| match found[&(module, member)] {
        Init::Normal { std } => *std,
        other => panic!("{other:?}"),
    };
    assert_eq!(std("Attention", "output"), 0.01);
    assert_eq!(std("FeedForward", "down"), 0.01);
    assert_eq!(std("Attention", "query"), 0.02);
    // Its name is that of attention's output, but it is no part of a branch.
    assert_eq!(std("LmHead", "output"), 0.02);
}

#[test]
fn a_rule_reaches_the_norm_of_each_hidden_layer_of_a_head() {
    // A rule that reaches no parameter is an error.
    let settings = [
        "head={tag: {classes: 3, hidden: [6, 4], norm: dynamic_tanh}}",
        "init={rules: {head.norm.alpha: {constant: {value: 0.25}}, head.norm_2.alpha: {constant: {value: 0.75}}}}",
    ];
    let graph = graph_with(&repository("tests/good/head-tag-hidden.yaml"), &settings);
    let starts =
        graph.modules.iter().flat_map(|module| &module.members).filter_map(|member| match &member.kind {
            MemberKind::Layer(Layer::Param { init: Init::Constant(value), .. }) => Some(*value),
            MemberKind::Layer(_) | MemberKind::Module(_) | MemberKind::Stack(_) => None,
        });
    assert_eq!(starts.collect::<Vec<f64>>(), [0.25, 0.75]);
}
