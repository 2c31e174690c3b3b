"""A search proposes, remembers and goes on; its runs are ordinary runs, and it chooses on validation data."""

import sys

import pytest
import torch

import unspur.runs.many
from data.photos import class_folders
from unspur.errors import UnspurError
from unspur.runs import search as module
from unspur.runs.config import configure
from unspur.runs.defaults import PIXELS
from unspur.runs.engines import work
from unspur.runs.folder import Run
from unspur.runs.search import Search, search, validation_score
from unspur.runs.sweep import plan

pytest.importorskip("optuna")

TINY = ("arch.width=8", "erm.epochs=1", "data.train=200", "data.test=100", "data.val=100")


def wanted(**changed):
    settings = {"ranges": ("erm.lr=0.01..1:log",), "arch": "fcn", "settings": TINY, "trials": 4, **changed}
    return Search("erm", "parity", **settings)


@pytest.fixture
def here(monkeypatch):
    """Do the runs in this process, and say which were done."""
    asked = []

    def engine(jobs, workers):
        for number, job in enumerate(jobs):
            asked.append(job)
            yield number, work(job)

    monkeypatch.setitem(unspur.runs.many.ENGINES, "local", engine)
    return asked


@pytest.fixture
def near(monkeypatch):
    """A score that is best at a rate of 0.1, instead of a model's."""

    def score(run, rule, data_dir=None):
        return 1 - abs(float(torch.log10(torch.tensor(run.config.method.erm.lr))) + 1) / 2

    monkeypatch.setattr(module, "validation_score", score)


def test_the_best_trial_is_the_one_with_the_highest_score(tmp_path, here, near):
    found = search(wanted(trials=8), tmp_path, jobs=1)
    rates = [float(point["settings"]["erm.lr"]) for point in found["points"]]
    best = min(rates, key=lambda rate: abs(torch.log10(torch.tensor(rate)) + 1))
    assert float(found["search"]["best"]["erm.lr"]) == best and found["search"]["trials"] == 8
    assert len(here) == len(rates) == 8 and all(0.01 <= rate <= 1 for rate in rates)
    assert len(list(tmp_path.glob("erm-parity-*/result.json"))) == 8


def test_a_search_goes_on_where_it_stopped(tmp_path, here, near):
    search(wanted(trials=2), tmp_path, jobs=1)
    found = search(wanted(trials=5), tmp_path, jobs=1)
    assert found["search"]["trials"] == 5 and len(here) == 5
    assert len(list(tmp_path.glob("search-*.journal"))) == 1
    assert len({job.config["method"]["erm"]["lr"] for job in here}) == 5  # nothing is drawn again
    assert search(wanted(trials=5), tmp_path, jobs=1)["search"]["trials"] == 5 and len(here) == 5


def test_a_trial_that_was_cut_off_is_done_again_with_the_same_settings(tmp_path, here, near, monkeypatch):
    tell = module._tell

    def killed(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_tell", killed)
        with pytest.raises(KeyboardInterrupt):
            search(wanted(trials=3), tmp_path, jobs=1)
    assert module._tell is tell and len(here) == 1
    found = search(wanted(trials=1), tmp_path, jobs=1)
    assert len(here) == 1 and found["search"]["trials"] == 1  # its run had ended: it is found, and only scored
    assert float(found["search"]["best"]["erm.lr"]) == here[0].config["method"]["erm"]["lr"]


def test_time_that_is_up_begins_no_trial(tmp_path, here, near):
    with pytest.raises(UnspurError, match="No trial of the search ended with a model"):
        search(wanted(budget=1e-9), tmp_path, jobs=1)
    assert not here


def test_several_seeds_are_one_trial(tmp_path, here, near):
    found = search(wanted(trials=2, seeds=(3, 4)), tmp_path, jobs=4)
    assert len(here) == 4 and [run["seed"] for run in found["points"][0]["runs"]] == [3, 4]


def test_the_worst_class_on_validation_data_counts_and_no_group_is_looked_at(tmp_path, monkeypatch):
    config = configure("erm", "parity", "fcn", 0, TINY)
    unspur.runs.experiment.run(config, tmp_path)
    run = Run.create(tmp_path, config)

    def all_zero(model, split):  # right on every sample of class 0 and on none of class 1
        assert len(split) == 100
        return torch.tensor([[1.0, 0.0]]).expand(100, 2)

    monkeypatch.setattr(module, "predict", all_zero)
    val = run.config.data.load(module.DataFiles(None)).val
    assert validation_score(run, "worst_class") == 0
    assert validation_score(run, "mean") == pytest.approx(float((val.y == 0).double().mean()))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"trials": 0}, "--trials must be at least 1"),
        ({"choose": "best"}, "Unknown rule 'best'"),
        ({"seeds": ()}, "at least one seed"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, sentence):
    with pytest.raises(UnspurError, match=sentence):
        wanted(**changed)


def test_a_key_that_does_not_exist_is_an_error_before_any_run(tmp_path, here):
    with pytest.raises(UnspurError, match=r"Unknown key 'erm\.lrr'"):
        search(wanted(ranges=("erm.lrr=1..2",)), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "more", "sentence"),
    [
        ({}, {"engine": "slurm"}, "Unknown engine 'slurm'"),
        ({}, {"jobs": 0}, "--jobs must be at least 1 but got 0"),
        ({"settings": (*TINY, "data.val=0")}, {}, "There is no validation data to choose on"),
    ],
)
def test_a_search_that_cannot_run_or_choose_is_refused_before_anything_is_written(tmp_path, changed, more, sentence):
    with pytest.raises(UnspurError, match=sentence):
        search(wanted(**changed), tmp_path / "runs", **more)
    assert not (tmp_path / "runs").exists()


def test_without_groups_the_worst_group_cannot_be_searched_for(tmp_path):
    class_folders(tmp_path / "photos", cat=6, dog=6)
    settings = (f"data.root={tmp_path / 'photos'}", "data.val=0.3")
    asked = Search("erm", "folder", ("erm.lr=0.01..1",), arch="fcn", settings=settings, choose="worst_group")
    with pytest.raises(UnspurError, match="worst_group needs validation data with attributes, and these have none"):
        search(asked, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_photographs_have_the_defaults_that_training_has(tmp_path):
    class_folders(tmp_path / "photos", cat=6, dog=6)
    asked = Search(
        "erm", "folder", ("erm.lr=0.01..1",), arch="small_cnn", settings=(f"data.root={tmp_path / 'photos'}",)
    )
    files = module.DataFiles(None)
    (config,) = asked.point({"erm.lr": "0.1"}, files).configs
    (planned,) = plan("erm", "folder", ["erm.lr=0.1"], [0], "small_cnn", asked.settings, files)
    assert config == planned.configs[0] and config.data.size == PIXELS


def test_without_optuna_its_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UnspurError, match=r"pip install 'unspur\[optuna\]'"):
        search(wanted(), tmp_path)
