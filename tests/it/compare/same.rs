//! What is written otherwise and is no difference.

use super::compared;
use crate::front::Front;

/// What is written otherwise but makes the same model is no difference, and the last norm is compared with the last norm.
#[test]
fn what_is_the_same_is_no_difference() {
    let spec = |norm: &str, decoder: &str| {
        let text = format!(
            "name: m\nvocab: 8\ncontext: 16\nd_model: 16\nnorm: {norm}\ndecoder: {{layers: 2, {decoder}}}\nhead: lm\n"
        );
        let front = Front::of_text("m.yaml", &text, ".");
        assert!(front.compilation.graph.is_some(), "{}", front.rendered());
        front
    };
    let differences = |first: (&str, &str), second: (&str, &str)| -> Vec<String> {
        let knobs = compared(&["a", "b"], &[spec(first.0, first.1), spec(second.0, second.1)]).knobs;
        knobs.into_iter().map(|turned| format!("{}: {}", turned.knob.path, turned.alone())).collect()
    };
    let masked = |mask: &str| format!("attention: {{heads: 2, mask: {mask}}}");
    let window = masked("{window: 8}");
    for (first, second) in [
        ("attention: {heads: 2}", masked("causal").as_str()),
        (&window, &masked("[causal, {window: 8}]")),
        (&masked("[{chunk: 4}, {window: 2}]"), &masked("[{window: 2}, {chunk: 4}]")),
    ] {
        assert_eq!(differences(("rms_norm", first), ("rms_norm", second)), [""; 0], "{first}, {second}");
    }
    let found = differences(("rms_norm", &window), ("rms_norm", &masked("[bidirectional, {window: 7}]")));
    assert_eq!(found.len(), 1, "{found:?}");
    // Without the 4 biases of layer norms in the blocks.
    let heads = "attention: {heads: 2}";
    let last = format!("{heads}, final_norm: rms_norm");
    assert_eq!(
        differences(("layer_norm", &last), ("rms_norm", heads)),
        ["decoder.norm: params −64", "decoder.norm.eps: "]
    );
    assert_eq!(
        differences(("rms_norm", heads), ("layer_norm", &last)),
        ["decoder.norm: params +64", "decoder.norm.eps: "]
    );
    let own = differences(
        ("rms_norm", &format!("{heads}, ffn: swiglu")),
        ("rms_norm", &format!("{heads}, ffn: glu")),
    );
    assert!(own.iter().all(|line| !line.contains("parts")), "{own:?}");
}
