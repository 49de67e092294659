//! A bracket that is forgotten, too many or of another kind is reported where it is.

use trafoc::diag::Diagnostic;
use trafoc::syntax::Notation;

use crate::compiled::specs;
use crate::syntax::parse;

/// The message of each error with its lines and its help.
fn shown(text: &str, notation: Notation) -> String {
    let line = |at: u32| text[..at as usize].matches('\n').count() + 1;
    let words = |found: Diagnostic| {
        let places: Vec<String> =
            found.labels.iter().map(|label| line(label.span.start).to_string()).collect();
        let help = found.help.join("; ");
        format!("{}: {} ({help})", places.join(", "), found.message)
    };
    parse(text, notation).unwrap_err().into_iter().map(words).collect::<Vec<_>>().join("\n")
}

/// In the DSL, of one slip at every bracket of the shipped specs.
#[test]
fn every_slip_is_reported_in_its_line() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (name, path) in specs("specs") {
        if Notation::from_path(path.to_str().unwrap()) != Some(Notation::Dsl) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, c) in text.char_indices().filter(|(_, c)| "{}()[]".contains(*c)) {
            let line = text[..at].matches('\n').count() + 1;
            if text.lines().nth(line - 1).unwrap().trim_start().starts_with("//") {
                continue;
            }
            let other = if "({[".contains(c) { "[" } else { "]" };
            for there in [String::new(), format!("{c}{c}"), other.to_owned()] {
                let slip = format!("{}{there}{}", &text[..at], &text[at + 1..]);
                let found = parse(&slip, Notation::Dsl).unwrap_err();
                let lines = found.iter().flat_map(|f| &f.labels).map(|label| label.span.start as usize);
                let mut lines = lines.map(|start| slip[..start].matches('\n').count() + 1);
                tried += 1;
                if !lines.any(|found| found.abs_diff(line) <= 1) {
                    wrong.push(format!("{name}:{line}: `{c}` as `{there}`: {}", shown(&slip, Notation::Dsl)));
                }
            }
        }
    }
    assert!(tried > 200 && wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is said of a bracket of the DSL.
#[test]
fn what_is_said_fits_the_slip() {
    const SPEC: &str = "model m {
  vocab = 32
  decoder x 2 {
    attention { heads = 2  bias { qkv = false } }
    block(x) {
      x = x + attention(norm(x))
    }
  }
  head = lm(tied: false)
}
";
    let with = |from: &str, to: &str| shown(&SPEC.replacen(from, to, 1), Notation::Dsl);
    insta::assert_snapshot!(with("(norm(x))", "(norm(x)))"), @"6: this `)` has no opening bracket (remove it, or add the opening bracket before it)");
    insta::assert_snapshot!(with("vocab = 32", "vocab = 32)"), @"2: this `)` has no opening bracket (remove it)");
    insta::assert_snapshot!(with("decoder x 2 {", "decoder x 2"), @"3, 8: `{` is missing after this (write `decoder x 2 {`)");
    insta::assert_snapshot!(with("model m {", "model m"), @"1, 10: `{` is missing after this (write `model m {`)");
    insta::assert_snapshot!(with("heads = 2", "heads = 2 }"), @"4: this `}` has no opening bracket (remove it)");
    insta::assert_snapshot!(with("lm(tied: false)", "lm tied: false)"), @"9, 9: `(` is missing after this (write `head = lm(`)");
    insta::assert_snapshot!(with("    }\n", ""), @"5, 7: `{` is never closed (close it with `}`)");
    insta::assert_snapshot!(with("    }\n  }\n", ""), @r"
    3, 7: `{` is never closed (close it with `}`)
    5, 7: `{` is never closed (close it with `}`)
    ");
    insta::assert_snapshot!(with("false } }", "false"), @r"
    4: `{` is never closed (close it with `}`)
    4: `{` is never closed (close it with `}`)
    ");
    insta::assert_snapshot!(with("(norm(x))", "(norm(x)"), @"6: `(` is never closed (close it with `)`, or remove it)");
    insta::assert_snapshot!(with("(norm(x))", "(norm(x]]"), @r"
    6, 6: `(` is closed by `]` (close it with `)`)
    6, 6: `(` is closed by `]` (close it with `)`)
    ");
    insta::assert_snapshot!(with("block(x) {", "block(x) ["), @"5, 7: `[` is closed by `}` (open it with `{`)");
    // Without indents, the text that can be parsed says which bracket it is.
    let flat = SPEC.replace("\n ", "\n").replace("\n ", "\n").replace("\n  ", "\n").replace("\n ", "\n");
    insta::assert_snapshot!(shown(&flat.replacen("32", "32}", 1), Notation::Dsl), @"2: this `}` has no opening bracket (remove it)");
}

/// What is said of a bracket in YAML, and of a quote within brackets.
#[test]
fn brackets_in_yaml_are_named() {
    let of = |value: &str| {
        shown(&format!("d_model: 8\ndecoder:\n  attention: {value}\nhead: lm\n"), Notation::Yaml)
    };
    insta::assert_snapshot!(of("heads: 4}"), @"3: this `}` has no opening bracket (write `attention: {heads: 4}`)");
    insta::assert_snapshot!(of("heads: 4, mask: [a]]"), @"3: this `]` has no opening bracket (write `attention: [heads: 4, mask: [a]]`)");
    insta::assert_snapshot!(of("(heads: 4)"), @"3: a map is written in `{` and `}`, and not in parentheses (write `attention: {heads: 4}`)");
    insta::assert_snapshot!(of("{heads: [4, kv_heads: 2}"), @"3, 3: `[` is closed by `}` (close it with `]`)");
    insta::assert_snapshot!(of("{heads: 4)"), @"3, 3: `{` is closed by `)` (close it with `}`)");
    insta::assert_snapshot!(of("{mask: {window: 3), heads: 2}"), @"3, 3: `{` is closed by `)` (close it with `}`)");
    insta::assert_snapshot!(of("{heads: 4, mask: \"causal}"), @r#"3: this quote is never closed (close it with `"`)"#);
    insta::assert_snapshot!(of("{heads: f(4), mask: a"), @"3: `{` is never closed (close it with `}`)");
}
