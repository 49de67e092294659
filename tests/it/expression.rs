//! Numbers and equations: exact values, places of errors, and printed text that parses to the same value.

use proptest::prelude::*;
use trafoc::diag::Diagnostic;
use trafoc::field::definition::{Definition, OwnDefault, OwnField};
use trafoc::names::formula;
use trafoc::source::{SourceMap, Span};
use trafoc::syntax::equation::{self, Equation, Term, TermKind};
use trafoc::syntax::expr::{self, Expr, ExprKind, Function, Number, Operator, Scope};
use trafoc::syntax::tree::Node;

use crate::syntax::config;

/// `d_model` is 768, `half` 1/2, `zero` 0 and `big` 2^100.
struct Names;

impl Scope for Names {
    fn lookup(&self, name: &str) -> Option<(Number, Option<Span>)> {
        let number = match name {
            "d_model" => Number::integer(768),
            "half" => Number::Ratio(1, 2),
            "zero" => Number::integer(0),
            "big" => Number::integer(1 << 100),
            _ => return None,
        };
        Some((number, Some(Span::default())))
    }

    fn names(&self) -> Vec<String> {
        ["d_model", "half", "zero", "big"].map(str::to_owned).to_vec()
    }
}

fn plain(text: &str) -> (SourceMap, Node) {
    let mut sources = SourceMap::new();
    let id = sources.add("spec", text);
    (sources, Node::plain(text, Span::new(id, 0, text.len())))
}

fn parse(text: &str) -> Result<Expr, Diagnostic> {
    let (sources, node) = plain(text);
    expr::parse(&sources, &node)
}

fn value(text: &str) -> Result<Number, Diagnostic> {
    expr::eval(&parse(text)?, &Names)
}

#[test]
fn values_are_exact() {
    let exact = [
        ("12", (12, 1)),
        ("40_000", (40_000, 1)),
        ("1e-5", (1, 100_000)),
        ("0.1 + 0.2", (3, 10)),
        (".5", (1, 2)),
        ("8/3 * d_model", (2048, 1)),
        ("d_model * 8/3", (2048, 1)),
        ("2^40", (1 << 40, 1)),
        ("2^-1", (1, 2)),
        ("-2^2", (-4, 1)),
        ("2^3^2", (512, 1)),
        ("(-2)^3", (-8, 1)),
        ("--3", (3, 1)),
        ("1 - 2 - 3", (-4, 1)),
        ("24 / 4 / 2", (3, 1)),
        ("1/sqrt(256)", (1, 16)),
        ("sqrt(4/9)", (2, 3)),
        ("log2(1024)", (10, 1)),
        ("log2(1/8)", (-3, 1)),
        ("floor(-3/2)", (-2, 1)),
        ("ceil(-3/2)", (-1, 1)),
        ("round(5/2)", (3, 1)),
        ("round(-5/2)", (-3, 1)),
        ("min(3, half, 2)", (1, 2)),
        ("max(3, half, 2)", (3, 1)),
        ("multiple_of(8/3 * d_model, 256)", (2048, 1)),
        ("multiple_of(11008.5, 256)", (11264, 1)),
        ("multiple_of(0, 8)", (0, 1)),
        ("2^125 * 2 / 4", (1 << 124, 1)),
        ("big * (1 / big)", (1, 1)),
        ("0^0", (1, 1)),
        ("0", (0, 1)),
        ("1 + 2 # a comment", (3, 1)),
        ("1 + // a comment\n 2", (3, 1)),
    ];
    for (text, (num, den)) in exact {
        assert_eq!(value(text), Ok(Number::Ratio(num, den)), "{text}");
    }
    let near = [
        ("sqrt(2)", 2f64.sqrt()),
        ("2^0.5", 2f64.powf(0.5)),
        ("exp(1)", 1f64.exp()),
        ("log(10)", 10f64.ln()),
    ];
    for (text, wanted) in near {
        assert_eq!(value(text), Ok(Number::Float(wanted)), "{text}");
    }
}

#[test]
fn numbers_become_counts_or_not() {
    let cases = [
        ("12", Some(12)),
        ("12.0", Some(12)),
        ("sqrt(144)", Some(12)),
        ("1/2", None),
        ("-1", None),
        ("2^64", None),
    ];
    for (text, wanted) in cases {
        assert_eq!(value(text).unwrap().to_u64(), wanted, "{text}");
    }
    assert_eq!(value("2^64 - 1").unwrap().to_u64(), Some(u64::MAX));
}

#[test]
fn faults_have_a_code_and_a_place() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            "expression",
            &[
                ("", ""),
                ("2 *", ""),
                ("2 * (3", ""),
                ("2)", ")"),
                ("2 3", "3"),
                ("2 d_model", "d_model"),
                ("2 ** 3", "*"),
                ("1,5", ","),
                ("0755", "0755"),
                ("0x1F", "0x1F"),
                ("1__0", "1__0"),
                ("1e", "1e"),
                ("12:30:45", ":"),
                (".inf", "."),
                ("50 %", "%"),
                ("2 × 3", "×"),
                ("ԁ_model", "ԁ"),
                ("min()", "min()"),
                ("sqrt(1, 2)", "sqrt(1, 2)"),
            ],
        ),
        ("unknown-name", &[("sqr(4)", "sqr"), ("2 * d_modle", "d_modle")]),
        (
            "expression-overflow",
            &[
                ("1e400", "1e400"),
                ("2^200", "2^200"),
                ("big * big", "big * big"),
                ("2^126 + 2^126 + 2^126", "2^126 + 2^126"),
                ("-1 * -2^127", "2^127"),
                ("10^1000000000000000000", "10^1000000000000000000"),
                ("exp(1000)", "exp(1000)"),
            ],
        ),
        (
            "division-by-zero",
            &[
                ("1 / zero", "zero"),
                ("1 / (2 - 2)", "(2 - 2)"),
                ("zero^-1", "zero"),
                ("multiple_of(3, 0)", "0"),
            ],
        ),
        ("not-a-number", &[("sqrt(-1)", "sqrt(-1)"), ("log(0)", "log(0)"), ("(-8)^(1/3)", "(-8)^(1/3)")]),
    ];
    for (code, faults) in cases {
        for (text, place) in *faults {
            let fault = value(text).expect_err(text);
            let (sources, _) = plain(text);
            let found = (fault.code.slug(), sources.text(fault.span()));
            assert_eq!(found, (*code, *place), "{text}: {}", fault.message);
        }
    }
    let helps = [
        ("2 * d_modle", "did you mean `d_model`?"),
        ("50 %", "write a percentage as a number: 10 % is 0.1"),
        ("2 * \"half\"", "names are written without quotes here"),
        ("half²", "write a power with `^`"),
        (".inf", "a number needs digits, as in 0.5; infinity is not allowed"),
        // The word before the hyphen belongs to the name, and what is before that word does not.
        ("2 * multiple-of(3, 8)", "did you mean `multiple_of`?"),
    ];
    for (text, help) in helps {
        assert_eq!(value(text).expect_err(text).help, [help], "{text}");
    }
    let operands = value("big * big").unwrap_err();
    assert!(operands.labels.iter().any(|l| l.text.contains("1267650600228229401496703205376")));
    assert!(operands.labels.iter().any(|l| l.text == "`big` is given here"));
}

#[test]
fn large_expressions_are_refused_and_never_overflow_the_stack() {
    let deep = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    for n in [60, 64, 65, 100, 10_000] {
        for text in [deep("(", ")", n), deep("-", "", n), deep("2^", "", n), deep("sqrt(", ")", n)] {
            let fails = value(&text).err().map(|d| d.code.slug());
            assert!(
                matches!(fails, None | Some("too-deep" | "too-large" | "expression-overflow")),
                "{n} {fails:?}"
            );
            assert!(n <= 64 || fails.is_some(), "{n}");
        }
    }
    assert_eq!(value(&format!("1{}", " + 1".repeat(400))), Ok(Number::integer(401)));
    assert_eq!(value(&format!("1{}", " + 1".repeat(400_000))).unwrap_err().code.slug(), "too-large");
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-1000i128..1000).prop_map(Number::integer),
        (any::<i64>(), 1..i64::MAX).prop_map(|(a, b)| Number::ratio(i128::from(a), i128::from(b)).unwrap()),
        (any::<i128>(), any::<i128>()).prop_filter_map("a ratio", |(a, b)| Number::ratio(a, b)),
    ]
}

fn expression() -> impl Strategy<Value = Expr> {
    let node = |kind| Expr { kind, span: Span::default() };
    let leaf = prop_oneof![
        (0i128..100).prop_map(move |n| node(ExprKind::Number(Number::integer(n)))),
        (1i128..100, 1u32..4)
            .prop_map(move |(n, d)| { node(ExprKind::Number(Number::ratio(n, 10i128.pow(d)).unwrap())) }),
        prop::sample::select(&["d_model", "half", "zero"][..])
            .prop_map(move |n| node(ExprKind::Name(n.to_owned()))),
    ];
    leaf.prop_recursive(5, 30, 2, move |inner| {
        let operators =
            [Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Power];
        prop_oneof![
            (prop::sample::select(operators.to_vec()), inner.clone(), inner.clone())
                .prop_map(move |(o, a, b)| node(ExprKind::Binary(o, Box::new(a), Box::new(b)))),
            inner.clone().prop_map(move |a| node(ExprKind::Negate(Box::new(a)))),
            inner.clone().prop_map(move |a| node(ExprKind::Call(Function::Floor, vec![a]))),
            (inner.clone(), inner).prop_map(move |(a, b)| node(ExprKind::Call(Function::Max, vec![a, b]))),
        ]
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn decimals_are_what_rust_reads(float in any::<f64>().prop_filter("finite", |f| f.is_finite()), digits in "[0-9]{1,30}\\.[0-9]{1,30}", e in -40..40) {
        for text in [format!("{:e}", float.abs()), format!("{digits}e{e}"), digits] {
            let number = Number::parse(&text).unwrap();
            prop_assert_eq!(number.to_f64(), text.parse::<f64>().unwrap(), "{}", text);
        }
    }

    #[test]
    fn ratios_follow_the_laws(a in number(), b in number(), c in number()) {
        prop_assert_eq!(a.plus(b), b.plus(a));
        prop_assert_eq!(a.times(b), b.times(a));
        // One order of the sums may overflow where the other does not.
        if let (Some(ab), Some(bc)) = (a.plus(b), b.plus(c))
            && let (Some(left), Some(right)) = (ab.plus(c), a.plus(bc)) {
                prop_assert_eq!(left, right);
            }
        if let Some(difference) = a.plus(b).and_then(|s| s.minus(b)) {
            prop_assert_eq!(difference, a);
        }
        if let Some(quotient) = a.times(b).and_then(|p| p.over(b)) {
            prop_assert_eq!(quotient, a);
        }
        let floor = a.floor();
        prop_assert!(floor.is_integer() && floor.compare(a).is_le());
    }

    #[test]
    fn a_printed_expression_has_the_same_value(expr in expression()) {
        let text = expr.to_string();
        let again = parse(&text);
        prop_assert!(again.is_ok(), "{}", text);
        let again = again.unwrap();
        prop_assert_eq!(again.to_string(), text.clone());
        match (expr::eval(&expr, &Names), expr::eval(&again, &Names)) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b, "{}", text),
            // The generated expression has no places, so only the codes can agree.
            (Err(a), Err(b)) => prop_assert_eq!(a.code, b.code, "{}", text),
            (a, b) => prop_assert!(false, "{} {:?} {:?}", text, a, b),
        }
    }

    #[test]
    fn no_text_makes_an_expression_panic(text in "[0-9a-z_.+*/^(),-]{0,24}", any in "\\PC{0,12}") {
        for text in [text, any] {
            for fault in [value(&text).err(), equation(&text).err()].into_iter().flatten() {
                // There is no such text if the place ends outside of the text or inside of a character.
                prop_assert!(text.get(fault.span().range()).is_some());
            }
        }
    }
}

/// `n` is 12, `word` is `'yes'`, `list` is `[1, 0]`, and the table `kinds` has `a` for 1.
struct Config(serde_json::Value);

impl formula::Scope for Config {
    fn key(&self, name: &str) -> Option<&serde_json::Value> {
        self.0.get(name).filter(|value| !value.is_object())
    }
    fn table(&self, name: &str) -> Option<&serde_json::Map<String, serde_json::Value>> {
        self.0.get(name)?.as_object()
    }
}

fn formula_value(text: &str) -> Result<serde_json::Value, String> {
    let (sources, node) = plain(text);
    let read = expr::parse_formula(&sources, &node).map_err(|d| d.message)?;
    let keys = serde_json::json!({ "n": 12, "word": "yes", "list": [1, 0], "kinds": { "1": "a" } });
    formula::eval(&formula::Formula::from(&read), &Config(keys)).map_err(|fault| fault.to_string())
}

#[test]
fn a_formula_is_an_expression_of_any_values() {
    use serde_json::json;
    let cases = [
        ("= 8/4 * n", json!(24)),
        ("= 2 ^ 3 ^ 2 - 1", json!(511)),
        ("= + 94906267 * 94906267 / 1", json!(9_007_199_515_875_289_u64)), // Odd, and beyond 2^53.
        ("= 1e3 + 40_000", json!(41_000)),
        ("= sqrt (9) + floor(7/2)", json!(6)),
        ("= log(1) + ln(1)", json!(0)),
        ("= multiple_of(n, 8)", json!(16)),
        ("= max(1, n, 3)", json!(12)),
        ("= missing ?? n + 1", json!(13)),
        ("= missing * 2", json!(null)),
        ("= not word == 'yes' or n > 11 and true", json!(true)),
        ("= n in [1, 2, n]", json!(true)),
        ("= word != 'it is # no comment' # but this is", json!(true)),
        ("= if(n < 3, 'few', 'many')", json!("many")),
        ("= [kinds(1), null]", json!(["a", null])),
        ("= flags(list, 'on', 'off')", json!(["on", "off"])),
        ("= every(3, 2, 'x', 'y')", json!(["y", "x", "y"])),
        ("= a.b_2.0.größe", json!(null)),
    ];
    for (text, wanted) in cases {
        assert_eq!(formula_value(text), Ok(wanted), "{text}");
    }
    for (text, wanted) in [
        ("= sqrt(0 - n)", "`sqrt` of -12 is not a number: its argument is zero or more"),
        ("= multiple_of(n, 0)", "`multiple_of` of 12, 0 divides by zero"),
        ("= word + 1", "\"yes\" is not a number"),
        ("= len(n)", "12 is neither a list nor a map"),
        ("= repeat(n, list)", "a list is repeated for each layer; a single value is expected"),
        ("= every(9, 2, 'x', list)", "a list is repeated for each layer; a single value is expected"),
        ("= flags(list, 'on', [n])", "a list is repeated for each layer; a single value is expected"),
    ] {
        assert_eq!(formula_value(text), Err(wanted.to_owned()), "{text}");
    }
}

/// Both languages say the same in the same place, and nest equally deep.
#[test]
fn a_fault_of_a_formula_has_its_place() {
    let cases = [
        ("= 2 +", ("", "found the end of the text, expected a value")),
        ("= (n", ("", "found the end of the text, expected `)`")),
        ("= [n, 2", ("", "found the end of the text, expected `]`")),
        ("= n n", ("n", "`n` follows a complete expression")),
        ("= every(1, 2)", ("every(1, 2)", "`every` takes 4 arguments, not 2")),
        ("= evry(1, 2)", ("evry", "there is no function `evry`")),
        ("= 'open", ("'", "the character `'` has no meaning here")),
        ("= 007", ("007", "`007` begins with 0, which some read as octal")),
        ("= n % 2", ("%", "the character `%` has no meaning here")),
    ];
    for (text, (place, message)) in cases {
        let (sources, node) = plain(text);
        let fault = expr::parse_formula(&sources, &node).unwrap_err();
        assert_eq!(fault.message, message, "{text}");
        assert_eq!(text.get(fault.span().range()), Some(place), "{text}");
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("not ", ""), ("-", ""), ("len(", ")"), ("kinds(", ")")] {
        for (depth, is_read) in [(64, true), (65, false), (50_000, false)] {
            let text = format!("= {}n{}", open.repeat(depth), close.repeat(depth));
            let (sources, node) = plain(&text);
            let read = expr::parse_formula(&sources, &node);
            assert_eq!(read.is_ok(), is_read, "{open}{depth}");
            if let Err(fault) = read {
                assert!(["too-deep", "too-large"].contains(&fault.code.slug()), "{}", fault.message);
            }
        }
    }
    // What only formulas have is refused in numbers, where it is.
    for (text, place) in [("d_model > 1", ">"), ("'a'", "'"), ("[1]", "["), ("every(1, 2, 3, 4)", "every")] {
        let fault = value(text).unwrap_err();
        assert_eq!(text.get(fault.span().range()), Some(place), "{text}: {}", fault.message);
    }
}

#[test]
fn a_printed_formula_reads_as_itself() {
    for text in [
        "a or b and not c == d",
        "(a or b) and not (c and d)",
        "not a ?? b != 'text'",
        "(a == b) == (c < d)",
        "x in [1, [2, null], true]",
        "kinds(a ?? 'b') + if(a, 1, -2)^2",
        "-(a ?? b) * (c + d)",
    ] {
        let (sources, node) = plain(text);
        let read = expr::parse_formula(&sources, &node).unwrap();
        assert_eq!(read.to_string(), text);
    }
}

fn equation(text: &str) -> Result<Equation, Diagnostic> {
    let (sources, node) = plain(text);
    let read = equation::parse(&sources, &node).map_err(|mut faults| faults.remove(0))?;
    read.fault.clone().map_or(Ok(read), |fault| Err(*fault))
}

/// An equation as `name = value` lines.
fn lines(equation: &Equation) -> Vec<String> {
    equation.body.iter().map(|s| format!("{} = {}", s.target, s.value)).collect()
}

#[test]
fn equations_are_read_as_papers_write_them() {
    let cases: [(&str, &[&str]); 14] = [
        ("x = x + attention(norm(x))", &["x = x + attention(norm(x))"]),
        ("x + attention(norm(x)) + ffn(norm(x))", &["x = x + attention(norm(x)) + ffn(norm(x))"]),
        ("h = norm(x); x + attention(h) + ffn(h)", &["h = norm(x)", "x = x + attention(h) + ffn(h)"]),
        ("h = norm(x) x + ffn(h)", &["h = norm(x)", "x = x + ffn(h)"]),
        (
            "x = norm(x + attention(x))\nx = norm(x + ffn(x))\n",
            &["x = norm(x + attention(x))", "x = norm(x + ffn(x))"],
        ),
        ("x = x\n  + ffn(x) # on two lines", &["x = x + ffn(x)"]),
        ("x = x + 0.5 * ffn[first](norm[before](x))", &["x = x + 0.5 * ffn[first](norm[before](x))"]),
        ("(x + ffn(x)) / sqrt(2)", &["x = (x + ffn(x)) / sqrt(2)"]),
        ("x * 2^0.5 + ffn(x)", &["x = x * 2^0.5 + ffn(x)"]),
        ("alpha * x + gain(ffn(x))", &["x = alpha * x + gain(ffn(x))"]),
        ("-x + ffn(x)", &["x = -x + ffn(x)"]),
        ("x - (ffn(x) - x)", &["x = x - (ffn(x) - x)"]),
        ("x / (2 * 3) + ffn(x)", &["x = x / (2 * 3) + ffn(x)"]),
        ("x + sqrt(1/2) * ffn(x)", &["x = x + sqrt(1/2) * ffn(x)"]),
    ];
    for (text, wanted) in cases {
        let read = equation(text).unwrap_or_else(|d| panic!("{text}: {}", d.message));
        assert_eq!(lines(&read), wanted, "{text}");
        let again = lines(&read).join("\n");
        assert_eq!(lines(&equation(&again).unwrap()), wanted, "{again}");
    }
}

#[test]
fn parameters_are_named_or_guessed() {
    let params = |text: &str| equation(text).unwrap().params.into_iter().map(|p| p.0).collect::<Vec<_>>();
    assert_eq!(params("x + ffn(x)"), ["x"]);
    assert_eq!(params("x + cross(x, memory)"), ["x", "memory"]);
    assert_eq!(params("x + ffn(x) # no memory"), ["x"]);
    assert_eq!(params("(h, m):\nh + cross(h, m)"), ["h", "m"]);
    assert_eq!(params("(h) + ffn(h)"), ["x"], "no header without a colon");
}

#[test]
fn equation_faults_have_a_place() {
    let cases = [
        ("", ""),
        ("x = x + ffn(norm(x)", "("),
        ("x = x + ffn(norm(x)))", ")"),
        ("x = x + ffn(norm(x)}", "}"),
        ("x = x +", "+"),
        ("x = norm(x) +\nh = x", "+"),
        ("h =\nx = h", "="),
        ("h = norm(x)", "h"),
        ("ffn(x) x = x + attention(x)", "ffn(x)"),
        ("x = x + ffn[](x)", "]"),
        ("x = x + ffn[a b](x)", "b"),
        ("x = x + ffn[a]", ""),
        ("x == x", "="),
        ("x = x + 3x", "3x"),
        ("x = x @ y", "@"),
        ("(x, x): x + ffn(x)", "x"),
        ("x = x + π(x)", "π"),
    ];
    for (text, place) in cases {
        let fault = equation(text).expect_err(text);
        let (sources, _) = plain(text);
        let found = (fault.code.slug(), sources.text(fault.span()));
        assert_eq!(found, ("equation", place), "{text}: {}", fault.message);
    }
    let deep = |n: usize| format!("{}x{}", "ffn(".repeat(n), ")".repeat(n));
    assert!(equation(&deep(64)).is_ok());
    assert_eq!(equation(&deep(65)).unwrap_err().code.slug(), "too-deep");
    assert_eq!(equation(&deep(1_000)).unwrap_err().code.slug(), "too-deep");
    assert_eq!(equation(&"x ".repeat(10_000)).unwrap_err().code.slug(), "too-large");
    assert_eq!(equation(&"-".repeat(3_000)).unwrap_err().code.slug(), "too-deep");
}

#[test]
fn places_of_terms_are_the_texts_they_were_read_from() {
    let text = "h = norm(x)\nx = x + 0.5 * ffn[a](h)";
    let (sources, node) = plain(text);
    let read = equation::parse(&sources, &node).unwrap();
    let mut seen = Vec::new();
    fn walk(term: &Term, sources: &SourceMap, seen: &mut Vec<String>) {
        seen.push(sources.text(term.span).to_owned());
        match &term.kind {
            TermKind::Name(_) | TermKind::Number(_) | TermKind::Text(_) => {}
            TermKind::Call { args, .. } => args.iter().for_each(|t| walk(t, sources, seen)),
            TermKind::Sum(terms) => terms.iter().for_each(|(_, t)| walk(t, sources, seen)),
            TermKind::Product(terms) => terms.iter().for_each(|t| walk(t, sources, seen)),
            TermKind::Quotient(over, under) => [over, under].into_iter().for_each(|t| walk(t, sources, seen)),
        }
    }
    read.body.iter().for_each(|s| walk(&s.value, &sources, &mut seen));
    let wanted = ["norm(x)", "x", "x + 0.5 * ffn[a](h)", "x", "0.5 * ffn[a](h)", "0.5", "ffn[a](h)", "h"];
    assert_eq!(seen, wanted);
}

/// A decimal with more digits than a float shows exactly, or with few.
fn decimal() -> impl Strategy<Value = String> {
    let digits = "(0|[1-9][0-9]{0,19})(\\.[0-9]{1,25})?(e-?[1-9][0-9]?)?";
    prop_oneof![digits, Just("0.5".to_owned()), Just("3.14159265358979323846".to_owned())]
}

/// A power of numbers.
fn power() -> impl Strategy<Value = String> {
    let number = || prop_oneof![Just("n".to_owned()), Just("sqrt(n)".to_owned()), decimal()];
    number().prop_recursive(3, 6, 2, move |inner| {
        (inner.clone(), inner, 0..4).prop_map(|(a, b, form)| match form {
            0 => format!("{a}^{b}"),
            1 => format!("({a})^-{b}"),
            2 => format!("({a} - {b})^2"),
            _ => format!("(-{a})^({b}/3)"),
        })
    })
}

/// The text of a term, with `leaves` and with calls that have `open` before their arguments.
fn term_text(leaves: BoxedStrategy<String>, open: &'static [&'static str]) -> impl Strategy<Value = String> {
    leaves.prop_recursive(5, 30, 2, move |inner| {
        let marks = prop::sample::select(&["+", "-", "*", "/", " + ", " - ", " * ", " / "][..]);
        prop_oneof![
            4 => (inner.clone(), marks, inner.clone()).prop_map(|(a, mark, b)| format!("{a}{mark}{b}")),
            2 => inner.clone().prop_map(|a| format!("({a})")),
            1 => inner.clone().prop_map(|a| format!("-{a}")),
            1 => (power(), inner.clone()).prop_map(|(n, a)| format!("{n} * {a}")),
            1 => (prop::sample::select(open), inner).prop_map(|(open, a)| format!("{open}{a})")),
        ]
    })
}

/// The structure of a term or an expression without its places.
fn structure(term: &impl std::fmt::Debug) -> String {
    let text = format!("{term:?}");
    let mut pieces = text.split("span: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| all + piece.find([' ', ',']).map_or("", |end| &piece[end..]))
}

fn part(text: &str) -> Result<Definition, String> {
    let (sources, node) = plain(text);
    let read = equation::parse_part(&sources, &node).map_err(|f| format!("{text}: {}", f[0].message))?;
    let (name, inputs, body, result) = ("part".to_owned(), read.params, read.body, read.result);
    Ok(Definition { name, span: Span::default(), inputs, fields: vec![], body, result, slot: None })
}

proptest! {
    #![proptest_config(config())]

    /// As an expanded spec has it, and so a checkpoint.
    #[test]
    fn a_printed_part_reads_as_itself(
        step in term_text(prop_oneof![Just("x".to_owned()), decimal()].boxed(), &["f(", "g[a](x, 1e-5, ", "h(x, k: "]),
        result in term_text(prop_oneof![Just("h".to_owned()), decimal()].boxed(), &["f(", "sqrt("]),
    ) {
        let read = part(&format!("h = {step};{result}")).unwrap();
        let written = read.encode().value.text().unwrap().to_owned();
        let again = part(&written).unwrap();
        prop_assert_eq!(again.lines().join("\n"), written);
        prop_assert_eq!(structure(&again.body[0].value), structure(&read.body[0].value));
        prop_assert_eq!(structure(&again.result), structure(&read.result));
    }

    /// Fields are printed as expressions, and read as terms.
    #[test]
    fn a_printed_field_reads_as_itself(
        value in term_text(prop_oneof![Just("n".to_owned()), decimal()].boxed(), &["floor(", "max(n, "]),
    ) {
        let field = |read: &Definition| {
            let default = OwnDefault::Number(read.body[0].value.as_expression().unwrap());
            OwnField { name: "m".to_owned(), span: Span::default(), default }
        };
        let read = part(&format!("m = {value};x")).unwrap();
        let field_read = field(&read);
        let written = Definition { fields: vec![field_read.clone()], body: vec![], ..read }.encode();
        let again = part(written.value.text().unwrap()).unwrap();
        let field_again = field(&again);
        prop_assert_eq!(field_again.line(), field_read.line());
        prop_assert_eq!(structure(&field_again.default), structure(&field_read.default));
    }
}
