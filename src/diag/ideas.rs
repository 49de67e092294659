//! Known ideas that lie outside the language: a word from a paper or another library → what trafoc has
//! instead.
//!
//! A row is an idea: the words people use for it, what it is called in a sentence, and what comes nearest. A
//! word that the language knows has no row; a test checks that.

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
        names: "ssm s4 s5 h3 state_space selective_scan jamba zamba",
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
        names: "minlstm mingru ema lru s4d",
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
        lacks: "no word that changes axes at will",
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
        lacks: "no convolution but over the last positions, and the one that cuts an image into patches",
        nearest: "`conv1d(x, 4)` in a part of your own, and `embed: {patches: {size: 16}}`",
    },
    Idea {
        names: "mtp multi_token_prediction multi_token medusa eagle n_future_tokens",
        lacks: "no head that predicts several next tokens",
        nearest: "`head: lm`, which predicts one",
    },
    Idea {
        names: "qlora dora adapters peft prefix_tuning prompt_tuning ia3",
        lacks: "no adapters but low-rank changes of projections",
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
        lacks: "no trainer of its own for several devices",
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
                lsh_attention native_sparse_attention nsa",
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
        names: "mixture_of_depths early_exit layer_drop layerdrop stochastic_depth drop_path",
        lacks: "no layers that are left out for some inputs",
        nearest: "`dropout` of attention and feed-forward outputs",
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
        names: "kan maxout butterfly monarch product_key pkm",
        lacks: "no feed-forward part of that kind",
        nearest: "`ffn: {glu: {...}}`",
    },
    Idea {
        names: "whisper wav2vec audio speech mel spectrogram video llava multimodal",
        lacks: "no input but tokens or one image",
        nearest: "`trafoc new t5` for texts and `trafoc new vit` for images",
    },
    Idea {
        names: "lion adafactor shampoo soap sophia lamb adagrad rmsprop lbfgs prodigy",
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
        names: "unigram tiktoken",
        lacks: "no such tokens of its own making",
        nearest: "`tokens: {bpe: {...}}` in the recipe, or `file` with a `tokenizer.json` there",
    },
    Idea {
        names: "wandb tensorboard mlflow neptune comet",
        lacks: "no upload of metrics",
        nearest: "`metrics.jsonl` in the folder of a run, with one line of JSON for each evaluation",
    },
];

/// The idea that people call by this word, in any case and with `-`, `_` or a space between its parts.
pub fn idea(word: &str) -> Option<&'static Idea> {
    // Whole words only: a near one may well be a misspelt word of the language.
    let plain = super::terms::plain(word);
    IDEAS.iter().find(|idea| idea.names.split(' ').any(|name| name == plain))
}

/// For a word that is an idea outside the language: that it is, and what comes nearest.
pub fn outside(word: &str) -> Option<String> {
    idea(word).map(|idea| format!("trafoc has {}; nearest: {}", idea.lacks, idea.nearest))
}
