"""Decoding with gpt2-small in llama.cpp, through the packages llama-cpp-python and gguf."""
import os
import tempfile

import gguf
import llama_cpp
import numpy

# The types of weights in devices.py's names, and what they are called in llama.cpp.
TYPES = {
    "f32": llama_cpp.LLAMA_FTYPE_ALL_F32,
    "bf16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "int8": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
}


# llama.cpp keeps a pointer to this function, so it must live as long as the process.
@llama_cpp.llama_log_callback
def silence(level, text, data):
    pass


def write(path):
    """Writes random weights in single precision."""
    # Only the first round needs it, and its threads would wait next to those of llama.cpp.
    import transformers

    config = transformers.GPT2Config()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, config.n_layer)
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.GPT2])
    writer.add_block_count(config.n_layer)
    writer.add_context_length(config.n_positions)
    writer.add_embedding_length(config.n_embd)
    writer.add_feed_forward_length(4 * config.n_embd)
    writer.add_head_count(config.n_head)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    # Decoding by numbers needs no tokenizer; llama.cpp invents the entries itself.
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(config.vocab_size)
    # Without the head, whose weights are those of the embedding.
    for name, value in transformers.GPT2Model(config).state_dict().items():
        is_transposed = name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        value = value.t() if is_transposed else value
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), numpy.ascontiguousarray(value.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantize(path, source, kind):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.nthread = kind, 2
    assert llama_cpp.llama_model_quantize(source.encode(), path.encode(), params) == 0


def cached(name, make):
    """The file, which later rounds find where the first has made it."""
    folder = os.path.join(tempfile.gettempdir(), "trafoc-benches")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        # A file that was not finished must not be found.
        make(path + ".part")
        os.replace(path + ".part", path)
    return path


def decoder(weights, length):
    """A function that decodes `length` tokens greedily, from one token."""
    llama_cpp.llama_log_set(silence, None)
    llama_cpp.llama_backend_init()
    path = cached("gpt2-small-f32.gguf", write)
    if weights != "f32":
        path = cached(f"gpt2-small-{weights}.gguf", lambda to: quantize(to, path, TYPES[weights]))
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    params = llama_cpp.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch = 512, 2, 2
    context = llama_cpp.llama_init_from_model(model, params)
    greedy = llama_cpp.llama_sampler_init_greedy()
    assert model and context

    def run():
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        token = (llama_cpp.llama_token * 1)(1)
        for _ in range(length):
            assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(token, 1)) == 0
            token[0] = llama_cpp.llama_sampler_sample(greedy, context, -1)

    return run
