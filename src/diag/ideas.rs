//! Known ideas that lie outside the language: a word from a paper or another library → what trafoc has
//! instead.
//!
//! A row is an idea: the words people use for it, what it is called in a sentence, and what comes nearest. A
//! word that the language knows has no row; a test checks that.

use super::foreign::is_same;

/// An idea that no spec and no recipe can express.
#[derive(Clone, Copy, Debug)]
pub struct Idea {
    /// The words people use for it, with spaces between them.
    pub names: &'static str,
    /// What trafoc does not have, after "trafoc has".
    pub lacks: &'static str,
    /// What comes nearest to it.
    pub nearest: &'static str,
}

/// The ideas that messages and `explain` recognise. A word belongs to one of them at most.
pub const IDEAS: &[Idea] = &[
    Idea {
        names: "mup mu_transfer maximal_update maximal_update_parametrization",
        lacks: "no key that sets initial values and learning rates by the width",
        nearest: "`rates` of the optimizer and `init.rules`, by path, and `scale` of attention and of the head",
    },
    Idea {
        names: "swin swin_transformer convnext pvt hierarchical_vit",
        lacks: "no image model whose resolution falls from stage to stage",
        nearest: "`trafoc new vit`",
    },
    Idea {
        names: "ple per_layer_embedding per_layer_embeddings altup laurel matformer",
        lacks: "no embeddings of tokens for every layer, and no residual stream of several widths",
        nearest: "a part of your own that the block's equation adds, `x = x + mine(norm(x))`",
    },
    Idea {
        names: "cla cross_layer_attention yoco kv_sharing shared_kv_cache",
        lacks: "no keys and values of one layer in another",
        nearest: "`kv_heads`, `latent` and `window`, which make the cache smaller, and `share`, with which layers have the \
                  same parameters",
    },
    Idea {
        names: "blt byte_latent byte_latent_transformer megabyte hnet",
        lacks: "no groups of bytes that depend on the text",
        nearest: "`tokens: bytes` in the recipe",
    },
    Idea {
        names: "kda kimi_linear kimi_delta_attention",
        lacks: "no delta rule of this name, with a decay for every feature",
        nearest: "`gated_deltanet` of the library, with a decay for every head, and `recurrence(q, k, v, decay, beta)` in a \
                  part of your own",
    },
    Idea {
        names: "engram n_gram_embedding over_encoding",
        lacks: "no table that is looked up by several tokens together",
        nearest: "`embedding(x, rows, size)` and `shift(x, 1)` in a part of your own",
    },
    Idea {
        names: "titans ttt test_time_training neural_memory atlas",
        lacks: "no parameters that change while a text is read",
        nearest: "`gated_deltanet` of the library, whose state every key corrects",
    },
    Idea {
        names: "griffin hawk rg_lru",
        lacks: "no part of this name",
        nearest: "`trafoc import` of a RecurrentGemma directory, whose spec has it as a part, and `recurrence(q, k, v, decay)`",
    },
    Idea {
        names: "wsd warmup_stable_decay trapezoidal one_cycle cyclic cosine_with_restarts polynomial \
                reduce_on_plateau",
        lacks: "no schedule of this name",
        nearest: "`constant`, `linear`, `cosine`, `noam` and `inverse_sqrt`, each with a `warmup`",
    },
    Idea {
        names: "deepnorm",
        lacks: "no wiring of this name",
        nearest: "the block's equation, `x = norm(2.2 * x + attention(x))`, and `init.rules` for its initial values",
    },
    Idea {
        names: "ngpt normalized_transformer",
        lacks: "no weights that are normalised after every step",
        nearest: "`normalize(x)` in a part of your own, and `qk_norm`",
    },
    Idea {
        names: "ssmax scalable_softmax stickbreaking stick_breaking_attention forgetting_transformer \
                forgetting_attention selective_attention",
        lacks: "no attention of this name",
        nearest: "`scores(q, k)`, `softmax(x)` and `weigh(w, v)` in a part of your own, with `cumsum(x)` and `of_keys(x)`",
    },
    Idea {
        names: "2d_rope rope_2d axial_rope axial axial_positions",
        lacks: "no positions in two dimensions",
        nearest: "`learned` positions, one for every patch",
    },
    Idea {
        names: "fnet fourier fft mlp_mixer mixer gmlp",
        lacks: "no mixing of all positions without attention or a state",
        nearest: "`conv1d(x, 4)` in a part of your own, over the last positions",
    },
    Idea {
        names: "colbert late_interaction matryoshka mrl splade",
        lacks: "no vectors of single tokens or of several sizes for one text",
        nearest: "`head: {embed: {pool: mean}}`, one vector for a text",
    },
    Idea {
        names: "qk_clip muonclip",
        lacks: "no clipping of weights",
        nearest: "`qk_norm`, `clip` and `softcap` of attention, which bound its scores",
    },
    Idea {
        names: "onnx onnxruntime tensorrt coreml openvino torchscript tflite jax flax tensorflow keras mlx",
        lacks: "no target of this name",
        nearest: "`trafoc build --target pytorch` and `--target rust`, and `trafoc export`",
    },
    Idea {
        names: "relu6 leaky_relu prelu elu selu celu mish hardswish softsign",
        lacks: "no activation of this name",
        nearest: "a part of your own, such as `x * tanh(softplus(x))`; `trafoc explain activation` lists the words",
    },
    Idea {
        names: "ssm s4 s5 h3 state_space selective_scan jamba zamba samba hymba",
        lacks: "no state-space layer of this name",
        nearest: "`mamba` and `mamba2` of the library, and `recurrence(q, k, v, decay)` in a part of your own",
    },
    Idea {
        names: "rwkv retnet retention linear_attention gla deltanet delta_net performer linformer \
                lightning_attention",
        lacks: "no linear attention of this name",
        nearest: "`gated_linear_attention` and `gated_deltanet` of the library, and `recurrence(q, k, v, decay)` in a part \
                  of your own",
    },
    Idea {
        names: "lstm gru rnn xlstm recurrent bilstm",
        lacks: "no recurrent layer whose state passes through an activation",
        nearest: "`recurrence(q, k, v, decay)` in a part of your own, which is linear in its state",
    },
    Idea {
        names: "minlstm mingru lru s4d hgrn hgrn2",
        lacks: "no recurrent layer of this name",
        nearest: "`recurrence(q, k, v, decay)` in a part of your own, with a head for each feature: `split(x, d_model)`",
    },
    Idea {
        names: "transpose swapaxes permute rearrange",
        lacks: "no word that exchanges axes",
        nearest: "`of_keys(x)`, which turns a number of each position into one of each key, and `einsum`",
    },
    Idea {
        names: "reshape view unflatten flatten unbind",
        lacks: "no word that permutes axes freely",
        nearest: "`split(x, heads)` and `merge(x)` for heads, and `slice(x, start, size)` and `concat(x, y)` for features",
    },
    Idea {
        names: "matmul bmm baddbmm",
        lacks: "no word of that name for products",
        nearest: "`einsum(\"btd,de->bte\", x, w)`, `scores(q, k)` and `weigh(w, v)` in a part of your own",
    },
    Idea {
        names: "gather index_select take roll flip where",
        lacks: "no word that reads any position",
        nearest: "`shift(x, 1)`, `slice(x, 0, 8)`, and `relative` and `at_keys` for numbers of queries and keys",
    },
    Idea {
        names: "maximum minimum",
        lacks: "no word for the larger of two tensors",
        nearest: "`y + relu(x - y)`",
    },
    Idea {
        names: "householder path_attention rwkv7 rwkv_7 goose deltaproduct delta_product",
        lacks: "no state that is multiplied by more than a decay and one delta rule",
        nearest: "`recurrence(q, k, v, decay, beta)` in a part of your own",
    },
    Idea {
        names: "conv conv2d convolution convnet cnn conformer hyena resnet",
        lacks: "no convolution except over the last positions and over the patches of an image",
        nearest: "`conv1d(x, 4)` in a part of your own, and `embed: {patches: {size: 16}}`",
    },
    Idea {
        names: "mtp multi_token_prediction multi_token medusa eagle n_future_tokens",
        lacks: "no head that predicts several next tokens",
        nearest: "`head: lm`, which predicts one",
    },
    Idea {
        names: "qlora dora adalora vera adapters peft prefix_tuning prompt_tuning ia3",
        lacks: "no adapters except low-rank changes of projections",
        nearest: "`adapt: {lora: {on: [\"*.query\"]}}` in the recipe, or `freeze: [...]`",
    },
    Idea {
        names: "gptq awq bitsandbytes quantization quantize int4 int8 fp8 nf4 gguf",
        lacks: "no quantised weights in files",
        nearest: "`--weights-dtype int8` and `int4` of `run` and `generate`, which pack weights in memory",
    },
    Idea {
        names: "flash_attention flash_attn flash sdpa xformers paged_attention attn_implementation",
        lacks: "no key for how attention is computed: that changes no number, and the device decides it",
        nearest: "`trafoc doctor`, which lists the devices",
    },
    Idea {
        names: "diffusion ddpm unet dit vae gan autoencoder vqvae flow_matching",
        lacks: "no generative image model",
        nearest: "`trafoc new vit`, which classifies images",
    },
    Idea {
        names: "clip_model siglip two_tower",
        lacks: "no pair of models that are trained against each other",
        nearest: "`head: {embed: {pool: mean}}`, which gives one vector for a text or an image",
    },
    Idea {
        names: "batch_norm batchnorm group_norm groupnorm instance_norm weight_norm",
        lacks: "no norm over a batch or over groups",
        nearest: "`layer_norm` and `rms_norm`, which normalise each position",
    },
    Idea {
        names: "deepspeed fsdp fsdp2 ddp zero zero3 tensor_parallel pipeline_parallel megatron",
        lacks: "no built-in trainer for several devices",
        nearest: "`trafoc build SPEC --target pytorch --recipe RECIPE --out DIR`, which writes a project for \
                  torchrun with FSDP2 or DDP",
    },
    Idea {
        names: "rlhf dpo ppo grpo orpo kto reward_model reinforce",
        lacks: "no training by preferences or rewards",
        nearest: "training on texts with `head: lm`, or on scores with `head: classify`",
    },
    Idea {
        names: "bigbird longformer sparse_attention dilated_attention global_attention reformer \
                lsh_attention native_sparse_attention nsa moba mixture_of_block_attention dsa deepseek_sparse_attention",
        lacks: "no mask with chosen or random keys",
        nearest: "`mask: [{window: 512}, {prefix: 1}]`, and layers that see everything in between",
    },
    Idea {
        names: "transformer_xl memory_tokens compressive recurrent_memory infini_attention",
        lacks: "no memory that is kept between texts",
        nearest: "an encoder whose output the decoder attends to, `cross(x, memory)`",
    },
    Idea {
        names: "perceiver q_former resampler latent_queries",
        lacks: "no layer that reads a text into a fixed number of vectors",
        nearest: "an encoder whose output the decoder attends to, `cross(x, memory)`",
    },
    Idea {
        names: "hyper_connections mhc value_residual denseformer u_net_skip",
        lacks: "no residual stream of several lanes, and no value of one layer in another",
        nearest: "the block's equation, which may add and scale any values of its own layer",
    },
    Idea {
        names: "mixture_of_depths mod mixture_of_recursions mor early_exit layer_drop encoder_layerdrop decoder_layerdrop stochastic_depth drop_path \
                drop_path_rate",
        lacks: "no layers that are skipped for some inputs",
        nearest: "`dropout` of attention and feed-forward outputs, and `share`, which applies a block several times",
    },
    Idea {
        names: "expert_choice soft_moe",
        lacks: "no routing that compares the tokens of a batch",
        nearest: "`ffn: {moe: {experts: 8, top_k: 2}}`, and `experts(part(x), w, k)` in a part with weights of your own",
    },
    Idea {
        names: "aux_loss load_balancing_loss router_aux_loss router_z_loss auxiliary_loss",
        lacks: "no loss of that name",
        nearest: "`balance` and `z_loss` of `moe`, and `with_loss(y, x, weight: 0.01)` in a part",
    },
    Idea {
        names: "xpos cope fire kerple shaw relative_shaw disentangled deberta mrope",
        lacks: "no positions of that name",
        nearest: "`rotary`, `alibi` and `t5`, which all act on distances, and `relative(x, center)` in a part of your own",
    },
    Idea {
        names: "kan maxout butterfly monarch product_key product_keys pkm peer",
        lacks: "no feed-forward part of that kind",
        nearest: "`ffn: {glu: {...}}`",
    },
    Idea {
        names: "whisper whisper_conv wav2vec audio speech mel spectrogram video llava multimodal",
        lacks: "no input except tokens or one image",
        nearest: "`trafoc new t5` for texts and `trafoc new vit` for images",
    },
    Idea {
        names: "lion adafactor shampoo soap sophia lamb adagrad rmsprop lbfgs prodigy schedule_free adamw_schedule_free galore",
        lacks: "no such optimizer",
        nearest: "`adamw`, `adam`, `sgd` and `muon`",
    },
    Idea {
        names: "focal_loss ctc triplet mse regression distillation distill huber",
        lacks: "no other loss than cross-entropy",
        nearest: "`head: {classify: {...}}`, and `label_smoothing` in the recipe",
    },
    Idea {
        names: "speculative speculative_decoding draft_model lookahead_decoding",
        lacks: "no decoding with a second, smaller model",
        nearest: "`trafoc generate`, which keeps keys and values between steps",
    },
    Idea {
        names: "unigram tiktoken sentencepiece spm",
        lacks: "no way to train such tokens",
        nearest: "`tokens: {bpe: {...}}` in the recipe, or `file` with a `tokenizer.json` there",
    },
    Idea {
        names: "wandb tensorboard mlflow neptune comet",
        lacks: "no upload of metrics",
        nearest: "`metrics.jsonl` in the folder of a run, with one line of JSON for each evaluation",
    },
];

/// Where a word was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// As a word or a question on the command line.
    Command,
    /// As a key of a recipe.
    Recipe,
    /// As a call in an equation.
    Call,
    /// As another key or value of a spec or a recipe.
    Value,
}

/// Words that are ordinary ones, too, each with where they mean their idea: `zero` as an initial value has nothing to do
/// with several devices.
pub const ORDINARY: &[(&str, &[Met])] = &[
    ("zero", &[Met::Command, Met::Recipe]),
    (
        "transpose swapaxes permute rearrange reshape view unflatten flatten unbind matmul bmm baddbmm gather index_select take \
         roll flip where maximum minimum",
        &[Met::Command, Met::Call],
    ),
];

/// A word of another tool that is no key here: what is done instead, or what is near to it but takes other values.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The title of the map in which it is said; empty if it is in every one.
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
        names: "output_dir out_dir save_dir checkpoint_dir run_dir",
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
        names: "eval_strategy evaluation_strategy save_strategy logging_strategy",
        says: "`evaluate.every` and `checkpoint.every` are numbers of steps",
    },
    Note {
        within: "adamw",
        names: "momentum",
        says: "the first of `betas` is the momentum: `betas: [0.9, 0.999]`",
    },
    Note {
        within: "adam",
        names: "momentum",
        says: "the first of `betas` is the momentum: `betas: [0.9, 0.999]`",
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
        says: "`dropout` is a key of `embed`, of `attention`, where it may be `{weights: ..., out: ...}`, and of `ffn`",
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
        names: "model_type architectures transformers_version auto_map name_or_path is_decoder is_encoder_decoder \
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
        names: "loss loss_fn loss_function loss_type criterion",
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
        says: "an expert of `moe` takes every token that chooses it, so none is left out",
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

/// What to know about a key of another tool, in a map of this title.
pub fn note(within: &str, key: &str) -> Option<String> {
    let is_here = |note: &&Note| note.within.is_empty() || note.within == within;
    let named = |note: &&Note| note.names.split_ascii_whitespace().any(|name| is_same(name, key));
    NOTES.iter().filter(is_here).find(named).map(|note| note.says.to_owned())
}

/// The idea that people call by this word, in any case and with `-`, `_` or a space between its parts.
pub fn idea(word: &str) -> Option<&'static Idea> {
    // Whole words only: a near one may well be a misspelt word of the language.
    IDEAS.iter().find(|idea| idea.names.split_ascii_whitespace().any(|name| is_same(name, word)))
}

/// For a word that is an idea outside the language where it was met: that it is, and what comes nearest.
pub fn outside(word: &str, met: Met) -> Option<String> {
    let named = |names: &str| names.split_ascii_whitespace().any(|name| is_same(name, word));
    let is_meant = ORDINARY.iter().all(|(names, places)| places.contains(&met) || !named(names));
    idea(word)
        .filter(|_| is_meant)
        .map(|idea| format!("trafoc has {}; nearest: {}", idea.lacks, idea.nearest))
}
