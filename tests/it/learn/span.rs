//! Spans selected from the scores of starts and ends.

use trafoc::learn::span::best;

#[test]
fn an_answer_lies_in_its_range_and_does_not_end_before_it_begins() {
    let start = [9.0, 1.0, 0.0, 3.0];
    let end = [9.0, 4.0, 0.0, 1.0];
    assert_eq!(best(&start, &end, 1..4).unwrap().0, [1, 1]);
    assert_eq!(best(&start, &end, 2..4).unwrap().0, [3, 3]);
    assert_eq!(best(&start, &end, 4..4), None);
    assert_eq!(best(&start, &end, 0..4).unwrap().0, [0, 0]);
}
