//! A word nobody knows → the word that was probably meant.
//!
//! In this order: the same letters in another case, a foreign spelling ([`FOREIGN`]), a word a slip of
//! the fingers away. Says nothing rather than something far-fetched.

/// Words of other libraries and papers with the word a spec uses. Never accepted, only recognised.
pub const FOREIGN: &[(&str, &str)] = &[
    ("hidden_size", "d_model"),
    ("hidden_dim", "d_model"),
    ("n_embd", "d_model"),
    ("embed_dim", "d_model"),
    ("embedding_dim", "d_model"),
    ("embedding_size", "d_model"),
    ("model_dim", "d_model"),
    ("dim_model", "d_model"),
    ("dim", "d_model"),
    ("width", "d_model"),
    ("n_head", "heads"),
    ("n_heads", "heads"),
    ("num_heads", "heads"),
    ("num_attention_heads", "heads"),
    ("attention_heads", "heads"),
    ("nhead", "heads"),
    ("n_kv_heads", "kv_heads"),
    ("num_kv_heads", "kv_heads"),
    ("num_key_value_heads", "kv_heads"),
    ("head_size", "head_dim"),
    ("dim_head", "head_dim"),
    ("d_head", "head_dim"),
    ("d_k", "head_dim"),
    ("d_kv", "head_dim"),
    ("n_layer", "layers"),
    ("n_layers", "layers"),
    ("num_layers", "layers"),
    ("num_hidden_layers", "layers"),
    ("depth", "layers"),
    ("n_blocks", "layers"),
    ("num_blocks", "layers"),
    ("intermediate_size", "ffn.hidden"),
    ("ffn_dim", "ffn.hidden"),
    ("d_ff", "ffn.hidden"),
    ("d_inner", "ffn.hidden"),
    ("dim_feedforward", "ffn.hidden"),
    ("n_inner", "ffn.hidden"),
    ("mlp_dim", "ffn.hidden"),
    ("feed_forward", "ffn"),
    ("feedforward", "ffn"),
    ("mlp_ratio", "expansion"),
    ("expansion_factor", "expansion"),
    ("rms_norm_eps", "eps"),
    ("layer_norm_eps", "eps"),
    ("layer_norm_epsilon", "eps"),
    ("norm_eps", "eps"),
    ("epsilon", "eps"),
    ("rope_theta", "theta"),
    ("rotary_base", "theta"),
    ("rope_base", "theta"),
    ("max_position_embeddings", "context"),
    ("n_positions", "context"),
    ("n_ctx", "context"),
    ("block_size", "context"),
    ("max_seq_len", "context"),
    ("max_seq_length", "context"),
    ("seq_len", "context"),
    ("sequence_length", "context"),
    ("context_length", "context"),
    ("vocab_size", "vocab"),
    ("vocabulary", "vocab"),
    ("num_embeddings", "vocab"),
    ("hidden_act", "activation"),
    ("hidden_activation", "activation"),
    ("activation_function", "activation"),
    ("act", "activation"),
    ("nonlinearity", "activation"),
    ("rmsnorm", "rms_norm"),
    ("rms", "rms_norm"),
    ("layernorm", "layer_norm"),
    ("layer_normalization", "layer_norm"),
    ("ln", "layer_norm"),
    ("swiglu", "glu"),
    ("geglu", "glu"),
    ("reglu", "glu"),
    ("gated_mlp", "glu"),
    ("swish", "silu"),
    ("gelu_new", "gelu_tanh"),
    ("gelu_pytorch_tanh", "gelu_tanh"),
    ("gelu_fast", "gelu_tanh"),
    ("gelu_approx", "gelu_tanh"),
    ("gelu_erf", "gelu"),
    ("quickgelu", "quick_gelu"),
    ("relu_squared", "relu2"),
    ("squared_relu", "relu2"),
    ("rope", "rotary"),
    ("rotary_embedding", "rotary"),
    ("sine", "sinusoidal"),
    ("sin", "sinusoidal"),
    ("absolute", "learned"),
    ("pre_ln", "pre_norm"),
    ("prenorm", "pre_norm"),
    ("pre", "pre_norm"),
    ("post_ln", "post_norm"),
    ("postnorm", "post_norm"),
    ("post", "post_norm"),
    ("sliding_window", "window"),
    ("attention_window", "window"),
    ("attention_dropout", "dropout"),
    ("hidden_dropout_prob", "dropout"),
    ("attn", "attention"),
    ("self_attention", "attention"),
    ("self_attn", "attention"),
    ("mha", "attention"),
    ("attn_logit_softcapping", "softcap"),
    ("logit_softcap", "softcap"),
    ("num_experts", "experts"),
    ("num_local_experts", "experts"),
    ("n_routed_experts", "experts"),
    ("num_experts_per_tok", "top_k"),
    ("tie_word_embeddings", "tied"),
    ("tie_embeddings", "tied"),
    ("initializer_range", "std"),
    ("lm_head", "head"),
    ("num_labels", "classes"),
    ("num_classes", "classes"),
    ("n_classes", "classes"),
    ("lr", "learning_rate"),
    ("rate", "learning_rate"),
    ("momenta", "betas"),
    ("warmup_steps", "warmup"),
    ("num_warmup_steps", "warmup"),
    ("batch_size", "batch.size"),
    ("per_device_train_batch_size", "batch.size"),
    ("gradient_accumulation_steps", "batch.accumulate"),
    ("accumulation", "accumulate"),
    ("bucketing", "bucket"),
    ("max_steps", "steps"),
    ("num_steps", "steps"),
    ("num_epochs", "epochs"),
    ("num_train_epochs", "epochs"),
    ("max_grad_norm", "clip"),
    ("grad_clip", "clip"),
    ("smoothing", "label_smoothing"),
    ("scheduler", "schedule"),
    ("lr_scheduler", "schedule"),
    ("tokenizer", "tokens"),
    ("dataset", "data"),
    ("eval", "evaluate"),
    ("early_stopping", "stop"),
    ("min_freq", "min_frequency"),
];

/// What a spec calls the thing another library calls `word`.
pub fn foreign(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase().replace('-', "_");
    FOREIGN.iter().find(|(theirs, _)| *theirs == lower).map(|(_, ours)| *ours)
}

/// The candidate that was probably meant by `word`, if one is near enough.
pub fn suggest<S: AsRef<str>>(word: &str, candidates: &[S]) -> Option<String> {
    let plain = |s: &str| s.to_lowercase().replace('-', "_");
    let wanted = plain(word);
    let all = || candidates.iter().map(AsRef::as_ref);
    if let Some(same) = all().find(|c| plain(c) == wanted && *c != word) {
        return Some(same.to_owned());
    }
    if let Some(ours) = foreign(word) {
        let tail = ours.rsplit('.').next().unwrap_or(ours);
        if let Some(known) = all().find(|c| *c == ours || *c == tail) {
            return Some(known.to_owned());
        }
    }
    if let Some(joined) = all().find(|c| plain(c).replace('_', "") == wanted.replace('_', "") && *c != word) {
        return Some(joined.to_owned());
    }
    let length = wanted.chars().count();
    let limit = (length / 3).max(1);
    let score = |c: &str| {
        let near = plain(c);
        let distance = strsim::damerau_levenshtein(&wanted, &near);
        // A word cut short is a likelier slip than as many wrong letters, and a word of one letter is
        // near everything.
        let cut = length >= 3 && (near.starts_with(&wanted) || wanted.starts_with(&near) && near.len() >= 3);
        let shared = near.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        let near_enough = distance <= limit && (length > 1 || distance == 0);
        (near_enough || cut).then_some((if near_enough { distance } else { limit + 1 }, usize::MAX - shared))
    };
    all()
        .filter(|c| *c != word)
        .filter_map(|c| score(c).map(|s| (s, c)))
        .min_by_key(|(s, _)| *s)
        .map(|(_, c)| c.to_owned())
}
