"""The command line in this process."""

import sys

import pytest

from unspur.cli.main import main


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
