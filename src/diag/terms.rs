//! Terms of the field that are neither a key nor a part, and where they are in trafoc.
//!
//! A row is a term: the words people use for it, what it means, and what of trafoc has to do with it. A term
//! that the language has a word for has no row, and neither has an idea outside of the language
//! ([`super::ideas`]); a test holds that, and that every command, option and key that a row names exists.

use super::foreign::is_same;

/// A term of the field.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// The words people use for it, with spaces between them; the first is its title.
    pub names: &'static str,
    /// What it means, in whole sentences.
    pub means: &'static str,
    /// Where it is in trafoc, in whole sentences; commands and keys are in backticks.
    pub here: &'static str,
}

/// The terms that `explain` describes.
pub const TERMS: &[Term] = &[
    Term {
        names: "kv_cache key_value_cache past_key_values use_cache caching cached_decoding",
        means: "Keys and values of earlier positions, kept while a decoder generates, so that each step \
            computes only one position.",
        here: "Every decoder has one; no key turns it on. `trafoc check` counts the bytes it takes per \
            token; `kv_heads`, `latent` and `window` make them fewer.",
    },
    Term {
        names: "beam_search beams num_beams",
        means: "Decoding that follows several hypotheses at a time and returns the most probable.",
        here: "`trafoc generate --beam 4`, with `--length-penalty`.",
    },
    Term {
        names: "greedy greedy_decoding argmax do_sample",
        means: "Decoding that takes the most probable token at every step.",
        here: "`trafoc generate --temperature 0`; translations use it unless another temperature is given.",
    },
    Term {
        names: "sampling temperature nucleus_sampling top_k_sampling decoding_strategy",
        means: "Decoding that draws every token from the model's probabilities.",
        here: "`trafoc generate` with `--temperature`, `--top-k`, `--top-p`, `--min-p` and \
               `--repetition-penalty`.",
    },
    Term {
        names: "residual_connection residual_stream skip_connection shortcut",
        means: "A sum of a part's input and its output: x + f(x).",
        here: "Write it in the equation of a block, `x = x + attention(norm(x))`; `pre_norm` and `post_norm` \
            are two of the named equations.",
    },
    Term {
        names: "head_count",
        means: "Attention whose queries, keys and values are divided among several heads.",
        here: "`attention` with `heads`; fewer `kv_heads` share keys and values.",
    },
    Term {
        names: "positional_encoding positional_embedding position_embedding position_encoding pos_emb",
        means: "How the order of the tokens enters a model.",
        here: "The slot `position`: `learned`, `sinusoidal`, `rotary`, `alibi` or `t5`.",
    },
    Term {
        names: "pretraining pretrain",
        means: "Training from random weights on a large amount of text, before any other task.",
        here: "`trafoc train SPEC --recipe RECIPE` with a head `lm` or `mlm` and random weights; `trafoc new \
               gpt --small` writes both files.",
    },
    Term {
        names: "fine_tuning finetuning fine_tune finetune transfer_learning pretrained sft supervised_fine_tuning \
                instruction_tuning",
        means: "Training that starts from the weights of a trained model.",
        here: "`trafoc train DIR --head classify` starts from a Hugging Face directory or a run; `start`, \
               `freeze` and `adapt` of a recipe say what is loaded, what stays as it is, and what is added.",
    },
    Term {
        names: "flops macs cost compute_cost model_size parameter_count num_parameters params",
        means: "What a model costs: parameters, floating-point operations, bytes.",
        here: "`trafoc check` counts them, `trafoc show` layer by layer, and `trafoc compare` for several \
               specs.",
    },
    Term {
        names: "condition fail_if budget constraint",
        means: "A limit that a model must not exceed, such as a number of parameters.",
        here: "`trafoc compare SPEC --fail-if 'params > 8B'` tests it and sets the exit status; `trafoc fit` changes a spec until \
               it has a given cost.",
    },
    Term {
        names: "memory vram gpu_memory out_of_memory oom activation_memory",
        means: "The bytes that a forward pass or a training step needs.",
        here: "`trafoc train --dry-run` forecasts training; what would not fit is refused before it starts. In \
               the equation of a block, memory is the encoder's output, which a call of `cross` reads.",
    },
    Term {
        names: "checkpointing rematerialization remat",
        means: "Computing the forward pass of a block again in the backward pass, instead of keeping it.",
        here: "`recompute: blocks` in a recipe; `checkpoint` is for the files of a run.",
    },
    Term {
        names: "mixed_precision amp autocast half_precision fp16 bfloat16",
        means: "Computing in 16-bit numbers, except where that loses too much precision.",
        here: "`trafoc run --dtype bf16`, and the same of `trafoc generate`, `trafoc predict` and `trafoc \
               eval`; norms and softmax stay in f32.",
    },
    Term {
        names: "teacher_forcing",
        means: "Training a decoder on the correct earlier tokens instead of on its own output.",
        here: "All decoders are trained in this way; no key turns it off.",
    },
    Term {
        names: "special_tokens cls_token bos eos sep",
        means: "Tokens that are not part of a text: those for its start, its end, a class, or padding.",
        here: "The tokenizer adds those around texts; `pool: cls` of a head reads the first position, and \
               `class_token` puts one before the patches of an image.",
    },
    Term {
        names: "reproducibility deterministic",
        means: "Running the same training or generation again with the same result.",
        here: "`seed` of a recipe and `trafoc generate --seed` fix all random choices; on the CPU the same seed gives the same \
               bytes.",
    },
    Term {
        names: "tied_embeddings weight_tying weight_sharing tied_weights",
        means: "An output projection that shares the table of token embeddings.",
        here: "`tied` of a head; `trafoc check` counts such a table once.",
    },
    Term {
        names: "multi_gpu distributed data_parallel torchrun nccl multiple_gpus",
        means: "Training on several devices or machines.",
        here: "`trafoc build SPEC --target pytorch --recipe RECIPE --out DIR` writes a project that torchrun \
            runs on any number of processes; its run folder is one that trafoc reads.",
    },
    Term {
        names: "pytorch torch python",
        means: "The library that most transformers are written in.",
        here: "`trafoc build SPEC --target pytorch` writes a model file for it, and `trafoc export --code` \
               a Hugging Face directory with its own code.",
    },
    Term {
        names: "huggingface hugging_face transformers safetensors pytorch_model",
        means: "The library and the file layout in which models are published.",
        here: "`trafoc import DIR` reads such a directory and `trafoc export` writes one; a directory can be \
            given wherever a spec can.",
    },
    Term {
        names: "function operator op call builtin built_in",
        means: "What is called by its name in an expression or in an equation.",
        here: "`trafoc explain expressions` lists the functions of numbers, `trafoc explain equations` what the equation of a block \
               calls, and `trafoc explain part` the layers and operations of a part of your own.",
    },
    Term {
        names: "slot",
        means: "A place in a spec that holds one of several parts, such as `attention`, `ffn` or `norm`.",
        here: "`trafoc explain position` lists the parts of the slot `position`.",
    },
    Term {
        names: "field fields",
        means: "A key of a part: `heads` is a field of `multi_head`.",
        here: "`trafoc explain multi_head` lists the fields of that part.",
    },
    Term {
        names: "encoder_decoder",
        means: "An encoder for the input and a decoder that writes the output and attends to the encoder.",
        here: "A spec with both `encoder` and `decoder`, and `head: translate`; `trafoc new t5` writes one.",
    },
    Term {
        names: "cross_entropy nll objective",
        means: "What training minimises: the negative logarithm of the probability of the correct answer.",
        here: "The `head` decides what is predicted; `label_smoothing` and `reduction` of a recipe change \
            how the losses are combined into one number.",
    },
    Term {
        names: "reranker reranking rerank ranking cross_encoder",
        means: "A model that reads a question and a text together and says how well they fit.",
        here: "`head: classify`, with the columns `text` and `second` of the format `table`.",
    },
    Term {
        names: "switch_transformer gshard top_1_routing",
        means: "Layers in which each token goes to one or two of many feed-forward parts.",
        here: "The part `moe` with `top_k`, as in `ffn: {moe: {expert: mlp, experts: 8, top_k: 1}}`; no token is dropped, \
               so nothing sets a capacity.",
    },
    Term {
        names: "contrastive infonce sentence_transformers sentence_embedding dual_encoder bi_encoder siamese \
                siamese_network",
        means: "Training that moves the vectors of the two texts of a pair together, and those of different \
            pairs apart.",
        here: "`head: embed` with data of the format `pairs`: every other second text of the batch is a wrong \
               answer for the first. `trafoc predict` then gives the vectors.",
    },
];

/// A word as the tables write it: lower case, with `_` between its parts.
pub fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace(['-', ' '], "_")
}

/// The term of that name.
pub fn term(word: &str) -> Option<&'static Term> {
    // No near words, as for ideas.
    TERMS.iter().find(|term| term.names.split_ascii_whitespace().any(|name| is_same(name, word)))
}
