//! The text of this crate, which `trafoc build --crate` writes next to a model.

macro_rules! files {
    ($($path:literal: $place:literal),* $(,)?) => { &[$(($path, include_str!($place))),*] };
}

/// Every file by its path in the crate.
pub const FILES: &[(&str, &str)] = files![
    "Cargo.toml": "../Cargo.toml",
    "src/lib.rs": "lib.rs",
    "src/backend.rs": "backend.rs",
    "src/source.rs": "source.rs",
    "src/kernel/additive_weights.rs": "kernel/additive_weights.rs",
    "src/kernel/alibi.rs": "kernel/alibi.rs",
    "src/kernel/append.rs": "kernel/append.rs",
    "src/kernel/attention.rs": "kernel/attention.rs",
    "src/kernel/attention_dropout.rs": "kernel/attention_dropout.rs",
    "src/kernel/attention_weights.rs": "kernel/attention_weights.rs",
    "src/kernel/cache.rs": "kernel/cache.rs",
    "src/kernel/dropout.rs": "kernel/dropout.rs",
    "src/kernel/experts.rs": "kernel/experts.rs",
    "src/kernel/fresh.rs": "kernel/fresh.rs",
    "src/kernel/gelu.rs": "kernel/gelu.rs",
    "src/kernel/heads.rs": "kernel/heads.rs",
    "src/kernel/heap.rs": "kernel/heap.rs",
    "src/kernel/linear.rs": "kernel/linear.rs",
    "src/kernel/load.rs": "kernel/load.rs",
    "src/kernel/masks.rs": "kernel/masks.rs",
    "src/kernel/mod.rs": "kernel/mod.rs",
    "src/kernel/norms.rs": "kernel/norms.rs",
    "src/kernel/offset_norms.rs": "kernel/offset_norms.rs",
    "src/kernel/pool.rs": "kernel/pool.rs",
    "src/kernel/positions.rs": "kernel/positions.rs",
    "src/kernel/prepend.rs": "kernel/prepend.rs",
    "src/kernel/quick_gelu.rs": "kernel/quick_gelu.rs",
    "src/kernel/relative_buckets.rs": "kernel/relative_buckets.rs",
    "src/kernel/rotary.rs": "kernel/rotary.rs",
    "src/kernel/route.rs": "kernel/route.rs",
    "src/kernel/score_weights.rs": "kernel/score_weights.rs",
    "src/kernel/single_precision.rs": "kernel/single_precision.rs",
    "src/kernel/sinusoid.rs": "kernel/sinusoid.rs",
    "src/kernel/unembed.rs": "kernel/unembed.rs",
    "src/reference/attention.rs": "reference/attention.rs",
    "src/reference/gelu.rs": "reference/gelu.rs",
    "src/reference/mod.rs": "reference/mod.rs",
];
