//! Random valid specs.
//!
//! A spec is generated from a tape of numbers, where 0 is always the simplest choice, so that failures
//! shrink to simple specs.

use std::fmt::Write as _;

/// The numbers that determine a spec.
struct Tape<'a> {
    values: &'a [u16],
    at: usize,
}

impl Tape<'_> {
    fn pick(&mut self, n: usize) -> usize {
        // After the end of the tape, every choice is the simplest.
        let value = self.values.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(value) % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        // 0, the simplest choice, is no.
        self.pick(n) == n - 1
    }

    fn of<'s>(&mut self, choices: &[&'s str]) -> &'s str {
        choices[self.pick(choices.len())]
    }

    /// Adds `, key: value` to some specs.
    fn field(&mut self, out: &mut String, key: &str, choices: &[&str]) {
        if self.one_in(3) {
            let value = self.of(choices);
            let _ = write!(out, "{}{key}: {value}", if out.is_empty() { "" } else { ", " });
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Decoder,
    Encoder,
    Both,
    Image,
}

/// The sizes of heads, which positions must fit.
#[derive(Clone, Copy)]
struct Heads {
    heads: usize,
    head_dim: usize,
}

const ACTIVATIONS: &[&str] =
    &["gelu", "relu", "relu2", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "none"];
const DROPOUTS: &[&str] = &["0.1", "0", "1/3", "0.999"];
const BOOLS: &[&str] = &["true", "false"];

fn norm(t: &mut Tape<'_>) -> String {
    let mut fields = String::new();
    match t.pick(6) {
        0 => "layer_norm".to_owned(),
        1 => "rms_norm".to_owned(),
        2 => {
            t.field(&mut fields, "eps", &["1e-6", "1e-12", "0.5^10"]);
            t.field(&mut fields, "bias", BOOLS);
            t.field(&mut fields, "unit_offset", BOOLS);
            format!("{{layer_norm: {{{fields}}}}}")
        }
        3 => {
            t.field(&mut fields, "eps", &["1e-6", "1/3"]);
            t.field(&mut fields, "unit_offset", BOOLS);
            format!("{{rms_norm: {{{fields}}}}}")
        }
        4 => {
            t.field(&mut fields, "alpha", &["0.2", "1/3"]);
            t.field(&mut fields, "bias", BOOLS);
            format!("{{dynamic_tanh: {{{fields}}}}}")
        }
        _ => "{layer_norm: {affine: false}}".to_owned(),
    }
}

/// A scheme of positions for attention, or with `anywhere` also one for embeddings.
fn position(t: &mut Tape<'_>, at: Heads, anywhere: bool) -> String {
    let Heads { head_dim, .. } = at;
    match t.pick(if anywhere { 6 } else { 4 }) {
        0 => "none".to_owned(),
        1 => {
            let mut fields = String::new();
            t.field(&mut fields, "theta", &["500", "1e6", "10_000"]);
            t.field(&mut fields, "pairing", &["half", "interleaved"]);
            let rotated = if head_dim >= 4 && t.one_in(3) {
                fields.push_str(if fields.is_empty() { "" } else { ", " });
                let _ = write!(fields, "fraction: {}/{head_dim}", head_dim / 2);
                head_dim / 2
            } else {
                head_dim
            };
            let scaling = match t.pick(6) {
                0 => "none".to_owned(),
                1 => "{linear: {factor: 4}}".to_owned(),
                // For two features, the exponent of this rule would divide by zero.
                2 if rotated > 2 => "{dynamic: {factor: 2, original_context: 4}}".to_owned(),
                3 => "{yarn: {factor: 4, original_context: 64, truncate: false}}".to_owned(),
                4 => {
                    let list = vec!["1.5"; rotated / 2].join(", ");
                    format!(
                        "{{longrope: {{short_factor: [{list}], long_factor: [{list}], original_context: 4}}}}"
                    )
                }
                _ => "{llama3: {factor: 8, original_context: 4}}".to_owned(),
            };
            fields.push_str(if fields.is_empty() { "" } else { ", " });
            format!("{{rotary: {{{fields}scaling: {scaling}}}}}")
        }
        2 => t.of(&["alibi", "{alibi: {max: 4}}"]).to_owned(),
        3 => t.of(&["t5", "{t5: {shared: false}}", "{t5: {buckets: 8, max_distance: 9}}"]).to_owned(),
        4 => t.of(&["learned", "{learned: {offset: 2}}"]).to_owned(),
        _ => t.of(&["sinusoidal", "{sinusoidal: {layout: concat, offset: 1, base: 100}}"]).to_owned(),
    }
}

/// A rule or several that may be together, in any order.
fn mask(t: &mut Tape<'_>) -> String {
    const DIRECTIONS: &[&str] = &["causal", "bidirectional", "{prefix: 2}", "{prefix: 4}"];
    const WINDOWS: &[&str] = &["{window: 3}", "{window: 1}", "{window: 5}"];
    const CHUNKS: &[&str] = &["{chunk: 4}", "{chunk: 3}", "{chunk: 1}"];
    let mut rules = vec![t.of(DIRECTIONS)];
    for others in [WINDOWS, CHUNKS] {
        if t.one_in(2) {
            let other = t.of(others);
            rules.insert(t.pick(rules.len() + 1), other);
        }
    }
    // Without a direction the stack decides.
    if rules.len() > 1 && t.one_in(2) {
        rules.retain(|rule| !DIRECTIONS.contains(rule));
    }
    if let [rule] = rules[..] { rule.to_owned() } else { format!("[{}]", rules.join(", ")) }
}

fn attention(t: &mut Tape<'_>, at: Heads) -> String {
    let Heads { heads, head_dim } = at;
    let mut fields = format!("heads: {heads}, head_dim: {head_dim}");
    if t.one_in(3) {
        let kv = if heads.is_multiple_of(2) { heads / 2 } else { 1 };
        let _ = write!(fields, ", kv_heads: {kv}");
    }
    t.field(&mut fields, "value_dim", &["3", "head_dim", "2 * head_dim"]);
    t.field(&mut fields, "bias", &["false", "{qkv: false}", "{key: false, out: false}"]);
    t.field(&mut fields, "scale", &["1/8", "1/head_dim", "sqrt(head_dim)"]);
    t.field(&mut fields, "score", &["additive", "dot"]);
    t.field(&mut fields, "softcap", &["50", "none"]);
    t.field(&mut fields, "qk_norm", &["{norm: rms_norm}", "{norm: layer_norm, over: full}"]);
    t.field(&mut fields, "clip", &["8"]);
    t.field(&mut fields, "sinks", BOOLS);
    t.field(&mut fields, "gate", &["headwise", "elementwise", "none"]);
    t.field(&mut fields, "dropout", &["0.1", "{weights: 0.1}", "{out: 0.2}"]);
    if t.one_in(3) {
        let _ = write!(fields, ", mask: {}", mask(t));
    }
    format!("{{{fields}}}")
}

fn mlp(t: &mut Tape<'_>) -> String {
    let mut fields = t.of(&["expansion: 2", "hidden: 12", "hidden: floor(8/3 * d_model)"]).to_owned();
    t.field(&mut fields, "activation", ACTIVATIONS);
    t.field(&mut fields, "bias", BOOLS);
    t.field(&mut fields, "dropout", DROPOUTS);
    t.field(&mut fields, "inner_dropout", DROPOUTS);
    fields
}

/// The widths of tensors in a part of its own: the input's, that of a field, and a small one.
const WIDTHS: &[&str] = &["d_model", "inner", "3"];

/// Functions of a tensor that read other positions. All are bounded or grow slowly.
const IN_TIME: &[&str] = &[
    "shift($, 1)",
    "shift($, 3)",
    "conv1d($, 3)",
    "conv1d($, 1, bias: false)",
    "cumsum(tanh($)) / cumsum(0 * $ + 1)",
    "with_loss($, square($ - batch_mean(sign($))), weight: 0.1)",
    "merge(shift(split($, 1), 2))",
    "merge(attend(split($, 1), split(shift($, 1), 1), split(softcap($, 2), 1)))",
    "merge(attend(repeat(split($, 1), 2), split($, 1), split(linear($, 2), 1), window: 3, scale: 1/2))",
    "merge(recurrence(split(softmax($), 1), split(tanh($), 1), split($, 1), 0.5 + 0 * split(linear($, 1), 1)))",
    "merge(recurrence(split(tanh(linear($, 4)), 2), split(softmax(linear($, 2)), 1), split(linear($, 4), 2), split(0.5 + 0 * linear($, 1), 1)))",
    "merge(recurrence(split($, 1), split(softmax($), 1), split(tanh($), 1), split(sigmoid($), 1)))",
    "merge(recurrence(split(sin($), 1), normalize(split(0.1 + $, 1)), split($, 1), split(sigmoid($), 1), 0.5 + 0 * split(linear($, 1), 1)))",
    "merge(weigh(softmax(scores(split($, 1), split(tanh($), 1))), split($, 1)))",
    "merge(weigh(softmax(relative(split(linear($, 5), 1), 2) + relative(split(sin(linear($, 4)), 1), 0, of_keys: true)), split($, 1)))",
    "merge(weigh(einsum(\"bhtk,hg->bgtk\", dropout(sigmoid(scores(split(linear($, 4), 2), split(linear($, 2), 1), window: 3)), p: 0.1), param(2, 1)) / 8, split($, 1)))",
    "merge(split($, 1) / (1 + sum(sigmoid(scores(split(linear($, 2), 1), split(sin(linear($, 2)), 1))))))",
    "looked($)",
];

/// Functions that add up over all positions, which an encoder alone may do.
const OF_WHOLE: &[&str] = &[
    "merge(einsum(\"bhtd,bhde->bhte\", split($, 1), softmax(einsum(\"bhtd,bhte->bhde\", split(sin($), 1), split(tanh($), 1)))))",
    "einsum(\"btd,bd->btd\", sigmoid($), tanh(einsum(\"btd,btd->bd\", $, sin($))))",
];

/// A tensor of one of these widths, in at most `depth` calls. `known` are the names with their widths; `in_time` are
/// functions that read other positions.
fn tensor(
    t: &mut Tape<'_>,
    depth: usize,
    width: usize,
    known: &[(&str, usize)],
    in_time: &[&'static str],
) -> String {
    // Every function of it is bounded or grows slowly, so that no value becomes infinite.
    const UNARY: &[&str] = &[
        "gelu($)",
        "act($)",
        "exp(-square($))",
        "log(1 + square($))",
        "1 / (2 + abs($))",
        "sqrt(0.1 + square($))",
        "softplus($)",
        "sin($) * cos($)",
        "reciprocal(1 + exp(-clamp($, min: -5)))",
        "softcap($, 3)",
        "softmax($)",
        "normalize($ + 0.5)",
        "layer_norm($)",
        "rms_norm($, eps: 1e-3)",
        "dynamic_tanh($, bias: false)",
        "gain($, init: 0.5)",
        "dropout($, p: 0.25)",
        "-$ / n",
        "n * $ - 1/3",
    ];
    let size = WIDTHS[width];
    let named: Vec<&str> = known.iter().filter(|(_, w)| *w == width).map(|(name, _)| *name).collect();
    if depth == 0 {
        return match named.is_empty() {
            true => format!("linear(x, {size}, bias: false)"),
            false => t.of(&named).to_owned(),
        };
    }
    let inner = |t: &mut Tape<'_>, width: usize| tensor(t, depth - 1, width, known, in_time);
    if !in_time.is_empty() && t.one_in(2) {
        // All but one of them have the width of what they are given.
        let (form, x) = (t.of(in_time), inner(t, width));
        let y = form.replace('$', &x);
        return if form.contains("linear") { format!("linear({y}, {size})") } else { format!("({y})") };
    }
    match t.pick(8) {
        0 => {
            let (form, x) = (t.of(UNARY), inner(t, width));
            format!("({})", form.replace('$', &x))
        }
        1 => format!("({} + {})", inner(t, width), inner(t, width)),
        2 => format!("({} - {})", inner(t, width), inner(t, width)),
        3 => format!("{} * sigmoid({})", inner(t, width), inner(t, width)),
        4 => {
            let other = t.pick(WIDTHS.len());
            format!("linear({}, {size})", inner(t, other))
        }
        5 => {
            let (x, y, over) = (inner(t, width), inner(t, width), t.of(&["mean", "amax", "sum"]));
            format!("{x} / (1 + square({over}({y})))")
        }
        6 => format!("slice(concat({}, {}), 1, {size})", inner(t, width), inner(t, width)),
        _ => format!("param({size}) * {}", inner(t, width)),
    }
}

/// The definition of a part, which returns a tensor as wide as its input and may call what reads other positions.
fn unit(t: &mut Tape<'_>, name: &str, in_time: &[&'static str]) -> String {
    let inner = t.of(&["6", "2 * d_model", "floor(d_model / 3) + 1", "required"]);
    let (act, n) = (t.of(&ACTIVATIONS[..8]), t.of(&["2", "1/3", "sqrt(d_model)"]));
    let mut known = vec![("x", 0)];
    let mut lines = vec![format!("inner = {inner}"), format!("act = {act}"), format!("n = {n}")];
    for name in ["a", "b"] {
        if t.one_in(2) {
            let (width, depth) = (t.pick(WIDTHS.len()), t.pick(3));
            lines.push(format!("{name} = {}", tensor(t, depth, width, &known, in_time)));
            known.push((name, width));
        }
    }
    let depth = t.pick(4);
    // Reads every name and every field, which is an error otherwise.
    let mut result =
        format!("n * act(linear(linear(x, inner), d_model)) + {}", tensor(t, depth, 0, &known, in_time));
    for (name, _) in known.iter().filter(|(name, _)| *name != "x") {
        let _ = write!(result, " + linear[of_{name}]({name}, d_model)");
    }
    lines.push(result);
    format!("  {name}: |\n    {}\n", lines.join("\n    "))
}

/// A part of its own with its fields, or one of the library.
fn own(t: &mut Tape<'_>) -> String {
    let mut fields = "inner: 5".to_owned();
    t.field(&mut fields, "act", ACTIVATIONS);
    t.field(&mut fields, "n", &["3", "d_model"]);
    match t.pick(4) {
        0 => {
            t.of(&["swiglu", "geglu", "reglu", "bilinear", "squared_relu_mlp", "solu", "highway"]).to_owned()
        }
        1 => {
            t.of(&["{swiglu: {hidden: 6, bias: true}}", "{adapter: {size: 2, activation: silu}}"]).to_owned()
        }
        _ => format!("{{unit: {{{fields}}}}}"),
    }
}

/// A norm of a stack, which may be a part of its own.
fn stack_norm(t: &mut Tape<'_>) -> String {
    if t.one_in(4) { "{unit: {inner: 4}}".to_owned() } else { norm(t) }
}

fn ffn(t: &mut Tape<'_>) -> String {
    let expert = |t: &mut Tape<'_>| {
        let fields = mlp(t);
        match t.pick(4) {
            0 | 1 => format!("{{{fields}}}"),
            2 => format!("{{glu: {{{fields}}}}}"),
            _ => own(t),
        }
    };
    match t.pick(5) {
        0 => format!("{{{}}}", mlp(t)),
        1 => format!("{{glu: {{{}}}}}", mlp(t)),
        2 => "{glu: {hidden: 8, clamped: {alpha: 1.5}}}".to_owned(),
        3 => own(t),
        _ => {
            let mut fields = format!("experts: 4, top_k: {}, expert: {}", 1 + t.pick(2), expert(t));
            match t.pick(3) {
                0 => {
                    t.field(&mut fields, "normalize", BOOLS);
                    t.field(&mut fields, "groups", &["{count: 2, keep: 1, score_of: 1}"]);
                }
                1 => {
                    fields.push_str(", score: sigmoid");
                    t.field(&mut fields, "correction", BOOLS);
                    t.field(&mut fields, "normalize", BOOLS);
                }
                _ => fields.push_str(", score: softmax_of_chosen"),
            }
            t.field(&mut fields, "scale", &["2.5", "1/3"]);
            t.field(&mut fields, "router_bias", BOOLS);
            if t.one_in(3) {
                let _ = write!(fields, ", shared: {{expert: {}, gate: {}}}", expert(t), t.of(BOOLS));
            }
            format!("{{moe: {{{fields}}}}}")
        }
    }
}

/// An equation that calls every part that its stack describes.
fn equation(t: &mut Tape<'_>, crosses: bool) -> String {
    const PLAIN: &[&str] = &["pre_norm", "post_norm", "sandwich"];
    const ALONE: &[&str] = &["parallel", "parallel_two_norms", "reordered", "layer_scale", "macaron"];
    if t.one_in(2) {
        let named = if crosses || t.one_in(2) { t.of(PLAIN) } else { t.of(ALONE) };
        return format!("block: {named}\n");
    }
    let factor = |t: &mut Tape<'_>| t.of(&["", "0.5 * ", "alpha * ", "-", "sqrt(2) * ", "2/3 * "]).to_owned();
    let wrap = |t: &mut Tape<'_>, inner: String| match t.pick(5) {
        0 => inner,
        1 => format!("norm({inner})"),
        2 => format!("gain({inner})"),
        3 => format!("({inner} / layers)"),
        _ => format!("2 * ({inner} - x)"),
    };
    let input = |t: &mut Tape<'_>| t.of(&["x", "norm(x)", "norm(norm(x))", "(x + x)"]).to_owned();
    let mut lines = String::new();
    let calls: &[&str] = if crosses { &["attention", "cross", "ffn"] } else { &["attention", "ffn"] };
    for call in calls {
        let (before, argument) = (factor(t), input(t));
        let label = if *call == "attention" && t.one_in(4) { "[near]" } else { "" };
        let inner = match *call {
            "cross" => format!("cross({argument}, memory)"),
            _ => format!("{call}{label}({argument})"),
        };
        let inner = wrap(t, inner);
        match t.pick(3) {
            0 => writeln!(lines, "    x = x + {before}{inner}").unwrap(),
            1 => writeln!(lines, "    h = {inner}; x = h + {before}x").unwrap(),
            _ => writeln!(lines, "    x = norm(x + {before}{inner})").unwrap(),
        }
    }
    if t.one_in(4) {
        let _ = writeln!(lines, "    x = x + {}seen({})", factor(t), input(t));
        return format!("block: |\n{lines}  seen: {{inner: 5}}\n");
    }
    if t.one_in(4) {
        // The fields of the call are a key next to the equation.
        let _ = writeln!(lines, "    x = highway(x) + unit[more](x)");
        return format!("block: |\n{lines}  more: {{inner: 4}}\n");
    }
    format!("block: |\n{lines}")
}

/// Whether a block of these stacks calls `norm`; every named wiring does.
fn calls_norm(stacks: &str) -> bool {
    let named = stacks.matches("block: ").count() > stacks.matches("block: |").count();
    named || stacks.contains("norm(")
}

/// What a stack has to specify because the model does not.
#[derive(Clone, Copy)]
struct Own {
    norm: bool,
    position: bool,
    /// Whether positions are added to the embeddings, under which blocks have none in any case.
    added: bool,
}

fn stack(t: &mut Tape<'_>, at: Heads, crosses: bool, own: Own) -> String {
    let layers = [2usize, 1, 3, 7, 1_000_000_007][t.pick(5)];
    // A billion layers are folded like three.
    let mut out = format!("  layers: {layers}\n  {}", equation(t, crosses));
    let latent = t.one_in(8).then(|| {
        let rank = t.of(&["none", "6"]);
        let dim = at.head_dim;
        format!(
            "{{latent: {{heads: {}, kv_rank: 4, query_rank: {rank}, content_dim: 4, rotary_dim: {dim}}}}}",
            at.heads
        )
    });
    if crosses && latent.is_some() {
        let _ = writeln!(out, "  cross: {{heads: 2, head_dim: 3}}");
    } else if crosses && t.one_in(3) {
        let score = t.of(&["dot", "additive"]);
        let _ = writeln!(out, "  cross: {{heads: {}, softcap: 3, score: {score}}}", at.heads);
    }
    let is_latent = latent.is_some();
    let described = latent.unwrap_or_else(|| attention(t, at));
    let _ = writeln!(out, "  attention: {described}\n  ffn: {}", ffn(t));
    if own.norm && calls_norm(&out) {
        let _ = writeln!(out, "  norm: {}", stack_norm(t));
    }
    if own.position {
        let place = position(t, at, false);
        if place != "none" || !own.added {
            let _ = writeln!(out, "  position: {place}");
        }
    }
    match t.pick(5) {
        1 if layers > 1 => {
            let changed = if is_latent { "{ffn: {mlp: {dropout: 0.3}}}" } else { "{attention: {clip: 3}}" };
            let patterns = ["[a, b]", "[b, a]", "[a, a, b]"];
            let pattern = t.of(&patterns[..if layers > 2 { 3 } else { 2 }]);
            let _ = write!(out, "  blocks:\n    a: {{}}\n    b: {changed}\n  pattern: {pattern}\n");
        }
        2 if layers > 1 => {
            let range = t.of(&["0", "..1", "0..1"]);
            let _ = write!(out, "  ranges:\n    \"{range}\": {{ffn: {{mlp: {{bias: false}}}}}}\n");
        }
        3 => {
            let _ = writeln!(out, "  share: 1");
        }
        _ => {}
    }
    if t.one_in(3) {
        let last = stack_norm(t);
        let _ = writeln!(out, "  final_norm: {}", t.of(&["false", "true", last.as_str()]));
    }
    out
}

fn embed(t: &mut Tape<'_>, at: Heads, kind: Kind) -> String {
    let mut fields = String::new();
    if kind == Kind::Image {
        fields = format!("patches: {{image: 8, size: 4, class_token: {}", t.of(BOOLS));
        t.field(&mut fields, "channels", &["1"]);
        t.field(&mut fields, "registers", &["2", "0"]);
        fields.push('}');
    } else {
        t.field(&mut fields, "padding", &["0", "none", "vocab - 1"]);
        if kind == Kind::Encoder {
            t.field(&mut fields, "segments", &["2"]);
        }
        t.field(&mut fields, "languages", &["3"]);
        if kind == Kind::Both {
            t.field(&mut fields, "shared", BOOLS);
        }
        t.field(&mut fields, "dim", &["4", "4, widen: first", "d_model"]);
    }
    t.field(&mut fields, "scale", &["sqrt(d_model)", "2", "1/7"]);
    t.field(&mut fields, "dropout", DROPOUTS);
    let comma = if fields.is_empty() { "" } else { ", " };
    let place = position(t, at, true);
    let norm = if t.one_in(3) { format!(", norm: {}", norm(t)) } else { String::new() };
    format!("embed: {{{fields}{comma}position: {place}{norm}}}\n")
}

fn head(t: &mut Tape<'_>, kind: Kind) -> String {
    let lm = |t: &mut Tape<'_>| {
        let mut fields = String::new();
        t.field(&mut fields, "tied", BOOLS);
        t.field(&mut fields, "bias", BOOLS);
        t.field(&mut fields, "fixed_bias", BOOLS);
        t.field(&mut fields, "scale", &["1/sqrt(d_model)"]);
        t.field(&mut fields, "softcap", &["30"]);
        fields
    };
    let pooled = |t: &mut Tape<'_>| {
        let pool = t.of(&["mean", "cls", "first", "last", "max"]);
        match t.pick(3) {
            0 => format!("{{classify: {{pool: {pool}, classes: 3}}}}"),
            1 => {
                format!("{{classify: {{pool: {pool}, hidden: [5, d_model], activation: relu, classes: 1}}}}")
            }
            _ => format!("{{embed: {{pool: {pool}, project: 5, normalize: true}}}}"),
        }
    };
    match (kind, t.pick(3)) {
        (Kind::Decoder, 0 | 1) => format!("{{lm: {{{}}}}}", lm(t)),
        (Kind::Both, 0 | 1) => format!("{{translate: {{{}}}}}", lm(t)),
        (Kind::Encoder, 0) => t.of(&["mlm", "{mlm: {tied: false}}", "{mlm: {transform: false}}"]).to_owned(),
        (Kind::Encoder, 1) => t.of(&["span", "{tag: {classes: 4}}"]).to_owned(),
        (_, _) => pooled(t),
    }
}

/// A valid spec.
pub fn spec(tape: &[u16]) -> String {
    let t = &mut Tape { values: tape, at: 0 };
    let kind = [Kind::Decoder, Kind::Encoder, Kind::Both, Kind::Image][t.pick(4)];
    let at = Heads { heads: [2, 1, 3, 4][t.pick(4)], head_dim: [4, 2, 8][t.pick(3)] };
    let d_model = t.of(&["8", "12", "2 * wide", "16"]);
    let mut out =
        format!("trafo: 1\nname: {}\nd_model: {d_model}\n", t.of(&["tiny", "a-b_c", "\"12\"", "none"]));
    if kind != Kind::Image {
        let _ = write!(out, "vocab: 16\ncontext: {}\n", t.of(&["8", "2^20"]));
    }
    out.push_str(&embed(t, at, kind));
    let in_attention = ["rotary", "alibi", "t5"].iter().any(|p| out.contains(p));
    let added = out.contains("learned") || out.contains("sinusoidal");
    let own = Own { norm: t.one_in(2), position: !in_attention && t.one_in(2), added };
    let of_model = norm(t);
    let mut stacks = String::new();
    if kind != Kind::Decoder {
        let _ = write!(stacks, "encoder:\n{}", stack(t, at, false, own));
    }
    if kind == Kind::Decoder || kind == Kind::Both {
        let _ = write!(stacks, "decoder:\n{}", stack(t, at, kind == Kind::Both, own));
    }
    if !own.norm && calls_norm(&stacks) {
        let _ = writeln!(out, "norm: {of_model}");
    }
    out.push_str(&stacks);
    // What nothing uses would be an error.
    let has_unit = out.contains("unit: ") || out.contains("unit[");
    if has_unit || out.contains("seen(") {
        out.push_str("parts:\n");
    }
    if has_unit {
        out.push_str(&unit(t, "unit", &[]));
    }
    if out.contains("seen(") {
        let sees_all = matches!(kind, Kind::Encoder | Kind::Image);
        let words = if sees_all { [IN_TIME, OF_WHOLE].concat() } else { IN_TIME.to_vec() };
        let seen = unit(t, "seen", &words);
        // Parts in parts need the stack, too.
        if seen.contains("looked(") {
            out.push_str(
                "  looked: |\n    merge(attend(split(x, 1), split(x, 1), split(x, 1), softcap: 5)) + shift(x, 2)\n",
            );
        }
        out.push_str(&seen);
    }
    let head = head(t, kind);
    // `cls` pools the class token, which has to be there.
    if head.contains("pool: cls") {
        out = out.replace("class_token: false", "class_token: true");
    }
    let _ = writeln!(out, "head: {head}");
    const INITS: &[&str] = &[
        "normal",
        "{truncated_normal: {std: 0.01}}",
        "{weights: xavier_uniform, biases: ones, embeddings: {normal: {std: 1}}}",
        "{residual: 1/7, embeddings: orthogonal}",
    ];
    let _ = writeln!(out, "init: {}", t.of(INITS));
    let mut lets = String::new();
    if d_model.contains("wide") {
        lets.push_str("wide: 8");
    }
    if out.contains("alpha *") {
        let _ = write!(lets, "{}alpha: (2 * layers)^(1/4)", if lets.is_empty() { "" } else { ", " });
    }
    if !lets.is_empty() {
        let _ = writeln!(out, "let: {{{lets}}}");
    }
    out
}
