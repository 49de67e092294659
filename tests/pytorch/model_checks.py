"""What holds for the numbers of every emitted model: they are those of the interpreter."""

import copy
import importlib.util
import inspect
import json
import math
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

# Relative to the largest number of an output, and of a parameter's gradient. In single precision, numbers of PyTorch
# itself that are computed in another order are up to 3e-6 apart.
OUTPUTS = 1e-5
GRADIENTS = 1e-4
# How often fresh weights are drawn.
DRAWS = 20


def load_class(path: Path) -> type[nn.Module]:
    """The model of a file."""
    spec = importlib.util.spec_from_file_location(f"emitted_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module of their annotations.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Model


def under(tensors: dict, prefix: str) -> dict:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def named(outputs) -> dict:
    """The outputs by name; `None` as the name of the only one."""
    return {None: outputs} if torch.is_tensor(outputs) else outputs._asdict()


def distance(found: torch.Tensor, wanted: torch.Tensor, scale: float | None = None) -> float:
    """The largest difference, relative to the largest number; infinite where only one is a number."""
    if found.shape != wanted.shape:
        return math.inf
    if not found.isfinite().equal(wanted.isfinite()):
        return math.inf
    is_number = wanted.isfinite()
    if not is_number.any():
        return 0.0
    scale = max(wanted[is_number].abs().max().item() if scale is None else scale, 1e-30)
    return ((found - wanted)[is_number].abs().max() / scale).item()


def outputs_differ(found: dict, wanted: dict, what: str) -> list[str]:
    if None in found:
        found = {next(iter(wanted)): found[None]} if len(wanted) == 1 else {}
    if set(found) != set(wanted):
        return [f"{what}: the outputs are {list(found)}, not {list(wanted)}"]
    faults = []
    for name, value in wanted.items():
        off = distance(found[name].detach(), value)
        if not off <= OUTPUTS:
            faults.append(f"{what}: {name} is off by {off:.1e}")
        if not value.isfinite().all():
            faults.append(f"{what}: the interpreter's {name} is not finite")
    return faults


def call(method, given: dict, **others):
    """Calls a method with those of the given values that it takes."""
    taken = inspect.signature(method).parameters
    return method(**{name: value for name, value in (given | others).items() if name in taken})


def whole(model: nn.Module, inputs: dict):
    unknown = [name for name in inputs if name not in inspect.signature(model.forward).parameters]
    if unknown:
        raise TypeError(f"forward does not take {unknown}")
    return model(**inputs)


class Decoding:
    """Decodes step by step, with the cache and, of an encoder-decoder, the memory of the first step."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.cache = model.new_cache()
        self.first: dict = {}
        self.memory = None

    def step(self, inputs: dict):
        # What is given of the source belongs to the first step, and its mask is needed in all.
        self.first = self.first or inputs
        given = self.first | inputs
        if not hasattr(self.model, "decode"):
            return whole(self.model, given | {"cache": self.cache})
        if self.memory is None:
            self.memory = call(self.model.encode, given)
        return call(self.model.decode, given, memory=self.memory, cache=self.cache)


def runs(model: nn.Module, case: dict, stored: dict) -> list[str]:
    """Outputs, cached decoding and gradients of every run."""
    faults = []
    for run in range(case["runs"]):
        inputs = under(stored, f"{run}.inputs.")
        wanted = under(stored, f"{run}.outputs.")
        outputs = named(whole(model, inputs))
        found = outputs_differ(outputs, wanted, f"run {run}")
        off = max((distance(outputs[n].detach(), w) for n, w in wanted.items() if n in outputs), default=0.0)
        # Where outputs differ because the model makes rounding grow, gradients and caches differ for the same reason.
        if found and off < 0.1 and off <= 4 * rounding(model, inputs, outputs):
            print(f"run {run}: rounding grows in this model, and double precision differs as much")
            continue
        found += gradients(model, inputs, outputs, under(stored, f"{run}.gradients."), f"run {run}")
        if case["decodes"]:
            found += cached(model, stored, run, outputs)
            found += alone(model, stored, run)
        faults += found
    return faults


def rounding(model: nn.Module, inputs: dict, outputs: dict) -> float:
    """By how much outputs in double precision differ from the model's own, where that is more than usual."""
    precise = copy.deepcopy(model).double()
    given = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    with torch.no_grad():
        found = named(whole(precise, given))
    off = max(distance(outputs[name].detach().double(), value.double()) for name, value in found.items())
    return off if off > OUTPUTS / 4 else 0.0


def backward(model: nn.Module, outputs: dict) -> dict:
    """The gradients of the mean of all `x_i cos(i)`, summed over the outputs, where they are not zero."""
    model.zero_grad()
    loss = torch.zeros(())
    for value in outputs.values():
        flat = value.reshape(-1)
        loss = loss + (flat * torch.arange(flat.numel(), dtype=torch.float64).cos().to(flat)).mean()
    if loss.requires_grad:
        loss.backward()
    found = {path: parameter.grad for path, parameter in model.named_parameters()}
    return {path: gradient for path, gradient in found.items() if gradient is not None and gradient.any()}


def apart(found: dict, wanted: dict) -> dict[str, float]:
    """The gradients that differ by more than rounding."""
    # Where softmax or norms cancel a gradient, only rounding is left, at the scale of the other gradients.
    least = 1e-2 * max((g.abs().max().item() for g in wanted.values()), default=0.0)
    offs = {}
    for path in found | wanted:
        a, b = (of.get(path, torch.zeros(())) for of in (found, wanted))
        scale = max(b.abs().max().item(), least)
        offs[path] = (
            distance(a.expand_as(b), b, scale) if path in wanted else a.abs().max().item() / max(least, 1e-30)
        )
    return {path: off for path, off in offs.items() if not off <= GRADIENTS}


def gradients(model: nn.Module, inputs: dict, outputs: dict, wanted: dict, what: str) -> list[str]:
    faults = [
        f"{what}: the interpreter's {path} is not finite"
        for path, g in wanted.items()
        if not g.isfinite().all()
    ]
    found = backward(model, outputs)
    offs = apart(found, wanted)
    if offs and has_kink(model, inputs, found):
        print(f"{what}: the gradients are those of a kink, where rounding decides what is largest")
        return faults
    return faults + [f"{what}: the gradient of {path} is off by {off:.1e}" for path, off in offs.items()]


def has_kink(model: nn.Module, inputs: dict, gradients: dict) -> bool:
    """Whether changes of the weights in their last digits change gradients by far more: two candidates of a maximum,
    or two experts, are equal up to rounding, and the gradient is that of one or the other."""
    before = copy.deepcopy(model.state_dict())
    moved = False
    for seed in range(8):
        torch.manual_seed(seed)
        model.load_state_dict(
            {path: value * (1 + 1e-6 * torch.randn_like(value)) for path, value in before.items()}
        )
        moved = moved or bool(apart(backward(model, named(whole(model, inputs))), gradients))
    model.load_state_dict(before)
    return moved


def cached(model: nn.Module, stored: dict, run: int, outputs: dict) -> list[str]:
    """Step by step as the interpreter, and together as the whole."""
    faults, parts = [], {}
    decoding = Decoding(model)
    past = 0
    with torch.no_grad():
        for step in range(3):
            inputs = under(stored, f"{run}.steps.{step}.inputs.")
            found = named(decoding.step(inputs))
            faults += outputs_differ(
                found, under(stored, f"{run}.steps.{step}.outputs."), f"run {run}, step {step}"
            )
            for name, value in found.items():
                parts.setdefault(name, []).append(value)
            past += next(inputs[name] for name in ("tokens", "target") if name in inputs).shape[1]
            if decoding.cache.past != past:
                faults.append(
                    f"run {run}, step {step}: the cache's past is {decoding.cache.past}, not {past}"
                )
    for name, pieces in parts.items():
        if pieces[0].dim() == 3:
            off = distance(torch.cat(pieces, 1), outputs[name].detach())
        else:
            off = distance(pieces[-1], outputs[name].detach())
        if not off <= OUTPUTS:
            faults.append(f"run {run}: {name or 'the output'} is off by {off:.1e} with a cache")
    return faults


def alone(model: nn.Module, stored: dict, run: int) -> list[str]:
    """The last sequence by itself, of which a step of one token is a single row, as the interpreter in a batch."""
    faults, decoding = [], Decoding(model)
    with torch.no_grad():
        for step in range(3):
            inputs, outputs = (
                {name: value[-1:] for name, value in under(stored, f"{run}.steps.{step}.{kind}.").items()}
                for kind in ("inputs", "outputs")
            )
            faults += outputs_differ(
                named(decoding.step(inputs)), outputs, f"run {run}, step {step}, one sequence"
            )
    return faults


@contextmanager
def counting(drops_all: bool = False):
    """Counts how often dropout is applied, by probability."""
    counts: Counter = Counter()
    dropout, attention = F.dropout, F.scaled_dot_product_attention

    def counted_dropout(input, p=0.5, training=True, inplace=False):
        counts[round(p, 9)] += 1 if training and p > 0 else 0
        return dropout(input, 1.0 if drops_all and p > 0 else p, training, inplace)

    def counted_attention(*args, **settings):
        p = settings.get("dropout_p", args[4] if len(args) > 4 else 0.0)
        counts[round(p, 9)] += 1 if p > 0 else 0
        return attention(*args, **settings)

    F.dropout, F.scaled_dot_product_attention = counted_dropout, counted_attention
    try:
        yield counts
    finally:
        F.dropout, F.scaled_dot_product_attention = dropout, attention


def dropout(model: nn.Module, case: dict, stored: dict) -> list[str]:
    """Active in training alone, as often and with the probabilities that the spec has."""
    inputs = under(stored, "0.inputs.")
    with torch.no_grad():
        model.eval()
        with counting() as counts:
            plain = named(whole(model, inputs))
        faults = [f"in use, dropout {p} is active" for p, count in counts.items() if count]
        model.train()
        torch.manual_seed(0)
        with counting() as counts:
            trained = named(whole(model, inputs))
        with counting(drops_all=True):
            empty = named(whole(model, inputs))
        model.eval()
    found = {p: count for p, count in counts.items() if count}
    wanted = {round(float(p), 9): count for p, count in case["dropout"].items()}
    if set(found) != set(wanted):
        faults.append(f"dropout is {sorted(found)}, not {sorted(wanted)}")
    else:
        wrong = {
            p: (found[p], count) for p, count in wanted.items() if count is not None and found[p] != count
        }
        faults += [f"dropout {p} is applied {a} times, not {b}" for p, (a, b) in wrong.items()]
    same = all(torch.equal(plain[name], trained[name]) for name in plain)
    # Where no output depends on what is dropped, as after a ReLU that is always zero, this cannot be seen.
    is_used = any(not torch.equal(plain[name], empty[name]) for name in plain)
    if same and wanted and is_used:
        faults.append("training drops nothing")
    if not same and not wanted:
        faults.append("training differs, without any dropout")
    return faults


def fans(shape: torch.Size) -> tuple[int, int]:
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def spread(rule: dict, shape: torch.Size) -> tuple[float, float]:
    """The standard deviation of a distribution, and its bound."""
    fan_in, fan_out = fans(shape)
    match rule["rule"]:
        case "normal":
            return rule["std"], math.inf
        case "xavier_normal":
            return rule["gain"] * math.sqrt(2 / (fan_in + fan_out)), math.inf
        case "kaiming_normal":
            return rule["gain"] / math.sqrt(fan_in), math.inf
        case "truncated_normal":
            std, cut = rule["std"], rule["cut"]
            inside = math.erf(cut / math.sqrt(2))
            density = math.exp(-cut * cut / 2) / math.sqrt(2 * math.pi)
            return std * math.sqrt(max(1 - 2 * cut * density / inside, 0)), std * cut
        case "uniform":
            bound = rule["bound"]
        case "xavier_uniform":
            bound = rule["gain"] * math.sqrt(6 / (fan_in + fan_out))
        case "kaiming_uniform":
            bound = rule["gain"] * math.sqrt(3 / fan_in)
        case other:
            raise ValueError(f"no rule {other}")
    return bound / math.sqrt(3), bound


def fresh(model: nn.Module, case: dict) -> list[str]:
    """Fresh weights are drawn from the distributions of the spec; the first draw is the constructor's."""
    draws: dict[str, list[torch.Tensor]] = {}
    for draw in range(DRAWS):
        if draw > 0:
            torch.manual_seed(draw)
            model.init_weights()
        for path, value in model.state_dict().items():
            draws.setdefault(path, []).append(value.detach().clone())
    faults, seen = [], {}
    for path, values in draws.items():
        faults += [f"init of {path}: {fault}" for fault in drawn(case["init"][path], torch.stack(values))]
        if case["init"][path]["rule"] not in ("constant", "orthogonal", "logarithms") and values[0].numel() > 1:
            # The whole table, because that of padding may be all that two begin with.
            twin = seen.setdefault((values[0].numel(), values[-1].double().sum().item()), path)
            if twin != path and values[-1].abs().max() > 0:
                faults.append(f"init: {path} begins with the numbers of {twin}")
    return faults


def drawn(rule: dict, values: torch.Tensor) -> list[str]:
    """What is wrong with `values [draws, ...]`."""
    shape = values.shape[1:]
    values = values.double()
    if rule["padding"] is not None:
        if values[:, rule["padding"]].abs().max() > 0:
            return ["the row of padding is not zero"]
        others = [row for row in range(shape[0]) if row != rule["padding"]]
        values = values[:, others]
    if values.numel() == 0:
        return []
    if rule["rule"] == "constant":
        off = (values - rule["value"]).abs().max().item()
        return [] if off <= 1e-6 * abs(rule["value"]) else [f"is off by {off:.1e}"]
    if rule["rule"] == "logarithms":
        row = rule["gain"] * torch.arange(1, shape[-1] + 1).double().log()
        if rule["padding"] is not None:
            return []
        off = (values - row).abs().max().item()
        return [] if off <= 1e-5 * max(rule["gain"], 1e-30) else [f"is off by {off:.1e}"]
    if rule["rule"] == "orthogonal":
        if rule["padding"] is not None:
            return []
        faults = []
        for value in values:
            matrix = value.reshape(shape[0], -1)
            matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            gram = matrix @ matrix.T
            off = (gram - rule["gain"] ** 2 * torch.eye(len(gram))).abs().max().item()
            if off > 1e-4 * max(rule["gain"] ** 2, 1e-30):
                faults.append(f"is not orthogonal by {off:.1e}")
        return faults[:1]
    std, bound = spread(rule, shape)
    if std == 0:
        return [] if values.abs().max() == 0 else ["is not zero"]
    faults = []
    if values.abs().max() > bound * (1 + 1e-5):
        faults.append(f"{values.abs().max():.4g} is outside of ±{bound:.4g}")
    # Six times what chance makes likely; of a normal distribution, which varies most.
    count = values.numel()
    mean, found = values.mean().item() / std, values.square().mean().sqrt().item() / std
    if abs(mean) > 6 / math.sqrt(count):
        faults.append(f"the mean is {mean:.2f} standard deviations of {count} numbers")
    if abs(found - 1) > 6 / math.sqrt(2 * count):
        faults.append(f"the standard deviation is {found:.3f} times that of the spec ({count} numbers)")
    if torch.equal(values[0], values[1]):
        faults.append("two draws are equal")
    return faults


def same_file(a: Path, b: Path) -> list[str]:
    """Whether two files hold the same bits under the same names."""
    left, right = load_file(a), load_file(b)
    if set(left) != set(right):
        return [f"save_file: the names differ: {sorted(set(left) ^ set(right))[:4]}"]
    return [
        f"save_file: {name} differs"
        for name in left
        if left[name].dtype != right[name].dtype or not torch.equal(left[name], right[name])
    ]


def on_meta(kind: type[nn.Module], weights: dict, plain: dict, inputs: dict) -> list[str]:
    """A model that begins on the meta device, as sharded ones do, has its tables after loading."""
    with torch.device("meta"):
        model = kind()
    model.to_empty(device="cpu")
    for value in [*model.parameters(), *model.buffers()]:
        if value.is_floating_point():
            value.data.fill_(math.nan)
    model.init_weights()
    if not all(value.isfinite().all() for value in [*model.parameters(), *model.buffers()]):
        return ["on the meta device: init_weights leaves numbers as they were"]
    model.load_state_dict(weights, strict=True)
    model.eval()
    with torch.no_grad():
        found = named(whole(model, inputs))
    return [
        f"on the meta device: {n} is another"
        for n, value in found.items()
        if not torch.equal(value, plain[n])
    ]


def elsewhere(kind: type[nn.Module], inputs: dict) -> list[str]:
    """Everything is computed on the device of the inputs; the meta device is another one than the default."""
    with torch.device("meta"):
        model = kind().eval()
    try:
        with torch.no_grad():
            whole(model, {name: value.to("meta") for name, value in inputs.items()})
    except NotImplementedError:
        # The values decide what is computed, as where tokens are sent to experts, and the meta device has none.
        pass
    return []


def in_half(kind: type[nn.Module], weights: dict, plain: dict, inputs: dict) -> list[str]:
    """The model computes in 16 bits, too; a test of types rather than of numbers."""
    model = kind()
    model.load_state_dict(weights, strict=True)
    model.eval().bfloat16()
    given = {name: value.bfloat16() if value.is_floating_point() else value for name, value in inputs.items()}
    with torch.no_grad():
        found = named(whole(model, given))
    return [
        f"in 16 bits: {name} is off by {off:.1e}"
        for name, value in found.items()
        if not (off := distance(value.float(), plain[name])) <= 1
    ]


def one_graph(kind: type[nn.Module], inputs: dict) -> list[str]:
    """A default device changes nothing of what `torch.compile` can compile: it hides methods of tensors that are written in
    Python from it, and each of them would then begin another graph."""
    reasons = []
    for device in (None, "cpu"):
        torch.compiler.reset()
        torch.set_default_device(device)
        model = kind().eval()
        found = torch._dynamo.explain(model)(**inputs)
        reasons.append({str(of.reason).splitlines()[0] for of in found.break_reasons})
    torch.set_default_device(None)
    # Where tokens are sent to experts, their number is known when the model runs, with and without a device.
    plain, with_device = reasons
    return [f"a default device begins another graph: {reason}" for reason in with_device - plain]


def check(file: Path, folder: Path, case: dict) -> list[str]:
    """Everything that is wrong with the numbers of one emitted file."""
    torch.manual_seed(0)
    kind = load_class(file)
    if case["runs"] == 0:
        return []
    weights, stored = load_file(folder / "weights.safetensors"), load_file(folder / "runs.safetensors")
    model = kind()
    faults = fresh(model, case)
    shapes = {path: value.shape for path, value in model.state_dict().items()}
    if shapes != {path: value.shape for path, value in weights.items()}:
        odd = [path for path in shapes | weights if path not in shapes or path not in weights]
        odd += [path for path in shapes if path in weights and shapes[path] != weights[path].shape]
        return [*faults, f"the state differs: {odd[:4]}"]
    model.load_state_dict(weights, strict=True)
    model.eval()
    trained = {path for path, rule in case["init"].items() if rule["trained"]}
    found = {path for path, parameter in model.named_parameters() if parameter.requires_grad}
    if trained != found:
        faults.append(f"trained or not: {sorted(trained ^ found)[:4]}")
    save_file(model.state_dict(), folder / "saved.safetensors")
    faults += same_file(folder / "weights.safetensors", folder / "saved.safetensors")
    faults += runs(model, case, stored)
    faults += dropout(model, case, stored)
    inputs = under(stored, "0.inputs.")
    with torch.no_grad():
        plain = named(whole(model, inputs))
    faults += on_meta(kind, weights, plain, inputs)
    others = [lambda: elsewhere(kind, inputs), lambda: in_half(kind, weights, plain, inputs)]
    # It takes as long as everything else together, and the models of the repository have all parts that are common.
    if folder.name.startswith("specs_"):
        others.append(lambda: one_graph(kind, inputs))
    for also in others:
        try:
            faults += also()
        except RuntimeError as error:
            faults.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    return faults


def read_back(program: str, folder: Path, case: dict) -> list[str]:
    """trafoc computes the same bits of the file that PyTorch wrote."""
    if not (folder / "saved.safetensors").exists():
        return []
    stored = load_file(folder / "runs.safetensors")
    inputs = {name: value.tolist() for name, value in under(stored, "0.inputs.").items()}
    (folder / "inputs.json").write_text(json.dumps(inputs))
    command = [
        program,
        "run",
        case["spec"],
        "--weights",
        folder / "saved.safetensors",
        "-i",
        folder / "inputs.json",
    ]
    command += ["-o", folder / "outputs.safetensors", "--force", "-q"]
    command += [word for setting in case["settings"] for word in ("--set", setting)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return [f"trafoc run: {done.stderr.strip()[:300]}"]
    found = load_file(folder / "outputs.safetensors")
    wanted = under(stored, "0.outputs.")
    return [f"trafoc run: {n} differs" for n in wanted if not torch.equal(found[n], wanted[n])]
