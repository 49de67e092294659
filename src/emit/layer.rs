//! Layers: the type of their field, the expression that makes them and the one that applies them.

use std::collections::BTreeSet;

use super::code::Code;
use super::constants::{Kind, float};
use super::file::File;
use super::name;
use crate::ir::{Extent, Graph, Init, Layer, MemberKind};

/// How `linear(..)`, the helper at the end of a file, is told where weights start.
#[derive(Clone, Debug, PartialEq)]
pub enum LinearInit {
    /// Every projection starts the same way, which the helper knows.
    Same(Init),
    /// Normal, the standard deviation is an argument.
    Normal,
    /// Truncated normal at that many standard deviations, the standard deviation is an argument.
    Truncated(f64),
    /// An `Initializer` is an argument.
    Any,
}

/// What suits all projections of a graph.
pub fn linear_init(graph: &Graph) -> LinearInit {
    let mut found: Vec<&Init> = Vec::new();
    for member in graph.modules.iter().flat_map(|m| &m.members) {
        if let MemberKind::Layer(Layer::Linear { init, .. }) = &member.kind
            && !found.contains(&init)
        {
            found.push(init);
        }
    }
    let cuts: Vec<f64> = found
        .iter()
        .filter_map(|init| if let Init::TruncatedNormal { cut, .. } = init { Some(*cut) } else { None })
        .collect();
    match found.as_slice() {
        [one] => LinearInit::Same((*one).clone()),
        all if all.iter().all(|init| matches!(init, Init::Normal { .. })) => LinearInit::Normal,
        all => match cuts.split_first() {
            Some((first, rest)) if cuts.len() == all.len() && rest.iter().all(|c| c == first) => {
                LinearInit::Truncated(*first)
            }
            _ => LinearInit::Any,
        },
    }
}

/// The type of a layer's field; none for a norm without parameters.
pub fn field_type(layer: &Layer, file: &File) -> Option<String> {
    Some(match layer {
        Layer::Linear { .. } => file.import_nn("Linear"),
        Layer::Embedding { .. } => file.import_nn("Embedding"),
        Layer::LayerNorm { affine: true, unit_offset: false, .. } => file.import_nn("LayerNorm"),
        Layer::RmsNorm { affine: true, unit_offset: false, .. } => file.import_nn("RmsNorm"),
        Layer::LayerNorm { affine: true, .. } => file.kernel("OffsetLayerNorm"),
        Layer::RmsNorm { affine: true, .. } => file.kernel("OffsetRmsNorm"),
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => return None,
        Layer::Patches { .. } => file.import_nn("conv::Conv2d"),
        Layer::Param { shape, .. } => {
            file.import("burn::module::Param");
            format!("Param<Tensor<{}>>", shape.len())
        }
    })
}

/// The expression that makes a layer with fresh weights.
pub fn build(layer: &Layer, file: &File) -> String {
    let constants = &file.constants;
    let size = |size: &Extent| constants.argument(*size);
    match layer {
        Layer::Linear { input, output, bias, init, bias_init } => {
            let fans = (*input, *output);
            linear(&size(input), &size(output), bias.then_some(bias_init), init, fans, file)
        }
        Layer::Embedding { rows, dim, padding, init, .. } => {
            let weight = param(init, &[size(rows), size(dim)], (*dim, *rows), file);
            let weight = match padding {
                Some(row) => format!("{}({weight}, {row})", file.kernel("zero_row")),
                None => weight,
            };
            format!("{} {{ weight: {weight} }}", file.import_nn("Embedding"))
        }
        Layer::LayerNorm { dim, eps, affine: true, bias, unit_offset } => {
            let (dim, eps) = (size(dim), constants.float(Kind::Eps, *eps));
            if *unit_offset {
                return format!("{}::new({dim}, {bias}, {eps}, device)", file.kernel("OffsetLayerNorm"));
            }
            let bias = if *bias { "" } else { ".with_bias(false)" };
            let config = file.import_nn("LayerNormConfig");
            format!("{config}::new({dim}).with_epsilon({eps}){bias}.init(device)")
        }
        Layer::RmsNorm { dim, eps, affine: true, unit_offset } => {
            let (dim, eps) = (size(dim), constants.float(Kind::Eps, *eps));
            if *unit_offset {
                return format!("{}::new({dim}, {eps}, device)", file.kernel("OffsetRmsNorm"));
            }
            let config = file.import_nn("RmsNormConfig");
            format!("{config}::new({dim}).with_epsilon({eps}).init(device)")
        }
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } => String::new(),
        Layer::Patches { channels, dim, size: side, bias, init, bias_init } => {
            let config = file.import_nn("conv::Conv2dConfig");
            let (from, to, across) = (size(channels), size(dim), size(side));
            let made = format!(
                "{config}::new([{from}, {to}], [{across}, {across}]).with_stride([{across}, {across}])"
            );
            let fans = (*channels * *side * *side, *dim * *side * *side);
            let weight = param(init, &[to.clone(), from, across.clone(), across], fans, file);
            let bias = match bias {
                true => format!("Some({})", param(bias_init, &[to], fans, file)),
                false => "None".to_owned(),
            };
            format!(
                "{} {{ weight: {weight}, bias: {bias}, ..{made}.init(device) }}",
                file.import_nn("conv::Conv2d")
            )
        }
        Layer::Param { shape, init, trained } => {
            let text: Vec<String> = shape.iter().map(size).collect();
            let fan_out = shape.first().copied().unwrap_or(Extent::from(1));
            let fan_in = shape.iter().skip(1).fold(Extent::from(1), |all, size| all * *size);
            let made = param(init, &text, (fan_in, fan_out), file);
            if *trained { made } else { format!("{made}.set_require_grad(false)") }
        }
    }
}

fn linear(
    input: &str,
    output: &str,
    bias: Option<&Init>,
    init: &Init,
    (fan_in, fan_out): (Extent, Extent),
    file: &File,
) -> String {
    if bias.is_none_or(|init| *init == Init::Zeros) {
        let helper = file.helper(if bias.is_some() { "linear" } else { "linear_no_bias" });
        let start = match (&file.linear_init, init) {
            (LinearInit::Same(_), _) => Some(String::new()),
            (LinearInit::Normal, Init::Normal { std })
            | (LinearInit::Truncated(_), Init::TruncatedNormal { std, .. }) => {
                Some(format!("{}, ", file.constants.float(Kind::Std, *std)))
            }
            (LinearInit::Any, Init::TruncatedNormal { .. }) => None,
            (LinearInit::Any, any) => Some(format!("{}, ", initializer(any, file))),
            (LinearInit::Normal | LinearInit::Truncated(_), _) => None,
        };
        if let Some(start) = start {
            return format!("{helper}({input}, {output}, {start}device)");
        }
    }
    let shape = [input.to_owned(), output.to_owned()];
    let weight = param(init, &shape, (fan_in, fan_out), file);
    let bias = match bias {
        Some(init) => format!("Some({})", param(init, &[output.to_owned()], (fan_in, fan_out), file)),
        None => "None".to_owned(),
    };
    format!("{} {{ weight: {weight}, bias: {bias} }}", file.import_nn("Linear"))
}

/// A `Param` of that shape with fresh values.
pub fn param(init: &Init, shape: &[String], (fan_in, fan_out): (Extent, Extent), file: &File) -> String {
    let shape = format!("[{}]", shape.join(", "));
    if let Init::TruncatedNormal { std, cut } = init {
        let std = file.constants.float(Kind::Std, *std);
        return format!("{}({shape}, {std}, {}, device)", file.kernel("truncated_normal"), float(*cut));
    }
    if let Init::Normal { std } = init {
        return format!(
            "{}({shape}, {}, device)",
            file.kernel("normal"),
            file.constants.float(Kind::Std, *std)
        );
    }
    let start = initializer(init, file);
    let uses_fans = match init {
        Init::XavierUniform { .. }
        | Init::XavierNormal { .. }
        | Init::KaimingUniform { .. }
        | Init::KaimingNormal { .. } => true,
        Init::Zeros
        | Init::Ones
        | Init::Constant(_)
        | Init::Normal { .. }
        | Init::TruncatedNormal { .. }
        | Init::Uniform { .. }
        | Init::Orthogonal { .. } => false,
    };
    if uses_fans {
        let (fan_in, fan_out) = (file.constants.argument(fan_in), file.constants.argument(fan_out));
        format!("{start}.init_with({shape}, Some({fan_in}), Some({fan_out}), device)")
    } else {
        format!("{start}.init({shape}, device)")
    }
}

/// burn's `Initializer` of a distribution.
pub fn initializer(init: &Init, file: &File) -> String {
    let name = file.import("burn::nn::Initializer");
    let kind = match init {
        Init::Zeros => "Zeros".to_owned(),
        Init::Ones => "Ones".to_owned(),
        Init::Constant(value) => format!("Constant {{ value: {} }}", float(*value)),
        Init::Normal { std } | Init::TruncatedNormal { std, .. } => {
            format!("Normal {{ mean: 0.0, std: {} }}", file.constants.float(Kind::Std, *std))
        }
        Init::Uniform { bound } => format!("Uniform {{ min: -{0}, max: {0} }}", float(*bound)),
        Init::XavierUniform { gain } => format!("XavierUniform {{ gain: {} }}", float(*gain)),
        Init::XavierNormal { gain } => format!("XavierNormal {{ gain: {} }}", float(*gain)),
        Init::KaimingUniform { gain } => {
            format!("KaimingUniform {{ gain: {}, fan_out_only: false }}", float(*gain))
        }
        Init::KaimingNormal { gain } => {
            format!("KaimingNormal {{ gain: {}, fan_out_only: false }}", float(*gain))
        }
        Init::Orthogonal { gain } => format!("Orthogonal {{ gain: {} }}", float(*gain)),
    };
    format!("{name}::{kind}")
}

/// A layer applied to its input.
pub fn apply(layer: &Layer, member: &str, input: Option<Code>, file: &File) -> Code {
    let field = Code::text(format!("self.{}", name::field(member)));
    let input: Vec<Code> = input.into_iter().collect();
    match layer {
        Layer::Linear { .. } => {
            let layer = Code::text(format!("&self.{}", name::field(member)));
            Code::call(&file.kernel("project"), [layer].into_iter().chain(input))
        }
        Layer::Embedding { .. } => field.method("forward", input),
        Layer::LayerNorm { affine: true, .. } | Layer::RmsNorm { affine: true, .. } => {
            field.method("forward", input)
        }
        Layer::LayerNorm { eps, .. } => {
            let eps = Code::text(file.constants.float(Kind::Eps, *eps));
            let none = || Code::text("None");
            Code::call(&file.kernel("layer_norm_of"), input.into_iter().chain([none(), none(), eps]))
        }
        Layer::RmsNorm { eps, .. } => {
            let eps = Code::text(file.constants.float(Kind::Eps, *eps));
            Code::call(&file.kernel("rms_norm_of"), input.into_iter().chain([Code::text("None"), eps]))
        }
        Layer::Patches { .. } => field
            .method("forward", input)
            .method("flatten::<3>", [Code::text("2"), Code::text("3")])
            .method("swap_dims", [Code::text("1"), Code::text("2")]),
        Layer::Param { .. } => field.method("val", []),
    }
}

/// The text of the `linear` helpers that were asked for.
pub fn helpers(file: &File, wanted: &BTreeSet<String>) -> Vec<String> {
    let with = |bias_wanted: bool| {
        let name = if bias_wanted { "linear" } else { "linear_no_bias" };
        if !wanted.contains(name) {
            return None;
        }
        let linear = file.import_nn("Linear");
        let (arg, doc, weight) = match &file.linear_init {
            LinearInit::Same(init) => (String::new(), doc(init), start(init, file)),
            LinearInit::Normal => (
                "std: f64, ".to_owned(),
                "a weight drawn from `N(0, std²)`".to_owned(),
                format!("{}([d_input, d_output], std, device)", file.kernel("normal")),
            ),
            LinearInit::Truncated(cut) => (
                "std: f64, ".to_owned(),
                format!("a weight drawn from `N(0, std²)`, cut at {cut} standard deviations"),
                format!(
                    "{}([d_input, d_output], std, {}, device)",
                    file.kernel("truncated_normal"),
                    float(*cut)
                ),
            ),
            LinearInit::Any => (
                format!("initializer: {}, ", file.import("burn::nn::Initializer")),
                "a weight drawn from `initializer`".to_owned(),
                "initializer.init_with([d_input, d_output], Some(d_input), Some(d_output), device)"
                    .to_owned(),
            ),
        };
        let (what, bias) = if bias_wanted {
            let zeros = format!("{}::Zeros", file.import("burn::nn::Initializer"));
            ("and a bias of zeros", format!("Some({zeros}.init([d_output], device))"))
        } else {
            ("and no bias", "None".to_owned())
        };
        if !bias_wanted && wanted.contains("linear") {
            let start = match &file.linear_init {
                LinearInit::Same(_) => "",
                LinearInit::Normal | LinearInit::Truncated(_) => "std, ",
                LinearInit::Any => "initializer, ",
            };
            return Some(format!(
                "/// The same without a bias.\n\
                 fn {name}(d_input: usize, d_output: usize, {arg}device: &Device) -> {linear} {{\n\
                 {linear} {{ bias: None, ..linear(d_input, d_output, {start}device) }}\n}}"
            ));
        }
        Some(format!(
            "/// `y = x W + b` with {doc} {what}.\n\
             fn {name}(d_input: usize, d_output: usize, {arg}device: &Device) -> {linear} {{\n\
             {linear} {{ weight: {weight}, bias: {bias} }}\n}}"
        ))
    };
    [true, false].into_iter().filter_map(with).collect()
}

fn start(init: &Init, file: &File) -> String {
    let shape = "[d_input, d_output]";
    match init {
        Init::TruncatedNormal { std, cut } => {
            let std = file.constants.float(Kind::Std, *std);
            format!("{}({shape}, {std}, {}, device)", file.kernel("truncated_normal"), float(*cut))
        }
        Init::XavierUniform { .. }
        | Init::XavierNormal { .. }
        | Init::KaimingUniform { .. }
        | Init::KaimingNormal { .. } => {
            format!("{}.init_with({shape}, Some(d_input), Some(d_output), device)", initializer(init, file))
        }
        Init::Normal { std } => {
            format!("{}({shape}, {}, device)", file.kernel("normal"), file.constants.float(Kind::Std, *std))
        }
        Init::Zeros | Init::Ones | Init::Constant(_) | Init::Uniform { .. } | Init::Orthogonal { .. } => {
            format!("{}.init({shape}, device)", initializer(init, file))
        }
    }
}

fn doc(init: &Init) -> String {
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
        Init::Orthogonal { gain } => format!("an orthogonal weight (gain {gain:?})"),
    }
}
