"""The work of benches/devices.rs in a peer: `python devices.py PEER WORK RUNS` prints the seconds of every run
except the first. The peers are PyTorch with the models of transformers, torch.compile, and llama.cpp."""
import sys
import time

peer, work, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
# How many tokens are decoded.
TOKENS = 64
try:
    if peer == "llama.cpp":
        import llama

        # Here, because it needs transformers where there is no file yet.
        run = llama.decoder(work.rsplit(" ", 1)[-1], TOKENS)
    else:
        import torch
        import transformers

        torch.set_num_threads(2)
except ModuleNotFoundError as missing:
    # devices.rs knows a peer that is not there by this status.
    print(f"{peer} is left out: {missing}", file=sys.stderr)
    sys.exit(69)


def tokens(batch, length, vocab):
    return torch.tensor([(i * 7919 + 13) % vocab for i in range(batch * length)]).view(batch, length)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()


def decode(model):
    ids, n = torch.tensor([[1]]), TOKENS
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=0)
    assert out.shape[1] == n + 1


def trainer(model, ids, vocab):
    """A function that does a step of AdamW."""
    optimizer = torch.optim.AdamW(model.parameters())

    def loss_of(ids):
        logits = model(ids)
        logits = logits if torch.is_tensor(logits) else logits.logits
        return torch.nn.functional.cross_entropy(logits.view(-1, vocab), ids.view(-1))

    loss_of = torch.compile(loss_of) if peer == "torch.compile" else loss_of

    def run():
        loss = loss_of(ids)
        loss.item()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return run


if peer == "llama.cpp":
    pass
elif work.startswith("gpt2-small forward"):
    model, ids = gpt2(), tokens(1, 128, 50257)

    def run():
        with torch.no_grad():
            model(ids)
elif work.startswith("gpt2-small prompt"):
    model, ids = gpt2(), tokens(1, 512, 50257)

    def run():
        with torch.no_grad():
            model(ids)
elif work.startswith("decoder30m"):
    config = transformers.GPT2Config(
        vocab_size=8192, n_positions=256, n_embd=512, n_layer=8, n_head=8, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    run = trainer(transformers.GPT2LMHeadModel(config), tokens(8, 256, 8192), 8192)
elif work.startswith("MiniLM"):
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    model, ids = transformers.BertModel(config, add_pooling_layer=False).eval(), tokens(32, 64, 30522)

    def run():
        with torch.no_grad():
            model(ids).last_hidden_state.mean(1)
elif work.startswith("gbt-mulm"):
    import train_gbt_mulm

    run = trainer(train_gbt_mulm.Gpt(), tokens(16, 31, 30), 30)
elif work.startswith("gpt2-small cached"):
    model = gpt2()

    def run():
        decode(model)
elif work.startswith("stories260k"):
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=172, num_hidden_layers=5, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=512, tie_word_embeddings=True, rms_norm_eps=1e-5)
    model = transformers.LlamaForCausalLM(config).eval()

    def run():
        decode(model)
else:
    sys.exit(f"no such work: {work}")

for number in range(runs):
    begun = time.perf_counter()
    run()
    if number > 0:
        print(time.perf_counter() - begun)
