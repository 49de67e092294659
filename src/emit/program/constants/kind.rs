//! What the named numbers of a program are, and what readers are told about them.

use crate::ir::Init;
use crate::ir::op::quantity::Named;

/// What a number is, from which its name and its documentation follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size: a field of the spec, by its name.
    Field(&'static str),
    /// The number of blocks of a stack.
    Layers,
    /// A number of an op that readers know by a name.
    Named(Named),
    /// What is added to a variance.
    Eps,
    /// A number of the distribution of fresh weights.
    Fresh(Fresh),
}

/// A number of the distribution that fresh weights are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// The standard deviation of a normal distribution, before it is cut off.
    Std,
    /// The number of standard deviations at which a normal distribution is cut off.
    Cut,
    /// The largest absolute value of an even distribution.
    Bound,
    /// A factor on the distribution that follows from the sizes of a layer; there is no constant for a factor
    /// of 1.
    Gain,
    /// The value of all weights, if they start equal.
    Value,
}

impl Fresh {
    /// Its name in lower case.
    pub(super) fn name(self) -> &'static str {
        match self {
            Fresh::Std => "std",
            Fresh::Cut => "cut",
            Fresh::Bound => "bound",
            Fresh::Gain => "gain",
            Fresh::Value => "value",
        }
    }

    /// The numbers of a distribution that get names.
    pub(super) fn numbers(init: &Init) -> Vec<(Fresh, f64)> {
        match init {
            Init::Zeros | Init::Ones => Vec::new(),
            Init::Constant(value) => vec![(Fresh::Value, *value)],
            Init::Normal { std } => vec![(Fresh::Std, *std)],
            Init::TruncatedNormal { std, cut } => vec![(Fresh::Std, *std), (Fresh::Cut, *cut)],
            Init::Uniform { bound } => vec![(Fresh::Bound, *bound)],
            Init::XavierUniform { gain }
            | Init::XavierNormal { gain }
            | Init::KaimingUniform { gain }
            | Init::KaimingNormal { gain }
            | Init::Orthogonal { gain }
            | Init::Logarithms { gain } => {
                (*gain != 1.0).then_some((Fresh::Gain, *gain)).into_iter().collect()
            }
        }
    }
}

impl Kind {
    pub(super) fn name(self) -> String {
        match self {
            Kind::Field(field) => field.to_owned(),
            Kind::Layers => "layers".to_owned(),
            Kind::Named(named) => named.name().to_owned(),
            Kind::Eps => "eps".to_owned(),
            Kind::Fresh(fresh) => format!("init_{}", fresh.name()),
        }
    }

    /// What it is, for readers. `name` is the constant's, which may tell whose it is.
    pub(super) fn sentence(self, name: &str) -> String {
        match self {
            Kind::Field(field) => match FIELDS.iter().find(|(known, _)| *known == field) {
                Some((_, sentence)) => (*sentence).to_owned(),
                None => format!("`{field}` of the spec."),
            },
            // The scope that tells several stacks apart comes first: `encoder_layers`.
            Kind::Layers => match name.strip_suffix("_layers") {
                Some(stack) => format!("Blocks of the {stack}."),
                None => "Blocks of the stack.".to_owned(),
            },
            Kind::Named(named) => named.sentence().to_owned(),
            Kind::Eps => "Added to the variance in norms.".to_owned(),
            Kind::Fresh(Fresh::Std) => "Standard deviation of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Cut) => "Standard deviations at which fresh weights are cut off.".to_owned(),
            Kind::Fresh(Fresh::Bound) => "Largest absolute value of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Gain) => "Factor on the distribution of fresh weights.".to_owned(),
            Kind::Fresh(Fresh::Value) => "Value of fresh weights.".to_owned(),
        }
    }

    /// Sizes by [`FIELDS`], the lengths of stacks after the model's width, scalars last.
    pub(super) fn order(self) -> (usize, usize) {
        let at = |field: &str| FIELDS.iter().position(|(known, _)| *known == field).unwrap_or(FIELDS.len());
        match self {
            // Doubled, so that the lengths of stacks fit between two fields.
            Kind::Field(field) => (0, 2 * at(field)),
            Kind::Layers => (0, 2 * at("d_model") + 1),
            Kind::Named(Named::Dropout) => (3, 0),
            Kind::Named(named) => (1, named as usize),
            Kind::Eps => (2, 0),
            Kind::Fresh(fresh) => (4, fresh as usize),
        }
    }
}

/// Fields in the order they are written at the top of a file, and what each is. Others follow in the order
/// they are met.
const FIELDS: &[(&str, &str)] = &[
    ("vocab", "Token ids the model knows."),
    ("source_vocab", "Token ids of the source."),
    ("context", "The longest sequence the model is meant for."),
    ("d_model", "Features of the residual stream."),
    ("heads", "Heads of queries."),
    ("kv_heads", "Heads of keys and values, each shared by `HEADS / KV_HEADS` heads of queries."),
    ("head_dim", "Features of a head."),
    ("value_dim", "Features of a head of values."),
    ("query_rank", "Features of the latent vector that queries come from."),
    ("kv_rank", "Features of the latent vector that keys and values come from."),
    ("content_dim", "Features of a head that positions do not turn."),
    ("rotary_dim", "Features of a head that positions turn."),
    ("hidden", "Features inside a feed-forward."),
    ("experts", "Experts of a mixture."),
    ("top_k", "Experts a token is sent to."),
    ("groups", "Groups of experts, or of heads that share keys."),
    ("groups_kept", "Groups of experts a token may use."),
    ("score_of", "Experts whose affinities make up the score of their group."),
    ("embed_dim", "Features of the token table."),
    ("segments", "Token types."),
    ("languages", "Languages the model knows."),
    ("channels", "Colour channels of an image."),
    ("image_size", "Side of an image, in pixels."),
    ("patch_size", "Side of a patch, in pixels."),
    ("patches", "Patches of an image."),
    ("registers", "Register tokens."),
    ("classes", "Classes."),
    ("project", "Features of the vector the model gives."),
    ("buckets", "Buckets of relative positions."),
];
