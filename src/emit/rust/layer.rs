//! Layers: the type of their field, the expression that creates them and the one that applies them.

use super::code::{Code, Helper, Item, code};
use super::file::File;
use super::linear_init::LinearInit;
use super::name;
use crate::emit::program::constants::{Fresh, Kind};
use crate::ir::op::Activation;
use crate::ir::{Extent, Init, Layer};
use crate::lower::Bug;

fn no_parameters() -> Bug {
    Bug("a layer without parameters is a field of the emitted program".to_owned())
}

/// The type of a layer's field.
///
/// # Errors
/// A fault of trafoc: the layer has no parameters.
pub fn field_type(layer: &Layer) -> Result<Code, Bug> {
    Ok(match layer {
        Layer::Linear { .. } => "nn::Linear".into(),
        Layer::Embedding { .. } => "nn::Embedding".into(),
        Layer::LayerNorm { affine: true, unit_offset: false, .. } => "nn::LayerNorm".into(),
        Layer::RmsNorm { affine: true, unit_offset: false, .. } => "nn::RmsNorm".into(),
        Layer::LayerNorm { affine: true, .. } => Code::kernel("OffsetLayerNorm"),
        Layer::RmsNorm { affine: true, .. } => Code::kernel("OffsetRmsNorm"),
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => return Err(no_parameters()),
        Layer::Patches { .. } => "nn::conv::Conv2d".into(),
        Layer::Param { shape, .. } => {
            code![Code::import("burn::module::Param"), format!("<Tensor<{}>>", shape.len())]
        }
    })
}

/// The expression that creates a layer with fresh weights.
///
/// # Errors
/// A fault of trafoc: the layer has no parameters.
pub fn build(layer: &Layer, file: &File) -> Result<Code, Bug> {
    let size = |size: &Extent| file.extent(*size);
    let eps = |eps: &f64| file.scalar(&file.program.constants.scalar(Kind::Eps, *eps));
    Ok(match layer {
        Layer::Linear { input, output, bias, init, bias_init } => {
            linear(*input, *output, bias.then_some(bias_init), init, file)
        }
        // A struct and not its config, whose initializers know neither a cut nor a row of zeros.
        Layer::Embedding { rows, dim, padding, init, .. } => {
            // The fans are those of torch for a tensor `[rows, dim]`, whose inputs are the columns.
            let weight = param(init, &[size(rows), size(dim)], (*dim, *rows), file);
            let weight = match padding {
                Some(row) => code![Code::kernel("zero_row"), "(", weight, format!(", {row})")],
                None => weight,
            };
            code!["nn::Embedding { weight: ", weight, " }"]
        }
        Layer::LayerNorm { dim, eps: e, affine: true, bias, unit_offset: true } => {
            let norm = Code::kernel("OffsetLayerNorm");
            code![norm, "::new(", size(dim), format!(", {bias}, "), eps(e), ", device)"]
        }
        Layer::LayerNorm { dim, eps: e, affine: true, bias, unit_offset: false } => {
            let bias = if *bias { "" } else { ".with_bias(false)" };
            code![
                "nn::LayerNormConfig::new(",
                size(dim),
                ").with_epsilon(",
                eps(e),
                ")",
                bias,
                ".init(device)"
            ]
        }
        Layer::RmsNorm { dim, eps: e, affine: true, unit_offset: true } => {
            code![Code::kernel("OffsetRmsNorm"), "::new(", size(dim), ", ", eps(e), ", device)"]
        }
        Layer::RmsNorm { dim, eps: e, affine: true, unit_offset: false } => {
            code!["nn::RmsNormConfig::new(", size(dim), ").with_epsilon(", eps(e), ").init(device)"]
        }
        Layer::LayerNorm { affine: false, .. } | Layer::RmsNorm { affine: false, .. } => {
            return Err(no_parameters());
        }
        Layer::Patches { channels, dim, size: side, bias, init, bias_init } => {
            // Only the strides are taken from `config`: burn draws weights when they are first used, so those
            // of the layer that is taken apart cost nothing and leave the random numbers as they are.
            let (from, to, across) = (size(channels), size(dim), size(side));
            let square = code!["[", &across, ", ", &across, "]"];
            let config = code!["nn::conv::Conv2dConfig::new([", &from, ", ", &to, "], ", &square, ")"];
            let config = code![config, ".with_stride(", square, ")"];
            // Every output reads a square of all channels.
            let fans = (*channels * *side * *side, *dim * *side * *side);
            let weight = param(init, &[to.clone(), from, across.clone(), across], fans, file);
            let bias = match bias {
                true => code!["Some(", param(bias_init, &[to], (*dim, *dim), file), ")"],
                false => "None".into(),
            };
            code!["nn::conv::Conv2d { weight: ", weight, ", bias: ", bias, ", ..", config, ".init(device) }"]
        }
        Layer::Param { shape, init, trained } => {
            let sizes: Vec<Code> = shape.iter().map(size).collect();
            // As torch counts the inputs and outputs of a tensor `[out, in, ..]`.
            let fan_out = shape.first().copied().unwrap_or(Extent::from(1));
            let fan_in = match shape.as_slice() {
                [one] => *one,
                all => all.iter().skip(1).fold(Extent::from(1), |all, size| all * *size),
            };
            let created = param(init, &sizes, (fan_in, fan_out), file);
            // A buffer is saved and loaded with the weights, but no optimizer changes it.
            if *trained { created } else { code![created, ".set_require_grad(false)"] }
        }
    })
}

/// The helper of that kind, which creates a projection.
fn helper(kind: Helper) -> Code {
    let name = match kind {
        Helper::Linear => "linear",
        Helper::LinearNoBias => "linear_no_bias",
    };
    Code::item(Item::Helper(kind), name)
}

fn linear(input: Extent, output: Extent, bias: Option<&Init>, init: &Init, file: &File) -> Code {
    let (from, to) = (file.extent(input), file.extent(output));
    // A helper knows no other start of a bias.
    if bias.is_none_or(|init| *init == Init::Zeros) {
        let helper = helper(if bias.is_some() { Helper::Linear } else { Helper::LinearNoBias });
        let start = match (&file.linear_init, init) {
            (LinearInit::Same(_), _) => Some(Code::text("")),
            (LinearInit::Normal, Init::Normal { std })
            | (LinearInit::Truncated(_), Init::TruncatedNormal { std, .. }) => {
                Some(number(Fresh::Std, *std, file).then(", "))
            }
            // burn's `Initializer` has no cut, so the helper cannot be told of it.
            (LinearInit::Any, Init::TruncatedNormal { .. }) => None,
            (LinearInit::Any, any) => Some(initializer(any, file).then(", ")),
            (LinearInit::Normal | LinearInit::Truncated(_), _) => None,
        };
        if let Some(start) = start {
            return code![helper, "(", from, ", ", to, ", ", start, "device)"];
        }
    }
    let fans = (input, output);
    let weight = param(init, &[from, to.clone()], fans, file);
    let bias = match bias {
        // As the interpreter counts them, the inputs and outputs of a bias are its own length.
        Some(init) => code!["Some(", param(init, &[to], (output, output), file), ")"],
        None => "None".into(),
    };
    code!["nn::Linear { weight: ", weight, ", bias: ", bias, " }"]
}

/// A number of the distribution of fresh weights.
fn number(fresh: Fresh, x: f64, file: &File) -> Code {
    file.scalar(&file.program.constants.scalar(Kind::Fresh(fresh), x))
}

/// A `Param` of that shape with fresh values.
fn param(init: &Init, shape: &[Code], (fan_in, fan_out): (Extent, Extent), file: &File) -> Code {
    let shape = Code::list("[", shape.iter().cloned(), "]");
    fresh(init, shape, (file.extent(fan_in), file.extent(fan_out)), file)
}

/// The same for a shape and numbers of inputs and outputs that are code already.
fn fresh(init: &Init, shape: Code, (fan_in, fan_out): (Code, Code), file: &File) -> Code {
    match init {
        // burn's `Initializer` has no normal distribution that is cut off.
        Init::TruncatedNormal { std, cut } => code![
            Code::kernel("truncated_normal"),
            "(",
            shape,
            ", ",
            number(Fresh::Std, *std, file),
            ", ",
            number(Fresh::Cut, *cut, file),
            ", device)"
        ],
        Init::Normal { std } => {
            // The usual distribution, which the kernel names more shortly than an `Initializer`.
            code![Code::kernel("normal"), "(", shape, ", ", number(Fresh::Std, *std, file), ", device)"]
        }
        Init::Logarithms { gain } => {
            code![Code::kernel("logarithms"), "(", shape, ", ", number(Fresh::Gain, *gain, file), ", device)"]
        }
        Init::XavierUniform { .. }
        | Init::XavierNormal { .. }
        | Init::KaimingUniform { .. }
        | Init::KaimingNormal { .. } => {
            let fans = code!["Some(", fan_in, "), Some(", fan_out, ")"];
            code![initializer(init, file), ".init_with(", shape, ", ", fans, ", device)"]
        }
        Init::Zeros | Init::Ones | Init::Constant(_) | Init::Uniform { .. } | Init::Orthogonal { .. } => {
            code![initializer(init, file), ".init(", shape, ", device)"]
        }
    }
}

/// The variant of burn's `Initializer` for a distribution, with its numbers.
fn initializer(init: &Init, file: &File) -> Code {
    let of_gain = |gain: &f64| number(Fresh::Gain, *gain, file);
    let kind: Code = match init {
        Init::Zeros => "Zeros".into(),
        Init::Ones => "Ones".into(),
        Init::Constant(value) => code!["Constant { value: ", number(Fresh::Value, *value, file), " }"],
        // Never drawn by an `Initializer`, which has neither a cut nor numbers in order.
        Init::Normal { std } | Init::TruncatedNormal { std, .. } => {
            code!["Normal { mean: 0.0, std: ", number(Fresh::Std, *std, file), " }"]
        }
        Init::Uniform { bound } => {
            let bound = number(Fresh::Bound, *bound, file);
            code!["Uniform { min: -", &bound, ", max: ", &bound, " }"]
        }
        Init::XavierUniform { gain } => code!["XavierUniform { gain: ", of_gain(gain), " }"],
        Init::XavierNormal { gain } => code!["XavierNormal { gain: ", of_gain(gain), " }"],
        Init::KaimingUniform { gain } => {
            code!["KaimingUniform { gain: ", of_gain(gain), ", fan_out_only: false }"]
        }
        Init::KaimingNormal { gain } => {
            code!["KaimingNormal { gain: ", of_gain(gain), ", fan_out_only: false }"]
        }
        Init::Logarithms { gain } => code!["Constant { value: ", of_gain(gain), " }"],
        Init::Orthogonal { gain } => code!["Orthogonal { gain: ", of_gain(gain), " }"],
    };
    code![initializer_type(), "::", kind]
}

fn initializer_type() -> Code {
    Code::import("burn::nn::Initializer")
}

/// A layer applied to its input, and an activation of its result.
///
/// # Errors
/// A fault of trafoc: the layer takes an input and has none, or has one and takes none.
pub fn apply(
    layer: &Layer,
    then: Option<Activation>,
    member: &str,
    input: Option<Code>,
    file: &File,
) -> Result<Code, Bug> {
    let field = Code::text(format!("self.{}", name::field(member)));
    let eps = |eps: &f64| file.scalar(&file.program.constants.scalar(Kind::Eps, *eps));
    let none = || Code::text("None");
    let input = match (layer, input) {
        (Layer::Param { .. }, None) => return Ok(field.method("val", [])),
        (Layer::Param { .. }, Some(_)) | (_, None) => {
            return Err(Bug(format!("{member} is applied to other inputs than it takes")));
        }
        (_, Some(input)) => input,
    };
    Ok(match layer {
        // burn's own `forward` may multiply sequence by sequence, which keeps a gradient of the weight for
        // each of them.
        Layer::Linear { .. } => {
            let kernel = match then {
                None => "project",
                Some(Activation::Gelu) => "project_gelu",
                Some(Activation::GeluTanh) => "project_gelu_tanh",
                Some(Activation::QuickGelu) => "project_quick_gelu",
                Some(Activation::Silu) => "project_silu",
                Some(Activation::Relu | Activation::Relu2 | Activation::Tanh | Activation::Sigmoid) => {
                    return Err(Bug(format!("{member} is fused with an activation that is no kernel")));
                }
            };
            Code::call(Code::kernel(kernel), [code!["&", field], input])
        }
        Layer::LayerNorm { affine: false, eps: e, .. } => {
            Code::call(Code::kernel("layer_norm_of"), [input, none(), none(), eps(e)])
        }
        Layer::RmsNorm { affine: false, eps: e, .. } => {
            Code::call(Code::kernel("rms_norm_of"), [input, none(), eps(e)])
        }
        Layer::Patches { .. } => Code::call(Code::kernel("patches"), [code!["&", field], input]),
        // On burn's CPU backend the kernels of norms go over the numbers once; burn's own take several
        // operations.
        Layer::LayerNorm { unit_offset: false, eps: e, .. } => {
            Code::call(Code::kernel("layer_norm"), [code!["&", field], input, eps(e)])
        }
        Layer::RmsNorm { unit_offset: false, .. } => {
            Code::call(Code::kernel("rms_norm"), [code!["&", field], input])
        }
        Layer::Embedding { .. } => Code::call(Code::kernel("embed"), [code!["&", field], input]),
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } | Layer::Param { .. } => {
            field.method("forward", [input])
        }
    })
}

/// A norm applied to the sum of two terms: a pair of the norm and the sum.
///
/// # Errors
/// A fault of trafoc: the layer is no norm.
pub fn add_norm(layer: &Layer, member: &str, [x, residual]: [Code; 2], file: &File) -> Result<Code, Bug> {
    let field = Code::text(format!("self.{}", name::field(member)));
    let eps = |eps: &f64| file.scalar(&file.program.constants.scalar(Kind::Eps, *eps));
    let none = || Code::text("None");
    Ok(match layer {
        Layer::LayerNorm { affine: false, eps: e, .. } => {
            Code::call(Code::kernel("add_layer_norm_of"), [x, residual, none(), none(), eps(e)])
        }
        Layer::RmsNorm { affine: false, eps: e, .. } => {
            Code::call(Code::kernel("add_rms_norm_of"), [x, residual, none(), eps(e)])
        }
        Layer::LayerNorm { unit_offset: true, .. } | Layer::RmsNorm { unit_offset: true, .. } => {
            field.method("forward_sum", [x, residual])
        }
        Layer::LayerNorm { eps: e, .. } => {
            Code::call(Code::kernel("add_layer_norm"), [code!["&", field], x, residual, eps(e)])
        }
        Layer::RmsNorm { .. } => Code::call(Code::kernel("add_rms_norm"), [code!["&", field], x, residual]),
        Layer::Linear { .. } | Layer::Embedding { .. } | Layer::Patches { .. } | Layer::Param { .. } => {
            return Err(Bug(format!("{member} is given two terms, and is no norm")));
        }
    })
}

/// The definition of a helper. The one without a bias calls the other one where the file has both.
pub fn definition(kind: Helper, has_both: bool, file: &File) -> Code {
    let name = helper(kind);
    let (parameter, argument): (Code, &str) = match &file.linear_init {
        LinearInit::Same(_) => ("".into(), ""),
        LinearInit::Normal | LinearInit::Truncated(_) => ("std: f64, ".into(), "std, "),
        LinearInit::Any => (code!["initializer: ", initializer_type(), ", "], "initializer, "),
    };
    let signature = code![
        "fn ",
        name,
        "(d_input: usize, d_output: usize, ",
        parameter,
        "device: &Device) -> nn::Linear {\n"
    ];
    if kind == Helper::LinearNoBias && has_both {
        let whole = helper(Helper::Linear);
        return code![
            "/// The same without a bias.\n",
            signature,
            "nn::Linear { bias: None, ..",
            whole,
            format!("(d_input, d_output, {argument}device) }}\n}}\n")
        ];
    }
    let shape = || Code::text("[d_input, d_output]");
    let fans = || (Code::text("d_input"), Code::text("d_output"));
    let (doc, weight) = match &file.linear_init {
        LinearInit::Same(init) => (start(init), fresh(init, shape(), fans(), file)),
        LinearInit::Normal => (
            "a weight drawn from `N(0, std²)`".to_owned(),
            code![Code::kernel("normal"), "(", shape(), ", std, device)"],
        ),
        LinearInit::Truncated(cut) => (
            format!("a weight drawn from `N(0, std²)`, cut at {cut} standard deviations"),
            code![
                Code::kernel("truncated_normal"),
                "(",
                shape(),
                ", std, ",
                number(Fresh::Cut, *cut, file),
                ", device)"
            ],
        ),
        LinearInit::Any => (
            "a weight drawn from `initializer`".to_owned(),
            code!["initializer.init_with(", shape(), ", Some(d_input), Some(d_output), device)"],
        ),
    };
    let (what, bias) = match kind {
        Helper::Linear => {
            let bias = initializer(&Init::Zeros, file);
            ("and a bias of zeros", code!["Some(", bias, ".init([d_output], device))"])
        }
        Helper::LinearNoBias => ("and no bias", "None".into()),
    };
    code![
        format!("/// `y = x W + b` with {doc} {what}.\n"),
        signature,
        "nn::Linear { weight: ",
        weight,
        ", bias: ",
        bias,
        " }\n}\n"
    ]
}

/// The initial values of a weight in words.
fn start(init: &Init) -> String {
    match init {
        Init::Zeros => "a weight of zeros".to_owned(),
        Init::Ones => "a weight of ones".to_owned(),
        Init::Constant(value) => format!("every weight {value:?}"),
        Init::Normal { std } => format!("a weight drawn from `N(0, {std:?}²)`"),
        Init::TruncatedNormal { std, cut } => {
            format!("a weight drawn from `N(0, {std:?}²)`, cut at {cut:?} standard deviations")
        }
        Init::Uniform { bound } => format!("a weight drawn evenly from `±{bound:?}`"),
        Init::XavierUniform { gain } => format!("a weight drawn evenly after Glorot (gain {gain:?})"),
        Init::XavierNormal { gain } => format!("a normal weight after Glorot (gain {gain:?})"),
        Init::KaimingUniform { gain } => format!("a weight drawn evenly after He (gain {gain:?})"),
        Init::KaimingNormal { gain } => format!("a normal weight after He (gain {gain:?})"),
        Init::Logarithms { gain } => format!("the logarithms of 1, 2, ... in every row (gain {gain:?})"),
        Init::Orthogonal { gain } => format!("an orthogonal weight (gain {gain:?})"),
    }
}
