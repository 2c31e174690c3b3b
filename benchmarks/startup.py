"""How long `unspur --help` takes, beside a bare interpreter. Bound: under 0.5 s.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys

from side_by_side import compare, verdict


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> bool:
    seconds = compare(
        {"python -c pass": lambda: run("-c", "pass"), "unspur --help": lambda: run("-m", "unspur", "--help")}
    )
    return verdict("unspur --help, seconds", seconds["unspur --help"], at_most=0.5)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
