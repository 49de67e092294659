//! Sentences split into words.

use trafoc::learn::token::words::split;

#[test]
fn marks_of_a_sentence_begin_a_word() {
    let words = |text| split(text, true).into_iter().map(|(w, _)| w).collect::<Vec<_>>();
    assert_eq!(words("Go."), ["go", "."]);
    assert_eq!(words("Ça\u{202f}va\u{a0}? Oui..."), ["ça", "va", "?", "oui", ".", ".", "."]);
    assert_eq!(words("3.14"), ["3", ".14"]);
    assert_eq!(split("a, b", true)[1], (",".to_owned(), 1..2));
}
