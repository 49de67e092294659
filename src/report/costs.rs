//! Costs by name, as comparisons show them, conditions test them and `fit` searches for them.
//!
//! Each name is one number of a model at given lengths and a given element type. The names are the same in
//! tables, in `--fail-if` and in JSON.

use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use super::cost::Cost;
use super::memory::{self, Memory};
use super::number;
use super::scene::Scene;
use crate::ir::{Role, Verified};

/// The unit of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers in the tensors of a model.
    Parameters,
    /// FLOPs: a multiplication and an addition count as two.
    Operations,
    /// Bytes, written with binary prefixes.
    Bytes,
}

impl Unit {
    /// A number with its unit in a few characters: `124.4 M`, `284.8 G`, `36.0 KiB`.
    pub fn short(self, n: u128) -> String {
        match self {
            Unit::Parameters => number::count(n),
            Unit::Operations => number::operations(n),
            Unit::Bytes => number::bytes(n),
        }
    }
}

// One list, so that no name can lack its word, its title or its unit.
macro_rules! names {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal, $title:literal, $unit:ident;)*) => {
        /// A cost with a name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        pub enum Name { $($(#[doc = $doc])* #[serde(rename = $word)] $name),* }

        impl Name {
            /// All costs, in the order of tables.
            pub const ALL: &'static [Name] = &[$(Name::$name),*];

            /// The name in conditions and JSON.
            pub fn word(self) -> &'static str {
                match self { $(Name::$name => $word),* }
            }

            /// The name in tables; names that belong to the one above are indented.
            pub fn title(self) -> &'static str {
                match self { $(Name::$name => $title),* }
            }

            /// The name in sentences.
            pub fn phrase(self) -> &'static str {
                // Titles that are unclear without the row above them have a phrase of their own.
                match self {
                    Name::FlopsPerToken => "FLOPs per token",
                    Name::AttentionFlops => "FLOPs of attention",
                    Name::VisibleFlops => "FLOPs, visible pairs only",
                    Name::TrainingFlops => "FLOPs of a training step",
                    Name::DecodingFlops => "FLOPs of the next token",
                    Name::Kv => "KV cache",
                    Name::RunMemory => "memory to run",
                    Name::TrainMemory => "memory to train",
                    _ => self.title().trim_ascii_start(),
                }
            }

            /// The unit of the cost.
            pub fn unit(self) -> Unit {
                match self { $(Name::$name => Unit::$unit),* }
            }

            /// A description of the cost.
            pub fn explanation(self) -> &'static str {
                match self { $(Name::$name => concat!($($doc),*).trim_ascii_start()),* }
            }
        }
    };
}

names! {
    /// Parameters; tied ones count once
    Params = "params", "parameters", Parameters;
    /// Parameters that a token uses: of the experts, only those it is sent to
    Active = "active", "  active", Parameters;
    /// Parameters of embeddings
    Embedding = "embedding", "  embedding", Parameters;
    /// Parameters of attention
    Attention = "attention", "  attention", Parameters;
    /// Parameters of feed-forward parts
    Ffn = "ffn", "  ffn", Parameters;
    /// Parameters of norms and learned scales
    Norm = "norm", "  norm", Parameters;
    /// Parameters of the head
    Head = "head", "  head", Parameters;
    /// Numbers that training does not change, such as the bias of a router's choice; parameters leave them
    /// out
    Buffers = "buffers", "buffers", Parameters;
    /// Operations of one forward pass, with attention over all pairs
    Flops = "flops", "FLOPs", Operations;
    /// Operations of one forward pass per token
    FlopsPerToken = "flops_per_token", "  per token", Operations;
    /// Operations of attention scores and weighted sums, over all pairs
    AttentionFlops = "attention_flops", "  attention", Operations;
    /// Operations with only the pairs of query and key that masks leave
    VisibleFlops = "visible_flops", "  visible", Operations;
    /// Operations of a training step, counted as three forward passes
    TrainingFlops = "training_flops", "  training", Operations;
    /// Operations of decoding the last token with the keys that masks leave it, when all others are cached
    /// and what depends on the source alone is computed
    DecodingFlops = "decoding_flops", "  next token", Operations;
    /// Bytes of keys and values that a decoded token adds to the cache
    KvPerToken = "kv_per_token", "KV per token", Bytes;
    /// Bytes of the cache at this length, including those of the source
    Kv = "kv", "  whole cache", Bytes;
    /// Bytes of all tensors of the model
    Weights = "weights", "weights", Bytes;
    /// Memory of one forward pass: weights and the values that are alive at the same time
    RunMemory = "run_memory", "  to run", Bytes;
    /// Memory of a training step with Adam: weights, gradients, two moments, activations
    TrainMemory = "train_memory", "  to train", Bytes;
}

/// The costs of a model at some lengths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    values: IndexMap<Name, Option<u128>>,
    /// Of what the memory to run and to train consists.
    pub memory: Memory,
}

impl Costs {
    /// One cost; 0 if the model does not have it.
    pub fn of(&self, name: Name) -> u128 {
        self.get(name).unwrap_or(0)
    }

    /// One cost, if the model has it: a model of images has no tokens, an encoder has no cache.
    pub fn get(&self, name: Name) -> Option<u128> {
        self.values.get(&name).copied().flatten()
    }

    /// Computes all costs. For an image model, every sequence is one image, whatever the lengths say.
    pub fn measure(graph: &Verified, cost: &Cost, scene: &Scene) -> Costs {
        // Memory is computed once, because several costs come from it.
        let memory = memory::memory(graph, cost, scene);
        let of = |name: &Name| (*name, value(*name, graph, cost, scene, || memory));
        Costs { values: Name::ALL.iter().map(of).collect(), memory }
    }

    /// Computes a single cost, for code that needs only one of many models.
    pub fn one(name: Name, graph: &Verified, cost: &Cost, scene: &Scene) -> Option<u128> {
        value(name, graph, cost, scene, || memory::memory(graph, cost, scene))
    }
}

fn value(
    name: Name,
    graph: &Verified,
    cost: &Cost,
    scene: &Scene,
    memory: impl Fn() -> Memory,
) -> Option<u128> {
    // Closures, so that only what the named cost needs is computed: `fit` asks for one cost of hundreds of
    // models.
    let count = || cost.parameters.all();
    let whole = || cost.forward(&scene.whole());
    // An empty batch would make every cost per token a division by zero.
    let sequences = u128::from(scene.batch.max(1));
    let tokens = sequences.saturating_mul(u128::from(scene.tokens.max(1)));
    let bytes = scene.element.bytes();
    let of_role = |role: Role| Some(cost.parameters.of(role).total);
    match name {
        Name::Params => Some(count().total),
        Name::Active => Some(count().active),
        Name::Embedding => of_role(Role::Embedding),
        Name::Attention => of_role(Role::Attention),
        Name::Ffn => of_role(Role::Ffn),
        Name::Norm => of_role(Role::Norm),
        Name::Head => of_role(Role::Head),
        Name::Buffers => Some(cost.parameters.buffers),
        Name::Flops => Some(whole().full),
        // The tokens of the scene say nothing about an image, so there is nothing to divide by.
        Name::FlopsPerToken => whole().full.checked_div(tokens).filter(|_| cost.has_time),
        Name::AttentionFlops => Some(whole().attention),
        Name::VisibleFlops => Some(whole().visible),
        Name::TrainingFlops => Some(whole().training),
        Name::DecodingFlops => graph.decodes.then(|| cost.decoding(&scene.last()).visible),
        Name::KvPerToken => graph.decodes.then(|| cost.cache_per_token().saturating_mul(bytes)),
        Name::Kv => graph.decodes.then(|| {
            let source = cost.attended.of_source(scene.tokens);
            let kept = cost.cache_at(scene.tokens).saturating_add(source).saturating_mul(sequences);
            kept.saturating_mul(bytes)
        }),
        Name::Weights => Some(memory().weights),
        Name::RunMemory => Some(memory().to_run()),
        Name::TrainMemory => Some(memory().to_train()),
    }
}

/// Serialized as an object from names to numbers, with `null` for what a model does not have.
impl Serialize for Costs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // `serialize_with` applies to fields of a struct, not to values of a map.
        struct Big(u128);
        impl Serialize for Big {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                super::serialize_count(&self.0, serializer)
            }
        }
        serializer.collect_map(self.values.iter().map(|(name, n)| (name.word(), n.map(Big))))
    }
}

impl JsonSchema for Costs {
    fn schema_name() -> Cow<'static, str> {
        "Costs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let cost =
            |name: &Name| (name.word().to_owned(), json!({ "type": ["number", "null"], "minimum": 0 }));
        json_schema!({
            "type": "object",
            "description": "Every cost by its name; null for what the model does not have",
            "properties": Name::ALL.iter().map(cost).collect::<Map<_, _>>(),
            "required": Name::ALL.iter().map(|name| name.word()).collect::<Vec<_>>(),
        })
    }
}
