//! Models of SentencePiece give the ids of Hugging Face's library, or of sentencepiece itself
//! (`tests/sentencepiece/make.py`), and what is damaged is refused.

use serde_json::Value as Json;
use trafoc::learn::token::Subword;
use trafoc::learn::token::vocabulary::Files;

use crate::compiled::repository;

fn expected() -> Json {
    let text = std::fs::read_to_string(repository("tests/sentencepiece/expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn model(name: &str) -> Vec<u8> {
    std::fs::read(repository(&format!("tests/sentencepiece/models/{name}.model"))).unwrap()
}

fn files(own: &Json) -> Files {
    Files {
        pieces: Some(model(own["model"].as_str().unwrap())),
        config: own["tokenizer_config"].clone(),
        special: own["special_tokens_map"].clone(),
        more: own["added_tokens"].clone(),
        ids: own.get("vocab").map(Json::to_string),
        model: own["type"].as_str().unwrap().to_owned(),
        ..Files::default()
    }
}

fn ids(tokenizer: &Subword, text: &str) -> Vec<u32> {
    tokenizer.pieces(text).unwrap().into_iter().map(|piece| piece.id).collect()
}

/// With and without the special tokens around a text, for every class and every setting.
#[test]
fn ids_are_those_of_the_reference() {
    let expected = expected();
    let texts = expected["texts"].as_array().unwrap();
    let mut wrong = Vec::new();
    for (name, own) in expected["folders"].as_object().unwrap() {
        let tokenizer = files(own).tokenizer().unwrap_or_else(|why| panic!("{name}: {why}"));
        let inner = own.get("inner").unwrap_or(&own["ids"]);
        for (at, there) in inner.as_object().unwrap() {
            let text = texts[at.parse::<usize>().unwrap()].as_str().unwrap();
            let there: Vec<u32> = serde_json::from_value(there.clone()).unwrap();
            let here = ids(&tokenizer, text);
            if here != there {
                wrong.push(format!("{name}: {text:?}\n  {here:?}\n  {there:?}"));
            }
            let framed: Vec<u32> = serde_json::from_value(own["ids"][at].clone()).unwrap();
            let here = tokenizer.framed(text).unwrap().unwrap_or(here);
            if here != framed {
                wrong.push(format!("{name}, framed: {text:?}\n  {here:?}\n  {framed:?}"));
            }
            if let Some(decoded) = own["decoded"][at].as_str().filter(|_| own.get("target_vocab").is_none()) {
                let here = tokenizer.decode(&there);
                if here != decoded {
                    wrong.push(format!("{name}, decoded: {text:?}\n  {here:?}\n  {decoded:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(expected["folders"].as_object().unwrap().len(), 43);
}

/// Targets are divided by a model of their own, with the ids of the sources' vocabulary or of another one.
#[test]
fn ids_of_targets_are_those_of_the_reference() {
    let expected = expected();
    let texts = expected["texts"].as_array().unwrap();
    let (mut wrong, mut differ) = (Vec::new(), 0);
    for (name, own) in expected["folders"].as_object().unwrap() {
        let Some(there) = own["target"].as_object() else { continue };
        let mut target = files(own);
        if let Some(name) = own["target_model"].as_str() {
            target.pieces = Some(model(name));
        }
        if let Some(vocab) = own.get("target_vocab") {
            target.ids = Some(vocab.to_string());
        }
        let tokenizer = target.tokenizer().unwrap_or_else(|why| panic!("{name}: {why}"));
        for (at, there) in there {
            let text = texts[at.parse::<usize>().unwrap()].as_str().unwrap();
            differ += usize::from(there != &own["ids"][at]);
            let there: Vec<u32> = serde_json::from_value(there.clone()).unwrap();
            let here = tokenizer.framed(text).unwrap().unwrap();
            if here != there {
                wrong.push(format!("{name}: {text:?}\n  {here:?}\n  {there:?}"));
            }
            if own.get("target_vocab").is_some() {
                assert_eq!(
                    tokenizer.decode(&there),
                    own["decoded"][at].as_str().unwrap(),
                    "{name}: {text:?}"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(differ > 40, "{differ}");
}

/// A model whose tokenizer has rules that are not known is not read by the rules of another.
#[test]
fn what_has_other_rules_is_refused() {
    let refusal = |files: Files| files.tokenizer().err().unwrap();
    let of = |kind: &str, class: Json, name: &str| Files {
        pieces: Some(model(name)),
        config: serde_json::json!({ "tokenizer_class": class }),
        model: kind.to_owned(),
        ..Files::default()
    };
    let null = Json::Null;
    assert!(refusal(of("m2m_100", null.clone(), "unigram")).contains("needs a vocab.json"));
    let own = serde_json::json!({ "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3 }).to_string();
    let mut taken = Files { ids: Some(own), ..of("m2m_100", null.clone(), "unigram") };
    // The class gives this id to the first language, and the library to the token that is added.
    taken.more = serde_json::json!({ "<new>": 4 });
    assert!(refusal(taken.clone()).contains("`<new>`, to which the library gives the id 4"));
    taken.more = serde_json::json!({ "__am__": 5 });
    assert!(refusal(taken).contains("`__am__`, to which the library gives the id 4"));
    assert!(refusal(of("m2m_100", "NllbTokenizer".into(), "bpe")).contains("the language `eng_Latn`"));
    assert!(refusal(of("m2m_100", "NllbTokenizer".into(), "unigram")).contains("algorithm Unigram"));
    let with_ids = |ids: Json| Files { ids: Some(ids.to_string()), ..of("marian", Json::Null, "unigram") };
    assert!(refusal(with_ids(serde_json::json!({ "<unk>": 0, "<pad>": 1 }))).contains("the token `</s>`"));
    let twice = serde_json::json!({ "<unk>": 0, "<pad>": 1, "</s>": 1 });
    assert!(refusal(with_ids(twice)).contains("have the same id 1"));
    let far = serde_json::json!({ "<unk>": 0, "<pad>": 1, "</s>": 4_000_000_000u32 });
    assert!(refusal(with_ids(far)).contains("far beyond"));
    assert!(refusal(of("deberta-v2", null.clone(), "unigram")).contains("the token `[CLS]`"));
    assert!(
        refusal(of("t5", "SeamlessM4TTokenizer".into(), "unigram")).contains("class `SeamlessM4TTokenizer`")
    );
    assert!(refusal(of("bert", null.clone(), "unigram")).contains("does not read a model of SentencePiece"));
    assert!(refusal(of("llama", null.clone(), "unigram")).contains("algorithm Unigram"));
    assert!(refusal(of("t5", null.clone(), "bpe")).contains("algorithm Bpe"));
    let mut more = of("llama", null.clone(), "bytes");
    more.more = serde_json::json!({ "<new>": 600 });
    assert!(refusal(more).contains("`<new>` the id 600"));
    let mut other = of("t5", null, "t5");
    other.pieces = None;
    other.words = Some("a\nb\n".to_owned());
    assert!(refusal(other).contains("another vocabulary"));
}

/// Beginnings of a file, and files with a changed byte, are read or refused.
#[test]
fn damage_is_no_panic() {
    let whole = model("albert");
    let read = |bytes: &[u8]| {
        Files { pieces: Some(bytes.to_vec()), model: "albert".to_owned(), ..Files::default() }.tokenizer()
    };
    assert!(read(b"").is_err() && read(b"\x0e").is_err() && read(&[0xff; 64]).is_err());
    for at in (0..whole.len()).step_by(97) {
        let _ = read(&whole[..at]);
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        let _ = read(&changed);
    }
}
