"""Small data with a shortcut, and runs on it that take no time."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from unspur.data.base import Dataset, Split
from unspur.report.context import RunContext, open_runs
from unspur.runs.config import Config, configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run

HOSTILE = ("<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>")  # two class names


def squares(y: torch.Tensor, square: torch.Tensor, seed: int = 0) -> Split:
    """16 x 16 noise with a blue square top left where ``square`` is 1."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 60, (len(y), 3, 16, 16), generator=generator, dtype=torch.uint8)
    images[:, 2, :4, :4] = torch.where(square[:, None, None] == 1, 255, images[:, 2, :4, :4]).to(torch.uint8)
    return Split(images, y, {"square": square})


def tiny(
    classes: tuple[str, str] = ("low", "high"), values: tuple[str, str] = ("absent", "present"), bare: bool = False
) -> Dataset:
    """40 training images, 2 conflicting in each class; a test set of all four groups and one of conflicting ones.

    ================  ======  =======
    training          absent  present
    ================  ======  =======
    class 0 (low)          2       18
    class 1 (high)        18        2
    ================  ======  =======

    With ``bare`` the conflicting images are there once more, without a square.
    """
    y = torch.arange(40) // 20
    square = 1 - y
    square[[0, 1, 20, 21]] = y[[0, 1, 20, 21]]
    test_y, test_square = torch.arange(40) % 2, torch.arange(40) // 2 % 2
    return Dataset(
        "biased_mnist",
        squares(y, square),
        squares(y[::5], square[::5], 1),
        {
            "original": squares(test_y, test_square, 2),
            "biased": squares(test_y, test_y.clone(), 3),
            **({"bare": squares(test_y, torch.zeros_like(test_y), 3)} if bare else {}),
        },
        classes,
        {"square": values},
        without_shortcut={"biased": "bare"} if bare else {},
    )


def config(*settings: str, seed: int = 0, arch: str = "small_cnn") -> Config:
    return configure("erm", "biased_mnist", arch, seed, ["data.base=mini", "erm.epochs=2", *settings])


def run_in(folder: Path, wanted: Config) -> Path:
    """Do the run and return its folder."""
    run(wanted, folder)
    return Run.create(folder, wanted).folder


def opened(folder: Path) -> RunContext:
    """What the page is made from, of one run."""
    (run,) = open_runs([folder], None).runs
    return run


def rewrite(path: Path, **changes: object) -> None:
    """Change entries of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
