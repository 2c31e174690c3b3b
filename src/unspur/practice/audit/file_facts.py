"""Facts about a file besides its pixels: format, size, compression, camera, name. None is about what it shows."""

from __future__ import annotations

import hashlib
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from PIL import Image, JpegImagePlugin
from torch import Tensor

from unspur.data.images.decode import formats

VALUES = 8  # the most values of a property that are told apart; the rarer ones count as one
CAMERA, MODEL, SOFTWARE, DATE = 0x010F, 0x0110, 0x0131, 0x0132  # EXIF tags


class FileFacts(NamedTuple):
    """Properties of one file."""

    format: str
    mode: str
    width: int
    height: int
    bytes: int
    quality: float  # mean of the JPEG quantisation table for luminance: lower is better; 0: no JPEG
    subsampling: str
    camera: str
    software: str
    year: str
    pattern: str  # the file's name, its digits replaced by 0
    number: float  # the last number in its name; -1: none
    digest: str  # of the content


def file_facts(name: str, content: bytes) -> FileFacts:
    """The properties of a file whose pixels can be decoded; odd metadata counts as absent."""
    stem = name.replace("\\", "/").rsplit("/", 1)[-1]
    numbers = re.findall(r"\d+", stem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(content), formats=formats()) as image:
            exif = _exif(image)
            table = getattr(image, "quantization", None) or {}
            return FileFacts(
                format=image.format or "",
                mode=image.mode,
                width=image.width,
                height=image.height,
                bytes=len(content),
                quality=sum(table[0]) / len(table[0]) if 0 in table else 0.0,
                subsampling=_subsampling(image),
                camera=f"{exif.get(CAMERA, '')} {exif.get(MODEL, '')}".strip(),
                software=exif.get(SOFTWARE, ""),
                year=exif.get(DATE, "")[:4],
                pattern=re.sub(r"\d+", "0", stem.rsplit(".", 1)[0]),
                number=float(numbers[-1][:15]) if numbers else -1.0,
                digest=hashlib.blake2b(content, digest_size=16).hexdigest(),
            )


def _exif(image: Image.Image) -> dict[int, str]:
    try:
        return {tag: str(value).strip("\0 ") for tag, value in image.getexif().items()}
    except Exception:  # broken metadata can raise anything; it counts as absent
        return {}


def _subsampling(image: Image.Image) -> str:
    if not isinstance(image, JpegImagePlugin.JpegImageFile):
        return ""
    return str(JpegImagePlugin.get_sampling(image))


class Property(NamedTuple):
    """A property of files as numbers: (n, width)."""

    name: str
    values: Tensor
    of_content: bool  # whether what is photographed can explain it, as it can a file's size


def properties(facts: Sequence[FileFacts], classes: Sequence[str]) -> list[Property]:
    """The properties in which these files differ at all."""
    words: Mapping[str, Callable[[FileFacts], str]] = {
        "format": lambda fact: fact.format,
        "mode": lambda fact: fact.mode,
        "subsampling": lambda fact: fact.subsampling,
        "camera": lambda fact: fact.camera,
        "software": lambda fact: fact.software,
        "year": lambda fact: fact.year,
        "name pattern": lambda fact: _without(fact.pattern, classes),
        "dimensions": lambda fact: f"{fact.width}x{fact.height}",
    }
    measures: Mapping[str, tuple[Callable[[FileFacts], float], bool]] = {
        "JPEG quality": (lambda fact: fact.quality, False),
        "bytes": (lambda fact: math.log(fact.bytes), True),
        "bytes per pixel": (lambda fact: math.log(fact.bytes / (fact.width * fact.height)), True),
        "aspect ratio": (lambda fact: math.log(fact.width / fact.height), False),
        "number in the name": (lambda fact: fact.number, False),
    }
    found = [Property(name, _one_hot([value(fact) for fact in facts]), False) for name, value in words.items()]
    for name, (measure, of_content) in measures.items():
        column = torch.tensor([measure(fact) for fact in facts]).unsqueeze(1)
        found.append(Property(name, torch.cat([column, column**2], 1), of_content))
    return [each for each in found if bool((each.values != each.values[:1]).any())]


def _without(pattern: str, classes: Sequence[str]) -> str:
    """A name's pattern without the class's own name: that `cat.0` lies among the cats is no finding."""
    for name in sorted(classes, key=len, reverse=True):
        pattern = re.sub(re.escape(re.sub(r"\d+", "0", name)), "*", pattern, flags=re.IGNORECASE)
    return pattern


def _one_hot(values: Sequence[str]) -> Tensor:
    """A column for each of the most common values; if there are too many values to be useful, a constant."""
    common = [value for value, _ in Counter(values).most_common(VALUES)]
    if len(set(values)) > len(values) // 2:
        return torch.zeros(len(values), 1)
    return torch.tensor([[float(value == other) for other in common] for value in values])


def duplicates_across(facts: Sequence[FileFacts], y: Tensor) -> list[tuple[int, int]]:
    """Pairs of files with the same content and different labels: the first of each content and every other one."""
    first: dict[str, int] = {}
    pairs = []
    for number, fact in enumerate(facts):
        other = first.setdefault(fact.digest, number)
        if int(y[other]) != int(y[number]):
            pairs.append((other, number))
    return pairs
