"""Trains with the projects that `trafoc build --target pytorch --recipe` writes, and compares with `trafoc train`.

    python tests/pytorch/project.py TRAFOC FOLDER [CHECK ...]

TRAFOC is the program, FOLDER is written to; CHECK are names of the checks below, all of them by default. Needs torch,
numpy, safetensors, sacrebleu, tokenizers, ruff and pyright, and a few processes over gloo on the CPU.
`STEPS=8` makes every run shorter.
"""

import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
STEPS = int(os.environ.get("STEPS", "50"))
# The steps after which a run is stopped and continued with another number of processes.
STOP = max(2, STEPS * 2 // 5)

# A spec, its settings, its recipe and changes to the recipe.
NO_DROPOUT = [f"{stack}.{part}.dropout=0" for stack in ("encoder", "decoder") for part in ("attention", "ffn")]
CASES = {
    "gbt-mulm": (
        "specs/gbt-mulm.yaml",
        [],
        "specs/recipes/gbt-mulm.yaml",
        [f"steps={STEPS}", "evaluate.every=1000", "evaluate.limit=100", f"checkpoint.every={STOP}"],
    ),
    "d2l-nmt": (
        "specs/d2l-nmt.yaml",
        ["embed.dropout=0", *NO_DROPOUT],
        "specs/recipes/d2l-nmt.yaml",
        # With the recipe's own rate of 0.005 and no warm-up, rounding doubles with every step: 1 and 2 processes of
        # PyTorch differ by 1e-7 in the first loss and by 1e-2 in the 20th, as much as either does from trafoc.
        ["evaluate.every=1000", "evaluate.limit=32", "epochs=EPOCHS", "optimizer.adam.learning_rate=3e-4"],
    ),
    "vit": (
        "specs/vit.yaml",
        ["embed.dropout=0", *NO_DROPOUT[:2], "--variant=digits"],
        "specs/recipes/vit.yaml",
        ["epochs=EPOCHS"],
    ),
}

if "TRAFOC_DATA" in os.environ:
    CASES["d2l-nmt"][3].append(f"data.train={os.environ['TRAFOC_DATA']}/fra-eng/fra.txt")
else:
    CASES["d2l-nmt"][1].extend(["source_vocab=400", "vocab=400"])
    CASES["d2l-nmt"][3].append(f"data.train={ROOT}/data/numbers-en-fr.txt")

MLM = """trafo: 1
name: hidden
vocab: 60
context: 31
d_model: 32
embed: {position: learned}
norm: {layer_norm: {eps: 1e-5}}
encoder: {layers: 2, block: pre_norm, attention: {heads: 4}, ffn: {expansion: 2, activation: gelu}}
head: {mlm: {tied: true}}
"""
MLM_RECIPE = """recipe: 1
data: {format: lines, train: ISIMLER, split: {validation: 0.05}, limit: 800}
tokens: {wordpiece: {vocab: 60}}
optimizer: {adamw: {learning_rate: 1e-3}}
masking: {share: 0.3}
batch: {size: 16, bucket: 4}
evaluate: {metrics: [loss, perplexity, accuracy]}
steps: 8
"""
LM_RECIPE = """recipe: 1
data: {format: text, train: ISIMLER, split: {validation: 0.05}, limit: null}
tokens: {bpe: {vocab: 300}}
optimizer: {adamw: {learning_rate: 1e-3}}
reduction: sum
batch: {size: 4, accumulate: 2}
freeze: ["*.positions.weight"]
evaluate: {metrics: [bits_per_character, loss], limit: 20}
steps: 8
""".replace(", limit: null", "")
TAG = """trafo: 1
name: tags
vocab: VOCAB
context: 48
d_model: 32
embed: {position: learned}
norm: {layer_norm: {eps: 1e-5}}
encoder: {layers: 2, block: pre_norm, attention: {heads: 4}, ffn: {expansion: 2, activation: gelu}}
head: {tag: {classes: 4}}
"""
TAG_RECIPE = """recipe: 1
data: {format: tagged, train: TAGGED, split: {test: 0.2}}
tokens: words
optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01, decay: {"*.bias": 0}}}
schedule: {inverse_sqrt: {warmup: 4}}
batch: {size: 8}
label_smoothing: 0.1
evaluate: {metrics: [macro_f1, accuracy, loss], split: test, every: 4}
stop: {metric: loss, patience: 3}
steps: 8
"""
SEVERAL = ["head.classify.classes=3", "head.classify.multi_label=true"]
# Every other task, and every optimizer, schedule and metric that a recipe can say: 8 steps each.
OTHERS = {
    "mlm": ("mlm.yaml", [], "mlm.recipe.yaml", []),
    "text": ("gpt.yaml", [], "lm.recipe.yaml", []),
    "tag": ("tag.yaml", [], "tag.recipe.yaml", []),
    "span": (
        "specs/bert-qa.yaml",
        ["--variant=people", "embed.dropout=0", *NO_DROPOUT[:2]],
        "specs/recipes/bert-qa.people.yaml",
        ["epochs=1"],
    ),
    "classify": (
        "specs/doc-classify.yaml",
        ["--variant=reports", "embed.dropout=0", *NO_DROPOUT[:2], "head.classify.dropout=0"],
        "specs/recipes/doc-classify.reports.yaml",
        ["epochs=1"],
    ),
    "sigmoid": (
        "specs/bert-classify.yaml",
        ["--variant=small", "embed.dropout=0", *NO_DROPOUT[:2], "head.classify.dropout=0"],
        "specs/recipes/bert-classify.yaml",
        ["epochs=1", "evaluate.metrics=[accuracy, macro_f1, loss]"],
    ),
    "languages": (
        "specs/multilingual-nmt.yaml",
        ["--variant=small"],
        "specs/recipes/multilingual-nmt.yaml",
        ["steps=8", "evaluate.limit=20"],
    ),
    "noam": (
        "specs/transformer.yaml",
        ["--variant=numbers", "embed.dropout=0", *NO_DROPOUT]
        + [f"{stack}.ffn.inner_dropout=0" for stack in ("encoder", "decoder")],
        "specs/recipes/transformer.numbers.yaml",
        # With the recipe's rate, a warm-up of 4 steps is so steep that rounding grows a hundredfold.
        ["steps=8", "evaluate.limit=20", "checkpoint.every=4", "average=2", "schedule.noam.warmup=4"]
        + ["optimizer.adam.learning_rate=0.1"],
    ),
    "muon": (
        "specs/gbt-mulm.yaml",
        [],
        "specs/recipes/gbt-mulm.yaml",
        ["steps=8", "evaluate.every=8", "evaluate.limit=50", "optimizer.muon.learning_rate=0.01", "clip=0.5"]
        + ["schedule.linear.warmup=2", "schedule.linear.floor=0.1", "optimizer.muon.decay={'*.query.weight': 0.5}"],
    ),
}

SGD = ["optimizer.sgd.learning_rate=0.1", "optimizer.sgd.momentum=0.9"]
# What a recipe can say about a step, as changes to one recipe with the same spec, data and first weights: 8 steps each.
RECIPES = {
    "adam": ["optimizer.adam.weight_decay=0.1", "optimizer.adam.betas=[0.8, 0.9]", "optimizer.adam.eps=1e-4"],
    "adam, decay": ["optimizer.adam.weight_decay=0.1", "optimizer.adam.decay={'*.bias': 0, '*.norm1.*': 0.5}"],
    "adamw": ["optimizer.adamw.weight_decay=0.5", "optimizer.adamw.learning_rate=0.01"],
    "adamw, decay": ["optimizer.adamw.weight_decay=0.5", "optimizer.adamw.decay={'embed.*': 0}"],
    "sgd": ["optimizer.sgd.learning_rate=0.1"],
    "sgd, weight decay": ["optimizer.sgd.learning_rate=0.1", "optimizer.sgd.weight_decay=0.1"],
    "sgd, momentum": ["optimizer.sgd.learning_rate=0.1", "optimizer.sgd.momentum=0.9"],
    "sgd, dampening": [*SGD, "optimizer.sgd.dampening=0.5"],
    "sgd, nesterov": [*SGD, "optimizer.sgd.nesterov=true"],
    "sgd, nesterov, dampening": [*SGD, "optimizer.sgd.nesterov=true", "optimizer.sgd.dampening=0.5"],
    "muon": ["optimizer.muon.learning_rate=0.01"],
    "muon, no nesterov": ["optimizer.muon.nesterov=false", "optimizer.muon.iterations=3"],
    "muon, adjusted": ["optimizer.muon.adjust=match_rms_adamw", "optimizer.muon.decay={'*.query.weight': 0.5}"],
    "muon, others": ["optimizer.muon.others={learning_rate: 0.01, betas: [0.8, 0.9], decay: {'*.bias': 0}}"],
    "warm-up": ["schedule.constant.warmup=5"],
    "linear": ["schedule.linear={warmup: 3, floor: 0.2}"],
    "linear, no warm-up": ["schedule=linear"],
    "cosine": ["schedule.cosine={warmup: 3, floor: 0.2}"],
    "noam": ["schedule.noam.warmup=4", "optimizer.adam.learning_rate=1"],
    "inverse_sqrt": ["schedule.inverse_sqrt.warmup=4"],
    "smoothing": ["label_smoothing=0.1"],
    "clip": ["clip=0.1"],
    "clip, sgd": ["optimizer.sgd.learning_rate=0.1", "clip=0.1"],
    "sum": ["reduction=sum", "optimizer.sgd.learning_rate=1e-4"],
    "sum, clip": ["reduction=sum", "clip=1"],
    "accumulate": ["batch.size=4", "batch.accumulate=4"],
    "accumulate, sum": ["batch.size=4", "batch.accumulate=4", "reduction=sum", "optimizer.sgd.learning_rate=1e-4"],
    "bucket": ["batch.bucket=3"],
    "recompute": ["recompute=blocks", "optimizer.sgd.learning_rate=0.1"],
    "recompute, accumulate": ["recompute=blocks", "batch.size=4", "batch.accumulate=4"],
    "freeze": ["freeze=['embed.*', '*.query.weight']", "optimizer.sgd.learning_rate=0.1"],
    "rates": ["optimizer.adamw.rates={'embed.*': 1e-4, '*.norm1.*': 0.01}", "optimizer.adamw.decay={'head.*': 0.5}"],
    "rates, sgd": ["optimizer.sgd.rates={'*.query.*': 0.1}", "optimizer.sgd.momentum=0.9"],
    "rates, muon": ["optimizer.muon.rates={'*.up.weight': 0.1}", "optimizer.muon.others={rates: {'embed.*': 0.1}}"],
    "average": ["average=3", "checkpoint.every=2", "checkpoint.keep=4"],
    # The loss stays as it is.
    "stop": ["stop.patience=1", "evaluate.every=2", "optimizer.sgd.learning_rate=1e-12"],
    "metrics": ["evaluate.metrics=[loss, perplexity, bits_per_character]", "evaluate.every=3"],
}


def run(*words: object, ok: bool = True) -> str:
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, cwd=ROOT)
    if ok and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout + done.stderr


class Case:
    """A spec and a recipe: prepared data, a project, and first weights."""

    def __init__(self, name: str, spec: str, settings: list[str], recipe: str, changes: list[str]) -> None:
        self.name, self.folder = name, OUT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.spec = [spec]
        for setting in settings:
            self.spec += [setting] if setting.startswith("--") else ["--set", setting]
        self.recipe = ["--recipe", recipe, *(word for change in changes for word in ("--with", change))]
        self.data = self.folder / "data"
        run(TRAFOC, "data", *self.spec, *self.recipe, "--out", self.data)
        self.project = self.build("project")
        # Both trainers begin with the weights of a run of one process.
        self.torch("first", 1, "--until", 1)
        self.first = self.folder / "first"
        [found] = (self.first / "checkpoints").glob("step-*")
        self.weights = found / "model.safetensors"

    def build(self, name: str, *changes: str) -> Path:
        words = [word for change in changes for word in ("--with", change)]
        out = self.folder / name
        run(TRAFOC, "build", *self.spec, "--target", "pytorch", *self.recipe, *words, "--out", out)
        return out

    def command(self, out: Path, processes: int, *words: object, project: Path | None = None) -> list[str]:
        command = [BIN / "torchrun", "--nproc-per-node", processes, "--master-port", port(), "train.py"]
        return [str(word) for word in [*command, "--data", self.data, "--out", out, *words]]

    def torch(self, name: str, processes: int, *words: object, project: Path | None = None) -> Path:
        """A run of the project's."""
        out = self.folder / name
        folder = project or self.project
        done = subprocess.run(
            self.command(out, processes, *words), cwd=folder, capture_output=True, text=True, env=ENV, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"{self.name}/{name}: {done.stderr[-4000:]}")
        return out

    def trafoc(self, name: str = "trafoc", *changes: str) -> Path:
        """A run of trafoc's with the same weights."""
        out = self.folder / name
        words = ["--data", self.data, "--weights", self.weights, "--out", out]
        words += [word for change in changes for word in ("--with", change)]
        run(TRAFOC, "train", *self.spec, *self.recipe, *words)
        return out


def port() -> int:
    port.last = getattr(port, "last", 20000 + os.getpid() % 20000) + 1
    return port.last


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def same(name: str, a: Path, b: Path, bound: float = 1e-4, least: int = 1) -> None:
    """Both runs have the same losses, rates, norms and counts in their first steps, and the same last metrics."""
    steps = [{line["step"]: line for line in lines(folder) if "rate" in line} for folder in (a, b)]
    both = sorted(steps[0].keys() & steps[1].keys())
    assert len(both) >= least, f"{name}: {len(both)} steps in both"
    worst = 0.0
    for step in both[:50]:
        one, other = steps[0][step], steps[1][step]
        worst = max(worst, abs(one["loss"] - other["loss"]))
        assert one["targets"] == other["targets"] and one["tokens"] == other["tokens"], f"{name}: {one} {other}"
        assert abs(one["rate"] - other["rate"]) < 1e-9 * max(1.0, one["rate"]), f"{name}: {one} {other}"
        if one["norm"] is not None:
            assert abs(one["norm"] - other["norm"]) < max(bound, 1e-3) * max(1, one["norm"]), f"{name}: {one} {other}"
    assert worst < bound, f"{name}: losses differ by {worst}"
    last = [[line for line in lines(folder) if "split" in line] for folder in (a, b)]
    if last[0] and last[1] and last[0][-1]["step"] == last[1][-1]["step"]:
        for metric, value in last[0][-1].items():
            other = last[1][-1][metric]
            close = value == other or isinstance(value, float) and abs(value - other) < 0.02 * max(1, abs(value))
            assert close, f"{name}: {metric} {value} {other}"
    print(f"  {name}: {len(both)} steps, losses within {worst:.1e}", flush=True)


def case(name: str) -> Case:
    if name not in MADE:
        spec, settings, recipe, changes = CASES[name]
        epochs = -(-STEPS // {"d2l-nmt": 10, "vit": 23}.get(name, 1))
        MADE[name] = Case(name, spec, settings, recipe, [change.replace("EPOCHS", str(epochs)) for change in changes])
    return MADE[name]


def other(name: str) -> tuple[str, list[str], str, list[str]]:
    """A case whose files are written here."""
    spec, settings, recipe, changes = OTHERS[name]
    folder = OUT / "specs"
    folder.mkdir(parents=True, exist_ok=True)
    rows = (ROOT / "data/people.tsv").read_text().split("\n")
    words = {row.split("\t")[0].lower() for row in rows if row.strip()}
    texts = {"mlm.yaml": MLM, "mlm.recipe.yaml": MLM_RECIPE, "lm.recipe.yaml": LM_RECIPE, "tag.recipe.yaml": TAG_RECIPE}
    texts["tag.yaml"] = TAG.replace("VOCAB", str(len(words) + 8))
    texts["gpt.yaml"] = (ROOT / "specs/gbt-mulm.yaml").read_text().replace("vocab: 30", "vocab: 300")
    for file, text in texts.items():
        text = text.replace("ISIMLER", str(ROOT / "data/isimler.txt")).replace("TAGGED", str(ROOT / "data/people.tsv"))
        (folder / file).write_text(text)
    spec, recipe = (str(folder / path) if path in texts else path for path in (spec, recipe))
    return spec, settings, recipe, changes


def processes(name: str) -> None:
    """trafoc and 1, 2 and 4 processes have the same losses."""
    of = case(name)
    trafoc = of.trafoc()
    for count in (1, 2, 4):
        same(f"{name}, {count} processes", trafoc, of.torch(f"p{count}", count, "--weights", of.first), least=STEPS)


def resume() -> None:
    """A run that stops and goes on with another number of processes is that of the same processes."""
    of = case("gbt-mulm")
    if not (of.folder / "p1").exists():
        of.torch("p1", 1, "--weights", of.first)
    of.torch("resumed", 2, "--weights", of.first, "--until", STOP)
    assert max(line["step"] for line in lines(of.folder / "resumed")) == STOP
    same("2, then 3 processes", of.folder / "p1", of.torch("resumed", 3), least=STEPS)
    same("ddp, then fsdp", of.folder / "p1", switched(of), least=STEPS)


def switched(of: Case) -> Path:
    of.torch("switched", 2, "--weights", of.first, "--until", STOP, "--parallel", "ddp")
    return of.torch("switched", 2)


def modes() -> None:
    """FSDP2, HSDP, DDP, recomputed and compiled blocks have the same losses; bfloat16 nearly."""
    of = case("gbt-mulm")
    if not (of.folder / "p1").exists():
        of.torch("p1", 1, "--weights", of.first)
    options = {
        "hsdp": (4, "--replicas", 2),
        "ddp": (2, "--parallel", "ddp"),
        "recompute": (2, "--recompute"),
        "compile": (2, "--compile"),
        "compile-recompute": (2, "--compile", "--recompute"),
    }
    for name, (count, *words) in options.items():
        same(name, of.folder / "p1", of.torch(name, count, "--weights", of.first, *words), least=STEPS)
    for name, words in {"bf16": [], "ddp-bf16": ["--parallel", "ddp"]}.items():
        low = of.torch(name, 2, "--weights", of.first, "--bf16", *words)
        same(name, of.folder / "p1", low, bound=2e-2, least=STEPS)
    halves = of.build("halves", "batch.size=8", "batch.accumulate=2")
    for name, words in {"accumulate": [], "accumulate-ddp": ["--parallel", "ddp"]}.items():
        steps = lines(of.torch(name, 2, "--weights", of.first, *words, project=halves))
        whole = lines(of.folder / "p1")
        worst = max(abs(a["loss"] - b["loss"]) for a, b in zip(steps, whole, strict=True) if "rate" in a)
        assert worst < 1e-4, f"{name}: {worst}"
        print(f"  {name}: losses within {worst:.1e}")


def started(of: Case, name: str, step: int) -> tuple[subprocess.Popen, Path, Path]:
    """A long run on 2 processes that has recorded a step."""
    long = of.folder / "long"
    if not long.exists():
        of.build("long", "steps=100000", "checkpoint.every=10")
    out, log = of.folder / name, of.folder / f"{name}.log"
    with open(log, "a") as file:
        job = subprocess.Popen(of.command(out, 2), cwd=long, stderr=file, stdout=file, env=ENV)
    until = time.monotonic() + 300
    while not (out / "metrics.jsonl").exists() or len(lines_so_far(out)) < step:
        assert job.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.2)
    return job, out, log


def lines_so_far(folder: Path) -> list[str]:
    return (folder / "metrics.jsonl").read_text().split("\n")[:-1]


def saved(out: Path) -> int:
    return max(int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*"))


def start() -> None:
    """A project for a run or a directory of Hugging Face begins with its weights, and other rates and a freeze are as
    in trafoc, over 1 and 2 processes."""
    of = case("gbt-mulm")
    rates = "optimizer.adamw.rates={'embed.*': 1e-5, '*.blocks.3.*': 1e-2}"
    changes = [word for change in (rates, "freeze=['*.norm2.*']") for word in ("--with", change)]
    project = of.folder / "of run"
    run(TRAFOC, "build", of.first, "--target", "pytorch", *of.recipe, *changes, "--out", project)
    trafoc = of.folder / "trafoc of run"
    run(TRAFOC, "train", of.first, *of.recipe, *changes, "--data", of.data, "--out", trafoc)
    for count in (1, 2):
        same(f"of a run, {count}", trafoc, of.torch(f"run{count}", count, project=project), least=STEPS)
    body, recipe = ROOT / "tests/tune/bert", ROOT / "tests/tune/recipe.yaml"
    project = OUT / "start/project"
    head = ["--head", "classify", "--classes", 3]
    words = ["--recipe", recipe, "--with", "freeze=['embed.*', 'encoder.*']", "--out", project]
    run(TRAFOC, "build", body, "--target", "pytorch", *head, *words)
    of.data = OUT / "start/data"
    run(TRAFOC, "data", project / "spec.yaml", "--recipe", project / "recipe.yaml", "--out", of.data)
    runs = [of.torch(f"head{count}", count, project=project) for count in (1, 2)]
    same("of a directory, 1 and 2", *runs, least=20)
    first, ended = load_file(project / "start.safetensors"), weights(runs[1])
    assert all(ended[name].equal(first[name]) for name in first if not name.startswith("head.")), "frozen weights moved"
    MADE.clear()
    run(TRAFOC, "eval", runs[1])
    print(f"  {len(first)} tensors of a directory, {len(ended) - len(first)} fresh")


def sigterm() -> None:
    """SIGTERM writes a checkpoint of the last step, with which training continues."""
    of = case("gbt-mulm")
    job, out, log = started(of, "terminated", 5)
    job.send_signal(signal.SIGTERM)
    job.wait(60)
    step = saved(out)
    assert f"saved at step {step}" in log.read_text() and step >= 5, log.read_text()[-3000:]
    assert len(lines_so_far(out)) == step
    job, out, log = started(of, "terminated", step + 1)
    job.send_signal(signal.SIGTERM)
    job.wait(60)
    assert f"continues from step {step}" in log.read_text()
    print(f"  saved at step {step}, and continued")


def killed() -> None:
    """When a process is killed the job ends with a message, and the last checkpoint loads."""
    of = case("gbt-mulm")
    job, out, log = started(of, "killed", 15)
    workers = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    os.kill(int(workers[-1]), signal.SIGKILL)
    assert job.wait(60) != 0
    found = re.search(r"lost another process; `.*` continues from step (\d+)", log.read_text())
    assert found and int(found[1]) >= 10, log.read_text()[-3000:]
    run(TRAFOC, "eval", out)
    job, out, log = started(of, "killed", saved(out) + 1)
    job.send_signal(signal.SIGTERM)
    job.wait(60)
    assert f"continues from step {found[1]}" in log.read_text()
    print(f"  killed, and continued from step {found[1]}")


def continued() -> None:
    """A project continues a run of trafoc, whatever weights it began with, and refuses one with another recipe; trafoc
    continues a run of the project, and the project again what trafoc has made of it."""
    of = case("gbt-mulm")
    out = of.trafoc("of trafoc")
    shutil.copytree(out, of.folder / "of trafoc, whole")
    # As if it had been interrupted after the checkpoint before the last.
    [before, last] = sorted((out / "checkpoints").glob("step-*"))[-2:]
    shutil.rmtree(last)
    other = of.build("other", "optimizer.adamw.weight_decay=0.1")
    code, log = said(of, out, other)
    assert code == 1 and "another `optimizer`: `weight_decay: 0.01`, and the project has" in log, log
    # The project that the message asks for is written for this run.
    [words] = re.findall(r"`trafoc (build .*) --out NEW`", log)
    run(TRAFOC, *shlex.split(words), "--out", of.folder / "of its own")
    shutil.copytree(out, of.folder / "copy")
    for folder, project in ((of.folder / "copy", of.folder / "of its own"), (out, of.project)):
        code, log = said(of, folder, project)
        assert code == 0 and f"continues from step {int(before.name[5:])} with the weights of" in log, log
        assert "the optimizer begins with a new state" in log, log
        assert max(line["step"] for line in lines(folder)) == STEPS
        # It still says where it started from.
        recipes = [path / "recipe.yaml" for path in (before, folder / "checkpoints" / last.name)]
        assert recipes[0].read_bytes() == recipes[1].read_bytes()
    # A run that has made its steps needs no optimizer.
    code, log = said(of, of.folder / "of trafoc, whole", of.project)
    assert code == 0 and "continues from step" in log and "the optimizer" not in log, log
    out = of.torch("of project", 1, "--until", STOP)
    log = run(TRAFOC, "train", "--resume", "--out", out)
    assert f"continues from step {STOP}\n" in log and "the optimizer begins with a new state" in log, log
    assert max(line["step"] for line in lines(out)) == STEPS
    # As if the project had been killed between the shards of the last step and its checkpoint.
    [shards] = (out / "torch").glob("step-*")
    shards.rename(out / "torch" / last.name)
    code, log = said(of, out, of.project)
    assert code == 0 and f"continues from step {STEPS} with the weights of" in log, log
    print(f"  continued from {before.name}")


def said(of: Case, out: Path, project: Path) -> tuple[int, str]:
    """The exit code of a project's run, and what it printed."""
    done = subprocess.run(of.command(out, 1), cwd=project, capture_output=True, text=True, env=ENV, check=False)
    return done.returncode, done.stderr


def taken() -> None:
    """trafoc takes the folder of the run."""
    for name, words in {
        "gbt-mulm": [["generate", "RUN", "--count", 2], ["inspect", "attention", "RUN", "--text", "ankara"]],
        "d2l-nmt": [["generate", "RUN", "--prompt", "go ."], ["inspect", "training", "RUN"]],
        "vit": [["predict", "RUN", "--image", "IMAGE"], ["export", "RUN", "--to", "EXPORTED"]],
    }.items():
        of = case(name)
        out = of.folder / "p1"
        if not out.exists():
            of.torch("p1", 1, "--weights", of.first)
        figures = [line for line in lines(out) if "split" in line][-1]
        command = [TRAFOC, "eval", out, "--format", "json", "--split", figures["split"], "-q"]
        # The last evaluation may be of fewer examples than all.
        evaluated = {f["metric"]: f["value"] for f in json.loads(run(*command))["data"]["figures"]}
        assert evaluated.keys() == figures.keys() - {"step", "split"}, evaluated
        assert name != "vit" or all(abs(evaluated[m] - figures[m]) < 1e-3 for m in evaluated), (evaluated, figures)
        places = {"RUN": out, "IMAGE": picture(), "EXPORTED": of.folder / "exported"}
        for command in words:
            run(TRAFOC, *(places.get(word, word) for word in command))
        print(f"  {name}: eval {evaluated}, then {', '.join(command[0] for command in words)}")


def picture() -> Path:
    """A grey image of 8 x 8 pixels."""
    rows = b"".join(b"\0" + bytes(range(8)) for _ in range(8))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path = OUT / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))
    return path


def tasks() -> None:
    """Every task, optimizer and schedule: 1 and 2 processes have the losses and the metrics of trafoc."""
    for name in OTHERS:
        of = Case(name, *other(name))
        trafoc = of.trafoc()
        for count in (1, 2):
            same(f"{name}, {count}", trafoc, of.torch(f"p{count}", count, "--weights", of.first), least=3)


def recipes() -> None:
    """Everything that a recipe can say about a step changes losses and weights as in trafoc."""
    changes = ["evaluate.limit=32", "steps=8"]
    of = Case("recipes", "specs/gbt-mulm.yaml", [], "specs/recipes/gbt-mulm.yaml", changes)
    plain, first = weights(of.torch("plain", 1, "--weights", of.first)), load_file(of.weights)
    wrong = []
    for name, changes in RECIPES.items():
        try:
            trafoc = of.trafoc(f"trafoc {name}", *changes)
            ours = of.torch(f"p1 {name}", 1, "--weights", of.first, project=of.build(name, *changes))
            same(name, trafoc, ours, least=2)
            wanted, found = weights(trafoc), weights(ours)
            assert wanted.keys() == found.keys(), f"{name}: other weights"
            # Relative to what training has changed.
            off, moved = distance(wanted, found), distance(wanted, first)
            assert off <= 1e-3 * moved, f"{name}: weights differ by {off}, and have moved by {moved}"
            # Otherwise the change would not have been tested.
            is_plain = all(plain[key].equal(found[key]) for key in plain)
            assert is_plain == (name == "metrics"), f"{name}: the weights are those without it"
        except AssertionError as error:
            print(f"  {error}", flush=True)
            wrong.append(name)
    assert not wrong, ", ".join(wrong)


def distance(a: dict, b: dict) -> float:
    return sum(float((a[key] - b[key]).square().sum()) for key in a) ** 0.5


def weights(out: Path) -> dict:
    """The weights with which a run ended."""
    averaged = out / "checkpoints" / "averaged"
    last = max((out / "checkpoints").glob("step-*"))
    return load_file((averaged if averaged.exists() else last) / "model.safetensors")


def text() -> None:
    """Projects have no fault for ruff and pyright, whatever the recipe says."""
    folders = []
    for name, (spec, settings, recipe, changes) in {**CASES, **{name: other(name) for name in OTHERS}}.items():
        out = OUT / "text" / name
        words = [word for s in settings for word in ([s] if s.startswith("--") else ["--set", s])]
        changes = [word for change in changes for word in ("--with", change.replace("EPOCHS", "3"))]
        run(TRAFOC, "build", spec, *words, "--target", "pytorch", "--recipe", recipe, *changes, "--out", out, "--force")
        folders.append(out)
    pyright = [BIN / "pyright", "--pythonpath", sys.executable, "."]
    ruff = [[BIN / "ruff", "check", "--no-cache", "."], [BIN / "ruff", "format", "--check", "--no-cache", "."]]
    for folder in [ROOT / "src/emit/pytorch/project", *folders]:
        for command in (pyright, *ruff):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{folder.name}: {done.stdout}"
    longest = {path.name: len(path.read_text().splitlines()) for folder in folders for path in folder.glob("*.py")}
    print(f"  {len(folders)} projects; lines {longest}")


CHECKS = {
    "text": text,
    "gbt-mulm": lambda: processes("gbt-mulm"),
    "d2l-nmt": lambda: processes("d2l-nmt"),
    "vit": lambda: processes("vit"),
    "resume": resume,
    "modes": modes,
    "start": start,
    "sigterm": sigterm,
    "killed": killed,
    "tasks": tasks,
    "recipes": recipes,
    "continued": continued,
    "taken": taken,
}
MADE: dict[str, Case] = {}
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}

if __name__ == "__main__":
    TRAFOC, OUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    failed = []
    for name in sys.argv[3:] or CHECKS:
        print(name, flush=True)
        try:
            CHECKS[name]()
        except AssertionError as error:
            print(f"  FAILED {error}", flush=True)
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    sys.exit(bool(failed))
