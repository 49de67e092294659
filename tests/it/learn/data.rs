//! From the data in the repository, and from texts of the tests, to batches.

use super::Pair;
use trafoc::learn::data::{Array, Dataset, Inherited, Labels, Loader, Part, prepare};
use trafoc::learn::recipe::Split;

/// The data of a recipe without errors.
pub fn prepared(pair: &mut Pair) -> Dataset {
    let recipe = pair.recipe.clone().unwrap_or_else(|| panic!("{}", pair.rendered()));
    let data = prepare(&recipe, &pair.spec, &Inherited::default(), &pair.sources, &mut pair.sink);
    data.unwrap_or_else(|e| panic!("{e:?}\n{}", pair.rendered()))
}

#[test]
fn place_names_become_batches() {
    let mut pair = Pair::shipped("gbt-mulm", &[]);
    let data = prepared(&mut pair);
    assert!(pair.found().is_empty(), "{}", pair.rendered());
    let tokenizer = data.codebook.tokenizer.clone().unwrap();
    assert_eq!(tokenizer.vocab(), 30);
    assert_eq!(data.train.len(), 29_996);
    assert_eq!(tokenizer.decode(&tokenizer.encode("çantırlı").unwrap()), "çantırlı");
    let loader = Loader::new(&data);
    assert_eq!(loader.steps_of_epoch(), 1_875);
    let batches = loader.step(0);
    let [batch] = batches.as_slice() else { panic!("{}", batches.len()) };
    let Some(Array::Ints { shape, values }) = batch.input("tokens") else { panic!() };
    let Labels::Positions { classes, weights, .. } = &batch.labels else { panic!() };
    assert_eq!(shape[0], 16);
    // Every name is read from the start token on and predicted up to the end token.
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
    // Any step can be computed again, and an epoch contains every name once.
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

/// The data of every recipe whose files are in the repository can be read without diagnostics.
#[test]
fn shipped_data_fits_its_recipes() {
    let small = [
        ("gbt-mulm", 29_996, 0),
        ("transformer.numbers", 1_750, 250),
        ("bert-classify", 960, 240),
        ("doc-classify.reports", 1_280, 320),
        ("multilingual-nmt", 8_750, 1_250),
        ("vit", 1_438, 359),
    ];
    let mut wrong = Vec::new();
    for (name, train, test) in small {
        let mut pair = Pair::shipped(name, &[]);
        let data = prepared(&mut pair);
        if !pair.found().is_empty() {
            wrong.push(format!("{name}:\n{}", pair.rendered()));
        }
        assert_eq!((data.train.len(), data.test.as_ref().map_or(0, |p| p.len())), (train, test), "{name}");
    }
    for name in ["gpt1", "bert-qa.people"] {
        let mut pair = Pair::shipped(name, &[]);
        let data = prepared(&mut pair);
        assert!(data.validation.is_some_and(|p| p.len() * 10 > data.train.len()) || name == "gpt1");
        if !pair.found().is_empty() {
            wrong.push(format!("{name}:\n{}", pair.rendered()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The inputs of every task by their names, shapes and labels.
#[test]
fn batches_are_named_like_the_inputs_of_the_graph() {
    let first = |name: &str| {
        let mut pair = Pair::shipped(name, &[]);
        let batch = Loader::new(&prepared(&mut pair)).step(0).remove(0);
        let names: Vec<&str> = batch.inputs.iter().map(|(n, _)| *n).collect();
        (names, batch)
    };
    let (names, batch) = first("multilingual-nmt");
    assert_eq!(names, ["source", "source_mask", "target", "language"]);
    assert_eq!(batch.input("language").unwrap().shape(), [64]);
    let (names, batch) = first("bert-classify");
    assert_eq!(names, ["tokens", "mask", "token_types"]);
    // A batch of examples of equal length needs no mask.
    let mut pair = Pair::shipped("bert-classify", &["batch.size=1"]);
    let one = Loader::new(&prepared(&mut pair)).step(0).remove(0);
    assert_eq!(one.inputs.iter().map(|(n, _)| *n).collect::<Vec<_>>(), ["tokens", "token_types"]);
    assert_eq!(first("doc-classify.reports").0, ["tokens", "mask", "token_types"]);
    let Labels::Several { shape, values } = &batch.labels else { panic!() };
    assert_eq!(*shape, [32, 1]);
    assert!(values.contains(&0.0) && values.contains(&1.0));
    let (names, batch) = first("vit");
    assert_eq!(names, ["image"]);
    let Some(Array::Floats { shape, values }) = batch.input("image") else { panic!() };
    assert_eq!(*shape, [64, 1, 8, 8]);
    assert!(values.contains(&1.0) && values.iter().all(|v| (0.0..=1.0).contains(v)));
    assert_eq!((batch.tokens, batch.counted), (64 * 16, 64));
    let (_, batch) = first("gpt1");
    assert_eq!(batch.input("tokens").unwrap().shape(), [16, 64]);
    assert_eq!(batch.counted, 16 * 64);
    let (names, _) = first("bert-qa.people");
    // Paragraphs of equal length need no mask.
    assert!(names.contains(&"token_types") && !names.contains(&"source"), "{names:?}");
}

/// Two texts, and a question with its paragraph, that are longer than the context are cut to it.
#[test]
fn two_texts_are_cut_to_the_context() {
    const CONTEXT: usize = 11;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let words = |n: usize, word: &str| vec![word; n].join(" ");
    let sizes = [(2, 20), (20, 2), (9, 9), (3, 3), (20, 0), (20, 20)];
    let rows = sizes.map(|(a, b)| format!("{}\t{}\tx\n", words(a, "a"), words(b, "b")));
    std::fs::write(path("table.tsv"), format!("one\tother\tlabel\n{}y\ty\ty\n", rows.concat())).unwrap();
    let asked = sizes.map(|(a, b)| {
        let context = words(b + 1, "b");
        format!(
            r#"{{"context": "{context}", "qas": [{{"id": "{a}-{b}", "question": "{}",
                "answers": [{{"text": "b", "answer_start": 0}}]}}]}}"#,
            words(a, "a")
        )
    });
    let squad = format!(r#"{{"data": [{{"paragraphs": [{}]}}]}}"#, asked.join(","));
    std::fs::write(path("squad.json"), squad).unwrap();
    for (head, format, file, examples) in [
        (
            "{classify: {classes: 2}}",
            "{table: {header: 1, text: one, second: other, label: label}}",
            "table.tsv",
            7,
        ),
        ("span", "squad", "squad.json", 6),
    ] {
        let spec = format!(
            "name: two\ncontext: {CONTEXT}\nvocab: 64\nd_model: 8\nembed: {{segments: 2}}\n\
             encoder: {{layers: 1, attention: {{heads: 2}}}}\nhead: {head}\n"
        );
        std::fs::write(path("spec.yaml"), spec).unwrap();
        let recipe = format!(
            "recipe: 1\ndata: {{format: {format}, train: {file}, too_long: cut}}\n\
             tokens: {{words: {{min_frequency: 1}}}}\nbatch: {{size: 1}}\nsteps: 1\n"
        );
        let name = path("recipe.yaml").to_str().unwrap().to_owned();
        let mut pair = Pair::of_text(&name, &recipe, &path("spec.yaml"), None, &[]);
        let data = prepared(&mut pair);
        let widths: Vec<usize> = Loader::new(&data)
            .part(Split::Train, None)
            .map(|batch| match batch.input("tokens") {
                Some(Array::Ints { shape, .. }) => shape[1],
                _ => panic!("no tokens"),
            })
            .collect();
        assert_eq!(widths.len(), examples);
        assert!(widths.iter().all(|width| *width <= CONTEXT), "{file}: {widths:?}");
        assert!(widths.iter().filter(|width| **width == CONTEXT).count() >= 4, "{file}: {widths:?}");
    }
}

/// A row of the table of languages keeps its meaning when training goes on with other data.
#[test]
fn languages_keep_the_indices_of_a_trained_model() {
    let mut pair = Pair::shipped("multilingual-nmt", &[]);
    let mut known = prepared(&mut pair).codebook.languages;
    assert!(known.len() > 2 && known.is_sorted(), "{known:?}");
    known.reverse();
    // The model knows all but one of those that the data has, in an order of its own.
    let new = known.remove(1);
    let inherited = Inherited { languages: known.clone(), ..Inherited::default() };
    let recipe = pair.recipe.clone().unwrap();
    let data = prepare(&recipe, &pair.spec, &inherited, &pair.sources, &mut pair.sink).unwrap();
    known.push(new);
    assert_eq!(data.codebook.languages, known);
}

/// Bits per character are of the characters that are predicted, so those of a text that is cut do not count.
#[test]
fn what_is_cut_off_a_text_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("texts.txt"), "äbcdefghijklmnop\nqr\n").unwrap();
    let spec = "name: cut\ncontext: 8\nvocab: 300\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
    std::fs::write(path("spec.yaml"), spec).unwrap();
    for (how, characters) in [("cut", 7 + 2), ("skip", 2)] {
        let recipe = format!(
            "recipe: 1\ndata: {{format: lines, train: texts.txt, longest: 8, too_long: {how}}}\n\
             tokens: characters\nbatch: {{size: 1}}\nsteps: 1\n"
        );
        let name = path("recipe.yaml").to_str().unwrap().to_owned();
        let mut pair = Pair::of_text(&name, &recipe, &path("spec.yaml"), None, &[]);
        let data = prepared(&mut pair);
        let Part::Texts { characters: counted, .. } = data.train else { panic!("no texts") };
        assert_eq!(counted, characters, "{how}");
    }
}

/// The pieces of one text share a token, which is predicted by the first of them alone; nothing predicts the very
/// first token. So a limit counts as many characters as there are predictions, and so does no limit.
#[test]
fn characters_are_counted_where_they_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("text.txt"), "abcdefghij").unwrap();
    std::fs::write(path("words.txt"), "Gib mir das Buch es ist das beste Buch").unwrap();
    let spec = "name: cut\ncontext: 3\nvocab: 300\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
    std::fs::write(path("spec.yaml"), spec).unwrap();
    let counted = |file: &str, format: &str, tokens: &str| {
        let recipe = format!(
            "recipe: 1\ndata: {{format: {format}, train: {file}}}\ntokens: {tokens}\nbatch: {{size: 1}}\nsteps: 1\n"
        );
        let name = path("recipe.yaml").to_str().unwrap().to_owned();
        let mut pair = Pair::of_text(&name, &recipe, &path("spec.yaml"), None, &[]);
        let data = prepared(&mut pair);
        // What the pieces share is counted once among the tokens, too.
        let Part::Texts { ids, .. } = &data.train else { panic!("no texts") };
        let all = data.train.distinct((0..ids.len()).map(|i| ids.get(i)).collect());
        let text = std::fs::read_to_string(path(file)).unwrap();
        let whole = data.codebook.tokenizer.as_ref().unwrap().encode(&text.replace('\n', "")).unwrap();
        let breaks = if format == "text" && !tokens.contains("words") { 1 } else { 0 };
        assert_eq!(all.flatten().count(), whole.len() + breaks, "{tokens}");
        (0..=data.train.len()).map(|count| data.characters(Split::Train, count)).collect::<Vec<u64>>()
    };
    for tokens in ["characters", "bytes"] {
        assert_eq!(counted("text.txt", "text", tokens), [0, 3, 6, 9, 10], "{tokens}");
    }
    // A space belongs to the word after it, also where a piece begins with the word before it. The break at the end
    // of the file has no token, and is one of the text's characters all the same.
    assert_eq!(counted("words.txt", "text", "{words: {lower: false}}"), [0, 13, 24, 36]);
    // A start token predicts the first character of a text.
    std::fs::write(path("lines.txt"), "ab\nc\n").unwrap();
    assert_eq!(counted("lines.txt", "lines", "characters"), [0, 2, 3]);
}

/// `|` separates classes only where a text may have several.
#[test]
fn a_class_may_have_a_bar_in_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("table.tsv"), "text\tlabel\na b\tx|y\nb a\tx\n").unwrap();
    std::fs::write(
        path("table.jsonl"),
        "{\"text\": \"a\", \"label\": \"x|y\"}\n{\"text\": \"b\", \"label\": \"x\"}\n",
    )
    .unwrap();
    let classes = |file: &str, several: bool, count: u64| {
        let spec = format!(
            "name: bar\ncontext: 8\nvocab: 300\nd_model: 8\nencoder: {{layers: 1, attention: {{heads: 2}}}}\n\
             head: {{classify: {{classes: {count}, multi_label: {several}}}}}\n"
        );
        std::fs::write(path("spec.yaml"), spec).unwrap();
        let recipe = format!(
            "recipe: 1\ndata: {{format: {{table: {{text: text, label: label}}}}, train: {file}}}\n\
             tokens: bytes\nbatch: {{size: 1}}\nsteps: 1\n"
        );
        let name = path("recipe.yaml").to_str().unwrap().to_owned();
        Pair::of_text(&name, &recipe, &path("spec.yaml"), None, &[])
    };
    for file in ["table.tsv", "table.jsonl"] {
        let data = prepared(&mut classes(file, false, 2));
        assert_eq!(data.codebook.classes, ["x", "x|y"], "{file}");
        let Part::Classes { labels, .. } = data.train else { panic!("no classes") };
        assert_eq!((labels.get(0), labels.get(1)), (&[1][..], &[0][..]), "{file}");
        let data = prepared(&mut classes(file, true, 2));
        assert_eq!(data.codebook.classes, ["x", "y"], "{file}");
        let Part::Classes { labels, .. } = data.train else { panic!("no classes") };
        assert_eq!((labels.get(0), labels.get(1)), (&[0, 1][..], &[0][..]), "{file}");
    }
    // What was meant as several classes makes more of them than the spec has.
    std::fs::write(path("table.tsv"), "text\tlabel\na b\tx|y\nb a\tx\na\ty\n").unwrap();
    let said = refused(&mut classes("table.tsv", false, 2), folder.path());
    insta::assert_snapshot!(said.split("\n\n").next().unwrap(), @r"
    error[data-mismatch]: the data has 3 classes, but the spec has 2
     --> recipe.yaml:2:60
      |
    2 | data: {format: {table: {text: text, label: label}}, train: table.tsv}
      |                                                            ^^^^^^^^^
      |
     ::: spec.yaml:6:28
      |
    6 | head: {classify: {classes: 2, multi_label: false}}
      |                            - classes is 2 here
      |
      = help: the data has `x`, `x|y` and `y`
      = help: with `multi_label: true` in the spec, `x|y` is several classes
    ");
}

/// What a recipe's data is refused with, without the folder of the files.
fn refused(pair: &mut Pair, folder: &std::path::Path) -> String {
    let recipe = pair.recipe.clone().unwrap_or_else(|| panic!("{}", pair.rendered()));
    prepare(&recipe, &pair.spec, &Inherited::default(), &pair.sources, &mut pair.sink).unwrap_err();
    pair.rendered().replace(&format!("{}/", folder.display()), "")
}

/// A setting that leaves nothing to train on is named, and not the file.
#[test]
fn nothing_is_left_by_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("texts.txt"), "abcdefgh\nijklmnop\n").unwrap();
    let spec = "name: left\ncontext: 8\nvocab: 259\nd_model: 8\ndecoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
    std::fs::write(path("spec.yaml"), spec).unwrap();
    let message = |settings: &str| {
        let recipe = format!(
            "recipe: 1\ndata: {{format: lines, train: texts.txt, {settings}}}\n\
             tokens: bytes\nbatch: {{size: 1}}\nsteps: 1\n"
        );
        let name = path("recipe.yaml").to_str().unwrap().to_owned();
        refused(&mut Pair::of_text(&name, &recipe, &path("spec.yaml"), None, &[]), folder.path())
    };
    let settings = [
        "limit: 1, split: {validation: 0.9}",
        "too_long: cut, split: {validation: 0.5, test: 0.4}",
        "too_long: skip, longest: 4",
    ];
    insta::assert_snapshot!(settings.map(message).join("\n"), @r"
    error[data-mismatch]: the split holds out the only example, which leaves nothing to train on
     --> recipe.yaml:2:58
      |
    2 | data: {format: lines, train: texts.txt, limit: 1, split: {validation: 0.9}}
      |                                                          ^^^^^^^^^^^^^^^^^
      |
      = help: hold out smaller shares, or add examples

    error[data-mismatch]: the split holds out all 2 examples, which leaves nothing to train on
     --> recipe.yaml:2:63
      |
    2 | data: {format: lines, train: texts.txt, too_long: cut, split: {validation: 0.5, test: 0.4}}
      |                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: hold out smaller shares, or add examples

    error[data-mismatch]: there are no training examples: each is too long and left out
     --> recipe.yaml:2:51
      |
    2 | data: {format: lines, train: texts.txt, too_long: skip, longest: 4}
      |                                                   ^^^^
      |
      = help: raise `longest` or the spec's `context`, or write `too_long: cut`
    ");
}
