"""Emits PyTorch for every spec with which targets are tested, and compares it with the interpreter.

    python tests/pytorch/compare.py TRAFOC FOLDER [NAME ...]

TRAFOC is the program, FOLDER what the test `interp::pytorch` wrote with `TRAFOC_PYTORCH=FOLDER`; `.ci/run pytorch` does
both. Names, in which `*` is any text, restrict it to some of the specs. Needs torch, safetensors, ruff and pyright.

For each spec: the file parses, imports torch alone, and has no fault for ruff and pyright. It loads the weights as they
are in the file, computes the outputs of the interpreter for several masks, at once and step by step, and its gradients;
the fresh weights have the distributions of the spec, dropout is where the spec has it, and trafoc reads back what the
model saves. At the end a table says how many were compared, refused, and wrong.
"""

import json
import multiprocessing
import subprocess
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from model_checks import check, read_back
from text_checks import parse, pyright, ruff

# The exit code of what trafoc cannot do and says so.
REFUSED = 3


def emit(program: str, case: dict, file: Path) -> tuple[int, str]:
    command = [program, "build", case["spec"], "--target", "pytorch", "-o", file, "--force", "-q"]
    command += [word for setting in case["settings"] for word in ("--set", setting)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


def numbers(program: str, file: Path, folder: Path) -> list[str]:
    case = json.loads((folder / "case.json").read_text())
    try:
        return check(file, folder, case) + (read_back(program, folder, case) if case["runs"] else [])
    except Exception as error:  # noqa: BLE001 - whatever an emitted file raises is a fault of it
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = str(error).splitlines()[0] if str(error) else ""
        return [f"{type(error).__name__}: {message} ({Path(place.filename).name}:{place.lineno})"]


def one_thread() -> None:
    torch.set_num_threads(1)
    sys.dont_write_bytecode = True


def table(names: list[str], compared: set, text_only: set, refused: dict, wrong: dict) -> str:
    groups = {"specs": [], "good": [], "numeric": [], "hub": [], "random": [], "named": [], "hostile": []}
    for name in names:
        groups[name.removeprefix("pytorch_").split("_")[0]].append(name)
    rows = [("", "specs", "compared", "text only", "refused", "wrong")]
    for group, members in [*groups.items(), ("all", names)]:
        count = [sum(name in of for name in members) for of in (compared, text_only, refused, wrong)]
        rows.append((group, str(len(members)), *map(str, count)))
    return "\n".join("".join(cell.rjust(11) for cell in row) for row in rows)


def main() -> int:
    program, out = sys.argv[1], Path(sys.argv[2])
    cases = {path.parent.name: json.loads(path.read_text()) for path in sorted(out.glob("cases/*/case.json"))}
    if sys.argv[3:]:
        wanted = sys.argv[3:]
        cases = {name: case for name, case in cases.items() if any(fnmatchcase(name, of) for of in wanted)}
    if not cases:
        raise SystemExit(f"{out} has no cases")
    files = out / "files"
    files.mkdir(exist_ok=True)
    for old in files.glob("*.py"):
        old.unlink()
    file_of = {name: files / f"{name.replace('-', '_').replace('.', '_')}.py" for name in cases}
    assert len(set(file_of.values())) == len(cases)
    wrong: dict[str, list[str]] = {name: [] for name in cases}
    refused: dict[str, str] = {}
    with ThreadPoolExecutor() as pool:
        ends = pool.map(lambda name: emit(program, cases[name], file_of[name]), cases)
        for name, (code, message) in zip(cases, ends, strict=True):
            if code == REFUSED:
                refused[name] = message
            elif code != 0:
                wrong[name].append(f"trafoc build ends with {code}: {message[:300]}")
    emitted = [name for name in cases if file_of[name].exists()]
    for name in emitted:
        wrong[name] += parse(file_of[name])
    folders = [out / "cases" / name for name in emitted]
    # Processes that begin as copies of this one would keep the pipes of ruff and pyright open.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(mp_context=context, initializer=one_thread)
    with ThreadPoolExecutor() as threads, pool as processes:
        texts = [threads.submit(judge, files) for judge in (ruff, pyright)]
        found = processes.map(numbers, [program] * len(emitted), [file_of[n] for n in emitted], folders)
        for name, faults in zip(emitted, found, strict=True):
            wrong[name] += faults
            print(f"{name}: {'; '.join(faults[:4]) or 'the same'}", flush=True)
        name_of = {file_of[name].name: name for name in emitted}
        for text in texts:
            for file, faults in text.result().items():
                wrong[name_of[file]] += faults[:3]
    compared = {name for name in emitted if cases[name]["runs"]}
    text_only = set(emitted) - compared
    wrong = {name: faults for name, faults in wrong.items() if faults}
    print()
    for name, message in refused.items():
        print(f"refused: {name}: {message}")
    for name, faults in wrong.items():
        print(f"wrong: {name}:", *faults[:12], sep="\n    ")
    print(table(list(cases), compared, text_only, refused, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
