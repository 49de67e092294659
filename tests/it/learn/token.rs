//! Tokenizers: from text to ids and back, saved and loaded.

use trafoc::learn::recipe::Tokens;
use trafoc::learn::token::exchange::{Frame, tokenizer_json};
use trafoc::learn::token::{Growing, Maker, Subword, Tokenizer};

use super::Pair;
use crate::compiled::repository;

/// The tokenizer that a recipe's `tokens` creates from some texts.
fn made(tokens: &str, texts: &[&str]) -> Tokenizer {
    let text = format!("recipe: 1\ndata: {{format: lines, train: a}}\ntokens: {tokens}\nsteps: 1\n");
    let spec = repository("specs/gpt1.yaml");
    let pair = Pair::of_text("recipe.yaml", &text, &spec, None, &[]);
    let recipe = pair.recipe.clone().unwrap_or_else(|| panic!("{}", pair.rendered()));
    let tokens: Tokens = recipe.tokens.unwrap();
    let mut maker = Maker::new(&tokens, None, Some(400));
    texts.iter().for_each(|text| maker.add(text, true));
    maker.finish().unwrap()
}

const TEXTS: [&str; 4] = [
    "the newest and the widest of the lowest",
    "Ankara'da çok güzel bir gün, değil mi?",
    "low lower lowest newest newer new",
    "\"Straße\" 3.14 🙂",
];

#[test]
fn text_comes_back_from_its_tokens() {
    for tokens in ["bytes", "bpe", "characters", "{bpe: {vocab: 300, min_frequency: 1}}"] {
        let tokenizer = made(tokens, &TEXTS);
        for text in TEXTS {
            let pieces = tokenizer.pieces(text).unwrap();
            let ids: Vec<u32> = pieces.iter().map(|p| p.id).collect();
            assert_eq!(tokenizer.decode(&ids), text, "{tokens}");
            assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab()), "{tokens}");
            assert!(pieces.iter().all(|p| p.bytes.end <= text.len() && p.bytes.start <= p.bytes.end));
        }
    }
    let lower = made("words", &TEXTS);
    assert_eq!(lower.decode(&lower.encode("The LOWEST, new!").unwrap()), "the lowest , new <unk>");
    let pieces = made("{wordpiece: {min_frequency: 1}}", &TEXTS);
    assert_eq!(pieces.decode(&pieces.encode("The newest lower gun").unwrap()), "the newest lower gun");
}

/// What is shown of a text while it grows is the text in the end, also of tokens that form no characters.
#[test]
fn a_growing_text_is_the_text_of_all_its_tokens() {
    for tokens in ["bytes", "characters", "words", "bpe", "wordpiece"] {
        let tokenizer = made(tokens, &TEXTS);
        let of_texts = TEXTS.iter().map(|text| tokenizer.encode(text).unwrap());
        let mut state = 1u32;
        let mut any = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let size = u32::try_from(tokenizer.vocab()).unwrap();
        let of_any = (0..40).map(|_| (0..60).map(|_| any(size)).collect::<Vec<u32>>()).collect::<Vec<_>>();
        for ids in of_texts.chain(of_any) {
            let mut growing = Growing::new(&tokenizer);
            let mut shown: String = ids.iter().map(|id| growing.add(*id)).collect();
            shown.push_str(&growing.finish());
            assert_eq!(shown, tokenizer.decode(&ids), "{tokens}: {ids:?}");
        }
    }
    // A continuation has the space before its first word.
    for tokens in ["words", "wordpiece"] {
        let tokenizer = made(tokens, &TEXTS);
        let ids = tokenizer.encode("the newest lower").unwrap();
        for split in 1..ids.len() {
            let (before, own) = ids.split_at(split);
            let text = tokenizer.decode(before) + &Growing::after(&tokenizer, before).all(own);
            assert_eq!(text, "the newest lower", "{tokens} {split}");
        }
    }
    // An emoji of four bytes is shown when its last one comes, and at once.
    let bytes = made("bytes", &TEXTS);
    let mut growing = Growing::new(&bytes);
    let shown: Vec<String> = bytes.encode("a🙂b").unwrap().iter().map(|id| growing.add(*id)).collect();
    assert_eq!(shown, ["a", "", "", "", "🙂", "b"]);
}

/// The same texts give the same tokenizer, byte for byte, and a saved tokenizer is loaded unchanged.
#[test]
fn tokenizers_are_made_alike_and_read_back_equal() {
    for tokens in ["bytes", "bpe", "wordpiece", "words", "characters", "{characters: {boundary: \"#\"}}"] {
        let one = made(tokens, &TEXTS);
        let saved = serde_json::to_string(&one).unwrap();
        assert_eq!(saved, serde_json::to_string(&made(tokens, &TEXTS)).unwrap(), "{tokens}");
        let read: Tokenizer = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, one, "{tokens}");
        assert_eq!(serde_json::to_string(&read).unwrap(), saved, "{tokens}");
        assert_eq!(read.encode(TEXTS[2]).unwrap(), one.encode(TEXTS[2]).unwrap());
    }
}

#[test]
fn marks_have_the_names_others_give_them() {
    let name = |t: &Tokenizer, id: Option<u32>| id.and_then(|id| t.token(id)).unwrap_or_default();
    let bert = made("wordpiece", &TEXTS);
    let special = bert.special_tokens();
    let names = [special.start, special.end, special.mask, special.unknown, Some(special.pad)]
        .map(|id| name(&bert, id));
    assert_eq!(names, ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]"]);
    assert_eq!(made("bpe", &TEXTS).special_tokens().pad, 0);
    // A vocabulary does not exceed its limit.
    assert!(made("{wordpiece: {vocab: 60, min_frequency: 1}}", &TEXTS).vocab() <= 60);
    assert_eq!(made("{bpe: {vocab: 264, min_frequency: 1}}", &TEXTS).vocab(), 264);
    assert_eq!(made("{words: {vocab: 6}}", &TEXTS).vocab(), 6);
}

/// The files written for Hugging Face give the same ids there, with the same special tokens.
#[test]
fn tokenizers_are_written_as_tokenizer_json() {
    let kinds =
        ["bytes", "bpe", "wordpiece", "words", "characters", "{characters: {boundary: \"#\", lower: true}}"];
    for tokens in kinds {
        let own = made(tokens, &TEXTS);
        let special = own.special_tokens();
        let read = |start: bool, end: bool| {
            let (start, end) = (special.start.filter(|_| start), special.end.filter(|_| end));
            let frame = Frame { start, end, twice: false, has_pairs: true };
            let text = tokenizer_json(&own, Some(frame)).unwrap();
            Subword::from_json(&text).unwrap_or_else(|why| panic!("{tokens}: {why}\n{text}"))
        };
        let (both, none) = (read(true, true), read(false, false));
        for text in TEXTS.iter().chain(&["newest, low.!", " two  spaces "]) {
            let Ok(ids) = own.encode(text) else { continue };
            let found: Vec<u32> = none.pieces(text).unwrap().iter().map(|p| p.id).collect();
            assert_eq!(found, ids, "{tokens}: {text}");
            assert_eq!(none.framed(text), Ok(None), "{tokens}");
            let framed: Vec<u32> = special.start.into_iter().chain(ids.clone()).chain(special.end).collect();
            assert_eq!(both.framed(text).unwrap().unwrap(), framed, "{tokens}: {text}");
            // An unknown word is left out there, but displayed here.
            if !ids.iter().any(|id| Some(*id) == special.unknown) {
                assert_eq!(both.decode(&framed), own.decode(&ids), "{tokens}: {text}");
            }
        }
    }
}

/// The order of an alphabet is that of the ids; it is saved and read again with it.
#[test]
fn characters_have_their_ids_in_the_order_asked_for() {
    for (order, wanted) in [("unicode", "abcx"), ("appearance", "xbca"), ("frequency", "bcax")] {
        let made =
            made(&format!("{{characters: {{boundary: '.', order: {order}}}}}"), &["xbcb", "bcab", "acc"]);
        let ids: Vec<u32> = (1..=4).collect();
        assert_eq!(made.decode(&ids), wanted, "{order}");
        assert_eq!(made.encode(wanted).unwrap(), ids, "{order}");
        assert_eq!(made.encode("z").unwrap_err().what, "z");
        assert_eq!(made.encode(" ").unwrap_err().what, " ");
        let again: Tokenizer = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(again, made, "{order}");
        assert_eq!(again.encode(wanted).unwrap(), ids, "{order}");
    }
}

/// A part that consists of the same part many times.
fn many(name: &str, part: &serde_json::Value, times: usize) -> serde_json::Value {
    serde_json::json!({ "type": "Sequence", name: vec![part; times] })
}

/// What a `tokenizer.json` may not say, each with a word of its refusal. The crate itself would take
/// gigabytes for some of them, panic over others, and give ids beyond every table for one.
#[test]
fn tokenizers_whose_parts_do_not_fit_are_refused() {
    let base = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": { "type": "BPE", "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": [["a", "b"]] },
    });
    assert!(Subword::from_json(&base.to_string()).is_ok());
    let replace =
        serde_json::json!({ "type": "Replace", "pattern": { "String": "a" }, "content": "aaaaaaaaaa" });
    let nested = serde_json::json!({ "type": "Sequence", "normalizers": [replace, replace] });
    let template = serde_json::json!({
        "type": "TemplateProcessing", "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }],
        "single": [{ "SpecialToken": { "id": "a", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
        "special_tokens": { "a": { "id": "a", "ids": [4_000_000], "tokens": ["a"] } },
    });
    let text = serde_json::json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let of = |single: &[&serde_json::Value]| serde_json::json!({ "type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {} });
    let (twice, never) = (many("processors", &of(&[&text, &text]), 30), of(&[]));
    let bytes = serde_json::json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
    });
    let delimiter = serde_json::json!({
        "type": "CTC", "pad_token": "a", "word_delimiter_token": "", "cleanup": true,
    });
    for (key, value, says) in [
        ("/model/vocab/ab", serde_json::json!(2_000_000_000), "the id 2000000000, far beyond"),
        (
            "/model",
            serde_json::json!({ "type": "Unigram", "unk_id": 0, "vocab": [["a".repeat(100_000), -1.0]] }),
            "a token has 100000 characters",
        ),
        ("/normalizer", nested, "up to 100 times as long"),
        (
            "/normalizer",
            serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": "////////" }),
            "map of characters",
        ),
        (
            "/decoder",
            serde_json::json!({ "type": "Strip", "content": "a", "start": 0, "stop": 1u64 << 45 }),
            "takes more",
        ),
        (
            "/model/continuing_subword_prefix",
            serde_json::json!("\u{1f980}\u{1f980}"),
            "do not fit each other",
        ),
        ("/post_processor", template, "gives the id 4000000"),
        ("/post_processor", twice, "up to 1073741824 times as long"),
        ("/post_processor", never, "does not have the text `A`"),
        (
            "/normalizer",
            many("normalizers", &serde_json::json!({ "type": "ByteLevel" }), 40),
            "up to 109951162777",
        ),
        ("/pre_tokenizer", many("pretokenizers", &bytes, 40), "up to 109951162777"),
        (
            "/decoder",
            many("decoders", &serde_json::json!({ "type": "BPEDecoder", "suffix": "" }), 30),
            "up to 10737",
        ),
        ("/decoder", many("decoders", &delimiter, 30), "up to 10737"),
        (
            "/normalizer",
            many("normalizers", &serde_json::json!({ "type": "Lowercase" }), 2_000),
            "2001 parts",
        ),
        (
            "/normalizer",
            many("normalizers", &serde_json::json!({ "type": "Prepend", "prepend": "x".repeat(300) }), 4),
            "puts 1200 bytes before a text",
        ),
        // A table of no bytes, and a replacement of 300.
        (
            "/normalizer",
            serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": format!("AAAAAG{}", "FhYW".repeat(100)) }),
            "up to 100 times as long",
        ),
        ("/model", serde_json::Value::Null, ""),
    ] {
        let mut odd = base.clone();
        let (parent, name) = key.rsplit_once('/').unwrap();
        odd.pointer_mut(parent).unwrap()[name] = value;
        let why = Subword::from_json(&odd.to_string()).expect_err(key);
        assert!(why.contains(says), "{key}: {why}");
    }
}

/// The dropout of BPE would give the same text other tokens each time.
#[test]
fn the_same_text_has_the_same_tokens_whatever_a_file_says_of_dropout() {
    let base = serde_json::json!({
        "model": {
            "type": "BPE", "dropout": 0.9, "merges": [["a", "b"], ["ab", "ab"]],
            "vocab": { "a": 0, "b": 1, "ab": 2, "abab": 3 },
        },
    });
    let read = Subword::from_json(&base.to_string()).unwrap();
    for _ in 0..20 {
        let ids: Vec<u32> = read.pieces("ababab").unwrap().iter().map(|piece| piece.id).collect();
        assert_eq!(ids, [3, 2]);
    }
    assert!(!read.to_json().contains("0.9"), "{}", read.to_json());
}

/// What has no token is a part of the text, and not what the crate says about its own settings.
#[test]
fn what_a_file_has_no_token_for_is_named() {
    for (model, what) in [
        (serde_json::json!({ "type": "Unigram", "vocab": [["a", -1.0], ["b", -1.0]] }), "\u{e9}"),
        (
            serde_json::json!({
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": { "a": 0, "b": 1, "##b": 2 },
            }),
            "ba",
        ),
    ] {
        let json = serde_json::json!({ "pre_tokenizer": { "type": "WhitespaceSplit" }, "model": model });
        let read = Subword::from_json(&json.to_string()).unwrap();
        assert!(read.pieces("ab b").is_ok());
        let text = if what == "ba" { "ab b ba" } else { "ab b a\u{e9}b ba" };
        assert_eq!(read.pieces(text).unwrap_err(), what);
    }
}
