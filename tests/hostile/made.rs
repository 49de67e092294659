//! Hostile texts that are too large for files, with the names that such files would have: generated for the
//! test and the bench.

/// Every text with its name.
pub fn made() -> Vec<(&'static str, String)> {
    let spec = "trafo: 1\nname: tiny\nvocab: 32\ncontext: 8\nd_model: 8\n\
                decoder: {layers: 1, attention: {heads: 2}}\nhead: lm\n";
    let model = |inside: &str| {
        format!(
            "model tiny {{ vocab = 32 context = 8 d_model = 8 head = lm\n\
             decoder x 1 {{ attention {{ heads = 2 }} {inside} }} }}\n"
        )
    };
    let steps = |n: usize| (0..n).map(|i| format!("{}a:\n", " ".repeat(i))).collect::<String>();
    let keys = |n: usize| (0..n).map(|i| format!("key{i}: {i}\n")).collect::<String>();
    let ranges = |n: usize| {
        let of = |i: usize| format!("\"{}\": {{ffn: {{mlp: {{dropout: 0.{i:05}1}}}}}}, ", 2 * i);
        (0..n).map(of).collect::<String>()
    };
    // Different blocks, each of which calls parts 420 times.
    let blocks = |n: usize| {
        let of = |i: usize| {
            let equation = "; x = x + ffn(norm(x))".repeat(209);
            format!("b{i}: {{block: 'x = x + {}.5 * attention(norm(x)){equation}'}}, ", i + 1)
        };
        (0..n).map(of).collect::<String>()
    };
    let numbers = |n: usize| (0..n).map(|i| format!("{}, ", i + 1)).collect::<String>();
    // Each value of the grid makes a variant of the whole stack.
    let swept = |blocks: usize, values: usize| {
        let of = |i: usize| format!("\"{i}\": {{ffn: {{hidden: {}}}}}, ", i + 1);
        let ranges = (0..blocks).map(of).collect::<String>();
        let stack = format!("layers: {blocks}, attention: {{heads: 2}}, ranges: {{{ranges}}}");
        let spec = spec.replace("layers: 1, attention: {heads: 2}", &stack);
        format!("{spec}sweep: {{grid: {{vocab: [{}]}}}}\n", numbers(values))
    };
    let names = |n: usize| (0..n).map(|i| format!("b{i}, ")).collect::<String>();
    let around = |open: &str, n: usize, close: &str| format!("{}{}", open.repeat(n), close.repeat(n));
    // Parts of one's own, the last of which is used; each line has a part's number and that of the one before.
    let parts = |n: usize, line: &dyn Fn(usize) -> String| {
        let lines: String = (0..n).map(|i| format!("  p{i}: {}\n", line(i))).collect();
        let spec = spec.replace("heads: 2}}", &format!("heads: 2}}, ffn: p{}}}", n - 1));
        format!("{spec}parts:\n{lines}")
    };
    let after = |i: usize| i.saturating_sub(1);
    vec![
        ("too-large-parts.yaml", parts(1000, &|_| "silu(x)".to_owned())),
        (
            "too-large-parts-nested.yaml",
            parts(60, &|i| if i == 0 { "silu(x)".to_owned() } else { format!("p{0}(p{0}(x))", after(i)) }),
        ),
        (
            "ok-parts-in-parts.yaml",
            parts(250, &|i| if i == 0 { "silu(x)".to_owned() } else { format!("p{}(x)", after(i)) }),
        ),
        ("part-cycle-long.yaml", parts(250, &|i| format!("p{}(x)", (i + 1) % 250))),
        (
            "part-cycle-many.yaml",
            parts(100, &|_| (0..100).map(|i| format!("p{i}(x) + ")).collect::<String>() + "x"),
        ),
        (
            "unknown-call-many.yaml",
            parts(100, &|_| (0..100).map(|i| format!("q{i}(x) + ")).collect::<String>() + "x"),
        ),
        ("too-large-parts-text.yaml", parts(250, &|_| "silu(x) + ".repeat(250) + "x")),
        ("too-large-file.yaml", format!("{spec}# {}\n", "x".repeat(1 << 20))),
        ("too-large-file.trafo", format!("{}// {}\n", model(""), "x".repeat(1 << 20))),
        ("ok-long-comment.yaml", format!("{spec}# {}\n", "x".repeat((1 << 20) - 400))),
        ("ok-long-comment.trafo", format!("{}// {}\n", model(""), "x".repeat((1 << 20) - 400))),
        ("too-large-aliases.yaml", format!("{spec}let: &a 1\nx: [{}]\n", "*a, ".repeat(50_000))),
        (
            "too-large-aliases-of-lists.yaml",
            format!("a: &a [{}]\nb: [{}]\n", "1, ".repeat(900), "*a, ".repeat(900)),
        ),
        (
            "too-large-anchors.yaml",
            format!("x: [{}]\n", (0..60_000).map(|i| format!("&a{i} 1, ")).collect::<String>()),
        ),
        ("too-large-keys.yaml", keys(100_000)),
        ("unknown-key-many.yaml", format!("{spec}{}", keys(5_000))),
        ("too-large-list.yaml", format!("x: [{}]\n", "1, ".repeat(200_000))),
        ("too-large-dashes.yaml", "- 1\n".repeat(100_000)),
        ("too-large-empty-maps.yaml", format!("x: [{}]\n", "{}, ".repeat(200_000))),
        ("too-deep-lists.yaml", around("[", 10_000, "]")),
        ("too-deep-lists-open.yaml", "[".repeat(1_000_000)),
        ("too-deep-maps.yaml", around("{a: ", 10_000, "}")),
        ("too-deep-maps-and-lists.yaml", "[{a: ".repeat(100_000)),
        ("too-deep-indents.yaml", steps(1_300)),
        ("too-deep-dashes.yaml", format!("{}x\n", "- ".repeat(100_000))),
        ("bad-key-questions.yaml", "? ".repeat(100_000)),
        (
            "too-deep-aliases.yaml",
            format!(
                "a0: &a0 [x]\n{}",
                (1..70).map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1)).collect::<String>()
            ),
        ),
        ("several-documents-storm.yaml", "---\n".repeat(100_000)),
        ("several-documents-storm-of-maps.yaml", "--- {a: 1}\n".repeat(90_000)),
        ("ok-long-name.yaml", spec.replace("tiny", &"n".repeat(1_000_000))),
        ("ok-long-quoted-name.yaml", spec.replace("tiny", &format!("\"{}\"", "\\x41".repeat(250_000)))),
        ("too-large-number.yaml", spec.replace("32", &format!("1{}", "+1".repeat(500_000)))),
        ("unknown-part-long.yaml", spec.replace("head: lm", &format!("head: {}", "l".repeat(500_000)))),
        ("expression-overflow-digits.yaml", spec.replace("32", &"9".repeat(1_000_000))),
        ("too-large-parentheses.yaml", spec.replace("32", &around("(", 10_000, ")"))),
        ("too-deep-signs.yaml", spec.replace("32", &format!("{}1", "-".repeat(900)))),
        (
            "too-large-equation.yaml",
            format!("{spec}# \n")
                .replace("{heads: 2}", &format!("{{heads: 2}}, block: \"x{}\"", " + ffn(x)".repeat(100_000))),
        ),
        (
            "too-deep-equation.yaml",
            spec.replace(
                "{heads: 2}",
                &format!("{{heads: 2}}, block: \"{}x{}\"", "norm(".repeat(1_000), ")".repeat(1_000)),
            ),
        ),
        (
            "too-large-let.yaml",
            format!(
                "{spec}let: {{a0: 1, {}}}\n",
                (1..3_000).map(|i| format!("a{i}: a{}, ", i - 1)).collect::<String>()
            ),
        ),
        ("unknown-key-spaces.yaml", format!("a: b\n{}c", " ".repeat(1_000_000))),
        ("syntax-quotes.yaml", format!("a: {}\n", "\"x\" ".repeat(100_000))),
        ("syntax-colons.yaml", format!("a{}\n", ": a".repeat(100_000))),
        ("hidden-character-many.yaml", "\u{1}".repeat(1_000_000)),
        (
            "too-large-formula.yaml",
            format!("{spec}weights:\n  x: {{groups: = 1{}, fuse: [a, b]}}\n", "+1".repeat(20_000)),
        ),
        (
            "too-large-formula-signs.yaml",
            format!("{spec}weights:\n  x: {{groups: = {}1, fuse: [a, b]}}\n", "-".repeat(20_000)),
        ),
        (
            "too-deep-formula-brackets.yaml",
            format!("{spec}weights:\n  x: {{groups: = {}, fuse: [a, b]}}\n", around("(", 400, ")")),
        ),
        (
            "ok-many-ranges.yaml",
            spec.replace(
                "layers: 1, attention: {heads: 2}",
                &format!(
                    "layers: 100000, ffn: {{expansion: 2}}, attention: {{heads: 2}}, ranges: {{{}}}",
                    ranges(600)
                ),
            ),
        ),
        (
            "too-large-ranges.yaml",
            spec.replace(
                "layers: 1, attention: {heads: 2}",
                &format!("layers: 100000, attention: {{heads: 2}}, ranges: {{{}}}", ranges(2400)),
            ),
        ),
        (
            "too-large-blocks.yaml",
            spec.replace(
                "layers: 1, attention: {heads: 2}",
                &format!(
                    "layers: 20, attention: {{heads: 2}}, blocks: {{{}}}, pattern: [{}]",
                    blocks(20),
                    names(20)
                ),
            ),
        ),
        ("too-large-sweep.yaml", swept(800, 800)),
        // The stack is too large without the sweep.
        ("too-large-swept.yaml", swept(1_200, 500)),
        (
            "too-large-sweep-grid.yaml",
            format!(
                "{spec}sweep:\n  grid:\n{}",
                (0..40).map(|i| format!("    k{i}: [{}]\n", numbers(50))).collect::<String>()
            ),
        ),
        (
            "unused-rule-many.yaml",
            format!(
                "{spec}init: {{rules: {{{}}}}}\n",
                (0..3_000).map(|i| format!("\"*q{i}*b*c*d*\": zeros, ")).collect::<String>()
            ),
        ),
        ("too-deep-braces.trafo", format!("model {}", around("{ a ", 10_000, "}"))),
        ("too-deep-parentheses.trafo", format!("model {{ a = {} }}", around("(", 10_000, ")"))),
        ("too-deep-lists.trafo", format!("model {{ a = {} }}", around("[", 10_000, "]"))),
        ("too-deep-calls.trafo", format!("model {{ a = {} }}", around("f(", 10_000, ")"))),
        ("syntax-signs.trafo", format!("model {{ a = {} }}", "-".repeat(100_000))),
        ("syntax-probe.trafo", format!("model {{ a = {} }}", "a ".repeat(20_000))),
        ("syntax-probe-calls.trafo", format!("model {{ a = {}+{} }}", "f(".repeat(60), ")+1".repeat(60))),
        ("syntax-probe-ranges.trafo", format!("model {{ layers {} }}", "0..".repeat(100_000))),
        ("syntax-probe-entries.trafo", format!("model {{ {} }}", "a x 1 ".repeat(20_000))),
        ("syntax-probe-quotes.trafo", format!("model {{ a = {} }}", "\"\" ".repeat(50_000))),
        ("too-large-entries.trafo", format!("model {{ {} }}", "a { } ".repeat(500_000))),
        ("too-large-sum.trafo", model("").replace("32", &format!("1{}", " + 1".repeat(50_000)))),
        ("duplicate-key-many.trafo", model("").replace("head = lm", &"head = lm\n".repeat(9_000))),
        ("too-large-duplicates.trafo", model("").replace("head = lm", &"head = lm\n".repeat(11_000))),
        ("too-large-values.trafo", model(&format!("let {{ a = [{}] }}", "1,".repeat(20_000)))),
        (
            "unknown-key-many.trafo",
            model("").replace("head = lm", &format!("head = lm {}", keys(5_000).replace(':', " ="))),
        ),
        ("syntax-open-comment.trafo", format!("model {{ /*{} ", "*".repeat(1_000_000))),
        ("syntax-newlines.trafo", format!("model {{{}", "\n".repeat(1_000_000))),
    ]
}
