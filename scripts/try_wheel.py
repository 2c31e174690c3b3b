"""Install the wheel into an environment of its own, away from this checkout, and do there what the start page does.

    python scripts/try_wheel.py dist/unspur-0.2.0-py3-none-any.whl [--demo]

Prints what each step printed and how long it took; one that fails ends it with its own output.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from contextlib import nullcontext
from pathlib import Path
from time import monotonic

from site_capture import BLOCK, output_of
from site_pages import ROOT

PAGE = ROOT / "docs" / "start.md"
DEMO = "unspur demo --out demo\nls demo"


def blocks(demo: bool) -> list[tuple[str, str]]:
    """The blocks of the first page that are run, and the demo if it is wanted: it takes minutes."""
    found = [(block["kind"], block["code"]) for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    return [*found, ("sh", DEMO)] if demo else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--demo", action="store_true", help="run unspur demo as well")
    parser.add_argument("--keep", type=Path, help="a folder to work in, which is left behind")
    asked = parser.parse_args()
    began = monotonic()
    with nullcontext(asked.keep) if asked.keep else tempfile.TemporaryDirectory(prefix="unspur-wheel-") as name:
        folder = Path(name).resolve()
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        _install(python, asked.wheel.resolve())
        print(f"installed in {monotonic() - began:.0f} s", flush=True)
        (folder / "work").mkdir(parents=True)
        where = output_of("python", "import unspur; print(unspur.__file__)", folder / "work", python)
        assert str(ROOT) not in where and "site-packages" in where, f"{where} is not the installed one"
        for kind, code in blocks(asked.demo):
            start = monotonic()
            printed = output_of(kind, code, folder / "work", python)
            print(f"\n$ {code.strip()}\n{printed}\n({monotonic() - start:.0f} s)", flush=True)
    return 0


def _install(python: Path, wheel: Path) -> None:
    """torch first and pinned, as `make venv` does; then the wheel with what the page needs."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *pins, "torch", "torchvision"], check=True)
    subprocess.run([*pip, *pins, f"unspur[efficientnet,export] @ {wheel.as_uri()}"], check=True)


if __name__ == "__main__":
    sys.exit(main())
