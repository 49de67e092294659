//! Every shipped architecture as Rust, one module a spec.

pub mod bart_base;
pub mod bert_base;
pub mod bert_classify;
pub mod bert_qa;
pub mod d2l_nmt;
pub mod deepseek_v3_tiny;
pub mod doc_classify;
pub mod falcon_7b;
pub mod gbt_mulm;
pub mod gemma2_2b;
pub mod gpt1;
pub mod gpt2_small;
pub mod llama3_8b;
pub mod mistral_7b;
pub mod mixtral_8x7b;
pub mod multilingual_nmt;
pub mod pythia_160m;
pub mod qwen2_5_0_5b;
pub mod t5_small;
pub mod transformer;
pub mod vit;
pub mod vit_b16;
