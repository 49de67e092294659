"""Writes a directory of `tests/hub`: a tiny model with random weights, inputs, and its outputs.

    python tests/hub/make.py OUT [family ...]

Needs torch and transformers. Numbers are float32, without dropout, attention written out, no cache. Every
tensor is made random, those that start at 0 or 1 too, so that one forgotten or swapped shows.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=24, pad_token_id=None, bos_token_id=1, eos_token_id=2)
GROUPED = dict(SMALL, num_key_value_heads=2)
ENCODER = dict(SMALL, pad_token_id=0)
BOTH = dict(vocab_size=97, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=24,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
IMAGE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=8,
             patch_size=4, num_labels=3)
SPARSE = dict(GROUPED, num_hidden_layers=1, head_dim=8, moe_intermediate_size=8, n_routed_experts=4,
              num_experts_per_tok=2)
LATENT = dict(SMALL, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=8, qk_rope_head_dim=4,
              head_dim=4, v_head_dim=6)

# family: class, config; and the type of the model if the class serves several
FAMILIES = {
    "qwen2": ("Qwen2ForCausalLM", dict(GROUPED, use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": ("Qwen3ForCausalLM", dict(GROUPED, head_dim=12)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(GROUPED, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=16, shared_expert_intermediate_size=24, decoder_sparse_step=1)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", dict(GROUPED, head_dim=12, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=16, decoder_sparse_step=1, norm_topk_prob=True)),
    "qwen2_moe-mixed": ("Qwen2MoeForCausalLM", dict(GROUPED, num_hidden_layers=3, hidden_size=16,
        intermediate_size=24, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
        shared_expert_intermediate_size=12, decoder_sparse_step=1, mlp_only_layers=[0])),
    "qwen3_moe-mixed": ("Qwen3MoeForCausalLM", dict(GROUPED, num_hidden_layers=4, hidden_size=16, head_dim=4,
        intermediate_size=24, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, decoder_sparse_step=2)),
    "gemma": ("GemmaForCausalLM", dict(GROUPED, head_dim=12)),
    "gemma3_text": ("Gemma3ForCausalLM", dict(GROUPED, head_dim=12, sliding_window=5, query_pre_attn_scalar=20,
        num_hidden_layers=3, layer_types=["sliding_attention", "sliding_attention", "full_attention"])),
    "gemma3_text-both": ("Gemma3TextModel", dict(GROUPED, head_dim=12, sliding_window=6, query_pre_attn_scalar=20,
        num_hidden_layers=2, use_bidirectional_attention=True,
        layer_types=["sliding_attention", "full_attention"])),
    "olmo": ("OlmoForCausalLM", dict(GROUPED, clip_qkv=0.5)),
    "olmo2": ("Olmo2ForCausalLM", GROUPED),
    "phi": ("PhiForCausalLM", SMALL),
    "phi3": ("Phi3ForCausalLM", dict(GROUPED, sliding_window=5)),
    "phi3-longrope": ("Phi3ForCausalLM", dict(GROUPED, num_hidden_layers=1, original_max_position_embeddings=10,
        rope_parameters=dict(rope_type="longrope", rope_theta=5000.0, short_factor=[1.0, 1.5, 2.0, 1.2],
        long_factor=[2.0, 3.0, 4.0, 2.2], original_max_position_embeddings=10))),
    "starcoder2": ("Starcoder2ForCausalLM", GROUPED),
    "stablelm": ("StableLmForCausalLM", dict(GROUPED, use_qkv_bias=True)),
    "stablelm-2": ("StableLmForCausalLM", dict(GROUPED, use_parallel_residual=True)),
    "stablelm-12b": ("StableLmForCausalLM", dict(GROUPED, num_hidden_layers=1, use_parallel_residual=True,
        qk_layernorm=True)),
    "granite": ("GraniteForCausalLM", dict(GROUPED, embedding_multiplier=3.0, logits_scaling=2.0,
        residual_multiplier=0.5, attention_multiplier=0.25)),
    "nemotron": ("NemotronForCausalLM", GROUPED),
    "cohere": ("CohereForCausalLM", dict(GROUPED, logit_scale=0.25)),
    "cohere-plus": ("CohereForCausalLM", dict(GROUPED, num_hidden_layers=1, use_qk_norm=True)),
    "cohere2": ("Cohere2ForCausalLM", dict(GROUPED, logit_scale=0.25, sliding_window=5, num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"])),
    "smollm3": ("SmolLM3ForCausalLM", dict(GROUPED, no_rope_layers=[1, 0])),
    "gptj": ("GPTJForCausalLM", dict(vocab_size=97, n_positions=24, n_embd=32, n_layer=2, n_head=4, rotary_dim=4)),
    "codegen": ("CodeGenForCausalLM", dict(vocab_size=97, n_positions=24, n_embd=32, n_layer=2, n_head=4,
        rotary_dim=4, bos_token_id=1, eos_token_id=2)),
    "gpt_neo": ("GPTNeoForCausalLM", dict(vocab_size=97, max_position_embeddings=24, hidden_size=32, num_layers=2,
        num_heads=4, window_size=5, attention_types=[[["global", "local"], 1]], bos_token_id=1, eos_token_id=2)),
    "falcon": ("FalconForCausalLM", dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=24, bos_token_id=1, eos_token_id=2)),
    "falcon-new": ("FalconForCausalLM", dict(vocab_size=97, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, max_position_embeddings=24,
        bos_token_id=1, eos_token_id=2)),
    "falcon-rw": ("FalconForCausalLM", dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        alibi=True, parallel_attn=False, multi_query=False, bias=True, max_position_embeddings=24, bos_token_id=1,
        eos_token_id=2)),
    "falcon-11b": ("FalconForCausalLM", dict(vocab_size=97, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
        num_kv_heads=2, new_decoder_architecture=True, num_ln_in_parallel_attn=1, ffn_hidden_size=48,
        max_position_embeddings=24, bos_token_id=1, eos_token_id=2)),
    "bloom-residual": ("BloomForCausalLM", dict(vocab_size=97, hidden_size=32, n_layer=2, n_head=4,
        apply_residual_connection_post_layernorm=True)),
    "bloom": ("BloomForCausalLM", dict(vocab_size=97, hidden_size=32, n_layer=2, n_head=4)),
    "mpt": ("MptForCausalLM", dict(vocab_size=97, d_model=32, n_layers=2, n_heads=4, max_seq_len=24)),
    "opt": ("OPTForCausalLM", dict(vocab_size=97, hidden_size=32, ffn_dim=48, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=24, word_embed_proj_dim=16, pad_token_id=1)),
    "opt-classify": ("OPTForSequenceClassification", dict(vocab_size=97, hidden_size=32, ffn_dim=48,
        num_hidden_layers=1, num_attention_heads=4, max_position_embeddings=24, word_embed_proj_dim=16, pad_token_id=1,
        num_labels=3)),
    "deepseek_v3": ("DeepseekV3ForCausalLM", dict(SMALL, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=8, num_experts_per_tok=2, n_group=4,
        topk_group=2, n_shared_experts=1, moe_intermediate_size=16, first_k_dense_replace=1)),
    "deepseek_v3-yarn": ("DeepseekV3ForCausalLM", dict(SMALL, num_hidden_layers=1, num_key_value_heads=4,
        q_lora_rank=None, kv_lora_rank=10, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, rms_norm_eps=1e-3,
        first_k_dense_replace=1, rope_parameters=dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, mscale=1.0,
        mscale_all_dim=1.0, original_max_position_embeddings=8))),
    "llama-longrope": ("LlamaForCausalLM", dict(GROUPED, num_hidden_layers=1, rope_parameters=dict(
        rope_type="longrope", rope_theta=5000.0, factor=4.0, short_factor=[1.0, 1.5, 2.0, 1.2],
        long_factor=[2.0, 3.0, 4.0, 2.2], original_max_position_embeddings=20))),
    "gpt2-inverse": ("GPT2LMHeadModel", dict(vocab_size=97, n_positions=24, n_embd=16, n_layer=3, n_head=2,
        scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True, bos_token_id=1, eos_token_id=2)),
    "gpt2-classify": ("GPT2ForSequenceClassification", dict(vocab_size=97, n_positions=24, n_embd=32, n_layer=1,
        n_head=4, pad_token_id=0, bos_token_id=1, eos_token_id=2, num_labels=3)),
    "gpt_oss": ("GptOssForCausalLM", dict(GROUPED, head_dim=8, num_local_experts=4, num_experts_per_tok=2,
        sliding_window=5, layer_types=["sliding_attention", "full_attention"],
        rope_parameters=dict(rope_theta=150000.0, rope_type="default"))),
    "roberta": ("RobertaForMaskedLM", dict(ENCODER, pad_token_id=1, type_vocab_size=1)),
    "roberta-classify": ("RobertaForSequenceClassification", dict(ENCODER, pad_token_id=1, num_labels=3)),
    "xlm-roberta": ("XLMRobertaForTokenClassification", dict(ENCODER, pad_token_id=1, num_labels=3)),
    "distilbert": ("DistilBertForSequenceClassification", dict(vocab_size=97, dim=32, n_layers=2, n_heads=4,
        hidden_dim=48, max_position_embeddings=24, num_labels=3)),
    "albert": ("AlbertForMaskedLM", dict(ENCODER, embedding_size=16)),
    "electra": ("ElectraForTokenClassification", dict(ENCODER, embedding_size=16, num_labels=3)),
    "electra-replaced": ("ElectraForPreTraining", dict(ENCODER, num_hidden_layers=1, embedding_size=32)),
    "albert-wide": ("AlbertForMaskedLM", dict(ENCODER, num_hidden_layers=2, embedding_size=32, num_hidden_groups=2,
        tie_word_embeddings=False)),
    "roberta-untied": ("RobertaForMaskedLM", dict(ENCODER, num_hidden_layers=1, pad_token_id=1,
        tie_word_embeddings=False)),
    "modernbert-qa": ("ModernBertForQuestionAnswering", dict(ENCODER, num_hidden_layers=2, local_attention=6,
        pad_token_id=0, cls_token_id=1, sep_token_id=2)),
    "electra-mlm": ("ElectraForMaskedLM", dict(ENCODER, embedding_size=16)),
    "modernbert-classify": ("ModernBertForSequenceClassification", dict(ENCODER, num_hidden_layers=2,
        local_attention=6, pad_token_id=0, cls_token_id=1, sep_token_id=2, num_labels=3, classifier_pooling="mean")),
    "modernbert-tag": ("ModernBertForTokenClassification", dict(ENCODER, num_hidden_layers=2, local_attention=6,
        pad_token_id=0, cls_token_id=1, sep_token_id=2, num_labels=3)),
    "modernbert": ("ModernBertForMaskedLM", dict(ENCODER, num_hidden_layers=4, global_attn_every_n_layers=3,
        local_attention=6, pad_token_id=0, cls_token_id=1, sep_token_id=2)),
    "deit": ("DeiTForImageClassification", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, image_size=8, patch_size=4, num_labels=3)),
    "deit-distilled": ("DeiTForImageClassificationWithTeacher", dict(hidden_size=32, num_hidden_layers=1,
        num_attention_heads=4, intermediate_size=48, image_size=8, patch_size=4, num_labels=3)),
    "dinov2": ("Dinov2ForImageClassification", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        mlp_ratio=2, image_size=8, patch_size=4, num_labels=3, use_mask_token=False)),
    "dinov2-giant": ("Dinov2ForImageClassification", dict(hidden_size=24, num_hidden_layers=1, num_attention_heads=4,
        mlp_ratio=2, image_size=8, patch_size=4, num_labels=3, use_swiglu_ffn=True,
        use_mask_token=False)),
    # With a width of 48, rounding the weights alone changed one position by more than the tests allow.
    "mt5": ("MT5ForConditionalGeneration", dict(vocab_size=97, d_model=32, d_kv=12, d_ff=40, num_layers=2,
        num_heads=4, decoder_start_token_id=0)),
    "t5-encoder": ("T5EncoderModel", dict(vocab_size=97, d_model=32, d_kv=12, d_ff=48, num_layers=1, num_heads=4,
        pad_token_id=0, decoder_start_token_id=0)),
    "bart-body": ("BartModel", dict(BOTH, encoder_layers=1, decoder_layers=1)),
    "bart-classify": ("BartForSequenceClassification", dict(BOTH, encoder_layers=1, decoder_layers=1, num_labels=3)),
    "mbart-classify": ("MBartForSequenceClassification", dict(BOTH, encoder_layers=1, decoder_layers=1, num_labels=2)),
    "marian-parts": ("MarianMTModel", dict(BOTH, encoder_layers=1, decoder_layers=1,
        share_encoder_decoder_embeddings=False)),
    "mbart": ("MBartForConditionalGeneration", BOTH),
    "pegasus": ("PegasusForConditionalGeneration", dict(BOTH, pad_token_id=0)),
    "m2m_100": ("M2M100ForConditionalGeneration", BOTH),
    "arcee": ("ArceeForCausalLM", dict(GROUPED, head_dim=12, mlp_bias=True)),
    "helium": ("HeliumForCausalLM", dict(GROUPED, head_dim=8, attention_bias=True)),
    "glm": ("GlmForCausalLM", dict(GROUPED, head_dim=12)),
    "glm4": ("Glm4ForCausalLM", dict(GROUPED, head_dim=8, attention_bias=False, tie_word_embeddings=True)),
    "seed_oss": ("SeedOssForCausalLM", dict(GROUPED, head_dim=12)),
    "ernie4_5": ("Ernie4_5ForCausalLM", dict(GROUPED, head_dim=12, use_bias=True)),
    "olmoe": ("OlmoeForCausalLM", dict(GROUPED, num_hidden_layers=1, intermediate_size=16, num_experts=4,
        num_experts_per_tok=2)),
    "granitemoe": ("GraniteMoeForCausalLM", dict(GROUPED, num_hidden_layers=1, intermediate_size=16,
        num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0, logits_scaling=2.0,
        residual_multiplier=0.5, attention_multiplier=0.25)),
    "lfm2": ("Lfm2ForCausalLM", dict(GROUPED, layer_types=["conv", "full_attention"], conv_L_cache=4, conv_bias=True,
        block_auto_adjust_ff_dim=False)),
    "exaone4": ("Exaone4ForCausalLM", dict(GROUPED, sliding_window=5,
        layer_types=["sliding_attention", "full_attention"])),
    "exaone4-global": ("Exaone4ForCausalLM", dict(GROUPED, num_hidden_layers=1, sliding_window=None,
        sliding_window_pattern=None, layer_types=["full_attention"])),
    "olmo3": ("Olmo3ForCausalLM", dict(GROUPED, sliding_window=5, layer_types=["sliding_attention", "full_attention"],
        rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=5000.0),
        full_attention=dict(rope_type="yarn", rope_theta=20000.0, factor=4.0, original_max_position_embeddings=8)))),
    "vaultgemma": ("VaultGemmaForCausalLM", dict(GROUPED, head_dim=12, sliding_window=5, query_pre_attn_scalar=20,
        layer_types=["sliding_attention", "full_attention"])),
    "persimmon": ("PersimmonForCausalLM", SMALL),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", dict(vocab_size=97, n_positions=24, n_embd=32, n_layer=2, n_head=4,
        bos_token_id=1, eos_token_id=2)),
    "gpt_bigcode-heads": ("GPTBigCodeForSequenceClassification", dict(vocab_size=97, n_positions=24, n_embd=32,
        n_layer=1, n_head=4, n_inner=48, multi_query=False, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        num_labels=3)),
    "biogpt": ("BioGptForCausalLM", dict(SMALL, pad_token_id=1)),
    "xglm": ("XGLMForCausalLM", dict(vocab_size=97, max_position_embeddings=24, d_model=32, ffn_dim=48, num_layers=2,
        attention_heads=4)),
    "ctrl": ("CTRLLMHeadModel", dict(vocab_size=97, n_positions=24, n_embd=32, dff=48, n_layer=2, n_head=4)),
    "megatron-bert": ("MegatronBertForMaskedLM", dict(ENCODER, num_hidden_layers=1)),
    "ernie": ("ErnieForSequenceClassification", dict(ENCODER, num_hidden_layers=1, num_labels=3)),
    "roformer": ("RoFormerForMaskedLM", dict(ENCODER, embedding_size=16)),
    "rembert": ("RemBertForTokenClassification", dict(ENCODER, input_embedding_size=16, num_labels=3)),
    "roberta-prelayernorm": ("RobertaPreLayerNormForMaskedLM", dict(ENCODER, num_hidden_layers=1, pad_token_id=1)),
    "mpnet": ("MPNetForSequenceClassification", dict(ENCODER, pad_token_id=1, num_labels=3)),
    "nomic_bert": ("NomicBertForSequenceClassification", dict(ENCODER, num_labels=3,
        rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "eurobert": ("EuroBertForMaskedLM", dict(GROUPED, attention_bias=True, mlp_bias=True)),
    "plbart": ("PLBartForConditionalGeneration", dict(BOTH, encoder_layers=1, decoder_layers=1)),
    "plbart-classify": ("PLBartForSequenceClassification", dict(BOTH, encoder_layers=1, decoder_layers=1,
        num_labels=3)),
    "mvp": ("MvpForConditionalGeneration", dict(BOTH, encoder_layers=1, decoder_layers=1)),
    "blenderbot": ("BlenderbotForConditionalGeneration", dict(BOTH, encoder_layers=1, pad_token_id=0)),
    "umt5": ("UMT5ForConditionalGeneration", dict(vocab_size=97, d_model=32, d_kv=12, d_ff=48, num_layers=2,
        num_heads=4)),
    "vit_msn": ("ViTMSNForImageClassification", dict(IMAGE, num_hidden_layers=1)),
    "ijepa": ("IJepaForImageClassification", dict(IMAGE, num_hidden_layers=1)),
    "dinov2_with_registers": ("Dinov2WithRegistersForImageClassification", dict(hidden_size=32,
        num_hidden_layers=1, num_attention_heads=4, mlp_ratio=2, image_size=8, patch_size=4, num_labels=3,
        num_register_tokens=3)),
    "xlm-roberta-xl": ("XLMRobertaXLForMaskedLM", dict(ENCODER, num_hidden_layers=1, pad_token_id=1)),
    "data2vec-text": ("Data2VecTextForSequenceClassification", dict(ENCODER, num_hidden_layers=1, pad_token_id=1,
        num_labels=3)),
    "ministral": ("MinistralForCausalLM", dict(GROUPED, head_dim=8, sliding_window=5,
        layer_types=["sliding_attention", "full_attention"])),
    "cwm": ("CwmForCausalLM", dict(GROUPED, head_dim=8, sliding_window=5)),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", dict(GROUPED, num_hidden_layers=1, head_dim=8)),
    "jais2": ("Jais2ForCausalLM", dict(GROUPED, num_hidden_layers=1)),
    "hyperclovax": ("HyperCLOVAXForCausalLM", dict(GROUPED, num_hidden_layers=1, embedding_multiplier=3.0,
        logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.25)),
    "flex_olmo": ("FlexOlmoForCausalLM", dict(GROUPED, num_hidden_layers=1, intermediate_size=16, num_experts=4,
        num_experts_per_tok=2)),
    "glm4_moe": ("Glm4MoeForCausalLM", dict(SPARSE, num_hidden_layers=2, n_group=2, topk_group=1, use_qk_norm=True)),
    "solar_open": ("SolarOpenForCausalLM", dict(SPARSE, attention_bias=True)),
    "minimax_m2": ("MiniMaxM2ForCausalLM", dict(GROUPED, num_hidden_layers=1, head_dim=8, intermediate_size=16,
        num_local_experts=4, num_experts_per_tok=2, rotary_dim=4)),
    "granitemoeshared": ("GraniteMoeSharedForCausalLM", dict(GROUPED, num_hidden_layers=1, intermediate_size=16,
        num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=12)),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", dict(GROUPED, moe_intermediate_size=8, moe_num_experts=4, moe_k=2,
        moe_num_shared_experts=1)),
    "youtu": ("YoutuForCausalLM", dict(LATENT, num_hidden_layers=1)),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", dict(LATENT, moe_intermediate_size=8, n_routed_experts=4,
        num_experts_per_tok=2)),
    "internlm3": ("LlamaForCausalLM", dict(GROUPED, model_type="internlm3", num_hidden_layers=1, head_dim=8,
        attention_bias=True, mlp_bias=True)),
    "mamba": ("MambaForCausalLM", dict(vocab_size=97, hidden_size=32, state_size=6, num_hidden_layers=2, time_step_rank=3,
        use_bias=True, tie_word_embeddings=False)),
    "mamba-body": ("MambaModel", dict(vocab_size=97, hidden_size=32, state_size=3, num_hidden_layers=1,
        intermediate_size=40, conv_kernel=3, use_conv_bias=False, hidden_act="gelu")),
    "mamba2": ("Mamba2ForCausalLM", dict(vocab_size=97, hidden_size=32, state_size=6, num_hidden_layers=2, num_heads=8,
        head_dim=8, n_groups=2, use_bias=True)),
    "falcon_mamba": ("FalconMambaForCausalLM", dict(vocab_size=97, hidden_size=32, state_size=6, num_hidden_layers=1,
        time_step_rank=3, mixer_rms_eps=1e-3)),
    "bamba": ("BambaForCausalLM", dict(GROUPED, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_state=6, mamba_n_groups=2,
        hidden_act="gelu")),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", dict(GROUPED, layer_types=["linear_attention", "full_attention"],
        num_local_experts=4, shared_intermediate_size=20, mamba_n_heads=8, mamba_d_state=6, mamba_n_groups=2,
        embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.3, logits_scaling=2.0)),
    "granitemoehybrid-dense": ("GraniteMoeHybridForCausalLM", dict(GROUPED, position_embedding_type="rope", intermediate_size=11008,
        layer_types=["full_attention", "linear_attention"], num_local_experts=0, shared_intermediate_size=20,
        mamba_n_heads=4, mamba_d_state=4, mamba_proj_bias=True, mamba_conv_bias=False)),
    "qwen3_next": ("Qwen3NextForCausalLM", dict(GROUPED, intermediate_size=5632, head_dim=12, linear_key_head_dim=6,
        linear_value_head_dim=5, linear_num_key_heads=2, linear_num_value_heads=4, moe_intermediate_size=8,
        shared_expert_intermediate_size=10, num_experts_per_tok=2, num_experts=4, layer_types=["linear_attention", "full_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5))),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", dict(GROUPED, num_hidden_layers=3, lru_width=40,
        attention_window_size=5, block_types=["recurrent", "attention", "recurrent"], logits_soft_cap=2.0)),
    "iquestcoder": ("LlamaForCausalLM", dict(GROUPED, model_type="iquestcoder", num_hidden_layers=1, head_dim=12)),
    "dots1": ("Dots1ForCausalLM", dict(SPARSE, num_hidden_layers=2, head_dim=12, n_shared_experts=2, n_group=2,
        topk_group=1, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.5, sliding_window=None,
        max_window_layers=2)),
    "bert-generation": ("BertGenerationDecoder", dict(ENCODER, num_hidden_layers=1)),
    "jamba": ("JambaForCausalLM", dict(GROUPED, num_hidden_layers=4, mamba_d_state=6, mamba_dt_rank=3, num_experts=4,
        intermediate_size=20, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=3, expert_layer_offset=0)),
    "nemotron_h": ("NemotronHForCausalLM", dict(vocab_size=97, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
        head_dim=12, intermediate_size=20, ssm_state_size=6, mamba_num_heads=4, mamba_head_dim=6, n_groups=2,
        n_routed_experts=4, moe_intermediate_size=12, moe_shared_expert_intermediate_size=16, max_position_embeddings=24,
        time_step_min=0.7, routed_scaling_factor=1.5, n_group=2)),
    "diffllama": ("DiffLlamaForCausalLM", dict(GROUPED, attention_bias=True)),
    "nanochat": ("NanoChatForCausalLM", dict(GROUPED, num_hidden_layers=1, final_logit_softcapping=3.0)),
    "fsmt": ("FSMTForConditionalGeneration", dict(src_vocab_size=101, tgt_vocab_size=97, d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=40,
        max_position_embeddings=24, use_cache=False)),
    "rwkv": ("RwkvForCausalLM", dict(vocab_size=97, context_length=24, hidden_size=32, num_hidden_layers=3, intermediate_size=40,
        attention_hidden_size=24, layer_norm_epsilon=1e-3, rescale_every=2, use_cache=False)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", dict(SMALL, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, n_routed_experts=8, num_experts_per_tok=2,
        moe_intermediate_size=8, first_k_dense_replace=1, topk_method="group_limited_greedy", n_group=4, topk_group=2,
        routed_scaling_factor=1.5)),
    "lfm2_moe": ("Lfm2MoeForCausalLM", dict(GROUPED, num_hidden_layers=3, num_dense_layers=1, moe_intermediate_size=16,
        num_experts=4, num_experts_per_tok=2, layer_types=["conv", "full_attention", "conv"], conv_bias=True)),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", dict(vocab_size=97, hidden_size=32,
        num_hidden_layers=3, num_attention_heads=4, intermediate_multiple_size=2, max_position_embeddings=24, bos_token_id=1,
        eos_token_id=2)),
    "hunyuan_v1_moe": ("HunYuanMoEV1ForCausalLM", dict(GROUPED, num_hidden_layers=1, head_dim=12, num_experts=4, moe_topk=2,
        intermediate_size=20)),
    "emu3_text": ("Emu3ForCausalLM", dict(GROUPED, num_hidden_layers=1, pad_token_id=0)),
    "aria_text": ("AriaTextForCausalLM", dict(GROUPED, num_hidden_layers=1, intermediate_size=12, moe_num_experts=4,
        moe_num_shared_experts=3, hidden_act="gelu", mlp_bias=True)),
    "bitnet": ("BitNetForCausalLM", dict(GROUPED, attention_bias=True)),
    "minicpm3": ("MiniCPM3ForCausalLM", dict(LATENT, num_hidden_layers=3, head_dim=None, scale_emb=3, scale_depth=1.2,
        dim_model_base=16)),
    "deberta": ("DebertaForMaskedLM", dict(ENCODER, num_hidden_layers=2, relative_attention=True, pos_att_type=["c2p", "p2c"],
        max_relative_positions=5, position_biased_input=False, type_vocab_size=0)),
    "deberta-plain": ("DebertaForSequenceClassification", dict(ENCODER, num_hidden_layers=1, num_labels=3)),
    "deberta-v2": ("DebertaV2ForMaskedLM", dict(ENCODER, num_hidden_layers=2, relative_attention=True,
        pos_att_type="c2p|p2c", max_relative_positions=24, position_biased_input=False, type_vocab_size=3)),
    "deberta-v2-plain": ("DebertaV2ForTokenClassification", dict(ENCODER, num_hidden_layers=1, num_labels=3)),
    "minimax": ("MiniMaxForCausalLM", dict(GROUPED, num_hidden_layers=3, intermediate_size=12, num_local_experts=4,
        linear_attn_alpha_factor=1.3, full_attn_beta_factor=0.6, mlp_beta_factor=0.7, block_size=4)),
    "ministral3": ("Ministral3ForCausalLM", dict(GROUPED, num_hidden_layers=1, head_dim=12, sliding_window=4, pad_token_id=0,
        rope_parameters=dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, original_max_position_embeddings=5,
        beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3))),
    "apertus": ("ApertusForCausalLM", dict(GROUPED, attention_bias=True)),
    # As the published ones: far distances share numbers, which have a norm and the projections of texts.
    "deberta-v2-shared": ("DebertaV2ForMaskedLM", dict(ENCODER, num_hidden_layers=2, relative_attention=True,
        pos_att_type="c2p|p2c", max_relative_positions=20, position_buckets=6, share_att_key=True,
        norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0)),
    "phimoe": ("PhimoeForCausalLM", dict(GROUPED, head_dim=12, num_local_experts=4, intermediate_size=12,
        router_jitter_noise=0.3, attention_bias=True, lm_head_bias=True, sliding_window=5)),
    "switch_transformers": ("SwitchTransformersForConditionalGeneration", dict(vocab_size=97, d_model=24, d_kv=6, d_ff=12,
        num_layers=4, num_decoder_layers=3, num_heads=4, num_experts=3, expert_capacity=2, num_sparse_encoder_layers=2,
        num_sparse_decoder_layers=3, router_bias=True, relative_attention_num_buckets=8, relative_attention_max_distance=12,
        n_positions=24)),
    "beit": ("BeitForImageClassification", dict(IMAGE, image_size=12, use_relative_position_bias=True)),
    "beit-shared": ("BeitModel", dict(IMAGE, image_size=12, num_labels=2, use_mean_pooling=False,
        use_absolute_position_embeddings=True, use_shared_relative_position_bias=True)),
    "beit-plain": ("BeitForImageClassification", dict(IMAGE, num_hidden_layers=1, layer_scale_init_value=0.0)),
    "llama4_text": ("Llama4ForCausalLM", dict(GROUPED, num_hidden_layers=4, head_dim=12, intermediate_size=12,
        intermediate_size_mlp=20, num_local_experts=3, interleave_moe_layer_step=2, no_rope_layers=[1, 0, 0, 1],
        attention_chunk_size=4, floor_scale=3, attn_scale=0.4, attention_bias=True,
        layer_types=["chunked_attention", "full_attention", "full_attention", "chunked_attention"])),
    "esm": ("EsmForMaskedLM", dict(ENCODER, pad_token_id=1, vocab_size=97, position_embedding_type="rotary",
        emb_layer_norm_before=True)),
    "esm-absolute": ("EsmForSequenceClassification", dict(ENCODER, pad_token_id=1, num_hidden_layers=1, num_labels=3)),
}


def randomise(model):
    """Changes every saved parameter and float buffer a little, so that norms stay near 1."""
    generator = torch.Generator().manual_seed(7)
    saved = set(model.state_dict())
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        # A buffer of a single number is a constant of the library (the slope at 0 of xIELU), and decays and frequencies
        # that are buffers follow from the config.
        is_constant = tensor.dim() == 0 or name.endswith(("_decay", "slope_rate", "inv_freq"))
        is_fixed = not tensor.requires_grad if isinstance(tensor, torch.nn.Parameter) else is_constant
        owner = model.get_submodule(name.rpartition(".")[0])
        if name in saved and tensor.is_floating_point() and not is_fixed and "Sinusoidal" not in type(owner).__name__:
            noise = torch.randn(tensor.shape, generator=generator)
            with torch.no_grad():
                is_table = tensor.dim() > 1
                tensor.copy_(noise * 0.3 if is_table else tensor + noise * 0.2)


def inputs_of(model, config):
    generator = torch.Generator().manual_seed(11)
    ids = lambda rows, width: torch.randint(3, 97, (rows, width), generator=generator)
    if hasattr(config, "patch_size"):
        image = torch.randn(2, config.num_channels, config.image_size, config.image_size, generator=generator)
        return {"image": image}, {"pixel_values": image}
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    if config.is_encoder_decoder and "EncoderModel" not in type(model).__name__:
        source, target = ids(2, 9), ids(2, 7)
        if "SequenceClassification" in type(model).__name__:
            # Texts of mBART and PLBART end with a language token.
            behind = int(config.model_type in ("mbart", "plbart"))
            ends = mask.cumsum(1) * mask == mask.sum(1, keepdim=True) - behind
            source = torch.where(mask == 1, source, config.pad_token_id).masked_fill(ends, config.eos_token_id)
            return {"source": source, "source_mask": mask}, {"input_ids": source, "attention_mask": mask}
        given = {"source": source, "source_mask": mask, "target": target}
        return given, {"input_ids": source, "attention_mask": mask, "decoder_input_ids": target}
    if "CausalLM" in type(model).__name__ or "LMHead" in type(model).__name__:
        tokens = ids(2, 11)
        return {"tokens": tokens}, {"input_ids": tokens}
    tokens = torch.where(mask == 1, ids(2, 9), config.pad_token_id or 0)
    return {"tokens": tokens, "mask": mask}, {"input_ids": tokens, "attention_mask": mask}


def make(family, out):
    name, values = FAMILIES[family]
    kind = getattr(transformers, name)
    typed = "model_type" in values
    config = transformers.AutoConfig.for_model(**values) if typed else kind.config_class(**values)
    # Falcon's eager attention adds ALiBi twice; its fused attention adds it once, as in training.
    config._attn_implementation = "sdpa" if getattr(config, "alibi", False) else "eager"
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    torch.manual_seed(3)
    model = kind(config).eval().float()
    randomise(model)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    folder = Path(out) / family
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    given, call = inputs_of(model, config)
    with torch.no_grad():
        result = model(**call)
    expected = {k: result[k].contiguous() for k in ("logits", "start_logits", "end_logits") if k in result}
    if not expected:
        expected["hidden"] = result["last_hidden_state"].contiguous()
    save_file(expected, folder / "expected.safetensors")
    (folder / "inputs.json").write_text(json.dumps({k: v.tolist() for k, v in given.items()}) + "\n")
    facts = {"parameters": sum(p.numel() for p in model.parameters()), "model_class": name}
    (folder / "facts.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for family in sys.argv[2:] or FAMILIES:
        try:
            make(family, sys.argv[1])
            print("made", family)
        except Exception as error:
            print("failed", family, repr(error)[:200])
