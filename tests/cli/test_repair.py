"""`unspur repair` as a person meets it: kept or repaired is exit 0, a mistake is one sentence and exit 2."""

import json

import pytest

from practice.repair.tagged import tagged, trained
from unspur.practice.audit.audit import Settings
from unspur.practice.repair import repair as repair_module
from unspur.runs.defaults import SCRATCH


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("repair")
    return trained(tagged(place / "set"), place / "runs")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(repair_module, "Settings", lambda **given: Settings(**{**given, "local": False}))
    monkeypatch.setattr("unspur.runs.defaults.SCRATCH", SCRATCH._replace(steps=50, epochs=(3, 10)))


def test_a_run_is_repaired_and_the_next_command_named_and_json_holds_everything(unspur, run, quick, tmp_path):
    code, out, err = unspur("repair", run, "--methods", "swap", "--out", tmp_path)
    assert code == 0 and out.startswith("Repaired by swap: +") and "  before: " in out and "  swap: " in out
    assert "predictions that follow" in out and "Next: unspur predict" in err and "repair.html in a browser" in err
    code, out, _ = unspur("repair", run, "--methods", "swap", "--out", tmp_path, "--json")
    found = json.loads(out)
    assert (
        code == 0 and found["chosen"] == "swap" and found["tried"][0]["command"].startswith("unspur train swap folder")
    )


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["nosuchfolder"], "There is no folder, table, run or data set 'nosuchfolder'"),
        (["RUN", "--budget", "soon"], "A budget is a time such as 90s, 20m or 1.5h, but got 'soon'"),
        (["RUN", "--set", "data.val=0.2"], "has its own data; leave --set out"),
        (["RUN", "--margin", "2"], "--margin"),
        (["RUN", "--methods", "swap,swp"], "Unknown method 'swp'. Did you mean 'swap'?"),
        (["RUN", "--methods", "erm"], "erm is what candidates are compared with"),
        (["RUN", "--methods", "groupdro"], "groupdro needs data with group labels, and these have none"),
        (["RUN", "--groups", "gone.csv"], "gone.csv cannot be read as a table"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(unspur, run, tmp_path, words, sentence):
    code, out, err = unspur(
        "repair", *[run if word == "RUN" else word for word in words], "--out", tmp_path / "repairs"
    )
    assert code == 2 and sentence in err and not out and not (tmp_path / "repairs").exists()


def test_a_mistyped_method_is_said_before_the_images_are_looked_for(unspur, tmp_path):
    code, _, err = unspur("repair", "nosuchfolder", "--methods", "swp", "--out", tmp_path / "repairs")
    assert code == 2 and "Did you mean 'swap'?" in err
