//! Sentences split into words.

use trafoc::learn::token::words::{Counter, split};

#[test]
fn marks_of_a_sentence_begin_a_word() {
    let words = |text| split(text, true).into_iter().map(|(w, _)| w).collect::<Vec<_>>();
    assert_eq!(words("Go."), ["go", "."]);
    assert_eq!(words("Ça\u{202f}va\u{a0}? Oui..."), ["ça", "va", "?", "oui", ".", ".", "."]);
    assert_eq!(words("3.14"), ["3", ".14"]);
    assert_eq!(split("a, b", true)[1], (",".to_owned(), 1..2));
}

/// A special token that the data writes out has one id, as it has for readers of an exported tokenizer.
#[test]
fn special_tokens_in_a_text_have_their_own_ids() {
    let mut counter = Counter::default();
    counter.add("foo <eos> bar <unk> foo <pad>", false);
    let words = counter.finish(false, 1, None);
    assert_eq!(words.vocab(), 6);
    let ids: Vec<u32> = words.pieces("foo <eos> zzz <unk> bar").into_iter().map(|piece| piece.id).collect();
    assert_eq!(ids, [4, 3, 0, 0, 5]);
}
