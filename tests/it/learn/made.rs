//! The small data sets in `data/` are what their program generates. An outdated file is written again, and
//! the test fails once.

#[path = "../../../examples/small_data.rs"]
mod small_data;

use crate::compiled::repository;

/// Only the program itself calls `main`.
const _: fn() = small_data::main;

#[test]
fn small_sets_are_what_their_program_makes() {
    let mut old = Vec::new();
    for (name, text) in small_data::files() {
        let found = std::fs::read_to_string(repository("data").join(name)).unwrap_or_default();
        if found != text {
            old.push(name);
            if std::env::var_os("CI").is_none() {
                std::fs::write(repository("data").join(name), text).unwrap();
            }
        }
    }
    assert!(
        old.is_empty(),
        "{old:?} were outdated and have been generated again with `cargo run --example small_data`"
    );
}

/// Some number words that are known to be right.
#[test]
fn numbers_are_said_as_people_say_them() {
    let files = small_data::files();
    let all: String = files.iter().filter(|(n, _)| n.ends_with(".csv")).map(|(_, t)| t.as_str()).collect();
    for line in [
        "21,de,einundzwanzig",
        "1999,de,eintausendneunhundertneunundneunzig",
        "101,de,einhunderteins",
        "99,en,ninety-nine",
        "1100,en,one thousand one hundred",
        "80,fr,quatre-vingts",
        "81,fr,quatre-vingt-un",
        "71,fr,soixante et onze",
        "77,fr,soixante-dix-sept",
        "61,fr,soixante et un",
        "600,fr,six cents",
        "1995,fr,mille neuf cent quatre-vingt-quinze",
        "16,es,dieciséis",
        "100,es,cien",
        "115,es,ciento quince",
        "731,es,setecientos treinta y uno",
        "1000,tr,bin",
        "1345,tr,bin üç yüz kırk beş",
    ] {
        assert!(all.lines().any(|l| l == line), "{line}");
    }
}
