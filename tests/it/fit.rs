//! Sizes that `fit` finds for a wanted cost: they compile, they have the stated cost, and no neighbouring
//! size is closer.

use trafoc::report::cost::cost;
use trafoc::report::costs::Name;
use trafoc::report::fit::{Fitter, Size, Unfit, Wanted};
use trafoc::report::scene::{Element, Scene};

use crate::compiled::{graph_with, repository};
use crate::front::Front;

fn fitter(name: &str) -> Fitter {
    Fitter::new(&Front::of_file(&repository(&format!("specs/{name}.yaml"))).compilation.spec.unwrap())
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

/// With a fixed number of key/value heads, heads are narrower the more there are, and so are keys and values.
#[test]
fn a_cost_may_fall_when_a_size_grows() {
    let text = "{trafo: 1, name: narrow, vocab: 50, context: 16, d_model: 64, head: lm, \
                decoder: {layers: 2, attention: {heads: 8, kv_heads: 2}}}";
    let fitter = Fitter::new(&Front::of_text("narrow.yaml", text, ".").compilation.spec.unwrap());
    let sizes = [fitter.size("heads").unwrap()];
    let found = fitter.fit(&sizes, &wanted(Name::Params, 106_000), 1);
    assert_eq!((found[0].sizes[0], found[0].value), (2, 106_496));
    assert_eq!(fitter.fit(&sizes, &wanted(Name::Params, 92_000), 1)[0].sizes[0], 16);
}

/// Ranges say which layers have what, so their number is no size that can vary.
#[test]
fn listed_layers_are_no_size() {
    let text = "{trafo: 1, name: listed, vocab: 50, context: 16, d_model: 64, head: lm, \
                decoder: {layers: 4, attention: {heads: 8}, ranges: {\"0..2\": {ffn: {expansion: 2}}}}}";
    let fitter = Fitter::new(&Front::of_text("listed.yaml", text, ".").compilation.spec.unwrap());
    assert_eq!(fitter.size("layers").unwrap_err(), Unfit::Listed("decoder".to_owned()));
    assert!(fitter.size("d_model").is_ok());
}

/// A factor without a short decimal form gives whole widths only if it is not rounded.
#[test]
fn widths_follow_a_factor_that_is_a_quotient() {
    let text = "{trafo: 1, name: thirds, vocab: 300, context: 64, d_model: 48, head: lm, \
                decoder: {layers: 4, attention: {heads: 6}, ffn: {glu: {expansion: 8/3}}}}";
    let fitter = Fitter::new(&Front::of_text("thirds.yaml", text, ".").compilation.spec.unwrap());
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
