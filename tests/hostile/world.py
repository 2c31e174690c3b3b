"""What bad inputs are made from: good ones. Photos, tables, runs, an exported model and an audit, all tiny."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.photos import class_folders
from hostile.calling import call
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.stored import audit_into
from unspur.practice.audit.target import target_named
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run

VECTORS = ["data.train=64", "data.val=8", "data.test=20", "erm.epochs=1", "arch.width=8"]


def make(root: Path) -> Path:
    """Fill ``root``; names are the same in every copy of it."""
    class_folders(root / "photos", cat=32, dog=32)
    rows = [f"{path.relative_to(root)},{path.parent.name}" for path in sorted(root.glob("photos/*/*.png"))]
    (root / "table.csv").write_text("\n".join(["filename,label", *rows]) + "\n")
    (root / "file").write_text("no folder\n")
    (root / "loop").symlink_to("loop")
    with inside(root):
        done("parity", configure("erm", "parity", "fcn", 0, VECTORS))
        pictures = ["data.root=photos", "data.size=16", "data.val=0.3", "erm.epochs=1", "arch.hidden=0"]
        done("pictures", configure("erm", "folder", "small_cnn", 0, pictures))
        for arguments in (
            ["analyze", "parity", "--samples", "4"],
            ["export", "pictures", "--out", "exported", "--format", "safetensors"],
        ):
            made = call(arguments)
            assert made.code == 0, made
        _audit("photos", Path("audit"))
    return root


def _audit(photos: str, folder: Path) -> None:
    """The quickest audit there is: no network is trained for it."""
    found = target_named(photos)
    quick = Settings(local=False, model=False)
    made = audit_into(folder.parent / "audits", found.name, found.source, target=found.words, settings=quick)
    made.folder.rename(folder)
    made.folder.parent.rmdir()


def done(name: str, config) -> None:
    """Do a run, and give its folder a short name that still ends in its key."""
    run(config, Path("runs"))
    folder = Run.create(Path("runs"), config).folder
    folder.rename(f"{name}-{folder.name[-12:]}")
    Path(name).symlink_to(f"{name}-{folder.name[-12:]}")
    Path("runs").rmdir()


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in ``folder``, with a cache of its own beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("UNSPUR_CACHE", str(folder.parent / "cache"))
        patch.delenv("UNSPUR_DATA", raising=False)
        yield


def copied(world: Path, to: Path) -> Path:
    """A copy that may be damaged; files that nobody changes are the same on the disk."""
    shutil.copytree(world, to, symlinks=True, copy_function=os.link)
    return to


def own(path: Path) -> Path:
    """``path`` with a content of its own, to be changed without changing the original."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    return path
