//! Metrics against values that other programs have computed; see `tests/metric/make.py`.

use serde_json::Value;
use trafoc::learn::metric::{self, answer, bleu};

use crate::compiled::repository;

/// Sums in double precision may differ by their order.
const CLOSE: f64 = 1e-9;

fn figures(key: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(repository("tests/metric/figures.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[key].as_array().unwrap().clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect()
}

#[test]
fn bleu_of_a_corpus_is_that_of_sacrebleu() {
    for corpus in figures("corpora") {
        let (own, right) = (texts(&corpus["hypotheses"]), texts(&corpus["references"]));
        let pairs: Vec<(&str, &str)> = own.into_iter().zip(right).collect();
        let (found, wanted) = (bleu::corpus(&pairs), corpus["bleu"].as_f64().unwrap());
        assert!((found - wanted).abs() < CLOSE, "{found}, and sacreBLEU has {wanted}");
        let (found, wanted) = (bleu::corpus_of_words(&pairs), corpus["words"].as_f64().unwrap());
        assert!((found - wanted).abs() < CLOSE, "{found} by words, and sacreBLEU has {wanted}");
        let each = corpus["each"].as_array().unwrap();
        assert_eq!(each.len(), pairs.len());
        for ((own, right), wanted) in pairs.iter().zip(each) {
            let found = [bleu::of_one(own, right), bleu::of_one_in_words(own, right)];
            for (found, wanted) in found.iter().zip(wanted.as_array().unwrap()) {
                let wanted = wanted.as_f64().unwrap();
                assert!(
                    (found - wanted).abs() < CLOSE,
                    "{own} / {right}: {found}, and sacreBLEU has {wanted}"
                );
            }
        }
    }
    assert_eq!(bleu::corpus::<&str, &str>(&[]), 0.0);
    // Rounding brings none of equal texts above 100.
    for words in 4..60 {
        let text: Vec<String> = (0..words).map(|i| format!("w{i}")).collect();
        let pairs = vec![(text.join(" "), text.join(" ")); words];
        for found in
            [bleu::corpus(&pairs), bleu::corpus_of_words(&pairs), bleu::of_one(&pairs[0].0, &pairs[0].1)]
        {
            assert!((100.0 - CLOSE..=100.0).contains(&found), "{words} words: {found}");
        }
    }
}

#[test]
fn bleu_of_a_sentence_is_that_of_the_book() {
    for case in figures("sentences") {
        let found = bleu::sentence(case["written"].as_str().unwrap(), case["right"].as_str().unwrap(), 2);
        assert!((found - case["bleu"].as_f64().unwrap()).abs() < CLOSE, "{found} for {case}");
    }
}

#[test]
fn answers_are_compared_as_squad_does() {
    for case in figures("answers") {
        let (given, right) = (case["given"].as_str().unwrap(), [case["right"].as_str().unwrap()]);
        assert_eq!(answer::exact_match(given, &right), case["exact"].as_bool().unwrap(), "{case}");
        let found = answer::f1(given, &right);
        assert!((found - case["f1"].as_f64().unwrap()).abs() < CLOSE, "{found} for {case}");
    }
    assert_eq!(answer::f1("broncos", &["Denver", "the Broncos"]), 1.0);
}

/// By hand: class 0 has F1 4/5, class 1 has 1/2, and class 2, which occurs only among the predictions, has
/// 0.
#[test]
fn classes_are_counted_alike() {
    let pairs = [(0, 0), (0, 0), (1, 1), (1, 0), (1, 2)];
    assert_eq!(metric::accuracy(&pairs), 0.6);
    assert!((metric::macro_f1(&pairs) - (0.8 + 0.5 + 0.0) / 3.0).abs() < CLOSE);
    // Two classes in turn: the first is found twice, the second is missed once and predicted wrongly once.
    let several = [(1, 1), (1, 0), (1, 1), (0, 1)];
    assert_eq!(metric::macro_f1_of_several(&several, 2), 0.5);
    assert_eq!(metric::macro_f1(&[]), 0.0);
}

#[test]
fn losses_become_perplexity_and_bits() {
    assert!((metric::perplexity(30f64.ln()) - 30.0).abs() < CLOSE);
    assert!((metric::bits_per_character(1000.0 * std::f64::consts::LN_2, 500) - 2.0).abs() < CLOSE);
}
