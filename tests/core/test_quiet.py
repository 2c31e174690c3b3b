"""Silence, asked for."""

import pytest

from unspur.core import progress
from unspur.core.progress import ProgressBar
from unspur.core.quiet import is_quiet


@pytest.mark.parametrize(("value", "quiet"), [("1", True), ("yes", True), ("", False), ("0", False), ("false", False)])
def test_the_environment_asks_for_silence(monkeypatch, value, quiet):
    monkeypatch.setenv("UNSPUR_QUIET", value)
    assert is_quiet() is quiet


@pytest.mark.parametrize(("value", "lines"), [("1", 0), ("", 1)])
def test_a_log_has_no_line_of_progress_then(monkeypatch, capsys, value, lines):
    monkeypatch.setenv("UNSPUR_QUIET", value)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with ProgressBar("work") as bar:
        bar("stage", 0.5)
    assert len(capsys.readouterr().err.splitlines()) == lines
