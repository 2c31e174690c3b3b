"""What a fit needs from outside itself: a seed, devices, a place for checkpoints, and somebody to show progress to."""

from __future__ import annotations

import json
import time
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric

from unspur.core.files import append_text, write_text
from unspur.core.progress import Progress, silent
from unspur.train.checkpoints import load_state, save_state
from unspur.train.moments import Observer

CHECKPOINTS = "checkpoints"  # the subfolder, deleted when the run has ended
LOG = "metrics.jsonl"


@runtime_checkable
class Counting(Protocol):
    """A progress display that can also show a rate."""

    def counts(self, stage: str, total: int, what: str) -> None: ...


def leave_group() -> None:
    """End this process's part in training together: a process that exits with its group open may abort."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@cache
def one_device(precision: Literal["32-true", "bf16-mixed"] = "32-true") -> Fabric:
    """One process on one device. All fits share it, since it keeps nothing of a fit and making one is slow: Lightning
    looks for plugins in every installed package."""
    return Fabric(accelerator="auto", devices=1, precision=precision)


class Session:
    """Seed, devices, checkpoints and progress of one fit.

    A fit is a fixed sequence of stages. Each saves its state under its own name as it goes. A fit that is started
    again finds those states, skips what was done, and continues to a bit-identical result.
    Without a folder nothing is saved.

    A checkpoint also holds the stage's lines of the log, and those are authoritative: the first ``save`` of a session
    and ``finish`` write the whole of metrics.jsonl from them. In between, lines are appended.
    """

    def __init__(
        self,
        fabric: Fabric | None = None,
        folder: Path | None = None,
        progress: Progress = silent,
        observer: Observer | None = None,
        seed: int = 0,
    ) -> None:
        if fabric is not None:
            self.fabric = fabric
        self.folder = folder
        self.progress = progress
        self.observer = observer
        self.seed = seed
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.stopped: dict[str, str] = {}  # why a stage did not train to its end, in a sentence
        self._new: list[str] | None = None  # lines not yet in the log; None: the whole log must be written
        self._began, self._earlier = time.monotonic(), 0.0

    @cached_property
    def fabric(self) -> Fabric:
        """Made when first used: a library user's session is one process on one device."""
        return one_device()

    @property
    def seconds(self) -> float:
        """The time this fit has taken, including what earlier, interrupted processes had saved."""
        return self._earlier + time.monotonic() - self._began

    def counts(self, stage: str, total: int, what: str) -> None:
        """Tell the progress display that ``stage`` goes through ``total`` of ``what``, to show a rate per second."""
        if isinstance(self.progress, Counting):
            self.progress.counts(stage, total, what)

    @property
    def device(self) -> torch.device:
        return self.fabric.device

    def load(self, stage: str) -> dict[str, Any] | None:
        """What ``stage`` saved last, or None if it has not begun."""
        if not self.folder or not self._path(self.folder, stage).exists():
            return None
        saved = load_state(self._path(self.folder, stage))
        self.history[stage] = json.loads(saved["history"].numpy().tobytes())
        self._new = None
        self._earlier = max(self._earlier, saved["seconds"])
        state: dict[str, Any] = saved["state"]
        return state

    def save(self, stage: str, state: dict[str, Any]) -> None:
        """Keep ``state`` (nested dicts and lists of tensors and plain values) until the fit ends."""
        if self.folder and self.fabric.is_global_zero:
            # A tensor, not text: a safetensors header holds at most 100 MB, and a line can have one number per step.
            history = torch.frombuffer(bytearray(json.dumps(self.history.get(stage, [])), "utf-8"), dtype=torch.uint8)
            saved = {"state": state, "history": history, "seconds": self.seconds}
            save_state(self._path(self.folder, stage), saved)
            if self._new is None:
                self._write_log(self.folder)
            elif self._new:
                append_text(self.folder / LOG, "".join(self._new))
            self._new = []

    def finish(self) -> None:
        """Write the whole log: a process killed just after its last checkpoint may not have appended its lines."""
        if self.folder and self.fabric.is_global_zero and any(self.history.values()):
            self._write_log(self.folder)

    def log(self, stage: str, **values: float) -> None:
        """Add a line to the stage's history; it becomes a line of metrics.jsonl at the next ``save``."""
        self.history.setdefault(stage, []).append({"stage": stage, **values})
        if self._new is not None:
            self._new.append(_json_line(self.history[stage][-1]))

    def _write_log(self, folder: Path) -> None:
        write_text(folder / LOG, "".join(_json_line(line) for lines in self.history.values() for line in lines))

    @staticmethod
    def _path(folder: Path, stage: str) -> Path:
        return folder / CHECKPOINTS / f"{stage}.safetensors"


def _json_line(line: dict[str, Any]) -> str:
    return json.dumps(line) + "\n"
