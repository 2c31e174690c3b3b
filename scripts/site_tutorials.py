"""Tutorials: programs of cells in docs/tutorials/*.py, from which notebooks and pages of the site are made.

    python scripts/site_tutorials.py                       # write docs/tutorials/*.ipynb
    python scripts/site_tutorials.py --run FILE.py --out DIR  # run one, and store what it printed and drew

A cell begins with `# %%`, and one of text with `# %% [markdown]`. In tests `name = 6  # tests: 1` is 1.
Notebooks are stored without output: whoever opens one runs it, and the site shows what it gave when that was built.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from site_pages import ROOT

FOLDER = ROOT / "docs" / "tutorials"
START = re.compile(r"^# %%(?P<text> \[markdown\])?\n", re.MULTILINE)
SMALL = re.compile(r"^(?P<name>\w+ = )[^#\n]+?(?P<note>  #[^\n]*)?  # tests: (?P<value>.+)$", re.MULTILINE)
NOTE = re.compile(r"  # tests: .+$", re.MULTILINE)


class Cell(NamedTuple):
    """Text in Markdown, or code."""

    is_text: bool
    source: str


class Output(NamedTuple):
    """What a cell printed, and the file of the picture that it ended with."""

    text: str
    picture: str | None


def tutorials() -> list[Path]:
    """The programs, in their order."""
    return sorted(FOLDER.glob("*.py"))


def cells(program: str) -> list[Cell]:
    """The cells of a program."""
    found = list(START.finditer(program))
    ends = [*(one.start() for one in found[1:]), len(program)]
    return [
        _cell(bool(one["text"]), program[one.end() : end].strip("\n")) for one, end in zip(found, ends, strict=True)
    ]


def _cell(is_text: bool, source: str) -> Cell:
    if is_text:
        return Cell(True, "\n".join(line.removeprefix("#").removeprefix(" ") for line in source.splitlines()))
    return Cell(False, source)


def small(program: str) -> str:
    """The program with the settings of tests."""
    return SMALL.sub(lambda found: f"{found['name']}{found['value']}", program)


def notebook(program: str) -> str:
    """The program as a notebook without output."""
    made = [
        {
            "cell_type": "markdown" if cell.is_text else "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": NOTE.sub("", cell.source).splitlines(keepends=True),
            **({} if cell.is_text else {"execution_count": None, "outputs": []}),
        }
        for number, cell in enumerate(cells(program))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": made, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}}
    return json.dumps(content | {"nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def run(program: str, out: Path) -> list[Output]:
    """What each cell of code gives, in one namespace and the present folder; pictures are written to ``out``."""
    names: dict[str, object] = {"__name__": "tutorial"}
    return [
        _run_cell(cell.source, names, out / f"{place}.png")
        for place, cell in enumerate(cells(program))
        if not cell.is_text
    ]


def _run_cell(source: str, names: dict[str, object], picture: Path) -> Output:
    """As a notebook does: what is printed, and the value of a last line that is an expression if it is a picture."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    if not hasattr(value, "_repr_png_"):
        return Output(printed.getvalue(), None)
    value.save(picture)
    return Output(printed.getvalue(), picture.name)


def page(program: str, outputs: list[Output] | None, pictures: str) -> str:
    """The tutorial as a page: text, code, and what it gave if that is known, with pictures from ``pictures``."""
    text, known = [], iter(outputs or [])
    for cell in cells(program):
        if cell.is_text:
            text.append(cell.source)
            continue
        text.append(f"```python\n{NOTE.sub('', cell.source)}\n```")
        output = next(known, Output("", None))
        if output.text.strip():
            text.append(f"```text\n{output.text.strip()}\n```")
        if output.picture:
            text.append(f"![What the code above draws]({pictures}/{output.picture})")
    return "\n\n".join(text) + "\n"


def write_tutorials(source: Path, kept: Path, *, capture: bool) -> list[str]:
    """A page for each tutorial below ``source`` / tutorials; what they give is kept until package or program change."""
    out = source / "tutorials"
    out.mkdir(parents=True)
    for path in tutorials():
        program, outputs = path.read_text(encoding="utf-8"), None
        if capture:
            store = kept / f"{path.stem}-{_key(program)}"
            outputs = _outputs(path, store)
            shutil.copytree(store, source / "pictures" / path.stem, ignore=shutil.ignore_patterns("*.json"))
        (out / f"{path.stem}.md").write_text(page(program, outputs, f"../pictures/{path.stem}"), encoding="utf-8")
    return [path.stem for path in tutorials()]


def _key(program: str) -> str:
    sources = sorted((ROOT / "src").rglob("*.py"))
    return hashlib.sha256(program.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def _outputs(path: Path, store: Path) -> list[Output]:
    """What the tutorial gave, run in a process of its own unless it has been."""
    if not (store / "outputs.json").exists():
        print(f"running: {path.name}")
        command = [sys.executable, __file__, "--run", str(path), "--out", str(store)]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        subprocess.run(command, check=True, env=environment)
    return [Output(*one) for one in json.loads((store / "outputs.json").read_text(encoding="utf-8"))]


def _run_into(path: Path, store: Path) -> None:
    import tempfile

    store.mkdir(parents=True, exist_ok=True)
    store = store.resolve()
    with tempfile.TemporaryDirectory(prefix="unspur-tutorial-") as folder, contextlib.chdir(folder):
        os.environ["UNSPUR_CACHE"] = str(Path(folder) / "cache")
        outputs = run(path.read_text(encoding="utf-8"), store)
        text = json.dumps(outputs, indent=1).replace(f"{folder}/", "")
    (store / "outputs.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("."))
    asked = parser.parse_args()
    if asked.run:
        return _run_into(asked.run, asked.out)
    for path in tutorials():
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
