"""The shortcut that an audit found, rebuilt from its findings.json: to be swapped, removed, and tested for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import UnspurError, require
from unspur.parts.cues.base import Cue
from unspur.parts.cues.texts import cue_of
from unspur.parts.swapping import showing
from unspur.practice.audit.findings import FindingJSON, Reliance, is_shortcut
from unspur.practice.audit.stored import stored
from unspur.practice.predict.classifier import Logits

DONORS = 3  # images whose cue an image gets; the cue decides if most of them change the prediction


@dataclass(frozen=True, eq=False)
class AuditedCue:
    """The gravest cue that an audit found, and validation images of each class that show it."""

    what: str
    cue: Cue
    donors: Tensor  # bytes (classes, DONORS, 3, size, size)
    classes: int

    def swapped(self, images: Tensor, y: Tensor, seed: int = 0) -> Tensor:
        """Bytes ``images`` with the cue of a donor of another class than ``y``."""
        generator = stream(seed, "swapped cue")
        shift = torch.randint(1, self.classes, (len(y),), generator=generator)
        turn = torch.randint(DONORS, (len(y),), generator=generator)
        return self._swap(images, self.donors[(y + shift) % self.classes, turn])

    def removed(self, images: Tensor) -> Tensor:
        """Bytes ``images`` with the same neutral cue in each."""
        return _bytes(self.cue.remove(images.float() / 255))

    def decides(self, images: Tensor, label: Tensor, logits: Logits) -> Tensor:
        """Whether the prediction ``label`` changes with the cue of most donors of other classes."""
        changed = torch.zeros(len(label), dtype=torch.long)
        for turn in range(DONORS):
            other = (label + 1 + turn % (self.classes - 1)) % self.classes  # the next classes in turn, never its own
            changed += (logits(self._swap(images, self.donors[other, turn])).argmax(1) != label).long()
        return changed * 2 > DONORS

    def _swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return _bytes(self.cue.swap(images.float() / 255, donors.float() / 255))


def audited_cue(folder: Path, classes: tuple[str, ...], val: Split, seed: int = 0) -> AuditedCue | None:
    """The shortcut that the audit in ``folder`` found, with donors from ``val``; None if it found none."""
    audit = stored(folder)
    require(
        set(audit["classes"]) <= set(classes),
        f"{folder} is an audit of the classes {', '.join(audit['classes'][:5])}, but the model knows "
        f"{', '.join(classes[:5])}; name an audit of the same data.",
    )
    shortcuts = [finding for finding in audit["findings"] if stored_shortcut(finding)]
    if not shortcuts:
        return None
    gravest = next(((each["what"], cue_of(each["cue"])) for each in shortcuts if each["cue"]), None)
    if gravest is None:
        raise UnspurError(
            f"{folder} found {shortcuts[0]['what']}, which cannot be moved between images; leave --audit out."
        )
    generator, donors = stream(seed, "cue donors"), []
    for number, name in enumerate(classes):
        members = (val.y == number).nonzero().squeeze(1)
        require(
            len(members) > 0, f"The validation set has no image of '{name}' to take the cue from; leave --audit out."
        )
        members = _showing(gravest[1], val, members)
        donors.append(val.x[members[torch.randint(len(members), (DONORS,), generator=generator)]])
    images = torch.stack(donors)
    return AuditedCue(*gravest, images.expand(-1, -1, 3, -1, -1), len(classes))


def _showing(cue: Cue, val: Split, members: Tensor) -> Tensor:
    """Those of ``members`` that show the cue, since few may show a rare mark; all of them if none does."""
    found = members[showing([cue], val.subset(members).x)]
    return found if len(found) else members


def stored_shortcut(finding: FindingJSON) -> bool:
    """Whether a finding of a stored audit is a shortcut."""
    reliance = finding["reliance"]
    return is_shortcut(finding["grade"], Reliance.of(reliance) if reliance else None)


def _bytes(pixels: Tensor) -> Tensor:
    return (pixels.clamp(0, 1) * 255).round().to(torch.uint8)
