//! Sentences and numbers of reports that depend on what is inspected.

use super::*;

fn compiled(text: &str) -> Verified {
    let front = Front::of_text("a.yaml", text, "specs");
    front.compilation.graph.as_ref().unwrap_or_else(|| panic!("{}", front.rendered()));
    front.compilation.graph.unwrap()
}

fn fact<'a>(part: &'a trafoc::inspect::Part, name: &str) -> &'a str {
    let found = part.facts.iter().find(|(own, _)| own == name);
    &found.unwrap_or_else(|| panic!("{name}: {:?}", part.facts)).1
}

fn head() -> Head {
    Head {
        site: site(Kind::Decoder, Vec::new()),
        op: dot(),
        index: 0,
        queries: Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]),
        keys: Matrix::new(2, 2, vec![1.0, 0.5, -1.0, 2.0]),
        values: Matrix::new(2, 1, vec![1.0, 2.0]),
        bias: None,
        score: Vec::new(),
        sink: None,
        weights: Matrix::new(2, 2, vec![0.5; 4]),
        outputs: Matrix::new(2, 1, vec![0.0; 2]),
        query_words: Vec::new(),
        key_words: Vec::new(),
    }
}

/// In the spec of a run the scale is a number.
#[test]
fn the_usual_scale_is_known_by_its_value() {
    let scaled = |scale: f64| {
        let mut head = head();
        head.op.scale = Factor::new(scale, None);
        fact(&steps("m", &head, 1).parts[1], "scale").to_owned()
    };
    assert_eq!(scaled(0.5f64.sqrt()), "1/√2 = 0.7071");
    assert_eq!(scaled(0.7), "0.7000");
}

/// Rows with a single weight have an entropy of 0, which has no sign.
#[test]
fn an_entropy_of_zero_has_no_sign() {
    let one = heads(&[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
    let report = grids::<()>("m", [Ok(one)]).unwrap();
    assert!(report.text(80).contains(" 0.00 bits"), "{}", report.text(80));
}

/// A text has a number for every head; what a row lacks to 1 is the sink's share and part of its entropy.
#[test]
fn every_head_has_its_entropy() {
    let mut half = heads(&[[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]);
    let bits = |heads: Heads| {
        let part = grids::<()>("m", [Ok(heads)]).unwrap().parts.remove(0);
        (part.table.unwrap().1, part.text)
    };
    half.first = 3;
    assert_eq!(bits(half.clone()).0, [["3", "0.50"]]);
    half.site.op = Some(Attention { has_sinks: true, ..dot() });
    let (rows, text) = bits(half);
    assert!(
        rows == [["3", "1.00"]] && text.contains("with the sink's share, is 1.00 bits"),
        "{rows:?} {text}"
    );
}

/// A text has no pictures, and says nothing about their colours.
#[test]
fn texts_do_not_speak_of_pictures() {
    let report = masks("m", &[site(Kind::Decoder, Vec::new())], 64);
    assert!(!report.text(80).contains("grey"), "{}", report.text(80));
    assert!(report.page().html().contains("grey ones are hidden"));
    let mut hidden = head();
    hidden.weights.values[1] = 0.0;
    let report = steps("m", &hidden, 1);
    assert!(!report.text(80).contains("grey"), "{}", report.text(80));
    assert!(report.page().html().contains("Hidden pairs are grey."));
}

/// What is said of the data is so: nothing of padding where there is none, and of special tokens that the table
/// of an example does not have them.
#[test]
fn data_are_described_as_they_are() {
    let told = |padding: usize| {
        let contents = Contents {
            vocabularies: vec![Vocabulary {
                side: "text".into(),
                size: 4,
                counts: vec![("a".into(), 1, 5), ("b".into(), 2, 1)],
                ..Vocabulary::default()
            }],
            example: data::Example {
                facts: vec![("text".into(), "a".into())],
                tokens: vec![("text".into(), "a".into(), 1, String::new())],
                ..data::Example::default()
            },
            batch: data::Batch { tokens: (8, padding), counted: 4, ..data::Batch::default() },
            ..Contents::default()
        };
        data::data(&contents)
    };
    let text = told(0).text(200);
    assert!(!text.contains("padded") && !text.contains("straight line"), "{text}");
    assert!(text.contains("special tokens that the model gets as well"), "{text}");
    assert!(told(0).page().html().contains("would be a straight line"));
    assert!(told(1).text(200).contains("Shorter examples are padded"));
}

/// The pieces of one text share tokens, which are counted once, and the shares of classes are of the examples.
#[test]
fn data_are_counted_once() {
    let lengths =
        data::Lengths { part: "train".into(), side: "text".into(), lengths: vec![4, 4, 3], shared: 1 };
    let classes = vec![("a".to_owned(), 3), ("b".to_owned(), 1)];
    let of = |of_several| Contents { classes: classes.clone(), of_several, ..Contents::default() };
    let report = data::data(&Contents { lengths: vec![lengths], ..of(None) });
    let (_, rows) = report.parts[0].table.as_ref().unwrap();
    assert_eq!(rows[0], ["train", "text", "3", "9", "3", "4", "3.7", "4"]);
    assert!(report.text(200).contains("which is counted once"), "{}", report.text(200));
    let shares = |report: &Report| {
        let (_, rows) = report.parts[1].table.as_ref().unwrap();
        rows.iter().map(|row| row[2].clone()).collect::<Vec<_>>()
    };
    assert_eq!(shares(&report), ["75.0 %", "25.0 %"]);
    // Of three examples, one has both classes.
    let report = data::data(&of(Some(3)));
    assert_eq!(shares(&report), ["100.0 %", "33.3 %"]);
    assert!(report.text(200).contains("several classes or none"), "{}", report.text(200));
}

/// The legend counts what is drawn.
#[test]
fn the_flow_says_what_it_leaves_out() {
    let even = [[0.02, 0.49, 0.49], [0.02, 0.49, 0.49], [0.02, 0.49, 0.49]];
    let layers: Vec<Heads> = (0..12).map(|layer| at(layer, heads(&even))).collect();
    let legend = &flow("m", &layers, 2).parts[0].legend;
    assert!(legend.contains("one line for each of 6 of the 12 layers"), "{legend}");
    assert!(legend.contains("Strands below 3 % of the target's attention are left out, or"), "{legend}");
    assert!(legend.contains("4.0 % of all in the layer where they are most"), "{legend}");
    let few = &flow("m", &layers[..3], 2).parts[0].legend;
    assert!(few.contains("one line for each layer"), "{few}");
    assert!(!few.contains("other positions"), "{few}");
    let sharp = heads(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]);
    assert!(!flow("m", &[sharp], 2).parts[0].legend.contains("left out"));
}

/// Attention that is spread over many positions is drawn too, and a position without a word has one number.
#[test]
fn spread_attention_is_drawn() {
    let spread = |layer: u64| {
        let mut heads = at(layer, heads(&[[1.0; 3]; 3]));
        heads.weights = vec![Matrix::new(100, 100, vec![0.01; 10_000])];
        (heads.queries, heads.keys) = (Vec::new(), Vec::new());
        heads
    };
    let report = flow("m", &[spread(0), spread(1), spread(2)], 99);
    let strands = report.parts[0].figures[0].svg().matches("\"fill-series-0\"").count();
    // Of the last layer all that lead to the positions shown, of the others as many as fit.
    assert_eq!(strands, 40 + 2 * 150);
    assert!(report.parts[0].facts.iter().all(|(name, _)| name.split(' ').count() == 2));
    assert!(report.parts[0].legend.contains("position 99;"), "{}", report.parts[0].legend);
    let maps = grids("m", [Ok::<_, ()>(spread(0))]).unwrap();
    assert!(maps.parts[0].legend.contains("The colours end at 0.01"), "{}", maps.parts[0].legend);
    let sharp = grids("m", [Ok::<_, ()>(heads(&[[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]))]);
    assert!(!sharp.unwrap().parts[0].legend.contains("colours end"));
}

/// The layers of two stacks are no sequence.
#[test]
fn each_stack_grows_by_itself() {
    let depth = [
        (Stack::Encoder, 0, 1.0),
        (Stack::Encoder, 1, 2.0),
        (Stack::Decoder, 0, 8.0),
        (Stack::Decoder, 1, 4.0),
    ];
    let growth = |depth: &[(Stack, u64, f64)]| -> Vec<String> {
        let report = start::report("m", &[], &[], depth);
        report.parts[1].facts.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    };
    assert_eq!(
        growth(&depth),
        [
            "encoder layer 0: 1.0000",
            "encoder layer 1: 2.0000",
            "growth in the encoder: × 2.00",
            "decoder layer 0: 8.0000",
            "decoder layer 1: 4.0000",
            "growth in the decoder: × 0.50",
        ]
    );
    assert_eq!(growth(&depth[..1]), ["encoder layer 0: 1.0000"]);
    let svg = start::report("m", &[], &[], &depth).parts[1].figures[0].svg();
    assert!(svg.contains(">layer</text>") && svg.matches("curve stroke-series").count() == 4, "{svg}");
}

/// What is printed gives the printed weights: the exponentials are divided by their sum and that of the sink.
#[test]
fn a_sink_is_a_part_of_what_softmax_divides_by() {
    let report = steps("m", &Head { sink: Some(-0.25), ..head() }, 1);
    let part = &report.parts[3];
    let number = |name: &str| fact(part, name).replace('−', "-").parse::<f64>().unwrap();
    let sum = number("sum of the exponentials");
    let whole = number("divided by: the sum with the sink");
    assert!((whole - sum - number("exponential of the sink")).abs() < 2e-4);
    assert!((sum / whole - number("sum of the weights")).abs() < 2e-4);
    assert_eq!(fact(part, "score of the sink, which takes weight away"), "−0.2500");
    assert!(report.parts[2].text.contains("sum to less than 1"), "{}", report.parts[2].text);
    let without = steps("m", &head(), 1);
    assert!(without.parts[2].text.contains("weights that sum to 1"));
    assert_eq!(fact(&without.parts[3], "sum of the weights"), "1.0000");
}

/// The wavelengths beyond the original context are those of its own factors.
#[test]
fn factors_of_long_sequences_have_wavelengths() {
    let graph = compiled(
        "name: a\nvocab: 8\ncontext: 4096\nd_model: 16\ndecoder: {layers: 1, attention: {heads: 2}, position: {rotary: \
         {scaling: {longrope: {original_context: 1024, short_factor: [1, 1, 1, 1], long_factor: [9, 1, 50, 1]}}}}}\n\
         head: lm\n",
    );
    let report = positions(&[untrained(&graph)], &FIRST);
    let part = &report.parts[0];
    // 2π · 9, 2π · 10, 2π · 100 · 50, 2π · 1000.
    assert_eq!(fact(part, "shortest wavelength"), "6.28");
    assert_eq!(fact(part, "longest wavelength"), "6,283");
    assert_eq!(fact(part, "shortest wavelength, beyond 1,024"), "56.55");
    assert_eq!(fact(part, "longest wavelength, beyond 1,024"), "31,415");
    assert_eq!(fact(part, "factor on sines and cosines"), "1.0954");
    assert!(part.text.contains("2 of 4 pairs make no full turn within the context"), "{}", part.text);
    assert!(!part.figures[0].svg().contains(">0.5<"));
}

/// One layer is not told as if it were all of them, and a line of one point is not drawn.
#[test]
fn the_flow_of_one_layer_is_told_as_that() {
    let one = at(3, heads(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0]]));
    let report = flow("m", &[one], 2);
    let part = &report.parts[0];
    assert_eq!(part.figures.len(), 3);
    assert_eq!(report.lead, "encoder attention of layer 3 to one position");
    let all = [&part.text, &part.legend, &report.page().html()].map(String::as_str).concat();
    for phrase in ["every layer", "each layer", "over the layers", "multiplies the layers", "layer by layer"]
    {
        assert!(!all.contains(phrase), "{phrase}: {all}");
    }
    assert!(part.legend.contains("The input is that of layer 3"), "{}", part.legend);
}
