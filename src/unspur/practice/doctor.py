"""What this machine has for unspur: versions, devices, caches, data and extras, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import torch
from packaging.requirements import Requirement

from unspur.core.files import in_bytes
from unspur.core.memory import machine_memory
from unspur.data.catalog import DATASETS
from unspur.data.files.fetch import DataFiles
from unspur.data.images.layout import ImageSet
from unspur.data.spec import DataSpec, Found
from unspur.runs.machines import knows_bfloat16
from unspur.version import __version__, commit

PACKAGE = "unspur"
FIRST_WITH_BFLOAT16 = 8  # of CUDA's compute capabilities: Ampere
LEAST_FREE = 2_000_000_000  # free bytes on the cache's disk; with fewer, a set of photographs may not fit
EXTRAS = {  # what each extra of pyproject.toml is for
    "svhn": "reading SVHN's files",
    "efficientnet": "a pretrained network without a download: audits, and photographs by default",
    "export": "ONNX files: export, and predict and audit with them",
    "parquet": "predict --out FILE.parquet",
    "optuna": "sweep --search optuna",
    "ray": "sweep, compare and predict with --engine ray",
    "kron": "the optimiser kron",
    "tsne": "t-SNE in analyze",
    "docs": "make docs",
    "dev": "make test",
}


class Package(TypedDict):
    """A package that is needed, in which versions, and the version that is installed."""

    name: str  # as pip calls it
    needs: str  # such as ">=2.6"
    found: str | None  # a version
    fits: bool  # whether that is one of them


class Extra(TypedDict):
    """An extra of the package, and which of its packages are missing or too old."""

    name: str  # as in pip install 'unspur[NAME]'
    purpose: str  # what it is for
    missing: list[Package]  # packages that are not here, or too old


class Device(TypedDict):
    """What a network can be trained on."""

    name: str  # as torch calls it, and its model
    memory: int | None  # bytes
    bfloat16: bool | None  # whether it computes in it, so that precision=bf16 saves time; None where torch does not say


class Cache(TypedDict):
    """Where decoded images, features and downloads are kept."""

    folder: str  # UNSPUR_CACHE, or the user's
    bytes: int  # that it holds
    free: int  # bytes left on its disk
    writable: bool  # whether it, or what would hold it, can be written


class Files(TypedDict):
    """Published files that data sets are made of."""

    title: str  # what they are called
    sets: list[str]  # that are made of them
    state: str  # whole, missing or damaged
    folder: str | None  # where they are
    get: str  # the command that gets them, or says how


class Diagnosis(TypedDict):
    """The whole diagnosis; ``problems`` are sentences about what keeps unspur from working, empty if it works."""

    version: str  # of unspur
    commit: str | None  # of its checkout, if it runs from one
    python: str  # its version
    platform: str  # system and processor
    threads: int  # that torch uses
    devices: list[Device]  # the processor first
    packages: list[Package]  # that unspur cannot do without
    extras: list[Extra]  # what is missing of each
    cache: Cache  # of images, features and downloads
    data_dir: str | None  # where data sets are looked for first
    data: list[Files]  # published files, here or not
    problems: list[str]  # sentences; empty where unspur works


def diagnose(data_dir: Path | None = None) -> Diagnosis:
    """Check everything; nothing is written, downloaded or trained."""
    files = DataFiles(data_dir)
    required, cache = list(_packages("")), _cache(files.cache)
    return {
        "version": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "devices": _devices(),
        "packages": required,
        "extras": [{"name": name, "purpose": EXTRAS[name], "missing": _missing(name)} for name in _extras()],
        "cache": cache,
        "data_dir": str(files.data_dir) if files.data_dir else None,
        "data": _data(files),
        "problems": list(_problems(required, cache)),
    }


def _devices() -> list[Device]:
    found: list[Device] = [{"name": "cpu", "memory": machine_memory(), "bfloat16": knows_bfloat16()}]
    if torch.backends.mps.is_available():
        found.append({"name": "mps", "memory": None, "bfloat16": None})
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        knows = about.major >= FIRST_WITH_BFLOAT16
        found.append({"name": f"cuda:{index} {about.name}", "memory": about.total_memory, "bfloat16": knows})
    return found


def _extras() -> list[str]:
    """The extras that the installed package has."""
    try:
        provided = importlib.metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [name for name in EXTRAS if name in provided]


def _packages(extra: str) -> Iterator[Package]:
    """The packages of an extra, including those of extras that it names; for "", what unspur itself needs."""
    try:
        lines = importlib.metadata.requires(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:  # unspur runs from its source and was never installed
        lines = []
    for requirement in map(Requirement, lines):
        if requirement.marker is None:
            if not extra:
                yield _package(requirement)
        elif extra and requirement.marker.evaluate({"extra": extra}):
            if requirement.name == PACKAGE:
                for named in sorted(requirement.extras):
                    yield from _packages(named)
            else:
                yield _package(requirement)


def _package(requirement: Requirement) -> Package:
    try:
        found = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        found = None
    fits = found is not None and requirement.specifier.contains(found, prereleases=True)
    return {"name": requirement.name, "needs": str(requirement.specifier), "found": found, "fits": fits}


def _missing(extra: str) -> list[Package]:
    return [package for package in _packages(extra) if not package["fits"]]


def _cache(folder: Path) -> Cache:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return {
        "folder": str(folder),
        "bytes": sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0,
        "free": shutil.disk_usage(there).free,
        "writable": os.access(there, os.W_OK),
    }


def _data(files: DataFiles) -> list[Files]:
    """One entry for each published source; a set is here when all of its sources are."""
    known: dict[object, list[Found]] = {}
    sources: dict[str, Files] = {}
    for name, kind in DATASETS.items():
        spec = kind()
        key = spec.needs() or name  # five sets are made of MNIST, which is checked only once
        if key not in known:
            known[key] = _found(spec, files)
        for part in known[key]:
            own = next((wanted.name for wanted in spec.needs() if wanted.title == part.title), None)
            get = f"unspur data fetch {own}" if own else f"unspur data info {name}"
            entry = sources.setdefault(
                part.title,
                {
                    "title": part.title,
                    "sets": [],
                    "state": part.state,
                    "folder": str(part.folder) if part.folder else None,
                    "get": get,
                },
            )
            entry["sets"].append(name)
    return list(sources.values())


def _found(spec: DataSpec, files: DataFiles) -> list[Found]:
    if not isinstance(spec, ImageSet):
        return spec.found(files)
    folder = spec.find(files)  # the folder, not its images: ImageNet has a million
    return [Found(spec.title, folder, "whole" if folder else "missing")]


def _problems(required: list[Package], cache: Cache) -> Iterator[str]:
    if not required:
        yield "unspur is on Python's path but not installed, so that its packages are unknown: pip install unspur."
    for package in required:
        if not package["fits"]:
            here = f"{package['found']} is here" if package["found"] else "it is not here"
            name = f"{package['name']}{package['needs']}"
            yield f"unspur needs {name}, but {here}: pip install '{name}'."
    if not cache["writable"]:
        yield f"The cache {cache['folder']} cannot be written; set UNSPUR_CACHE to a folder that can."
    elif cache["free"] < LEAST_FREE:
        yield (
            f"The disk of the cache {cache['folder']} has {in_bytes(cache['free'])} left; make room, or set "
            "UNSPUR_CACHE to a folder on another disk."
        )
