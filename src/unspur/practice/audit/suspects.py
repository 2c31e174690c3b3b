"""Images that go against a shortcut, ranked, and an estimate of the worst group's accuracy from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unspur.practice.audit.collect import Collected
from unspur.practice.audit.findings import Finding, Suspect

MOST = 0.4  # a finding that contradicts a larger share of images singles none of them out
FEWEST = 10  # suspects that an estimate of their accuracy needs
SURER = 0.5  # accuracy is measured on this share of suspects, the surest: the rest often are no true suspects


def contradiction(finding: Finding, y: Tensor) -> Tensor:
    """How far each image's cue suggests another class than its label; above 0: it does."""
    labels = y[finding.index]
    margins = finding.margins
    own = margins.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = margins.scatter(1, labels.unsqueeze(1), -torch.inf).max(1).values
    return others - own


def with_suspects(finding: Finding, y: Tensor) -> Finding:
    """The finding with the images that go against it, surest first; without any if its cue says too little."""
    against = contradiction(finding, y)
    chosen = (against > 0).nonzero().squeeze(1)
    if finding.grade == "informative" or len(chosen) > MOST * len(against):
        return finding
    order = chosen[against[chosen].argsort(descending=True)]
    return replace(finding, suspects=tuple(finding.index[order].tolist()))


def surest(finding: Finding, known: Tensor) -> tuple[int, ...] | None:
    """The suspects with a prediction on which a model's accuracy is measured; None if there are too few."""
    tested = [number for number in finding.suspects or () if bool(known[number])]
    return tuple(tested[: max(FEWEST, round(SURER * len(tested)))]) if len(tested) >= FEWEST else None


def rank_suspects(findings: Sequence[Finding], data: Collected) -> tuple[Suspect, ...]:
    """Suspects of all findings that are more than informative, each image once with all its reasons.

    An image's score is the sum over findings of how far its cue contradicts its label, in the finding's deviations.
    """
    score: dict[int, float] = {}
    why: dict[int, list[str]] = {}
    for finding in findings:
        if not finding.suspects:
            continue
        against = contradiction(finding, data.y)
        scale = float(against.std()) or 1.0
        place = {number: row for row, number in enumerate(finding.index.tolist())}
        for number in finding.suspects:
            score[number] = score.get(number, 0.0) + float(against[place[number]]) / scale
            why.setdefault(number, []).append(finding.what)
    ranked = sorted(score, key=lambda number: -score[number])
    return tuple(
        Suspect(data.names[number], data.classes[int(data.y[number])], score[number], "; ".join(why[number]))
        for number in ranked
    )


def worst_estimate(findings: Sequence[Finding]) -> float | None:
    """The lowest accuracy on the suspects of a leak or context that has enough of them."""
    known = [finding.accuracy_on_suspects for finding in findings if finding.accuracy_on_suspects is not None]
    return min(known) if known else None
