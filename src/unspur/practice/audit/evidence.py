"""What is known about a model besides the swap test: where it looks, what it loses without that, what it misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

from torch import Tensor

Miner = Literal["gce", "twins"]


class LookedAtJSON(TypedDict):
    map: list[list[float]]  # shares of all that the maps hold, cell by cell
    agrees_with_leak_map: float | None
    images: int


class HiddenTestJSON(TypedDict):
    accuracy: float
    accuracy_hidden: float
    accuracy_control: float
    lost: float
    ci95: list[float]
    hidden_share: float
    images: int


class MinedTestJSON(TypedDict):
    by: Miner
    mined: int
    of: int
    accuracy: float | None
    accuracy_elsewhere: float | None
    loss: float | None
    loss_elsewhere: float | None
    suspects: int | None


class EvidenceJSON(TypedDict):
    looked_at: LookedAtJSON | None
    hidden_test: HiddenTestJSON | None
    mined: list[MinedTestJSON]


class LookedAt(NamedTuple):
    """Where a model's maps of the predicted class lie, over many images."""

    map: Tensor  # (rows, columns) of the leak map: shares that add up to 1
    agrees: float | None  # correlation with the leak map over cells; None: one of them is the same everywhere
    images: int

    def share_of(self, cells: tuple[tuple[int, int], ...]) -> float:
        """The share of the maps inside ``cells``."""
        return float(sum(self.map[cell] for cell in cells))

    def as_json(self) -> LookedAtJSON:
        rows = [[round(value, 4) for value in row] for row in self.map.tolist()]
        return {"map": rows, "agrees_with_leak_map": _rounded(self.agrees), "images": self.images}


class HiddenTest(NamedTuple):
    """MaskTune's own test: hide what the model looks at. The control hides what it looks at in another image."""

    accuracy: float
    hidden: float  # accuracy
    control: float
    ci95: tuple[float, float]  # of control - hidden
    share: float  # of the pixels that are hidden
    images: int

    def as_json(self) -> HiddenTestJSON:
        return {
            "accuracy": round(self.accuracy, 4),
            "accuracy_hidden": round(self.hidden, 4),
            "accuracy_control": round(self.control, 4),
            "lost": round(self.control - self.hidden, 4),
            "ci95": [round(bound, 4) for bound in self.ci95],
            "hidden_share": round(self.share, 4),
            "images": self.images,
        }


class MinedTest(NamedTuple):
    """Images that a biased model gets wrong, and how the tested model does on them and on all others."""

    by: Miner
    numbers: tuple[int, ...]
    of: int
    accuracy: float | None
    elsewhere: float | None
    loss: float | None
    loss_elsewhere: float | None
    suspects: int | None  # of the mined images that also go against the gravest finding; None: it has none

    def as_json(self) -> MinedTestJSON:
        return {
            "by": self.by,
            "mined": len(self.numbers),
            "of": self.of,
            "accuracy": _rounded(self.accuracy),
            "accuracy_elsewhere": _rounded(self.elsewhere),
            "loss": _rounded(self.loss),
            "loss_elsewhere": _rounded(self.loss_elsewhere),
            "suspects": self.suspects,
        }


@dataclass(frozen=True, eq=False)
class Evidence:
    """All evidence about a model; what could not be tested is None, or missing from the list."""

    looked_at: LookedAt | None = None
    hidden: HiddenTest | None = None
    mined: tuple[MinedTest, ...] = ()

    def as_json(self) -> EvidenceJSON:
        return {
            "looked_at": self.looked_at.as_json() if self.looked_at else None,
            "hidden_test": self.hidden.as_json() if self.hidden else None,
            "mined": [each.as_json() for each in self.mined],
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
