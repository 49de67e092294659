"""Computes the metrics with which tests/it/learn/metric.rs compares: python make.py > figures.json

BLEU by sacreBLEU's corpus_bleu and sentence_bleu; the sentence BLEU written from its definition in "Dive into Deep Learning";
exact match and F1 from the definition of SQuAD's own evaluation.
"""
import collections, json, math, random, re, string
import sacrebleu

WORDS = "the cat sat on a mat , 3.14 percent of it's house-wide re-use ( maybe ) \"yes\" ! ? & 1,000 dogs' co. u.s. 7-8 £5".split()

def corpus(seed, size, noise):
    rng = random.Random(seed)
    refs, hyps = [], []
    for _ in range(size):
        ref = [rng.choice(WORDS) for _ in range(rng.randint(1, 18))]
        hyp = [w if rng.random() > noise else rng.choice(WORDS) for w in ref]
        if rng.random() < noise:
            hyp = hyp[: rng.randint(0, len(hyp))]
        refs.append(" ".join(ref)); hyps.append(" ".join(hyp))
    return hyps, refs

def sentence(pred, label, k):
    pred, label = pred.split(" "), label.split(" ")
    score = math.exp(min(0, 1 - len(label) / len(pred)))
    for n in range(1, min(k, len(pred)) + 1):
        left = collections.Counter(" ".join(label[i:i + n]) for i in range(len(label) - n + 1))
        hits = 0
        for i in range(len(pred) - n + 1):
            gram = " ".join(pred[i:i + n])
            if left[gram] > 0:
                hits += 1
                left[gram] -= 1
        score *= (hits / (len(pred) - n + 1)) ** (0.5 ** n)
    return score

def each(hyps, refs):
    """BLEU of every sentence, tokenized as mteval 13a does and as words between spaces."""
    return [[sacrebleu.sentence_bleu(h, [r], tokenize=t).score for t in ("13a", "none")] for h, r in zip(hyps, refs)]

def normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

def f1(pred, truth):
    pred, truth = normal(pred).split(), normal(truth).split()
    same = sum((collections.Counter(pred) & collections.Counter(truth)).values())
    if same == 0:
        return 0.0
    p, r = same / len(pred), same / len(truth)
    return 2 * p * r / (p + r)

out = {"corpora": [], "sentences": [], "answers": []}
for seed, size, noise in [(1, 40, 0.0), (2, 40, 0.1), (3, 40, 0.4), (4, 3, 0.7), (5, 1, 0.5), (6, 5, 1.0), (7, 200, 0.2)]:
    hyps, refs = corpus(seed, size, noise)
    out["corpora"].append({"hypotheses": hyps, "references": refs,
                           "bleu": sacrebleu.corpus_bleu(hyps, [refs]).score,
                           "words": sacrebleu.corpus_bleu(hyps, [refs], tokenize="none").score,
                           "each": each(hyps, refs)})
hard = (["Hello, world... It's 3,000.5% (or so) & more - 10-15 <b>x</b> \"q\" a.b c,d.", "  spaced   out ", "l’été «ça» va ?"],
        ["Hello world. It's 3,000.5 % (or so) &amp; more: 10-15 <b>y</b> \"q\" a. b c, d.", "spaced out", "l’été « ça » va?"])
out["corpora"].append({"hypotheses": hard[0], "references": hard[1], "bleu": sacrebleu.corpus_bleu(hard[0], [hard[1]]).score,
                       "words": sacrebleu.corpus_bleu(hard[0], [hard[1]], tokenize="none").score, "each": each(*hard)})
for pred, label in [("va !", "va !"), ("j'ai perdu .", "j'ai perdu ."), ("il est calme .", "il est calme ."), ("je suis <unk> .", "je suis chez moi ."),
                    ("a b c d", "a b x d e"), ("x", "a b"), ("", "a"), ("a a a a", "a b a")]:
    out["sentences"].append({"written": pred, "right": label, "bleu": sentence(pred, label, 2)})
for pred, truth in [("The Broncos", "broncos"), ("Denver Broncos", "the Denver"), ("a", "an"), ("42", "43"), ("the U.S. of A.", "US of America"),
                    ("co-operate, with them!", "cooperate with"), ("l'été 1990–1995", "1990–1995"), ("", "x"), ("a–b the end", "b end")]:
    out["answers"].append({"given": pred, "right": truth, "exact": normal(pred) == normal(truth), "f1": f1(pred, truth)})
print(json.dumps(out, ensure_ascii=False, indent=1))
