"""audit(...): does the label leak, where, and does the model use it? From a folder, without group labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from unspur.core.progress import silent
from unspur.practice.audit.collect import Collected, collect
from unspur.practice.audit.data_findings import DataFindings
from unspur.practice.audit.evidence import Evidence
from unspur.practice.audit.findings import Audit, Finding
from unspur.practice.audit.image_source import Source
from unspur.practice.audit.looking import look_into
from unspur.practice.audit.mined_images import mined_tests
from unspur.practice.audit.model import Model, ModelToTest, most_likely
from unspur.practice.audit.power import detectable
from unspur.practice.audit.quick_model import quick_model
from unspur.practice.audit.suspects import rank_suspects, surest, with_suspects, worst_estimate
from unspur.practice.audit.swap_test import swap_test
from unspur.practice.audit.swappable import swappable
from unspur.practice.audit.training_findings import found_in_training
from unspur.practice.audit.verdict import judge

Progress = Callable[[str, float], None]  # a stage, and how far it is (0 to 1)


@dataclass(frozen=True)
class Settings:
    """How thorough an audit is; part of its key."""

    seed: int = 0
    local: bool = True  # look for marks that move: a small network is trained
    model: bool = True  # test a model; the audit's own quick one where none is given


class Examined(NamedTuple):
    """An audit with what its page shows pictures of."""

    audit: Audit
    data: Collected
    model: Model | None


def audit(
    source: Source,
    *,
    target: str,
    model: ModelToTest | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    progress: Progress = silent,
) -> Audit:
    """Audit ``source``; nothing is written (``stored.audit_into`` keeps a folder).

    ``target`` is the data in the words of `unspur train`, for the command to run next.
    """
    began = time.monotonic()
    data = collect(source, seed=settings.seed, progress=lambda done: progress("images", done))
    looked = time.monotonic() - began
    return examine(data, looked, target=target, model=model, settings=settings, progress=progress).audit


def examine(
    data: Collected,
    looked: float,
    *,
    target: str,
    model: ModelToTest | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    progress: Progress = silent,
) -> Examined:
    """Run every test on what was collected, which took ``looked`` seconds."""
    began = time.monotonic()
    found = found_in_training(
        data, seed=settings.seed, local=settings.local, progress=lambda done: progress("leaks", done)
    )
    seconds = {"images": looked, "data": time.monotonic() - began}
    findings = [with_suspects(finding, data.y) for finding in found.findings]
    accuracy: float | None = None
    evidence: Evidence | None = None
    tested: Model | None = None
    if settings.model:
        progress("model", 0)
        tested = model.make(data) if model else quick_model(data, seed=settings.seed)
        scores = tested.scores(data)
        findings, accuracy = _with_model(findings, data, tested, most_likely(scores), settings.seed, progress)
        looked_at, hidden = look_into(tested, data, found.leak_map, seed=settings.seed)
        evidence = Evidence(looked_at, hidden, mined_tests(tested, scores, data, findings, seed=settings.seed))
        seconds["model"] = time.monotonic() - began - seconds["data"]
        progress("model", 1)
    result = _result(data, found, findings, tested, accuracy, target, seconds)
    return Examined(replace(result, run=model.run if model else None, evidence=evidence), data, tested)


def _with_model(
    findings: list[Finding], data: Collected, model: Model, predicted: Tensor, seed: int, progress: Progress
) -> tuple[list[Finding], float | None]:
    """Findings with what the model does about them."""
    accuracy = model.balanced(predicted, data.y)
    done = []
    for number, finding in enumerate(findings):
        progress("model", (number + 1) / (len(findings) + 2))
        graded = finding.grade != "informative" and finding.cue is not None
        reliance = swap_test(model, finding, data, seed=seed) if graded else None
        done.append(
            finding.with_model(reliance, *model.accuracy_on(predicted, data.y, surest(finding, predicted >= 0)))
        )
    return done, accuracy


def _result(
    data: Collected,
    found: DataFindings,
    findings: list[Finding],
    model: Model | None,
    accuracy: float | None,
    target: str,
    seconds: dict[str, float],
) -> Audit:
    power = detectable(data.y, sum(each.tests for each in found.tested))
    judgement = judge(
        findings, images=len(data.y), detectable=power, target=target, model=model.name if model else None
    )
    return Audit(
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        images=len(data.y),
        of=data.total,
        classes=data.classes,
        tested=found.tested,
        findings=tuple(findings),
        cues=swappable(findings),
        leak_map=found.leak_map,
        pattern_map=found.pattern_map,
        model=model.name if model else None,
        model_accuracy=accuracy,
        estimated_worst_group=worst_estimate(findings),
        suspects=rank_suspects(findings, data),
        next=judgement.next,
        target=target,
        notes=found.notes,
        seconds=seconds,
    )
