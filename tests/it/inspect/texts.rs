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
        head.site.op.scale = Factor::new(scale, None);
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
