//! Sizes that `fit` finds for a wanted cost: they compile, they have the stated cost, and no neighbouring
//! size is closer.

use trafoc::report::cost::cost;
use trafoc::report::costs::Name;
use trafoc::report::fit::{Fitter, Size, Unfit, Wanted};
use trafoc::report::scene::{Element, Scene};

use crate::cli::trafoc;
use crate::compiled::{graph_with, repository};
use crate::front::Front;

fn of(front: &Front) -> Fitter {
    let found = &front.compilation;
    Fitter::new(found.spec.as_ref().unwrap(), found.tree.as_ref().unwrap(), &front.sources)
}

fn fitter(name: &str) -> Fitter {
    of(&Front::of_file(&repository(&format!("specs/{name}.yaml"))))
}

fn wanted(cost: Name, value: u128) -> Wanted {
    Wanted { cost, value, scene: Scene { batch: 1, tokens: 128, element: Element::Bf16 } }
}

fn parameters(name: &str, sizes: &[Size], values: &[u64]) -> u128 {
    let set = |(size, n): (&Size, &u64)| size.paths.iter().map(|p| format!("{p}={n}")).collect::<Vec<_>>();
    let settings: Vec<String> = sizes.iter().zip(values).flat_map(set).collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    cost(&graph_with(&repository(&format!("specs/{name}.yaml")), &settings)).parameters.all().total
}

#[test]
fn what_is_found_compiles_and_costs_what_is_said() {
    for (name, over, value) in [
        ("gpt2-small", &["d_model", "layers"][..], 350_000_000),
        ("llama3-8b", &["d_model", "layers", "hidden"], 1_000_000_000),
        ("t5-small", &["layers"], 100_000_000),
        ("mixtral-8x7b", &["experts", "layers"], 10_000_000_000),
    ] {
        let fitter = fitter(name);
        let sizes: Vec<Size> = over.iter().map(|size| fitter.size(size).unwrap()).collect();
        let found = fitter.fit(&sizes, &wanted(Name::Params, value), 4);
        assert!(!found.is_empty(), "{name}");
        for fit in found {
            assert_eq!(parameters(name, &sizes, &fit.sizes), fit.value, "{name} {fit:?}");
            let off = fit.value as f64 / value as f64 - 1.0;
            assert!((fit.off - off).abs() < 1e-9, "{name} {fit:?}");
        }
    }
}

/// Each of many sizes has few candidates, which nevertheless cover the whole range that is promised.
#[test]
fn many_sizes_are_found_far_from_the_present_ones() {
    for (name, over, value) in [
        ("llama3-8b", &["d_model", "layers", "ffn.hidden", "heads"][..], 1_200_000_000),
        ("gpt2-small", &["d_model", "layers", "heads", "vocab"], 30_000_000),
    ] {
        let fitter = fitter(name);
        let sizes: Vec<Size> = over.iter().map(|size| fitter.size(size).unwrap()).collect();
        let found = fitter.fit(&sizes, &wanted(Name::Params, value), 4);
        assert!(
            found.len() == 4 && found.iter().all(|fit| fit.off.abs() < 0.05),
            "{name} {over:?}: {found:?}"
        );
        let all = found.iter().all(|fit| parameters(name, &sizes, &fit.sizes) == fit.value);
        assert!(all, "{name} {over:?}: {found:?}");
    }
}

/// With a fixed number of key/value heads, heads are narrower the more there are, and so are keys and values.
#[test]
fn a_cost_may_fall_when_a_size_grows() {
    let text = "{trafo: 1, name: narrow, vocab: 50, context: 16, d_model: 64, head: lm, \
                decoder: {layers: 2, attention: {heads: 8, kv_heads: 2}}}";
    let fitter = of(&Front::of_text("narrow.yaml", text, "."));
    let sizes = [fitter.size("heads").unwrap()];
    let found = fitter.fit(&sizes, &wanted(Name::Params, 106_000), 1);
    assert_eq!((found[0].sizes[0], found[0].value), (2, 106_496));
    assert_eq!(fitter.fit(&sizes, &wanted(Name::Params, 92_000), 1)[0].sizes[0], 16);
}

/// The layers of `runs` are counted there, so their number is no size that can vary.
#[test]
fn listed_layers_are_no_size() {
    let text = "{trafo: 1, name: listed, vocab: 50, context: 16, d_model: 64, head: lm, \
                decoder: {layers: 4, attention: {heads: 8}, blocks: {a: {}, b: {ffn: {expansion: 2}}}, \
                runs: [{count: 1, cycle: [a]}, {count: 3, cycle: [b]}]}}";
    let fitter = of(&Front::of_text("listed.yaml", text, "."));
    assert_eq!(fitter.size("layers").unwrap_err(), Unfit::Listed("decoder".to_owned()));
    assert!(fitter.size("d_model").is_ok());
}

/// Ranges stay where they are, as with `--set decoder.layers=N`, and the pattern goes on after them.
#[test]
fn layers_beyond_ranges_can_vary() {
    let text = "{trafo: 1, name: ranged, vocab: 50, context: 16, d_model: 64, head: lm, \
                decoder: {layers: 4, attention: {heads: 8}, pattern: [a, b, c], \
                blocks: {a: {}, b: {ffn: {hidden: 96}}, c: {ffn: {hidden: 32}}}, \
                ranges: {\"0..3\": {attention: {bias: {out: true}}}}}}";
    let front = |set: &str| Front::of_text("ranged.yaml", &format!("# set: {set}\n{text}"), ".");
    let fitter = of(&front("d_model=64"));
    let sizes = [fitter.size("layers").unwrap()];
    for layers in [4, 5, 9, 17] {
        let spec = front(&format!("decoder.layers={layers}"));
        let value = cost(spec.compilation.graph.as_ref().unwrap()).parameters.all().total;
        let found = fitter.fit(&sizes, &wanted(Name::Params, value), 1);
        assert_eq!((found[0].sizes[0], found[0].value), (layers, value));
    }
    // With fewer layers, the range would go beyond them.
    let found = fitter.fit(&sizes, &wanted(Name::Params, 1_000), 4);
    assert_eq!(found[0].sizes, [3], "{found:?}");
}

/// A width that the author gives stays as it is, as with `--set d_model=N`, in all layers or in some.
#[test]
fn what_is_given_stays() {
    for ffn in ["{hidden: 96}", "{glu: {hidden: 96}}"] {
        let text = format!(
            "{{trafo: 1, name: given, vocab: 50, context: 16, d_model: 64, head: lm, decoder: {{layers: 4, \
             attention: {{heads: 8}}, pattern: [a, b], blocks: {{a: {{}}, b: {{ffn: {ffn}}}}}}}}}"
        );
        let one = text.replace(", pattern: [a, b], blocks: {a: {}, b: {", ", ").replace("}}}}", "}}");
        for text in [text, one] {
            let fitter = of(&Front::of_text("given.yaml", &text, "."));
            let found = fitter.fit(&[fitter.size("d_model").unwrap()], &wanted(Name::Params, 300_000), 2);
            assert!(!found.is_empty(), "{text}");
            for fit in found {
                let text = format!("# set: d_model={}\n{text}", fit.sizes[0]);
                let graph = Front::of_text("given.yaml", &text, ".").compilation.graph.unwrap();
                assert_eq!(cost(&graph).parameters.all().total, fit.value, "{fit:?} {text}");
            }
        }
    }
}

/// A factor without a short decimal form gives whole widths only if it is not rounded.
#[test]
fn widths_follow_a_factor_that_is_a_quotient() {
    let text = "{trafo: 1, name: thirds, vocab: 300, context: 64, d_model: 48, head: lm, \
                decoder: {layers: 4, attention: {heads: 6}, ffn: {glu: {expansion: 8/3}}}}";
    let fitter = of(&Front::of_text("thirds.yaml", text, "."));
    let sizes = [fitter.size("d_model").unwrap()];
    let found = fitter.fit(&sizes, &wanted(Name::Params, 500_000), 4);
    assert!(!found.is_empty());
    assert!(found.iter().all(|fit| fit.sizes[0] % 6 == 0), "{found:?}");
}

/// The sizes that a model already has are found for its own cost.
#[test]
fn a_model_fits_its_own_cost() {
    for (name, params) in [("gpt2-small", 124_439_808), ("gbt-mulm", 205_888), ("mistral-7b", 7_241_732_096)]
    {
        let fitter = fitter(name);
        let sizes = [fitter.size("d_model").unwrap(), fitter.size("layers").unwrap()];
        let found = fitter.fit(&sizes, &wanted(Name::Params, params), 1);
        assert_eq!(found[0].sizes, sizes.each_ref().map(|s| s.now), "{name}");
        assert_eq!((found[0].value, found[0].off), (params, 0.0), "{name}");
    }
}

/// No number of layers is closer than the one found.
#[test]
fn one_size_is_found_exactly() {
    let fitter = fitter("gpt2-small");
    let sizes = [fitter.size("layers").unwrap()];
    let value = 300_000_000;
    let found = fitter.fit(&sizes, &wanted(Name::Params, value), 2);
    let away = |layers: u64| parameters("gpt2-small", &sizes, &[layers]).abs_diff(value);
    // So many layers have more than twice the parameters that are wanted.
    let best = (1..=96).min_by_key(|n| away(*n)).unwrap();
    assert!(found.iter().any(|fit| fit.sizes == [best]), "{found:?} and {best}");
}

#[test]
fn names_of_sizes_are_paths_or_their_ends() {
    let t5 = fitter("t5-small");
    assert_eq!(t5.size("layers").unwrap().paths, ["encoder.layers", "decoder.layers"]);
    assert_eq!(t5.size("decoder.layers").unwrap().paths, ["decoder.layers"]);
    let Err(Unfit::Unknown(names)) = t5.size("depth") else { panic!() };
    assert!(names.iter().any(|n| n == "d_model") && !names.iter().any(|n| n.contains("theta")), "{names:?}");
    let several = fitter("gpt2-small").size("layers").unwrap();
    assert_eq!((several.path.as_str(), several.now), ("decoder.layers", 12));
}

/// Programs read plain numbers.
#[test]
fn a_table_in_csv_has_plain_numbers() {
    // Far below the target, a percentage would be 100 for any result.
    let far = trafoc(&["fit", "@gpt1", "--params", "99999T", "--over", "d_model"]);
    assert!(far.out.contains("÷16,859,653") && !far.out.contains("100.00 %"), "{}", far.out);
    let said = trafoc(&["fit", "@gpt1", "--params", "50M", "--over", "d_model", "--format", "csv"]);
    let mut lines = said.out.lines();
    assert_eq!(lines.next(), Some("d_model,params,off"));
    assert_eq!(lines.next(), Some("384,52236352,0.044727"));
}

/// What several stacks have each for itself changes in each, unless sizes are named.
#[test]
fn stacks_that_differ_are_fitted_one_by_one() {
    let fit = |over: &[&str]| {
        let usual = ["fit", "@t5-small", "--set", "encoder.layers=2", "--params", "10M", "--format", "csv"];
        trafoc(&[&usual, over].concat())
    };
    let said = fit(&[]);
    assert_eq!(
        said.out.lines().next(),
        Some("d_model,encoder.layers,decoder.layers,params,off"),
        "{}",
        said.err
    );
    let said = fit(&["--over", "layers"]);
    assert!(said.code == 2 && said.err.contains("`layers` names several sizes"), "{}", said.err);
}

#[test]
fn a_cost_is_a_number_or_a_spec() {
    for cost in ["abc", "nan", "inf", ""] {
        let said = trafoc(&["fit", "@gpt1", "--params", cost]);
        assert!(
            said.code == 2 && said.err.contains("is neither a number nor a spec"),
            "{cost}: {}",
            said.err
        );
    }
    // What is like the name of a spec has that suggested.
    let said = trafoc(&["fit", "@gpt1", "--params", "gpt2-small"]);
    assert!(said.err.contains("`@gpt2-small` is a spec"), "{}", said.err);
}
