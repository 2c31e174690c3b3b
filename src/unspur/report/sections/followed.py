"""Attribution maps of the same images through a training (large-LR, Figure 13), for runs with --follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unspur.core.files import read_tensors
from unspur.evaluation.attribution_observer import FOLLOWED
from unspur.report.context import RunContext
from unspur.report.pictures import heat, picture
from unspur.report.section import Section

EPOCHS = 8  # shown of a stage, at most


@dataclass(frozen=True)
class FollowedImage:
    image: str
    number: int
    truth: str
    maps: tuple[str, ...]  # one for each epoch


@dataclass(frozen=True)
class FollowedStage:
    stage: str
    epochs: tuple[int, ...]
    images: tuple[FollowedImage, ...]


def files_of(run: RunContext) -> dict[str, list[Path]]:
    """The files of each stage, epoch by epoch."""
    found: dict[str, list[Path]] = {}
    for file in sorted((run.run.folder / FOLLOWED).glob("*.safetensors")):
        found.setdefault(file.stem.rpartition("-")[0], []).append(file)
    return found


def evenly(files: list[Path], most: int = EPOCHS) -> list[Path]:
    """At most so many of them, the first and the last included.

    >>> [path.name for path in evenly([Path(str(number)) for number in range(1, 10)], most=3)]
    ['1', '5', '9']
    """
    if len(files) <= most:
        return files
    return [files[round(place * (len(files) - 1) / (most - 1))] for place in range(most)]


def view(run: RunContext) -> tuple[FollowedStage, ...]:
    train, stages = run.data.data.train, []
    for stage, files in files_of(run).items():
        shown = evenly(files)
        read = [read_tensors(file)[0] for file in shown]
        images = tuple(
            FollowedImage(
                picture(train.x[read[0]["index"][place : place + 1]][0]),
                number,
                run.data.data.classes[int(train.y[number])],
                tuple(heat(epoch["maps"][place]) for epoch in read),
            )
            for place, number in enumerate(read[0]["index"].tolist())
        )
        stages.append(FollowedStage(stage, tuple(int(file.stem.rpartition("-")[2]) for file in shown), images))
    return tuple(stages)


FOLLOWED_MAPS = Section[RunContext]("followed", view, lambda run: run.data.drawn and bool(files_of(run)))
