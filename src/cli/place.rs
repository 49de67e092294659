//! Arguments for the device and the element type, shared by the commands that run a model.

use clap::Args;

/// The device and its element type.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = "TRAFOC_DEVICE", hide_env_values = true)]
    pub device: Option<String>,
    /// Compute in f32, bf16 or f16; norms and softmax always in f32
    #[arg(long, value_name = "TYPE", value_enum, default_value_t, hide_possible_values = true)]
    pub dtype: Dtype,
}

/// An element type on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Dtype {
    /// Single precision
    #[default]
    F32,
    /// 16 bits with the range of f32
    Bf16,
    /// 16 bits, IEEE half precision
    F16,
}
