//! Comparisons: normal forms of specs, their differences, and the effect of turning one knob.

use proptest::prelude::*;
use trafoc::draw::comparison::page;
use trafoc::draw::model::{Outline, outline};
use trafoc::report::compare::condition::Condition;
use trafoc::report::compare::effect::turn;
use trafoc::report::compare::form::Form;
use trafoc::report::compare::knob::{Knob, knobs};
use trafoc::report::compare::learning::{Learning, Run, curve};
use trafoc::report::compare::nearest::{Known, Near, nearest};
use trafoc::report::compare::normal::Wirings;
use trafoc::report::compare::timing::{Spread, Timed, Timing};
use trafoc::report::compare::{Comparison, Entry, Turned, compare};
use trafoc::report::cost::cost;
use trafoc::report::costs::Name;
use trafoc::report::scene::{Element, Scene};
use trafoc::source::SourceMap;
use trafoc::spec::ModelSpec;

use crate::compiled::{repository, specs};
use crate::front::{Front, known, shipped};
use crate::{laws, random};

mod cut;
mod same;

fn compiled(name: &str) -> Front {
    let front = Front::of_file(&repository(&format!("specs/{name}.yaml")));
    assert!(front.codes().is_empty(), "{}", front.rendered());
    front
}

/// Compares shipped specs at the length of the shortest context.
fn comparison(names: &[&str]) -> Comparison {
    let fronts: Vec<Front> = names.iter().map(|name| compiled(name)).collect();
    compared(names, &fronts)
}

fn compared(names: &[&str], fronts: &[Front]) -> Comparison {
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
        let front = Front::of_text("tiny.yaml", &text, "specs");
        prop_assert!(front.is_sound(), "{text}\n{}", front.rendered());
        let spec = front.compilation.spec.unwrap();
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

/// Two long values share no line, and neither is wider than the page.
#[test]
fn values_that_are_too_wide_take_lines_of_their_own() {
    let text = "name: blocks\nvocab: 8\ncontext: 16\nd_model: 128\ndecoder:\n  layers: 4\n  blocks:\n    dense: {}\n    \
         sparse: {ffn: {moe: {experts: 16, top_k: 2, expert: {glu: {hidden: 64}}}}}\n    local: {ffn: {expansion: 2}}\n  \
         pattern: [local, sparse, dense]\n  attention: {heads: 8}\n  ffn: {expansion: 4}\nhead: lm\n";
    let other = Front::of_text("blocks.yaml", text, "specs");
    let text = compared(&["gpt1", "blocks"], &[compiled("gpt1"), other]).text(80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    assert!(text.contains("\n  decoder.ffn\n      mlp(dropout 0.1) → "), "{text}");
}

fn knob<'c>(comparison: &'c Comparison, path: &str) -> &'c Turned {
    let all: Vec<&str> = comparison.knobs.iter().map(|t| t.knob.path.as_str()).collect();
    comparison.knobs.iter().find(|t| t.knob.path == path).unwrap_or_else(|| panic!("{path} in {all:?}"))
}

/// The effects of single knobs, worked out by hand for GPT-2 small and Mistral.
#[test]
fn effects_by_hand() {
    let c = comparison(&["gpt2-small", "gemma2-2b"]);
    let kv = knob(&c, "decoder.attention.kv_heads");
    assert_eq!(kv.knob.values, [Some("12".to_owned()), Some("4".to_owned())]);
    // Keys and values of 4 heads instead of 12, in 12 layers: 8 heads * 64 wide * (768 + 1 bias) * 2 fewer.
    let fewer = 12 * 2 * 8 * 64 * (768 + 1);
    let change = |name| kv.effect.as_ref().unwrap().costs.iter().find(|c| c.cost == name).copied().unwrap();
    let params = change(Name::Params);
    assert_eq!(params.from - params.to, fewer);
    // A token caches a key and a value of 64 per head in 12 layers, 2 bytes each.
    let kept = |heads: u128| 12 * 2 * heads * 64 * 2;
    assert_eq!((change(Name::KvPerToken).from, change(Name::KvPerToken).to), (kept(12), kept(4)));
    assert_eq!((kept(12), kept(4)), (36_864, 12_288));
    // The operations of a token: two less for each removed weight, none for a bias.
    let flops = change(Name::FlopsPerToken);
    assert_eq!(flops.from - flops.to, 12 * 2 * 8 * 64 * 768 * 2);
    // Sizes that only follow from others are not differences of their own.
    assert!(c.knobs.iter().any(|t| t.knob.path == "decoder.ffn.expansion" || t.knob.follows));
}

/// What the second spec leaves to a formula is shown as a number, and that number is priced: the formula would give 8 heads of
/// keys and values to the first spec.
#[test]
fn the_number_that_is_shown_is_priced() {
    let spec = |heads: &str| {
        let text = format!(
            "{{name: heads, vocab: 50, context: 16, d_model: 64, decoder: {{layers: 2, attention: {{{heads}}}}}, head: lm}}"
        );
        Front::of_text("heads.yaml", &text, ".")
    };
    let c = compared(&["a", "b"], &[spec("heads: 8, kv_heads: 2"), spec("heads: 4")]);
    let kv = knob(&c, "decoder.attention.kv_heads");
    assert_eq!(kv.knob.values, [Some("2".to_owned()), Some("4".to_owned())]);
    let change = |name| kv.effect.as_ref().unwrap().costs.iter().find(|c| c.cost == name).copied().unwrap();
    // Two more heads of keys and of values, 8 wide, in two layers: weights, biases, and two bytes each in the cache.
    let params = change(Name::Params);
    assert_eq!(params.to - params.from, 2 * 2 * 2 * 8 * (64 + 1));
    assert_eq!((change(Name::KvPerToken).from, change(Name::KvPerToken).to), (128, 256));
}

/// Where blocks have different parts, a difference is named by its block, and what is the same is not shown.
#[test]
fn blocks_with_different_parts_are_compared_one_by_one() {
    let spec = |sparse: &str, wide: &str| {
        let text = format!(
            "name: blocks\nvocab: 8\ncontext: 16\nd_model: 32\nembed: {{position: {{rotary: {{theta: 500}}}}}}\ndecoder:\n  \
             layers: 2\n  attention: {{heads: 2}}\n  pattern: [wide, sparse]\n  blocks:\n    sparse: {{ffn: {{moe: {{experts: 4, \
             top_k: 2, expert: {{mlp: {{hidden: 8}}}}{sparse}}}}}}}\n    wide: {{{wide}}}\nhead: lm\n"
        );
        Front::of_text("blocks.yaml", &text, "specs")
    };
    let differences = |a: Front, b: Front| -> Vec<(String, Vec<Option<String>>)> {
        let knobs = compared(&["a", "b"], &[a, b]).knobs;
        let given = knobs.into_iter().map(|turned| turned.knob).filter(|knob| !knob.follows);
        given.map(|knob| (knob.path, knob.values)).collect()
    };
    let both = |path: &str, from: &str, to: &str| {
        vec![(path.to_owned(), vec![Some(from.to_owned()), Some(to.to_owned())])]
    };
    let found = differences(spec("", ""), spec(", score: sigmoid", ""));
    assert_eq!(found, both("decoder.blocks.sparse.ffn.moe.score", "softmax", "sigmoid"));
    let found = differences(spec("", "ffn: {hidden: 64}"), spec("", "ffn: {hidden: 96}"));
    assert_eq!(found, both("decoder.blocks.wide.ffn.hidden", "64", "96"));
    // The positions of one spec are all those of its embedding, and are what those of the other's blocks differ from.
    let found = differences(spec("", ""), spec("", "position: rotary"));
    assert_eq!(found, both("decoder.position.rotary.theta", "500", "wide 10,000, sparse 500"));
    let c = compared(&["a", "b"], &[spec("", ""), spec(", router_bias: true", "")]);
    let bias = knob(&c, "decoder.blocks.sparse.ffn.moe.router_bias").effect.as_ref().unwrap();
    let changed = bias.costs.iter().find(|change| change.cost == Name::Params).unwrap();
    assert_eq!(changed.to - changed.from, 4);
}

/// A width that all authors wrote in one way is compared in that way, also where a sweep changes `d_model`.
#[test]
fn a_width_is_compared_as_it_was_written() {
    let spec = |d_model: u64, width: &str| {
        let text = format!(
            "name: m\nvocab: 8\ncontext: 8\nd_model: {d_model}\ndecoder: {{layers: 1, attention: {{heads: 2}}, \
             ffn: {{{width}}}}}\nhead: lm\n"
        );
        let front = Front::of_text("m.yaml", &text, ".");
        assert!(front.codes().is_empty(), "{}", front.rendered());
        front
    };
    let changed = |first: Front, second: Front| -> Vec<(String, bool)> {
        let knobs = compared(&["a", "b"], &[first, second]).knobs;
        knobs.into_iter().map(|turned| (turned.knob.path, turned.knob.follows)).collect()
    };
    let has =
        |found: &[(String, bool)], path: &str, follows: bool| found.contains(&(path.to_owned(), follows));
    let (expansion, hidden) = ("decoder.ffn.expansion", "decoder.ffn.hidden");
    let by_width = changed(spec(16, "hidden: 32"), spec(32, "hidden: 32"));
    assert!(has(&by_width, "d_model", false) && has(&by_width, expansion, true), "{by_width:?}");
    let both = changed(spec(16, "hidden: 32"), spec(32, "hidden: 64"));
    assert!(has(&both, hidden, false) && !both.iter().any(|(path, _)| path == expansion), "{both:?}");
    let by_multiple = changed(spec(16, "expansion: 2"), spec(32, "expansion: 2"));
    assert!(has(&by_multiple, hidden, true) && !has(&by_multiple, expansion, false), "{by_multiple:?}");
    let mixed = changed(spec(16, "hidden: 32"), spec(16, "expansion: 2"));
    assert_eq!(mixed, [], "the same model, written in two ways");
}

/// Of two equations that differ in a field, that field is shown and not the rest of them.
#[test]
fn parts_are_compared_line_by_line() {
    let spec = |hidden: &str, rest: &str| {
        let text = format!(
            "name: m\nvocab: 8\ncontext: 8\nd_model: 16\nparts:\n  unit: |\n    hidden = {hidden}\n{rest}    \
             linear[down](silu(linear[up](x, hidden)), d_model)\ndecoder: {{layers: 1, attention: {{heads: 2}}, \
             ffn: unit}}\nhead: lm\n"
        );
        let front = Front::of_text("m.yaml", &text, ".");
        assert!(front.codes().is_empty(), "{}", front.rendered());
        front
    };
    let told = |first: Front, second: Front| -> Vec<Option<String>> {
        knob(&compared(&["a", "b"], &[first, second]), "parts.unit").knob.values.clone()
    };
    let text = |words: &str| Some(words.to_owned());
    let field = told(spec("2 * d_model", ""), spec("4 * d_model", ""));
    assert_eq!(field, [text("hidden = 2 * d_model"), text("hidden = 4 * d_model")]);
    let line = told(spec("2 * d_model", ""), spec("2 * d_model", "    x = 2 * x\n"));
    assert_eq!(line, [text("none"), text("x = 2 * x")]);
}

/// Turning every knob gives the other model.
#[test]
fn knobs_together_are_the_whole_difference() {
    let wirings = Wirings::default();
    let all: Vec<_> = specs("specs")
        .into_iter()
        .map(|(name, path)| {
            let spec = Front::of_file(&path).compilation.spec.unwrap();
            (name, wirings.normal(&spec), spec)
        })
        .collect();
    for (a, normal, from) in &all {
        for (b, wanted, to) in &all {
            let forms = [normal.clone(), wanted.clone()];
            let differ = knobs(&forms);
            let turned = turned_spec(&wirings, &forms, &differ);
            let renamed =
                ModelSpec { name: to.name.clone(), ..turned.unwrap_or_else(|| panic!("{a} to {b}")) };
            if renamed != *to {
                let left = knobs(&[wirings.normal(&renamed), forms[1].clone()]);
                let left: Vec<_> = left.iter().map(|k| (&k.path, &k.values)).collect();
                panic!("{a} to {b}: {left:?}");
            }
            assert_eq!(
                differ.is_empty(),
                ModelSpec { name: to.name.clone(), ..from.clone() } == *to,
                "{a} to {b}"
            );
        }
    }
}

fn turned_spec(wirings: &Wirings, forms: &[Form; 2], knobs: &[Knob]) -> Option<ModelSpec> {
    let mut form = forms[0].clone();
    for knob in knobs {
        turn(&mut form, &forms[1], knob, 1);
    }
    wirings.decode(&form)
}

fn judged(condition: &str, comparison: &Comparison) -> Vec<bool> {
    let condition = Condition::parse(&mut SourceMap::new(), condition).unwrap();
    let first = &comparison.models[0].costs;
    comparison.models.iter().map(|m| condition.judge(&m.name, &m.costs, first).unwrap().holds).collect()
}

#[test]
fn conditions_judge_exact_numbers() {
    let c = comparison(&["gpt1", "gpt2-small"]);
    for (condition, holds) in [
        ("params > 125e6", [true, false]),
        ("params == 124_439_808", [false, true]),
        ("params != first.params", [false, true]),
        ("params <= 0.9 * first.params", [false, true]),
        ("kv_per_token > 2 * first.kv_per_token", [false, false]),
        ("(embedding + head) / params < 1/3", [false, true]),
    ] {
        assert_eq!(judged(condition, &c), holds, "{condition}");
    }
    for (wrong, message) in [
        ("params", "a condition must compare two numbers"),
        ("params >", "one side of the comparison is empty"),
        ("1 < params < 2", "a condition can compare only two numbers"),
        ("parms > 1", "nothing is named `parms` here"),
        ("params > 125Q", "`125Q` is neither a number nor a name"),
        ("params >> 1", "a condition can compare only two numbers"),
        ("params = 1", "a condition must compare two numbers"),
        ("", "a condition must compare two numbers"),
    ] {
        let said = Condition::parse(&mut SourceMap::new(), wrong).unwrap_err();
        assert_eq!(said.message, message, "{wrong}");
    }
}

#[test]
fn the_nearest_spec_is_of_the_same_family() {
    let shipped = shipped();
    let known = known(&shipped);
    // An exchanged feed-forward part is a larger difference than a few knobs.
    for (name, expected) in [
        ("llama3-8b", "mistral-7b"),
        ("falcon-7b", "llama3-8b"),
        ("bert-qa", "bert-base"),
        ("gpt2-small", "pythia-160m"),
        ("deepseek-v3-tiny", "mixtral-8x7b"),
        ("vit-b16", "vit"),
        ("bart-base", "transformer"),
        // A model of a thousandth of the size is only nearer if its structure is.
        ("gpt1", "gpt2-small"),
        ("gbt-mulm", "gpt2-small"),
    ] {
        let own = known.iter().find(|k| k.name == name).unwrap();
        let others: Vec<Known<'_>> = known.iter().filter(|k| k.name != name).copied().collect();
        let near = nearest(own.spec, own.graph, &others);
        assert_eq!(near[0].name, expected, "{name}: {near:?}");
        let itself = Near { name: name.to_owned(), distance: 0.0 };
        assert_eq!(nearest(own.spec, own.graph, &known)[0], itself);
    }
}

#[test]
fn tables_of_a_comparison_hold_its_numbers() {
    let c = comparison(&["gpt2-small", "vit-b16"]);
    let csv = c.csv();
    assert!(
        csv.starts_with("section,name,gpt2-small,vit-b16,alone\ncost,params,124439808,86567656,\n"),
        "{csv}"
    );
    assert!(csv.contains("\ncost,kv_per_token,36864,,\n"), "{csv}");
    // Differences have plain numbers, too, and all digits.
    let csv = comparison(&["gpt1", "gpt2-small"]).csv();
    for row in [
        "\nforward,vocab,40000,50257,\"params +15765009, flops_per_token +15754752\"\n",
        "\nforward,head.lm.tied,false,true,params -30720000\n",
        "\ninit,init.residual,1,0.20412414523193154,\n",
    ] {
        assert!(csv.contains(row), "{row}: {csv}");
    }
    let width = |line: &str| line.matches(" | ").count();
    let markdown = c.markdown();
    let rows: Vec<&str> = markdown.lines().filter(|l| l.starts_with('|')).collect();
    assert!(rows.iter().filter(|l| width(l) == 3).count() > 4, "{markdown}");
    // The correction of 8 experts in 2 layers is no parameter, and a line of its own where a model has one.
    let biased = comparison(&["deepseek-v3-tiny", "gpt2-small"]);
    assert!(biased.csv().contains("\ncost,buffers,16,0,\n"), "{}", biased.csv());
    assert!(biased.text(80).contains("\nbuffers "), "{}", biased.text(80));
    assert!(!c.text(80).contains("buffers"), "{}", c.text(80));
    let json = serde_json::to_value(&c).unwrap();
    assert_eq!(json["models"][0]["costs"]["params"], 124_439_808);
    assert!(json["models"][1]["costs"]["kv"].is_null());
    assert_eq!(json["knobs"][0]["path"], "vocab");
}

/// A page needs no other file, whatever the name of a spec, and stays small.
#[test]
fn a_page_is_one_file() {
    let fronts = ["gpt1", "mixtral-8x7b", "t5-small"].map(compiled);
    let hostile = "</script><img src=x onerror=alert(1)>";
    let entries: Vec<Entry<'_>> = fronts
        .iter()
        .map(|f| &f.compilation)
        .map(|c| Entry { name: hostile, spec: c.spec.as_ref().unwrap(), graph: c.graph.as_ref().unwrap() })
        .collect();
    let scene = Scene { batch: 1, tokens: 128, element: Element::Bf16 };
    let outlines: Vec<_> = fronts
        .iter()
        .map(|f| Outline {
            name: hostile.to_owned(),
            ..outline(f.compilation.graph.as_ref().unwrap(), &f.sources)
        })
        .collect();
    for n in [1, 2, 3] {
        let html = page(&compare(&entries[..n], scene), &outlines[..n]).html();
        assert!(html.len() < 1 << 20, "{}", html.len());
        assert!(!html.contains(hostile) && !html.contains("http://www.w3.org/1999/xhtml"));
        for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert_eq!(html, page(&compare(&entries[..n], scene), &outlines[..n]).html());
    }
}

/// The ranks of the sign test's table: of 10 runs the second and the ninth, of 20 the sixth and the
/// fifteenth.
#[test]
fn the_interval_of_a_median_lies_between_order_statistics() {
    for (runs, low, high) in [(1, 1.0, 1.0), (5, 1.0, 5.0), (6, 1.0, 6.0), (10, 2.0, 9.0), (20, 6.0, 15.0)] {
        let seconds: Vec<f64> = (1..=runs).rev().map(f64::from).collect();
        let spread = Spread::of(&seconds).unwrap();
        assert_eq!(spread.interval, [low, high], "{runs}");
        assert_eq!(spread.median, f64::from(runs + 1) / 2.0);
    }
    let many: Vec<f64> = (0..1001).map(f64::from).collect();
    let spread = Spread::of(&many).unwrap();
    assert!(spread.interval[0] < 500.0 && spread.interval[0] > 460.0, "{spread:?}");
    assert_eq!(spread.quartiles, [250.0, 750.0]);
    assert!(Spread::of(&[]).is_none());
}

fn spread(from: f64) -> Spread {
    Spread::of(&(0..10).map(|i| from + f64::from(i) * 0.1).collect::<Vec<_>>()).unwrap()
}

fn timed(name: &str, forward: f64, step: Option<f64>) -> Timed {
    let untrained = step.is_none().then(|| "its head has no target to be trained on".to_owned());
    Timed { name: name.to_owned(), forward: spread(forward), step: step.map(spread), untrained }
}

#[test]
fn no_winner_is_called_where_intervals_overlap() {
    let models = vec![timed("a", 2.0, Some(9.0)), timed("b", 2.3, Some(4.0)), timed("c", 9.0, None)];
    let mut c = comparison(&["gpt1", "gpt2-small", "llama3-8b"]);
    c.timing = Some(Timing {
        device: "flex".into(),
        processor: Some("a machine".into()),
        threads: 2,
        batch: 1,
        tokens: 8,
        models,
    });
    let text = c.text(80);
    assert!(text.contains("forward: undecided, the intervals of a and b overlap"), "{text}");
    assert!(text.contains("training step: b takes the least time, a takes 2.12 times as long"), "{text}");
    assert!(
        text.contains("c cannot make a training step: its head has no target to be trained on"),
        "{text}"
    );
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(c.csv().contains("\nmeasured,step_runs,10,10,\n"), "{}", c.csv());
    assert!(c.markdown().contains("- forward: undecided"));
    assert!(page(&c, &[]).html().contains("A forward pass"));
}

fn run(seed: u64, last: f64) -> Run {
    let steps = (1..=250).map(|s| (s, last + 1.0 / s as f64)).collect();
    Run { seed, steps, last: Some(last), failed: None }
}

fn runs(losses: &[f64]) -> Vec<Run> {
    losses.iter().zip(0..).map(|(l, seed)| run(seed, *l)).collect()
}

/// Differences of 0.10, 0.12 and 0.11 have the mean 0.11 and the standard error 0.01 / sqrt(3), and t for two
/// degrees of freedom is 4.303.
#[test]
fn what_was_learned_is_compared_seed_by_seed() {
    let all = vec![
        ("<b>".to_owned(), runs(&[1.0, 2.0, 3.0])),
        ("worse".to_owned(), runs(&[1.10, 2.12, 3.11])),
        ("alike".to_owned(), runs(&[1.1, 1.9, 3.05])),
    ];
    let learning = Learning::of("r.yaml", "validation", 250, 3, &all);
    assert!(learning.complete && learning.seeds == [0, 1, 2]);
    let [low, high] = learning.differences[0].interval.unwrap();
    let reach = 4.303 * 0.01 / 3f64.sqrt();
    assert!((low - (0.11 - reach)).abs() < 1e-9 && (high - (0.11 + reach)).abs() < 1e-9);
    assert_eq!(learning.differences.iter().map(|d| d.noise).collect::<Vec<_>>(), [Some(false), Some(true)]);
    let said = learning.verdicts();
    assert!(said[0].ends_with("<b> learned more") && said[1].ends_with("within the noise"), "{said:?}");
    let points = &learning.models[0].curve;
    assert_eq!((points.len(), points[83].step), (84, 250));
    assert!((points[0].high - points[0].low - 2.0).abs() < 1e-9);
    let mut c = comparison(&["gpt1", "gpt2-small", "llama3-8b"]);
    c.learning = Some(learning);
    let html = page(&c, &[]).html();
    assert!(html.contains("Training loss") && !html.contains("<b>") && html == page(&c, &[]).html());
    assert!(c.csv().contains("\ntrained,loss_seed_2,3,3.11,3.05\n"), "{}", c.csv());
    // Results that not every model has are left out, and one seed does not show the noise.
    let part = vec![("a".to_owned(), runs(&[1.0, 2.0])), ("b".to_owned(), runs(&[1.5]))];
    let learning = Learning::of("r.yaml", "train", 250, 2, &part);
    assert!(!learning.complete && learning.seeds == [0] && learning.differences[0].noise.is_none());
    let stopped = learning.stopped.as_ref().unwrap();
    assert_eq!((stopped.seed, stopped.step, stopped.models[1].training_loss), (1, 250, None));
    // The first seed was stopped: how far each model came, and the losses at the step that all had reached.
    let mut half = run(0, 2.0);
    (half.last, half.steps) = (None, half.steps[..20].to_vec());
    let part = vec![("a".to_owned(), runs(&[1.0])), ("b".to_owned(), vec![half])];
    let learning = Learning::of("r.yaml", "train", 250, 2, &part);
    let text = learning.text(60);
    assert!(learning.seeds.is_empty() && learning.title().ends_with("stopped"));
    let mean = (11..=20).map(|s| 1.0 / f64::from(s)).sum::<f64>() / 10.0;
    assert!(text.contains(&format!("   20         {:.4}\n", 2.0 + mean)), "{text}");
    assert!(text.contains(&format!("  250         {:.4}\n", 1.0 + mean)), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 60), "{text}");
    let rows = learning.plain();
    assert_eq!(rows[3], ("stopped_steps_seed_0".to_owned(), vec!["250".to_owned(), "20".to_owned()]));
    c.learning = Some(learning);
    assert!(page(&c, &[]).html().contains("What they learned before training was stopped"));
    assert!(curve(&[]).is_empty());
    // A model that failed is left out, even if it is the first; the others are compared.
    let mut lost = run(1, 2.0);
    (lost.last, lost.steps, lost.failed) = (None, lost.steps[..7].to_vec(), Some("no number".to_owned()));
    let mut part = vec![
        ("a".to_owned(), vec![run(0, 1.0), lost]),
        ("b".to_owned(), runs(&[1.0, 2.0])),
        ("c".to_owned(), runs(&[1.5, 2.5])),
    ];
    let learning = Learning::of("r.yaml", "train", 250, 2, &part);
    assert!(learning.complete && learning.stopped.is_none() && learning.seeds == [0, 1]);
    assert_eq!((learning.differences[0].than.as_str(), learning.differences[0].mean), ("b", 0.5));
    let text = learning.text(60);
    assert!(text.contains("\na failed with seed 1 after 7 steps: no number\n"), "{text}");
    assert!(text.contains("failed  "), "{text}");
    assert!(
        learning.plain().contains(&("failed_after_steps".into(), vec!["7".into(), "".into(), "".into()]))
    );
    // All models failed, which is not the same as being stopped.
    part.truncate(1);
    let learning = Learning::of("r.yaml", "train", 250, 2, &part);
    assert!(learning.complete && learning.title() == "what they learned", "{}", learning.text(60));
}

/// A comparison with everything that is measured, as a page of notes and a spreadsheet take it over: the losses
/// of whole seeds, and of a first seed that was stopped.
#[test]
fn tables_of_what_was_measured_are_as_before() {
    let mut c = comparison(&["gpt1", "gpt2-small"]);
    let models = vec![timed("gpt1", 2.0, Some(9.0)), timed("gpt2-small", 2.3, None)];
    let processor = Some("a machine".into());
    c.timing = Some(Timing { device: "flex".into(), processor, threads: 2, batch: 1, tokens: 8, models });
    let mut half = run(0, 2.0);
    (half.last, half.steps) = (None, half.steps[..20].to_vec());
    for (name, other) in [("whole", runs(&[1.10, 2.12])), ("stopped", vec![half])] {
        let all = [("gpt1".to_owned(), runs(&[1.0, 2.0])), ("gpt2-small".to_owned(), other)];
        let learning = Learning::of("r.yaml", "validation", 250, 2, &all);
        let text = learning.text(80);
        c.learning = Some(learning);
        let all = [c.markdown(), c.csv(), text].join("\n\n");
        insta::with_settings!({
            snapshot_path => "../snap/compare", prepend_module_to_snapshot => false, omit_expression => true
        }, { insta::assert_snapshot!(format!("measured-{name}"), all) });
    }
}

/// Ten specs on one page, which stays small.
#[test]
fn a_page_of_ten_specs_is_small() {
    let names = [
        "gpt1",
        "gpt2-small",
        "llama3-8b",
        "mistral-7b",
        "mixtral-8x7b",
        "gemma2-2b",
        "pythia-160m",
        "qwen2.5-0.5b",
        "falcon-7b",
        "bart-base",
    ];
    let of = |front: &Front, name: &str| {
        let graph = front.compilation.graph.as_ref().unwrap();
        Outline { name: name.to_owned(), ..outline(graph, &front.sources) }
    };
    let outlines: Vec<Outline> = names.iter().map(|name| of(&compiled(name), name)).collect();
    let html = page(&comparison(&names), &outlines).html();
    assert!(html.len() < 1 << 20, "{}", html.len());
}
