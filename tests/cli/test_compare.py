"""unspur compare as people type it."""

import json

import pytest

from unspur.runs import engines
from unspur.runs.engines import Outcome, work

TINY = ["arch.width=8", "erm.epochs=1", "training.epochs=1", "data.train=200", "data.test=100", "data.val=100"]


@pytest.fixture
def here(monkeypatch):
    """Do the runs in this process."""
    monkeypatch.setitem(
        engines.ENGINES, "local", lambda jobs, workers: ((number, work(job)) for number, job in enumerate(jobs))
    )


def comparing(tmp_path, *more, methods="group_balanced,w2d"):
    settings = [part for setting in TINY for part in ("--set", setting)]
    places = ["--out", tmp_path / "runs", "--page", tmp_path / "compare.html"]
    return ["compare", methods, "parity", "--seeds", "0,1", *places, *settings, *more]


def test_a_comparison_prints_tables_and_writes_a_page(here, unspur, tmp_path):
    code, said, errors = unspur(*comparing(tmp_path))
    assert code == 0
    assert "parity, test 'unbiased'" in said and "Mean rank by the worst group" in said and "±" in said
    assert "w2d is left out on parity" in errors and "Next: unspur report " in errors
    page = (tmp_path / "compare.html").read_text()
    assert "Made by <code>unspur compare group_balanced,w2d parity" in page and "Best by mean rank" in page
    assert "Methods compared" in page and "group_balanced" in page and "w2d is left out" in page
    assert "could not be made" not in page


def test_in_json_it_is_one_document(here, unspur, tmp_path):
    code, said, _ = unspur(*comparing(tmp_path, "--json"))
    found = json.loads(said)
    assert code == 0 and found["done"] == found["of"] == 4 and set(found["ranks"]) == {"groups", "none"}
    start = "unspur compare group_balanced,w2d parity --seeds 0,1 --rates 1 --set arch.width=8 "
    assert found["command"].startswith(start) and str(tmp_path) not in found["command"]


def test_a_failed_run_is_exit_code_1(unspur, tmp_path, monkeypatch):
    def failing(jobs, workers):
        for number, _ in enumerate(jobs):
            yield number, Outcome("failed", "no reason")

    monkeypatch.setitem(engines.ENGINES, "local", failing)
    code, _, errors = unspur(*comparing(tmp_path))
    assert code == 1 and "4 of 4 runs failed; start it again to repeat them" in errors


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--rates", "fast"], "--rates are numbers separated by commas, such as 0.3,1,3, but got 'fast'"),
        (["--engine", "slurm"], "Unknown engine 'slurm'"),
        (["--set", "no_such=1"], "has the setting no_such=1"),
        (["--page", "/proc/none/compare.html"], "Cannot write /proc/none/compare.html"),
        (["--keep", "/"], "/ is a folder; name a file"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(unspur, tmp_path, more, sentence):
    code, _, errors = unspur(*comparing(tmp_path, *more))
    assert code == 2 and sentence in errors and not (tmp_path / "runs").exists()
