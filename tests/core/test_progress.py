"""Progress is for people: a bar on a terminal, now and then a line in a log, and a time left that follows the pace."""

import io
import sys

import pytest

from unspur.core import progress
from unspur.core.progress import ProgressBar, counting, duration, seconds_of
from unspur.errors import UnspurError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets: ``clock(30)`` makes it half a minute past."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, float(seconds))


def test_short_work_leaves_no_line_in_a_log(capsys, clock):
    with ProgressBar("erm on parity") as bar:
        for second in range(9):
            clock(second)
            bar("erm", (second + 1) / 9)
    with counting("decoding images", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_long_work_leaves_a_line_after_10_seconds_and_then_every_30(capsys, clock):
    with ProgressBar("masktune") as bar:
        for second in range(0, 100):
            clock(second)
            bar("erm", second / 200)
        clock(101)
        bar("maps", 0.5)
    out, err = capsys.readouterr()
    # 10 of 200 s: 5 %, 190 s left; then 40 and 70 s; the next would be due at 100 s, and is of the next stage
    assert out == "" and err.splitlines() == [
        "masktune · erm 5 %, about 3 min left",
        "masktune · erm 20 %, about 3 min left",
        "masktune · erm 35 %, about 2 min left",
        "masktune · maps 50 %",
    ]


def test_a_resumed_stage_counts_only_its_own_pace(capsys, clock):
    with ProgressBar("erm") as bar:
        bar("erm", 0.8)  # what an earlier process did
        clock(20)
        bar("erm", 0.9)  # 0.1 in 20 s: 0.1 are left
    assert capsys.readouterr().err == "erm · erm 90 %, about 20 s left\n"


def test_each_stage_has_a_bar_of_its_own(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar("masktune") as bar:
        bar("erm", 0.5)
        bar("finetune", 0.25)
    text = sys.stderr.getvalue()
    assert "masktune · erm" in text and "50%" in text and "masktune · finetune" in text and "25%" in text


def test_the_bar_of_a_short_stage_goes_away_and_that_of_a_long_one_stays(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar("train") as bar:
        bar("short", 0.5)
        bar("long", 0.5)
        clock(1)
        bar("short", 1.0)
        clock(3)
        bar("long", 1.0)
        assert [task.visible for task in progress._DISPLAY._bars.tasks] == [False, True]


def test_work_inside_other_work_shares_the_display(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with counting("reproduce", 2) as runs, ProgressBar("erm") as bar:
        bar("erm", 0.5)
        runs(1)
    text = sys.stderr.getvalue()
    assert "reproduce" in text and "1/2" in text and "erm · erm" in text
    assert progress._DISPLAY._bars is None  # all is closed


def test_bars_of_work_that_has_ended_inside_other_work_make_room(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with counting("reproduce", 3) as runs:
        for number in range(3):
            with ProgressBar("erm") as bar:
                bar("erm", 0.5)
                clock(10 * number + 5)
                bar("erm", 1.0)
            runs(1)
        assert [task.description for task in progress._DISPLAY._bars.tasks] == ["reproduce"]


def test_a_stage_that_begins_again_has_a_pace_of_its_own(capsys, clock):
    with ProgressBar("dcwp") as bar:
        bar("mistakes", 0.5)
        bar("mistakes", 1.0)
        clock(100)
        bar("mistakes", 0.1)  # on another split
        clock(140)
        bar("mistakes", 0.2)  # 0.1 in 40 s: 0.8 take 320 s
    assert capsys.readouterr().err.splitlines()[-1] == "dcwp · mistakes 20 %, about 5 min left"


def test_the_time_left_is_the_pace_times_what_is_left(capsys, clock):
    with counting("sweep", 6, done=2) as ended:
        clock(28)
        ended(1)  # the first of four new runs took 28 s: three are left, 84 s
    assert capsys.readouterr().err == "sweep 3/6, about 84 s left\n"


@pytest.mark.parametrize(("seconds", "text"), [(89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")])
def test_a_duration_changes_its_unit_where_people_do(seconds, text):
    assert duration(seconds) == text


def test_images_that_are_read_are_counted_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with counting("decoding images", 3) as advance:
        advance(2)
    assert "decoding images" in sys.stderr.getvalue() and "2/3" in sys.stderr.getvalue()


def test_a_stage_that_counts_shows_a_rate(capsys, clock):
    with ProgressBar("erm") as bar:
        bar.counts("features", 1000, "images")
        clock(20)
        bar("features", 0.5)  # 500 images in 20 s
    assert capsys.readouterr().err == "erm · features 25 images a second, about 20 s left\n"


@pytest.mark.parametrize("text", ["", "h", "20", "0m", "0h", "-5m", "20 x", "m", "1e3s", "infh", "1 week"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UnspurError, match=r"A budget is a time such as 90s, 20m or 1\.5h, but got"):
        seconds_of(text)


def test_a_time_has_a_unit_with_or_without_a_space():
    assert [seconds_of(text) for text in ("2 min", "2MIN", "1d")] == [120.0, 120.0, 86400.0]
