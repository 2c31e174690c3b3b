"""Files and folders that are made beside their place and moved there once they are whole.

A process that is killed cannot delete what it has begun. But the system takes its locks away, so that the next process
that writes there sees which unfinished files nobody works on any more, and deletes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Windows has no such locks: there only a run, an audit or a repair that goes on deletes what was left in its folder.
try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial-"  # the prefix of what a killed process may leave behind

_cleared: set[Path] = set()  # folders in which this process has looked


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """Yield a new empty file beside ``path``, which is deleted if it is still there at the end of the block."""
    with _held(path.parent, lambda: _file(path)) as temporary:
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside ``path``, which is deleted if it is still there at the end of the block."""
    made: Callable[[], Path] = lambda: Path(tempfile.mkdtemp(prefix=PARTIAL, dir=path.parent))  # noqa: E731
    with _held(path.parent, made) as temporary:
        try:
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def publish(temporary: Path, path: Path, mode: int) -> None:
    """Move what is finished to its place; it was made private, and becomes as readable as others of the user's."""
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(mode & ~umask)
    temporary.replace(path)


def _file(path: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=PARTIAL, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    return Path(name)


@contextlib.contextmanager
def _held(parent: Path, make: Callable[[], Path]) -> Iterator[Path]:
    """What ``make`` makes in ``parent``, locked for as long as the block takes, where the disk knows locks."""
    clear_abandoned(parent)
    made = make()
    lock = _lock(made, wait=True)
    while not made.exists():  # another process took it for abandoned before it was locked, and deleted it
        if lock is not None:
            os.close(lock)
        made = make()
        lock = _lock(made, wait=True)
    try:
        yield made
    finally:
        if lock is not None:
            os.close(lock)


def _lock(path: Path, *, wait: bool = False) -> int | None:
    """Lock ``path``, a file or a folder; None: it is gone, somebody has it and is not waited for, or there are none."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def clear_abandoned(folder: Path) -> None:
    """Delete what killed processes left unfinished in ``folder``; a process looks once."""
    if fcntl is None or folder in _cleared:
        return
    _cleared.add(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PARTIAL) and (lock := _lock(Path(entry.path))) is not None:
                _delete(Path(entry.path))
                os.close(lock)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_partial(folder: Path) -> None:
    """Delete all that is unfinished in ``folder`` or below it, which nobody else works on."""
    for path in folder.rglob(PARTIAL + "*"):
        _delete(path)
