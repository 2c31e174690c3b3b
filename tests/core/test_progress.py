"""Progress is for people: a bar on a terminal, nothing in a file, and a time left that follows the pace."""

import io
import sys

import pytest

from unspur.core import progress
from unspur.core.progress import ProgressBar, RunsBar, counting, duration


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_where_stderr_is_no_terminal(capsys):
    with ProgressBar("erm on parity") as bar:
        bar("erm", 0.5)
    with RunsBar(total=2, done=0) as runs:
        runs.ended()
    assert capsys.readouterr() == ("", "")


def test_each_stage_has_a_bar_of_its_own(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar("masktune") as bar:
        bar("erm", 1.0)
        bar("finetune", 0.25)
    text = sys.stderr.getvalue()
    assert "masktune · erm" in text and "100%" in text and "masktune · finetune" in text and "25%" in text


def test_a_stage_that_counts_shows_a_rate():
    bar = ProgressBar("erm")
    bar.counts("features", 3000, "images")
    (task,) = bar._bars.tasks
    task.finished_speed = 0.05  # of the way, a second: 150 of 3,000
    assert str(progress._RateColumn().render(task)) == "150 images a second"
    bar("erm", 0.5)
    assert str(progress._RateColumn().render(bar._bars.tasks[1])) == ""


def test_the_time_left_is_the_pace_times_the_runs_left(monkeypatch):
    clock = iter([0.0, 30.0])  # the first of four new runs took 30 s: three are left, 90 s
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    bar = RunsBar(total=6, done=2)
    bar.ended()
    (task,) = bar._bar.tasks
    assert task.completed == 3 and task.fields["left"] == f"about {duration(90)} left"


@pytest.mark.parametrize(("seconds", "text"), [(89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")])
def test_a_duration_changes_its_unit_where_people_do(seconds, text):
    assert duration(seconds) == text


def test_images_that_are_read_are_counted_on_a_terminal_alone(capsys, monkeypatch):
    with counting("decoding images", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with counting("decoding images", 3) as advance:
        advance(2)
    shown = capsys.readouterr()
    assert not shown.out and "decoding images" in shown.err and "2/3" in shown.err
