"""A world to copy and damage, made once a process, and a place for the counts of `make hostile`."""

import json
import os

import pytest

from hostile import world
from unspur.core import progress
from unspur.version import commit


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    root = tmp_path_factory.mktemp("good") / "world"
    root.mkdir()
    return world.make(root)


@pytest.fixture(autouse=True)
def slow_machines_log_no_more(monkeypatch):
    """What a command prints does not depend on how long it took."""
    monkeypatch.setattr(progress, "FIRST_LINE", float("inf"))


@pytest.fixture
def note():
    """Add a line to the file that UNSPUR_RELIABILITY names: what was hunted, and how it went."""

    def add(hunt, what, **counts):
        if path := os.environ.get("UNSPUR_RELIABILITY"):
            line = json.dumps({"hunt": hunt, "what": what, **counts, "commit": commit()}) + "\n"
            with open(path, "ab", buffering=0) as file:  # one write: other processes add theirs
                file.write(line.encode())

    return add
