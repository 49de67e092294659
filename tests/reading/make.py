"""Makes `tests/reading/cases.json`: what models of `tests/hub` say of texts, read with a tokenizer of their own.

    python tests/reading/make.py tests/reading

Needs torch and transformers. A case is a model, the files beside its weights, a text, and what the library says of it,
whose own tokenizer makes the inputs: the special tokens around the text, and its token types if there are any. The
tokenizer is `tokenizer.json` with the template of the case.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers

TYPED = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
UNTYPED = {"tokenizer_class": "PreTrainedTokenizerFast"}
MARKS = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 4}
TEXT, SECOND = "t5 t70 t11 t33", "t8 t9"


def items(text):
    """A template's items from a text such as `[CLS] A [SEP] B:1`."""
    for word in text.split():
        name, _, kind = word.partition(":")
        what = "Sequence" if name in "AB" else "SpecialToken"
        yield {what: {"id": name, "type_id": int(kind or 0)}}


def template(single, pair):
    """What a tokenizer puts around one text and around two."""
    marks = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in MARKS.items()}
    return {"type": "TemplateProcessing", "single": list(items(single)), "pair": list(items(pair)),
            "special_tokens": marks}


def tokenizer():
    """A tokenizer with a word for every id, `t0` to `t96`, but for the marks."""
    vocab = MARKS | {f"t{i}": i for i in range(97) if i not in MARKS.values()}
    added = [{"id": id, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for name, id in MARKS.items()]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "t3"}}


# model, single, pair, second text, tokenizer_config.json
CASES = [
    ("bert-classify", "[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", None, TYPED),
    ("bert-classify", "[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", SECOND, TYPED),
    # Two tokens on a side, around one text alone.
    ("bert-classify", "[CLS] [MASK] A [SEP] [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", None, TYPED),
    ("bert-classify", "[CLS] [MASK] A [SEP] [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", SECOND, TYPED),
    # Both after the text, as in XLNet.
    ("bert-classify", "A [SEP] [CLS]:1", "A [SEP] B:1 [SEP]:1 [CLS]:1", None, TYPED),
    ("bert-classify", "A [SEP] [CLS]:1", "A [SEP] B:1 [SEP]:1 [CLS]:1", SECOND, TYPED),
    # Types that are not the usual ones.
    ("bert-classify", "[CLS]:1 A:1 [SEP]:1", "[CLS] A [SEP] B:1 [SEP]:1", None, TYPED),
    ("bert-classify", "[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]", SECOND, TYPED),
    ("bert-classify", "[CLS] A [SEP]", "[CLS] A [SEP] [SEP] B:1 [SEP]:1", SECOND, TYPED),
    ("bert-classify", "[CLS] A [SEP]", "[CLS] B [SEP] A:1 [SEP]:1", SECOND, TYPED),
    ("bert-classify", "A", "A B:1", SECOND, TYPED),
    # GLM and mBART.
    ("gpt2-classify", "[MASK] [CLS] A", "[MASK] [CLS] A B:1", None, UNTYPED),
    ("mbart-classify", "A [SEP] [MASK]", "A B [SEP] [MASK]", None, UNTYPED),
    ("bert-mlm", "[CLS] [SEP] A [SEP] [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", None, TYPED),
    ("modernbert-tag", "[CLS] [SEP] A [SEP] [SEP]", "[CLS] A [SEP] B [SEP]", None, UNTYPED),
    ("bert-qa", "[CLS] A [SEP]", "[CLS] [MASK] A [SEP] [SEP] B:1 [SEP]:1 [MASK]:1", SECOND, TYPED),
    ("bert-qa", "[CLS] A [SEP]", "[CLS] B [SEP] A:1 [SEP]:1", SECOND, TYPED),
]

# A directory of sentence-transformers: the model whose body it has, its way of pooling, whether vectors are scaled to
# unit length, and its longest text. Its library is not needed: what its modules compute is in `vector`.
SENTENCES = [
    ("bert-mlm", {"word_embedding_dimension": 32, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, True, None),
    ("bert-mlm", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}, False, 5),
    ("bert-mlm", {"embedding_dimension": 32, "pooling_mode": "cls"}, True, 64),
    ("gpt2", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False, "pooling_mode_lasttoken": True}, True, None),
]


def vector(pooling, normalize, hidden):
    named = [word for word in ("cls", "mean", "max", "last") if any(
        pooling.get(f"pooling_mode_{word}{end}") is True for end in ("_token", "_tokens", "token"))]
    [word] = [pooling["pooling_mode"]] if "pooling_mode" in pooling else named
    made = {"cls": hidden[0], "mean": hidden.mean(0), "max": hidden.max(0).values, "last": hidden[-1]}[word]
    return (torch.nn.functional.normalize(made, dim=0) if normalize else made).tolist()


def sentence(folder, model, pooling, normalize, longest):
    modules = ["Transformer", "Pooling", *["Normalize"] * normalize]
    files = {
        "modules.json": [{"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "",
                          "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(modules)],
        "1_Pooling/config.json": pooling,
        "tokenizer_config.json": TYPED if model == "bert-mlm" else UNTYPED,
    }
    if longest:
        files["sentence_bert_config.json"] = {"max_seq_length": longest, "do_lower_case": False}
    around = template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1")
    with directory(folder.parent / "hub" / model, around, files) as place:
        network = transformers.AutoModel.from_pretrained(place, attn_implementation="eager").eval().float()
        own = transformers.AutoTokenizer.from_pretrained(place)
        encoded = own(TEXT, return_tensors="pt", truncation=longest is not None, max_length=longest)
        with torch.no_grad():
            hidden = network(**encoded).last_hidden_state[0]
    return {"model": model, "kind": "embed", "template": around, "files": files, "text": TEXT, "second": None,
            "says": vector(pooling, normalize, hidden)}


@contextlib.contextmanager
def directory(hub, around, files):
    """A model's directory with these files beside its weights."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        for name in ["config.json", "model.safetensors"]:
            (place / name).write_bytes((hub / name).read_bytes())
        for name, content in {"tokenizer.json": tokenizer() | {"post_processor": around}, **files}.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(json.dumps(content))
        yield place


def says(kind, network, encoded, text):
    with torch.no_grad():
        result = network(**encoded)
    if kind == "qa":
        # The text is the second of two, and its question the first.
        inside = [i for i, which in enumerate(encoded.sequence_ids(0)) if which == 1]
        start, end = result.start_logits[0].softmax(-1), result.end_logits[0].softmax(-1)
        return max((start[i] * end[j]).item() for i in inside for j in inside if i <= j)
    rows = result.logits.softmax(-1)[0]
    if kind == "classify":
        return rows.tolist()
    own = [i for i, which in enumerate(encoded.sequence_ids(0)) if which == 0]
    if kind == "mlm":
        return max(rows[own[text.split().index("[MASK]")]].tolist())
    return [max(rows[i].tolist()) for i in own]


def case(folder, model, single, pair, second, config):
    hub = folder.parent / "hub" / model
    kind = model.rpartition("-")[2]
    around, files = template(single, pair), {"tokenizer_config.json": config}
    with directory(hub, around, files) as place:
        network = getattr(transformers, json.loads((hub / "facts.json").read_text())["model_class"])
        network = network.from_pretrained(place, attn_implementation="eager").eval().float()
        text = TEXT.replace("t11", "[MASK]") if kind == "mlm" else TEXT
        # The text that a question is about is the second one.
        texts = [second, text] if kind == "qa" else [text] if second is None else [text, second]
        encoded = transformers.AutoTokenizer.from_pretrained(place)(*texts, return_tensors="pt")
        said = says(kind, network, encoded, text)
    return {"model": model, "kind": kind, "template": around, "files": files, "text": text, "second": second, "says": said}


def bpe(normalizers, metaspace):
    """A tokenizer of Llama's kind, which marks the beginnings of words in one of two ways."""
    words = ["<unk>", "<s>", "</s>", "\u2581", *"abct", "\u2581a", "\u2581\u2581", "ca", "cat", "\u2581cat"]
    added = [{"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i in range(3)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
            "pre_tokenizer": metaspace, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {word: i for i, word in enumerate(words)},
                      "merges": [["\u2581", "a"], ["\u2581", "\u2581"], ["c", "a"], ["ca", "t"], ["\u2581", "cat"]]}}


MARKED = [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
SPLIT = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
FILES = [bpe(MARKED, None), bpe([], SPLIT), tokenizer()]


def classes():
    """The ids of texts by the library's tokenizers, which follow the class that `tokenizer_config.json` names for models of
    some types only."""
    llama = {"tokenizer_class": "LlamaTokenizer"}
    configs = [llama, llama | {"add_prefix_space": False}, llama | {"add_prefix_space": True, "legacy": True},
               {"tokenizer_class": "LlamaTokenizerFast", "add_prefix_space": False}, {"add_prefix_space": False}, UNTYPED]
    bert = {"tokenizer_class": "BertTokenizer"}
    cases = [(model, file, config, text) for file in FILES[:2] for config in configs
             for model in ("llama", "mistral") for text in (" a  cat", "cat a", "cat</s>a cat", "axcat")]
    cases += [("bert", FILES[2], bert, TEXT), ("bert", FILES[2], bert | {"sep_token": "[MASK]"}, TEXT), ("bert", FILES[2], UNTYPED, TEXT)]
    for model, file, config, text in cases:
        with tempfile.TemporaryDirectory() as place:
            for name, content in {"tokenizer.json": file, "tokenizer_config.json": config,
                                  "config.json": {"model_type": model}}.items():
                (Path(place) / name).write_text(json.dumps(content))
            own = transformers.AutoTokenizer.from_pretrained(place)
            yield {"model": model, "tokenizer": FILES.index(file), "config": config, "text": text, "ids": own(text)["input_ids"]}


def stretched(folder):
    """What a model whose rotary positions stretch with the text writes after a prompt longer than its training. The
    whole text is read for every token: a cache would keep the keys of shorter texts."""
    changes = {"max_position_embeddings": 16, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 500.0}}
    prompt = " ".join(f"t{5 + 7 * i % 90}" for i in range(25))
    files = {"tokenizer_config.json": UNTYPED}
    with directory(folder.parent / "hub" / "llama", None, files) as place:
        config = json.loads((place / "config.json").read_text()) | changes
        (place / "config.json").write_text(json.dumps(config))
        network = transformers.LlamaForCausalLM.from_pretrained(place, attn_implementation="eager").eval().float()
        own = transformers.AutoTokenizer.from_pretrained(place)
        ids = own(prompt, return_tensors="pt")["input_ids"]
        more = network.generate(ids, do_sample=False, max_new_tokens=6, use_cache=False)[0]
    return {"changes": changes, "prompt": prompt, "text": own.decode(more[ids.shape[1]:])}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = Path(sys.argv[1])
    lines = ",\n".join(json.dumps(c) for c in
                       [case(folder, *c) for c in CASES] + [sentence(folder, *c) for c in SENTENCES])
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()) + "\n")
    (folder / "cases.json").write_text(f"[\n{lines}\n]\n")
    (folder / "stretched.json").write_text(json.dumps(stretched(folder)) + "\n")
    lines = ",\n".join(json.dumps(c) for c in classes())
    (folder / "classes.json").write_text(f'{{"tokenizers": {json.dumps(FILES)},\n"cases": [\n{lines}\n]}}\n')
