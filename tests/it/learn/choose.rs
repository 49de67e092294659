//! Choosing tokens from scores: truncation, penalties and temperature.

use trafoc::learn::choose::{Sampling, choose, logs};
use trafoc::learn::random::Stream;

const SCORES: [f32; 5] = [0.0, 2.0, 1.0, -1.0, 1.9];

fn drawn(how: Sampling) -> Vec<u32> {
    let mut out: Vec<u32> = (0..2_000)
        .map(|i| choose(&SCORES, &[], &how, &mut Stream::new(3, "sampling", i)).unwrap().0)
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

#[test]
fn cuts_leave_what_they_say() {
    let warm = Sampling { temperature: 1.0, ..Sampling::GREEDY };
    assert_eq!(drawn(Sampling::GREEDY), [1]);
    assert_eq!(drawn(warm), [0, 1, 2, 3, 4]);
    assert_eq!(drawn(Sampling { top_k: Some(2), ..warm }), [1, 4]);
    // 0.40 and 0.36 are more than 0.7 together.
    assert_eq!(drawn(Sampling { top_p: Some(0.7), ..warm }), [1, 4]);
    assert_eq!(drawn(Sampling { top_p: Some(0.0), ..warm }), [1]);
    // exp(1 - 2) is 0.37 of the best probability.
    assert_eq!(drawn(Sampling { min_p: Some(0.3), ..warm }), [1, 2, 4]);
    assert_eq!(drawn(Sampling { top_k: Some(1), ..warm }), [1]);
}

/// Thousands of scores of every size, one of which is NaN.
fn many() -> Vec<f32> {
    let mut next = Stream::new(5, "scores", 0);
    (0..5_000).map(|i| if i == 77 { f32::NAN } else { 8.0 * next.uniform() as f32 - 4.0 }).collect()
}

#[test]
fn limits_that_exclude_nothing_change_nothing() {
    let (scores, warm) = (many(), Sampling { temperature: 0.9, ..Sampling::GREEDY });
    let all = [
        Sampling { top_k: Some(5_000), ..warm },
        Sampling { top_p: Some(1.0), ..warm },
        Sampling { min_p: Some(0.0), ..warm },
    ];
    for i in 0..200 {
        let token = |how| choose(&scores, &[], how, &mut Stream::new(1, "sampling", i)).unwrap();
        let plain = token(&warm);
        all.iter().for_each(|how| assert_eq!(token(how), plain, "{how:?}"));
    }
}

#[test]
fn many_tokens_are_drawn_as_often_as_they_are_probable() {
    let (scores, warm) = (many(), Sampling { temperature: 1.0, ..Sampling::GREEDY });
    let probabilities: Vec<f64> =
        logs(&scores).into_iter().map(|log| if log.is_nan() { 0.0 } else { log.exp() }).collect();
    let mut counts = [0.0; 5];
    let mut stream = Stream::new(2, "sampling", 0);
    for _ in 0..20_000 {
        let (token, log) = choose(&scores, &[], &warm, &mut stream).unwrap();
        assert!((log - probabilities[token as usize].ln()).abs() < 1e-9);
        counts[token as usize / 1_000] += 1.0 / 20_000.0;
    }
    for (count, probabilities) in counts.iter().zip(probabilities.chunks(1_000)) {
        assert!((count - probabilities.iter().sum::<f64>()).abs() < 0.02, "{counts:?}");
    }
}

#[test]
fn of_equal_scores_the_first_one_is_the_best() {
    let mut stream = Stream::new(0, "sampling", 0);
    for (scores, best) in [([1.0, 3.0, 3.0], 1), ([-0.0, 0.0, -1.0], 0), ([f32::NAN, -1.0, -1.0], 1)] {
        let how = Sampling { temperature: 1.0, top_k: Some(1), ..Sampling::GREEDY };
        let penalty = Sampling { repetition_penalty: 2.0, ..Sampling::GREEDY };
        for how in [Sampling::GREEDY, how, penalty] {
            assert_eq!(choose(&scores, &[], &how, &mut stream).unwrap().0, best, "{scores:?} {how:?}");
        }
    }
}

#[test]
fn a_penalty_lowers_what_has_been_said() {
    let how = Sampling { repetition_penalty: 2.0, ..Sampling::GREEDY };
    let mut stream = Stream::new(0, "sampling", 0);
    assert_eq!(choose(&SCORES, &[1, 1], &how, &mut stream).unwrap().0, 4);
    // A negative score becomes lower by a product, not by a quotient.
    assert_eq!(choose(&[-1.0, -1.5], &[0], &how, &mut stream).unwrap().0, 1);
}

#[test]
fn probabilities_are_those_of_the_softmax() {
    let warm = Sampling { temperature: 2.0, ..Sampling::GREEDY };
    let mut counts = [0.0; 5];
    let mut stream = Stream::new(9, "sampling", 0);
    for _ in 0..40_000 {
        counts[choose(&SCORES, &[], &warm, &mut stream).unwrap().0 as usize] += 1.0 / 40_000.0;
    }
    let halves = SCORES.map(|score| score / 2.0);
    for (count, log) in counts.iter().zip(logs(&halves)) {
        assert!((count - log.exp()).abs() < 0.01, "{counts:?}");
    }
}

#[test]
fn nothing_is_chosen_among_no_numbers() {
    let mut stream = Stream::new(0, "sampling", 0);
    assert_eq!(choose(&[f32::NAN], &[], &Sampling::GREEDY, &mut stream), None);
    assert_eq!(choose(&[f32::NAN, 1.0], &[], &Sampling::GREEDY, &mut stream), Some((1, 0.0)));
}
