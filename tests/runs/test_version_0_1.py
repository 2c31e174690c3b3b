"""Runs that version 0.1 wrote, weights included, are read: `unspur train` of MaskTune and DCWP at commit f8c221c."""

import json
import shutil
from pathlib import Path

import pytest

from unspur.errors import UnspurError
from unspur.report.context import open_runs
from unspur.report.runs_page import write_report
from unspur.runs.folder import Run
from unspur.runs.result import FORMAT
from unspur.runs.scoring import score_run

FOLDERS = {path.name.partition("-")[0]: path for path in sorted((Path(__file__).parent / "version_0_1").iterdir())}


@pytest.fixture
def copied(tmp_path):
    """A copy of the MaskTune run, and its result as it is stored."""
    folder = tmp_path / FOLDERS["masktune"].name
    shutil.copytree(FOLDERS["masktune"], folder)
    return folder, json.loads((folder / "result.json").read_text())


def test_what_names_said_is_now_said_outright():
    stored = json.loads((FOLDERS["dcwp"] / "result.json").read_text())
    assert "baseline" not in stored and "warnings" not in stored and "format" not in stored
    result = Run.open(FOLDERS["dcwp"]).finished()
    assert result["baseline"] == {"stage": "erm", "role": "before"}
    assert result["warnings"] == stored["facts"]["warnings"] and len(result["warnings"]) == 4
    assert "warnings" not in result["facts"] and result["facts"]["kept"] == stored["facts"]["kept"]
    assert result["trained"] is None


def test_one_class_that_an_old_run_predicts_is_told_by_its_groups():
    (run,) = open_runs([FOLDERS["masktune"]], None).runs
    assert run.one_class[0].startswith("The model predicts the class '0-4' for every image of test 'original'")


@pytest.mark.parametrize("method", FOLDERS)
def test_the_page_of_an_old_run_is_whole(method, tmp_path):
    assert write_report([FOLDERS[method]], tmp_path / "page.html")["failed"] == {}
    page = (tmp_path / "page.html").read_text()
    assert "predicts “" in page and "On the way" in page  # both came to predict one class
    assert ("Before and after" in page) == (method == "masktune")  # parity has no pictures


@pytest.mark.parametrize("method", FOLDERS)
def test_an_old_run_scores_again_what_it_scored(method):
    stored = json.loads((FOLDERS[method] / "result.json").read_text())
    again = score_run(FOLDERS[method], None, [], None)
    for name, block in stored["tests"].items():
        assert again["tests"][name]["accuracy"] == pytest.approx(block["accuracy"], abs=0.002)  # another machine's bits
    assert list(again["stages"]) == list(stored["stages"])
    assert again["tests"][next(iter(stored["tests"]))]["only_class"] is not None


def test_a_result_of_a_newer_format_asks_for_the_newer_version(copied):
    folder, result = copied
    (folder / "result.json").write_text(json.dumps(result | {"format": FORMAT + 1, "version": "9.0"}))
    with pytest.raises(UnspurError, match=r"was written by a newer version of unspur \(9\.0\); install that one\.$"):
        Run.open(folder).result()


@pytest.mark.parametrize("block, sentence", [("tests", "tests is missing"), ("seconds", "seconds is missing")])
def test_an_old_result_without_a_block_names_it(copied, block, sentence):
    folder, result = copied
    (folder / "result.json").write_text(json.dumps({name: part for name, part in result.items() if name != block}))
    with pytest.raises(UnspurError, match=rf"result\.json: {sentence}; .*\.$"):
        Run.open(folder).result()


def test_an_old_run_without_the_blocks_that_may_be_missing_is_shown_without_them(copied, tmp_path):
    folder, result = copied
    kept = {name: part for name, part in result.items() if name not in ("stages", "facts", "commit", "machine")}
    (folder / "result.json").write_text(json.dumps(kept))
    assert write_report([folder], tmp_path / "page.html")["failed"] == {}
    assert "Before and after" not in (tmp_path / "page.html").read_text()
