//! Parts that a spec defines itself, next to the built-in parts that say the same.

use trafoc::emit::pytorch;
use trafoc::emit::rust::{self, Form};
use trafoc::field::definition::OwnDefault;
use trafoc::ir::paths::{expanded, total_elements};
use trafoc::ir::{MemberKind, Module, Role, Verified};
use trafoc::parts::own::vocabulary;
use trafoc::report::compare::knob::knobs;
use trafoc::report::compare::normal::Wirings;
use trafoc::report::cost::cost;
use trafoc::spec::library;
use trafoc::spec::model::is_word;

use crate::compiled::repository;
use crate::front::Front;

fn sound(text: &str) -> Front {
    let front = Front::of_text("spec.yaml", text, "specs");
    assert!(front.codes().is_empty(), "{text}\n{}", front.rendered());
    front
}

fn good(name: &str) -> Front {
    let front = Front::of_file(&repository(&format!("tests/good/{name}")));
    assert!(front.codes().is_empty(), "{}", front.rendered());
    front
}

fn spec(rest: &str) -> String {
    format!("trafo: 1\nname: tiny\nvocab: 16\ncontext: 8\nd_model: 8\nhead: lm\n{rest}")
}

/// Everything of a module that computes: its members, and its ops with the numbers of their inputs and results and
/// with the types of the results.
fn computed(module: &Module) -> Vec<String> {
    let members = module.members.iter().map(|member| match &member.kind {
        MemberKind::Layer(layer) => format!("{} {layer:?}", member.name),
        MemberKind::Module(_) | MemberKind::Stack(_) => member.name.clone(),
    });
    let nodes = module.nodes.iter().map(|node| {
        let types: Vec<String> = node.outputs.iter().map(|id| module.value(*id).ty.to_string()).collect();
        let text = node.op.meaning().text(module);
        format!("{text} {:?} {:?} {types:?}", node.inputs, node.outputs)
    });
    members.chain(nodes).collect()
}

fn feed_forward(graph: &Verified) -> &Module {
    graph.modules.iter().find(|module| module.name == "FeedForward").unwrap()
}

/// The operations of a forward pass over the whole context and of the last token, and their formulas.
fn work(graph: &Verified) -> String {
    let cost = cost(graph);
    let (whole, last) = (cost.forward(&cost.whole_context()), cost.decoding(&cost.last_token()));
    format!("{whole:?} {last:?} {:?}", cost.formulas())
}

/// The built-in gated unit, written as a part, has the same parameters, ops, types, and costs.
#[test]
fn a_part_is_as_good_as_a_built_in_one() {
    let own = good("part-glu.yaml");
    let built_in = sound(&spec(
        "decoder: {layers: 2, attention: {heads: 2}, ffn: {glu: {hidden: 24, activation: gelu_tanh, \
             bias: false, inner_dropout: 0.1}}}\ninit: {weights: {normal: {std: 0.02}}, residual: 0.5}\n",
    ));
    let (own, built_in) = (own.compilation.graph.unwrap(), built_in.compilation.graph.unwrap());
    assert_eq!(computed(feed_forward(&own)), computed(feed_forward(&built_in)));
    assert_eq!(expanded(&own).unwrap(), expanded(&built_in).unwrap());
    assert_eq!(work(&own), work(&built_in));
}

/// `init.residual` scales the last projection of a branch, whatever name, factor or dropout comes after it.
#[test]
fn the_last_projection_is_found_through_names() {
    let layers = |end: &str| {
        let front = sound(&spec(&format!(
            "parts:\n  unit: |\n    h = relu(linear[up](x, 16))\n    {end}\n\
             decoder: {{layers: 2, attention: {{heads: 2}}, ffn: unit}}\n\
             init: {{weights: {{normal: {{std: 0.02}}}}, residual: 0.5}}\n"
        )));
        let graph = front.compilation.graph.unwrap();
        let layers = feed_forward(&graph).members.iter().filter(|member| member.name != "dropout");
        layers.map(|member| format!("{} {:?}", member.name, member.kind)).collect::<Vec<_>>()
    };
    let plain = layers("linear[down](h, d_model)");
    assert_ne!(plain, layers("linear[down](h, d_model) + x"), "of a sum no projection is the last");
    for end in [
        "y = linear[down](h, d_model)\n    y",
        "y = linear[down](h, d_model)\n    z = 2 * y\n    dropout(z, p: 0.1)",
        // Of two values of a name, the last one counts.
        "y = h\n    y = linear[down](y, d_model)\n    y",
    ] {
        assert_eq!(layers(end), plain, "{end}");
    }
}

/// Written as in its paper, with the projections inside one another, the unit has its ops in another order, and
/// nothing else differs.
#[test]
fn the_unit_of_the_paper_has_the_same_size() {
    let own = good("part-swiglu.trafo").compilation.graph.unwrap();
    let built_in = sound(&spec("decoder: {layers: 1, attention: {heads: 2}, ffn: {glu: {hidden: 24}}}\n"));
    let built_in = built_in.compilation.graph.unwrap();
    assert_eq!(total_elements(&own), total_elements(&built_in));
    assert_eq!(work(&own), work(&built_in));
    let ops = |graph: &Verified| {
        let module = feed_forward(graph);
        let mut ops: Vec<String> = module.nodes.iter().map(|node| node.op.meaning().text(module)).collect();
        ops.sort();
        ops
    };
    assert_eq!(ops(&own), ops(&built_in));
}

/// Two uses that differ in a field differ in that knob alone, whether one of them has the default or not.
#[test]
fn specs_differ_by_the_field_of_a_part() {
    let text = |ffn: &str, block: &str| {
        spec(&format!(
            "parts:\n  unit: |\n    hidden = 2 * d_model\n    act = silu\n    linear(act(linear(x, hidden)), d_model)\n\
             decoder: {{layers: 1, attention: {{heads: 2}}, {ffn}, block: '{block}'}}\n"
        ))
    };
    let in_ffn = "x + attention(x) + ffn(norm(x))";
    let called = "x + attention(x) + unit(norm(x))";
    let rows: [(&str, &str, &str, &[&str]); 4] = [
        ("ffn: unit", "ffn: {unit: {hidden: 24}}", in_ffn, &["decoder.ffn.unit.hidden"]),
        ("ffn: unit", "ffn: {unit: {hidden: 16}}", in_ffn, &[]),
        ("ffn: {unit: {act: relu}}", "ffn: {unit: {act: gelu}}", in_ffn, &["decoder.ffn.unit.act"]),
        ("unit: {hidden: 4}", "unit: {hidden: 24}", called, &["decoder.unit.hidden"]),
    ];
    for (one, other, block, expected) in rows {
        let [one, other] = [one, other].map(|ffn| sound(&text(ffn, block)).compilation.spec.unwrap());
        let wirings = Wirings::default();
        let forms = wirings.comparable(&[&one, &other]);
        let found: Vec<String> = knobs(&forms).into_iter().map(|knob| knob.path).collect();
        assert_eq!(found, expected, "{one:?}\n{other:?}");
    }
}

/// Parts take part in merging as the built-in ones do: naming another part replaces the fields of the first.
#[test]
fn a_part_replaces_another_when_specs_are_merged() {
    let base = spec(
        "parts: {unit: 'linear(x, d_model)', other: \"n = 2\\nn * x\"}\n\
         decoder: {layers: 2, attention: {heads: 2}, ffn: {other: {n: 3}}, blocks: {a: {ffn: unit}, b: {ffn: {other: {n: 4}}}, \
         c: {ffn: {glu: {hidden: 8}}}, d: {}}, pattern: [a, b, c, d]}\n",
    )
    .replace("layers: 2", "layers: 4");
    let graph = sound(&base).compilation.graph.unwrap();
    let names: Vec<&str> =
        graph.modules.iter().filter_map(|m| Some(m.part.as_ref()?.title.as_str())).collect();
    for title in ["unit", "other", "Gated feed-forward"] {
        assert!(names.contains(&title), "{names:?}");
    }
}

/// Every part of the library has a name that the language has not already, and can be used as it is.
#[test]
fn the_library_can_be_used() {
    for part in library::all() {
        let name = &part.name;
        assert!(!is_word(name) && vocabulary::word(name).is_none(), "{name} is a word of the language");
        // What has no default are numbers of heads.
        let required = part.fields.iter().filter(|field| matches!(field.default, OwnDefault::Required));
        let given: Vec<String> = required.map(|field| format!("{}: 2", field.name)).collect();
        let given = given.join(", ");
        sound(&spec(&format!(
            "decoder: {{layers: 1, position: rotary, attention: {{heads: 2}}, {name}: {{{given}}}, block: x = x + attention(x) + {name}(x)}}\n"
        )));
    }
    // Each fits into the slot that `explain` names.
    for (text, slot) in library::TEXTS {
        for part in text.split("\npart ").skip(1) {
            let name = part.split('(').next().unwrap();
            let known = library::all().iter().find(|known| known.name == name).unwrap();
            let required = known.fields.iter().filter(|field| matches!(field.default, OwnDefault::Required));
            let given: Vec<String> = required.map(|field| format!("{}: 2", field.name)).collect();
            let given = given.join(", ");
            let others = if slot == "ffn" { "attention: {heads: 2}, " } else { "" };
            let position = if part.contains("rotate(") { "position: rotary, " } else { "" };
            sound(&spec(&format!(
                "decoder: {{layers: 1, {position}{others}{slot}: {{{name}: {{{given}}}}}}}\n"
            )));
        }
    }
    let count = library::LIBRARY.lines().filter(|line| line.starts_with("part ")).count();
    assert_eq!(library::all().len(), count);
}

/// A part of the library is in the spec that uses it, and only that one; a spec's own has its name first.
#[test]
fn a_spec_keeps_what_it_uses() {
    let names = |rest: &str| {
        let front =
            sound(&spec(&format!("{rest}decoder: {{layers: 1, attention: {{heads: 2}}, ffn: swiglu}}\n")));
        let spec = front.compilation.spec.unwrap();
        spec.parts.all.iter().map(|part| part.lines().join("\n")).collect::<Vec<_>>()
    };
    let [shipped] = names("").try_into().unwrap();
    assert!(shipped.starts_with("hidden = multiple_of("), "{shipped}");
    assert_eq!(names("parts: {swiglu: gain(x)}\n"), ["gain(x)"]);
}

/// Powers of fields and sizes have the same value as the numbers written out, wherever a number is allowed.
#[test]
fn powers_of_names_are_numbers() {
    let ops = |lines: &[&str]| {
        let text = lines.join("\n    ");
        let of_layer = "attention: {heads: 2}, norm: rms_norm, ffn: f, block: \"x + half^2 * ffn(norm(x)) + attention(x)\"";
        let front = sound(&spec(&format!(
            "let: {{half: 0.5}}\nparts:\n  f: |\n    {text}\ndecoder: {{layers: 1, {of_layer}}}\n"
        )));
        let graph = front.compilation.graph.unwrap();
        let of_module = |module: &Module| {
            module.nodes.iter().map(|node| node.op.meaning().text(module)).collect::<Vec<_>>()
        };
        let texts: Vec<String> = graph.modules.iter().flat_map(of_module).collect();
        (texts, total_elements(&graph))
    };
    let powers = [
        "n = 3",
        "m = n^2 - (n - 1)^2",
        "y = linear(tanh(linear(x, m^2) * n^2), d_model) / n^2^-1",
        "softcap(y / d_model^2 - y * (n^2) * (d_model / n)^-2, max(n^2, 4)) * sqrt(n + 6)^2 - n^2",
    ];
    let numbers = [
        "y = linear(tanh(linear(x, 25) * 9), d_model) / 3^0.5",
        "softcap(y / 64 - y * 9 * (9/64), 9) * 9 - 9",
    ];
    assert_eq!(ops(&powers), ops(&numbers));
}

/// What emitted code says of a size is said of sizes of the language, not of fields that have their names by chance.
#[test]
fn a_field_of_a_part_is_no_size_of_an_image() {
    let lines = [
        "channels = 4",
        "classes = 3",
        "groups = 2",
        "y = relu(linear(x, channels * groups))",
        "linear(linear(y, channels * classes), d_model)",
    ];
    let part = lines.join("\n    ");
    let stack = "decoder: {layers: 1, attention: {heads: 2}, ffn: f}";
    let front = sound(&spec(&format!("parts:\n  f: |\n    {part}\n{stack}\n")));
    let graph = front.compilation.graph.unwrap();
    let rust = rust::source(&graph, &front.sources, "spec.yaml", Form::Kernels).unwrap();
    let python = pytorch::source(&graph, &front.sources, "spec.yaml").unwrap();
    // A reader of the file alone has to know what a mask has where.
    assert!(rust.contains("//! Masks have 1 for tokens and 0 for padding"), "{rust}");
    for emitted in [rust, python] {
        assert!(emitted.contains("GROUPS") || emitted.contains("groups"), "{emitted}");
        for wrong in ["Colour", "Classes.", "Groups of experts."] {
            assert!(!emitted.contains(wrong), "{wrong}: {emitted}");
        }
        // The first line names no command, which would lack the options that were given.
        assert!(
            emitted.lines().next().is_some_and(|line| line.ends_with("edit the spec and build again.")),
            "{emitted}"
        );
    }
}

/// What a part is counted as is the slot it is in, whatever it computes.
#[test]
fn a_part_counts_as_what_it_stands_for() {
    let front = sound(&spec(
        "parts: {mine: \"linear(gelu(x), d_model)\"}\n\
         decoder: {layers: 3, attention: mine, ffn: {hidden: 16}, ranges: {\"2\": {ffn: mine}}}\n",
    ));
    let graph = front.compilation.graph.unwrap();
    let parameters = cost(&graph).parameters;
    let of_mine = 8 * 8 + 8;
    assert_eq!(parameters.of(Role::Attention).total, 3 * of_mine);
    assert_eq!(parameters.of(Role::Ffn).total, 2 * (2 * 8 * 16 + 16 + 8) + of_mine);
}
