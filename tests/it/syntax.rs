//! Both notations: printed text parses to the same tree, and formatting is idempotent and keeps comments.

use proptest::prelude::*;
use trafoc::diag::{Diagnostic, Sink, render};
use trafoc::source::{SourceMap, Span};
use trafoc::syntax::tree::{Entry, Kind, Node, Style};
use trafoc::syntax::{self, Notation, fmt, print};

use crate::compiled::specs;

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

fn key() -> impl Strategy<Value = String> {
    const USUAL: &[&str] = &[
        "layers", "block", "ranges", "name", "trafo", "norm", "x", "model", "0..3", "7", "<<", "null", "a-b",
        "*.w",
    ];
    prop_oneof![
        4 => "[a-z_]{1,8}",
        3 => prop::sample::select(USUAL).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ]
}

fn scalar() -> impl Strategy<Value = Node> {
    const USUAL: &[&str] = &[
        "8/3 * d_model",
        "max(1, 2)",
        "x = x + ffn(norm(x))",
        "ffn(x)",
        "null",
        "~",
        "0755",
        "1e-5",
        "-1",
        "- a",
        "a: b",
        "a #b",
        "a // b",
        "!x",
        "*a",
        "&a",
        "(h, memory):\nh = h + ffn(h)",
        "(x):\nx + ffn(x)",
        "a\n  b\n c",
        "{",
        "\"",
        "'",
        "\"\"\"",
        "\\",
        "",
        " ",
        "\u{1b}[31m",
        "\u{feff}a",
        "true",
        "gelu",
        "x # }",
        "a..b",
        "0..",
        "delete!",
        "a\r\nb",
        "\t",
        " 6",
        "4#",
        "8#x",
        "----4",
        "- 4",
        "-",
        "\u{2000}",
        "6\n\u{3000}",
        "\u{2028}(6",
        "6\u{2028}",
        "1\r+ 1",
        "1\t+ 1",
        "((((((((((((((((((((1))))))))))))))))))))",
        "  1\n+ 1",
        "8 # \"\"\" remark",
        "8 # \"\"\" remark\n* 2 // \" remark",
        "2 # ' remark\n+ 1 # } \"\"\" remark",
        "x + ffn(x) # \"\"\" { remark",
        "x = x + ffn(x) # \"\"\" remark\nx + ffn(x) // } remark",
    ];
    let text = prop_oneof![
        6 => prop::sample::select(USUAL).prop_map(str::to_owned),
        2 => "[a-z0-9_.+*/() -]{0,12}",
        1 => "[a-z {}#\\n\"'-]{0,16}",
        1 => "\\PC{0,8}",
    ];
    let style = prop::sample::select(&[Style::Plain, Style::Quoted, Style::Block][..]);
    (text, style).prop_map(|(text, style)| Node::scalar(text, style, Span::default()))
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        8 => scalar(),
        1 => Just(Node { kind: Kind::Null, span: Span::default() }),
        1 => Just(Node { kind: Kind::Delete, span: Span::default() }),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let map = prop::collection::vec((key(), inner.clone()), 0..5).prop_map(|pairs| {
            let mut entries: Vec<Entry> = Vec::new();
            for (key, value) in pairs {
                if !entries.iter().any(|e| e.key == key) {
                    entries.push(Entry { key, key_span: Span::default(), value });
                }
            }
            Node::map(entries, Span::default())
        });
        let part =
            (prop::sample::select(&["part", "layer_norm"][..]), inner.clone()).prop_map(|(key, value)| {
                Node::map(
                    vec![Entry { key: key.to_owned(), key_span: Span::default(), value }],
                    Span::default(),
                )
            });
        let list = prop::collection::vec(inner, 0..4);
        let list = list.prop_map(|items| Node { kind: Kind::List(items), span: Span::default() });
        prop_oneof![3 => map, 1 => part, 1 => list]
    })
}

/// 256 cases, or as many as `PROPTEST_CASES` says: `.ci/run` uses a thousand.
pub fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back_the_same(tree in node()) {
        for notation in BOTH {
            let text = match notation {
                Notation::Yaml => print::yaml(&tree),
                Notation::Dsl => print::dsl(&tree, &is_part),
            };
            match parse(&text, notation) {
                Ok(back) => prop_assert_eq!(same(&tree, &back), Ok(()), "{}", text),
                Err(found) => prop_assert!(false, "{}\n{:?}", text, found),
            }
            let again = convert(&text, notation, notation);
            prop_assert_eq!(&again, &convert(&again, notation, notation), "idempotent");
            for other in BOTH {
                let there = convert(&text, notation, other);
                match parse(&there, other) {
                    Ok(back) => prop_assert_eq!(same(&tree, &back), Ok(()), "{:?}\n{}\n{}", notation, text, there),
                    Err(found) => prop_assert!(false, "{}\n{:?}", there, found),
                }
            }
        }
    }

    #[test]
    fn formatting_keeps_what_every_text_says(tree in node()) {
        crate::readers::format(print::yaml(&tree).as_bytes(), Notation::Yaml);
        crate::readers::format(print::dsl(&tree, &is_part).as_bytes(), Notation::Dsl);
    }

    #[test]
    fn comments_survive_wherever_they_stand(tree in node(), seed in any::<u64>()) {
        for notation in BOTH {
            let text = match notation {
                Notation::Yaml => print::yaml(&tree),
                Notation::Dsl => print::dsl(&tree, &is_part),
            };
            let commented = with_comments(&text, seed, notation);
            // A comment in the middle of a text of several lines changes the text, which is right.
            let Ok(read) = parse(&commented, notation) else { continue };
            for other in BOTH {
                let out = convert(&commented, notation, other);
                match parse(&out, other) {
                    Ok(back) => prop_assert_eq!(same(&read, &back), Ok(()), "{}\n---\n{}", commented, out),
                    Err(found) => prop_assert!(false, "{}\n---\n{}\n{:?}", commented, out, found),
                }
                let marks = |t: &str| t.matches(" remark").count();
                prop_assert_eq!(marks(&commented), marks(&out), "{}\n---\n{}", commented, out);
                prop_assert_eq!(&out, &convert(&out, other, other), "{}", commented);
            }
        }
    }

    #[test]
    fn mutants_never_panic_and_always_say_where(seed in any::<u64>(), cut in any::<bool>()) {
        for (text, notation) in [(GPT1_YAML, Notation::Yaml), (GPT1_DSL, Notation::Dsl)] {
            let text = mutate(text, seed, cut);
            if let Err(found) = parse(&text, notation) {
                prop_assert!(!found.is_empty(), "{}", text);
                for label in found.iter().flat_map(|d| &d.labels) {
                    prop_assert!(text.get(label.span.range()).is_some(), "{:?} in {}", label, text);
                }
                let mut sources = SourceMap::new();
                sources.add("spec", text.as_str());
                render::render(&found, &sources, true, 80);
            }
        }
    }
}

/// Whether two trees are equal, or mean the same to every reader: a comment inside of a number may have
/// become one above it.
fn same(a: &Node, b: &Node) -> Result<(), String> {
    if a == b { Ok(()) } else { crate::readers::same(a, b, "") }
}

/// Adds comments at the ends of some lines and above some lines.
fn with_comments(text: &str, seed: u64, notation: Notation) -> String {
    let mut bits = seed | 1;
    let mut out = String::new();
    // With what opens or closes something in either notation.
    let sign = if notation == Notation::Dsl && seed.is_multiple_of(3) { "//" } else { "#" };
    let mark = format!(
        "{sign}{} remark",
        ["", " \"\"\"", " \"", " '", " }", " {", " \"\"\" \""][(seed >> 8) as usize % 7]
    );
    for (i, line) in text.lines().enumerate() {
        bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let indent = &line[..line.len() - line.trim_start().len()];
        match bits >> 61 {
            0 => out.push_str(&format!("{indent}{mark} above {i}\n{line}\n")),
            1 => out.push_str(&format!("{line}  {mark} behind {i}\n")),
            2 => out.push_str(&format!("\n{line}\n")),
            3 => out.push_str(&format!("{line}\n{indent}  {mark} below {i}\n")),
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

/// Changes, removes or doubles a few bytes, or cuts off the text.
fn mutate(text: &str, seed: u64, cut: bool) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut bits = seed;
    let spice: Vec<char> = "{}[]()\"'#:=,-\n\t *&!|>%@\\/xé\u{2028}0~?".chars().collect();
    for _ in 0..1 + seed % 4 {
        bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (bits >> 33) as usize % chars.len();
        let new = spice[(bits >> 20) as usize % spice.len()];
        match bits % 3 {
            0 => chars[at] = new,
            1 => chars.insert(at, new),
            _ => drop(chars.remove(at)),
        }
    }
    if cut {
        chars.truncate((bits >> 30) as usize % chars.len());
    }
    chars.into_iter().collect()
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
