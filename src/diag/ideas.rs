//! Known ideas that lie outside the language: a word from a paper or another library → what trafoc has
//! instead.
//!
//! A row is an idea: the words people use for it, what it is called in a sentence, and what comes nearest. A
//! word that the language knows has no row; a test checks that.

use std::sync::LazyLock;

use super::foreign::{Index, in_slot, is_same};

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

impl Idea {
    /// What trafoc does not have, and what comes nearest to it.
    pub fn advice(&self) -> String {
        format!("trafoc has {}; nearest: {}", self.lacks, self.nearest)
    }
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
        names: "2d_rope rope_2d rotary_2d 2d_rotary learned_2d 2d_learned sinusoidal_2d sincos2d axial_rope axial axial_positions 2d_position 2d_positions",
        lacks: "no positions in two dimensions",
        nearest: "`learned` positions, one for every patch",
    },
    Idea {
        names: "fnet fourier fft mlp_mixer mixer gmlp",
        lacks: "no mixing of all positions without attention or a state",
        nearest: "`conv1d(x, 4)` in a part of your own, over the last positions",
    },
    Idea {
        names: "fourier_position fourier_positions fourier_embedding fourier_encoding fourier_features random_fourier_features \
                nerf_encoding",
        lacks: "no positions of that name",
        nearest: "`sinusoidal`, which are sines and cosines of fixed frequencies",
    },
    Idea {
        names: "conditional_position conditional_positions conditional_embedding conditional_encoding cpe cpvt peg",
        lacks: "no positions that follow from the neighbours of a position",
        nearest: "`x + conv1d(x, 4)` in a part of your own, over the last positions",
    },
    Idea {
        names: "derf dynamic_erf",
        lacks: "no norm of this name",
        nearest: "`dynamic_tanh`, whose curve is much the same",
    },
    Idea {
        names: "adaln ada_ln adaln_zero adaptive_layer_norm adaptive_norm ada_norm adaptive_rms_norm conditional_layer_norm film",
        lacks: "no norm whose factors follow from a condition",
        nearest: "a part of your own, such as `layer_norm(x, affine: false) * (1 + linear(silu(x), d_model))`",
    },
    Idea {
        names: "l2_norm l2_normalization l2_normalisation unit_norm cosine_norm scale_norm scalenorm",
        lacks: "no norm of this name",
        nearest: "`rms_norm`, or a part of your own in its place, `normalize(x)`, which scales features to unit length",
    },
    Idea {
        names: "talking_heads attn_talking_heads attn_pre_talking_heads attn_post_talking_heads talking_heads_attention collaborative_heads",
        lacks: "no attention that mixes its heads",
        nearest: "`einsum(\"bhtk,hg->bgtk\", scores(q, k), param(4, 4))`, `softmax(x)` and `weigh(w, v)` in a part of your own",
    },
    Idea {
        names: "document_mask document_masking document_attention intra_document_mask intra_document_masking segment_mask \
                packed_sequences cu_seqlens varlen",
        lacks: "no mask that keeps several texts of one sequence apart",
        nearest: "one text for each example, as `format: lines` has, or `chunk`, whose chunks are all of one size",
    },
    Idea {
        names: "revnet reversible reversible_residual reversible_layers",
        lacks: "no layers whose inputs are computed from their outputs",
        nearest: "`recompute: blocks` in the recipe, which keeps as little of a block",
    },
    Idea {
        names: "normformer head_scale",
        lacks: "no wiring of this name",
        nearest: "`block: sandwich`, which has a norm before and after each part",
    },
    Idea {
        names: "fixup t_fixup small_init deepnet depth_scaled deepscale",
        lacks: "no initial values of this name",
        nearest: "`init.residual`, a factor on what is added to the residual stream, and `init.rules`, by path",
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
        names: "relu6 crelu rrelu gelu_sigmoid leaky_relu prelu elu selu celu mish hardswish softsign",
        lacks: "no activation of this name",
        nearest: "a part of your own, such as `x * tanh(softplus(x))`; `trafoc explain activation` lists the words",
    },
    Idea {
        names: "ssm s4 s5 h3 state_space selective_scan jamba zamba samba hymba",
        lacks: "no state-space layer of this name",
        nearest: "`mamba` and `mamba2` of the library, and `recurrence(q, k, v, decay)` in a part of your own",
    },
    Idea {
        names: "rwkv retnet retention linear_attention linear_transformer gla deltanet delta_net performer linformer \
                cosformer nystromformer nystrom_attention lightning_attention",
        lacks: "no linear attention of this name",
        nearest: "`gated_linear_attention` and `gated_deltanet` of the library, and `recurrence(q, k, v, decay)` in a part \
                  of your own",
    },
    Idea {
        names: "cosine_attention cosine_similarity_attention",
        lacks: "no attention whose scores are the cosines of angles",
        nearest: "`qk_norm`, and `normalize(x)`, `scores(q, k)`, `softmax(x)` and `weigh(w, v)` in a part of your own",
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
        lacks: "no adapters of this kind",
        nearest: "`adapt: {lora: {on: [\"*.query\"]}}` and `freeze: [...]` in the recipe, and `adapter` of the library in a \
                  block's equation",
    },
    Idea {
        names: "gptq awq smoothquant bitsandbytes quantization quantisation quantize quantise quantized quantised qat \
                quantization_aware_training quantisation_aware_training int4 int8 fp8 nf4 gguf",
        lacks: "no quantised weights in files or in training",
        nearest: "`--weights-dtype int8` and `int4` of `run`, `generate`, `predict` and `eval`, which pack weights in memory",
    },
    Idea {
        names: "flash_attention flash_attn attn_flash flash_attention_2 flash_attention_3 flash sdpa xformers paged_attention \
                ring_attention blockwise_parallel attn_implementation",
        lacks: "no key for how attention is computed: that changes no number, and the device decides it",
        nearest: "the same spec without this word; `trafoc doctor` lists the devices",
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
        names: "weight_norm spectral_norm",
        lacks: "no norm of weights",
        nearest: "`normalize(x)` in a part of your own, which scales features to unit length",
    },
    Idea {
        names: "batch_norm batchnorm power_norm group_norm groupnorm instance_norm",
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
        names: "rlhf dpo ppo grpo orpo kto reward reward_model reward_modeling reward_modelling reinforce preferences \
                preference_optimization",
        lacks: "no training by preferences or rewards",
        nearest: "training on texts with `head: lm`, or on scores with `head: classify`",
    },
    Idea {
        names: "bigbird longformer sparse_attention block_sparse_attention random_attention strided_attention dilated_attention sparse_topk attn_sparse_topk topk_attention \
                global_attention reformer lsh_attention native_sparse_attention nsa moba mixture_of_block_attention dsa deepseek_sparse_attention",
        lacks: "no mask with chosen or random keys",
        nearest: "`mask: [{window: 512}, {prefix: 1}]`, and layers that see everything in between",
    },
    Idea {
        names: "transformer_xl xlnet memory_tokens compressive recurrent_memory infini_attention",
        lacks: "no memory that is kept between texts",
        nearest: "an encoder whose output the decoder attends to, `cross(x, memory)`",
    },
    Idea {
        names: "perceiver q_former resampler latent_queries",
        lacks: "no layer that reads a text into a fixed number of vectors",
        nearest: "an encoder whose output the decoder attends to, `cross(x, memory)`",
    },
    Idea {
        names: "resi_dual residual_dual hyper_connections mhc value_residual denseformer u_net_skip",
        lacks: "no residual stream of several lanes, and no value of one layer in another",
        nearest: "the block's equation, which may add and scale any values of its own layer",
    },
    Idea {
        names: "layer_dropout mixture_of_depths mod mixture_of_recursions mor early_exit layer_drop encoder_layerdrop decoder_layerdrop stochastic_depth drop_path \
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
        names: "xpos cope contextual_position contextual_positions dynamic_position_bias data_dependent_alibi fire kerple shaw relative_shaw disentangled deberta mrope",
        lacks: "no positions of that name",
        nearest: "`rotary`, `alibi` and `t5`, which all act on distances, and `relative(x, center)` in a part of your own",
    },
    Idea {
        names: "kan maxout butterfly monarch product_key product_keys pkm peer",
        lacks: "no feed-forward part of that kind",
        nearest: "`ffn: {glu: {...}}`",
    },
    Idea {
        names: "whisper whisper_conv wav2vec wav2vec2 hubert audio speech mel spectrogram video llava blip blip2 flamingo multimodal",
        lacks: "no input except tokens or one image",
        nearest: "`trafoc new t5` for texts and `trafoc new vit` for images",
    },
    Idea {
        names: "amsgrad",
        lacks: "no Adam that keeps the largest second moments",
        nearest: "`adamw` and `adam`",
    },
    Idea {
        names: "lion adafactor shampoo soap sophia lamb adagrad rmsprop lbfgs prodigy schedule_free adamw_schedule_free galore",
        lacks: "no such optimizer",
        nearest: "`adamw`, `adam`, `sgd` and `muon`",
    },
    Idea {
        names: "focal_loss triplet mse regression distillation distill huber",
        lacks: "no other loss than cross-entropy",
        nearest: "`head: {classify: {...}}`, and `label_smoothing` in the recipe",
    },
    Idea {
        names: "ctc transducer rnnt rnn_t rnn_transducer",
        lacks: "no loss over all ways of aligning a long input with a short output",
        nearest: "`head: translate`, whose decoder attends to the encoder",
    },
    Idea {
        names: "crf conditional_random_field conditional_random_fields viterbi",
        lacks: "no head that scores whole sequences of classes",
        nearest: "`head: tag`, which decides each position by itself",
    },
    Idea {
        names: "rag retrieval retrieval_augmented retrieval_augmented_generation realm",
        lacks: "no search for texts that belong to a prompt",
        nearest: "`head: embed`, whose vectors another program can search, and `trafoc generate` with what it finds in the \
                  prompt",
    },
    Idea {
        names: "fim fill_in_the_middle infilling",
        lacks: "no data in which the middle of a text comes last",
        nearest: "texts that are rearranged beforehand, with `format: lines` and `head: lm`",
    },
    Idea {
        names: "ul2 mixture_of_denoisers span_corruption text_infilling denoising",
        lacks: "no training that restores spans which were taken out of a text",
        nearest: "`format: pairs` of such texts and their spans, made beforehand, and `head: mlm` with `masking`",
    },
    Idea {
        names: "nsp next_sentence next_sentence_prediction sop sentence_order_prediction",
        lacks: "no data that asks whether one text follows another",
        nearest: "`head: classify` with the columns `text` and `second` of `format: {table: {...}}`, made beforehand",
    },
    Idea {
        names: "multiple_choice swag",
        lacks: "no head that chooses among several texts",
        nearest: "`head: classify` with the columns `text` and `second` of `format: {table: {...}}`, a text for each line",
    },
    Idea {
        names: "num_memory_kv num_mem_kv attn_num_mem_kv add_bias_kv add_zero_attn num_memory_tokens persistent_memory \
                persistent_memory_attention",
        lacks: "no learned keys and values besides those of the text",
        nearest: "`sinks` of attention, a learned score for each head that takes a share of the weights",
    },
    Idea {
        names: "rtd replaced_token_detection",
        lacks: "no training in which one model detects the tokens that another one has replaced",
        nearest: "`head: mlm` with `masking`, and `trafoc import` of an ELECTRA directory",
    },
    Idea {
        names: "curriculum curriculum_learning",
        lacks: "no order of examples from easy to hard",
        nearest: "several runs, each with `start: {from: RUN}` and other `data` in its recipe",
    },
    Idea {
        names: "packing sequence_packing example_packing",
        lacks: "no sequence with several examples in it",
        nearest: "`format: text`, whose pieces are all as long as the context, and `batch: {bucket: 8}`, which puts examples of \
                  similar length together",
    },
    Idea {
        names: "pruning prune sparsity sparsegpt wanda magnitude_pruning weight_pruning head_pruning lottery_ticket",
        lacks: "no way to remove weights from a trained model",
        nearest: "a spec with fewer `layers` or `heads`, and `--weights-dtype int4`, which makes weights smaller in memory",
    },
    Idea {
        names: "continuous_batching dynamic_batching server serving inference_server vllm tgi",
        lacks: "no server that answers requests",
        nearest: "`trafoc generate --prompts FILE`, and `trafoc export`, which writes a Hugging Face directory for one",
    },
    Idea {
        names: "hash_layers hash_layer hash_routing",
        lacks: "no experts that the number of a token chooses",
        nearest: "`ffn: {moe: {...}}`, whose router chooses them by the position's vector",
    },
    Idea {
        names: "vq vector_quantization vector_quantisation rvq",
        lacks: "no layer that replaces a vector by the nearest one of a table",
        nearest: "`head: lm` over tokens that another program has made of images or sounds",
    },
    Idea {
        names: "gnn graph_transformer graph_transformers graphormer graph_neural_network graph_attention",
        lacks: "no input with edges between its positions",
        nearest: "`mask` and `position`, which depend on the order of the tokens, and scores of your own with `relative(x, \
                  center)`",
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
    // In a document, these are rather slips of `tag`, `dim`, `stop`, `std` and `padding`.
    ("rag fim sop rtd packing", &[Met::Command]),
    // A key of a row of `weights`.
    ("transpose", &[Met::Call]),
    (
        "swapaxes permute rearrange reshape view unflatten flatten unbind matmul bmm baddbmm gather index_select take \
         roll flip where maximum minimum",
        &[Met::Command, Met::Call],
    ),
];

static BY_NAME: LazyLock<Index<&Idea>> =
    LazyLock::new(|| Index::of(IDEAS.iter().map(|idea| (idea.names, idea))));

/// The idea that people call by this word, in any case and with `-`, `_` or a space between its parts.
pub fn idea(word: &str) -> Option<&'static Idea> {
    // Whole words only: a near one may well be a misspelt word of the language.
    BY_NAME.of_word(word).first().copied()
}

/// For a word that is an idea outside the language where it was met: that it is, and what comes nearest.
pub fn outside(word: &str, met: Met) -> Option<String> {
    let named = |names: &str| names.split_ascii_whitespace().any(|name| is_same(name, word));
    let is_meant = || ORDINARY.iter().all(|(names, places)| places.contains(&met) || !named(names));
    idea(word).filter(|_| is_meant()).map(Idea::advice)
}

/// What [`outside`] says of a word in a slot, with the name of the slot after it or without it: of `linear` in the slot
/// `attention` what is said of linear attention. What the words mean together is surer than what one of them means: of
/// `fourier` in the slot `position` what is said of Fourier positions.
pub fn within(word: &str, slot: &str, met: Met) -> Option<String> {
    let (with, rest): (Vec<String>, Vec<String>) =
        in_slot(word, slot).partition(|looked_up| looked_up.len() > word.len());
    with.into_iter().chain(rest).find_map(|word| outside(&word, met))
}
