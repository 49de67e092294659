//! Feeds files to one reader of trafoc, guided by coverage: an input that reaches new code is kept and mutated further. `.ci/run
//! guided SECONDS READER` builds it with counters and runs it; `TRAFOC_READER` names the reader. Before the first input, the
//! seeds of the reader are written to the folder `TRAFOC_SEEDS`.
#![no_main]

// `mutant` and `hostile` belong to the other driver.
#[allow(dead_code)]
#[path = "../../src/mutate.rs"]
mod mutate;
#[path = "../../../tests/it/readers.rs"]
mod readers;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

use mutate::Corpus;
use readers::{LONGEST, READERS, Reader};

static READER: LazyLock<&'static Reader> = LazyLock::new(|| {
    let name = std::env::var("TRAFOC_READER").expect("TRAFOC_READER names a reader");
    READERS.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no reader is named `{name}`"))
});

static SEEDS: LazyLock<Corpus> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Corpus::of(&root, READER.seeds, LONGEST)
});

fn begin() {
    // libFuzzer's own hook ends the program at every panic, whereas trafoc reports the panics of some libraries as
    // errors. An uncaught panic ends the program without that hook as well.
    drop(std::panic::take_hook());
    let folder = std::env::var("TRAFOC_SEEDS").expect("TRAFOC_SEEDS names a folder");
    for (number, file) in (0..).map_while(|n| Some((n, SEEDS.file(n)?))) {
        fs::write(Path::new(&folder).join(format!("seed-{number:04}")), file).expect("the folder can be written");
    }
}

fuzz_target!(init: begin(), |bytes: &[u8]| {
    if bytes.len() <= LONGEST {
        (READER.run)(bytes);
    }
});

// Half of the time words, lines and numbers are exchanged, and otherwise bytes.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = fastrand::Rng::with_seed(u64::from(seed));
    if random.bool() {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut input = data.get(..size).unwrap_or(&[]).to_vec();
    SEEDS.alter(&mut input, &mut random);
    input.truncate(max_size);
    if let Some(place) = data.get_mut(..input.len()) {
        place.copy_from_slice(&input);
    }
    input.len()
});
