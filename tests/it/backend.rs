//! The device on which numbers are computed, and how far they may be off there.
//!
//! `TRAFOC_TEST_DEVICE=tch cargo test --features tch --test it` computes everything on another backend than
//! flex. The comments give the reason for each bound.

use burn::prelude::*;

/// How far a backend's numbers may be off.
pub struct Bounds {
    /// The name of the backend for `--device`, without an index.
    pub backend: &'static str,
    /// Relative to the largest output of another implementation.
    pub outputs: f32,
    /// Relative to the largest gradient of a parameter in another implementation.
    pub gradients: f32,
    /// Between two ways to compute the same numbers: all at once and cached, fused and composed, in
    /// training and in use.
    pub ways: f32,
    /// Between an expert's outputs for a token when other tokens are sent to it too. Without experts, what
    /// a query does not see changes nothing at all.
    pub experts: f32,
    /// The element types in which the backend always computes; others are tried.
    pub dtypes: &'static [&'static str],
}

/// The devices on which the numbers are tested.
pub const BOUNDS: &[Bounds] = &[
    // In single precision, PyTorch's own outputs differ by 3e-6 from those in double precision.
    Bounds {
        backend: "flex",
        outputs: 1e-5,
        gradients: 1e-4,
        ways: 1e-5,
        experts: 0.0,
        dtypes: &["f32", "bf16", "f16"],
    },
    // These are PyTorch's own kernels. Its matrix products divide rows into blocks according to their
    // number, and the number of an expert's rows is the number of tokens sent to it.
    Bounds {
        backend: "tch",
        outputs: 1e-5,
        gradients: 1e-4,
        ways: 1e-5,
        experts: 1e-6,
        dtypes: &["f32", "bf16", "f16"],
    },
    // Shaders may use fused multiplication, fast division and their own exp, tanh and erf. The kernel for a
    // matrix product is selected by measuring several for each size, and each adds in its own order.
    Bounds { backend: "wgpu", outputs: 1e-4, gradients: 1e-3, ways: 1e-4, experts: 1e-6, dtypes: &["f32"] },
];

/// Devices that need hardware which the machine of `.ci/run` does not have. They are tested by hand.
pub const BY_HAND: &[Bounds] = &[
    // The same kernels as those of wgpu, compiled to SPIR-V.
    Bounds { backend: "vulkan", outputs: 1e-4, gradients: 1e-3, ways: 1e-4, experts: 1e-6, dtypes: &[] },
    // PyTorch's kernels for graphics cards divide long sums among blocks of threads; 1.1e-5 was seen.
    Bounds { backend: "tch-cuda", outputs: 3e-5, gradients: 1e-4, ways: 3e-5, experts: 1e-6, dtypes: &[] },
];

/// The name of the device: `TRAFOC_TEST_DEVICE`, or flex.
pub fn name() -> String {
    std::env::var("TRAFOC_TEST_DEVICE").unwrap_or_else(|_| "flex".to_owned())
}

/// The device that is tested.
pub fn device() -> Device {
    trafoc::interp::device::device(&name()).unwrap_or_else(|e| panic!("{e}")).device
}

/// The bounds of its backend.
pub fn bounds() -> &'static Bounds {
    let name = name();
    let backend = name.split(':').next().unwrap();
    BOUNDS
        .iter()
        .chain(BY_HAND)
        .find(|b| b.backend == backend)
        .unwrap_or_else(|| panic!("no bounds for {name}"))
}
