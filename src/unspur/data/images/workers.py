"""Processes that decode images. They start without this program's main module; one that an image kills is replaced.

Python's own process pools either run the caller's script again in each process, which breaks a script without a main
guard, or fork a process that has threads. These do neither: a fresh interpreter gets its tasks through a pipe.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import NamedTuple

from unspur.data.images.decode import LARGEST_FILE, SquareFit, Unreadable, decode
from unspur.errors import UnspurError

# Nothing here may import torch: every decoding process would wait for it.

CHUNK = 32  # images handed to a process at once
# Without these, glibc returns each image's memory to the system and then allocates it again, with fresh pages: a
# photograph of 500x375 then takes 3.0 ms instead of 1.9 (benchmarks/files.py measures decoding).
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**26), "MALLOC_TRIM_THRESHOLD_": str(2**28)}


class Task(NamedTuple):
    """Files to decode, and what to do with their pixels: write each to a row of a file, send them back, or neither."""

    paths: tuple[str, ...]
    size: int
    fit: SquareFit
    out: str | None = None
    rows: tuple[int, ...] = ()
    send: bool = False


class Decoded(NamedTuple):
    """A file that could be decoded."""

    digest: bytes  # of the file's content
    pixels: bytes | None


class WriteFailed(NamedTuple):
    """A file that was decoded, but whose pixels could not be written, such as to a full disk."""

    errno: int
    reason: str


Result = Decoded | WriteFailed | str  # a string says what is wrong with the file


class Decoders:
    """Some decoding processes; they end with ``close``, with the ``with`` block, or when nothing refers to this."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        self._all = [_Process() for _ in range(self.count)]
        self._threads = ThreadPoolExecutor(self.count)  # each waits for a process
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)
        self.close = weakref.finalize(self, _end, self._all, self._threads)

    def __enter__(self) -> Decoders:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def run(self, tasks: Iterable[Task], ahead: int) -> Iterator[list[Result]]:
        """The results of each task, in order; up to ``ahead`` more tasks are in progress meanwhile."""
        waiting: deque[Future[list[Result]]] = deque()
        try:
            for task in tasks:
                waiting.append(self._threads.submit(self._do, task))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _do(self, task: Task) -> list[Result]:
        process, results = self._idle.get(), list[Result]()
        try:
            while (done := len(results)) < len(task.paths):
                results += process.do(task._replace(paths=task.paths[done:], rows=task.rows[done:]))
                if len(results) < len(task.paths):
                    results.append("made the decoder crash")
                    process.restart()
        finally:
            self._idle.put(process)
        return results


def _end(processes: Sequence[_Process], threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.end()


class _Process:
    """One decoding process, seen from this side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of starting and ending
        self._ended = self._ready = False
        self._process = _start()

    def do(self, task: Task) -> list[Result]:
        """The results for the task's files, fewer if the process died on the next one."""
        tasks, answers, results = self._process.stdin, self._process.stdout, list[Result]()
        assert tasks and answers
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError, ValueError):  # what a broken pipe gives
            if not self._ready:
                self._ready = bool(pickle.load(answers))
            pickle.dump(task, tasks)
            tasks.flush()
            while len(results) < len(task.paths):
                results.append(pickle.load(answers))
        if not self._ready and not self._ended:
            raise UnspurError(f"Could not start a process of {sys.executable} to decode images.")
        return results

    def restart(self) -> None:
        """Start the process again, unless it was ended for good."""
        with self._lock:
            if self._ended:
                raise CancelledError
            self._stop()
            self._ready, self._process = False, _start()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet is no longer needed
                pipe and pipe.close()


def _start() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", "from unspur.data.images.workers import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # C libraries print there what we report ourselves
        env=KEEP_MEMORY | os.environ | single | {"PYTHONPATH": path},
    )


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve() -> None:
    """Do tasks from stdin until it closes, as it also does when the parent process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the parent decides
    tasks, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not mix with the results
    pickle.dump("ready", results)
    results.flush()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            for result in _results(pickle.load(tasks)):
                pickle.dump(result, results)
                results.flush()


def _results(task: Task) -> Iterator[Result]:
    for number, path in enumerate(task.paths):
        try:
            content = _content(path)
            pixels = decode(content, task.size, task.fit).tobytes()
            if task.out is not None:
                _write(pixels, task.out, task.rows[number])
            digest = hashlib.blake2b(content, digest_size=16).digest()
            yield Decoded(digest, pixels if task.send else None)
        except Unreadable as problem:
            yield str(problem)
        except OSError as error:
            yield WriteFailed(error.errno or 0, error.strerror or str(error))


def _content(path: str) -> bytes:
    if not os.path.isfile(path) and os.path.exists(path):
        raise Unreadable("is not a file")  # reading a pipe would wait, and a device has no end
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    if len(content) > LARGEST_FILE:
        raise Unreadable(f"is larger than {LARGEST_FILE >> 30} GB")
    return content


def _write(pixels: bytes, out: str, row: int) -> None:
    with open(out, "r+b") as file:
        file.seek(row * len(pixels))
        file.write(pixels)
