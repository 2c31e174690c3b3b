import sys

from unspur.core.progress import ProgressBar, RunsBar, counting


def test_off_a_terminal_nothing_is_drawn(capsys):
    with counting("decoding images", 3) as advance:
        advance(3)
    with ProgressBar("run") as bar:
        bar("erm", 0.5)
    with RunsBar(2, 0) as runs:
        runs.ended()
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_bar_counts_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with counting("decoding images", 3) as advance:
        advance(2)
    shown = capsys.readouterr()
    assert not shown.out and "decoding images" in shown.err and "2/3" in shown.err
