//! Generates the small data sets in `data/`, so that every task can be trained without a network: `cargo
//! run --no-default-features --example small_data`. The program always writes the same files. They contain
//! nothing from other sources and may be used freely.
//!
//! `numbers*` are number words in five languages, for translation and the multilingual model: no number of
//! a test file occurs in a training file in any language. The others are sentences assembled from lists:
//! opinions with a yes or no, reports with a topic, people with what they do and where (questions in the
//! form of SQuAD, and words with classes).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use trafoc::learn::random::Stream;

/// The name of a language, and the function that spells a number below 10,000 in it.
type Language = (&'static str, fn(usize) -> String);

const LANGUAGES: [Language; 5] =
    [("de", german), ("en", english), ("es", spanish), ("fr", french), ("tr", turkish)];

/// How many numbers are spelled, and one in how many is held out.
const NUMBERS: usize = 2_000;
const HELD: u64 = 8;

/// Words with spaces between them; `-` where there is none.
struct List(&'static str);

impl List {
    /// The word with this number, from 0; empty after the last.
    fn word(&self, n: usize) -> &'static str {
        self.0.split(' ').nth(n).unwrap_or_default()
    }
}

fn joined(parts: &[String], between: &str) -> String {
    parts.iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<String>>().join(between)
}

fn english(n: usize) -> String {
    const LOW: List = List(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen \
        fourteen fifteen sixteen seventeen eighteen nineteen",
    );
    const TENS: List = List("- - twenty thirty forty fifty sixty seventy eighty ninety");
    match n {
        0..20 => LOW.word(n).to_owned(),
        20..100 if n.is_multiple_of(10) => TENS.word(n / 10).to_owned(),
        20..100 => format!("{}-{}", TENS.word(n / 10), LOW.word(n % 10)),
        100..1000 => rest(format!("{} hundred", LOW.word(n / 100)), n % 100, english, " "),
        _ => rest(format!("{} thousand", english(n / 1000)), n % 1000, english, " "),
    }
}

/// The word for the hundreds, followed by the rest if there is one.
fn rest(said: String, n: usize, say: fn(usize) -> String, between: &str) -> String {
    joined(&[said, if n == 0 { String::new() } else { say(n) }], between)
}

fn german(n: usize) -> String {
    const LOW: List = List(
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn \
        vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    );
    const TENS: List = List("- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig");
    // Before another word, `eins` loses its last letter.
    let one = |n: usize| if n == 1 { "ein" } else { LOW.word(n) };
    match n {
        0..20 => LOW.word(n).to_owned(),
        20..100 if n.is_multiple_of(10) => TENS.word(n / 10).to_owned(),
        20..100 => format!("{}und{}", one(n % 10), TENS.word(n / 10)),
        100..1000 => rest(format!("{}hundert", one(n / 100)), n % 100, german, ""),
        _ => rest(format!("{}tausend", one(n / 1000)), n % 1000, german, ""),
    }
}

fn french(n: usize) -> String {
    const LOW: List = List(
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze \
        quinze seize dix-sept dix-huit dix-neuf",
    );
    const TENS: List = List("- - vingt trente quarante cinquante soixante");
    match n {
        0..20 => LOW.word(n).to_owned(),
        // Like 61, but unlike 81, it has an `et`.
        71 => "soixante et onze".to_owned(),
        80 => "quatre-vingts".to_owned(),
        60..80 if n != 60 && n != 61 => format!("soixante-{}", LOW.word(n - 60)),
        81..100 => format!("quatre-vingt-{}", LOW.word(n - 80)),
        20..100 => match n % 10 {
            0 => TENS.word(n / 10).to_owned(),
            1 => format!("{} et un", TENS.word(n / 10)),
            unit => format!("{}-{}", TENS.word(n / 10), LOW.word(unit)),
        },
        100..200 => rest("cent".to_owned(), n % 100, french, " "),
        // `cent` has a plural only if nothing follows it.
        200..1000 if n.is_multiple_of(100) => format!("{} cents", LOW.word(n / 100)),
        200..1000 => rest(format!("{} cent", LOW.word(n / 100)), n % 100, french, " "),
        1000..2000 => rest("mille".to_owned(), n % 1000, french, " "),
        _ => rest(format!("{} mille", french(n / 1000)), n % 1000, french, " "),
    }
}

fn spanish(n: usize) -> String {
    const LOW: List = List(
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece \
        catorce quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno \
        veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho \
        veintinueve",
    );
    const TENS: List = List("- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa");
    const HUNDREDS: List = List(
        "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos \
        ochocientos novecientos",
    );
    match n {
        0..30 => LOW.word(n).to_owned(),
        30..100 if n.is_multiple_of(10) => TENS.word(n / 10).to_owned(),
        30..100 => format!("{} y {}", TENS.word(n / 10), LOW.word(n % 10)),
        100 => "cien".to_owned(),
        101..1000 => rest(HUNDREDS.word(n / 100).to_owned(), n % 100, spanish, " "),
        1000..2000 => rest("mil".to_owned(), n % 1000, spanish, " "),
        _ => rest(format!("{} mil", spanish(n / 1000)), n % 1000, spanish, " "),
    }
}

fn turkish(n: usize) -> String {
    const LOW: List = List("sıfır bir iki üç dört beş altı yedi sekiz dokuz");
    const TENS: List = List("- on yirmi otuz kırk elli altmış yetmiş seksen doksan");
    match n {
        0..10 => LOW.word(n).to_owned(),
        10..100 => rest(TENS.word(n / 10).to_owned(), n % 10, turkish, " "),
        // Before a hundred and a thousand, Turkish has no word for one.
        100..200 => rest("yüz".to_owned(), n % 100, turkish, " "),
        200..1000 => rest(format!("{} yüz", LOW.word(n / 100)), n % 100, turkish, " "),
        1000..2000 => rest("bin".to_owned(), n % 1000, turkish, " "),
        _ => rest(format!("{} bin", turkish(n / 1000)), n % 1000, turkish, " "),
    }
}

/// Words to choose from.
struct Choice(Stream);

impl Choice {
    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.0.below(words.len() as u64) as usize]
    }

    fn happens(&mut self, in_hundred: u64) -> bool {
        self.0.below(100) < in_hundred
    }
}

/// Digits with their words in every language, and pairs of English and French, each for training and for
/// test.
fn numbers() -> Vec<(&'static str, String)> {
    // The words of the numbers below 20 are needed for all others, so these numbers are for training.
    let mut order: Vec<usize> = (20..NUMBERS).collect();
    Stream::new(1, "numbers", 0).shuffle(&mut order);
    let held = &order[..NUMBERS / HELD as usize];
    let header = "number,language,words\n";
    let [mut train, mut test] = [header.to_owned(), header.to_owned()];
    let [mut pairs, mut other] = [String::new(), String::new()];
    for n in 0..NUMBERS {
        let is_held = held.contains(&n);
        let (table, lines) = if is_held { (&mut test, &mut other) } else { (&mut train, &mut pairs) };
        for (language, say) in LANGUAGES {
            let _ = writeln!(table, "{n},{language},{}", say(n));
        }
        let _ = writeln!(lines, "{}\t{}", english(n), french(n));
    }
    vec![
        ("numbers.csv", train),
        ("numbers-test.csv", test),
        ("numbers-en-fr.txt", pairs),
        ("numbers-en-fr-test.txt", other),
    ]
}

/// Opinions: is this a good one or a bad one?
fn opinions() -> String {
    const THINGS: [&str; 14] = [
        "soup", "bread", "service", "music", "room", "view", "coffee", "film", "story", "garden", "train",
        "hotel", "lamp", "chair",
    ];
    const GOOD: [&str; 10] = [
        "excellent",
        "lovely",
        "warm",
        "friendly",
        "fresh",
        "perfect",
        "charming",
        "bright",
        "delightful",
        "superb",
    ];
    const BAD: [&str; 10] =
        ["awful", "cold", "rude", "stale", "boring", "broken", "noisy", "dirty", "dreadful", "slow"];
    const HOW: [&str; 5] = ["", "really ", "rather ", "very ", "quite "];
    let mut choice = Choice(Stream::new(1, "opinions", 0));
    let mut out = String::from("text,label\n");
    let mut known = BTreeSet::new();
    while known.len() < 1_200 {
        let is_good = choice.happens(50);
        let clause = |choice: &mut Choice| {
            // A negated word means the opposite.
            let is_denied = choice.happens(30);
            let words = if is_good != is_denied { &GOOD } else { &BAD };
            let not = if is_denied { "not " } else { "" };
            let how = if is_denied { "" } else { choice.of(&HOW) };
            format!("the {} was {not}{how}{}", choice.of(&THINGS), choice.of(words))
        };
        let mut text = clause(&mut choice);
        if choice.happens(60) {
            text = format!("{text} and {}", clause(&mut choice));
        }
        if known.insert(text.clone()) {
            let _ = writeln!(out, "{text},{}", if is_good { "yes" } else { "no" });
        }
    }
    out
}

/// Reports on eight topics.
fn reports() -> String {
    const TOPICS: [(&str, [&str; 8]); 8] = [
        ("farming", ["harvest", "wheat", "barn", "tractor", "field", "cattle", "seed", "orchard"]),
        ("health", ["doctor", "clinic", "fever", "vaccine", "patient", "nurse", "surgery", "cure"]),
        ("law", ["court", "judge", "verdict", "trial", "appeal", "lawyer", "witness", "jury"]),
        ("money", ["bank", "shares", "profit", "loan", "interest", "market", "budget", "tax"]),
        ("music", ["concert", "violin", "singer", "album", "melody", "choir", "stage", "rhythm"]),
        ("sea", ["harbour", "sailor", "tide", "vessel", "anchor", "cargo", "captain", "wave"]),
        ("sport", ["goal", "team", "league", "coach", "match", "stadium", "runner", "medal"]),
        ("weather", ["storm", "rain", "sunshine", "frost", "forecast", "cloud", "thunder", "snow"]),
    ];
    const FILL: [&str; 16] = [
        "the", "a", "was", "on", "in", "today", "said", "new", "after", "again", "many", "people", "this",
        "week", "with", "near",
    ];
    let mut choice = Choice(Stream::new(1, "reports", 0));
    let mut out = String::from("text,label\n");
    for i in 0..1_600 {
        let (topic, words) = &TOPICS[i % TOPICS.len()];
        let length = 8 + choice.0.below(16);
        let mut text: Vec<&str> = Vec::new();
        for _ in 0..length {
            text.push(match choice.0.below(10) {
                0..3 => choice.of(words),
                // Occasionally a word of another topic.
                3 => {
                    let (_, others) = &TOPICS[choice.0.below(TOPICS.len() as u64) as usize];
                    choice.of(others)
                }
                _ => choice.of(&FILL),
            });
        }
        // Every report has at least two words of its topic.
        text.extend([choice.of(words), choice.of(words)]);
        let _ = writeln!(out, "{},{topic}", text.join(" "));
    }
    out
}

const NAMES: [&str; 24] = [
    "Ayşe", "Mehmet", "Zeynep", "Can", "Elif", "Deniz", "Anna", "Paul", "Marie", "Jonas", "Clara", "Felix",
    "Laura", "Simon", "Nora", "Emil", "Sofia", "Lucas", "Alice", "Hugo", "Chloé", "Louis", "Inés", "Pablo",
];
const PLACES: [&str; 20] = [
    "Ankara", "İzmir", "Konya", "Trabzon", "Berlin", "Bremen", "Leipzig", "Ulm", "Lyon", "Nantes", "Lille",
    "Brest", "Leeds", "York", "Bath", "Oxford", "Madrid", "Toledo", "Cádiz", "León",
];
const JOBS: [&str; 14] = [
    "baker",
    "teacher",
    "doctor",
    "painter",
    "gardener",
    "pilot",
    "tailor",
    "nurse",
    "carpenter",
    "writer",
    "librarian",
    "potter",
    "sailor",
    "cook",
];
const THINGS: [&str; 12] = [
    "apples",
    "old books",
    "stamps",
    "bicycles",
    "maps",
    "roses",
    "cheese",
    "chess",
    "trains",
    "tea",
    "puzzles",
    "clocks",
];

/// Some of the words, all different.
fn some<'w>(words: &[&'w str], count: usize, stream: &mut Stream) -> Vec<&'w str> {
    let mut words = words.to_vec();
    stream.shuffle(&mut words);
    words.truncate(count);
    words
}

/// Questions about people: every paragraph has four facts about one person, two of them with a place.
fn questions() -> String {
    let mut stream = Stream::new(1, "questions", 0);
    let mut paragraphs = Vec::new();
    for number in 0..400 {
        let name = some(&NAMES, 1, &mut stream)[0];
        let places = some(&PLACES, 2, &mut stream);
        let (job, thing) = (some(&JOBS, 1, &mut stream)[0], some(&THINGS, 1, &mut stream)[0]);
        let mut facts = [
            (format!("{name} lives in "), places[0], format!("Where does {name} live?")),
            (format!("{name} comes from "), places[1], format!("Where does {name} come from?")),
            (format!("{name} works as a "), job, format!("What is the work of {name}?")),
            (format!("{name} likes "), thing, format!("What does {name} like?")),
        ];
        stream.shuffle(&mut facts);
        let mut context = String::new();
        let mut asked = Vec::new();
        for (before, answer, question) in facts {
            context += &before;
            // SQuAD counts characters, not bytes.
            asked.push(serde_json::json!({
                "id": format!("{number}-{}", asked.len()),
                "question": question,
                "answers": [{ "text": answer, "answer_start": context.chars().count() }],
            }));
            context += &format!("{answer}. ");
        }
        paragraphs.push(serde_json::json!({ "context": context.trim_end(), "qas": asked }));
    }
    let data =
        serde_json::json!({ "version": "1.1", "data": [{ "title": "people", "paragraphs": paragraphs }] });
    format!("{data}\n")
}

/// Words of sentences about people, with the class of each.
fn tags() -> String {
    let mut stream = Stream::new(1, "tags", 0);
    let mut out = String::new();
    for _ in 0..600 {
        let name = some(&NAMES, 1, &mut stream)[0];
        let (place, job) = (some(&PLACES, 1, &mut stream)[0], some(&JOBS, 1, &mut stream)[0]);
        let sentence: Vec<&str> = match stream.below(4) {
            0 => vec![name, "lives", "in", place, "."],
            1 => vec!["the", job, name, "came", "from", place, "."],
            2 => vec!["in", place, "there", "is", "a", job, "called", name, "."],
            _ => vec![name, "and", "a", job, "met", "in", place, "today", "."],
        };
        for word in sentence {
            let class = match word {
                word if word == name => "PERSON",
                word if word == place => "PLACE",
                word if word == job => "WORK",
                _ => "O",
            };
            let _ = writeln!(out, "{word}\t{class}");
        }
        out.push('\n');
    }
    out
}

/// Every file with its content.
pub fn files() -> Vec<(&'static str, String)> {
    let mut files = numbers();
    files.extend([
        ("opinions.csv", opinions()),
        ("reports.csv", reports()),
        ("people.json", questions()),
        ("people.tsv", tags()),
    ]);
    files
}

/// Writes all files into `data/`.
pub fn main() {
    for (name, text) in files() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("cannot write {}: {error}", path.display());
        }
    }
}
