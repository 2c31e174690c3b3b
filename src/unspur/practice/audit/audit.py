"""audit(...): does the label leak, where, and does the model use it? From a folder, without group labels."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from unspur.core.files import read_json, write_json
from unspur.errors import UnspurError
from unspur.practice.audit.collect import MOST_IMAGES, Collected, Source, collect
from unspur.practice.audit.data_findings import DataFindings, data_findings
from unspur.practice.audit.findings import Audit, Finding, write_audit
from unspur.practice.audit.model import Model, quick_model
from unspur.practice.audit.power import detectable
from unspur.practice.audit.suspects import rank_suspects, surest, with_suspects, worst_estimate
from unspur.practice.audit.swap_test import swap_test
from unspur.practice.audit.verdict import judge
from unspur.version import __version__

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Settings:
    """How thorough an audit is; part of its key."""

    seed: int = 0
    most_images: int = MOST_IMAGES  # more are sampled
    local: bool = True  # look for marks that move: a small network is trained
    model: bool = True  # test a model; the audit's own quick one where none is given


def audit(
    source: Source,
    *,
    name: str,
    target: str | None = None,
    model: Model | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    out: Path | None = None,
    progress: Progress = lambda stage, done: None,
) -> Audit:
    """Audit ``source``; with ``out`` the parent of the audit's folder ``<name>-<key>``, which is written, too.

    ``target`` is what the next command should name (a folder, a data set, a run). An audit of the same files with the
    same settings has the same folder; ``stored`` finds it.
    """
    began = time.monotonic()
    data = collect(source, seed=settings.seed, most=settings.most_images)
    seconds = {"images": time.monotonic() - began}
    progress("images", 1)
    _require_differences(data)
    found = data_findings(data, seed=settings.seed, local=settings.local)
    seconds["data"] = time.monotonic() - began - seconds["images"]
    progress("leaks", 1)
    findings = [with_suspects(finding, data.y) for finding in found.findings]
    accuracy: float | None = None
    tested: Model | None = None
    if settings.model:
        tested = model or quick_model(data, seed=settings.seed)
        findings, accuracy = _with_model(findings, data, tested, settings.seed)
        seconds["model"] = time.monotonic() - began - sum(seconds.values())
        progress("model", 1)
    result = _result(data, found, findings, tested, accuracy, target or name, seconds)
    if out is not None:
        folder = out / f"{name}-{key_of(data, settings, tested)}"
        write_json(folder / "config.json", _config(data, settings, tested, name))
        write_audit(folder, result)
    return result


def _require_differences(data: Collected) -> None:
    """Images that are all the same cannot tell anything apart."""
    if bool((data.cells == data.cells[:1]).all()):
        raise UnspurError(f"All {len(data.y):,} images are the same; an audit needs images that differ.")


def _with_model(
    findings: list[Finding], data: Collected, model: Model, seed: int
) -> tuple[list[Finding], float | None]:
    """Findings with what the model does about them."""
    predicted = model.predictions(data)
    accuracy = model.balanced(predicted, data.y)
    done = []
    for finding in findings:
        graded = finding.grade != "informative" and finding.cue is not None
        reliance = swap_test(model, finding, data, seed=seed) if graded else None
        done.append(finding.with_model(reliance, *model.accuracy_on(predicted, data.y, surest(finding))))
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
        leak_map=found.leak_map,
        pattern_map=found.pattern_map,
        model=model.name if model else None,
        model_accuracy=accuracy,
        estimated_worst_group=worst_estimate(findings),
        suspects=rank_suspects(findings, data),
        next=judgement.next,
        notes=found.notes,
        seconds=seconds,
    )


def key_of(data: Collected, settings: Settings, model: Model | None) -> str:
    """A hash of what was audited and how."""
    return hashlib.sha256(json.dumps(_config(data, settings, model, ""), sort_keys=True).encode()).hexdigest()[:8]


def _config(data: Collected, settings: Settings, model: Model | None, name: str) -> dict[str, object]:
    digest = hashlib.sha256()
    for number, file in enumerate(data.names):
        content = data.facts[number].digest if data.facts else ""
        digest.update(f"{file}\0{content}\0{int(data.y[number])}\n".encode())
    if not data.facts:
        digest.update(data.pictures.numpy().tobytes())
    return {
        "name": name,
        "images": len(data.y),
        "classes": list(data.classes),
        "content": digest.hexdigest()[:32],
        "model": model.name if model else None,
        "settings": asdict(settings),
        "version": __version__,
    }


def stored(folder: Path) -> dict[str, object]:
    """findings.json of a finished audit."""
    if not (folder / "config.json").exists():
        raise UnspurError(f"{folder} is not an audit's folder: it has no config.json.")
    if not (folder / "findings.json").exists():
        raise UnspurError(f"{folder} holds an audit that has not ended; audit the same images again to finish it.")
    found: dict[str, object] = read_json(folder / "findings.json")
    return found
