"""How long help and the lists take. Bounds: 0.5 s for `unspur --help`, 1 s for the lists, which import no torch.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys

from side_by_side import compare, verdict

BOUNDS = {"--help": 0.5, "methods": 1.0, "archs": 1.0, "data list": 1.0}


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> bool:
    commands = {command: lambda c=command: run("-m", "unspur", *c.split()) for command in BOUNDS}
    seconds = compare({"python -c pass": lambda: run("-c", "pass"), **commands})
    print(f"a bare interpreter, seconds: {seconds['python -c pass']:.2f}")
    verdicts = [verdict(f"unspur {name}, seconds", seconds[name], at_most=bound) for name, bound in BOUNDS.items()]
    return all(verdicts)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
