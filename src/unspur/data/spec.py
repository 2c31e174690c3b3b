"""What a data set is before it is loaded: options as fields, where it comes from, and one way to load it."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from unspur.core.options import require_choices
from unspur.data.base import Dataset
from unspur.errors import UnspurError

if TYPE_CHECKING:
    from unspur.data.files.fetch import DataFiles
    from unspur.data.files.file_set import FileSet

MASKTUNE = "MaskTune: Mitigating Spurious Correlations by Forcing to Explore (arXiv:2210.00055)"
ULE = "UnLearning from Experience to Avoid Spurious Correlations"
DCWP = "Efficient Debiasing with Contrastive Weight Pruning"
LARGE_LR = "Large Learning Rates Simultaneously Achieve Robustness to Spurious Correlations and Compressibility"


@dataclass(frozen=True)
class About:
    """Where a data set comes from."""

    citation: str
    licence: str
    get: str  # how a person gets it


class Found(NamedTuple):
    """Which of the published files of a data set are here."""

    title: str
    folder: Path | None
    state: Literal["whole", "missing", "damaged"] = "whole"
    reason: str | None = None  # a sentence, unless they are whole


class Count(NamedTuple):
    """A published number of samples."""

    split: str  # "train", "val", or "test" and the name of a test set
    n: int
    groups: tuple[tuple[str, ...], ...] = ((),)  # of these groups together, each a class and values of the attributes;
    # what is left away may be anything, so that () is the whole split and ("dog",) all dogs


class DataSpec(abc.ABC):
    """A data set. Its subclasses are frozen dataclasses whose fields are its options."""

    name: ClassVar[str]
    about: ClassVar[About]
    usual_arch: ClassVar[str] = "small_cnn"  # taken without --arch; `unspur train` chooses another for photographs

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        require_choices(self)

    @abc.abstractmethod
    def load(self, files: DataFiles) -> Dataset:
        """Read or make the set; what is missing is an error that says how to get it."""

    def needs(self) -> tuple[FileSet, ...]:
        """The published files that can be downloaded for ``load`` with these options."""
        return ()

    def found(self, files: DataFiles) -> list[Found]:
        """Whether what ``load`` reads is here and whole; every byte is checked where digests were published."""
        return [found_files(wanted, files) for wanted in self.needs()]

    def outline(self, files: DataFiles) -> Dataset:
        """The set as ``load`` gives it, but its images need not be readable: only for counting."""
        return self.load(files)

    def regions(self, sample_shape: torch.Size) -> dict[str, Tensor]:
        """Masks (height, width) or (features,) by name: ``core``, ``spurious`` and, for bits, ``noise``.

        Together they cover the input. Empty if class and shortcut share their pixels, as a digit and its colour do, or
        if the regions are not known.
        """
        return {}

    def expected(self) -> tuple[Count, ...]:
        """The published numbers of samples, if there are any and the options do not change them."""
        return ()


def found_files(wanted: FileSet, files: DataFiles) -> Found:
    """Whether the files of ``wanted`` are here and whole."""
    paths = files.find(wanted)
    folder = next(iter(paths.values())).parent if paths else None
    try:
        files.check(wanted)
    except UnspurError as error:
        return Found(wanted.title, folder, "missing" if paths is None else "damaged", str(error))
    return Found(wanted.title, folder)
