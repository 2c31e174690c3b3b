"""What result.json holds, typed (docs/runs.md), and the one reader of it; runs of version 0.1 are read as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from unspur.core.files import read_json
from unspur.core.shapes import checked
from unspur.errors import UnspurError
from unspur.evaluation.scores import TestScores
from unspur.methods.facts import BaselineBlock, Facts

FORMAT = 2  # of result.json; version 0.1 wrote none, which is 1

Status = Literal["done", "diverged", "failed"]
ENDED: tuple[Status, ...] = ("done", "diverged")  # a sweep skips these; "failed" is tried again


class StageBlock(TypedDict):
    """An earlier stage of a run."""

    tests: dict[str, TestScores]  # its scores, by test set


class Result(TypedDict):
    """How a run ended and what it found; the blocks behind ``machine`` are there once it is done."""

    format: NotRequired[int]  # of this file
    key: str  # the hash of the configuration, which ends the folder's name
    method: str
    dataset: str
    arch: str  # the network
    seed: int
    status: Status  # done, diverged or failed
    seconds: float  # that the run took
    threads: int  # of each process
    devices: int  # that trained together
    version: str  # of unspur
    commit: str | None  # of its checkout, if it ran from one
    machine: str  # kind of processor, number of cores, version of torch
    reason: NotRequired[str]  # why it is not done
    stage: NotRequired[str]  # where it diverged
    step: NotRequired[int]  # of that stage, at which it diverged
    sizes: NotRequired[dict[str, int]]  # samples to train and to validate on
    tests: NotRequired[dict[str, TestScores]]  # the scores of the result, by test set
    stages: NotRequired[dict[str, StageBlock]]  # those of what came before it, by stage
    baseline: NotRequired[BaselineBlock | None]  # the stage that the result is to be compared with
    trained: NotRequired[str | None]  # the stage whose training made the model, where others were given up
    facts: NotRequired[Facts]  # what the method measured on the way
    warnings: NotRequired[list[str]]  # what a reader of any figure must know; first what is worst
    selective: NotRequired[dict[str, Any]]  # of `unspur evaluate --coverage`


def read_result(path: Path) -> Result:
    """The result in ``path``; what is not one is an error that names the file and the field."""
    value = read_json(path)
    if isinstance(value, dict) and isinstance(version := value.get("format"), int) and version > FORMAT:
        raise UnspurError(
            f"{path} was written by a newer version of unspur ({value.get('version', 'unknown')}); install that one."
        )
    result: Result = checked(_lifted(value), Result, str(path))
    if result["status"] == "done" and "tests" not in result:
        raise UnspurError(f"{path}: tests is missing; delete the file and run again with --resume.")
    return result


def _lifted(value: Any) -> Any:
    """A result of version 0.1 with what later ones say outright: there, names of stages and facts said it."""
    if not isinstance(value, dict) or value.get("status") != "done" or "format" in value:
        return value
    facts, stages = value.get("facts"), value.get("stages")
    facts = facts if isinstance(facts, Mapping) else {}
    roles = {"erm": "before", "student": "student"}
    known = [{"stage": stage, "role": role} for stage, role in roles.items() if stage in (stages or {})]
    return {
        "commit": None,
        "machine": "unknown",
        **value,
        "baseline": known[0] if known else None,
        "trained": facts.get("stage"),
        "warnings": list(facts.get("warnings", ())),
        "facts": {name: fact for name, fact in facts.items() if name not in ("stage", "warnings")},
    }
