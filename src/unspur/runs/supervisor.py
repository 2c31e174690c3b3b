"""The processes of a run on several devices, and the one that waits for them: they end together, and it says why."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

from unspur.errors import RunFailed
from unspur.train.session import leave_group

GRACE = 1.0  # seconds in which a process that died may still be found, once another has complained of the silence

Work = Callable[[Fabric], Any]


class _Done(NamedTuple):
    value: Any


class _Failed(NamedTuple):
    reason: str


class _Rank(NamedTuple):
    """One of the processes, seen from the one that waits."""

    process: Any  # multiprocessing's processes have a class for each way to start them
    reports: Connection


def together(devices: int, fabric: Callable[..., Fabric], work: Work, reason: Callable[[Exception], str]) -> Any:
    """Call ``work`` in a process for each of ``devices``, and return what the first of them returns.

    ``fabric`` makes what they compute on, ``reason`` a sentence of an error. Whatever happens here or there, no process
    is left when this returns or raises: they are killed, which a run survives. A process that fails or dies is a
    RunFailed that names the cause, not the broken connections that it leaves to the others.
    """
    context = multiprocessing.get_context("spawn")
    port, ranks = LightningEnvironment().main_port, list[_Rank]()
    try:
        for number in range(devices):
            reports, theirs = context.Pipe(duplex=False)
            place = _Place(number, devices, port)
            process = context.Process(target=_rank, args=(place, fabric, work, reason, theirs), name=f"rank {number}")
            process.start()
            theirs.close()  # so that the pipe ends when the process does
            ranks.append(_Rank(process, reports))
        return _outcome(ranks)
    finally:
        for rank in ranks:
            rank.process.kill()
        for rank in ranks:
            rank.process.join()
            rank.reports.close()


def _outcome(ranks: Sequence[_Rank]) -> Any:
    """What the first rank returned, once all have; the first failure instead."""
    returned: dict[int, Any] = {}
    while len(returned) < len(ranks):
        waiting = {rank.reports: number for number, rank in enumerate(ranks) if number not in returned}
        for reports in wait(list(waiting)):
            assert isinstance(reports, Connection)
            number = waiting[reports]
            said = _said(reports)
            if not isinstance(said, _Done):
                raise RunFailed(_blamed(ranks, number, said))
            returned[number] = said.value
    return returned[0]


def _said(reports: Connection) -> _Done | _Failed | None:
    """What a process reported; None if it died without a word."""
    try:
        said: _Done | _Failed = reports.recv()
    except EOFError:
        return None
    return said


def _blamed(ranks: Sequence[_Rank], number: int, said: _Failed | None) -> str:
    """Why the run stopped, ``said`` being the first that was heard.

    A process that dies takes its connections with it, and another may complain of these before the death is noticed.
    """
    dead = {number} if said is None else set()
    if said is not None:
        others = {rank.reports: other for other, rank in enumerate(ranks) if other != number}
        ended = [reports for reports in wait(list(others), GRACE) if isinstance(reports, Connection)]
        dead = {others[reports] for reports in ended if _said(reports) is None}
    if not dead:
        assert said is not None
        return said.reason
    first = min(dead)
    process = ranks[first].process
    process.join()
    how = _way_to_die(process.exitcode)
    return f"The run stopped: process {first + 1} of {len(ranks)} {how}; go on with --resume."


def _way_to_die(exitcode: int) -> str:
    """How a process ended, from its exit code.

    >>> _way_to_die(-9), _way_to_die(1)
    ('was killed by SIGKILL, as on a machine without free memory', 'ended with exit code 1')
    """
    if exitcode >= 0:
        return f"ended with exit code {exitcode}"
    name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else f"signal {-exitcode}"
    return f"was killed by {name}" + (", as on a machine without free memory" if name == "SIGKILL" else "")


class _Place(NamedTuple):
    """Where a process finds the others."""

    number: int
    devices: int
    port: int


def _rank(
    place: _Place,
    fabric: Callable[..., Fabric],
    work: Work,
    reason: Callable[[Exception], str],
    reports: Connection,
) -> None:
    """One process: work with the others and report; it dies with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # nobody asked how the processes found each other
    os.environ |= {"LOCAL_RANK": str(place.number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(place.port)}
    try:
        own = fabric(devices=place.devices, strategy="ddp", plugins=[LightningEnvironment()])
        own.launch()
        reports.send(_Done(work(own)))
    except Exception as error:
        reports.send(_Failed(reason(error)))  # before the group breaks, and others complain of that
    finally:
        leave_group()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
