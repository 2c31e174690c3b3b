"""What a data set is, where it comes from, and whether it is here and whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unspur.core.options import options
from unspur.data.base import Dataset, Split, groups_of
from unspur.data.files.fetch import DataFiles
from unspur.data.spec import Count, DataSpec
from unspur.errors import UnspurError


def describe(spec: DataSpec, data_dir: Path | None = None) -> dict[str, Any]:
    """Plain values about ``spec``; "splits" is None unless every file is here and whole.

    "counts" compares numbers of samples with the published ones, and "verified" says whether they all agree (None:
    there is nothing to compare).
    """
    files = DataFiles(data_dir)
    found = spec.found(files)
    contents: dict[str, Any] = {"splits": None, "counts": [], "verified": None, "problem": None}
    if all(part.state == "whole" for part in found):
        try:
            contents |= _contents(spec.outline(files))
            contents |= _comparison(contents["splits"], spec.expected())
        except UnspurError as error:
            contents["problem"] = str(error)
    return {
        "name": spec.name,
        "description": (type(spec).__doc__ or "").splitlines()[0],
        "citation": spec.about.citation,
        "licence": spec.about.licence,
        "get": spec.about.get,
        "options": {option.key: option.default for option in options(spec)},
        "files": [part._asdict() | {"folder": part.folder and str(part.folder)} for part in found],
        **contents,
    }


def _comparison(splits: Mapping[str, Any], expected: Sequence[Count]) -> dict[str, Any]:
    counts = []
    for count in expected:
        here = splits.get(count.split, {"groups": []})["groups"]
        n = sum(
            group["n"]
            for group in here
            if any((group["class"], *group["attributes"].values())[: len(names)] == names for names in count.groups)
        )
        groups = [list(names) for names in count.groups]
        counts.append({"split": count.split, "groups": groups, "published": count.n, "found": n})
    agree = all(count["published"] == count["found"] for count in counts)
    return {"counts": counts, "verified": agree if counts else None}


def _contents(data: Dataset) -> dict[str, Any]:
    splits = {"train": data.train, "val": data.val} | {f"test {name}": split for name, split in data.tests.items()}
    return {
        "sample_shape": list(data.sample_shape),
        "classes": list(data.classes),
        "attributes": {name: list(values) for name, values in data.attribute_values.items()},
        "mean": data.mean,
        "std": data.std,
        "note": data.note,
        "splits": {name: {"n": len(split), "groups": _groups(split, data)} for name, split in splits.items()},
    }


def _groups(split: Split, data: Dataset) -> list[Mapping[str, Any]]:
    if not len(split):
        return []
    groups = groups_of(split)
    return [
        {
            "class": data.classes[key[0]],
            "attributes": {
                name: data.attribute_values[name][value] for name, value in zip(split.attributes, key[1:], strict=True)
            },
            "n": count,
        }
        for key, count in zip(groups.keys, groups.id.bincount().tolist(), strict=True)
    ]
