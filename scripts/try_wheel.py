"""Install the wheel into an environment of its own, away from this checkout, and do there what the start page does.

    python scripts/try_wheel.py dist/unspur-0.2.0-py3-none-any.whl [--demo] [--photos DIR] [--log FILE.md]

Prints what each step printed and how long it took; one that fails ends it with its own output. With --photos the images
are those of DIR, a folder for each class, instead of the digits that the page writes, and they are also audited as they
are. --log writes the steps down.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from site_capture import BLOCK, output_of
from site_pages import ROOT

PAGE = ROOT / "docs" / "start.md"
DEMO = "unspur demo --out demo\nls demo"
AS_THEY_ARE = "unspur audit photos"  # what the page says of photographs of one's own
VERSIONS = "import platform, torch, unspur; print(unspur.__version__, platform.python_version(), torch.__version__)"
LAST = 12  # lines of an output that are written down


class Step(NamedTuple):
    """What was typed, what was seen, and how long it took."""

    code: str
    printed: str
    seconds: float


def blocks(demo: bool, photos: bool) -> list[tuple[str, str]]:
    """The blocks of the first page that are run, and the demo if it is wanted: it takes minutes."""
    found = [(block["kind"], block["code"]) for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    if photos:  # instead of the program that writes pictures
        found = [block for block in found if block[0] == "sh"]
        found.insert(1, ("sh", AS_THEY_ARE))
    return [*found, ("sh", DEMO)] if demo else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--demo", action="store_true", help="run unspur demo as well")
    parser.add_argument("--photos", type=Path, help="a folder with a folder of photographs for each class")
    parser.add_argument("--log", type=Path, help="a Markdown file to write the steps to")
    parser.add_argument("--keep", type=Path, help="a folder to work in, which is left behind")
    asked = parser.parse_args()
    commit = _commit()  # before anything else: what is committed while this runs is not in the wheel
    with nullcontext(asked.keep) if asked.keep else tempfile.TemporaryDirectory(prefix="unspur-wheel-") as name:
        folder = Path(name).resolve()
        steps: list[Step] = []
        for step in tried(folder, asked.wheel.resolve(), asked.photos, asked.demo):
            print(f"\n$ {step.code.strip()}\n{step.printed}\n({step.seconds:.0f} s)", flush=True)
            steps.append(step)
            if asked.log:  # after each: what was seen before a step that fails is worth keeping
                asked.log.write_text(written(steps, commit, _versions(folder), _counted(asked.photos)), "utf-8")
    return 0


def tried(folder: Path, wheel: Path, photos: Path | None, demo: bool) -> Iterator[Step]:
    """Every step as it is done."""
    work, python = folder / "work", folder / "env" / "bin" / "python"
    start = monotonic()
    venv.create(folder / "env", with_pip=True)
    _install(python, wheel)
    seconds = monotonic() - start
    work.mkdir(parents=True)
    yield Step("pip install 'unspur[efficientnet,export]'", "", seconds)
    if photos:
        shutil.copytree(photos, work / "photos")
    where = output_of("python", "import unspur; print(unspur.__file__)", work, python)
    assert str(ROOT) not in where and "site-packages" in where, f"{where} is not the installed one"
    for kind, code in blocks(demo, photos is not None):
        start = monotonic()
        yield Step(code, output_of(kind, code, work, python), monotonic() - start)


def _install(python: Path, wheel: Path) -> None:
    """torch first and pinned, as `make venv` does; then the wheel with what the page needs."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = ["-c", str(ROOT / "constraints.txt")]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # or this checkout would do
    subprocess.run([*pip, *pins, "torch", "torchvision"], check=True, env=alone)
    subprocess.run([*pip, *pins, f"unspur[efficientnet,export] @ {wheel.as_uri()}"], check=True, env=alone)


def _counted(photos: Path | None) -> str:
    """What the images are."""
    if not photos:
        return "300 pictures of digits, as the page writes them"
    classes = {folder.name: sum(path.is_file() for path in folder.iterdir()) for folder in sorted(photos.iterdir())}
    return f"{sum(classes.values())} photographs ({', '.join(f'{count} {name}' for name, count in classes.items())})"


@cache
def _versions(folder: Path) -> tuple[str, ...]:
    """Of unspur, Python and torch, as installed."""
    return tuple(output_of("python", VERSIONS, folder / "work", folder / "env" / "bin" / "python").split())


def _commit() -> str:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def written(steps: list[Step], commit: str, versions: tuple[str, ...], images: str) -> str:
    """The log: a line for each step, and then what was seen at its end."""
    version, python, torch = versions
    first = [step.code.strip().splitlines()[0] for step in steps]
    rows = "\n".join(f"| `{line}` | {step.seconds:.0f} |" for line, step in zip(first, steps, strict=True))
    seen = "\n".join(
        f"### {line.partition(' --')[0]}\n\n```sh\n{step.code.strip()}\n```\n\n```text\n{_end(step.printed)}\n```\n"
        for line, step in zip(first, steps, strict=True)
        if step.printed
    )
    load = f"{os.cpu_count()} cores, {os.getloadavg()[2]:.0f} processes at work on them on average"
    return LOG.format(
        version=version, commit=commit, python=python, torch=torch, images=images, load=load, rows=rows, seen=seen
    )


def _end(printed: str) -> str:
    lines = [line.rstrip() for line in printed.splitlines()]
    return "\n".join([f"... {len(lines) - LAST} lines before", *lines[-LAST:]] if len(lines) > LAST else lines)


LOG = """# First steps, from the wheel alone

Written by `python scripts/try_wheel.py dist/*.whl --photos DIR --log results/first-steps.md`: a fresh environment away
from the checkout, the wheel, and every command of [the start page](../docs/start.md) as it stands there. unspur
{version}, commit {commit}; Python {python}, torch {torch}; {load}; {images}.

| step | seconds |
| --- | --- |
{rows}

## What was seen

{seen}"""


if __name__ == "__main__":
    sys.exit(main())
