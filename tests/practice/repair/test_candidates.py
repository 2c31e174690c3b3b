"""What is tried, and in which order."""

from pathlib import Path

import pytest

from unspur.errors import UnspurError
from unspur.methods.catalog import METHODS
from unspur.methods.erm import ERM
from unspur.practice.repair import candidates as candidates_module
from unspur.practice.repair.candidates import (
    candidates,
    expectations,
    require_known,
    require_one_fits,
    require_trainable,
    train_command,
)
from unspur.runs.config import configure
from unspur.runs.defaults import SetSize

BASE = configure("erm", "biased_mnist", None, 3, ["data.base=mini"])
SIZE = SetSize(9000, 2)
CORNER = "cells:8x8:c0c0000000000000"
ROOT = Path(__file__).parents[3]


def found(cues=(CORNER,), methods=(), seconds=60.0, groups=False):
    return candidates(BASE, cues, SIZE, seconds, methods, groups=groups)


def test_the_expected_gain_per_minute_decides_the_order(monkeypatch):
    rows = [
        {"kind": "place", "method": "jtt", "gain": 10.0, "cost": 1.0, "source": ""},
        {"kind": "place", "method": "swap", "gain": 30.0, "cost": 2.0, "source": ""},
        {"kind": "scene", "method": "dcwp", "gain": 90.0, "cost": 1.0, "source": ""},
    ]
    monkeypatch.setattr(candidates_module, "expectations", lambda: rows)
    # 30 points in 120 s before 10 in 60; dcwp's figure is of another kind of cue
    assert [(each.name, each.seconds) for each in found()] == [("swap", 120.0), ("jtt", 60.0)]


def test_a_candidate_has_the_baselines_data_network_and_seed_and_swap_the_cues():
    swap = next(each for each in found() if each.name == "swap").config
    assert (swap.data, swap.arch, swap.seed) == (BASE.data, BASE.arch, 3)
    assert swap.method.cues == (CORNER,) and swap.method.layers == "all"


def test_named_methods_are_tried_and_no_others():
    assert sorted(each.name for each in found(methods=("jtt", "swap", "jtt"))) == ["jtt", "swap"]


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("swop", "Unknown method 'swop'. Did you mean 'swap'"),
        ("erm", "erm is what candidates are compared with"),
    ],
)
def test_a_name_that_no_candidate_has_is_refused(name, sentence):
    with pytest.raises(UnspurError, match=sentence):
        require_known(["swap", name])


@pytest.mark.parametrize("name", ["balanced_last_layer", "dfr"])  # of training images, of validation images
def test_a_method_that_needs_groups_is_refused_where_there_are_none(name):
    with pytest.raises(UnspurError, match=f"{name} needs data with group labels, and these have none; leave it out"):
        require_trainable(["swap", name], groups=False)
    require_trainable(["swap", name], groups=True)


def test_methods_that_need_groups_are_tried_where_there_are_groups():
    assert [each.name for each in found(methods=("balanced_last_layer",), groups=True)] == ["balanced_last_layer"]


def test_a_budget_too_small_for_any_candidate_names_the_one_that_would_fit_first():
    tried = found(methods=("swap", "masktune"), seconds=600.0)
    cheapest = min(tried, key=lambda each: each.seconds)
    with pytest.raises(UnspurError, match=f"with 30 s left is too small for any candidate: {cheapest.name} takes"):
        require_one_fits(tried, 30.0)
    require_one_fits(tried, cheapest.seconds)


def test_every_expectation_is_of_a_method_and_a_file_that_exist():
    for row in expectations():
        assert row["method"] in METHODS and row["gain"] > 0 and row["cost"] > 0
        assert (ROOT / row["source"]).exists(), row["source"]


def test_a_command_does_the_same_run():
    swap = next(each for each in found() if each.name == "swap").config
    words = "biased_mnist --set data.base=mini"
    assert train_command(swap, words) == f"unspur train swap {words} --arch small_cnn --set cues={CORNER} --seed 3"
    assert train_command(BASE, words) == f"unspur train erm {words} --arch small_cnn --seed 3"
    assert isinstance(BASE.method, ERM)
