"""Try bad inputs: python -m hostile.bad_inputs [FIRST [COUNT]] prints every answer that is not good, and the counts."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hostile import world
from hostile.calling import Outcome, call, complaint, tree
from hostile.cases import Case, case

SEED = 21
ALL = 1200
MEMORY = 8 << 30


class Answer(NamedTuple):
    """How a case was answered."""

    case: Case
    damage: str
    outcome: Outcome
    complaint: str | None

    def __str__(self) -> str:
        words = " ".join(repr(word) for word in self.case.arguments)
        return f"unspur {words}\n  {self.damage}\n  {self.complaint}\n  {self.outcome.err[-400:]}"


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """No more memory than a small machine has: what asks for more must hear so here, not from the system's killer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def tried(good: Path, number: int) -> Answer:
    """Try the case of that number on a copy of the world in ``good``."""
    made = case(SEED, number)
    copy = world.copied(good, good.parent / "case")  # always the same place, whose images the cache then knows
    try:
        with world.inside(copy):
            done = made.damage(copy) if made.damage else ""
            before = tree(copy)
            outcome = call(made.arguments)
            wrote = tree(copy) != before
        return Answer(made, done, outcome, complaint(outcome, wrote))
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def main(first: int = 0, count: int = ALL) -> None:
    began, codes, bad = time.monotonic(), Counter[object](), 0
    with tempfile.TemporaryDirectory() as folder, bounded():
        good = Path(folder) / "world"
        good.mkdir()
        world.make(good)
        for number in range(first, first + count):
            start = time.monotonic()
            answer = tried(good, number)
            codes[answer.outcome.code] += 1
            if answer.complaint:
                bad += 1
                print(f"--- {number} ({time.monotonic() - start:.1f} s) {answer}", flush=True)
    print(f"{count} cases in {time.monotonic() - began:.0f} s; exit codes {dict(codes)}; {bad} not answered well.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
