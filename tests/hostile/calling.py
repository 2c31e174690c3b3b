"""The command line called in this process, and what must hold of whatever it answers."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
import traceback
import unicodedata
from pathlib import Path
from typing import NamedTuple

from unspur.cli.main import main

PATIENCE = 120  # seconds; no bad input takes so long to be refused, whatever else the machine does


class Hangs(BaseException):
    """A call that did not answer in time."""


class Outcome(NamedTuple):
    """How a command ended."""

    arguments: list[str]
    code: int | None  # None: an exception came out of it
    out: str
    err: str
    raised: str  # the traceback, if there is one


def call(arguments: list[str], stdin: bytes = b"", patience: int = PATIENCE) -> Outcome:
    """Do what `unspur ARGUMENTS` does, without a new process and within ``patience`` seconds."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(2))
    code, raised = None, ""

    def late(*_signal: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    arguments_before, stdin_before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["unspur", *arguments], io.TextIOWrapper(io.BytesIO(stdin))
    signal.alarm(patience)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except (Exception, Hangs):
        raised = traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        sys.argv, sys.stdin = arguments_before, stdin_before
    said = []
    for stream in (out, err):
        with contextlib.suppress(ValueError):  # closed by what was called
            stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8", "surrogateescape"))
    return Outcome(arguments, code, *said, raised)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below ``folder``, with its size and when it was changed."""
    found = {}
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            whole = os.path.join(path, name)
            status = os.lstat(whole)
            own = name in folders  # a folder's own figures change with what is in it
            found[os.path.relpath(whole, folder)] = (0, 0) if own else (status.st_size, status.st_mtime_ns)
    return found


def complaint(outcome: Outcome, wrote: bool) -> str | None:
    """What is wrong with how a bad input was answered; None: nothing.

    A mistake is exit code 2, one sentence on stderr, below it at most the page that explains it, and nothing written.
    An input may turn out to be harmless (0), and a run that began may diverge or fail (1), but not on an error in the
    program.
    """
    said = outcome.out + outcome.err
    if outcome.raised:
        return f"it raised:\n{outcome.raised}"
    if outcome.code not in (0, 1, 2):
        return f"its exit code is {outcome.code}"
    if "Traceback" in said or "error in the program" in said:
        return "it shows an error in the program"
    seen = outcome.err if outcome.arguments[0] == "predict" else said  # whose rows are data, and printed as such
    if steering := {hex(ord(letter)) for letter in seen if unicodedata.category(letter) == "Cc"} - {"0xa", "0x9"}:
        return f"it prints control characters: {sorted(steering)}"
    if outcome.code == 0 or (outcome.code == 1 and "diverged" in said):
        return None
    errors = [line for line in outcome.err.splitlines() if line.startswith("Error: ")]
    if len(errors) != 1 or len(errors[0]) < len("Error: ") + 10:
        return f"it has {len(errors)} sentences that begin with Error"
    behind = outcome.err[outcome.err.index(errors[0]) + len(errors[0]) :].strip("\n")
    if behind and not re.fullmatch(r"See docs/\S+", behind):
        return "behind the sentence there is more than the page that explains it"
    if outcome.code == 2 and wrote:
        return "it refused, but wrote"
    return None
