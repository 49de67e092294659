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
    // What equations consist of.
    "x = ",
    "x",
    "y = norm(x)\n",
    "memory",
    "[a]",
    "a(x)",
    "norm(x)",
    "ffn(",
    "attention(",
    "cross(x, memory)",
    "(x, memory):\n",
    "linear(x, 8)",
    "linear[a](",
    "split(x, 2)",
    "merge(",
    "softmax(",
    "scores(x, x)",
    "recurrence(x, x, x, 0.9)",
    "einsum(\"btd,de->bte\", x, ",
    "param[a](8)",
    "shift(x, 1)",
    "gain(x, init: 0.5)",
    "bias: false",
    "required",
    ";",
    "+",
    "-",
    "*",
    "/",
    "^",
    "==",
    "0.5x",
    "2 ",
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

    /// One of the files themselves.
    pub fn file(&self, number: usize) -> Option<&[u8]> {
        self.files.get(number).map(Vec::as_slice)
    }

    fn any(&self, random: &mut Rng) -> &[u8] {
        self.files.get(random.usize(..self.files.len())).map_or(&[], Vec::as_slice)
    }

    /// A file with a few changes.
    pub fn mutant(&self, random: &mut Rng) -> Vec<u8> {
        let mut input = self.any(random).to_vec();
        self.alter(&mut input, random);
        input
    }

    /// Changes a file in a few places.
    pub fn alter(&self, input: &mut Vec<u8>, random: &mut Rng) {
        // Often one change, so that what follows it is still read.
        for _ in 0..1 + random.usize(..8) * random.usize(..2) {
            self.change(input, random);
        }
        input.truncate(self.longest);
    }

    /// A file with one thing done to it out of all proportion: what is read in time and memory that grow with
    /// the square of a text, or with the sizes it names, shows in these.
    pub fn hostile(&self, random: &mut Rng) -> Vec<u8> {
        let mut input = self.any(random).to_vec();
        let at = random.usize(..=input.len());
        let room = self.longest.saturating_sub(input.len());
        // Not always as much as there is room for: limits on counts are passed at all orders of magnitude.
        let room = room >> random.u8(..8);
        match random.u8(..8) {
            // A line with what is indented under it, many times, with other numbers and names each time.
            0..=2 => {
                let (from, to) = paragraph_around(&input, at);
                let lines = input.get(from..to).unwrap_or(&[]).to_vec();
                let mut more = Vec::new();
                for number in 0.. {
                    let before = more.len();
                    numbered(&lines, number, &mut more);
                    if more.len() > room || more.len() == before {
                        break;
                    }
                }
                drop(input.splice(to..to, more));
            }
            // A word, or brackets around it, many times.
            3 | 4 => {
                let (from, to) = word_around(&input, at);
                let word = input.get(from..to).unwrap_or(&[]).to_vec();
                let pairs: [(&[u8], &[u8]); 8] = [
                    (b"[", b"]"),
                    (b"{a: ", b"}"),
                    (b"(", b")"),
                    (b"-", b""),
                    (b"norm(", b")"),
                    (b"1 + ", b""),
                    (b"x = x + ", b""),
                    (b"a", b""),
                ];
                let (open, close) = pairs.get(random.usize(..pairs.len())).copied().unwrap_or_default();
                let count = room / (open.len() + close.len());
                let nested = [open.repeat(count), word, close.repeat(count)].concat();
                drop(input.splice(from..to, nested));
            }
            // Every number, or one, as large as a number gets.
            5 | 6 => {
                const SIZES: &[&str] =
                    &["65536", "1000000", "4294967295", "1099511627776", "9007199254740991"];
                let size = SIZES.get(random.usize(..SIZES.len())).map_or("", |s| *s).as_bytes();
                let chosen = random.u8(1..6);
                let mut all = Vec::new();
                let mut rest = input.as_slice();
                while let Some((first, _)) = rest.split_first() {
                    let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
                    let (number, after) = rest.split_at(digits.max(1));
                    let large = first.is_ascii_digit() && random.u8(..chosen) == 0;
                    all.extend_from_slice(if large { size } else { number });
                    rest = after;
                }
                input = all;
            }
            // One stretch without an end.
            _ => {
                let word = WORDS.get(random.usize(..WORDS.len())).map_or("", |w| *w).as_bytes();
                drop(input.splice(at..at, word.repeat(room / word.len().max(1))));
            }
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

/// The line around a place and those after it that are indented further.
fn paragraph_around(text: &[u8], at: usize) -> (usize, usize) {
    let indent = |line: &[u8]| line.iter().take_while(|b| **b == b' ').count();
    let (from, mut to) = line_around(text, at);
    let own = indent(text.get(from..to).unwrap_or(&[]));
    while to < text.len() {
        let (next, end) = line_around(text, to);
        if indent(text.get(next..end).unwrap_or(&[])) <= own {
            break;
        }
        to = end;
    }
    (from, to)
}

/// Lines with a number instead of their first one, or after their first word.
fn numbered(lines: &[u8], number: usize, out: &mut Vec<u8>) {
    let digits = |b: &u8| b.is_ascii_digit();
    let from = lines.iter().position(digits);
    let from = from.or_else(|| Some(word_around(lines, lines.iter().position(u8::is_ascii_alphabetic)?).1));
    let Some(from) = from else { return };
    let (before, rest) = lines.split_at(from);
    let to = rest.iter().position(|b| !digits(b)).unwrap_or(rest.len());
    out.extend_from_slice(before);
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(rest.get(to..).unwrap_or(&[]));
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
