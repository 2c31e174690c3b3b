"""Where the runs of a sweep happen: in local processes or on a Ray cluster, one thread each."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unspur.data.images.workers import cores
from unspur.errors import UnspurError
from unspur.runs.analyze import analyze, stored_analysis
from unspur.runs.config import Config
from unspur.runs.experiment import run, why_it_stopped
from unspur.runs.folder import Run
from unspur.runs.result import ENDED


class Job(NamedTuple):
    """One run to do, in plain values that any process can read."""

    config: dict[str, Any]
    out: str
    data_dir: str | None = None
    analyze: bool = False  # also when it is done


class Outcome(NamedTuple):
    """How a job ended: a status as in result.json, and why if it is not ``done``."""

    status: str
    reason: str | None = None


Outcomes = Generator[tuple[int, Outcome], None, None]  # each job's number when it has ended
Engine = Callable[[Sequence[Job], int | None], Outcomes]  # how many at once; None: as many as there are processors


def work(job: Job) -> Outcome:
    """Do one run on one thread, in a process that does nothing else."""
    torch.set_num_threads(1)
    data_dir = Path(job.data_dir) if job.data_dir else None
    try:
        config = Config.from_json(job.config)
        result = run(config, Path(job.out), data_dir=data_dir, resume=True)
    except Exception as error:  # must not end the process: the next job needs it
        return Outcome("failed", why_it_stopped(error))
    reason = result.get("reason")
    folder = Run.create(Path(job.out), config).folder
    if job.analyze and result["status"] == "done" and stored_analysis(folder) is None:
        try:
            analyze(folder, data_dir=data_dir)
        except Exception as error:
            reason = f"It was not analysed: {why_it_stopped(error)}"
    return Outcome(result["status"], reason)


def record_death(job: Job, reason: str) -> Outcome:
    """Write into the run's folder that its process died, unless it had ended by then."""
    stored = Run.create(Path(job.out), Config.from_json(job.config))
    with stored.working(lambda sentence: None):
        result = stored.result()
        if result and result["status"] in ENDED:
            return Outcome(result["status"], result.get("reason"))
        if not stored.started:
            stored.begin()
        stored.end("failed", 0.0, 1, reason=reason)
    return Outcome("failed", reason)


def local(jobs: Sequence[Job], workers: int | None) -> Outcomes:
    """Work in up to ``workers`` processes of this machine; one that dies costs the run it was doing and no other."""
    waiting = deque(range(len(jobs)))
    busy: dict[Connection, tuple[BaseProcess, int]] = {}

    def give(worker: tuple[BaseProcess, Connection] | None = None) -> None:
        if waiting:
            number = waiting.popleft()
            process, connection = worker or _start()
            try:
                connection.send(jobs[number])
            except (BrokenPipeError, ConnectionResetError):  # it died while it had nothing to do
                process, connection = _start()
                connection.send(jobs[number])
            busy[connection] = process, number
        elif worker:
            worker[1].close()  # which ends it

    try:
        for _ in range(min(workers or cores(), len(jobs))):
            give()
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                process, number = busy.pop(connection)
                try:
                    outcome = connection.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    yield number, record_death(jobs[number], _cause(process.exitcode))
                    give()
                else:
                    yield number, outcome
                    give((process, connection))
    finally:
        for process, _ in busy.values():
            process.kill()


def _start() -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that its death is the end of the connection
    return process, ours


def _serve(connection: Connection) -> None:
    """Do jobs until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    os.dup2(2, 1)  # stdout belongs to the sweep's own result
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(work(connection.recv()))


def _die_with(sentinel: int) -> None:
    """End this process when the sweep's has ended, however that happened."""
    wait([sentinel])
    os._exit(1)


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"The run's process was killed by {name}; if memory is short, use fewer --jobs."
    return f"The run's process ended with code {code}."


def on_ray(jobs: Sequence[Job], workers: int | None) -> Outcomes:
    """Work on a Ray cluster: the one that runs, else one that is started here and ends with the sweep.

    Every machine of the cluster must see the same folders and data, and have unspur installed.
    """
    with ray_cluster(workers) as ray:
        task = ray.remote(num_cpus=1, max_retries=0)(work)
        waiting = deque(range(len(jobs)))
        running: dict[Any, int] = {}
        workers = workers or int(ray.cluster_resources().get("CPU", 1))
        while waiting or running:
            while waiting and len(running) < workers:
                number = waiting.popleft()
                running[task.remote(jobs[number])] = number
            (ended, *_), _ = ray.wait(list(running), num_returns=1)
            number = running.pop(ended)
            try:
                outcome = ray.get(ended)
            except ray.exceptions.RayError as error:
                first = str(error).strip().splitlines()[0]
                outcome = record_death(jobs[number], f"The run's process died on the cluster ({first}).")
            yield number, outcome


@contextlib.contextmanager
def ray_cluster(workers: int | None) -> Iterator[Any]:
    """A connection to Ray; what this starts or opens, it also closes."""
    try:
        import ray
    except ImportError:
        raise UnspurError(
            "Ray is not installed; install it with pip install 'unspur[ray]', or use --engine local."
        ) from None
    if ray.is_initialized():
        yield ray
        return
    with _stdout_on_stderr():
        _connect(ray, workers)
        try:
            yield ray
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Send what this process writes to stdout to stderr: Ray's own library writes there, past Python."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _connect(ray: Any, workers: int | None) -> None:
    """Connect to the cluster at RAY_ADDRESS, else to the one that runs here, else to a new one."""
    address = os.environ.get("RAY_ADDRESS")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address:
        _reach(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:  # nothing there; no address; another Ray
            raise _unreachable(address, error) from None
        return
    try:
        ray.init(address="auto", **quiet)
    except ConnectionError:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        ray.init(address="local", num_cpus=workers or cores(), include_dashboard=False, **quiet)


def _reach(address: str) -> None:
    """Knock at ``address``: Ray itself would go on trying for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError as error:
            raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> UnspurError:
    why = (getattr(error, "strerror", None) or str(error)).strip().splitlines()[0].rstrip(".")
    return UnspurError(
        f"No Ray cluster can be reached at RAY_ADDRESS={address} ({why}); start one, unset "
        "RAY_ADDRESS, or set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN if it demands a token."
    )


ENGINES: dict[str, Engine] = {"local": local, "ray": on_ray}
