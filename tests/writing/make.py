"""Makes `tests/writing/cases.json`: what models of `tests/hub` `generate` from a source.

    python tests/writing/make.py tests/writing

Needs torch and transformers. A case is a model, keys of its `config.json` or of a `generation_config.json`, ids of a
source with the marks around it, how many tokens are asked for (none: as the settings say), the ids that are written
behind what the decoder begins with, and whether a mark of the end came. The best token, with a penalty on those that
were there, or models of random weights would write one token for ever; or a search with `beam` hypotheses and a penalty
on their length, with the sum of the logarithms of the probabilities of what it finds.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers

CLASSES = {"bart": "BartForConditionalGeneration", "t5": "T5ForConditionalGeneration", "marian": "MarianMTModel",
           "m2m_100": "M2M100ForConditionalGeneration", "mbart": "MBartForConditionalGeneration",
           "pegasus": "PegasusForConditionalGeneration", "mt5": "MT5ForConditionalGeneration",
           "llama": "LlamaForCausalLM"}
PENALTY = 4.0
SOURCE = [17, 45, 8, 90, 33, 61, 2]
BART = dict(decoder_start_token_id=2, bos_token_id=0, eos_token_id=2, pad_token_id=1)
T5 = dict(decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)

# model, additions to config.json, generation_config.json, tokens, an own token that becomes an end token too
CASES = [
    ("bart", {}, BART, 12, None),
    ("bart", {}, dict(BART, forced_bos_token_id=0, forced_eos_token_id=2), 12, None),
    ("bart", {}, dict(BART, forced_bos_token_id=30, forced_eos_token_id=2, max_length=9), None, None),
    ("bart", {}, BART, 14, 3),
    ("bart", dict(BART, forced_bos_token_id=11, decoder_start_token_id=5), None, 10, None),
    ("t5", {}, T5, 12, None),
    ("t5", {}, dict(T5, decoder_start_token_id=40), 12, 4),
    ("t5", {}, dict(T5, suppress_tokens=[5, 6, 7], max_new_tokens=7), None, None),
    ("marian", {}, dict(decoder_start_token_id=96, bad_words_ids=[[96]], eos_token_id=0, forced_eos_token_id=0,
        pad_token_id=96, bos_token_id=0), 12, None),
    ("m2m_100", {}, dict(BART, forced_bos_token_id=77), 12, None),
    ("m2m_100", {}, dict(BART, forced_bos_token_id=78), 12, 2),
    ("mbart", {}, dict(BART, decoder_start_token_id=50), 12, None),
    ("pegasus", {}, dict(decoder_start_token_id=0, eos_token_id=1, pad_token_id=0, forced_eos_token_id=1), 12, None),
    ("mt5", {}, T5, 12, 3),
    ("llama", {}, dict(bos_token_id=1, eos_token_id=2, pad_token_id=0), 12, 5),
]
# The same, with the hypotheses and the exponent of their length: the token that is prescribed counts in it, and what is
# excluded does not make the rest more probable.
BEAMS = [
    (("bart", {}, BART, 10, 3), 4, 1.0),
    (("bart", {}, dict(BART, forced_bos_token_id=30), 10, 3), 4, 1.0),
    (("bart", {}, dict(BART, forced_bos_token_id=0, forced_eos_token_id=2), 10, 2), 3, 2.0),
    (("m2m_100", {}, dict(BART, forced_bos_token_id=77), 12, 2), 4, 1.0),
    (("mbart", {}, dict(BART, decoder_start_token_id=50, forced_bos_token_id=8), 9, 1), 5, 0.5),
    (("t5", {}, dict(T5, suppress_tokens=list(range(5, 60))), 10, 3), 4, 1.0),
    (("marian", {}, dict(decoder_start_token_id=96, bad_words_ids=[[i] for i in range(40, 97)], eos_token_id=0,
        forced_eos_token_id=0, pad_token_id=96, bos_token_id=0), 12, 2), 4, 1.0),
]


def case(folder, model, config, generation, most, end, beam=None, length_penalty=None):
    kind = getattr(transformers, CLASSES[model])
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        own = json.loads((folder.parent / "hub" / model / "config.json").read_text()) | config
        (place / "config.json").write_text(json.dumps(own))
        (place / "model.safetensors").write_bytes((folder.parent / "hub" / model / "model.safetensors").read_bytes())
        if generation is not None:
            (place / "generation_config.json").write_text(json.dumps(generation))

        def write():
            network = kind.from_pretrained(place).eval().float()
            asked = {} if most is None else {"max_new_tokens": most}
            forced = network.generation_config.forced_bos_token_id
            if most is not None and forced is not None:
                asked["max_new_tokens"] += 1
            asked |= dict(num_beams=beam, length_penalty=length_penalty) if beam else dict(num_beams=1, repetition_penalty=PENALTY)
            found = network.generate(torch.tensor([SOURCE]), do_sample=False, output_scores=True,
                                     return_dict_in_generate=True, **asked)
            ids = found.sequences[0].tolist()
            begin = len(SOURCE) if model == "llama" else 1 + (forced is not None)
            ends = network.generation_config.eos_token_id
            ends = [ends] if isinstance(ends, int) else ends
            score = None
            if beam:
                length = next((i for i, id in enumerate(ids[begin:]) if id in ends), len(ids) - begin - 1) + begin
                score = round(found.sequences_scores[0].item() * length**length_penalty, 4)
            return ids[begin:], ends, score

        ids, ends, score = write()
        if end is not None:
            generation = dict(generation, eos_token_id=[*ends, ids[end]])
            (place / "generation_config.json").write_text(json.dumps(generation))
            ids, ends, score = write()
    at = next((i for i, id in enumerate(ids) if id in ends), None)
    searched = {"beam": beam, "length_penalty": length_penalty, "log_probability": score} if beam else {}
    return {"model": model, "config": config, "generation": generation, "source": SOURCE, "most": most,
            "penalty": 1.0 if beam else PENALTY, "written": ids[:at], "ended": at is not None, **searched}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    folder = Path(sys.argv[1])
    lines = ",\n".join(json.dumps(c) for c in
                       [case(folder, *c) for c in CASES] + [case(folder, *c, *how) for c, *how in BEAMS])
    (folder / "cases.json").write_text(f"[\n{lines}\n]\n")
