"""A process of its own that dies, or finds the disk full, before its k-th file operation.

Python tells an audit hook of every file that is opened, renamed, deleted and made, by whatever library. What counts
here are those that write below one folder; what a compiled library writes lies between two of them.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import multiprocessing
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PATIENCE = 600  # seconds after which a process that hangs is ended, and found to have been
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.link", "os.symlink"}
GROWS = {"open", "os.mkdir", "os.link", "os.symlink"}  # what a full disk refuses


class Fault(NamedTuple):
    """What happens before the ``at``-th operation: ``kill``, or ``full`` then and ever after; at 0 nothing."""

    kind: str = "kill"
    at: int = 0


class Ended(NamedTuple):
    """How a process ended, and what it had done."""

    code: int  # negative: killed by that signal
    said: str
    operations: list[str]
    killed: bool  # whether it, or a process that it had started, was killed


def in_process(work: Callable[[], int], folder: Path, fault: Fault, limit: int | None = None) -> Ended:
    """Do ``work`` in a copy of this process, with ``fault`` in what it writes below ``folder``.

    With ``limit`` no file can grow beyond so many bytes, whoever writes it: a full disk for compiled libraries as well.
    """
    notes, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a copy of a process with threads may not work; ours only wait
        child = os.fork()
    if child == 0:
        os.close(notes)
        _child(work, folder, fault, limit, theirs)
    os.close(theirs)
    with open(notes, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    _, status = os.waitpid(child, 0)
    operations = [line[2:] for line in lines if line.startswith("o ")]
    said = "\n".join(line[2:] for line in lines if line.startswith("s "))
    return Ended(os.waitstatus_to_exitcode(status), said, operations, "k" in lines)


def _child(work: Callable[[], int], folder: Path, fault: Fault, limit: int | None, notes: int) -> None:
    out, code = io.StringIO(), 99
    torch.set_num_threads(1)  # the threads of the process that this is a copy of are not here
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(PATIENCE)
    try:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        arrange(folder, fault, notes)
        copies = multiprocessing.get_context("fork")
        multiprocessing.get_context = lambda method=None: copies  # what this starts has the hook, and torch, too
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = work()
    except BaseException:
        out.write(traceback.format_exc())
    for line in out.getvalue().splitlines():
        os.write(notes, f"s {line}\n".encode(errors="replace"))
    os._exit(code)


def arrange(folder: Path, fault: Fault, notes: int) -> None:
    """From here on this process has ``fault`` in what it writes below ``folder``; operations go to ``notes``."""
    below = os.path.realpath(folder) + os.sep
    counted = mmap.mmap(-1, 8)  # by this process and those that it starts

    def hook(event: str, args: tuple[object, ...]) -> None:
        path = _path(args[0]) if args else ""
        if not path.startswith(below) or not _writes(event, args) or _idle(event, path):
            return
        count = int.from_bytes(counted[:8], "little") + 1
        counted[:8] = count.to_bytes(8, "little")
        os.write(notes, f"o {event} {path[len(below) :]}\n".encode(errors="replace"))
        if fault.kind == "kill" and count == fault.at:
            os.write(notes, b"k\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == "full" and fault.at and count >= fault.at and event in GROWS:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    sys.addaudithook(hook)


def _writes(event: str, args: tuple[object, ...]) -> bool:
    return event in CHANGES or (event == "open" and isinstance(args[2], int) and bool(args[2] & WRITING))


def _idle(event: str, path: str) -> bool:
    """Whether it changes nothing: to make what there is, or to delete what there is not."""
    there = os.path.lexists(path)
    return (event == "os.mkdir" and there) or (event in ("os.remove", "os.rmdir") and not there)


def _path(given: object) -> str:
    if not isinstance(given, str | bytes | os.PathLike):
        return ""  # a descriptor of a file that was counted when it was opened
    return os.path.abspath(os.fsdecode(given))
