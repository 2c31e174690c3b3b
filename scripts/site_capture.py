"""What commands and Python on a page print, captured when the site is built, so that it cannot drift.

A block that stands below `<!-- run -->` is run, in the order of the page and in one empty folder: ```sh by a shell,
```python as a program. What is printed follows it on the site. Captures are kept until the package or a block changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from site_pages import ROOT

BLOCK = re.compile(r"<!-- run -->\n+```(?P<kind>sh|python)\n(?P<code>.*?)```\n", re.DOTALL)
LONGEST = 45  # lines of an output that are shown
SECONDS = 3600


def captured(text: str, kept: Path, say: Callable[[str], None]) -> str:
    """``text`` with what its blocks print behind them; ``kept`` is the folder of earlier captures."""
    blocks = [(found["kind"], found["code"]) for found in BLOCK.finditer(text)]
    if not blocks:
        return text
    store = kept / f"{_key(blocks)}.json"
    if not store.exists():
        outputs = _run(blocks, say)
        kept.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(outputs, indent=1), encoding="utf-8")
    known = iter(json.loads(store.read_text(encoding="utf-8")))

    def shown(found: re.Match[str]) -> str:
        output = next(known)
        behind = f"\n```text\n{output}\n```\n" if output else ""
        return f"```{found['kind']}\n{found['code']}```\n{behind}"

    return BLOCK.sub(shown, text)


def _key(blocks: list[tuple[str, str]]) -> str:
    """Of the blocks and of every file of the package: what may change what is printed."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    content = json.dumps(blocks).encode() + b"".join(path.read_bytes() for path in sources)
    return hashlib.sha256(content).hexdigest()[:16]


def _run(blocks: list[tuple[str, str]], say: Callable[[str], None]) -> list[str]:
    """What each block prints, in one folder, one after the other; one that fails stops the build."""
    with tempfile.TemporaryDirectory(prefix="unspur-docs-") as name:
        folder, outputs = Path(name), []
        for kind, code in blocks:
            say(f"capturing: {code.strip().splitlines()[0]}")
            outputs.append(shortened(output_of(kind, code, folder, Path(sys.executable), str(ROOT / "src"))))
        return outputs


def output_of(kind: str, code: str, folder: Path, python: Path, path: str = "") -> str:
    """What a block prints when it is run in ``folder`` by ``python``, with ``path`` before its packages."""
    unspur = f'unspur() {{ {shlex.quote(str(python))} -m unspur "$@"; }}\n'
    command = [str(python), "-c", code] if kind == "python" else ["bash", "-ec", unspur + code]
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder, path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"A block of the docs fails with {done.returncode}:\n{code}\n{done.stdout}")
    return done.stdout.replace(f"{folder}/", "").replace(str(folder), ".").strip("\n")


def shortened(output: str) -> str:
    """At most LONGEST lines, without spaces at their ends."""
    lines = [line.rstrip() for line in output.splitlines()]
    cut = [*lines[: LONGEST - 1], f"... and {len(lines) - LONGEST + 1} more lines"] if len(lines) > LONGEST else lines
    return "\n".join(cut)


def _environment(folder: Path, path: str) -> dict[str, str]:
    """No data but what comes with unspur, and nobody's cache."""
    left_out = ("UNSPUR_DATA", "UNSPUR_QUIET", "PYTHONPATH")
    own = {"UNSPUR_CACHE": str(folder / "cache"), "COLUMNS": "110"} | ({"PYTHONPATH": path} if path else {})
    return {name: value for name, value in os.environ.items() if name not in left_out} | own
