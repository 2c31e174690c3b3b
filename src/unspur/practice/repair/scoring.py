"""Baseline and candidates on the same validation images, and what decides between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.progress import Progress
from unspur.data.base import Dataset
from unspur.errors import UnspurError
from unspur.parts.cues.texts import cues_of
from unspur.parts.last_layer import check_head
from unspur.parts.last_logistic import Judged, fit_plain
from unspur.parts.select import group_accuracies, mined_groups, validation_groups
from unspur.practice.repair.choice import Scores
from unspur.practice.repair.evidence import Evidence, evidence_of
from unspur.practice.repair.state import EVIDENCE, EvidenceKind, ScoresJSON
from unspur.runs.folder import Run
from unspur.train.session import Session

STRONG = 10.0  # L2 of a head that keeps only what is easiest to use: its mistakes show where a shortcut misleads


@dataclass(frozen=True, eq=False)
class Referee:
    """How models are scored and compared."""

    folder: Path  # of the repair
    data: Dataset
    cues: tuple[str, ...]
    kind: EvidenceKind
    group: Tensor  # of each validation image, for the evidence; -1: it does not count
    leak: bool  # whether no object explains the cue, so that what it adds is not worth keeping
    seed: int

    def evidence(self, run: Run, progress: Progress) -> Evidence:
        """What the run's model gets right, computed once."""
        cues = hashlib.sha256("+".join(self.cues).encode()).hexdigest()[:8]  # a hash: cues may name files
        path = self.folder / EVIDENCE / f"{run.key}-{cues}.safetensors"
        found = Evidence.load(path)
        if found is None or len(found.ordinary) != len(self.data.val):
            model = run.load_model(self.data)
            found = evidence_of(model, self.data.val, cues_of(self.cues), self.seed, progress)
            found.save(path)
        return found

    def scores(self, found: Evidence) -> Scores:
        """The scores that count: on swapped images if there are cues, otherwise on ordinary images of the groups."""
        evidence = found.swapped if self.kind == "swapped" and found.swapped is not None else found.ordinary
        ordinary = found.removed if self.leak and found.removed is not None else found.ordinary
        return Scores(evidence, ordinary)

    @property
    def by_label(self) -> Tensor:
        return validation_groups("swapped", self.data.val)

    def json(self, found: Evidence) -> ScoresJSON:
        """The same as readable figures for repair.json."""
        scores, label = self.scores(found), self.by_label
        columns = [_means(found.ordinary, label), None if found.swapped is None else _means(found.swapped, label)]
        names = [self.data.classes[int(code)] for code in self.data.val.y.unique()]
        return {
            "ordinary": float(found.ordinary.mean()),
            "swapped": None if found.swapped is None else float(_means(found.swapped, label).mean()),
            "removed": None if found.removed is None else float(found.removed.mean()),
            "evidence": float(_means(scores.evidence, self.group).mean()),
            "by_class": {
                name: [None if column is None else float(column[place]) for column in columns]
                for place, name in enumerate(names)
            },
        }


def _means(scores: Tensor, group: Tensor) -> Tensor:
    return group_accuracies(scores.unsqueeze(0), group)[0]


def groups_for(
    model: nn.Module, data: Dataset, cues: Sequence[str], labelled: Tensor | None
) -> tuple[EvidenceKind, Tensor]:
    """What decides the choice; the first available of: the user's groups, swapped cues, mined images, classes."""
    if labelled is not None:
        return "groups", labelled
    if cues:
        return "swapped", validation_groups("swapped", data.val)
    wrong = mined(model, data)
    if wrong is None or not bool(wrong.any()):
        return "classes", validation_groups("worst_class", data.val)
    return "mined", mined_groups(data.val.y, wrong)


def mined(model: nn.Module, data: Dataset) -> Tensor | None:
    """Validation images that a head with strong L2 on the model's features gets wrong; None if it cannot be fitted."""
    session = Session()
    try:
        check_head(model, data.train, session.device)
    except UnspurError:
        return None
    head = fit_plain(model, data.train.without_attributes(), (STRONG,), session)[0]
    judged = Judged.of(model, data.val, session, "val-features")
    assert judged.x is not None
    return ~torch.nn.functional.linear(judged.x, head.weight, head.bias).argmax(1).cpu().eq(data.val.y)
