//! The device that numbers are computed on, and how far they may be off there.
//!
//! `TRAFOC_TEST_DEVICE=tch cargo test --features tch --test it` computes everything on another backend
//! than flex. What has a bound here has it for a reason.

use burn::prelude::*;

/// How far a backend's numbers may be off.
pub struct Bounds {
    /// What `--device` calls it, without a number.
    pub backend: &'static str,
    /// From another implementation's outputs, relative to the largest.
    pub outputs: f32,
    /// From another implementation's gradients, relative to the largest of a parameter.
    pub gradients: f32,
    /// Between two ways to the same numbers: whole and cached, fused and composed, trained and used.
    pub ways: f32,
    /// Between an expert's outputs for a token when other tokens choose it too. Where there are no experts, what
    /// a query does not see changes nothing at all.
    pub experts: f32,
    /// The element types it computes models in wherever it runs; others are asked for.
    pub dtypes: &'static [&'static str],
}

/// The devices that the numbers are held to.
pub const BOUNDS: &[Bounds] = &[
    // PyTorch itself in single precision is off by 3e-6 from double precision, in outputs.
    Bounds {
        backend: "flex",
        outputs: 1e-5,
        gradients: 1e-4,
        ways: 1e-5,
        experts: 0.0,
        dtypes: &["f32", "bf16", "f16"],
    },
    // PyTorch's own kernels; its matrix products block rows by how many there are, and an expert is given as
    // many as chose it.
    Bounds {
        backend: "tch",
        outputs: 1e-5,
        gradients: 1e-4,
        ways: 1e-5,
        experts: 1e-6,
        dtypes: &["f32", "bf16", "f16"],
    },
    // Shaders may use fused multiplication, fast division and their own exp, tanh and erf. Which of several kernels
    // multiplies matrices is found by trying them, for each size anew, and each adds up in an order of its own.
    Bounds { backend: "wgpu", outputs: 1e-4, gradients: 1e-3, ways: 1e-4, experts: 1e-6, dtypes: &["f32"] },
];

/// The name of the device: `TRAFOC_TEST_DEVICE`, or flex.
pub fn name() -> String {
    std::env::var("TRAFOC_TEST_DEVICE").unwrap_or_else(|_| "flex".to_owned())
}

/// The device.
pub fn device() -> Device {
    trafoc::interp::device::device(&name()).unwrap_or_else(|e| panic!("{e}")).device
}

/// Its bounds.
pub fn bounds() -> &'static Bounds {
    let name = name();
    let backend = name.split(':').next().unwrap();
    BOUNDS.iter().find(|b| b.backend == backend).unwrap_or_else(|| panic!("no bounds for {name}"))
}
