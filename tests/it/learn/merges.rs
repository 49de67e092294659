//! Merges of byte pair encoding, learnt from word counts.

use std::collections::BTreeMap;

use trafoc::learn::token::merges::{Style, learn};

/// The example of Sennrich et al.: `e s`, then `es t`, then `l o`, then `lo w`.
#[test]
fn the_most_frequent_neighbours_are_joined() {
    let words = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)];
    let counts: BTreeMap<String, u64> = words.iter().map(|(w, n)| ((*w).to_owned(), *n)).collect();
    let style = Style { special: &["<pad>"], inside: "", alphabet: &[] };
    let learnt = learn(&counts, 1 + 10 + 4, 1, style);
    let merges: Vec<String> = learnt.merges.iter().map(|(a, b)| format!("{a} {b}")).collect();
    assert_eq!(merges, ["e s", "es t", "l o", "lo w"]);
    assert_eq!(learnt.tokens.len(), 15);
    let inside = Style { special: &[], inside: "##", alphabet: &[] };
    assert!(learn(&counts, 40, 2, inside).tokens.contains(&"##est".to_owned()));
}
