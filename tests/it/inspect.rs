//! The results of `inspect` against numbers worked out by hand.

use std::collections::BTreeMap;

use trafoc::inspect::attention::{Heads, grids, masks};
use trafoc::inspect::data::{self, Contents, Lengths, Vocabulary};
use trafoc::inspect::flow::{flow, rollout};
use trafoc::inspect::layers::{Outputs, planes, project};
use trafoc::inspect::norms::{self, batch_norm, layer_norm};
use trafoc::inspect::positions::{self, FIRST, Model, positions};
use trafoc::inspect::sites::{Kind, NormKind, Sequence, Site, Stack, sites};
use trafoc::inspect::start::{self, spread, started};
use trafoc::inspect::steps::{Head, computed, difference, steps};
use trafoc::inspect::training::{Course, Step, training};
use trafoc::inspect::{Matrix, Report};
use trafoc::ir::factor::Root;
use trafoc::ir::op::{Attention, MaskRule, Score, Slopes, Window};
use trafoc::ir::{Factor, Init, Verified};

use crate::compiled::repository;
use crate::front::Front;

mod texts;

fn graph(name: &str) -> Verified {
    let front = Front::of_file(&repository(&format!("specs/{name}.yaml")));
    front.compilation.graph.unwrap_or_else(|| panic!("{name}"))
}

fn dot() -> Attention {
    Attention {
        score: Score::Dot,
        scale: Factor::new(0.5f64.sqrt(), Some(Root { of: 2.into(), is_inverse: true })),
        softcap: None,
        causal: true,
        dropout: 0.0,
        has_mask: false,
        has_bias: false,
        has_sinks: false,
    }
}

fn site(kind: Kind, rules: Vec<MaskRule>) -> Site {
    let path = "decoder.blocks.0.attention".to_owned();
    let (queries, keys) = (Sequence::Target, Sequence::Target);
    let weights = format!("{path}.weights");
    let (inputs, output) = (Vec::new(), String::new());
    Site {
        weights,
        path,
        kind,
        queries,
        keys,
        sizes: [None; 2],
        layer: 0,
        round: 0,
        among: None,
        heads: 1,
        rules,
        op: Some(dot()),
        inputs,
        prepared: Vec::new(),
        output,
    }
}

fn heads(values: &[[f64; 3]; 3]) -> Heads {
    let words = ["the", "</title>", "\u{202e}sat"].map(str::to_owned).to_vec();
    Heads {
        site: site(Kind::Encoder, Vec::new()),
        weights: vec![Matrix::new(3, 3, values.concat())],
        first: 0,
        queries: words.clone(),
        keys: words,
    }
}

/// The heads of this layer.
fn at(layer: u64, mut heads: Heads) -> Heads {
    heads.site.layer = layer;
    heads
}

fn assert_small(report: &Report) {
    let html = report.page().html();
    assert!(html.len() < 1_000_000 && !html.contains("NaN"), "{}: {}", report.title, html.len());
    assert_eq!(html, report.page().html());
    assert!(!report.figure().svg().contains("NaN"));
}

#[test]
fn what_is_too_wide_for_a_line_takes_two() {
    for name in ["t5-small", "deepseek-v3-tiny", "vit-b16"] {
        let parameters = started(&graph(name));
        let report = start::report(name, &parameters, &[], &[]);
        let (narrow, wide) = (report.text(80), report.text(200));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&wide));
        assert_eq!(narrow.lines().count() - wide.lines().count(), parameters.len() + 2, "{narrow}");
    }
}

#[test]
fn facts_and_sentences_are_broken_into_lines() {
    let command =
        "trafoc train gpt.yaml --recipe gpt.recipe.yaml --out run --device flex --threads 2 --with steps=600";
    let meaning =
        "whole numbers: ids of the translation, shifted by one position: the tokens before the predicted one";
    let part = trafoc::inspect::Part {
        title: "Part".into(),
        facts: vec![("begun".into(), command.into()), ("last".into(), "2.1859".into())],
        table: Some((
            ["name", "shape", "meaning"].map(String::from).to_vec(),
            vec![["source_mask", "[64, 4]", "1 for a token"], ["target", "[64, 4]", meaning]]
                .into_iter()
                .map(|row| row.map(String::from).to_vec())
                .collect(),
        )),
        ..trafoc::inspect::Part::default()
    };
    let report = Report { title: "t".into(), lead: "l".into(), parts: vec![part] };
    insta::assert_snapshot!(report.text(80), @r"
    t
    l

    Part
      begun  trafoc train gpt.yaml --recipe gpt.recipe.yaml --out run --device flex
             --threads 2 --with steps=600
      last   2.1859
      name         shape    meaning
      source_mask  [64, 4]  1 for a token
      target       [64, 4]  whole numbers: ids of the translation, shifted by one
                            position: the tokens before the predicted one
    ");
    assert!(report.text(200).contains(command) && report.text(200).contains(meaning));
}

#[test]
fn every_attention_of_a_model_is_a_site() {
    let t5 = sites(&graph("t5-small"));
    let count = |kind| t5.attention.iter().filter(|s| s.kind == kind).count();
    assert_eq!([Kind::Encoder, Kind::Decoder, Kind::Cross].map(count), [6, 6, 6]);
    assert_eq!(t5.layers.len(), 12);
    assert_eq!(t5.attention[0].weights, "encoder.blocks.0.attention.weights");
    assert_eq!(t5.layers[11].path, "decoder.blocks.5.x_4");
    let gemma = sites(&graph("gemma2-2b"));
    assert!(gemma.attention[0].hides(5000, 900) && !gemma.attention[0].hides(5000, 905));
    assert!(!gemma.attention[1].hides(5000, 900) && gemma.attention[1].hides(3, 4));
}

#[test]
fn rules_hide_what_they_say() {
    let window = MaskRule { window: Some(Window { size: 3, centred: true }), ..MaskRule::default() };
    let chunk = MaskRule { chunk: Some(4), ..MaskRule::default() };
    let prefix = MaskRule { causal: true, prefix: Some(2), ..MaskRule::default() };
    let seen = |rule, query| -> Vec<u64> {
        let site = site(Kind::Decoder, vec![rule]);
        (0..8).filter(|key| !site.hides(query, *key)).collect()
    };
    assert_eq!(seen(window, 5), [4, 5, 6]);
    assert_eq!(seen(chunk, 5), [4, 5, 6, 7]);
    assert_eq!(seen(prefix, 0), [0, 1]);
    assert_eq!(seen(prefix, 3), [0, 1, 2, 3]);
    // A prefix lifts causality only.
    let window = Some(Window { size: 3, centred: false });
    assert_eq!(seen(MaskRule { window, ..prefix }, 0), [0, 1]);
    assert_eq!(seen(MaskRule { window, ..prefix }, 4), [2, 3, 4]);
    assert_eq!(seen(MaskRule { window, prefix: Some(6), ..prefix }, 2), [0, 1, 2, 3, 4]);
    assert_eq!(seen(MaskRule { chunk: Some(4), ..prefix }, 5), [4, 5]);
}

#[test]
fn rollout_adds_the_residual_path_and_multiplies_layers() {
    let first = heads(&[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]);
    let second = at(1, heads(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]));
    let rolled = rollout(&[first.clone(), second.clone()]);
    // (A + I) / 2 of the first layer: row 2 is 0.1, 0.15, 0.75; row 1 is 0.25, 0.75, 0.
    assert_eq!(rolled[0].row(2), [0.1, 0.15, 0.75]);
    // Row 2 of the second is 0.25, 0.25, 0.5: 0.25 * [1, 0, 0] + 0.25 * [0.25, 0.75, 0] + 0.5 * the above.
    let wanted = [0.25 + 0.0625 + 0.05, 0.1875 + 0.075, 0.375];
    for (found, wanted) in rolled[1].row(2).iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    }
    let report = flow("m", &[first, second], 2);
    assert_small(&report);
    assert_eq!(report.parts[0].facts[0], ("from 2 \u{202e}sat".to_owned(), "0.375".to_owned()));
    assert!(!report.page().html().contains('\u{202e}'));
}

/// Attentions that a layer adds up are one step: the mean over them, then the residual path.
#[test]
fn parallel_attentions_are_one_step_of_the_rollout() {
    let spec = |block: &str| {
        let text = format!(
            "trafo: 1\nname: two\nvocab: 16\ncontext: 8\nd_model: 8\ndecoder:\n  layers: 2\n  attention: \
            {{heads: 2}}\n  norm: layer_norm\n  block: |\n{block}  a: {{mask: {{window: 2}}}}\n  b: {{heads: 4}}\nhead: lm\n"
        );
        let front = Front::of_text("two.yaml", &text, "");
        sites(&front.compilation.graph.unwrap_or_else(|| panic!("{text}"))).attention
    };
    let parallel =
        spec("    (x):\n    h = norm(x)\n    near = x + attention[a](h)\n    x = near + attention[b](h)\n");
    let following =
        spec("    (x):\n    x = x + attention[a](norm1(x))\n    x = x + attention[b](norm2(x))\n");
    let rounds = |sites: &[Site]| sites.iter().map(|s| (s.layer, s.round)).collect::<Vec<_>>();
    assert_eq!(rounds(&parallel), [(0, 0), (0, 0), (1, 0), (1, 0)]);
    assert_eq!(rounds(&following), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let titles: Vec<String> = parallel.iter().map(Site::title).collect();
    assert_eq!(titles[..2], ["decoder attention, layer 0, a", "decoder attention, layer 0, b"]);

    let weights = [
        heads(&[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        heads(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    ];
    let with = |sites: &[Site]| -> Vec<Heads> {
        sites
            .iter()
            .zip(&weights)
            .map(|(site, heads)| Heads { site: site.clone(), ..heads.clone() })
            .collect()
    };
    // The mean of the two: row 1 is 0.5, 0.5, 0, and row 2 is 0.5, 0, 0.5.
    let rolled = rollout(&with(&parallel));
    assert_eq!(rolled.len(), 1);
    assert_eq!((rolled[0].row(1), rolled[0].row(2)), (&[0.25, 0.75, 0.0][..], &[0.25, 0.0, 0.75][..]));
    let rolled = rollout(&with(&following));
    assert_eq!(rolled.len(), 2);
    assert_eq!(rolled[1].row(2), [0.5, 0.0, 0.5]);
    let drawn = flow("m", &with(&following), 2).page().html();
    assert!(drawn.contains("layer 0.0") && drawn.contains("layer 0.1"));
    let drawn = flow("m", &with(&parallel), 2).page().html();
    assert!(drawn.contains("layer 0<") && !drawn.contains("layer 1"));
}

#[test]
fn projections_keep_what_lies_in_a_plane() {
    // Points of a plane in four dimensions: along (3, 4, 0, 0) / 5 and (0, 0, 1, 0), with spreads 4 and 1.
    let plane = [(-4.0, 1.0), (4.0, 1.0), (-4.0, -1.0), (4.0, -1.0)];
    let values = plane.iter().flat_map(|(a, b)| [0.6 * a + 7.0, 0.8 * a, *b, 2.0]).collect();
    let found = project(&Matrix::new(4, 4, values));
    assert!(
        (found.explained.0 - 16.0 / 17.0).abs() < 1e-12 && (found.explained.1 - 1.0 / 17.0).abs() < 1e-12
    );
    for (point, (a, b)) in found.points.iter().zip(plane) {
        assert!((point.0.abs() - f64::abs(a)).abs() < 1e-9 && (point.1.abs() - f64::abs(b)).abs() < 1e-9);
    }
    assert_eq!(project(&Matrix::new(1, 3, vec![1.0, 2.0, 3.0])).points, [(0.0, 0.0)]);
    assert_small(&planes(
        "m",
        &[Outputs { title: "layer 0".into(), values: Matrix::new(4, 4, vec![0.5; 16]), words: Vec::new() }],
    ));
}

#[test]
fn declared_spreads_are_those_of_the_formulas() {
    let of = |init: Init| spread(&init, &[300, 100]).0;
    let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
    assert!(near(of(Init::Normal { std: 0.02 }), 0.02));
    assert!(near(of(Init::Uniform { bound: 0.3 }), 0.3 / 3f64.sqrt()));
    assert!(near(of(Init::XavierUniform { gain: 1.0 }), (2.0f64 / 400.0).sqrt()));
    assert!(near(of(Init::XavierNormal { gain: 1.0 }), (2.0f64 / 400.0).sqrt()));
    assert!(near(of(Init::KaimingNormal { gain: 2f64.sqrt() }), (2.0f64 / 100.0).sqrt()));
    // The standard deviation of a normal distribution truncated at two is 0.8796.
    assert!(near(of(Init::TruncatedNormal { std: 1.0, cut: 2.0 }), 0.8796));
    let gpt = started(&graph("gpt1"));
    let up = gpt.iter().find(|p| p.parameter.path == "decoder.blocks.*.ffn.up.weight").unwrap();
    assert_eq!((up.declared, up.first.as_str()), (0.02, "decoder.blocks.0.ffn.up.weight"));
}

static NONE: BTreeMap<String, Vec<f32>> = BTreeMap::new();

fn untrained(graph: &Verified) -> Model<'_> {
    Model { graph, tables: &NONE }
}

/// Tables are looked up by their paths in files, and drawn as they are stored.
#[test]
fn trained_positions_are_drawn() {
    for (name, paths, figures) in [
        ("gpt1", vec!["embed.positions.weight"], vec![4]),
        ("vit", vec!["embed.positions.weight"], vec![4]),
        ("t5-small", vec!["encoder.relative_bias.weight", "decoder.relative_bias.weight"], vec![2, 2]),
        ("llama3-8b", vec![], vec![2]),
    ] {
        let graph = graph(name);
        let wanted = positions::tables(&graph);
        assert_eq!(wanted, paths, "{name}");
        let known = trafoc::ir::paths::folded(&graph);
        let tables: BTreeMap<String, Vec<f32>> = wanted
            .into_iter()
            .map(|path| {
                let found = known.iter().find(|p| p.path == path).unwrap_or_else(|| panic!("{path}"));
                let count = usize::try_from(found.elements()).unwrap();
                (path, (0..count).map(|i| (i as f32 * 0.37).sin()).collect())
            })
            .collect();
        let report = positions(&[Model { graph: &graph, tables: &tables }], &FIRST);
        let found: Vec<usize> = report.parts.iter().map(|p| p.figures.len()).collect();
        assert_eq!(found, figures, "{name}");
        assert_small(&report);
    }
}

#[test]
fn every_scheme_of_positions_has_its_part() {
    for (name, titles) in [
        ("transformer", vec!["Sinusoidal positions"]),
        ("gpt1", vec!["Learned positions"]),
        ("llama3-8b", vec!["Rotary positions"]),
        ("t5-small", vec!["T5 buckets, in Encoder", "T5 buckets, in Decoder"]),
        ("vit", vec!["Learned positions"]),
    ] {
        let report = positions(&[untrained(&graph(name))], &FIRST);
        let found: Vec<&str> = report.parts.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(found, titles, "{name}");
        assert_small(&report);
    }
    let both = positions(&[untrained(&graph("transformer")), untrained(&graph("llama3-8b"))], &FIRST);
    // Each model's own parts follow each other, after a table of all.
    let titles: Vec<&str> = both.parts.iter().map(|p| p.title.as_str()).collect();
    let wanted =
        ["Which positions they have", "transformer: Sinusoidal positions", "llama3-8b: Rotary positions"];
    assert_eq!(titles, wanted);
    assert_eq!(both.parts[0].table.as_ref().unwrap().1.len(), 2);
    assert_eq!(both.parts.iter().map(|p| p.figures.len()).collect::<Vec<_>>(), [0, 3, 2]);
    assert_small(&both);
}

/// Twelve heads have the slopes of eight and every second one of sixteen: the steepest is the ninth, and the
/// flattest the eighth (Press, Smith, Lewis 2021).
#[test]
fn the_steepest_head_is_not_always_the_first() {
    let slopes = |heads: u64| Slopes { heads: heads.into(), max: 8.0, scale: 1.0 };
    assert_eq!(slopes(12).range(), (2f64.powi(-8), 0.5f64.sqrt()));
    assert_eq!(slopes(8).range(), (2f64.powi(-8), 0.5));
    assert_eq!(slopes(1).range(), (2f64.powi(-8), 2f64.powi(-8)));
    for heads in 1..70 {
        let all: Vec<f64> = (0..heads).map(|head| slopes(heads).slope(head)).collect();
        let fold = |f: fn(f64, f64) -> f64| all.iter().copied().reduce(f).unwrap();
        assert_eq!(slopes(heads).range(), (fold(f64::min), fold(f64::max)), "{heads} heads");
    }
    let text = "name: a\nvocab: 8\ncontext: 16\nd_model: 48\ndecoder: {layers: 1, position: alibi, attention: {heads: 12}}\nhead: lm\n";
    let graph = Front::of_text("a.yaml", text, "specs").compilation.graph.unwrap();
    let facts = positions(&[untrained(&graph)], &FIRST).parts[0].facts.clone();
    let fact = |name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    assert_eq!((fact("steepest"), fact("flattest")), (Some("0.70711"), Some("0.003906")));
}

/// A mask's picture is as large as its rules need: what a rule hides shows, and is not all there is.
#[test]
fn every_rule_of_a_mask_shows() {
    let causal = MaskRule { causal: true, ..MaskRule::default() };
    let window = |size, centred| Some(Window { size, centred });
    let rules = [
        ("window", MaskRule { window: window(4096, false), ..causal }),
        ("small window", MaskRule { window: window(3, false), ..causal }),
        ("both sides", MaskRule { window: window(1025, true), ..MaskRule::default() }),
        ("chunk", MaskRule { chunk: Some(2048), ..causal }),
        ("prefix", MaskRule { prefix: Some(1000), ..causal }),
    ];
    for (name, rule) in rules {
        let all = [vec![rule], vec![MaskRule { causal: rule.causal, ..MaskRule::default() }]];
        let all = all.map(|rules| site(Kind::Decoder, rules));
        let report = masks("m", &all, 8192);
        let figures: Vec<String> = report.parts[0].figures.iter().map(|figure| figure.svg()).collect();
        let [with, without] = figures.as_slice() else { panic!("{name}: {} pictures", figures.len()) };
        assert_ne!(cells(with), cells(without), "{name}");
        assert_small(&report);
    }
    // Two rules of very different sizes take a picture each.
    let both = MaskRule { window: window(5, false), chunk: Some(4000), ..causal };
    let report = masks("m", &[site(Kind::Decoder, vec![both])], 8192);
    let (_, rows) = report.parts[0].table.clone().unwrap();
    let lengths: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(lengths, ["32", "8,000"]);
    // A window as long as the context hides nothing there, and is drawn as long as that.
    let idle = MaskRule { window: window(64, false), ..causal };
    let report = masks("m", &[site(Kind::Decoder, vec![idle])], 64);
    assert_eq!(report.parts[0].table.clone().unwrap().1[0][2], "32");
}

/// The image of a heatmap's cells.
fn cells(svg: &str) -> &str {
    let (_, rest) = svg.split_once("data:image").unwrap();
    rest.split('"').next().unwrap()
}

#[test]
fn masks_and_grids_bear_long_inputs() {
    let gemma = graph("gemma2-2b");
    let report = masks("gemma2-2b", &sites(&gemma).attention, gemma.context);
    let figures: Vec<String> = report.parts[0].figures.iter().map(|figure| figure.svg()).collect();
    let [local, global] = figures.as_slice() else { panic!("{} pictures", figures.len()) };
    assert_ne!(cells(local), cells(global));
    let long = Heads {
        site: site(Kind::Decoder, vec![MaskRule::CAUSAL]),
        weights: vec![Matrix::new(1500, 1500, vec![1.0 / 1500.0; 1500 * 1500]); 2],
        first: 0,
        queries: (0..1500).map(|i| format!("word{i}")).collect(),
        keys: (0..1500).map(|i| format!("word{i}")).collect(),
    };
    assert_small(&grids("long", [Ok::<_, ()>(long)]).unwrap());
}

/// Numbers of PyTorch's `scaled_dot_product_attention(is_causal=True)` in double precision.
#[test]
fn steps_of_attention_are_those_of_the_definition() {
    let weights = [
        [1.0, 0.0, 0.0],
        [0.7255720888643418, 0.2744279111356581, 0.0],
        [0.20532700739506793, 0.773115983735809, 0.0215570088691231],
    ];
    let outputs = [
        [1.0, 0.0, 2.0],
        [0.7255720888643418, 0.2744279111356581, 1.1767162665930253],
        [0.2699980340024372, 0.7300019659975628, -0.3516834645111116],
    ];
    let head = Head {
        site: site(Kind::Decoder, Vec::new()),
        op: dot(),
        index: 0,
        queries: Matrix::new(3, 2, vec![1.0, -0.5, 0.25, 2.0, -1.5, 0.75]),
        keys: Matrix::new(3, 2, vec![0.5, 1.0, -1.0, 0.5, 2.0, -0.25]),
        values: Matrix::new(3, 3, vec![1.0, 0.0, 2.0, 0.0, 1.0, -1.0, 3.0, -2.0, 0.5]),
        bias: None,
        score: Vec::new(),
        sink: None,
        weights: Matrix::new(3, 3, weights.concat()),
        outputs: Matrix::new(3, 3, outputs.concat()),
        query_words: ["the", "</title>", "sat"].map(str::to_owned).to_vec(),
        key_words: Vec::new(),
    };
    let found = computed(&head);
    assert!(difference(&found.weights, &head.weights) < 1e-12, "{:?}", found.weights);
    assert!(difference(&found.outputs, &head.outputs) < 1e-12, "{:?}", found.outputs);
    let report = steps("m", &head, 1);
    assert_small(&report);
    let (_, rows) = report.parts[3].table.as_ref().unwrap();
    assert_eq!(rows[2][3], "−∞", "a key after the query is hidden");
    assert_eq!(rows[1].last().unwrap(), "0.2744");
    // The same queries and keys with additive scores, computed by PyTorch as tanh and a linear layer.
    let weights = [
        [1.0, 0.0, 0.0],
        [0.6707164081095928, 0.3292835918904072, 0.0],
        [0.20186885204417407, 0.19235040211995244, 0.6057807458358735],
    ];
    let mut additive =
        Head { score: vec![0.8, -1.2], weights: Matrix::new(3, 3, weights.concat()), ..head.clone() };
    additive.op.score = Score::Additive;
    assert!(difference(&computed(&additive).weights, &additive.weights) < 1e-12);
    let text = steps("m", &additive, 1).text(80);
    assert!(text.contains("w · tanh(q + k)") && !text.contains("q · k"), "{text}");
    // A bias of one score and a sink change what that query gives, and no other.
    let mut biased = Head { bias: Some(Matrix::new(3, 3, vec![0.0; 9])), sink: Some(0.5), ..head.clone() };
    let with_sink = computed(&biased);
    let sum: f64 = with_sink.weights.row(2).iter().sum();
    assert!(sum < 1.0, "the sink takes weight away: {sum}");
    biased.sink = None;
    biased.bias.as_mut().unwrap().values[8] = 3.0;
    let with_bias = computed(&biased);
    assert!(with_bias.weights.at(2, 2) > 0.3 && with_bias.weights.row(1) == found.weights.row(1));
}

/// Numbers of PyTorch's `LayerNorm` and `BatchNorm1d`, without weights, in double precision.
#[test]
fn norms_are_those_of_pytorch() {
    let rows = Matrix::new(3, 4, vec![1.0, 2.0, -1.0, 0.5, 0.0, -3.0, 2.0, 1.5, 4.0, 0.25, -0.5, 1.0]);
    let by_layer = [
        [0.3464086835065456, 1.2701651728573338, -1.5011042951950309, -0.11546956116884853],
        [-0.06414994543271964, -1.6037486358179909, 0.9622491814907945, 0.705649399759916],
        [1.6464610786025504, -0.5488203595341835, -0.9878766471615303, -0.10976407190683671],
    ];
    let by_batch = [
        [-0.39223159141458575, 1.0860980167011494, -0.8889983080422502, -1.2247081306987702],
        [-0.9805789785364644, -1.327453131523627, 1.3969973412092505, 1.2247081306987702],
        [1.3728105699510502, 0.24135511482247765, -0.5079990331670001, 0.0],
    ];
    assert!(difference(&layer_norm(&rows, 1e-5), &Matrix::new(3, 4, by_layer.concat())) < 1e-12);
    assert!(difference(&batch_norm(&rows, 1e-5), &Matrix::new(3, 4, by_batch.concat())) < 1e-12);
    let batch = norms::Batch {
        path: "decoder.blocks.0.norm1".into(),
        kind: NormKind::LayerNorm,
        rows,
        examples: vec![0, 0, 1],
        words: ["a", "b", "c"].map(str::to_owned).to_vec(),
        eps: 1e-5,
    };
    let report = norms::norms("m", &batch);
    assert_small(&report);
    let (_, rows) = report.parts[1].table.as_ref().unwrap();
    // Alone, the one token of the second example is its own mean: BatchNorm makes it 0.
    assert_eq!(rows[1], ["1", "1", "0.0000", "1.3728"]);
    assert_eq!(rows[0][2], "0.0000");
}

#[test]
fn a_course_says_where_it_was_best_and_how_fast() {
    let step = |step: u64, loss: f64, seconds: f64| Step {
        step,
        loss,
        losses: vec![("balance".to_owned(), 2.0 + loss)],
        rate: 0.1,
        norm: None,
        tokens: 10,
        seconds,
    };
    let mut course = Course { planned: Some(8), ..Course::default() };
    // Interrupted after the second step: the clock begins anew.
    course.steps = vec![step(1, 4.0, 1.0), step(2, 3.0, 2.0), step(3, 2.0, 0.5), step(4, 1.0, 2.0)];
    course.measure("loss", "validation", true, (2, Some(3.5)));
    course.measure("accuracy", "validation", false, (2, Some(0.25)));
    course.measure("loss", "validation", true, (4, None));
    course.measure("accuracy", "validation", false, (4, Some(0.5)));
    let report = training("m", &course);
    assert_small(&report);
    assert_eq!(report.lead, "step 4 of 8");
    let facts = |part: usize| report.parts[part].facts.clone();
    assert!(
        facts(0).contains(&("best loss on validation".into(), "3.5000 after step 2".into())),
        "{:?}",
        facts(0)
    );
    assert!(facts(0).contains(&("best accuracy on validation".into(), "0.5000 after step 4".into())));
    assert_eq!(report.parts[0].sketch, "█▆▃▁");
    assert!(report.text(80).contains("█▆▃▁") && !report.page().html().contains('█'));
    assert_eq!(report.parts[0].table.as_ref().unwrap().1[1], ["4", "–", "0.5000"]);
    let last = facts(report.parts.len() - 1);
    assert!(last.contains(&("time in steps".into(), "4 s".into())), "{last:?}");
    assert!(last.contains(&("tokens per second".into(), "10".into())), "{last:?}");
}

#[test]
fn contents_bear_odd_data() {
    let lengths = |side: &str, lengths: Vec<usize>| Lengths {
        part: "train".into(),
        side: side.into(),
        lengths,
        shared: 0,
    };
    let contents = Contents {
        name: "m".into(),
        lengths: vec![lengths("source", vec![3, 1, 2]), lengths("target", vec![0, 0, 0])],
        vocabularies: vec![Vocabulary {
            side: "source".into(),
            size: 4,
            special: vec![("<pad>".into(), 0, vec!["padding", "end"])],
            counts: vec![(" ".into(), 2, 5), ("</td>".into(), 3, 1)],
            unknown: vec![("test".into(), 1, 4)],
        }],
        classes: vec![("<b>".into(), 3), ("c".into(), 1)],
        ..Contents::default()
    };
    let report = data::data(&contents);
    assert_small(&report);
    let (_, rows) = report.parts[0].table.as_ref().unwrap();
    assert_eq!(rows[0], ["train", "source", "3", "6", "1", "2", "2.0", "3"]);
    assert_eq!(rows[1][3..], ["–", "–", "–", "–", "–"].map(str::to_owned));
    assert!(report.text(80).contains("␣") && report.text(80).contains("1 (25.00 %)"));
    assert!(!report.page().html().contains("</td>\n</td>"));
}

#[test]
fn features_of_positions_are_chosen() {
    let graph = graph("transformer");
    let names = |features: &[u64]| positions(&[untrained(&graph)], features).parts[0].figures[1].svg();
    let (first, chosen) = (names(&FIRST), names(&[6, 250]));
    assert!(first.contains("feature 0") && first.contains("feature 3") && !first.contains("feature 4"));
    assert!(chosen.contains("feature 6") && chosen.contains("feature 250") && !chosen.contains("feature 0"));
    assert_eq!(positions::features(&untrained(&graph)), Some(256));
    assert_eq!(positions::features(&untrained(&self::graph("gpt1"))), None);
}

#[test]
fn flow_is_drawn_as_lines_too() {
    let first = heads(&[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]);
    let second = at(1, heads(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0]]));
    let report = flow("m", &[first, second], 2);
    let titles: Vec<&str> = report.parts[0].figures.iter().map(|f| f.title.as_str()).collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
    let by_layer = report.parts[0].figures[1].svg();
    // A line for each position that gets any attention, with its word.
    assert!(by_layer.contains("0 the") && by_layer.contains("2 "), "{by_layer}");
    assert_small(&report);
}
