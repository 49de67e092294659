"""Models of SentencePiece as directories have them, and the ids that Hugging Face's library gives texts with them, with
which `tests/it/learn/sentencepiece.rs` compares those of trafoc.

    python3 tests/sentencepiece/make.py

needs sentencepiece, protobuf and transformers. The expected ids of the folders `own-*` are those of sentencepiece itself,
because the library has no rules for them; it then also ignores that a space is put before a text.
"""

import json
import shutil
from pathlib import Path

import sentencepiece
from transformers import AutoTokenizer, LlamaTokenizer
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"

TEXTS = [
    "",
    " ",
    "The harbour closed; seven freighters wait.",
    "  several   spaces  at once ",
    "a tab\tand\na line",
    "ﬁne Ａ fields at 12,500 tonnes in 2024",
    "Ça va très bien à Zürich, 東京 and 🦀🎉",
    "a <unk> <s> b </s> <pad> c<mask>d [CLS] x [SEP] [MASK] y",
    "``quoted'' text of a▁b ▁ c",
    "wheat<sym>prices <new> rise<other>s",
    "<extra_id_0> and <extra_id_99>",
    "Ｅ́ É e\u0301 ŒUVRE İstanbul",
    "no-break\u00a0space and\u3000wide",
    "<0x41> \x00 end",
    "wheat  <mask> prices <cls> of de_DE <eop> fields",
    ">>fra<< wheat prices",
    ">>zz<<wheat __fr__ prices fra_Latn",
    "a  <sym>  b <sym><sym>c ＜sym＞ <sym>",
    "[MASK]wheat [MASK]  prices[MASK] and ［ＭＡＳＫ］ </s>[MASK] x",
    "__en__ wheat__zu__ prices </s>  <new>  \U00100000 rise",
]

# What a small map of characters replaces: the ligature, two letters of full width, and a space that does not break.
RULES = "FB01\t66 69\nFF21\t41\nFF25\t45\n00A0\t20\n9\t20\nA\t20\n3000\t20\n65 301\tE9\n"


def corpus():
    words = "the harbour closed and seven freighters wait while wheat prices rose in dry fields as farmers hope"
    words += " ministers met in Zürich tariffs on steel would fall by half very well at 12,500 tonnes Ça très à É é"
    words = words.split()
    lines = [" ".join(words[(i * 7 + j * (1 + i % 5)) % len(words)] for j in range(3 + i % 9)) for i in range(400)]
    return [line + (". " if i % 3 else ", 1990 2024;") + line.title() for i, line in enumerate(lines)]


def train():
    MODELS.mkdir(exist_ok=True)
    (MODELS / "corpus.txt").write_text("\n".join(corpus()) + "\n", encoding="utf-8")
    (MODELS / "rules.tsv").write_text(RULES)
    kinds = {
        "unigram": dict(model_type="unigram", vocab_size=160),
        "t5": dict(model_type="unigram", vocab_size=160, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
        "albert": dict(
            model_type="unigram", vocab_size=160, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
            control_symbols="[CLS],[SEP]", user_defined_symbols="[MASK]",
        ),
        "xlnet": dict(
            model_type="unigram", vocab_size=160, unk_id=0, bos_id=1, eos_id=2,
            control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>", user_defined_symbols="<eop>",
        ),
        "deberta": dict(
            model_type="unigram", vocab_size=160, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]",
            bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
        ),
        "bytes": dict(
            model_type="bpe", vocab_size=440, byte_fallback=True, remove_extra_whitespaces=False,
            split_digits=True, allow_whitespace_only_pieces=True,
        ),
        "gemma": dict(
            model_type="bpe", vocab_size=440, byte_fallback=True, remove_extra_whitespaces=False, split_digits=True,
            add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
            bos_piece="<bos>", user_defined_symbols="<mask>,<sym>,▁▁",
        ),
        "bpe": dict(model_type="bpe", vocab_size=180, user_defined_symbols="<sym>"),
        "bare": dict(model_type="unigram", vocab_size=160, add_dummy_prefix=False),
        "ubytes": dict(model_type="unigram", vocab_size=420, byte_fallback=True, remove_extra_whitespaces=False),
    }
    for name, kind in kinds.items():
        if kind.get("byte_fallback"):
            kind["normalization_rule_name"] = "identity"
        else:
            kind["normalization_rule_tsv"] = str(MODELS / "rules.tsv")
        sentencepiece.SentencePieceTrainer.train(
            input=str(MODELS / "corpus.txt"), model_prefix=str(MODELS / name), minloglevel=2, character_coverage=1.0,
            hard_vocab_limit=False, **kind,
        )


def token(content, **flags):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, **flags}


LANGUAGES = ["ace_Arab", "eng_Latn", "fra_Latn"]
NLLB = {
    "tokenizer_class": "NllbTokenizer",
    # With the model alone the library gives every language the id of unknown text.
    "added_tokens_decoder": {
        **{str(id): {**token(text), "special": True} for id, text in enumerate(["<s>", "<pad>", "</s>", "<unk>"])},
        **{str(181 + i): {**token(text), "special": True} for i, text in enumerate(LANGUAGES)},
        "184": {**token("<mask>", lstrip=True, normalized=True), "special": True},
    },
}


def with_id(vocabulary, piece, id):
    """The same vocabulary, in which a piece has this id, as the library has a special token in both vocabularies."""
    other = next(other for other, own in vocabulary.items() if own == id)
    return {**vocabulary, piece: id, other: vocabulary[piece]}


M2M = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]


def vocabulary(*models, marian=False, more=()):
    """A `vocab.json` with ids in another order than the models have, without some of their pieces, with a token
    that none of them has, and with words that the models know only with the space before them."""
    first = ["</s>", "<unk>"] if marian else ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = set()
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(MODELS / f"{model}.model"))
        pieces |= {processor.id_to_piece(i) for i in range(processor.get_piece_size())}
    pieces -= {"<s>", "<pad>", "</s>", "<unk>"}
    kept = [piece for i, piece in enumerate(sorted(pieces, reverse=True)) if i % 11]
    left_out = [piece[1:] for i, piece in enumerate(sorted(pieces, reverse=True)) if i % 11 == 0 and len(piece) > 2]
    words = [piece for piece in left_out if piece not in pieces]
    last = [">>fra<<", "<pad>"] if marian else []
    return {piece: id for id, piece in enumerate(first + kept + ["🦀🎉"] + words + last + list(more))}


train()
# Each folder: the model type of its config, the model, the name of its file, and its other files.
FOLDERS = {
    "t5": ("t5", "t5", "spiece.model", {}),
    "mt5-without-sentinels": (
        "mt5", "t5", "spiece.model", {"tokenizer_config": {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}},
    ),
    "xlm-roberta": ("xlm-roberta", "unigram", "sentencepiece.bpe.model", {}),
    "xlm-roberta-mask": (
        "xlm-roberta", "unigram", "sentencepiece.bpe.model",
        {"tokenizer_config": {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": {"__type": "AddedToken", **token("<mask>", lstrip=True)}}},
    ),
    "albert": ("albert", "albert", "spiece.model", {}),
    "albert-cased": (
        "albert", "albert", "spiece.model", {"tokenizer_config": {"do_lower_case": False, "keep_accents": True}},
    ),
    "albert-by-class": (
        "bert", "albert", "spiece.model", {"tokenizer_config": {"tokenizer_class": "AlbertTokenizer"}},
    ),
    "llama": ("llama", "bytes", "tokenizer.model", {"tokenizer_config": {"tokenizer_class": "LlamaTokenizer"}}),
    "llama-framed": (
        "llama", "bytes", "tokenizer.model",
        {"tokenizer_config": {
            "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True, "legacy": True}},
    ),
    "llama-bare": (
        "llama", "bytes", "tokenizer.model",
        {"tokenizer_config": {"tokenizer_class": "LlamaTokenizerFast", "add_prefix_space": False,
                              "add_bos_token": True}},
    ),
    "llama-added": (
        "llama", "bytes", "tokenizer.model",
        {"tokenizer_config": {"tokenizer_class": "LlamaTokenizer"},
         "added_tokens": {"<new>": 440, "<other>": 441},
         "special_tokens_map": {"additional_special_tokens": ["<new>"], "pad_token": "<other>"}},
    ),
    "llama-decoder": (
        "llama", "bytes", "tokenizer.model",
        {"tokenizer_config": {
            "tokenizer_class": "LlamaTokenizer",
            "added_tokens_decoder": {
                "0": {**token("<unk>"), "special": True}, "1": {**token("<s>"), "special": True},
                "2": {**token("</s>"), "special": True},
                "440": {**token("<new>", rstrip=True, lstrip=True), "special": True},
                "441": {**token("<other>", normalized=True), "special": False},
            }}},
    ),
    "mistral": ("mistral", "bytes", "tokenizer.model", {}),
    "gemma": ("gemma", "gemma", "tokenizer.model", {}),
    "gemma-framed": (
        "gemma2", "gemma", "tokenizer.model",
        {"tokenizer_config": {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True}},
    ),
    "pegasus": ("pegasus", "t5", "spiece.model", {}),
    "camembert": ("camembert", "unigram", "sentencepiece.bpe.model", {}),
    "camembert-named": (
        "camembert", "unigram", "sentencepiece.bpe.model",
        {"tokenizer_config": {"tokenizer_class": "CamembertTokenizer", "add_prefix_space": False,
                              "mask_token": {"__type": "AddedToken", **token("<mask>", rstrip=True)}}},
    ),
    "mbart": ("mbart", "unigram", "sentencepiece.bpe.model", {}),
    "mbart-from-german": (
        "mbart", "unigram", "sentencepiece.bpe.model",
        {"tokenizer_config": {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE", "tgt_lang": "fr_XX"}},
    ),
    "xlnet": ("xlnet", "xlnet", "spiece.model", {}),
    "xlnet-lower": ("xlnet", "xlnet", "spiece.model", {"tokenizer_config": {"do_lower_case": True}}),
    "deberta-v2": ("deberta-v2", "deberta", "spm.model", {}),
    "deberta-v2-split": (
        "deberta-v2", "deberta", "spm.model",
        {"tokenizer_config": {"do_lower_case": True, "split_by_punct": True, "add_prefix_space": False}},
    ),
    "mbart-50": ("mbart", "unigram", "sentencepiece.bpe.model", {"tokenizer_config": {"tokenizer_class": "MBart50Tokenizer"}}),
    "mbart-50-from-swedish": (
        "mbart", "unigram", "sentencepiece.bpe.model",
        {"tokenizer_config": {"tokenizer_class": "MBart50Tokenizer", "src_lang": "sv_SE", "tgt_lang": "fr_XX"}},
    ),
    "nllb": ("m2m_100", "bpe", "sentencepiece.bpe.model", {"tokenizer_config": NLLB}),
    "nllb-legacy": (
        "m2m_100", "bpe", "sentencepiece.bpe.model",
        {"tokenizer_config": {**NLLB, "src_lang": "fra_Latn", "legacy_behaviour": True,
                              "additional_special_tokens": LANGUAGES}},
    ),
    "m2m-100": ("m2m_100", "bpe", "sentencepiece.bpe.model", {"vocab": vocabulary("bpe")}),
    "m2m-100-from-french": (
        "m2m_100", "unigram", "sentencepiece.bpe.model",
        {"vocab": vocabulary("unigram"), "tokenizer_config": {"tokenizer_class": "M2M100Tokenizer", "src_lang": "fr"}},
    ),
    "m2m-100-wmt": (
        "m2m_100", "bare", "sentencepiece.bpe.model",
        {"vocab": vocabulary("bare"), "tokenizer_config": {"language_codes": "wmt21", "src_lang": "de"}},
    ),
    "m2m-100-listed": (
        "m2m_100", "albert", "sentencepiece.bpe.model",
        {"vocab": vocabulary("albert"), "tokenizer_config": {"tokenizer_class": "M2M100Tokenizer", "src_lang": "fr"},
         "special_tokens_map": {"additional_special_tokens": M2M, "eos_token": "</s>"}},
    ),
    "m2m-100-decoder": (
        "m2m_100", "bpe", "sentencepiece.bpe.model",
        {"vocab": vocabulary("bpe"),
         "tokenizer_config": {
            "tokenizer_class": "M2M100Tokenizer",
            "added_tokens_decoder": {
                str(len(vocabulary("bpe")) + i): {**token(text), "special": True} for i, text in enumerate(M2M)
            }}},
    ),
    "marian": ("marian", "unigram", "source.spm", {"vocab": vocabulary("unigram", "t5", marian=True)}),
    "marian-bpe": (
        "marian", "bpe", "source.spm",
        {"vocab": vocabulary("bpe", marian=True), "tokenizer_config": {"tokenizer_class": "MarianTokenizer", "source_lang": "en"}},
    ),
    "marian-symbols": (
        "marian", "albert", "source.spm",
        {"vocab": vocabulary("albert", "bpe", marian=True, more=["<new>"]), "target_model": "bpe",
         "tokenizer_config": {"additional_special_tokens": ["<new>"]}},
    ),
    "marian-added": (
        "marian", "bare", "source.spm",
        {"vocab": vocabulary("bare", "unigram", marian=True), "target_model": "unigram",
         "added_tokens": {"<new>": len(vocabulary("bare", "unigram", marian=True))}},
    ),
    "marian-separate": (
        "marian", "unigram", "source.spm",
        {"vocab": vocabulary("unigram", marian=True), "target_model": "bpe",
         "target_vocab": with_id(vocabulary("bpe", marian=True), "<pad>", vocabulary("unigram", marian=True)["<pad>"]),
         "tokenizer_config": {"separate_vocabs": True}},
    ),
    "own-unigram": ("granite", "unigram", "tokenizer.model", {}),
    "own-bpe": ("granite", "bpe", "tokenizer.model", {}),
    "own-bytes": ("granite", "bytes", "tokenizer.model", {}),
    "own-bare": ("granite", "bare", "tokenizer.model", {}),
    "own-ubytes": ("granite", "ubytes", "tokenizer.model", {}),
}
# In these, the library looks at a text's special tokens, and sentencepiece does not.
PLAIN = [i for i, text in enumerate(TEXTS) if not any(word in text for word in ["<s>", "</s>", "<sym>", "<0x41>"])]


def main():
    expected = {"texts": TEXTS, "folders": {}}
    for name, (kind, model, file, others) in FOLDERS.items():
        folder = HERE / "made"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(MODELS / f"{model}.model", folder / file)
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        for other, content in others.items():
            if other != "target_model":
                (folder / f"{other}.json").write_text(json.dumps(content))
        own = {"type": kind, "model": model, **others}
        if name.startswith("own-"):
            processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
            own["ids"] = {str(i): processor.encode(TEXTS[i]) for i in PLAIN}
        else:
            if kind == "mistral":
                # Without a class of its own in the files, the library would divide texts without a space before them.
                tokenizer = LlamaTokenizer.from_pretrained(folder)
            else:
                if kind == "marian":
                    shutil.copy(MODELS / f"{others.get('target_model', model)}.model", folder / "target.spm")
                tokenizer = AutoTokenizer.from_pretrained(folder)
            own["ids"] = {str(i): tokenizer.encode(text) for i, text in enumerate(TEXTS)}
            own["inner"] = {str(i): tokenizer.encode(text, add_special_tokens=False) for i, text in enumerate(TEXTS)}
            if kind == "marian":
                own["target"] = {str(i): tokenizer(text_target=text)["input_ids"] for i, text in enumerate(TEXTS)}
            # With a vocabulary of their own, the library decodes all ids as those of targets.
            decoded = own["target"] if "target_vocab" in others else own["inner"]
            own["decoded"] = {
                str(i): (
                    tokenizer.decode(decoded[str(i)], skip_special_tokens=True)
                    if "vocab" in others
                    else tokenizer.backend_tokenizer.decode(own["inner"][str(i)], skip_special_tokens=True)
                )
                for i in range(len(TEXTS))
            }
        expected["folders"][name] = own
        shutil.rmtree(folder)
    def line(value):
        return json.dumps(value, ensure_ascii=False)

    # One line for each list of a folder.
    parts = [
        f"{line(name)}: {{\n" + ",\n".join(f"  {line(key)}: {line(value)}" for key, value in own.items()) + "\n }"
        for name, own in expected["folders"].items()
    ]
    text = f'{{"texts": {line(TEXTS)},\n"folders": {{\n ' + ",\n ".join(parts) + "\n}}\n"
    (HERE / "expected.json").write_text(text, encoding="utf-8")
    for left in [*MODELS.glob("*.vocab"), MODELS / "corpus.txt", MODELS / "rules.tsv"]:
        left.unlink()


main()
