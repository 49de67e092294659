//! Prepared data in a folder: the same data again, and nothing else that is in such a folder.

use std::path::Path;

use tempfile::TempDir;
use trafoc::learn::data::store::{self, StoreError};
use trafoc::learn::data::{Dataset, Inherited, prepare};
use trafoc::learn::random::Stream;
use trafoc::learn::whole::{FileList, LIST};

use super::Pair;
use crate::compiled::repository;

/// A spec with a head that no shipped recipe in the repository trains.
const SMALL: &str = "
trafo: 1
name: small
vocab: VOCAB
context: 200
d_model: 8
embed: {position: learned}
encoder: {layers: 1, attention: {heads: 2}}
head: HEAD
";

/// A recipe for such a spec. In both texts, words in capitals are replaced.
const RECIPE: &str = "
recipe: 1
data: {format: FORMAT, train: [DATA], split: {validation: 0.1}}
tokens: TOKENS
optimizer: {sgd: {learning_rate: 0.1}}
steps: 1
";

fn small(head: &str, vocab: u64, format: &str, file: &str, tokens: &str) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.yaml");
    let text = SMALL.replace("VOCAB", &vocab.to_string()).replace("HEAD", head);
    std::fs::write(&spec, text).unwrap();
    let file = repository("data").join(file);
    let recipe = RECIPE.replace("FORMAT", format).replace("DATA", file.to_str().unwrap());
    Pair::of_text("recipe.yaml", &recipe.replace("TOKENS", tokens), &spec, None, &[])
}

/// A pair for every kind of data.
fn pairs() -> Vec<(String, Pair)> {
    let shipped =
        ["gbt-mulm", "transformer.numbers", "bert-classify", "doc-classify.reports", "multilingual-nmt"];
    let more = ["vit", "gpt1", "bert-qa.people"];
    let named = shipped.iter().chain(&more).map(|name| ((*name).to_owned(), Pair::shipped(name, &[])));
    let mut all: Vec<(String, Pair)> = named.collect();
    let letters = "{characters: {boundary: '.'}}";
    all.push(("mlm".to_owned(), small("mlm", 30, "lines", "isimler.txt", letters)));
    all.push(("tag".to_owned(), small("{tag: {classes: 4}}", 259, "tagged", "people.tsv", "bytes")));
    all
}

fn read(pair: &mut Pair) -> Dataset {
    let recipe = pair.recipe.clone().unwrap_or_else(|| panic!("{}", pair.rendered()));
    let data = prepare(&recipe, &pair.spec, &Inherited::default(), &pair.sources, &mut pair.sink);
    data.unwrap_or_else(|e| panic!("{e:?}\n{}", pair.rendered()))
}

fn write(pair: &Pair, data: &Dataset, folder: &Path) -> store::Written {
    let codebook = vec![(store::CODEBOOK, data.codebook.to_json().unwrap())];
    let recipe = pair.recipe.as_ref().unwrap();
    store::write(folder, data, recipe, &pair.spec, &pair.sources, &codebook).unwrap()
}

fn open(pair: &mut Pair, folder: &Path) -> Result<Dataset, StoreError> {
    let recipe = pair.recipe.clone().unwrap();
    store::open(folder, &recipe, &pair.spec, &Inherited::default(), &pair.sources, &mut pair.sink)
}

#[test]
fn every_kind_of_data_is_the_same_again() {
    for (name, mut pair) in pairs() {
        let folder = tempfile::tempdir().unwrap();
        let data = read(&mut pair);
        let written = write(&pair, &data, folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), written.files, "{name}");
        let again = open(&mut pair, folder.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(again == data, "{name}");
        // Data that is written into the same folder again leaves no other files there.
        write(&pair, &data, folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), written.files, "{name}");
    }
}

/// The bytes of an array are those that another program expects.
#[test]
fn an_array_is_plain_numbers() {
    let mut pair = small("mlm", 30, "lines", "isimler.txt", "{characters: {boundary: '.'}}");
    let folder = tempfile::tempdir().unwrap();
    let data = read(&mut pair);
    write(&pair, &data, folder.path());
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let words = |name: &str| -> Vec<i32> {
        bytes(name).chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let offsets: Vec<i64> =
        bytes("train.ids.offsets.i64").chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    let ids = words("train.ids.i32");
    assert_eq!(offsets.len(), data.train.len() + 1);
    assert_eq!((offsets[0], *offsets.last().unwrap()), (0, ids.len() as i64));
    let trafoc::learn::data::Part::Texts { ids: own, .. } = &data.train else { panic!() };
    let third: Vec<i32> = own.get(2).iter().map(|id| *id as i32).collect();
    assert_eq!(ids[offsets[2] as usize..offsets[3] as usize], third);
    let json: serde_json::Value = serde_json::from_slice(&bytes("data.json")).unwrap();
    assert_eq!(json["spec"]["task"], "hidden_token");
    assert_eq!(json["sequence"]["before"], serde_json::json!([0]));
    assert_eq!(json["parts"]["train"]["arrays"]["ids"]["shape"], serde_json::json!([ids.len()]));
}

/// A folder with the data of digits, which are few.
fn digits() -> (TempDir, Pair, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let mut pair = Pair::shipped("vit", &["data.limit=40"]);
    let data = read(&mut pair);
    write(&pair, &data, folder.path());
    (folder, pair, data)
}

#[test]
fn damage_is_found_and_named() {
    let (folder, mut pair, data) = digits();
    let names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut stream = Stream::new(6, "flip", 0);
    for name in &names {
        let path = folder.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        for round in 0..40 {
            let mut damaged = bytes.clone();
            match round % 4 {
                0 => damaged.truncate(stream.below(bytes.len() as u64) as usize),
                1 => damaged.push(0),
                _ => {
                    let at = stream.below(8 * bytes.len() as u64) as usize;
                    damaged[at / 8] ^= 1 << (at % 8);
                }
            }
            std::fs::write(&path, damaged).unwrap();
            match open(&mut pair, folder.path()) {
                Err(StoreError::Damaged { why, .. }) => {
                    assert!(why.contains(name) || name == LIST, "{name}: {why}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        std::fs::remove_file(&path).unwrap();
        match open(&mut pair, folder.path()) {
            Err(StoreError::NotPrepared(_)) => assert_eq!(name, LIST),
            Err(StoreError::Damaged { why, .. }) => assert!(why.contains(name), "{why}"),
            other => panic!("{name}: {other:?}"),
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(open(&mut pair, folder.path()).unwrap() == data);
}

/// Arrays that contradict what is said of them are refused, whatever their checksums say, and never a panic.
#[test]
fn a_lie_with_right_checksums_is_refused() {
    let mut stream = Stream::new(8, "lie", 0);
    for (name, mut pair) in pairs() {
        if matches!(name.as_str(), "vit" | "multilingual-nmt" | "doc-classify.reports") {
            continue;
        }
        pair.recipe.as_mut().unwrap().data.limit = Some(trafoc::field::Size(60));
        let folder = tempfile::tempdir().unwrap();
        let data = read(&mut pair);
        write(&pair, &data, folder.path());
        let list = folder.path().join(LIST);
        let whole = std::fs::read(&list).unwrap();
        let names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|file| file != LIST)
            .collect();
        for file in &names {
            let path = folder.path().join(file);
            let bytes = std::fs::read(&path).unwrap();
            for round in 0..6 {
                let mut changed = bytes.clone();
                if changed.is_empty() {
                    continue;
                }
                match round % 3 {
                    0 => changed.truncate(stream.below(bytes.len() as u64) as usize),
                    1 => changed.extend_from_slice(&bytes),
                    _ => {
                        let at = stream.below(bytes.len() as u64) as usize;
                        changed[at] = stream.bits() as u8;
                    }
                }
                std::fs::write(&path, &changed).unwrap();
                std::fs::remove_file(&list).unwrap();
                let all = FileList::of(folder.path(), store::FORMAT, names.clone()).unwrap();
                all.write(folder.path()).unwrap();
                let found = open(&mut pair, folder.path());
                if round % 3 < 2 && file != "codebook.json" {
                    assert!(matches!(found, Err(StoreError::Damaged { .. })), "{name}: {file}: {found:?}");
                } else if let Ok(data) = found {
                    // Whatever is accepted can be used.
                    (0..data.train.len()).for_each(|i| {
                        let batch = data.collate(trafoc::learn::recipe::Split::Train, &[i], 0);
                        assert_eq!(batch.indices, [i]);
                    });
                }
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        std::fs::write(&list, whole).unwrap();
        assert!(open(&mut pair, folder.path()).unwrap() == data, "{name}");
    }
}

/// Data is refused that was prepared for something else, with what differs.
#[test]
fn data_for_another_spec_or_recipe_is_refused() {
    let letters = "{characters: {boundary: '.'}}";
    let mut pair = small("mlm", 30, "lines", "isimler.txt", letters);
    let folder = tempfile::tempdir().unwrap();
    let data = read(&mut pair);
    write(&pair, &data, folder.path());
    let why = |mut other: Pair| open(&mut other, folder.path()).unwrap_err().to_string();
    let spec = [
        (
            small("mlm", 31, "lines", "isimler.txt", letters),
            "whose `vocab` is 30, but that of this spec is 31",
        ),
        (small("{tag: {classes: 4}}", 30, "tagged", "people.tsv", "bytes"), "whose `head` is for text"),
    ];
    for (other, said) in spec {
        let why = why(other);
        assert!(why.contains(said), "{why}");
    }
    let mut longer = small("mlm", 30, "lines", "isimler.txt", letters);
    longer.spec.context = Some(300);
    assert!(why(longer).contains("whose `context` is 200, but that of this spec is 300"));
    type Change = fn(&mut trafoc::learn::recipe::Recipe);
    let changes: [(Change, &str); 4] = [
        (|r| r.data.limit = Some(trafoc::field::Size(7)), "limit: 7"),
        (|r| r.data.train.0[0].text += ".gz", "isimler.txt.gz"),
        (|r| r.seed = trafoc::field::Count(9), "seed: 9"),
        (|r| r.tokens = None, "`tokens:"),
    ];
    for (change, said) in changes {
        let mut other = small("mlm", 30, "lines", "isimler.txt", letters);
        change(other.recipe.as_mut().unwrap());
        let why = why(other);
        assert!(why.contains("by another recipe") && why.contains(said), "{why}");
    }
    // What does not change the data may differ.
    let mut other = small("mlm", 30, "lines", "isimler.txt", letters);
    let recipe = other.recipe.as_mut().unwrap();
    recipe.steps = Some(trafoc::field::Size(9));
    recipe.batch.size = trafoc::field::Size(3);
    let again = open(&mut other, folder.path()).unwrap();
    assert!(again.train == data.train && again.batch != data.batch);
}

/// A file that has changed since is named; one that is not there is not needed.
#[test]
fn a_changed_file_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("names.txt");
    let names = "ab\nba\nabba\nbaab\naa\nbb\nabab\nbaba\naab\nbba\n";
    std::fs::write(&file, names).unwrap();
    let mut pair = small("mlm", 3, "lines", file.to_str().unwrap(), "{characters: {boundary: '.'}}");
    let folder = place.path().join("data");
    let data = read(&mut pair);
    write(&pair, &data, &folder);
    std::fs::write(&file, names.replace("abba", "baba")).unwrap();
    let why = open(&mut pair, &folder).unwrap_err().to_string();
    assert!(why.contains("names.txt") && why.contains("another"), "{why}");
    std::fs::remove_file(&file).unwrap();
    assert!(open(&mut pair, &folder).unwrap() == data);
}
