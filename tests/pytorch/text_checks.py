"""What holds for the text of every emitted file: Python parses it, ruff finds nothing to say, pyright no wrong type."""

import ast
import json
import subprocess
import sys
from pathlib import Path

# Whatever a spec says, only these are imported, and only these names of Python are called to run text or to open files.
IMPORTS = {"__future__", "collections", "dataclasses", "functools", "math", "typing", "torch"}
NEVER_CALLED = {"eval", "exec", "compile", "open", "__import__", "input", "breakpoint"}


def parse(path: Path) -> list[str]:
    """Faults that the syntax tree shows."""
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [f"does not parse: {error}"]
    faults = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        faults += [f"imports {name}" for name in names if name.split(".")[0] not in IMPORTS]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NEVER_CALLED:
            faults.append(f"calls {node.func.id}")
    if any(not isinstance(node, ALLOWED) and not is_text(node) for node in tree.body):
        faults.append("has a statement outside of definitions")
    if any(ord(c) < 32 and c != "\n" or 0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E for c in text):
        faults.append("has a control character")
    return faults


ALLOWED = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign)


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def ruff(folder: Path) -> dict[str, list[str]]:
    """Faults by file; the settings are ruff's own."""
    faults: dict[str, list[str]] = {}
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "--output-format",
            "json",
            folder,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    for one in json.loads(found.stdout):
        place = f"{one['location']['row']}: {one['code']} {one['message']}"
        faults.setdefault(Path(one["filename"]).name, []).append(f"ruff check: line {place}")
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "format",
            "--isolated",
            "--no-cache",
            "--check",
            "--output-format",
            "json",
            folder,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if found.returncode > 1:
        raise RuntimeError(found.stderr)
    for one in json.loads(found.stdout):
        place = f"line {one['location']['row']}"
        faults.setdefault(Path(one["filename"]).name, []).append(f"ruff format: {place} would be another")
    return faults


def pyright(folder: Path) -> dict[str, list[str]]:
    """Faults by file, in the mode `basic`."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic"}\n')
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pyright",
            "--outputjson",
            "--pythonpath",
            sys.executable,
            "--project",
            folder,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    report = json.loads(found.stdout)
    if report["summary"]["filesAnalyzed"] < len(list(folder.glob("*.py"))):
        raise RuntimeError(f"pyright read {report['summary']['filesAnalyzed']} files: {found.stderr}")
    faults: dict[str, list[str]] = {}
    for one in report["generalDiagnostics"]:
        if one["severity"] in ("error", "warning"):
            place = f"{one['range']['start']['line'] + 1}: {one['message'].splitlines()[0]}"
            faults.setdefault(Path(one["file"]).name, []).append(f"pyright: line {place}")
    return faults
