//! Data in the repository and texts of the tests' own, to batches.

use super::Pair;
use trafoc::learn::data::{Array, Dataset, Labels, Loader, prepare};
use trafoc::learn::recipe::Split;

/// The data of a recipe that has no fault.
pub fn prepared(pair: &mut Pair) -> Dataset {
    let recipe = pair.recipe.clone().unwrap_or_else(|| panic!("{}", pair.rendered()));
    let data = prepare(&recipe, &pair.spec, &pair.sources, &mut pair.sink);
    data.unwrap_or_else(|e| panic!("{e:?}\n{}", pair.rendered()))
}

#[test]
fn place_names_become_batches() {
    let mut pair = Pair::shipped("gbt-mulm", &[], &[]);
    let data = prepared(&mut pair);
    assert!(pair.found().is_empty(), "{}", pair.rendered());
    let tokenizer = data.codebook.tokenizer.clone().unwrap();
    assert_eq!(tokenizer.vocab(), 30);
    assert_eq!(data.train.len(), 29_996);
    assert_eq!(tokenizer.decode(&tokenizer.encode("çantırlı").unwrap()), "çantırlı");
    let mut loader = Loader::new(&data);
    assert_eq!(loader.steps_of_epoch(), 1_875);
    let batches = loader.step(0);
    let [batch] = batches.as_slice() else { panic!("{}", batches.len()) };
    let Some(Array::Ints { shape, values }) = batch.input("tokens") else { panic!() };
    let Labels::Positions { classes, weights, .. } = &batch.labels else { panic!() };
    assert_eq!(shape[0], 16);
    // Every name is read from the mark on and predicted up to it.
    for row in 0..16 {
        let range = row * shape[1]..(row + 1) * shape[1];
        let (read, predicted) = (&values[range.clone()], &classes[range.clone()]);
        let length = weights[range].iter().filter(|w| **w == 1.0).count();
        assert_eq!(read[0], 0);
        assert_eq!(read[1..length], predicted[..length - 1]);
        assert_eq!(predicted[length - 1], 0);
        assert!(read[1..length].iter().all(|id| *id > 0));
    }
    assert_eq!(batch.counted, weights.iter().filter(|w| **w == 1.0).count());
    // Any step can be had again, and an epoch sees every name once.
    assert_eq!(Loader::new(&data).step(4_000), Loader::new(&data).step(4_000));
    let mut seen: Vec<usize> = (0..1_875).flat_map(|s| loader.step(s)[0].indices.clone()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..29_996).collect::<Vec<_>>());
    assert_ne!(loader.step(0), loader.step(1_875));
    let all: usize = loader.part(Split::Train, None).map(|b| b.indices.len()).sum();
    assert_eq!(all, 29_996);
    let text = data.codebook.to_json().unwrap();
    assert_eq!(trafoc::learn::data::Codebook::from_json(&text).unwrap(), data.codebook);
}
