//! `tests/regressions/<reader>/`: what fuzzing and attacks have found, read again by the reader it broke; and
//! a short run of every reader over its own seeds, each cut off and changed in a few places.

use std::path::{Path, PathBuf};

use crate::compiled::repository;
use crate::readers::{LONGEST, READERS};

fn files(folder: &Path, end: &str, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files(&path, end, out),
            false if path.to_string_lossy().ends_with(end) => out.push(path),
            false => {}
        }
    }
}

#[test]
fn what_was_found_once_stays_mended() {
    let root = repository("tests/regressions");
    for entry in std::fs::read_dir(&root).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut all = Vec::new();
        files(&folder, "", &mut all);
        assert!(!all.is_empty(), "{name} holds nothing");
        // Readers of data are built with the feature `learn`.
        let Some(reader) = READERS.iter().find(|r| r.name == name) else {
            if cfg!(feature = "learn") {
                panic!("there is no reader `{name}`");
            }
            continue;
        };
        for path in all {
            // The last one that is printed is the one that a reader did not survive.
            eprintln!("{}", path.display());
            (reader.run)(&std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn every_reader_survives_its_own_files_and_what_is_left_of_them() {
    for reader in READERS {
        let mut all = Vec::new();
        reader.seeds.iter().for_each(|(folder, end)| files(&repository(folder), end, &mut all));
        assert!(!all.is_empty(), "{} has no files to begin with", reader.name);
        let mut bits = 1u64;
        let mut next = |n: usize| {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (bits >> 33) as usize % n.max(1)
        };
        for path in all {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.truncate(LONGEST);
            eprintln!("{}: {}", reader.name, path.display());
            (reader.run)(&bytes);
            let mut changed = bytes.clone();
            if let Some(byte) = changed.get_mut(next(bytes.len())) {
                *byte ^= 1 << next(8);
            }
            (reader.run)(&changed);
            (reader.run)(&bytes[..next(bytes.len())]);
        }
    }
}
