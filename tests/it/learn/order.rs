//! The order of examples, the masking of tokens and the first batches against those that
//! `tests/order/make.py` computes without trafoc.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use trafoc::learn::data::{Array, Batch, Labels, Loader, Order, Part};
use trafoc::learn::random::Counter;
use trafoc::learn::recipe::Split;

use super::Pair;
use super::data::prepared;
use super::real::{real, set};
use crate::compiled::repository;

fn vectors(key: &str) -> Json {
    let text = std::fs::read_to_string(repository("tests/order/vectors.json")).unwrap();
    serde_json::from_str::<Json>(&text).unwrap()[key].take()
}

fn numbers(json: &Json) -> Vec<u64> {
    json.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

#[test]
fn numbers_by_index_are_those_of_the_definition() {
    for case in vectors("counters").as_array().unwrap() {
        let (seed, purpose) = (case["seed"].as_u64().unwrap(), case["purpose"].as_str().unwrap());
        let counter = Counter::new(seed, purpose, &numbers(&case["numbers"]));
        let own: Vec<u64> = [0, 1, 2, 1 << 40, u64::MAX].into_iter().map(|n| counter.bits(n)).collect();
        assert_eq!(own, numbers(&case["draws"]), "{case}");
    }
    for case in vectors("orders").as_array().unwrap() {
        let count = case["count"].as_u64().unwrap();
        // The count is one of the numbers that make the key, as in `make.py`.
        let counter = Counter::new(5, "order", &[count]);
        let own: Vec<u64> = numbers(&case["places"]).iter().map(|at| counter.item(count, *at)).collect();
        assert_eq!(own, numbers(&case["items"]), "{count}");
    }
}

/// Every item occurs once, and every place has every item equally often.
#[test]
fn an_order_keeps_everything_and_is_fair() {
    for count in (1..40).chain([63, 64, 65, 1000, 4097]) {
        let counter = Counter::new(3, "order", &[count]);
        let mut items: Vec<u64> = (0..count).map(|at| counter.item(count, at)).collect();
        items.sort_unstable();
        assert_eq!(items, (0..count).collect::<Vec<_>>());
        assert_eq!(counter.item(count, count), count);
    }
    for count in [3u64, 7, 16] {
        let epochs = 1_000 * count;
        let mut counts = vec![0u32; (count * count) as usize];
        for epoch in 0..epochs {
            let counter = Counter::new(9, "order", &[epoch]);
            (0..count).for_each(|at| counts[(at * count + counter.item(count, at)) as usize] += 1);
        }
        // A thousand are expected, with a standard deviation of at most 32.
        assert!(counts.iter().all(|n| (850..1_150).contains(n)), "{count}: {counts:?}");
    }
}

#[test]
fn every_step_of_any_division_is_that_of_the_definition() {
    for case in vectors("plans").as_array().unwrap() {
        let of = |key: &str| case[key].as_u64().unwrap();
        let mut batch = trafoc::learn::recipe::Batch::usual();
        batch.size = trafoc::field::Size(of("size"));
        batch.accumulate = trafoc::field::Size(of("accumulate"));
        batch.bucket = trafoc::field::Count(of("bucket"));
        let examples = of("examples") as usize;
        let order = Order::new(&batch, examples, 11);
        let steps = case["steps"].as_array().unwrap();
        assert_eq!(order.steps_of_epoch() * 2, steps.len() as u64);
        for (number, step) in (0..).zip(steps) {
            // The lengths of the examples are those of `make.py`.
            let own = order.step(number, &|i| i * 7919 % 23);
            let own: Vec<Vec<u64>> = own.iter().map(|b| b.iter().map(|i| *i as u64).collect()).collect();
            let right: Vec<Vec<u64>> = step.as_array().unwrap().iter().map(numbers).collect();
            assert_eq!(own, right, "step {number} of {of:?}", of = case["examples"]);
        }
        let per_epoch = order.steps_of_epoch();
        for epoch in [0, 1] {
            let each = |at| order.step(epoch * per_epoch + at, &|i| i * 7919 % 23).concat();
            let mut seen: Vec<usize> = (0..per_epoch).flat_map(each).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..examples).collect::<Vec<_>>());
        }
    }
}

fn ints(batch: &Batch, name: &str) -> Vec<i64> {
    match batch.input(name) {
        Some(Array::Ints { values, .. }) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn sum(tables: &[&[i64]]) -> String {
    let mut hash = Sha256::new();
    tables.iter().flat_map(|t| t.iter()).for_each(|n| hash.update(n.to_le_bytes()));
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

fn labels(batch: &Batch) -> &[i64] {
    match &batch.labels {
        Labels::Positions { classes, .. } | Labels::Classes(classes) => classes,
        other => panic!("{other:?}"),
    }
}

/// The batch of every step in a file of another program.
fn steps(of: &str, loader: Loader<'_>, check: impl Fn(&Batch, &Json)) {
    let known = vectors(of);
    let known = known.as_object().unwrap();
    assert!(known.len() > 2);
    for (step, right) in known {
        let batch = loader.step(step.parse().unwrap()).remove(0);
        let indices: Vec<u64> = batch.indices.iter().map(|i| *i as u64).collect();
        assert_eq!(indices, numbers(&right["indices"]), "{of}: step {step}");
        check(&batch, right);
    }
}

#[test]
fn place_names_are_batched_as_another_program_does() {
    let mut pair = Pair::shipped("gbt-mulm", &[]);
    let data = prepared(&mut pair);
    steps("gbt-mulm", Loader::new(&data), |batch, right| {
        assert_eq!(batch.counted as u64, right["counted"].as_u64().unwrap());
        assert_eq!(sum(&[&ints(batch, "tokens"), labels(batch)]), right["sha256"].as_str().unwrap());
    });
    let first = &vectors("gbt-mulm")["0"]["tokens"];
    let batch = Loader::new(&data).step(0).remove(0);
    let flat: Vec<i64> = first.as_array().unwrap().iter().flat_map(numbers).map(|n| n as i64).collect();
    assert_eq!(ints(&batch, "tokens"), flat);
}

#[test]
fn translations_are_batched_as_another_program_does() {
    let Some(path) = real("fra-eng/fra.txt") else { return };
    let mut pair = Pair::shipped("d2l-nmt", &[&set("data.train", path)]);
    let data = prepared(&mut pair);
    steps("d2l-nmt", Loader::new(&data), |batch, right| {
        assert_eq!(batch.counted as u64, right["counted"].as_u64().unwrap());
        for name in ["source", "target"] {
            assert_eq!(sum(&[&ints(batch, name)]), right[name].as_str().unwrap());
        }
        assert_eq!(sum(&[labels(batch)]), right["labels"].as_str().unwrap());
    });
}

#[test]
fn digits_are_batched_as_another_program_does() {
    let mut pair = Pair::shipped("vit", &[]);
    let data = prepared(&mut pair);
    steps("vit", Loader::new(&data), |batch, right| {
        let classes: Vec<u64> = labels(batch).iter().map(|l| *l as u64).collect();
        assert_eq!(classes, numbers(&right["labels"]));
        let Some(Array::Floats { values, .. }) = batch.input("image") else { panic!() };
        let mut hash = Sha256::new();
        values.iter().for_each(|v| hash.update(v.to_le_bytes()));
        let own: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(own, right["sha256"].as_str().unwrap());
    });
    assert!(data.part(Split::Test).is_some());
}

/// Which tokens are masked, and what they become, follows from the seed, the epoch, the example and the
/// position.
#[test]
fn tokens_are_masked_as_another_program_does() {
    use trafoc::learn::data::{Codebook, Dataset, Part, Sequences};
    use trafoc::learn::recipe::agree::Task;
    let cases = vectors("masks");
    for shares in [0, 1] {
        let mut ids = Sequences::default();
        // The cases have two settings of the shares in turn.
        let of: Vec<&Json> = cases.as_array().unwrap().iter().skip(shares).step_by(2).collect();
        for case in &of {
            ids.push(&numbers(&case["ids"]).iter().map(|n| *n as u32).collect::<Vec<_>>());
        }
        let mut masking = trafoc::learn::recipe::Masking::usual();
        let share = |i: usize| trafoc::field::Probability(of[0]["shares"][i].as_f64().unwrap());
        (masking.share, masking.hide, masking.replace) = (share(0), share(1), share(2));
        let text = r#"{"task": "hidden_token", "longest": 64, "tokenizer": {"words": {"lower": true, "words": []}}}"#;
        let mut codebook = Codebook::from_json(text).unwrap();
        codebook.task = Task::HiddenToken;
        let dataset = Dataset {
            codebook,
            train: Part::Texts { ids, whole: true, characters: 0 },
            validation: None,
            test: None,
            batch: trafoc::learn::recipe::Batch::usual(),
            seed: 4,
            masking: Some(masking),
            has_types: false,
            vocab: 97,
            outputs: 0,
            positions: 0,
        };
        for (i, case) in of.iter().enumerate() {
            let batch = dataset.collate(Split::Train, &[i], 2);
            let Labels::Positions { classes, weights, .. } = &batch.labels else { panic!() };
            let right: Vec<i64> =
                case["right"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
            // A start token before the text, an end token after it; words have no mask token, and padding is
            // 1.
            let own: Vec<i64> = ints(&batch, "tokens")[1..].to_vec();
            let read: Vec<i64> = numbers(&case["read"]).iter().map(|n| *n as i64).collect();
            assert_eq!(own[..read.len()], read, "{case}");
            let counted: Vec<i64> =
                classes.iter().zip(weights).map(|(c, w)| if *w > 0.0 { *c } else { -1 }).collect();
            assert_eq!(counted[1..=right.len()], right, "{case}");
        }
    }
}

/// Images are read folder by folder, so the first of them are all of one class: an evaluation of some takes them from
/// the whole part, each at most once.
#[test]
fn some_images_are_of_all_classes() {
    let mut pair = Pair::shipped("vit", &[]);
    let mut data = prepared(&mut pair);
    let Part::Images { labels, .. } = &mut data.train else { panic!("these are images") };
    labels.sort();
    let total = labels.len();
    let seen = |limit: u64| -> (Vec<usize>, BTreeSet<i64>) {
        let batches: Vec<Batch> = Loader::new(&data).part(Split::Train, Some(limit)).collect();
        let classes = batches.iter().flat_map(|batch| match &batch.labels {
            Labels::Classes(classes) => classes.clone(),
            other => panic!("{other:?}"),
        });
        (batches.iter().flat_map(|batch| batch.indices.clone()).collect(), classes.collect())
    };
    let (indices, classes) = seen(30);
    assert_eq!((indices.len(), classes.len()), (30, 10), "{indices:?}");
    assert!(indices.is_sorted_by(|a, b| a < b) && indices.iter().all(|index| *index < total), "{indices:?}");
    assert_eq!(seen(total as u64 + 5).0, (0..total).collect::<Vec<_>>());
    assert!(seen(0).0.is_empty());
}
