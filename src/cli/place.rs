//! Arguments for the device and the element type, shared by the commands that run a model.

use clap::Args;

use super::setting::DEVICE;

/// The device and its element type.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The device: flex, cuda:0, auto, ...; `trafoc doctor` lists them
    #[arg(long, value_name = "DEVICE", env = DEVICE.variable, hide_env_values = true)]
    pub device: Option<String>,
    /// Compute in f32, bf16 or f16; norms and softmax are always in f32
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

/// The type of the weights in memory.
#[derive(Debug, Args)]
pub struct WeightsArgs {
    /// Keep the matrices of linear layers and of the logits in memory as f32, bf16, int8 or int4, the last
    /// two with a scale for every 32 numbers. Everything else is computed in f32. Needs flex
    #[arg(long, value_name = "TYPE", value_enum, default_value_t, hide_possible_values = true)]
    pub weights_dtype: WeightsDtype,
}

/// A type of weights on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WeightsDtype {
    /// Single precision
    #[default]
    F32,
    /// 16 bits with the range of f32
    Bf16,
    /// 8 bits
    Int8,
    /// 4 bits
    Int4,
}

impl WeightsDtype {
    /// The word on the command line, in messages and in JSON: `f32`, `bf16`, `int8` or `int4`.
    pub fn word(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
        }
    }
}
