"""Files and folders that are made beside their place and moved there once they are whole.

A killed process cannot delete what it has begun. But the system releases its locks, so the next process that writes
there sees which unfinished files nobody works on any more, and deletes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Windows has no such locks. There, leftovers are only deleted by a run, audit or repair that resumes in its own folder.
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
    """Move what is finished to its place. It was made private; now it gets the user's usual permissions."""
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
    """What ``make`` makes in ``parent``, locked during the block if the file system supports locks."""
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
    """Lock ``path``, a file or a folder. None: it is gone, or locked and not waited for, or locks are not supported."""
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
    """Delete what killed processes left unfinished in ``folder``; each process checks a folder once."""
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
    """Delete everything unfinished in ``folder`` or below it; nobody else may be working there."""
    for path in folder.rglob(PARTIAL + "*"):
        _delete(path)
