"""Computes emitted models on a CUDA device, and compares them with the interpreter.

    python tests/pytorch/cuda.py FOLDER [NAME ...]

FOLDER is what `compare.py` wrote, on this machine or another one: trafoc is not needed. Names, in which `*` is any text,
restrict it to some of the specs. Needs torch and safetensors.

For each spec: the outputs for several masks, at once and step by step, and the gradients in single precision; the outputs
in bfloat16; and those of the compiled model, of every tenth spec. At the end a line says how many were compared.
"""

import json
import multiprocessing
import sys
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import model_checks
import torch
from model_checks import in_half, load_class, named, outputs_differ, runs, under, whole
from safetensors.torch import load_file

PROCESSES = 8


def check(compiles: bool, file: Path, folder: Path) -> list[str]:
    """Everything that is wrong with one emitted file."""
    case = json.loads((folder / "case.json").read_text())
    kind = load_class(file)
    weights, stored = (load_file(folder / f"{name}.safetensors", "cuda") for name in ("weights", "runs"))
    model = kind()
    model.load_state_dict(weights, strict=True)
    model.eval()
    if not all(value.is_cuda for value in [*model.parameters(), *model.buffers()]):
        return ["a parameter or a buffer is not on the default device"]
    faults = runs(model, case, stored)
    inputs = under(stored, "0.inputs.")
    with torch.no_grad():
        plain = named(whole(model, inputs))
        faults += in_half(kind, weights, plain, inputs)
        if compiles:
            torch.compiler.reset()
            compiled = torch.compile(model)(**inputs)
            faults += outputs_differ(named(compiled), under(stored, "0.outputs."), "compiled")
    return faults


def safely(compiles: bool, file: Path, folder: Path) -> list[str]:
    try:
        return check(compiles, file, folder)
    except Exception as error:  # noqa: BLE001 - whatever an emitted file raises is a fault of it
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = str(error).splitlines()[0] if str(error) else ""
        return [f"{type(error).__name__}: {message} ({Path(place.filename).name}:{place.lineno})"]


def start() -> None:
    torch.set_default_device("cuda")
    # Single precision is what is compared, not its shorter mantissa for products of matrices.
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True


def main() -> int:
    out = Path(sys.argv[1])
    wanted = sys.argv[2:] or ["*"]
    folders = {path.parent.name: path.parent for path in sorted(out.glob("cases/*/case.json"))}
    names = [name for name in folders if any(fnmatchcase(name, of) for of in wanted)]
    files = {name: out / "files" / f"{name.replace('-', '_').replace('.', '_')}.py" for name in names}
    # What trafoc refuses to emit has no file.
    names = [name for name in names if files[name].exists()]
    names = [name for name in names if json.loads((folders[name] / "case.json").read_text())["runs"] > 0]
    if not names:
        raise SystemExit(f"{out} has no emitted models")
    wrong = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=start) as pool:
        tasks = {}
        for i, name in enumerate(names):
            run = partial(safely, i % 10 == 0)
            tasks[name] = pool.submit(run, files[name], folders[name])
        for name, task in tasks.items():
            if faults := task.result():
                wrong[name] = faults
    for name, faults in wrong.items():
        print(name, *faults, sep="\n    ")
    device, bound = torch.cuda.get_device_name(), model_checks.OUTPUTS
    print(
        f"{len(names)} models on {device} with PyTorch {torch.__version__}, {len(wrong)} wrong by more than {bound}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
