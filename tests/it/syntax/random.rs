//! Random trees and damaged texts: what is printed reads back, and nothing panics.

use proptest::prelude::*;
use trafoc::diag::render;
use trafoc::source::{SourceMap, Span};
use trafoc::syntax::tree::{Entry, Kind, Node, Style};
use trafoc::syntax::{Notation, print};

use super::{BOTH, GPT1_DSL, GPT1_YAML, config, convert, is_part, parse, same};

fn key() -> impl Strategy<Value = String> {
    const USUAL: &[&str] = &[
        "layers", "block", "ranges", "name", "trafo", "norm", "x", "model", "0..3", "7", "<<", "null", "a-b",
        "*.w", "\u{2000}",
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
