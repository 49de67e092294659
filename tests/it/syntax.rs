//! Both notations: printed text parses to the same tree, and formatting is idempotent and keeps comments.

use proptest::prelude::ProptestConfig;
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::source::{SourceMap, Span};
use trafoc::syntax::tree::{Entry, Kind, Node, Style};
use trafoc::syntax::{self, Notation, fmt, print};

use crate::compiled::specs;

mod random;

const BOTH: [Notation; 2] = [Notation::Yaml, Notation::Dsl];

/// The names of parts that these tests use.
pub fn is_part(word: &str) -> bool {
    trafoc::spec::is_part(word) || word == "part"
}

/// Parses a text; returns the diagnostics if there are errors.
pub fn parse(text: &str, notation: Notation) -> Result<Node, Vec<Diagnostic>> {
    let mut sources = SourceMap::new();
    let id = sources.add("spec", text);
    let mut sink = Sink::new();
    let tree = syntax::parse(&sources, id, notation, &mut sink);
    let found = sink.into_sorted();
    match tree {
        Some(tree) if found.is_empty() => Ok(tree),
        _ => Err(found),
    }
}

/// Parses a text without errors.
pub fn tree(text: &str, notation: Notation) -> Node {
    match parse(text, notation) {
        Ok(tree) => tree,
        Err(found) => {
            let mut sources = SourceMap::new();
            sources.add("spec", text);
            panic!("{notation:?}\n{text}\n{}", render::render(&found, &sources, false, 100))
        }
    }
}

/// Converts a text without errors.
fn convert(text: &str, from: Notation, to: Notation) -> String {
    let mut sources = SourceMap::new();
    let id = sources.add("spec", text);
    let mut sink = Sink::new();
    let out = fmt::convert(&sources, id, from, to, &is_part, &mut sink);
    out.unwrap_or_else(|| panic!("{}\n{text}", render::render(&sink.into_sorted(), &sources, false, 100)))
}

const GPT1_YAML: &str = r#"# A comment above.
trafo: 1                      # language version
name: gpt1
vocab: 40000
context: 512
d_model: 768
embed: {position: learned, dropout: 0.1}
norm: {layer_norm: {eps: 1e-5}}

# The stack.
decoder:  # twelve of them
  layers: 12
  block: post_norm            # a wiring of the library
  attention: {heads: 12, bias: {qkv: false, out: true}, dropout: {weights: 0.1, out: 0.1}}
  ffn: {expansion: 4, activation: gelu, dropout: 0.1}
  ranges:
    # the first three
    0..3: {norm: none}
    11: {attention: !delete}
  final_norm: false
  # nothing more
head: {lm: {tied: false, bias: true}}
init: {normal: {std: 0.02}}
# The end.
"#;

const GPT1_DSL: &str = r#"// A comment above.
model gpt1 {
  trafo = 1  # language version
  vocab = 40000   context = 512   d_model = 768
  embed { position = learned  dropout = 0.1 }
  norm = layer_norm(eps: 1e-5)
  # The stack.
  decoder x 12 {  # twelve of them
    block = post_norm            # a wiring of the library
    attention { heads = 12  bias { qkv = false  out = true }  dropout { weights = 0.1  out = 0.1 } }
    ffn { expansion = 4  activation = gelu  dropout = 0.1 }
    # the first three
    layers 0..3 { norm = none }
    layers 11 { attention = delete! }
    final_norm = false
    // nothing more
  }
  head = lm(tied: false, bias: true)
  init = normal(std: 0.02)
}
# The end.
"#;

#[test]
fn the_two_notations_say_the_same() {
    assert_eq!(tree(GPT1_YAML, Notation::Yaml), tree(GPT1_DSL, Notation::Dsl));
}

const BETWEEN_RANGES: &str = "model m {
  decoder x 4 {
    layers 0..1 { ffn { hidden = 6 } }  // first
    // of attention
    attention { heads = 2 }  // after it
    // second
    layers 1..2 {
      // inside
      ffn { hidden = 4 }
    }
  }
}
";

const AFTER_RANGES: &str = "model m {
  decoder x 4 {
    layers 0..1 { ffn { hidden = 6 } }  // first
    // second
    layers 1..2 {
      // inside
      ffn { hidden = 4 }
    }
    // of attention
    attention { heads = 2 }  // after it
  }
}
";

/// The ranges of layers are written together, and what is between them in the text keeps its comments.
#[test]
fn comments_between_ranges_stay_with_their_entries() {
    assert_eq!(convert(BETWEEN_RANGES, Notation::Dsl, Notation::Dsl), AFTER_RANGES);
}

#[test]
fn every_comment_survives_every_way() {
    for (text, from) in [(GPT1_YAML, Notation::Yaml), (GPT1_DSL, Notation::Dsl)] {
        for to in BOTH {
            let out = convert(text, from, to);
            assert_eq!(tree(text, from), tree(&out, to), "{out}");
            assert_eq!(comments(text), comments(&out), "{out}");
            assert_eq!(convert(&out, to, to), out, "formatting is idempotent");
            let back = convert(&out, to, from);
            assert_eq!(tree(text, from), tree(&back, from), "{back}");
            assert_eq!(comments(text), comments(&back), "{back}");
        }
    }
}

fn comments(text: &str) -> Vec<String> {
    let cut = |l: &str| {
        l.find("//").or(l.find('#')).map(|at| l[at..].trim_start_matches(['#', '/']).trim().to_owned())
    };
    let mut found: Vec<String> = text.lines().filter_map(cut).collect();
    found.sort();
    found
}

#[test]
fn anchors_stay_in_yaml_and_expand_in_the_dsl() {
    let text = "a: &base {x: 1, y: 2}\nb: {<<: *base, y: 3}\nc: *base\n";
    let expanded = "a: {x: 1, y: 2}\nb: {x: 1, y: 3}\nc: {x: 1, y: 2}\n";
    assert_eq!(tree(text, Notation::Yaml), tree(expanded, Notation::Yaml));
    assert_eq!(convert(text, Notation::Yaml, Notation::Yaml), text);
    let dsl = convert(text, Notation::Yaml, Notation::Dsl);
    assert_eq!(tree(&dsl, Notation::Dsl), tree(expanded, Notation::Yaml), "{dsl}");
}

#[test]
fn scalars_keep_their_text() {
    for text in
        ["0755", "yes", "no", "on", "1e-5", "1e400", ".nan", ".inf", "-0", "1_000", "0x1F", "12:30:45", "3.0"]
    {
        let tree = tree(&format!("a: {text}\n"), Notation::Yaml);
        assert_eq!(tree.get("a").and_then(Node::text), Some(text));
    }
}

#[test]
fn places_point_into_texts() {
    let cases = [
        ("a: 1 + bee\n", Notation::Yaml),
        ("a: \"1 + bee\"\n", Notation::Yaml),
        ("b: 2\na: |\n    1\n\n      + bee # c\n", Notation::Yaml),
        ("a: {b: |\n x}\n", Notation::Yaml),
        ("model { block(x) {\n   x = x\n     + bee // c\n } }", Notation::Dsl),
        ("model { block(x) { x + bee } }", Notation::Dsl),
        ("model { block = \"\"\"\n   x\n     + bee\n \"\"\" }", Notation::Dsl),
        ("a: |-\n  bee", Notation::Yaml),
        ("a: >\n  x\n  bee\n", Notation::Yaml),
    ];
    for (text, notation) in cases {
        let Ok(root) = parse(text, notation) else { continue };
        let node = &root.entries().expect("a map").last().expect("an entry").value;
        let Some(at) = node.text().and_then(|t| t.find("bee")) else { continue };
        let mut sources = SourceMap::new();
        sources.add("spec", text);
        let span = syntax::tree::TextPlaces::of(&sources, node).span(&(at..at + 3));
        let exact = sources.text(span) == "bee";
        // The lines of a folded text are joined, so only the place of the whole is known.
        assert!(exact || text.contains('>') && span == node.span, "{text}: {}", sources.text(span));
    }
}

#[test]
fn files_tell_their_notation() {
    assert_eq!(Notation::from_path("a/b.YAML"), Some(Notation::Yaml));
    assert_eq!(Notation::from_path("b.yml"), Some(Notation::Yaml));
    assert_eq!(Notation::from_path("b.trafo"), Some(Notation::Dsl));
    assert_eq!(Notation::from_path("trafo"), None);
    assert_eq!(Notation::guess(GPT1_DSL), Notation::Dsl);
    assert_eq!(Notation::guess(GPT1_YAML), Notation::Yaml);
    assert_eq!(Notation::guess("model: x\n"), Notation::Yaml);
}

#[test]
fn merging_keeps_replaces_and_deletes() {
    let base = "norm: {layer_norm: {eps: 1e-5, bias: false}}\nffn: {expansion: 4, dropout: 0.1}\npattern: [a, b]\nhead: lm\n";
    let over = "norm: {rms_norm: {}}\nffn: {dropout: !delete, activation: gelu}\npattern: [c]\n";
    let want = "norm: {rms_norm: {}}\nffn: {expansion: 4, activation: gelu}\npattern: [c]\nhead: lm\n";
    let (base, over) = (tree(base, Notation::Yaml), tree(over, Notation::Yaml));
    let mut sink = Sink::new();
    let merged = syntax::merge::merge(&base, &over, &is_part, &mut sink);
    assert_eq!(merged, tree(want, Notation::Yaml));
    assert!(sink.into_sorted().is_empty());
    let mut sink = Sink::new();
    syntax::merge::settle(&over, &mut sink);
    assert_eq!(sink.into_sorted().len(), 1, "a deletion of nothing is an error");
}

/// Fields without a name are those of the implied part: naming another part replaces them, naming this one
/// sets them.
#[test]
fn merging_knows_the_part_that_is_not_named() {
    let cases = [
        ("ffn: {expansion: 4, dropout: 0.1}", "ffn: {glu: {hidden: 64}}", "ffn: {glu: {hidden: 64}}"),
        ("ffn: {expansion: 4}", "ffn: {moe: {experts: 4}}", "ffn: {moe: {experts: 4}}"),
        ("ffn: {expansion: 4}", "ffn: {mlp: {dropout: 0.1}}", "ffn: {expansion: 4, dropout: 0.1}"),
        ("ffn: {expansion: 4, dropout: 0.1}", "ffn: {mlp: {hidden: 9}}", "ffn: {dropout: 0.1, hidden: 9}"),
        ("ffn: {mlp: {expansion: 4}}", "ffn: {dropout: 0.1}", "ffn: {mlp: {expansion: 4, dropout: 0.1}}"),
        // Fields are those of the part that is there.
        ("ffn: swiglu", "ffn: {hidden: 64}", "ffn: {swiglu: {hidden: 64}}"),
        ("ffn: {swiglu: {bias: true}}", "ffn: {hidden: 64}", "ffn: {swiglu: {bias: true, hidden: 64}}"),
        ("ffn: {glu: {bias: true}}", "ffn: {expansion: 4}", "ffn: {glu: {bias: true, expansion: 4}}"),
        ("ffn: swiglu", "ffn: {expansion: 4}", "ffn: {swiglu: {expansion: 4}}"),
        ("ffn: swiglu", "ffn: {moe: {experts: 4}}", "ffn: {moe: {experts: 4}}"),
        ("steps: 250", "epochs: none", "{steps: 250, epochs: none}"),
        ("{steps: 250, epochs: 3}", "epochs: !delete", "steps: 250"),
        ("norm: rms_norm", "norm: {eps: 1e-3}", "norm: {rms_norm: {eps: 1e-3}}"),
        ("norm: none", "norm: {eps: 1e-3}", "norm: {eps: 1e-3}"),
        ("blocks: {latent: {ffn: none}}", "blocks: {local: {}}", "blocks: {latent: {ffn: none}, local: {}}"),
        ("a: {heads: 12, bias: false}", "a: {latent: {kv_rank: 8}}", "a: {latent: {kv_rank: 8}}"),
        // No slot has these keys, such as names that an author chose.
        ("a: {near: 1}", "a: {glu: {x: 1}}", "a: {near: 1, glu: {x: 1}}"),
        ("a: {glu: {x: 1}}", "a: {near: 4}", "a: {glu: {x: 1}, near: 4}"),
    ];
    for (base, over, want) in cases {
        let mut sink = Sink::new();
        let (base, over) = (tree(base, Notation::Yaml), tree(over, Notation::Yaml));
        let merged = syntax::merge::merge(&base, &over, &trafoc::spec::Parts::of(&[&base, &over]), &mut sink);
        assert_eq!(merged, tree(want, Notation::Yaml));
        assert!(sink.into_sorted().is_empty());
    }
}

#[test]
fn settings_reach_everywhere() {
    let spec = "decoder: {layers: 2, norm: layer_norm}\nlist: [{a: 1}, {a: 2}]\n";
    let cases = [
        ("decoder.layers=24", "decoder: {layers: 24, norm: layer_norm}\nlist: [{a: 1}, {a: 2}]\n"),
        (
            "decoder.norm.rms_norm.eps=1e-6",
            "decoder: {layers: 2, norm: {rms_norm: {eps: 1e-6}}}\nlist: [{a: 1}, {a: 2}]\n",
        ),
        ("list.1.a=[x, y]", "decoder: {layers: 2, norm: layer_norm}\nlist: [{a: 1}, {a: [x, y]}]\n"),
        ("decoder.norm=!delete", "decoder: {layers: 2}\nlist: [{a: 1}, {a: 2}]\n"),
        (
            "\"a.b\".c={x: 1}",
            "decoder: {layers: 2, norm: layer_norm}\nlist: [{a: 1}, {a: 2}]\n\"a.b\": {c: {x: 1}}\n",
        ),
    ];
    for (argument, want) in cases {
        let mut sources = SourceMap::new();
        let mut sink = Sink::new();
        let setting = syntax::set::parse_set(&mut sources, argument).expect(argument);
        let root = syntax::set::apply(tree(spec, Notation::Yaml), &[setting], &is_part, &mut sink);
        assert!(sink.into_sorted().is_empty(), "{argument}");
        assert_eq!(root, tree(want, Notation::Yaml), "{argument}");
    }
    for argument in ["", "a", "=1", "a..b=1", "a.=1", "list.7=1", "list.x=1", "a=[", "\"a=1"] {
        let mut sources = SourceMap::new();
        let mut sink = Sink::new();
        let fails = match syntax::set::parse_set(&mut sources, argument) {
            Err(diagnostic) => Some(diagnostic),
            Ok(setting) => {
                let root = tree(spec, Notation::Yaml);
                let same = syntax::set::apply(root.clone(), &[setting], &is_part, &mut sink);
                assert_eq!(same, root, "{argument}");
                sink.into_sorted().into_iter().next()
            }
        };
        let diagnostic = fails.unwrap_or_else(|| panic!("`{argument}` is refused"));
        assert!(sources.get(diagnostic.span().source).is_some(), "{argument}");
    }
}

/// Many settings of one map, over and after each other, end as the last ones say.
#[test]
fn many_settings_of_one_map_keep_their_order() {
    let mut sources = SourceMap::new();
    let mut sink = Sink::new();
    let mut wanted: Vec<(String, String)> = Vec::new();
    let mut settings = Vec::new();
    for i in 0..3_000u32 {
        let key = format!("k{}", i * 7 % 500);
        let is_last_pass = i >= 2_500;
        let value = match (i / 500 % 2, is_last_pass && i.is_multiple_of(3)) {
            (_, true) => "!delete".to_owned(),
            (0, _) => i.to_string(),
            _ => format!("{{a: {i}}}"),
        };
        wanted.retain(|(other, _)| *other != key || value != "!delete");
        match wanted.iter_mut().find(|(other, _)| *other == key) {
            Some(found) => found.1 = value.clone(),
            None if value != "!delete" => wanted.push((key.clone(), value.clone())),
            None => {}
        }
        settings.push(syntax::set::parse_set(&mut sources, &format!("all.{key}={value}")).unwrap());
    }
    let root = syntax::set::apply(tree("all: {}\n", Notation::Yaml), &settings, &is_part, &mut sink);
    assert!(sink.into_sorted().is_empty());
    let text: String = wanted.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
    let wanted = tree(&format!("all:\n{text}"), Notation::Yaml);
    assert_eq!(root, wanted);
    let keys = |node: &Node| -> Vec<String> {
        node.get("all").unwrap().entries().unwrap().iter().map(|e| e.key.clone()).collect()
    };
    assert_eq!(keys(&root), keys(&wanted));
    assert_eq!(sources.iter().next_back().unwrap().1.name, "--set #3000");
}

/// 256 cases, or as many as `PROPTEST_CASES` says: `.ci/run` uses a thousand.
pub fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Whether two trees are equal, or mean the same to every reader: a comment inside of a number may have
/// become one above it.
fn same(a: &Node, b: &Node) -> Result<(), String> {
    if a == b { Ok(()) } else { crate::readers::same(a, b, "") }
}

#[test]
fn shipped_specs_survive_both_notations() {
    for (name, path) in specs("specs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let from = Notation::from_path(path.to_str().unwrap()).unwrap();
        let said = tree(&text, from);
        for to in BOTH {
            let out = convert(&text, from, to);
            if std::env::var("SHOW").is_ok() {
                println!("{out}");
            }
            assert_eq!(tree(&out, to), said, "{name}\n{out}");
            assert_eq!(convert(&out, to, to), out, "{name}");
            assert_eq!(tree(&convert(&out, to, from), from), said, "{name}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_only_at_the_beginning() {
    let mark = '\u{feff}';
    assert!(parse(&format!("{mark}a: 1\n"), Notation::Yaml).is_ok());
    assert!(parse(&format!("{mark}model m {{\n  a = 1\n}}\n"), Notation::Dsl).is_ok());
    for text in [format!("a: x{mark}\n"), format!("a: 1 # x{mark}\n"), format!("{mark}{mark}a: 1\n")] {
        let found = parse(&text, Notation::Yaml).unwrap_err();
        let messages: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(messages, ["there is a byte order mark inside the text"]);
    }
}

#[test]
fn other_white_space_is_text() {
    for (key, text) in ["\u{2000}", " ", "\u{a0}", "\u{3000}", "\u{2028}", "\u{85}"]
        .into_iter()
        .flat_map(|key| ["\u{2000}", "\u{3000}", "\u{2028}", "6\n\u{3000}"].map(|text| (key, text)))
    {
        for style in [Style::Plain, Style::Quoted, Style::Block] {
            let scalar = |text: &str| Node::scalar(text.to_owned(), style, Span::default());
            let list = |items| Node { kind: Kind::List(items), span: Span::default() };
            let entry = |key: &str, value| Entry { key: key.to_owned(), key_span: Span::default(), value };
            let map = |entries| Node::map(entries, Span::default());
            let first = map(vec![entry(key, scalar(text))]);
            let tree =
                map(vec![entry("a", list(vec![first, scalar(text)])), entry(key, scalar("8/3 * d_model"))]);
            crate::readers::format(print::yaml(&tree).as_bytes(), Notation::Yaml);
            crate::readers::format(print::dsl(&tree, &is_part).as_bytes(), Notation::Dsl);
            let yaml = print::yaml(&tree);
            let back = parse(&yaml, Notation::Yaml).unwrap_or_else(|found| panic!("{yaml}\n{found:?}"));
            assert_eq!(same(&tree, &back), Ok(()), "{yaml}");
        }
    }
}
