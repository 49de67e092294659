//! Texts keep to the width of a terminal, without making different things look the same.

use std::collections::BTreeSet;

use super::{TINY, trafoc_in};

fn is_narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn variants_of_a_grid_are_named_by_their_values_where_names_have_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let spec = |grid: &str| {
        std::fs::write(folder.path().join("grid.yaml"), format!("{TINY}sweep:\n{grid}")).unwrap()
    };
    let compared = || trafoc_in(folder.path(), &["compare", "grid.yaml"]).out;
    spec(
        "  grid:\n    d_model: [64, 128]\n    decoder.layers: [2, 4]\n    decoder.attention.heads: [4, 8]\n    \
         decoder.ffn.activation: [gelu, silu]\n",
    );
    let text = compared();
    is_narrow(&text);
    let first = "variants have the values of `d_model`, `layers`, `heads` and `activation` as";
    assert_eq!(text.lines().next(), Some(first), "{text}");
    let rows = |text: &str| -> Vec<String> {
        let table = text.lines().skip_while(|line| !line.starts_with('─')).skip(1);
        let rows = table.take_while(|line| !line.starts_with("FLOPs and"));
        rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let names = rows(&text);
    assert_eq!(names.len(), 17, "{text}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 17, "{names:?}");
    assert!(names.contains(&"64,2,8,silu".to_owned()) && text.contains("  128,4,8,silu"), "{text}");
    // What has room keeps its name, and brackets hold what is in them together.
    spec("  grid:\n    d_model: [64, 128]\n");
    assert_eq!(rows(&compared()), ["tiny", "d_model=64", "d_model=128"]);
    spec(
        "  grid:\n    decoder.norm: [{rms_norm: {eps: 1e-6}}, {layer_norm: {eps: 1e-5}}]\n    \
         decoder.ffn.hidden: [16, 32]\n",
    );
    let text = compared();
    is_narrow(&text);
    assert!(text.starts_with("variants have the values of `norm` and `hidden` as names\n\n"), "{text}");
}

#[cfg(feature = "learn")]
#[test]
fn the_parameters_of_a_tensor_are_below_it_where_there_is_no_room() {
    let line = ["import", "tests/hub/gpt2", "--dry-run"];
    let said = trafoc_in(&crate::compiled::repository(""), &line);
    assert_eq!(said.code, 0, "{}", said.err);
    is_narrow(&said.out);
    assert!(said.out.contains("\n    decoder.blocks.*.attention.query.weight,\n"), "{}", said.out);
    let is_whole =
        |line: &str| line.starts_with("transformer.ln_f.") && line.ends_with(" decoder.final_norm.bias");
    assert!(said.out.lines().any(is_whole), "{}", said.out);
    let agent = trafoc_in(&crate::compiled::repository(""), &[&line[..], &["--format", "agent"]].concat());
    let row =
        "transformer.h.*.mlp.c_fc.weight (3)\tF32 [32, 128]\tdecoder.blocks.*.ffn.up.weight\t(transposed)\n";
    assert!(agent.out.contains(row), "{}", agent.out);
}

#[cfg(feature = "interp")]
#[test]
fn outputs_fit_into_a_terminal() {
    let line = ["run", "tests/hub/gpt2", "--inputs", "{\"tokens\": [[1, 2, 3]]}"];
    let said = trafoc_in(&crate::compiled::repository(""), &line);
    assert_eq!(said.code, 0, "{}", said.err);
    is_narrow(&said.out);
    assert!(said.out.contains("\n    ") && said.out.contains(", ...\n"), "{}", said.out);
}
