"""The errors a person can cause or must be told of, each one sentence that says what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnspurError(Exception):
    """A mistake in what was asked for; the command line prints it and exits with 2."""


class UnknownName(UnspurError):
    """A name that does not exist; the sentence has the nearest that does, or all of them."""


class DataMissing(UnspurError):
    """Data, or published weights, that are not on this machine; the sentence says how to get it."""


class RunFailed(UnspurError):
    """A run that began and could not end, such as on a full disk; the command line exits with 1."""


class Diverged(Exception):
    """The loss stopped being a number: a result of the run, not an error in it."""

    def __init__(self, stage: str, step: int) -> None:
        super().__init__(f"The loss was not finite at step {step} of stage '{stage}'.")
        self.stage, self.step = stage, step

    def __reduce__(self) -> tuple[type[Diverged], tuple[str, int]]:
        # The default would pass the sentence alone to __init__ when a worker process hands this back.
        return Diverged, (self.stage, self.step)


def unknown(kind: str, given: str, allowed: Iterable[str]) -> UnknownName:
    """An error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("method", "masktun", ["erm", "masktune"]))
    Unknown method 'masktun'. Did you mean 'masktune'?
    >>> print(unknown("method", "q", ["erm", "masktune"]))
    Unknown method 'q'. There are: erm, masktune.
    """
    names = list(allowed)
    near = difflib.get_close_matches(given, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(names) or 'none'}."
    return UnknownName(f"Unknown {kind} '{given}'. {hint}")


def require(condition: bool, sentence: str) -> None:
    """Raise ``sentence`` as an UnspurError unless ``condition`` holds."""
    if not condition:
        raise UnspurError(sentence)
