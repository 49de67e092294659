//! Inputs from inputs: a reader's own files with bytes, words, numbers and stretches exchanged.

use std::fs;
use std::path::Path;

use fastrand::Rng;

/// What texts of these formats consist of, and what readers stumble over.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "8",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "1099511627776",
    "9223372036854775807",
    "18446744073709551616",
    "1e400",
    "-0",
    "1e-5",
    "0x1F",
    "0755",
    "8/3 * d_model",
    "sqrt(2)",
    "----4",
    "4#",
    "\" 6\"",
    "null",
    "true",
    "none",
    "nan",
    "inf",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    ": ",
    ",",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "//",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "- ",
    "|\n  ",
    ">\n  ",
    "&a ",
    "*a",
    "<<: ",
    "!delete",
    "delete!",
    "%",
    "\\",
    "=",
    "..",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[31m",
    "\u{9b}",
    "\u{0}",
    "\u{e9}",
    "\u{1f980}",
    "\u{301}",
    "model ",
    "block(x) { ",
    "layers 0..3 { ",
    "norm",
    "attention",
    "ffn",
    "heads",
    "layers",
    "d_model",
    "ranges",
    "let",
];

/// The files a reader begins with.
pub struct Corpus {
    files: Vec<Vec<u8>>,
    longest: usize,
}

impl Corpus {
    /// The files of folders, and of the folders in them, whose names end so.
    pub fn of(root: &Path, seeds: &[(&str, &str)], longest: usize) -> Self {
        // An empty file is one of them.
        let mut files = vec![Vec::new()];
        for (folder, end) in seeds {
            collect(&root.join(folder), end, longest, &mut files);
        }
        Self { files, longest }
    }

    fn any(&self, random: &mut Rng) -> &[u8] {
        self.files.get(random.usize(..self.files.len())).map_or(&[], Vec::as_slice)
    }

    /// A file with a few changes.
    pub fn mutant(&self, random: &mut Rng) -> Vec<u8> {
        let mut input = self.any(random).to_vec();
        // Often one change, so that what follows it is still read.
        for _ in 0..1 + random.usize(..8) * random.usize(..2) {
            self.change(&mut input, random);
        }
        input.truncate(self.longest);
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Rng) {
        let len = input.len();
        let at = random.usize(..=len);
        let end = (at + 1 + random.usize(..16)).min(len);
        let word = WORDS.get(random.usize(..WORDS.len())).map_or("", |w| *w).as_bytes();
        match random.u8(..10) {
            0 if at < len => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
            1 => drop(input.drain(at..end)),
            2 => drop(input.splice(at..at, word.iter().copied())),
            // A word in the place of another.
            3 | 4 => {
                let (from, to) = word_around(input, at);
                drop(input.splice(from..to, word.iter().copied()));
            }
            // A word of another file in the place of one.
            5 | 6 => {
                let other = self.any(random);
                let (a, b) = word_around(other, random.usize(..=other.len()));
                let (from, to) = word_around(input, at);
                drop(input.splice(from..to, other.get(a..b).unwrap_or(&[]).iter().copied()));
            }
            // A stretch of another file.
            7 => {
                let other = self.any(random);
                let from = random.usize(..=other.len());
                let to = (from + random.usize(..200)).min(other.len());
                drop(input.splice(at..at, other.get(from..to).unwrap_or(&[]).iter().copied()));
            }
            // A stretch again and again, as for lists and brackets that are too deep or too long.
            8 => {
                let stretch = input.get(at..end).unwrap_or(&[]).repeat(1 << random.u8(..10));
                drop(input.splice(at..at, stretch));
            }
            _ => {
                let (from, to) = line_around(input, at);
                let line = input.get(from..to).unwrap_or(&[]).to_vec();
                let there = line_around(input, random.usize(..=len)).0;
                drop(input.splice(there..there, line));
            }
        }
    }
}

/// The letters and digits around a place; nothing if there are none.
fn word_around(text: &[u8], at: usize) -> (usize, usize) {
    around(text, at, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
}

/// The line around a place, with its end.
fn line_around(text: &[u8], at: usize) -> (usize, usize) {
    let (from, to) = around(text, at, |b| b != b'\n');
    (from, (to + 1).min(text.len()))
}

fn around(text: &[u8], at: usize, inside: impl Fn(u8) -> bool) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(&[]);
    let after = text.get(at..).unwrap_or(&[]);
    let from = before.iter().rposition(|b| !inside(*b)).map_or(0, |i| i + 1);
    let to = at + after.iter().position(|b| !inside(*b)).unwrap_or(after.len());
    (from, to)
}

fn collect(folder: &Path, end: &str, longest: usize, files: &mut Vec<Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, end, longest, files);
        } else if path.to_string_lossy().ends_with(end)
            && let Ok(mut bytes) = fs::read(&path)
        {
            bytes.truncate(longest);
            files.push(bytes);
        }
    }
}
