//! Words of other tools for which a key of trafoc would be the wrong answer, each with what is done instead.

use std::sync::LazyLock;

use super::foreign::Index;

/// A word of another tool that is no key here: what is done instead, or what is near to it but takes other values.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The titles of the maps in which it is said, with spaces between them; empty if it is in every one.
    pub within: &'static str,
    /// The words, with spaces between them.
    pub names: &'static str,
    /// What to know instead.
    pub says: &'static str,
}

/// Words for which a key of trafoc would be the wrong answer.
pub const NOTES: &[Note] = &[
    Note {
        within: "recipe",
        names: "dropout attention_dropout dropout_rate",
        says: "`dropout` belongs in the spec, at its `attention`, `ffn` and `embed`; that of adapters is `adapt.lora.dropout`",
    },
    Note {
        within: "recipe",
        names: "device gpu gpus cuda use_cuda accelerator",
        says: "the command line sets the device: `trafoc train --device`; `trafoc doctor` lists them",
    },
    Note {
        within: "recipe",
        names: "precision dtype fp16 bf16 tf32 half mixed_precision amp",
        says: "training computes in single precision; `--dtype` of `run`, `generate`, `predict` and `eval` is for a trained model",
    },
    Note {
        within: "recipe",
        names: "num_workers dataloader_num_workers threads num_threads",
        says: "the command line sets the threads: `trafoc train --threads`",
    },
    Note {
        within: "recipe",
        names: "save_folder save_path output_dir out_dir save_dir checkpoint_dir run_dir",
        says: "the command line sets the folder: `trafoc train --out`",
    },
    Note {
        within: "recipe",
        names: "resume resume_from_checkpoint",
        says: "the command continues a run: `trafoc train --resume --out RUN`",
    },
    Note {
        within: "recipe",
        names: "shuffle shuffle_data",
        says: "examples always come in a random order, which follows from `seed`",
    },
    Note {
        within: "split",
        names: "train training train_split train_size",
        says: "remove it: what is not held out is for training",
    },
    Note {
        within: "split",
        names: "dev val valid eval dev_size val_size validation_size validation_split",
        says: "trafoc calls this `validation`",
    },
    Note {
        within: "cross",
        names: "mask window sliding_window clip clip_qkv gate sinks attention_sinks",
        says: "only `attention` has `mask`, `clip`, `gate` and `sinks`; `cross` has none of them",
    },
    Note { within: "embed", names: "type kind", says: "it is `position`: `embed: {position: learned}`" },
    Note {
        within: "spec",
        names: "device gpu gpus cuda use_cuda accelerator",
        says: "a spec sets no device; `--device` of `train`, `run` and others does, and `trafoc doctor` lists them",
    },
    Note { within: "bias", names: "q q_proj", says: "trafoc calls this `query`" },
    Note { within: "bias", names: "k k_proj", says: "trafoc calls this `key`" },
    Note { within: "bias", names: "v v_proj", says: "trafoc calls this `value`" },
    Note { within: "bias", names: "o o_proj output", says: "trafoc calls this `out`" },
    Note { within: "dropout", names: "o o_proj output", says: "trafoc calls this `out`" },
    Note {
        within: "recipe",
        names: "compile torch_compile",
        says: "every model is compiled; there is nothing to switch on",
    },
    Note {
        within: "recipe",
        names: "logging_steps log_interval log_every logging_dir report_to",
        says: "`metrics.jsonl` in the folder of a run has a line for each evaluation; `evaluate.every` sets \
            how often",
    },
    Note {
        within: "recipe",
        names: "decay_lr",
        says: "`schedule` sets how the learning rate changes: `schedule: cosine`, or `constant` for none",
    },
    Note {
        within: "recipe",
        names: "max_duration max_time",
        says: "`steps` or `epochs` sets how long training takes",
    },
    Note {
        within: "recipe",
        names: "metric_for_best_model load_best_model_at_end",
        says: "the first of the `metrics` of `evaluate` decides which checkpoint is the best, and that one is always kept",
    },
    Note {
        within: "recipe",
        names: "eval_strategy evaluation_strategy save_strategy logging_strategy",
        says: "`evaluate.every` and `checkpoint.every` are numbers of steps",
    },
    Note {
        within: "adamw adam",
        names: "momentum",
        says: "the first of `betas` is the momentum: `betas: [0.9, 0.999]`",
    },
    Note {
        within: "decoder encoder",
        names: "dim",
        says: "the width of all layers is `d_model`, at the top of the spec",
    },
    Note {
        within: "decoder",
        names: "eps epsilon rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps ln_eps",
        says: "`eps` is a key of the norm: `norm: {rms_norm: {eps: 1e-6}}`",
    },
    Note {
        within: "encoder",
        names: "eps epsilon rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps ln_eps",
        says: "`eps` is a key of the norm: `norm: {rms_norm: {eps: 1e-6}}`",
    },
    Note {
        within: "attention",
        names: "theta rope_theta rope_base",
        says: "positions are set outside of `attention`: `position: rotary` of `embed` or of the stack",
    },
    Note {
        within: "attention",
        names: "none no false identity",
        says: "a block without attention has an equation without it: `block: x + ffn(norm(x))`",
    },
    Note {
        within: "ffn",
        names: "none no false identity",
        says: "a block without a feed-forward part has an equation without it: `block: x + attention(norm(x))`",
    },
    Note {
        within: "attention",
        names: "eps epsilon rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps ln_eps",
        says: "`eps` is a key of the norm: `norm: {rms_norm: {eps: 1e-6}}`",
    },
    Note {
        within: "attention",
        names: "groups",
        says: "`kv_heads` is the number of heads of keys and values, which is that of the groups",
    },
    Note {
        within: "rotary",
        names: "dim",
        says: "`fraction` of `rotary` sets this as a share of `head_dim`",
    },
    Note {
        within: "rms_norm",
        names: "momentum track_running_stats num_batches_tracked",
        says: "remove it: this norm is computed for each position alone, and keeps no running averages",
    },
    Note {
        within: "layer_norm",
        names: "momentum track_running_stats num_batches_tracked",
        says: "remove it: this norm is computed for each position alone, and keeps no running averages",
    },
    Note {
        within: "window",
        names: "left right left_window right_window window_left window_right before after backward forward look_back \
            look_ahead lookback lookahead left_context right_context",
        says: "a window is one number of positions, the query's own among them: `window: 4` is the query with the 3 before it \
            in a decoder; in an encoder it lies around the query",
    },
    Note {
        within: "mask",
        names: "padding padding_mask pad pad_mask key_padding key_padding_mask",
        says: "padding needs no rule: it comes from the input `mask`, and is hidden whatever the rules say",
    },
    Note {
        within: "activation",
        names: "linear",
        says: "an activation that changes nothing is `none`: write `activation: none`",
    },
    Note {
        within: "metric",
        names: "cross_entropy cross_entropy_loss nll nll_loss",
        says: "the mean cross-entropy is `loss`: write `metrics: [loss]`",
    },
    Note {
        within: "order",
        names: "first first_seen",
        says: "the order in which characters first appear is `appearance`: write `order: appearance`",
    },
    Note {
        within: "distribution",
        names: "lecun lecun_normal fan_in",
        says: "it is `kaiming_normal` without the factor of a ReLU: write `init: {kaiming_normal: {gain: 1}}`",
    },
    Note {
        within: "distribution",
        names: "lecun_uniform",
        says: "it is `kaiming_uniform` without the factor of a ReLU: write `init: {kaiming_uniform: {gain: 1}}`",
    },
    Note {
        within: "distribution",
        names: "pytorch torch",
        says: "linear layers of PyTorch begin with this: write `init: {kaiming_uniform: {gain: 1/sqrt(3)}}`",
    },
    Note {
        within: "distribution",
        names: "huggingface hugging_face transformers gpt gpt2 gpt_2 bert",
        says: "GPT-2 and BERT begin with this: write `init: {normal: {std: 0.02}}`",
    },
    Note {
        within: "block",
        names: "cait deit3 deit_iii",
        says: "LayerScale, a learned factor on each part's output, is the wiring `layer_scale`: write `block: layer_scale`, and \
               `gain: {init: 1e-5}` next to it",
    },
    Note {
        within: "block",
        names: "peri periln",
        says: "a norm before and after each part is the wiring `sandwich`: write `block: sandwich`",
    },
    Note {
        within: "block",
        names: "palm gpt_j gptj command_r cohere",
        says: "the wiring is that of `parallel`: write `block: parallel`",
    },
    Note {
        within: "block",
        names: "gpt_neox neox pythia",
        says: "the wiring is that of `parallel_two_norms`: write `block: parallel_two_norms`",
    },
    Note {
        within: "block",
        names: "gpt2 gpt_2 gpt3 gpt_3 llama mistral t5 vit qwen",
        says: "the wiring is that of `pre_norm`: write `block: pre_norm`",
    },
    Note {
        within: "block",
        names: "bert roberta gpt1 gpt_1 vanilla vaswani original",
        says: "the wiring is that of `post_norm`: write `block: post_norm`",
    },
    Note {
        within: "block",
        names: "gemma2 gemma_2 gemma3",
        says: "the wiring is that of `sandwich`: write `block: sandwich`",
    },
    Note {
        within: "block",
        names: "olmo2 olmo_2 olmo3",
        says: "the wiring is that of `reordered`: write `block: reordered`",
    },
    Note {
        within: "block",
        names: "rezero re_zero skip_init skipinit",
        says: "a factor that starts at 0 is `gain`: write `x = x + gain(attention(x))` and so on in the block's equation, and \
               `gain: {init: 0}` next to it",
    },
    Note {
        within: "decoder",
        names: "init initializer initialization weight_init",
        says: "initial values are those of the whole model, next to `decoder`: write `init: ...`",
    },
    Note {
        within: "encoder",
        names: "init initializer initialization weight_init",
        says: "initial values are those of the whole model, next to `encoder`: write `init: ...`",
    },
    Note {
        within: "mask",
        names: "look_ahead lookahead autoregressive unidirectional triangular lower_triangular tril future subsequent left_to_right",
        says: "`causal` hides what follows: write `mask: causal`",
    },
    Note {
        within: "mask",
        names: "block blocks block_diagonal block_local blockwise local_block",
        says: "`chunk` has blocks of one size: write `mask: {chunk: ...}`",
    },
    Note {
        within: "head",
        names: "causal autoregressive decoder gpt",
        says: "`lm` predicts the next token: write `head: lm`",
    },
    Note {
        within: "head",
        names: "masked masked_token fill_mask cloze",
        says: "`mlm` restores masked tokens: write `head: mlm`",
    },
    Note {
        within: "position",
        names: "abs trainable absolute_learned",
        says: "`learned` has a vector for each position: write `position: learned`",
    },
    Note {
        within: "position",
        names: "sincos sin_cos cos_sin cosine",
        says: "`sinusoidal` has sines and cosines: write `position: sinusoidal`",
    },
    Note {
        within: "position",
        names: "rel_pos rel_pos_bias relative_pos_bias bucketed",
        says: "`t5` has a learned score for each distance: write `position: t5`",
    },
    Note {
        within: "position",
        names: "token_type token_types segment segments",
        says: "`segments` of `embed` is the number of the kinds of tokens: `embed: {segments: 2}`",
    },
    Note {
        within: "attention",
        names: "self dot_product scaled_dot_product vanilla standard softmax eager",
        says: "this is what attention is by default, `multi_head`, whose name may be left out: `attention: {heads: 8}`",
    },
    Note { within: "attention", names: "one_kv_head", says: "one head of keys and values is `kv_heads: 1`" },
    Note {
        within: "attention",
        names: "multi_latent multi_latent_attention",
        says: "trafoc calls this `latent`: write `attention: {latent: {...}}`",
    },
    Note {
        within: "norm",
        names: "simple_rms_norm simple_rmsnorm",
        says: "it is `rms_norm` without weights: write `{rms_norm: {affine: false}}`",
    },
    Note {
        within: "norm",
        names: "zero_centered_rms zero_centered_rms_norm gemma_norm gemma_rms_norm",
        says: "it is `rms_norm` whose weights are added to 1: write `{rms_norm: {unit_offset: true}}`",
    },
    Note {
        within: "ffn",
        names: "linear projection",
        says: "one projection is a part of your own: `parts: {project: \"linear(x, d_model)\"}`, and `ffn: project`",
    },
    Note { within: "linear", names: "scale", says: "trafoc calls this `factor`" },
    Note {
        within: "uniform",
        names: "low high min max a b",
        says: "values are between `-bound` and `bound`",
    },
    Note {
        within: "recipe",
        names: "global_batch_size",
        says: "`size` of `batch` times its `accumulate` is this",
    },
    Note {
        within: "recipe",
        names: "eval_iters",
        says: "`limit` of `evaluate` is the number of examples of an evaluation",
    },
    Note { within: "data", names: "type kind", says: "`format` sets this: `format: lines`" },
    Note {
        within: "data",
        names: "shuffle shuffle_data",
        says: "examples always come in a random order, which follows from `seed`",
    },
    Note { within: "", names: "use_rmsnorm use_rms_norm", says: "the norm is a part: `norm: rms_norm`" },
    Note {
        within: "",
        names: "ff_glu ff_swish use_swiglu use_glu mlp_class_name",
        says: "the feed-forward part sets this: `ffn: {hidden: ...}`, or `ffn: {glu: {activation: silu}}` for a gated one",
    },
    Note {
        within: "",
        names: "rope_condense_ratio rope_scale rope_scaling_factor",
        says: "`scaling` of `rotary` sets this: `position: {rotary: {scaling: {linear: {factor: 2}}}}`",
    },
    Note {
        within: "",
        names: "padding_multiple pad_vocab_size_multiple_of",
        says: "`vocab` is the size itself, and may be an expression: `vocab: multiple_of(50257, 64)`",
    },
    Note {
        within: "",
        names: "temperature top_p num_return_sequences max_new_tokens repetition_penalty num_beams do_sample",
        says: "the command line sets how texts are generated: `trafoc generate --help` lists the options",
    },
    Note { within: "ffn", names: "dim width size", says: "trafoc calls this `hidden`" },
    Note { within: "mlp", names: "dim width size", says: "trafoc calls this `hidden`" },
    Note { within: "glu", names: "dim width size", says: "trafoc calls this `hidden`" },
    Note {
        within: "data",
        names: "text_column text_field dataset_text_field text_key",
        says: "`format` names the columns: `format: {table: {text: ...}}`",
    },
    Note {
        within: "data",
        names: "label_column label_field target_column",
        says: "`format` names the columns: `format: {table: {text: ..., label: ...}}`",
    },
    Note {
        within: "recipe",
        names: "trainer training training_args training_arguments train_args hyperparameters hparams",
        says: "its keys are those of the recipe itself: `steps`, `batch`, `optimizer` and others are at the top",
    },
    Note {
        within: "recipe",
        names: "model model_config architecture",
        says: "the spec describes the model, and the recipe how it is trained: `trafoc train SPEC --recipe FILE`",
    },
    Note {
        within: "spec",
        names: "trainer training training_args training_arguments train_args hyperparameters hparams recipe",
        says: "a recipe says how a spec is trained, in a file of its own: `trafoc new recipe` writes one",
    },
    Note { within: "data", names: "path file", says: "trafoc calls this `train`" },
    Note {
        within: "",
        names: "positional_encoding positional_embedding position_embedding position_encoding pos_emb",
        says: "trafoc calls this `position`, a key of `embed` and of a stack: `position: rotary`",
    },
    Note {
        within: "",
        names: "lr_decay_iters lr_decay_steps decay_iters decay_steps",
        says: "a schedule ends with the training, whose length is `steps`",
    },
    Note {
        within: "",
        names: "dropout hidden_dropout_prob hidden_dropout dropout_rate dropout_prob drop_rate p_drop dropout_p resid_pdrop \
                residual_dropout",
        says: "`dropout` is a key of `embed`, of `ffn`, and of `attention`, where it may be `dropout: {weights: ..., out: ...}`",
    },
    Note {
        within: "",
        names: "bias use_bias no_bias include_bias linear_bias",
        says: "`bias` is a key of `attention`, of `ffn`, of norms and of heads",
    },
    Note {
        within: "",
        names: "bos_token_id eos_token_id decoder_start_token_id forced_eos_token_id forced_bos_token_id unk_token_id \
                sep_token_id cls_token_id mask_token_id bos_id eos_id bos_token eos_token",
        says: "special tokens are those of `tokens` in the recipe; a spec has only `embed.padding`",
    },
    Note {
        within: "",
        names: "arch architecture model_type architectures transformers_version auto_map name_or_path is_decoder is_encoder_decoder \
                add_cross_attention pretraining_tp",
        says: "no key says this: the stacks, blocks and head of a spec do, and `trafoc import DIR` makes a spec of a Hugging Face \
               model",
    },
    Note {
        within: "",
        names: "dtype torch_dtype param_dtype",
        says: "a spec sets no number type; `--dtype` of `run`, `generate`, `predict` and `eval` does",
    },
    Note {
        within: "",
        names: "use_cache output_attentions output_hidden_states output_router_logits return_dict use_return_dict",
        says: "no key switches this on: `trafoc generate` always keeps keys and values, and `trafoc inspect` shows what a model \
               computes",
    },
    Note {
        within: "",
        names: "query_pre_attn_scalar",
        says: "`scale` of `attention` is 1 divided by the root of this: `scale: 1/sqrt(256)`",
    },
    Note {
        within: "",
        names: "rotary_emb_dim rotary_ndims rotary_dims rope_ndims n_rot",
        says: "`fraction` of `rotary` sets this as a share of `head_dim`",
    },
    Note {
        within: "",
        names: "rope_parameters rotary_pos_emb use_rope use_rotary use_rotary_embeddings use_alibi alibi_pos_bias",
        says: "`position` of `embed` or of a stack sets this: `position: {rotary: {theta: 10000}}`, \
            `position: alibi`",
    },
    Note {
        within: "",
        names: "scale_embedding scale_embeddings normalize_embedding",
        says: "`scale` of `embed` is a number: `scale: sqrt(d_model)`",
    },
    Note { within: "", names: "logits_scaling", says: "`scale` of `head: {lm: {...}}` is 1 divided by this" },
    Note {
        within: "",
        names: "residual_multiplier residual_scale",
        says: "the block's equation sets this: `x = x + 0.22 * attention(norm(x))`",
    },
    Note {
        within: "",
        names: "n_shared_experts num_shared_experts",
        says: "`shared` of `moe` is one part for all of them: `shared: {expert: {glu: {hidden: ...}}}`",
    },
    Note {
        within: "",
        names: "first_k_dense_replace interleave_moe_layer_step decoder_sparse_step encoder_sparse_step moe_layer_freq \
                mlp_only_layers moe_layers mlp_layer_types n_dense_layers num_dense_layers max_window_layers \
                use_sliding_window sliding_window_pattern",
        says: "layers that differ are `blocks` of a stack, and `pattern` or `ranges` says which layer has which",
    },
    Note {
        within: "",
        names: "use_parallel_residual parallel_residual parallel_attn parallel_block",
        says: "`block: parallel` of a stack does this",
    },
    Note {
        within: "",
        names: "norm_first normalize_before do_layer_norm_before pre_norm prenorm post_norm postnorm sandwich_norm",
        says: "the `block` of a stack sets this: `block: pre_norm`, `block: post_norm`, `block: sandwich`",
    },
    Note {
        within: "",
        names: "weight_tying",
        says: "`tied` of the head sets this: `head: {lm: {tied: true}}`",
    },
    Note {
        within: "",
        names: "feed_forward_proj",
        says: "`ffn: {activation: relu}` sets this, and for a gated part `ffn: {glu: {activation: gelu}}`",
    },
    Note {
        within: "",
        names: "objective loss loss_fn loss_function loss_type criterion",
        says: "the head decides the loss: it is the cross-entropy of what the head predicts",
    },
    Note {
        within: "",
        names: "id2label label2id",
        says: "`classes` of the head is their number; their names come from the data",
    },
    Note { within: "", names: "batch_first", says: "the first axis of every tensor is the batch" },
    Note {
        within: "",
        names: "min_lr lr_min eta_min min_learning_rate",
        says: "`floor` of the schedules `linear` and `cosine` sets this as a share of the learning rate",
    },
    Note {
        within: "",
        names: "warmup_ratio warmup_proportion",
        says: "`warmup` of the schedule is a number of steps, not a share of them",
    },
    Note {
        within: "",
        names: "ema exponential_moving_average ema_decay model_ema",
        says: "`average` of a recipe is the closest: the finished model is the mean of this many of the last \
            checkpoints",
    },
    Note {
        within: "",
        names: "capacity_factor expert_capacity",
        says: "an expert of `moe` takes every token that chooses it; no token is dropped",
    },
    Note {
        within: "",
        names: "ffn_dim_multiplier multiple_of",
        says: "`hidden` is the width itself, and may be an expression: `hidden: multiple_of(8/3 * d_model, 256)`",
    },
    Note {
        within: "",
        names: "num_key_value_groups",
        says: "`kv_heads` is the number of heads of keys and values: `heads` divided by this number",
    },
];

static BY_NAME: LazyLock<Index<&Note>> =
    LazyLock::new(|| Index::of(NOTES.iter().map(|note| (note.names, note))));

/// What to know about a word of another tool that was asked for alone, without a place in a spec. The answer therefore
/// names the map or the slot to which it belongs.
pub fn anywhere(word: &str) -> Option<String> {
    let note = BY_NAME.of_word(word).first()?;
    Some(match note.within.split_ascii_whitespace().next() {
        None => note.says.to_owned(),
        Some(title) => format!("this goes into `{title}`: {}", note.says),
    })
}

/// What to know about a key of another tool, in a map of this title.
pub fn note(within: &str, key: &str) -> Option<String> {
    let is_here = |note: &&&Note| {
        note.within.is_empty() || note.within.split_ascii_whitespace().any(|title| title == within)
    };
    BY_NAME.of_word(key).iter().find(is_here).map(|note| note.says.to_owned())
}

/// What is meant by a value that a key for a number cannot have: the key, the values with spaces between them, and what to
/// write.
const VALUES: &[(&str, &str, &str)] = &[
    ("layers", "0", "leave out a stack without layers, or write `layers: 1`"),
    ("kv_heads", "0", "`kv_heads: 1` is multi-query attention; without the key there are as many as `heads`"),
    ("share", "0 all true yes on full", "`share: 1` gives all layers the same parameters"),
    ("share", "none false no off", "remove `share`: without it, each layer has parameters of its own"),
];

/// What to know about a value that a key for a number cannot have.
pub fn value(key: &str, text: &str) -> Option<&'static str> {
    let has = |values: &str| values.split_ascii_whitespace().any(|value| value == text);
    VALUES.iter().find(|(name, values, _)| *name == key && has(values)).map(|(.., says)| *says)
}
