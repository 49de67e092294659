//! Packs the weights of a model for inference, in the type that `--weights-dtype` names.

use crate::cli::outcome::{Exit, Failure};
use crate::cli::place::WeightsDtype;
use crate::cli::ui::Ui;
use crate::interp::pack::{PackError, Packing, WeightType};
use crate::report::number;

/// Packs weights with `pack` in the type that is asked for, and says what that saves.
///
/// # Errors
/// There is no kernel for that type, or it would have no effect.
pub(super) fn pack_as(
    wanted: WeightsDtype,
    ui: &Ui,
    pack: impl FnOnce(WeightType) -> Result<Packing, PackError>,
) -> Result<(), Failure> {
    let Some(of) = fewer_bits(wanted) else { return Ok(()) };
    let word = wanted.word();
    let Packing { matrices, before, after } = pack(of).map_err(|error| match error {
        PackError::Device => {
            let message = format!("only `flex` multiplies with weights in {word}, and only in f32");
            Failure::new(Exit::Device, message)
                .help(format!("leave `--device` and `--dtype` out, or `--weights-dtype {word}`"))
        }
        PackError::Processor => {
            let message = format!(
                "the kernels for weights in {word} need a processor with fused multiply-add, as AVX2 has"
            );
            Failure::new(Exit::Device, message).help("leave `--weights-dtype` out")
        }
        PackError::Nothing => {
            let message = format!(
                "`--weights-dtype {word}` would have no effect: the model has no linear layers and no logits"
            );
            Failure::usage(message)
        }
    })?;
    let more = if after > before { ", which is more: rows are filled up to whole blocks" } else { "" };
    let bytes = |bytes: usize| number::bytes(bytes as u128);
    ui.note(&format!(
        "note: {matrices} matrices in {word} take {} instead of {}{more}; all other weights stay in f32",
        bytes(after),
        bytes(before)
    ));
    Ok(())
}

/// The type of packed weights that this one asks for; none for single precision, which needs no packing.
pub(super) fn fewer_bits(wanted: WeightsDtype) -> Option<WeightType> {
    match wanted {
        WeightsDtype::F32 => None,
        WeightsDtype::Bf16 => Some(WeightType::Bf16),
        WeightsDtype::Int8 => Some(WeightType::Int8),
        WeightsDtype::Int4 => Some(WeightType::Int4),
    }
}
