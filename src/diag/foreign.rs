//! Words of other libraries and papers, each with the word of a spec or a recipe. They are not accepted, only
//! recognised.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A word of trafoc, and what other libraries and papers call the same, with spaces between their words. A word
/// of theirs may be in several rows: a map takes the first of which it has the key, and where no map is known,
/// the first row counts. A word whose value means something else here has no row: [`NOTES`] says the difference.
///
/// [`NOTES`]: super::notes::NOTES
pub const FOREIGN: &[(&str, &str)] = &[
    (
        "d_model",
        "hidden_size hidden_dim n_embd n_embed d_embed embed_dim embedding_dim embedding_size embedding_length \
         model_dim dim_model dim width hid_dim hidden_units hidden emb_dim emb_size embed_size d_embedding model_width residual_dim",
    ),
    ("encoder.attention.heads", "encoder_attention_heads"),
    ("decoder.attention.heads", "decoder_attention_heads"),
    (
        "heads",
        "n_head n_heads num_heads num_attention_heads attention_heads nhead query_heads q_heads n_q_heads \
         num_query_heads n_query_heads decoder_attention_heads encoder_attention_heads n_attn_heads num_attn_heads",
    ),
    (
        "kv_heads",
        "n_kv_heads n_kv_head n_head_kv num_kv_heads num_key_value_heads key_value_heads head_count_kv kv_groups \
         num_kv_groups num_query_groups n_query_groups multi_query_group_num attn_kv_heads gqa mqa grouped_query \
         grouped_query_attention grouped grouped_attention multi_query multi_query_attention n_kv num_kv",
    ),
    ("multi_head", "mha multi_headed_attention multihead_attention multi_head_attention"),
    ("latent", "mla multi_head_latent_attention latent_attention"),
    ("kv_rank", "kv_lora_rank kv_lora latent_dim kv_latent_dim"),
    ("query_rank", "q_lora_rank query_lora_rank q_rank"),
    ("rotary_dim", "qk_rope_head_dim rope_head_dim rope_dim"),
    ("content_dim", "qk_nope_head_dim nope_head_dim nope_dim"),
    ("value_dim", "v_head_dim value_head_dim v_dim d_v value_length"),
    (
        "head_dim",
        "head_size dim_head d_head d_k d_kv d_qk kv_channels size_per_head attention_head_size key_length \
         head_width dim_per_head attn_dim_head",
    ),
    (
        "layers",
        "n_layer n_layers num_layers num_hidden_layers layer_count depth n_block n_blocks num_blocks block_count",
    ),
    ("encoder.layers", "num_encoder_layers encoder_layers"),
    ("decoder.layers", "num_decoder_layers decoder_layers"),
    ("pattern", "layer_types layer_pattern"),
    (
        "share",
        "cross_layer_sharing cross_layer_parameter_sharing layer_sharing parameter_sharing universal_transformer \
         looped looped_transformer share_layers shared_layers share_weights share_parameters",
    ),
    ("encoder.ffn.hidden", "encoder_ffn_dim"),
    ("decoder.ffn.hidden", "decoder_ffn_dim"),
    ("expert.hidden", "moe_intermediate_size moe_ffn_hidden_size"),
    (
        "ffn.hidden",
        "intermediate_size intermediate_dim ffn_dim d_ff d_inner inner_dim dim_feedforward n_inner mlp_dim \
         mlp_hidden mlp_hidden_size mlp_hidden_dim ff_dim ffn_hidden ffn_hidden_size hidden_features \
         feed_forward_length filter_size dim_ff ff_size ffn_size mlp_size mlp_width feedforward_dim feed_forward_dim ff_hidden ffn_inner_dim dense",
    ),
    // Within a feed-forward part there is no other width that these could mean.
    (
        "hidden",
        "hidden_size hidden_dim intermediate_size intermediate_dim ffn_dim d_ff d_inner inner_dim \
         dim_feedforward n_inner mlp_dim mlp_hidden mlp_hidden_size mlp_hidden_dim ff_dim ffn_hidden \
         ffn_hidden_size hidden_features moe_intermediate_size feed_forward_length filter_size encoder_ffn_dim \
         decoder_ffn_dim dim_ff ff_size hidden_dims hidden_units ffn_size mlp_size mlp_width feedforward_dim feed_forward_dim ff_hidden ffn_inner_dim dense units",
    ),
    ("ffn", "feed_forward feedforward feed_forward_network positionwise_feed_forward mlp"),
    ("expansion", "mlp_ratio expansion_factor expansion_ratio ff_mult ffn_mult mult multiplier ratio"),
    ("norm", "norm_type layer_norm_type normalization norm_layer norm_class_name normalisation"),
    ("rms_norm.eps", "rms_norm_eps rmsnorm_eps"),
    (
        "eps",
        "rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon variance_epsilon epsilon adam_epsilon adam_eps ln_eps layernorm_eps rmsnorm_eps",
    ),
    ("theta", "rope_theta rotary_theta rotary_base rope_base rope_freq_base freq_base rotary_emb_base base"),
    (
        "fraction",
        "rotary_pct rotary_percent rotary_percentage rope_pct rotary_fraction partial_rotary_factor partial_rope partial_rotary \
         partial",
    ),
    ("scaling", "rope_scaling rope_scaling_type"),
    ("half", "halve halved halves rotate_half"),
    ("interleaved", "interleave interleaving rotate_every_two"),
    ("dynamic", "ntk ntk_aware ntk_scaling dynamic_ntk ntk_aware_scaling"),
    (
        "context",
        "max_position_embeddings n_positions n_ctx block_size max_seq_len max_seq_length max_sequence_length \
         max_length max_len seq_length seq_len sequence_length context_length context_window ctx_len ctx context_size \
         max_context max_position sequence_len max_seqlen max_target_positions max_tokens max_seq seq seqlen",
    ),
    (
        "vocab",
        "vocab_size vocabulary vocabulary_size num_tokens num_embeddings n_vocab padded_vocab_size tgt_vocab_size trg_vocab_size \
         target_vocab_size decoder_vocab_size n_words voc_size vocab_length vocab_dim n_tokens",
    ),
    (
        "source_vocab",
        "src_vocab src_vocab_size source_vocab_size encoder_vocab_size input_vocab_size source_vocabulary",
    ),
    ("embed", "embedding embeddings input_embedding input_embeddings token_embedding token_embeddings"),
    ("embeddings", "embedding"),
    ("embed.segments", "type_vocab_size token_types num_token_types token_type_vocab_size n_segments"),
    ("segments", "type_vocab_size token_types num_token_types token_type_vocab_size n_segments"),
    ("embed.padding", "pad_token_id pad_id padding_idx pad_token padding_token pad_index"),
    ("padding", "pad_token_id pad_id padding_idx pad_token padding_token pad_index"),
    ("embed.scale", "embedding_multiplier"),
    ("embed.norm", "post_emb_norm emb_norm embed_norm embedding_norm"),
    ("embed.dropout", "embd_pdrop emb_pdrop emb_dropout embd_dropout embed_dropout embedding_dropout"),
    ("patches.size", "patch_size"),
    ("patches.image", "image_size img_size"),
    ("patches", "patch_embed patch_embedding"),
    ("channels", "in_chans in_channels num_channels input_channels"),
    ("class_token", "use_cls_token class_embedding"),
    ("registers", "register_tokens num_register_tokens reg_tokens"),
    ("distillation_token", "dist_token distill_token"),
    (
        "activation",
        "hidden_act hidden_activation activation_function activation_fn activation_type act_fn act nonlinearity",
    ),
    (
        "rms_norm",
        "rmsnorm rms rms_layer_norm rms_normalization root_mean_square t5_layer_norm llama_rms_norm mistral_rms_norm qwen2_rms_norm",
    ),
    ("layer_norm", "layernorm layer_normalization ln"),
    ("dynamic_tanh", "dyt"),
    ("glu", "swiglu geglu reglu gated_mlp gated_ffn gated gated_linear_unit gated_linear"),
    ("silu", "swish"),
    ("gelu_tanh", "gelu_new gelu_pytorch_tanh gelu_fast gelu_approx gelu_approximate approx_gelu tanh_gelu"),
    ("gelu", "gelu_erf exact_gelu gelu_exact"),
    ("quick_gelu", "quickgelu sigmoid_gelu"),
    ("relu2", "relu_squared squared_relu relu_sq sq_relu"),
    ("relu", "rectified_linear"),
    ("sigmoid", "logistic"),
    (
        "position",
        "position_embedding_type position_embeddings pos_encoding positional_embeddings pos_embed pos_embedding",
    ),
    ("rotary", "rope rotary_embedding rotary_position_embedding roformer"),
    ("sinusoidal", "sine sin fixed trigonometric"),
    ("learned", "absolute learnable"),
    ("alibi", "linear_bias linear_biases attention_linear_biases"),
    (
        "t5",
        "relative relative_position relative_positions relative_bias relative_position_bias relative_attention_bias t5_bias t5_relative_bias",
    ),
    ("buckets", "relative_attention_num_buckets"),
    ("max_distance", "relative_attention_max_distance"),
    ("pre_norm", "prenorm pre_ln pre_layer_norm pre norm_first"),
    ("post_norm", "postnorm post_ln post_layer_norm post"),
    ("sandwich", "peri_ln peri_layer_norm sandwich_norm sandwich_ln"),
    ("parallel", "use_parallel_residual parallel_residual parallel_attn parallel_block"),
    ("block", "wiring"),
    (
        "window",
        "sliding_window sliding_window_size window_size sliding_window_attention attention_window local_attention local_window swa local \
         sliding",
    ),
    ("attention.dropout.weights", "attn_pdrop attention_dropout attn_dropout attention_probs_dropout_prob"),
    ("inner_dropout", "activation_dropout act_dropout relu_dropout"),
    ("classify.dropout", "classifier_dropout classifier_dropout_prob"),
    ("attention.dropout.out", "hidden_dropout_prob hidden_dropout resid_pdrop residual_dropout"),
    ("ffn.dropout", "hidden_dropout_prob hidden_dropout resid_pdrop residual_dropout ff_dropout"),
    ("embed.dropout", "hidden_dropout_prob hidden_dropout"),
    ("dropout", "dropout_rate dropout_prob drop_rate p_drop"),
    ("attention.bias", "attention_bias attn_bias"),
    ("attention.bias.qkv", "qkv_bias"),
    ("ffn.bias", "mlp_bias ff_bias"),
    ("head.bias", "lm_head_bias output_bias"),
    ("bias", "attention_bias attn_bias use_bias"),
    ("attention", "attn self_attention self_attn mha multihead_attention multi_head_attention"),
    ("cross", "encoder_attn encoder_attention encoder_decoder_attention cross_attention cross_attn"),
    ("qk_norm", "qk_layer_norm qk_ln query_key_norm use_qk_norm attn_qk_norm norm_qk attention_layer_norm"),
    ("attention.scale", "attention_multiplier"),
    ("scale", "softmax_scale attn_scale attention_scale qk_scale scale_factor"),
    ("attention.clip", "clip_qkv"),
    ("sinks", "attention_sinks attention_sink attn_sinks attn_sink"),
    ("mask", "attn_mask attention_mask"),
    ("gate", "gated_attention output_gate attention_gate attention_output_gate attn_output_gate"),
    ("affine", "elementwise_affine"),
    ("unit_offset", "zero_centered zero_centred"),
    ("before_rotation", "pre_rotation"),
    ("after_rotation", "post_rotation"),
    ("interleaved", "gptj"),
    ("additive", "bahdanau"),
    (
        "softcap",
        "attn_logit_softcapping attention_logit_softcapping logit_softcap logit_cap softcapping logit_softcapping attn_softcap attention_softcap",
    ),
    ("head.softcap", "final_logit_softcapping"),
    (
        "differential_attention",
        "differential differential_transformer diff_attention diff_attn diff_transformer",
    ),
    ("short_convolution", "short_conv"),
    ("bidirectional", "full full_attention no_mask non_causal none"),
    ("none", "identity"),
    ("position.none", "nope no_position no_positions no_positional_encoding no_positional_embedding"),
    ("shift", "token_shift time_shift"),
    ("moe", "mixture_of_experts sparse_moe sparse_mixture_of_experts switch mixture"),
    (
        "experts",
        "num_experts n_experts n_expert num_local_experts n_routed_experts num_moe_experts moe_num_experts expert_count",
    ),
    (
        "top_k",
        "num_experts_per_tok num_experts_per_token experts_per_token num_selected_experts n_experts_used \
         expert_used_count moe_top_k router_top_k n_expert_per_token",
    ),
    ("moe.normalize", "norm_topk_prob"),
    ("moe.scale", "routed_scaling_factor"),
    ("moe.score", "scoring_func router router_type router_activation score_function"),
    ("score", "router router_type router_activation score_function"),
    ("loss", "val_loss eval_loss validation_loss"),
    ("groups.count", "n_group num_expert_group"),
    ("groups.keep", "topk_group n_limited_groups"),
    ("balance", "router_aux_loss_coef aux_loss_coef"),
    ("z_loss", "router_z_loss_coef z_loss_coef"),
    (
        "correction",
        "aux_free aux_loss_free aux_free_load_balancing aux_loss_free_load_balancing loss_free_balancing \
         e_score_correction_bias",
    ),
    ("moe.shared", "shared_expert shared_experts"),
    (
        "tied",
        "tie_word_embeddings tie_embeddings tie_embedding tie_weights embedding_tying tie_lm_head tie_head share_embeddings shared_embeddings",
    ),
    ("fixed_bias", "final_logits_bias"),
    ("final_norm", "ln_f norm_f final_ln ln_final final_layer_norm output_norm last_norm"),
    ("init", "initialization initialisation initializer initialiser init_fn init_method weight_init"),
    ("encoder", "transformer_encoder"),
    ("decoder", "transformer_decoder"),
    ("std", "initializer_range init_std"),
    ("normal", "gaussian randn"),
    ("truncated_normal", "trunc_normal truncated_gaussian"),
    ("xavier_uniform", "xavier glorot glorot_uniform"),
    ("xavier_normal", "glorot_normal"),
    ("kaiming_uniform", "kaiming he he_init he_uniform"),
    ("kaiming_normal", "he_normal"),
    ("head", "lm_head output_head task"),
    ("lm", "lm_head causal_lm language_model language_modeling language_modelling next_token"),
    ("mlm", "masked_lm masked_language_model masked_language_modeling masked_language_modelling"),
    ("translate", "seq2seq translation translator conditional_generation seq2seq_lm sequence_to_sequence"),
    (
        "classify",
        "classification classifier sequence_classification text_classification image_classification",
    ),
    (
        "tag",
        "token_classification ner named_entity_recognition sequence_labeling sequence_labelling pos_tagging",
    ),
    ("span", "qa question_answering extractive_qa extractive_question_answering"),
    ("classes", "num_labels num_classes n_classes class_count"),
    ("mean", "avg gap average_pooling mean_pooling average"),
    ("sweep", "variants variant presets"),
    ("sweep.grid", "grid"),
    ("extends", "inherit inherits"),
    ("optimizer", "optim optimiser optimizer_type optimizer_name"),
    ("start", "init_from from_pretrained model_name_or_path load_path load_from init_checkpoint"),
    ("masking.share", "mlm_probability masked_lm_prob mask_prob mask_probability mask_ratio masking_ratio"),
    ("lora.rank", "r lora_r lora_rank"),
    ("lora.alpha", "lora_alpha"),
    ("lora.dropout", "lora_dropout"),
    ("lora.on", "target_modules lora_target_modules"),
    ("learning_rate", "lr rate peak_lr base_lr max_lr init_lr"),
    ("betas", "momenta beta1 beta2 adam_beta1 adam_beta2"),
    ("weight_decay", "wd l2 decay_rate weight_decay_rate"),
    ("decay", "no_decay"),
    (
        "schedule",
        "scheduler lr_scheduler lr_scheduler_type lr_schedule lr_decay learning_rate_schedule learning_rate_scheduler",
    ),
    (
        "warmup",
        "warmup_steps warmup_iters num_warmup_steps learning_rate_warmup lr_warmup lr_warmup_steps lr_warmup_iters",
    ),
    (
        "batch.size",
        "batch_size train_batch_size max_batch_size per_device_train_batch_size bs minibatch minibatch_size micro_batch_size mini_batch_size per_device_batch_size device_train_microbatch_size",
    ),
    (
        "batch.accumulate",
        "gradient_accumulation_steps grad_accum gradient_accumulation grad_accumulation accumulation_steps",
    ),
    (
        "accumulate",
        "accumulation gradient_accumulation_steps gradient_accumulation grad_accum grad_accumulation accumulation_steps",
    ),
    ("recompute", "gradient_checkpointing activation_checkpointing"),
    ("bucket", "bucketing group_by_length"),
    (
        "steps",
        "max_steps num_steps iterations max_iters train_steps total_steps iters total_iters train_iters max_train_steps n_steps n_iters",
    ),
    ("epochs", "num_epochs num_train_epochs max_epochs total_epochs n_epochs nb_epochs"),
    (
        "clip",
        "max_grad_norm grad_clip gradient_clipping gradient_clip_val grad_norm_clip clip_grad_norm \
         clipping grad_norm clip_grad gradient_clip clip_norm",
    ),
    ("label_smoothing", "smoothing label_smoothing_factor"),
    ("seed", "random_seed random_state rng_seed data_seed manual_seed"),
    ("lower", "lowercase do_lower_case"),
    ("floor", "min_ratio min_lr_ratio"),
    ("inverse_sqrt", "inv_sqrt"),
    ("freeze", "frozen"),
    ("iterations", "ns_steps"),
    ("tokens", "tokenizer tokenization tokenisation"),
    ("characters", "chars char char_level character_level"),
    ("words", "word_level whitespace whitespace_split"),
    ("bpe", "byte_pair byte_pair_encoding"),
    ("wordpiece", "bert_tokenizer"),
    ("data", "dataset data_dir dataset_name"),
    ("data.train", "train_file train_data train_path training_file data_file data_path"),
    ("data.validation", "validation_file val_file valid_file dev_file eval_file"),
    ("train", "train_file train_data train_path training_file data_file data_path"),
    ("data.split", "validation_split val_split"),
    ("split", "validation_split val_split"),
    ("validation", "dev validation_file val_file valid_file dev_file eval_file"),
    ("table", "csv tsv dataframe jsonl json_lines"),
    ("comma", "csv"),
    ("tab", "tsv"),
    ("json", "jsonl"),
    ("pairs", "translation bitext parallel_text parallel_corpus"),
    ("text", "plain_text raw_text"),
    ("squad", "qa question_answering extractive_qa"),
    ("limit", "max_examples max_samples num_samples n_samples"),
    ("longest", "max_length max_len max_seq_length max_seq_len truncate_at max_tokens"),
    ("too_long", "truncation truncate"),
    ("cut", "truncate trunc trim"),
    ("unicode", "alphabetical alphabetic alphabet"),
    ("min_frequency", "min_freq min_count"),
    ("evaluate", "eval validation validate"),
    ("metrics", "compute_metrics"),
    ("perplexity", "ppl"),
    ("bits_per_character", "bpc"),
    ("exact_match", "em"),
    ("checkpoint", "ckpt"),
    ("checkpoint.keep", "save_total_limit max_to_keep"),
    ("keep", "save_total_limit max_to_keep"),
    (
        "checkpoint.every",
        "save_steps save_interval save_every save_freq checkpoint_every checkpoint_interval",
    ),
    (
        "evaluate.every",
        "eval_steps eval_interval eval_every eval_freq evaluation_steps validate_every val_check_interval",
    ),
    ("every", "save_steps save_interval eval_steps eval_interval save_every save_freq eval_every eval_freq"),
    ("stop.patience", "early_stopping_patience"),
    ("average", "avg swa checkpoint_averaging weight_averaging"),
    ("stop", "early_stopping early_stop"),
    // Each language has a key of its own for its version; the first is meant where neither is known.
    ("trafo", "version"),
    ("recipe", "version"),
];

/// The letters of a word without case and without the signs between its parts.
fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase())
}

/// Whether two words differ in nothing but case and the signs between their parts: command lines and papers
/// write `hidden-size`, classes in Python `RMSNorm`, and PyTorch `normal_`.
pub fn is_same(word: &str, other: &str) -> bool {
    letters(word).eq(letters(other))
}

/// What people also write after the name of what goes into a slot.
const ENDINGS: &[(&str, &[&str])] = &[
    ("mask", &["attention"]),
    ("norm", &["normalization", "normalisation"]),
    ("position", &["positions", "embedding", "encoding"]),
    ("ffn", &["mlp"]),
    ("expert", &["ffn", "mlp"]),
];

/// The words to look up for a name in a slot: the name as it is, the name without the slot's word at its end, and the name
/// followed by the slot's word. So `linear` in the slot `attention` is also looked up as `linear_attention`.
pub fn in_slot(name: &str, slot: &str) -> impl Iterator<Item = String> {
    let also = ENDINGS.iter().filter(|(of, _)| *of == slot).flat_map(|(_, endings)| *endings);
    let endings: Vec<&str> = std::iter::once(slot).chain(also.copied()).collect();
    let without = endings.iter().find_map(|ending| {
        let rest = name.strip_suffix(ending)?.strip_suffix(['_', '-', ' '])?;
        (!rest.is_empty()).then(|| rest.to_owned())
    });
    let with: Vec<String> = endings.iter().map(|ending| format!("{name}_{ending}")).collect();
    std::iter::once(name.to_owned()).chain(without).chain(with)
}

/// The values of a table by the words for them, found as [`is_same`] compares words. Made once for a table: a document may
/// have very many unknown words, for each of which all words of the table would be read.
pub struct Index<T>(BTreeMap<String, Vec<T>>);

impl<T: Copy> Index<T> {
    /// An index of values by their words, with spaces between the words of one.
    pub fn of(table: impl Iterator<Item = (&'static str, T)>) -> Self {
        let mut all = BTreeMap::new();
        for (words, value) in table {
            for word in words.split_ascii_whitespace() {
                all.entry(letters(word).collect()).or_insert_with(Vec::new).push(value);
            }
        }
        Self(all)
    }

    /// The values of a word, in the order of the table.
    pub fn of_word(&self, word: &str) -> &[T] {
        self.0.get(&letters(word).collect::<String>()).map_or(&[], Vec::as_slice)
    }
}

static MEANINGS: LazyLock<Index<&str>> =
    LazyLock::new(|| Index::of(FOREIGN.iter().map(|(ours, theirs)| (*theirs, *ours))));

static ROWS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let row = |(ours, theirs): &(&'static str, &'static str)| {
        let ours = *ours;
        theirs.split_ascii_whitespace().map(move |word| (word, ours))
    };
    FOREIGN.iter().flat_map(row).collect()
});

/// The words of other libraries, each with the word of trafoc for it, in the order of the table.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().copied()
}

/// The words of trafoc for what another library calls `word`, the likeliest first.
pub fn meanings(word: &str) -> impl Iterator<Item = &'static str> + use<> {
    MEANINGS.of_word(word).iter().copied()
}

/// The word of a spec for what another library calls `word`.
pub fn foreign(word: &str) -> Option<&'static str> {
    meanings(word).next()
}

/// The first of `words` that is the word of a spec or a recipe for what another library calls `word`.
pub fn foreign_among<S: AsRef<str>>(word: &str, words: &[S]) -> Option<&'static str> {
    meanings(word).find(|ours| words.iter().any(|w| w.as_ref() == *ours))
}
