//! The words that the equation of a part may call, apart from other parts: layers with parameters, and ops.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::fields::{Attend, Clamp, Conv1d, Dropout, Linear, Nothing, Param, Relative, Scores, WithLoss};
use crate::field::value::Field;
use crate::ir::op::Elementary;
use crate::parts::activation::Activation;
use crate::parts::gain::Gain;
use crate::parts::norm::Norm;
use crate::syntax::expr::Function;

/// How many arguments of a kind a word takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Many {
    /// The least number of them.
    pub least: usize,
    /// The most of them.
    pub most: usize,
}

/// A number of them that does not vary.
pub const fn exactly(n: usize) -> Many {
    Many { least: n, most: n }
}

/// A word with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The name in equations.
    pub name: &'static str,
    /// The arguments of an example, with their meanings for names.
    arguments: &'static str,
    /// What it computes, with shapes.
    pub doc: &'static str,
    /// A part that calls it; empty for a word that is called as every function of one tensor.
    example: &'static str,
    /// The same in PyTorch; empty if that has a function of the same name.
    pytorch: &'static str,
    /// The tensors, which are its first arguments.
    pub tensors: Many,
    /// The numbers, which follow the tensors.
    pub numbers: Many,
    /// The index of the first of its tensors that may be a number instead, which is the same everywhere.
    pub or_number: usize,
    /// Whether it has parameters, so that a call of it can have a name.
    pub has_parameters: bool,
    /// Whether its first argument is a text, the axes of a product.
    pub has_axes: bool,
    /// The arguments with names.
    pub fields: fn() -> Vec<Field>,
}

/// The most sizes of a parameter.
const MOST_AXES: usize = 4;

/// The most tensors that are joined at once.
const MOST_JOINED: usize = 16;

/// A function of one tensor, without parameters and fields.
const PLAIN: Word = Word {
    name: "",
    arguments: "x",
    doc: "",
    example: "",
    pytorch: "",
    tensors: exactly(1),
    numbers: exactly(0),
    or_number: usize::MAX,
    has_parameters: false,
    has_axes: false,
    fields: Nothing::fields,
};

const WORDS: &[Word] = &[
    Word {
        name: "linear",
        arguments: "x, size",
        doc: "a projection with its own weight and bias, `[.., D] → [.., size]`",
        example: "linear(silu(linear(x, 4 * d_model)), d_model)",
        pytorch: "torch.nn.Linear(D, size)(x)",
        numbers: exactly(1),
        has_parameters: true,
        fields: Linear::fields,
        ..PLAIN
    },
    Word {
        name: "param",
        arguments: "size",
        doc: "a learned tensor of its own, `[size, ..]`; with `shared: true`, all calls of the part in a \
            stack share one",
        example: "x * param(d_model, init: ones)",
        pytorch: "torch.nn.Parameter(torch.empty(size, ..))",
        tensors: exactly(0),
        numbers: Many { least: 1, most: MOST_AXES },
        has_parameters: true,
        fields: Param::fields,
        ..PLAIN
    },
    Word {
        name: "positions",
        arguments: "size",
        doc: "a learned vector for every position of the stack, `[1, T, size]`, from a table of its own, `[context, size]`",
        example: "x + positions(d_model)",
        pytorch: "torch.nn.Embedding(context, size)(torch.arange(past, past + T)[None])",
        tensors: exactly(0),
        numbers: exactly(1),
        has_parameters: true,
        ..PLAIN
    },
    Word {
        name: "embedding",
        arguments: "x, rows, size",
        doc: "the rows of a learned table, `[rows, size]`, at the indices in `x`, `[.., T, 1] → [.., T, \
            size]`; an index between two whole numbers interpolates their rows, so that gradients reach `x`, \
            and one beyond the table takes its first or last row",
        example: "x + embedding(cumsum(0 * sum(x) + 1) - 1, 8, d_model)",
        pytorch: "torch.nn.Embedding(rows, size)(x[..., 0].long()) for whole numbers",
        numbers: exactly(2),
        has_parameters: true,
        ..PLAIN
    },
    Word {
        name: "arange",
        arguments: "size",
        doc: "the numbers 0, 1, ... below `size`, `[size]`",
        example: "x * exp(-1 * arange(d_model))",
        pytorch: "torch.arange(size)",
        tensors: exactly(0),
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "gain",
        doc: "multiplies every feature by a learned factor, `[.., D] → [.., D]`, which starts at 1e-5, or at \
            1 with `init: 1`",
        example: "gain(x, init: 1)",
        pytorch: "torch.nn.Parameter(torch.full((D,), init)) * x",
        has_parameters: true,
        fields: Gain::fields,
        ..PLAIN
    },
    Word {
        name: "dropout",
        arguments: "x, p: 0.1",
        doc: "in training, elements zeroed with probability `p` and the others scaled up",
        example: "dropout(linear(x, d_model), p: 0.1)",
        pytorch: "torch.nn.functional.dropout(x, p, self.training)",
        fields: Dropout::fields,
        ..PLAIN
    },
    Word {
        name: "clamp",
        arguments: "x, min: -7, max: 7",
        doc: "`min(max(x, min), max)`, element by element",
        example: "clamp(x, min: -7, max: 7)",
        pytorch: "x.clamp(min=-7, max=7)",
        fields: Clamp::fields,
        ..PLAIN
    },
    Word {
        name: "softcap",
        arguments: "x, cap",
        doc: "`cap * tanh(x / cap)`, element by element",
        example: "softcap(x, 30)",
        pytorch: "cap * torch.tanh(x / cap)",
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "normalize",
        doc: "`x / max(|x|, 1e-12)`: the features scaled to unit length",
        example: "normalize(x)",
        pytorch: "torch.nn.functional.normalize(x, dim=-1)",
        ..PLAIN
    },
    Word {
        name: "slice",
        arguments: "x, start, size",
        doc: "`size` features from number `start` on, counted from 0: `[.., D] → [.., size]`",
        example: "concat(slice(x, 8, d_model - 8), slice(x, 0, 8))",
        pytorch: "x[..., start : start + size]",
        numbers: exactly(2),
        ..PLAIN
    },
    Word {
        name: "concat",
        arguments: "x, y",
        doc: "the features of all inputs, one after the other: `[.., D], [.., E] → [.., D + E]`",
        example: "linear(concat(x, shift(x, 1)), d_model)",
        pytorch: "torch.cat((x, y), dim=-1)",
        tensors: Many { least: 2, most: MOST_JOINED },
        ..PLAIN
    },
    Word {
        name: "softmax",
        doc: "`e^x / sum(e^x)` over the features, `[.., D] → [.., D]`",
        example: "softmax(x)",
        pytorch: "x.softmax(-1)",
        ..PLAIN
    },
    Word {
        name: "split",
        arguments: "x, heads",
        doc: "the features split into heads, `[B, T, H*D] → [B, H, T, D]`; of parameters, `[N, H*D] → [1, H, N, D]` and \
              `[H*D] → [1, H, 1, D]`",
        example: "merge(rms_norm(split(x, 4)))",
        pytorch: "x.unflatten(-1, (heads, -1)).transpose(1, 2)",
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "merge",
        doc: "the heads joined to features, `[B, H, T, D] → [B, T, H*D]`",
        example: "merge(normalize(split(x, 4)))",
        pytorch: "x.transpose(1, 2).flatten(2)",
        ..PLAIN
    },
    Word {
        name: "repeat",
        arguments: "x, times",
        doc: "every head `times` times in a row, `[B, H, T, D] → [B, H*times, T, D]`",
        example: "merge(repeat(split(linear(x, d_model / 2), 2), 2))",
        pytorch: "x.repeat_interleave(times, dim=1)",
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "rotate",
        doc: "queries or keys rotated by the block's rotary positions, `[B, H, T, D] → [B, H, T, D]`",
        example: "merge(attend(rotate(split(x, 4)), rotate(split(x, 4)), split(x, 4)))",
        pytorch: "transformers.models.llama.modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)",
        ..PLAIN
    },
    Word {
        name: "attend",
        arguments: "q, k, v",
        doc: "`softmax(scale q kᵀ) v` in every head, with the stack's mask and position bias: \
              `[B, H, T, D], [B, G, T, D], [B, G, T, E] → [B, H, T, E]`, where `G` divides `H`",
        example: "merge(attend(split(x, 4), split(x, 4), split(x, 4)))",
        pytorch: "torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)",
        tensors: exactly(3),
        fields: Attend::fields,
        ..PLAIN
    },
    Word {
        name: "scores",
        arguments: "q, k",
        doc: "`scale q kᵀ`, a number for every query and key, plus the stack's position bias: \
              `[B, H, T, D], [B, G, T, D] → [B, H, T, K]`, where `G` divides `H`. What the stack's mask hides is left out by \
              `softmax`, `sum` and `weigh`, so that `weigh(softmax(scores(q, k)), v)` is `attend(q, k, v)`",
        example: "merge(weigh(softmax(scores(split(x, 4), split(x, 4))), split(x, 4)))",
        pytorch: "scale * q @ k.transpose(-2, -1)",
        tensors: exactly(2),
        fields: Scores::fields,
        ..PLAIN
    },
    Word {
        name: "relative",
        arguments: "x, center",
        doc: "for every query and key, the feature number `center + query - key` of the query's `R` features, or with \
              `of_keys: true` of the key's; all pairs farther apart have the first or the last: `[B, H, T, \
              R] → [B, H, T, K]`. \
              `distances: logarithmic(exact: 128, farthest: 512)` lets far ones share features, and \
              `distances: grid(columns: 14)` has one for every distance of rows and columns",
        example: "merge(weigh(softmax(relative(split(linear(x, 4 * 8), 4), 0)), split(x, 4)))",
        pytorch: "x.gather(-1, (center + query - key).clamp(0, R - 1).expand(B, H, T, K))",
        numbers: exactly(1),
        fields: Relative::fields,
        ..PLAIN
    },
    Word {
        name: "of_keys",
        doc: "for every query and key, the one feature of the key, `[B, H, T, 1] → [B, H, T, K]`; `x` itself is that of the query",
        example: "merge(weigh(softmax(scores(split(x, 4), split(x, 4)) - of_keys(split(linear(x, 4), 4))), split(x, 4)))",
        pytorch: "x.transpose(2, 3)",
        ..PLAIN
    },
    Word {
        name: "at_keys",
        doc: "for every query and key, the feature of the query whose number is the key's position in its text, \
            counted from 0 without padding; there are as many features as positions in the longest text: \
            `[B, H, T, context] → [B, H, T, K]`",
        example: "merge(weigh(softmax(at_keys(split(linear(x, 4 * context), 4))), split(x, 4)))",
        pytorch: "x[..., :K]",
        ..PLAIN
    },
    Word {
        name: "weigh",
        arguments: "w, v",
        doc: "the weighted sum of all values, `w v` in every head: \
              `[B, H, T, K], [B, G, T, E] → [B, H, T, E]`, where `G` divides `H`",
        example: "merge(weigh(sigmoid(scores(split(x, 4), split(x, 4))), split(x, 4)))",
        pytorch: "w @ v",
        tensors: exactly(2),
        ..PLAIN
    },
    Word {
        name: "einsum",
        arguments: "\"ab,bc->ac\", x, y",
        doc: "the products of two tensors, summed over the axes whose letters the result does not have; the \
            batch is never summed over, and positions only in an encoder or over its output, without padding",
        example: "einsum(\"btd,de->bte\", x, param(d_model, d_model))",
        pytorch: "torch.einsum(\"ab,bc->ac\", x, y)",
        tensors: exactly(2),
        has_axes: true,
        ..PLAIN
    },
    Word {
        name: "shift",
        arguments: "x, n",
        doc: "the value `n` positions earlier, zeros before the first, `[.., T, D] → [.., T, D]`",
        example: "0.5 * x + 0.5 * shift(x, 1)",
        pytorch: "torch.nn.functional.pad(x, (0, 0, n, 0))[..., : -n, :]",
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "conv1d",
        arguments: "x, width",
        doc: "every feature convolved over its last `width` positions, with its own weights `[D, 1, width]` \
            and bias, `[B, T, D] → [B, T, D]`; no position sees a later one",
        example: "silu(conv1d(x, 4))",
        pytorch: "torch.nn.Conv1d(D, D, width, groups=D, padding=width - 1)(x.mT).mT[:, :T]",
        numbers: exactly(1),
        has_parameters: true,
        fields: Conv1d::fields,
        ..PLAIN
    },
    Word {
        name: "cumsum",
        doc: "the sum over all positions up to the current one, `[.., T, D] → [.., T, D]`",
        example: "cumsum(x) / cumsum(0 * x + 1)",
        pytorch: "x.cumsum(-2)",
        ..PLAIN
    },
    Word {
        name: "recurrence",
        arguments: "q, k, v, decay",
        doc: "a state `S` of every head, which decays, is added to and is read, `S = decay * S + k vᵀ`, `y = Sᵀ q`: \
              `[B, G, T, N], [B, G, T, N], [B, H, T, P] → [B, H, T, P]`, where `G` divides `H` and the decay is a number, or a tensor \
              whose axes are each 1 or that of `[B, H, T, N]`; a fifth tensor `beta`, `[B, H, T, 1]` or a number, gives the delta rule, \
              `S = D + beta k (v - Dᵀ k)ᵀ` with `D = decay * S`",
        example: "merge(recurrence(split(x, 4), split(x, 4), split(x, 4), split(sigmoid(linear(x, 4)), 4)))",
        pytorch: "S = decay[:, :, t, :, None] * S + k[:, :, t, :, None] * v[:, :, t, None]; y = (q[:, :, t, :, None] * S).sum(-2)",
        tensors: Many { least: 4, most: 5 },
        or_number: 3,
        ..PLAIN
    },
    Word {
        name: "sum",
        doc: "the sum of the features, `[.., D] → [.., 1]`",
        example: "x / (1 + sum(square(x)))",
        pytorch: "x.sum(-1, keepdim=True)",
        ..PLAIN
    },
    Word {
        name: "mean",
        doc: "the mean of the features, `[.., D] → [.., 1]`",
        example: "x - mean(x)",
        pytorch: "x.mean(-1, keepdim=True)",
        ..PLAIN
    },
    Word {
        name: "amax",
        doc: "the largest of the features, or of a query's numbers for the keys that it sees, `[.., D] → [.., 1]`",
        example: "x - amax(x)",
        pytorch: "x.amax(-1, keepdim=True)",
        ..PLAIN
    },
    Word {
        name: "top_k",
        arguments: "x, k",
        doc: "1 for the `k` largest of the features, or of a query's numbers for the keys that it sees, and \
            0 for the others, \
              `[.., D] → [.., D]`, without a gradient",
        example: "x * top_k(abs(x), 4)",
        pytorch: "torch.zeros_like(x).scatter(-1, x.topk(k).indices, 1.0)",
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "experts",
        arguments: "part(x), w, k",
        doc: "the weighted sum of as many parts as `w` has features, each with its own parameters: `[B, T, D], \
              [B, T, E] → [B, T, D]`. A part is computed only for the positions whose weight for it is not \
              0; each position has at most `k` such weights",
        example: "experts(adapter(x, size: 8), top_k(x, 2) * softmax(x), 2)",
        pytorch: "sum(w[..., [i]] * part[i](x) for i in range(E))",
        tensors: exactly(2),
        numbers: exactly(1),
        ..PLAIN
    },
    Word {
        name: "batch_mean",
        doc: "the mean of every feature over all positions of all examples, without padding, `[B, T, D] → \
            [1, 1, D]`; it \
              looks at the whole batch, so only a loss can be computed from it",
        example: "with_loss(x, square(batch_mean(x)), weight: 0.01)",
        pytorch: "x.mean((0, 1), keepdim=True)",
        ..PLAIN
    },
    Word {
        name: "with_loss",
        arguments: "y, x, weight: 0.01",
        doc: "`y` itself; in training, the mean of all elements of `x`, times the weight, is added to the loss of the \
              outputs. It is recorded separately under the name of the call, and is not computed outside of training",
        example: "with_loss(x, square(x), weight: 0.01)",
        pytorch: "loss = loss + weight * x.mean()",
        tensors: exactly(2),
        has_parameters: true,
        fields: WithLoss::fields,
        ..PLAIN
    },
];

impl Word {
    /// A part that calls it, whose input and result are as wide as the model.
    pub fn example(&self) -> String {
        if self.example.is_empty() { format!("{}(x)", self.name) } else { self.example.to_owned() }
    }

    /// What computes the same in PyTorch.
    pub fn pytorch(&self) -> String {
        if self.pytorch.is_empty() { format!("torch.{}(x)", self.name) } else { self.pytorch.to_owned() }
    }

    /// A call of it: `linear(x, size)`.
    pub fn usage(&self) -> String {
        format!("{}({})", self.name, self.arguments)
    }
}

/// Every word: those of the table, the norms, the elementary functions, and the activations.
pub fn words() -> impl Iterator<Item = Word> {
    let norms = Norm::documentation().parts.into_iter().map(|part| Word {
        name: part.name,
        doc: part.doc,
        pytorch: match part.name {
            "layer_norm" => "torch.nn.LayerNorm(D)(x)",
            "rms_norm" => "torch.nn.RMSNorm(D)(x)",
            _ => "weight * torch.tanh(alpha * x) + bias",
        },
        has_parameters: true,
        fields: part.fields,
        ..PLAIN
    });
    // The norm that does nothing is the one that has no field.
    let norms = norms.filter(|word| !(word.fields)().is_empty());
    let activations = Activation::WORDS.iter().filter(|word| activation(word.name).is_some());
    let activations = activations.map(|word| Word { name: word.name, doc: word.doc, ..PLAIN });
    let functions = Elementary::ALL.iter().map(|function| Word {
        name: function.name(),
        doc: function.doc(),
        pytorch: if *function == Elementary::Softplus { "torch.nn.functional.softplus(x)" } else { "" },
        ..PLAIN
    });
    WORDS.iter().copied().chain(norms).chain(functions).chain(activations)
}

/// The words by name, since a hostile text may have very many calls.
static KNOWN: LazyLock<BTreeMap<&'static str, Word>> =
    LazyLock::new(|| words().map(|word| (word.name, word)).collect());

/// The word of that name.
pub fn word(name: &str) -> Option<Word> {
    let name = Function::of_numbers(name).map_or(name, |function| function.name());
    KNOWN.get(name).copied()
}

/// The elementary function of that name.
pub fn elementary(name: &str) -> Option<Elementary> {
    Elementary::ALL.iter().copied().find(|function| function.name() == name)
}

/// The activation of that name.
pub fn activation(name: &str) -> Option<Activation> {
    let named = |a: &Activation| a.word() == name;
    Activation::ALL.iter().copied().find(named).filter(|a| *a != Activation::None)
}
