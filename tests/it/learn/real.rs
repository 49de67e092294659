//! Data sets that may not be distributed, read from a folder of the user: `TRAFOC_DATA`, or
//! `../shared/data` next to the repository. A test whose data is missing prints that and does nothing.

use std::path::PathBuf;

use super::Pair;
use super::data::prepared;
use trafoc::learn::data::{Array, Labels, Loader, Part};
use trafoc::learn::recipe::Split;
use trafoc::learn::token::from_files;

use crate::compiled::repository;

/// A file in that folder.
pub fn real(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TRAFOC_DATA").map(PathBuf::from);
    let path = folder.unwrap_or_else(|| repository("../shared/data")).join(path);
    if !path.exists() {
        eprintln!("SKIPPED: no `{path:?}`; TRAFOC_DATA names the folder of the real sets");
        return None;
    }
    Some(path)
}

pub fn set(key: &str, path: PathBuf) -> String {
    format!("{key}={}", path.display())
}

/// The numbers of the book's loader: 601 pairs, 184 and 201 words.
#[test]
fn fra_eng_is_read_as_the_book_does() {
    let Some(path) = real("fra-eng/fra.txt") else { return };
    let mut pair = Pair::shipped("d2l-nmt", &[&set("data.train", path)]);
    let data = prepared(&mut pair);
    assert!(pair.found().is_empty(), "{}", pair.rendered());
    let book = &data.codebook;
    assert_eq!(book.source_tokenizer().unwrap().vocab(), 184);
    assert_eq!(book.tokenizer.as_ref().unwrap().vocab(), 201);
    assert_eq!(data.train.len(), 601);
    let source = book.source_tokenizer().unwrap();
    let he = source.encode("He's calm.").unwrap();
    assert_eq!(source.decode(&he), "he's calm .");
    let batch = Loader::new(&data).step(0).remove(0);
    let names: Vec<&str> = batch.inputs.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["source", "source_mask", "target"]);
    let Some(Array::Ints { values, .. }) = batch.input("target") else { panic!() };
    assert_eq!(values[0], 2);
    assert!(Loader::new(&data).step(0)[0].tokens > 64);
}

#[test]
fn reuters_documents_have_eight_classes() {
    let (Some(train), Some(test)) = (real("reuters-r8/train.tab"), real("reuters-r8/test.tab")) else {
        return;
    };
    let over = [set("data.train", train), set("data.test", test)];
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let mut pair = Pair::shipped("doc-classify", &over);
    let data = prepared(&mut pair);
    assert!(pair.found().is_empty(), "{}", pair.rendered());
    assert_eq!((data.train.len(), data.test.as_ref().unwrap().len()), (5_485, 2_189));
    let classes = ["acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade"];
    assert_eq!(data.codebook.classes, classes);
    let Part::Classes { labels, .. } = &data.train else { panic!() };
    assert_eq!((0..labels.len()).filter(|i| labels.get(*i) == [2]).count(), 2_840);
    let loader = Loader::new(&data);
    let batch = loader.step(3).remove(0);
    let names: Vec<&str> = batch.inputs.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["tokens", "mask", "token_types"]);
    let Labels::Classes(classes) = &batch.labels else { panic!() };
    assert_eq!(classes.len(), 32);
    assert!(batch.input("tokens").unwrap().shape()[1] <= 128);
}

/// The text of an answer's tokens is the answer.
#[test]
fn xquad_answers_are_found_in_the_text() {
    for language in ["en", "tr", "de"] {
        let Some(path) = real(&format!("xquad/xquad.{language}.json")) else { return };
        let mut pair = Pair::shipped("bert-qa", &[&set("data.train", path)]);
        let data = prepared(&mut pair);
        let held = data.validation.as_ref().unwrap();
        assert_eq!(data.train.len() + held.len(), 1_190);
        let Part::Spans { questions, answer, contexts, .. } = &data.train else { panic!() };
        let Part::Spans { contexts: other, .. } = held else { panic!() };
        assert_eq!(contexts.len() + other.len(), 240);
        assert!(contexts.iter().all(|c| !other.contains(c)));
        let mut same = 0;
        for (question, span) in questions.iter().zip(answer) {
            let Some((first, last)) = span else { continue };
            let context = &contexts[question.context];
            let (start, end) = (context.bytes[*first as usize].0, context.bytes[*last as usize].1);
            let said = &context.text[start as usize..end as usize];
            assert!(said.contains(&question.answers[0]), "{said} for {:?}", question.answers);
            same += usize::from(said == question.answers[0]);
        }
        assert!(same * 100 > questions.len() * 97, "{language}: {same} of {}", questions.len());
        let batch = Loader::new(&data).step(0).remove(0);
        let Labels::Spans { start, end } = &batch.labels else { panic!() };
        let width = batch.input("tokens").unwrap().shape()[1] as i64;
        assert!(start.iter().zip(end).all(|(s, e)| s <= e && *e < width));
        for (index, (first, last)) in batch.indices.iter().zip(start.iter().zip(end)) {
            let said = data.answer(&data.train, *index, *first as usize, *last as usize).unwrap();
            assert!(said.contains(&questions[*index].answers[0]), "{said}");
        }
    }
}

#[test]
fn captions_in_two_files_belong_together() {
    let (Some(en), Some(fr)) = (real("multi30k/val.en.gz"), real("multi30k/val.fr.gz")) else { return };
    let both = format!("data.train=[{}, {}]", en.display(), fr.display());
    let over = ["data.format=parallel", "data.limit=5000", "tokens={bpe: {}}", &both];
    let mut pair = Pair::shipped("transformer", &over);
    let data = prepared(&mut pair);
    let (Part::Pairs { texts, .. }, Some(held)) = (&data.train, &data.validation) else { panic!() };
    assert_eq!(texts.len() + held.len(), 1_014);
    assert!(texts.iter().any(|(en, _)| en.starts_with("A group of men are loading cotton")));
}

#[test]
fn mnist_is_read_from_idx() {
    let (Some(images), Some(labels)) =
        (real("mnist/mnist10k-images-idx3-ubyte.gz"), real("mnist/mnist10k-labels-idx1-ubyte.gz"))
    else {
        return;
    };
    let both = format!("data.train=[{}, {}]", images.display(), labels.display());
    let mut pair = Pair::shipped("vit.mnist", &[&both]);
    let data = prepared(&mut pair);
    assert_eq!((data.train.len(), data.test.as_ref().unwrap().len()), (8_000, 2_000));
    let Part::Images { labels, pixels } = &data.train else { panic!() };
    assert_eq!(pixels.len(), 8_000 * 784);
    assert!(pixels.iter().all(|p| (0.0..=1.0).contains(p)));
    // The file is sorted by class, but the part is not.
    assert!(labels[..100].windows(2).any(|w| w[0] > w[1]) || labels.windows(2).all(|w| w[0] <= w[1]));
    let batch = Loader::new(&data).step(0).remove(0);
    assert_eq!(batch.input("image").unwrap().shape(), [64, 1, 28, 28]);
    assert_eq!(batch.tokens, 64 * 16);
    assert!(Loader::new(&data).part(Split::Test, Some(100)).map(|b| b.indices.len()).sum::<usize>() == 100);
}

/// Ids computed by OpenAI's own code.
#[test]
fn gpt2_says_what_it_always_said() {
    let (Some(encoder), Some(merges)) =
        (real("gpt2-tokenizer/encoder.json"), real("gpt2-tokenizer/vocab.bpe"))
    else {
        return;
    };
    let tokenizer = from_files(&encoder, Some(&merges)).unwrap();
    assert_eq!(tokenizer.vocab(), 50_257);
    let ids = |text| tokenizer.pieces(text).unwrap().into_iter().map(|p| p.id).collect::<Vec<_>>();
    assert_eq!(ids("Hello, world!"), [15_496, 11, 995, 0]);
    assert_eq!(tokenizer.decode(&ids("Hello, world! Çok güzel.")), "Hello, world! Çok güzel.");
    assert_eq!(tokenizer.special_tokens().end, Some(50_256));
}
