//! Comparisons: normal forms of specs, what differs, what turning one knob does.

use proptest::prelude::*;
use trafoc::report::compare::form::Wirings;
use trafoc::report::compare::{Comparison, Entry, compare};
use trafoc::report::cost::cost;
use trafoc::report::costs::{Element, Scene};

use crate::compiled::{repository, specs};
use crate::front::Front;
use crate::{laws, random};

fn compiled(name: &str) -> Front {
    let front = Front::of_file(&repository(&format!("specs/{name}.yaml")));
    assert!(front.codes().is_empty(), "{}", front.rendered());
    front
}

/// Shipped specs side by side, as long as the shortest context.
fn comparison(names: &[&str]) -> Comparison {
    let fronts: Vec<Front> = names.iter().map(|name| compiled(name)).collect();
    let all: Vec<_> = fronts.iter().map(|f| &f.compilation).collect();
    let graphs = all.iter().map(|c| c.graph.as_ref().unwrap());
    let contexts = graphs.clone().map(cost).filter(|c| c.has_time).map(|c| c.context);
    let scene = Scene { batch: 1, tokens: contexts.min().unwrap_or(1), element: Element::Bf16 };
    let entries: Vec<Entry<'_>> = names
        .iter()
        .zip(&all)
        .map(|(name, c)| Entry { name, spec: c.spec.as_ref().unwrap(), graph: c.graph.as_ref().unwrap() })
        .collect();
    compare(&entries, scene)
}

#[test]
fn a_normal_form_is_the_same_model() {
    let wirings = Wirings::default();
    for (name, path) in specs("specs").into_iter().chain(specs("tests/good")) {
        let spec = Front::of_file(&path).compilation.spec.unwrap();
        let form = wirings.normal(&spec);
        let again = wirings.decode(&form).unwrap_or_else(|| panic!("{name}: {form:#?}"));
        assert_eq!(again, spec, "{name}");
        assert_eq!(wirings.normal(&again), form, "{name}");
    }
}

proptest! {
    #![proptest_config(laws::config())]

    #[test]
    fn a_random_normal_form_is_the_same_model(tape in laws::tape()) {
        let text = random::spec(&tape);
        let spec = Front::of_text("tiny.yaml", &text, "specs").compilation.spec.unwrap();
        let wirings = Wirings::default();
        let form = wirings.normal(&spec);
        let again = wirings.decode(&form);
        prop_assert!(again.as_ref() == Some(&spec), "{}\n{:#?}", text, form);
    }
}

#[test]
fn pages_of_comparisons() {
    let cases: [&[&str]; 4] = [
        &["gpt1", "gpt2-small"],
        &["gpt2-small", "llama3-8b"],
        &["gpt2-small", "gemma2-2b"],
        &["gpt2-small", "pythia-160m", "llama3-8b", "mistral-7b", "mixtral-8x7b"],
    ];
    for names in cases {
        let text = comparison(names).text(80);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        insta::with_settings!({
            snapshot_path => "../snap/compare", prepend_module_to_snapshot => false, omit_expression => true
        }, { insta::assert_snapshot!(names.join("+"), text) });
    }
}
