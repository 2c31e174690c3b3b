"""What was collected from the images, as one file: an audit that was interrupted decodes nothing again."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from unspur.core.files import read_tensors, write_tensors
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.file_facts import FileFacts
from unspur.practice.audit.image_statistics import SCENE
from unspur.practice.audit.processing_traces import TRACES

PLAIN = ("y", "cells", "borders", "pictures", "pictured")


class Note(TypedDict):
    """What is not a tensor."""

    classes: list[str]
    names: list[str]
    total: int
    facts: list[list[str | float]] | None
    flatness: float
    unread: dict[str, str]


def write_collected(path: Path, data: Collected) -> None:
    """Write all of ``data``, atomically."""
    note: Note = {
        "classes": list(data.classes),
        "names": list(data.names),
        "total": data.total,
        "facts": None if data.facts is None else [list(facts) for facts in data.facts],
        "flatness": data.flatness,
        "unread": data.unread,
    }
    some = {} if data.training is None else {"training": data.training}
    write_tensors(path, {name: getattr(data, name) for name in PLAIN} | data.scene | data.traces | some, note)


def read_collected(path: Path) -> Collected:
    """What ``write_collected`` wrote."""
    tensors, note = read_tensors(path)
    return Collected(
        **{name: tensors[name] for name in PLAIN},
        scene={name: tensors[name] for name in SCENE},
        traces={name: tensors[name] for name in TRACES},
        classes=tuple(note["classes"]),
        names=note["names"],
        total=note["total"],
        facts=None if note["facts"] is None else [FileFacts(*facts) for facts in note["facts"]],
        flatness=note["flatness"],
        unread=note["unread"],
        training=tensors.get("training"),
    )
