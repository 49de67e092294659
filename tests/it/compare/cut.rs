//! What a comparison cuts to fit a terminal.

use super::{compared, comparison};
use crate::front::Front;

/// Long names that differ somewhere are cut where they stay different. Those of the variants of a grid become short otherwise.
#[test]
fn names_that_are_cut_stay_different() {
    let mut names = Vec::new();
    let mut fronts = Vec::new();
    for layers in [2, 12] {
        for (heads, activation) in [(2, "gelu"), (4, "gelu"), (4, "relu")] {
            let text = format!(
                "name: grid\nvocab: 8\ncontext: 16\nd_model: 128\ndecoder: {{layers: {layers}, \
                 attention: {{heads: {heads}}}, ffn: {{activation: {activation}}}}}\nhead: lm\n"
            );
            names.push(format!("layers-{layers},heads-{heads},activation-{activation}"));
            fronts.push(Front::of_text("grid.yaml", &text, "specs"));
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = compared(&names, &fronts).text(80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text, @r"
                              parameters  FLOPs/token  KV/token    weights  to train
    ────────────────────────────────────────────────────────────────────────────────
    layers-2,heads-2,ac…gelu     398.8 K      804.9 k  1.00 KiB  779.0 KiB  3.17 MiB
    layers-2,heads-4,ac…gelu     398.8 K      804.9 k  1.00 KiB  779.0 KiB  3.17 MiB
    layers-2,heads-4,ac…relu     398.8 K      804.9 k  1.00 KiB  779.0 KiB  3.17 MiB
    layers-12,heads-2,a…gelu      2.38 M       4.82 M  6.00 KiB   4.54 MiB  18.3 MiB
    layers-12,heads-4,a…gelu      2.38 M       4.82 M  6.00 KiB   4.54 MiB  18.3 MiB
    layers-12,heads-4,a…relu      2.38 M       4.82 M  6.00 KiB   4.54 MiB  18.3 MiB
    FLOPs and memory at B=1, T=16; bytes in bf16

    what differs
                             layers-2,heads-2,…gelu  layers-2,heads-4,…gelu
    ───────────────────────────────────────────────────────────────────────
    decoder.layers           2                       2
    decoder.attention.heads  2                       4
    decoder.ffn.activation   gelu                    gelu

                             layers-2,heads-4,…relu  layers-12,heads-2…gelu
    ───────────────────────────────────────────────────────────────────────
    decoder.layers           2                       12
    decoder.attention.heads  4                       2
    decoder.ffn.activation   relu                    gelu

                             layers-12,heads-4…gelu  layers-12,heads-4…relu
    ───────────────────────────────────────────────────────────────────────
    decoder.layers           12                      12
    decoder.attention.heads  4                       4
    decoder.ffn.activation   gelu                    relu
    ");
}

/// The effect of a difference that is wider than the page breaks between its costs.
#[test]
fn wide_effects_take_several_lines() {
    let text = comparison(&["deepseek-v3-tiny", "gemma2-2b"]).text(80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        text.contains("FLOPs/token +2.93 M,\n") && text.contains("   KV/token 144 → 1,248 B\n"),
        "{text}"
    );
}
