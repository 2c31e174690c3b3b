"""The command line in this process."""

import sys

import pytest

from unspur.cli.main import main
from unspur.core import progress


@pytest.fixture(autouse=True)
def slow_machines_log_no_more(monkeypatch):
    """What a test prints does not depend on how long it took."""
    monkeypatch.setattr(progress, "FIRST_LINE", float("inf"))


@pytest.fixture
def unspur(monkeypatch, capsys):
    """Call it with arguments: its exit code, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["unspur", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return call
