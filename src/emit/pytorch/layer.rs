//! Layers: the expression that creates them, how their fresh weights are drawn, and the one that applies
//! them.

use super::file::File;
use super::name;
use super::syntax::{Expr, Sign};
use crate::emit::program::constants::{Fresh, Kind};
use crate::ir::{Extent, Init, Layer};
use crate::lower::Bug;

fn no_parameters() -> Bug {
    Bug("a layer without parameters is a field of the emitted program".to_owned())
}

/// A member of a module that `of` refers to: an attribute, or by its name where that cannot be one.
pub fn member(of: Expr, called: &str) -> Expr {
    if name::is_attribute(called) {
        of.attr(called)
    } else {
        // A member may be called like a method of `nn.Module`, which an attribute would hide.
        Expr::Runtime("member").call([of, Expr::Str(called.to_owned())])
    }
}

/// The place where a constructor registers a member under its name.
pub fn target(called: &str, registry: &str) -> Expr {
    if name::is_attribute(called) {
        Expr::own(called)
    } else {
        Expr::own(registry).index([Expr::Str(called.to_owned())])
    }
}

/// The expression that creates a layer. `init` gives the expression of a distribution.
///
/// # Errors
/// A fault of trafoc: the layer has no parameters.
pub fn build(layer: &Layer, file: &File<'_>, init: &dyn Fn(&Init, Axes) -> Expr) -> Result<Expr, Bug> {
    let size = |size: &Extent| file.extent(*size);
    let eps = |eps: &f64| file.scalar(&file.program.constants.scalar(Kind::Eps, *eps));
    let biased = |call: Expr, bias: bool, start: &Init, n: &Extent| match (bias, start) {
        (false, _) => call.with("bias", Expr::Bool(false)),
        // Zeros are the default of the runtime's class.
        (true, Init::Zeros) => call,
        (true, other) => call.with("bias_init", init(other, Axes::one(other, *n))),
    };
    Ok(match layer {
        Layer::Linear { input, output, bias, init: start, bias_init } => {
            let sizes = [size(input), size(output), init(start, Axes::of(2))];
            match (*bias, bias_init) {
                (true, Init::Zeros) => Expr::Runtime("Linear").call(sizes),
                // The bias of `Linear` starts at zero.
                (true, other) => Expr::Runtime("BiasedLinear")
                    .call(sizes.into_iter().chain([init(other, Axes::one(other, *output))])),
                (false, _) => Expr::Runtime("Linear").call(sizes).with("bias", Expr::Bool(false)),
            }
        }
        Layer::Embedding { rows, dim, padding: None, init: start, .. } => {
            Expr::Runtime("Table").call([size(rows), size(dim), init(start, Axes::of(2))])
        }
        Layer::Embedding { rows, dim, padding: Some(row), init: start, .. } => {
            let call = Expr::Runtime("PaddedTable").call([size(rows), size(dim), init(start, Axes::of(2))]);
            call.with("padding", Expr::Int(*row))
        }
        Layer::LayerNorm { dim, eps: e, affine: true, bias, unit_offset } => {
            let norm = if *unit_offset { Expr::Runtime("OffsetLayerNorm") } else { Expr::nn("LayerNorm") };
            let call = norm.call([size(dim), eps(e)]);
            if *bias { call } else { call.with("bias", Expr::Bool(false)) }
        }
        Layer::RmsNorm { dim, eps: e, affine: true, unit_offset } => {
            let norm = if *unit_offset { Expr::Runtime("OffsetRMSNorm") } else { Expr::nn("RMSNorm") };
            norm.call([size(dim), eps(e)])
        }
        Layer::LayerNorm { affine: false, .. } | Layer::RmsNorm { affine: false, .. } => {
            return Err(no_parameters());
        }
        Layer::Patches { channels, dim, size: side, bias, init: start, bias_init } => {
            let call = Expr::Runtime("Patches").call([
                size(channels),
                size(dim),
                size(side),
                init(start, Axes::of(4)),
            ]);
            biased(call, *bias, bias_init, dim)
        }
        // Only memory: `reset_parameters` fills it, also after `to_empty`.
        Layer::Param { shape, .. } => Expr::torch("empty").call(shape.iter().map(size)),
    })
}

/// The axes of a tensor that a distribution fills, as far as the call that fills it depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The number of axes.
    pub count: usize,
    /// The length of a tensor with one axis, where the distribution depends on it.
    pub width: Option<u64>,
}

impl Axes {
    fn of(count: usize) -> Self {
        Self { count, width: None }
    }

    fn one(init: &Init, length: Extent) -> Self {
        Self { count: 1, width: init.has_fans().then_some(length.get()) }
    }
}

/// The distributions of a layer's fresh weights, each with the axes that it fills. Those of norms are torch's
/// own.
pub fn inits(layer: &Layer) -> Vec<(&Init, Axes)> {
    match layer {
        Layer::Linear { bias, init, bias_init, output, .. } => with_bias((init, 2), *bias, bias_init, output),
        Layer::Patches { bias, init, bias_init, dim, .. } => with_bias((init, 4), *bias, bias_init, dim),
        Layer::Embedding { init, .. } => vec![(init, Axes::of(2))],
        Layer::LayerNorm { .. } | Layer::RmsNorm { .. } | Layer::Param { .. } => Vec::new(),
    }
}

/// The distributions of a weight with that number of axes, and of its bias of length `n` if it has one that does
/// not start at zero.
fn with_bias<'a>(
    weight: (&'a Init, usize),
    bias: bool,
    start: &'a Init,
    n: &Extent,
) -> Vec<(&'a Init, Axes)> {
    let start = (bias && *start != Init::Zeros).then_some((start, Axes::one(start, *n)));
    std::iter::once((weight.0, Axes::of(weight.1))).chain(start).collect()
}

/// How a tensor is filled: the function, and its arguments after the tensor. `width` is the length of a
/// tensor with one axis, which counts as both of its fans.
fn fill(init: &Init, file: &File<'_>, width: Option<u64>) -> (Expr, Vec<(&'static str, Expr)>) {
    let nn_init = |name: &str| Expr::nn("init").attr(name);
    let number = Expr::Float;
    let named = |fresh: Fresh, x: &f64| file.scalar(&file.program.constants.scalar(Kind::Fresh(fresh), *x));
    let gain = |gain: &f64| vec![("gain", named(Fresh::Gain, gain))];
    let between = |bound: Expr| {
        let least = Expr::Minus(Box::new(bound.clone()));
        (nn_init("uniform_"), vec![("a", least), ("b", bound)])
    };
    let uniform = |bound: f64| (nn_init("uniform_"), vec![("a", number(-bound)), ("b", number(bound))]);
    let normal = |std: f64| (nn_init("normal_"), vec![("std", number(std))]);
    // torch refuses to compute the fans of a tensor with one axis (`nn.init` raises), so the bound or
    // deviation of such a tensor is computed here, with its width for both fans. Kaiming's functions of torch
    // take the slope of a leaky ReLU in place of a gain, so the runtime has its own.
    let fan = width.map(|n| n as f64);
    match (init, fan) {
        (Init::Zeros, _) => (nn_init("zeros_"), Vec::new()),
        (Init::Ones, _) => (nn_init("ones_"), Vec::new()),
        (Init::Constant(c), _) => (nn_init("constant_"), vec![("val", named(Fresh::Value, c))]),
        (Init::Normal { std: s }, _) => (nn_init("normal_"), vec![("std", named(Fresh::Std, s))]),
        (Init::TruncatedNormal { std: s, cut }, _) => (
            Expr::Runtime("truncated_normal_"),
            vec![("std", named(Fresh::Std, s)), ("cut", named(Fresh::Cut, cut))],
        ),
        (Init::Uniform { bound }, _) => between(named(Fresh::Bound, bound)),
        (Init::XavierUniform { gain }, Some(n)) => uniform(gain * (3.0 / n).sqrt()),
        (Init::XavierNormal { gain }, Some(n)) => normal(gain / n.sqrt()),
        (Init::KaimingUniform { gain }, Some(n)) => uniform(gain * (3.0 / n).sqrt()),
        (Init::KaimingNormal { gain }, Some(n)) => normal(gain / n.sqrt()),
        (Init::XavierUniform { gain: by }, None) => (nn_init("xavier_uniform_"), gain(by)),
        (Init::XavierNormal { gain: by }, None) => (nn_init("xavier_normal_"), gain(by)),
        (Init::KaimingUniform { gain: by }, None) => (Expr::Runtime("kaiming_uniform_"), gain(by)),
        (Init::KaimingNormal { gain: by }, None) => (Expr::Runtime("kaiming_normal_"), gain(by)),
        (Init::Logarithms { gain: by }, _) => (Expr::Runtime("logarithms_"), gain(by)),
        (Init::Orthogonal { gain: by }, _) => (Expr::Runtime("orthogonal_"), gain(by)),
    }
}

/// A function that fills a tensor: `partial(nn.init.normal_, std=config.init_std)`.
pub fn filler(init: &Init, file: &File<'_>, width: Option<u64>) -> Expr {
    let (function, arguments) = fill(init, file, width);
    if arguments.is_empty() {
        return function;
    }
    let call = Expr::Import("partial").call([function]);
    arguments.into_iter().fold(call, |call, (name, value)| call.with(name, value))
}

/// The call that fills a tensor.
pub fn filled(init: &Init, tensor: Expr, file: &File<'_>, width: Option<u64>) -> Expr {
    let (function, arguments) = fill(init, file, width);
    arguments.into_iter().fold(function.call([tensor]), |call, (name, value)| call.with(name, value))
}

/// A layer applied to its input.
///
/// # Errors
/// A fault of trafoc: the layer takes an input and has none, or has one and takes none.
pub fn apply(layer: &Layer, called: &str, input: Option<Expr>, file: &File<'_>) -> Result<Expr, Bug> {
    let field = member(Expr::from("self"), called);
    let eps = |eps: &f64| file.scalar(&file.program.constants.scalar(Kind::Eps, *eps));
    let input = match (layer, input) {
        (Layer::Param { .. }, None) => return Ok(field),
        (Layer::Param { .. }, Some(_)) | (_, None) => {
            return Err(Bug(format!("{called} is applied to other inputs than it takes")));
        }
        (_, Some(input)) => input,
    };
    let width = |dim: &Extent| Expr::Tuple(vec![file.extent(*dim)]);
    Ok(match layer {
        Layer::LayerNorm { affine: false, eps: e, dim, .. } => {
            Expr::functional("layer_norm").call([input, width(dim)]).with("eps", eps(e))
        }
        Layer::RmsNorm { affine: false, eps: e, dim, .. } => {
            Expr::functional("rms_norm").call([input, width(dim)]).with("eps", eps(e))
        }
        Layer::Linear { .. }
        | Layer::Patches { .. }
        | Layer::Embedding { .. }
        | Layer::LayerNorm { .. }
        | Layer::RmsNorm { .. }
        | Layer::Param { .. } => field.call([input]),
    })
}

/// `x is None`: whether a value is absent
pub fn is_none(x: Expr) -> Expr {
    x.binary(Sign::Compare("is"), Expr::None)
}
