"""The verdict in one sentence, which never claims more than the evidence supports (docs/audit.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unspur.practice.audit.findings import RARE, Finding, Verdict

REPAIR = "unspur repair"
TRAIN = "unspur train erm"
SAVE_AGAIN = "save all images in the same way, then audit again"  # no training removes a property of files


class Judgement(NamedTuple):
    """A grade, a sentence and what to do next."""

    verdict: Verdict
    sentence: str
    next: str


def judge(findings: Sequence[Finding], *, images: int, detectable: float, target: str, model: str | None) -> Judgement:
    """Judge findings that are sorted, gravest first; ``target`` is the data in the words of `unspur train`."""
    leaks = [finding for finding in findings if finding.grade == "leaks"]
    leaning = [finding for finding in leaks if finding.reliance and finding.reliance.leans]
    if leaning:
        finding = leaning[0]
        assert finding.reliance is not None
        moved = 100 * (finding.reliance.follows_cue - finding.reliance.control)
        return Judgement(
            "leans",
            f"The model leans on {finding.what}{_told(finding)}: {moved:.0f} in 100 predictions follow it when it "
            f"comes from another class{_cost(finding)}.",
            f"{REPAIR} {target}",
        )
    if leaks:
        finding = leaks[0]
        used = _use(finding, model)
        return Judgement(
            "leaks",
            f"The label leaks through {finding.what}{_told(finding)}; no object explains it{used}{_cost(finding)}.",
            f"{REPAIR} {target}" if finding.cue else SAVE_AGAIN,
        )
    context = [finding for finding in findings if finding.grade == "context"]
    if context:
        finding = context[0]
        return Judgement(
            "context",
            f"{_capital(finding.what)} goes with the class ({finding.tells_label:.0%} of images told by it), as it "
            f"does in nature{_use(finding, model)}; whether a model may use it is for you to say.",
            f"{REPAIR if finding.reliance and finding.reliance.leans else TRAIN} {target}",
        )
    return Judgement(
        "clean",
        f"Nothing that was tested gives labels away beyond what objects do: {images:,} images, in which a shortcut "
        f"that tells labels with {detectable:.0%} or more would have been significant.",
        f"{TRAIN} {target}",
    )


def _told(finding: Finding) -> str:
    """How well the finding predicts labels; for a rare mark, its own words say more than an accuracy near chance."""
    return "" if finding.family == RARE else f", which tells the label of {finding.tells_label:.0%} of images by itself"


def _use(finding: Finding, model: str | None) -> str:
    if model is None:
        return ""
    if finding.reliance is None:
        return f"; whether {model} uses it cannot be tested by swapping"
    if not finding.reliance.leans:
        return f"; {model} does not follow it measurably"
    moved = 100 * (finding.reliance.follows_cue - finding.reliance.control)
    return f"; {moved:.0f} in 100 predictions of {model} follow it"


def _cost(finding: Finding) -> str:
    if finding.accuracy_on_suspects is None or finding.suspects is None:
        return ""
    right = f"{finding.accuracy_on_suspects:.0%}"
    return f"; {len(finding.suspects):,} images go against it, and of the surest half the model gets {right} right"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
