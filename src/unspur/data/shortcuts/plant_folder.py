"""Plant a shortcut in a person's own images: a copy with a known answer, on which any method can be tried."""

from __future__ import annotations

import contextlib
import csv
import os
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor

from unspur.core.progress import counting
from unspur.core.seeds import data_stream
from unspur.core.unfinished import publish, unfinished_folder
from unspur.data.images.decode import Pixels, Unreadable, decode_whole
from unspur.data.images.listing import Listing
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.images.stored import some_of
from unspur.data.images.workers import cores
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts.assign import assign_evenly, assign_like_training, check_conflict
from unspur.data.shortcuts.drawn import Shortcut
from unspur.data.shortcuts.natural import shortcut_named
from unspur.errors import UnspurError, require

TABLE = "metadata.csv"


class PlantedFolder(NamedTuple):
    """What was written."""

    out: Path
    images: int
    conflicting: int  # of the training images
    training: int
    attribute: str
    notes: tuple[str, ...] = ()  # sentences on what was left out

    @property
    def settings(self) -> list[str]:
        """Settings with which the set `folder` reads the copy."""
        return [f"data.root={self.out}", f"data.csv={TABLE}", f"data.attributes={self.attribute}"]

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"out": str(self.out), "settings": self.settings}

    def summary(self) -> str:
        command = " ".join(["unspur train erm folder", *(f"--set {shlex.quote(setting)}" for setting in self.settings)])
        written = (
            f"Wrote {self.images:,} images to {self.out}: {self.conflicting:,} of {self.training:,} training images"
        )
        return "\n".join([f"{written} conflict.", *self.notes, f"Train on them: {command}"])


def plant(
    source: Folder,
    shortcut: str,
    out: Path,
    *,
    conflict: float | None = None,
    conflict_count: int | None = None,
) -> PlantedFolder:
    """Copy the images of ``source`` to ``out`` with a shortcut that gives the class away, and list them in a table.

    A share ``conflict`` of the training images (or ``conflict_count`` of them) shows another class's value; validation
    images conflict as often; in test images the value is independent of the class. Copies are PNG files in the size of
    the originals. ``out`` appears only once all of them are written.
    """
    check_conflict(conflict, conflict_count)
    require(conflict is not None or conflict_count is not None, "Give conflict, a share, or conflict_count, a number.")
    listing = source.listing()
    _check_place(out, listing.root)
    if source.skip_broken:
        listing = _readable(listing)
    classes = names_in_order(listing.labels)
    y = codes(listing.labels, classes)
    parts, _notes = partition(listing, y, source.val, source.test, source.seed)
    chosen = shortcut_named(shortcut, len(classes))
    values = _assigned(parts, y, source.seed, conflict, conflict_count)
    split = {int(number): part for part, index in parts.items() for number in index}
    names = _file_names(listing)
    with _complete_or_nothing(out) as folder:
        _write_images(listing, folder, names, chosen.shortcut, values, source)
        rows = [
            {"filename": name, "label": label, "split": split[number], shortcut: chosen.values[int(values[number])]}
            | {column: entries[number] for column, entries in listing.attributes.items() if column != shortcut}
            for number, (name, label) in enumerate(zip(names, listing.labels, strict=True))
        ]
        _write_table(folder / TABLE, rows)
    training = parts["train"]
    conflicting = int((values[training] != y[training]).sum())
    return PlantedFolder(out, len(y), conflicting, len(training), shortcut, listing.notes)


def _assigned(
    parts: Mapping[str, Tensor], y: Tensor, seed: int, conflict: float | None, conflict_count: int | None
) -> Tensor:
    """The value of each image: there are as many values as classes, and in "test" they do not depend on the class."""
    values, classes, training = torch.zeros_like(y), len(y.unique()), len(parts["train"])
    for part, index in parts.items():
        generator = data_stream(seed, f"assign {part}")
        if part == "test":
            values[index] = assign_evenly(y[index], classes, generator)
        else:
            values[index] = assign_like_training(
                part,
                y[index],
                classes,
                generator,
                training=training,
                conflict=conflict,
                conflict_count=conflict_count,
            )
    return values


def _check_place(out: Path, root: Path) -> None:
    require(not out.exists(), f"{out} exists already; delete it or name another folder with --out.")
    # realpath, since Path.resolve raises for circular links; these fail later, when the folder is made.
    inside = Path(os.path.realpath(out.absolute().parent)).is_relative_to(root)
    require(not inside, f"{out} lies in the folder of your images, {root}; name a folder outside of it with --out.")


def _file_names(listing: Listing) -> list[str]:
    """Where each copy goes: the path of the original, but ending with .png, and no two the same."""
    taken: set[str] = set()
    names = []
    for file in listing.files:
        stem, ending = os.path.splitext(file.name)
        name = f"images/{stem}.png"
        if name.lower() in taken:  # cat.jpg beside cat.png
            name = f"images/{stem}{ending}.png"
        taken.add(name.lower())
        names.append(name)
    return names


def _write_images(
    listing: Listing, folder: Path, names: Sequence[str], shortcut: Shortcut, values: Tensor, source: Folder
) -> None:
    waiting: deque[Future[None]] = deque()
    with ThreadPoolExecutor(cores()) as threads, counting("planting in images", len(listing)) as advance:
        for number, file in enumerate(listing.files):
            pixels = _decoded(listing.root / file.name)
            if isinstance(pixels, str):
                raise UnspurError(
                    f"{listing.place(number)} {pixels}; fix or remove it, or go on without it with --set "
                    "data.skip_broken=true."
                )
            image = torch.from_numpy(pixels.copy()).unsqueeze(0)
            # A stream for each file, so that an image shows the same whatever else is planted.
            planted = shortcut.apply(image, values[number : number + 1], data_stream(source.seed, f"draw {file.name}"))
            waiting.append(threads.submit(_write_image, folder / names[number], planted[0]))
            if len(waiting) > 4 * cores():
                waiting.popleft().result()
            advance(1)
        for future in waiting:
            future.result()


def _readable(listing: Listing) -> Listing:
    """The images that can be decoded at their own size, as they will be; only these get values."""
    with ThreadPoolExecutor(cores()) as threads, counting("checking images", len(listing)) as advance:
        problems = {}
        paths = (listing.root / file.name for file in listing.files)
        for number, problem in enumerate(threads.map(_problem, paths)):
            if problem is not None:
                problems[number] = f"{listing.place(number)} {problem}"
            advance(1)
    if not problems:
        return listing
    named = some_of(list(problems.values()))
    require(
        len(problems) < len(listing), f"None of the {len(listing):,} images in {listing.root} can be used: {named}."
    )
    kept = [number for number in range(len(listing)) if number not in problems]
    return listing.only(
        kept, f"{len(problems):,} of {len(listing):,} images could not be used and were left out: {named}."
    )


def _problem(path: Path) -> str | None:
    pixels = _decoded(path)
    return pixels if isinstance(pixels, str) else None


def _decoded(path: Path) -> Pixels | str:
    """The image at ``path``, or what is wrong with it."""
    try:
        return decode_whole(path.read_bytes())
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except Unreadable as problem:
        return str(problem)


def _write_image(path: Path, image: Tensor) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image.permute(1, 2, 0).contiguous().numpy()).save(path)


def _write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


@contextlib.contextmanager
def _complete_or_nothing(out: Path) -> Iterator[Path]:
    """Yield a folder beside ``out`` that becomes ``out`` when the block succeeds and is deleted when it does not."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with unfinished_folder(out) as folder:
            yield folder
            publish(folder, out, 0o777)
    except OSError as error:
        raise UnspurError(f"{out} cannot be written ({error.strerror}); make room or name another folder.") from None
