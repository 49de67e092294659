"""Writes the published models whose parameters `tests/it/hub/published.rs` counts: for each the keys of its
config.json that decide its size, as its authors publish them, and the number of parameters that the class of
`transformers` has with them (on the meta device, without memory)."""

import json
import pathlib

import torch
import transformers

ALL = {}


def add(architecture, model_type, shared, **models):
    for name, own in models.items():
        ALL[name.replace("__", ".").replace("_", "-")] = (architecture, {"model_type": model_type, **shared, **own})


def llama(h, f, n, a, kv, v=32000, **more):
    return dict(hidden_size=h, intermediate_size=f, num_hidden_layers=n, num_attention_heads=a,
                num_key_value_heads=kv, vocab_size=v, **more)


UNTIED = dict(tie_word_embeddings=False)
TIED = dict(tie_word_embeddings=True)
add("LlamaForCausalLM", "llama", UNTIED,
    llama_7b=llama(4096, 11008, 32, 32, 32), llama_13b=llama(5120, 13824, 40, 40, 40),
    llama_30b=llama(6656, 17920, 60, 52, 52), llama_65b=llama(8192, 22016, 80, 64, 64),
    llama_2_70b=llama(8192, 28672, 80, 64, 8), codellama_34b=llama(8192, 22016, 48, 64, 8),
    tinyllama_1__1b=llama(2048, 5632, 22, 32, 4), llama_3_8b=llama(4096, 14336, 32, 32, 8, 128256),
    llama_3_70b=llama(8192, 28672, 80, 64, 8, 128256), llama_3__1_405b=llama(16384, 53248, 126, 128, 8, 128256),
    yi_6b=llama(4096, 11008, 32, 32, 4, 64000), yi_34b=llama(7168, 20480, 60, 56, 8, 64000))
add("LlamaForCausalLM", "llama", TIED,
    llama_3__2_1b=llama(2048, 8192, 16, 32, 8, 128256), llama_3__2_3b=llama(3072, 8192, 28, 24, 8, 128256),
    smollm_135m=llama(576, 1536, 30, 9, 3, 49152), smollm_360m=llama(960, 2560, 32, 15, 5, 49152),
    smollm_1__7b=llama(2048, 8192, 24, 32, 32, 49152))
add("MistralForCausalLM", "mistral", UNTIED,
    mistral_7b=llama(4096, 14336, 32, 32, 8), mistral_7b_v0__3=llama(4096, 14336, 32, 32, 8, 32768),
    mistral_nemo=llama(5120, 14336, 40, 32, 8, 131072, head_dim=128))
add("MixtralForCausalLM", "mixtral", dict(num_local_experts=8, num_experts_per_tok=2, **UNTIED),
    mixtral_8x7b=llama(4096, 14336, 32, 32, 8), mixtral_8x22b=llama(6144, 16384, 56, 48, 8, 32768))
add("Qwen2ForCausalLM", "qwen2", {},
    qwen2__5_0__5b=llama(896, 4864, 24, 14, 2, 151936, **TIED), qwen2__5_1__5b=llama(1536, 8960, 28, 12, 2, 151936, **TIED),
    qwen2__5_3b=llama(2048, 11008, 36, 16, 2, 151936, **TIED), qwen2__5_7b=llama(3584, 18944, 28, 28, 4, 152064, **UNTIED),
    qwen2__5_14b=llama(5120, 13824, 48, 40, 8, 152064, **UNTIED), qwen2__5_32b=llama(5120, 27648, 64, 40, 8, 152064, **UNTIED),
    qwen2__5_72b=llama(8192, 29568, 80, 64, 8, 152064, **UNTIED))
Q3 = dict(v=151936, head_dim=128)
add("Qwen3ForCausalLM", "qwen3", {},
    qwen3_0__6b=llama(1024, 3072, 28, 16, 8, **Q3, **TIED), qwen3_1__7b=llama(2048, 6144, 28, 16, 8, **Q3, **TIED),
    qwen3_4b=llama(2560, 9728, 36, 32, 8, **Q3, **TIED), qwen3_8b=llama(4096, 12288, 36, 32, 8, **Q3, **UNTIED),
    qwen3_14b=llama(5120, 17408, 40, 40, 8, **Q3, **UNTIED), qwen3_32b=llama(5120, 25600, 64, 64, 8, **Q3, **UNTIED))


def gpt2(h, n, a):
    return dict(n_embd=h, n_layer=n, n_head=a, n_positions=1024, vocab_size=50257)


add("GPT2LMHeadModel", "gpt2", {}, gpt2=gpt2(768, 12, 12), gpt2_medium=gpt2(1024, 24, 16),
    gpt2_large=gpt2(1280, 36, 20), gpt2_xl=gpt2(1600, 48, 25), distilgpt2=gpt2(768, 6, 12))


def bert(h, n, a, v=30522, f=None, **more):
    return dict(hidden_size=h, num_hidden_layers=n, num_attention_heads=a, intermediate_size=f or 4 * h,
                vocab_size=v, **more)


add("BertForMaskedLM", "bert", {}, bert_tiny=bert(128, 2, 2), bert_mini=bert(256, 4, 4), bert_small=bert(512, 4, 8),
    bert_medium=bert(512, 8, 8), bert_base_uncased=bert(768, 12, 12), bert_large_uncased=bert(1024, 24, 16),
    bert_base_cased=bert(768, 12, 12, 28996), bert_large_cased=bert(1024, 24, 16, 28996),
    bert_base_multilingual_cased=bert(768, 12, 12, 119547), bert_base_chinese=bert(768, 12, 12, 21128))
R = dict(max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
add("RobertaForMaskedLM", "roberta", R, roberta_base=bert(768, 12, 12, 50265), roberta_large=bert(1024, 24, 16, 50265),
    distilroberta_base=bert(768, 6, 12, 50265))
add("XLMRobertaForMaskedLM", "xlm-roberta", R, xlm_roberta_base=bert(768, 12, 12, 250002),
    xlm_roberta_large=bert(1024, 24, 16, 250002))
add("DistilBertForMaskedLM", "distilbert", {}, distilbert_base_uncased=dict(dim=768, n_layers=6, n_heads=12, hidden_dim=3072, vocab_size=30522),
    distilbert_base_cased=dict(dim=768, n_layers=6, n_heads=12, hidden_dim=3072, vocab_size=28996))
A = dict(embedding_size=128, hidden_act="gelu_new")
add("AlbertForMaskedLM", "albert", A, albert_base_v2=bert(768, 12, 12, 30000), albert_large_v2=bert(1024, 24, 16, 30000),
    albert_xlarge_v2=bert(2048, 24, 16, 30000), albert_xxlarge_v2=bert(4096, 12, 64, 30000))


def t5(d, f, n, a, k=64, v=32128):
    return dict(d_model=d, d_ff=f, num_layers=n, num_decoder_layers=n, num_heads=a, d_kv=k, vocab_size=v)


add("T5ForConditionalGeneration", "t5", {}, t5_small=t5(512, 2048, 6, 8), t5_base=t5(768, 3072, 12, 12),
    t5_large=t5(1024, 4096, 24, 16), t5_3b=t5(1024, 16384, 24, 32, 128), t5_11b=t5(1024, 65536, 24, 128, 128))


def bart(d, n, a):
    return dict(d_model=d, encoder_layers=n, decoder_layers=n, encoder_attention_heads=a, decoder_attention_heads=a,
                encoder_ffn_dim=4 * d, decoder_ffn_dim=4 * d, vocab_size=50265, max_position_embeddings=1024)


add("BartForConditionalGeneration", "bart", {}, bart_base=bart(768, 6, 12), bart_large=bart(1024, 12, 16))


def vit(h, n, a, p=16, f=None):
    return dict(hidden_size=h, num_hidden_layers=n, num_attention_heads=a, intermediate_size=f or 4 * h,
                patch_size=p, image_size=224, num_labels=1000)


add("ViTForImageClassification", "vit", {}, vit_tiny_patch16=vit(192, 12, 3), vit_small_patch16=vit(384, 12, 6),
    vit_base_patch16=vit(768, 12, 12), vit_base_patch32=vit(768, 12, 12, 32), vit_large_patch16=vit(1024, 24, 16),
    vit_huge_patch14=vit(1280, 32, 16, 14))


def opt(h, n, a):
    return dict(hidden_size=h, num_hidden_layers=n, num_attention_heads=a, ffn_dim=4 * h, vocab_size=50272,
                max_position_embeddings=2048, word_embed_proj_dim=h)


add("OPTForCausalLM", "opt", {}, opt_125m=opt(768, 12, 12), opt_1__3b=opt(2048, 24, 32), opt_2__7b=opt(2560, 32, 32),
    opt_6__7b=opt(4096, 32, 32), opt_13b=opt(5120, 40, 40), opt_30b=opt(7168, 48, 56), opt_66b=opt(9216, 64, 72))


def neox(h, n, a, v=50304):
    return dict(hidden_size=h, num_hidden_layers=n, num_attention_heads=a, intermediate_size=4 * h, vocab_size=v,
                max_position_embeddings=2048, rotary_pct=0.25, **UNTIED)


add("GPTNeoXForCausalLM", "gpt_neox", {}, pythia_70m=neox(512, 6, 8), pythia_160m=neox(768, 12, 12),
    pythia_410m=neox(1024, 24, 16), pythia_1b=neox(2048, 16, 8), pythia_1__4b=neox(2048, 24, 16),
    pythia_2__8b=neox(2560, 32, 32, 50304), pythia_6__9b=neox(4096, 32, 32, 50432), pythia_12b=neox(5120, 36, 40, 50688),
    gpt_neox_20b=neox(6144, 44, 64, 50432))
add("GPTJForCausalLM", "gptj", UNTIED, gpt_j_6b=dict(n_embd=4096, n_layer=28, n_head=16, rotary_dim=64, vocab_size=50400))


def bloom(h, n, a):
    return dict(hidden_size=h, n_layer=n, n_head=a, vocab_size=250880)


add("BloomForCausalLM", "bloom", {}, bloom_560m=bloom(1024, 24, 16), bloom_1b1=bloom(1536, 24, 16),
    bloom_1b7=bloom(2048, 24, 16), bloom_3b=bloom(2560, 30, 32), bloom_7b1=bloom(4096, 30, 32), bloom=bloom(14336, 70, 112))


def gemma(h, f, n, a, kv, d):
    return dict(hidden_size=h, intermediate_size=f, num_hidden_layers=n, num_attention_heads=a, num_key_value_heads=kv,
                head_dim=d, vocab_size=256000)


add("GemmaForCausalLM", "gemma", {}, gemma_2b=gemma(2048, 16384, 18, 8, 1, 256), gemma_7b=gemma(3072, 24576, 28, 16, 16, 256))
add("Gemma2ForCausalLM", "gemma2", {}, gemma_2_2b=gemma(2304, 9216, 26, 8, 4, 256),
    gemma_2_9b=gemma(3584, 14336, 42, 16, 8, 256), gemma_2_27b=gemma(4608, 36864, 46, 32, 16, 128))
P = dict(partial_rotary_factor=0.5, vocab_size=51200, **UNTIED)
add("PhiForCausalLM", "phi", P, phi_1=bert(2048, 24, 32, 51200), phi_2=bert(2560, 32, 32, 51200, partial_rotary_factor=0.4))

folder = pathlib.Path(__file__).parent
for name, (architecture, config) in ALL.items():
    settings = transformers.AutoConfig.for_model(config["model_type"], **{k: v for k, v in config.items() if k != "model_type"})
    with torch.device("meta"):
        model = getattr(transformers, architecture)(settings)
    count = sum({id(p): p.numel() for p in model.parameters()}.values())
    facts = {"parameters": count, "config": {"architectures": [architecture], **config}}
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(name, f"{count:,}")
