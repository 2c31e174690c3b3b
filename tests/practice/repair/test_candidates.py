"""What is tried, and in which order."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from unspur.data.sets.folder import Folder
from unspur.errors import RunFailed, UnspurError
from unspur.models.catalog import arch_named
from unspur.practice.repair import candidates as candidates_module
from unspur.practice.repair.candidates import (
    ALL_LAYERS,
    candidates,
    expected_gains,
    kind_of,
    require_known,
    require_one_fits,
    require_trainable,
)
from unspur.practice.repair.repair import RepairSettings
from unspur.runs.config import configure
from unspur.runs.defaults import SetSize

BASE = configure("erm", "biased_mnist", None, 3, ["data.base=mini"])
SIZE = SetSize(9000, 2)
CORNER = "cells:8x8:c0c0000000000000"
ROOT = Path(__file__).parents[3]


def found(cues=(CORNER,), methods=(), seconds=60.0, groups=False):
    return candidates(BASE, cues, SIZE, seconds, methods, groups=groups)


def held_out(ticked, groups):
    """The table of ticked images that each method's data hold out."""
    own, methods = replace(BASE, data=Folder(root="photos")), ("class_balanced", "dfr", "divdis")
    tried = candidates(own, (CORNER,), SIZE, 60.0, methods, groups=groups, ticked=ticked)
    return {each.name: each.config.data.groups for each in tried}


def gained(points, cue="place", images="digits"):
    scores = {"before": 50.0, "after": 50.0 + points, "seeds": 1}
    return {"shortcut": "", "cue": cue, "images": images, **scores, "file": ""}


@pytest.fixture
def tables(monkeypatch):
    """Committed figures that the test gives."""

    def given(**rows):
        monkeypatch.setattr(candidates_module, "shown", lambda: rows)

    return given


def test_the_expected_gain_per_minute_decides_the_order(tables):
    tables(masktune=[gained(10)], swap=[gained(6)], dcwp=[gained(90, cue="scene")])
    # plain training passes each image 4 times in 60 s. swap, with cues, 3 times: 6 points in 45 s. masktune 4 times,
    # once more, and twice without a backward pass (0.3): 10 points in 84 s. dcwp's figure is of another kind of cue
    assert [(each.name, round(each.seconds)) for each in found()] == [("swap", 45), ("masktune", 84)]
    tables(masktune=[gained(12)], swap=[gained(6)])
    assert [each.name for each in found()] == ["masktune", "swap"]


def test_unless_they_are_named_three_are_tried_and_swap_is_among_them(tables):
    tables(masktune=[gained(40)], mrm=[gained(30)], dcwp=[gained(20)], swap=[gained(0.1)], jtt=[gained(-5)])
    names = [each.name for each in found()]
    assert names[-1] == "swap" and len(names) == 3 and "masktune" in names and "jtt" not in names
    assert len(found(methods=("masktune", "mrm", "dcwp", "swap", "jtt"))) == 5


def test_methods_that_read_a_pretrained_networks_features_are_tried_without_one_only_if_named(tables):
    tables(masktune=[gained(9)], ula=[gained(40)], ee=[gained(30)])
    assert {each.name for each in found()} == {"swap", "masktune"}
    assert [each.name for each in found(methods=("ula",))] == ["ula"]


def test_a_gain_is_the_mean_over_images_of_the_same_sort_and_of_any_where_there_are_none(tables):
    rows = [gained(2, images="photographs"), gained(4, images="photographs, frozen network"), gained(30)]
    tables(swap=rows, masktune=[gained(8)])
    assert expected_gains("place", photographs=True) == {"swap": 3.0, "masktune": 8.0}  # (2 + 4) / 2
    assert expected_gains("place", photographs=False) == {"swap": 30.0, "masktune": 8.0}
    assert expected_gains("trace", photographs=True) == {}


def test_a_candidate_has_the_baselines_data_network_and_seed_and_swap_the_cues():
    swap = next(each for each in found() if each.name == "swap").config
    assert (swap.data, swap.arch, swap.seed) == (BASE.data, BASE.arch, 3)
    assert swap.method.cues == (CORNER,) and swap.method.layers == "all"


def test_named_methods_are_tried_and_no_others():
    assert sorted(each.name for each in found(methods=("jtt", "swap", "jtt"))) == ["jtt", "swap"]


def test_the_thorough_preset_also_swaps_in_all_layers_of_a_pretrained_network(tables, monkeypatch):
    tables(swap=[gained(20)], masktune=[gained(9)], mrm=[gained(8)], dcwp=[gained(7)])
    monkeypatch.setattr(candidates_module, "_takes", lambda *given: 60.0)
    pretrained = replace(BASE, data=Folder(root="photos"), arch=replace(arch_named("resnet18"), weights="default"))

    def tried(base, preset, cues=(CORNER,)):
        return {each.name: each.config for each in candidates(base, cues, SIZE, 60.0, groups=False, preset=preset)}

    usual, thorough = tried(pretrained, "usual"), tried(pretrained, "thorough")
    assert len(usual) == len(thorough) == 3 and ALL_LAYERS not in usual
    assert thorough["swap"].method.layers == "last"
    whole = thorough[ALL_LAYERS]
    assert (whole.method.layers, whole.method.share, whole.method.cues) == ("all", 1.0, (CORNER,))
    assert whole.arch.frozen == "norm"
    assert ALL_LAYERS not in tried(pretrained, "thorough", cues=())  # there is nothing to swap
    assert ALL_LAYERS not in tried(BASE, "thorough")  # swap trains all layers there anyway


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


def test_a_preset_that_there_is_not_is_refused():
    with pytest.raises(UnspurError, match=r"Unknown preset 'thorogh'\. Did you mean 'thorough'"):
        RepairSettings(preset="thorogh")


@pytest.mark.parametrize("name", ["balanced_last_layer", "dfr"])  # of training images, of validation images
def test_a_method_that_needs_groups_is_refused_where_there_are_none(name):
    with pytest.raises(UnspurError, match=f"{name} needs data with group labels, and these have none; leave it out"):
        require_trainable(["swap", name], groups=False, some=False)
    require_trainable(["swap", name], groups=True, some=False)


def test_some_ticked_images_are_enough_for_methods_that_need_some_groups_alone(tmp_path):
    require_trainable(["dfr"], groups=False, some=True)
    with pytest.raises(UnspurError, match="balanced_last_layer needs data with group labels"):
        require_trainable(["balanced_last_layer"], groups=False, some=True)
    ticked = tmp_path / "groups.csv"
    assert held_out(ticked, groups=False) == {"class_balanced": "", "dfr": str(ticked), "divdis": str(ticked)}


def test_divdis_takes_ticked_images_whether_or_not_there_are_groups(tmp_path):
    ticked = tmp_path / "groups.csv"  # the groups of all images do not make the ordinary ones go against the cue
    assert held_out(ticked, groups=True) == {"class_balanced": "", "dfr": "", "divdis": str(ticked)}
    assert set(held_out(None, groups=True).values()) == {""}


def test_methods_that_need_groups_are_tried_where_there_are_groups():
    assert [each.name for each in found(methods=("balanced_last_layer",), groups=True)] == ["balanced_last_layer"]


def test_a_budget_too_small_for_any_candidate_names_the_one_that_would_fit_first():
    tried = found(methods=("swap", "masktune"), seconds=600.0)
    cheapest = min(tried, key=lambda each: each.seconds)
    with pytest.raises(RunFailed, match=f"with 30 s left is too small for any candidate: {cheapest.name} takes"):
        require_one_fits(tried, 30.0)
    require_one_fits(tried, cheapest.seconds)


def test_a_kind_of_cue_in_the_tables_is_the_one_that_audits_found(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import shown as script

    for row in json.loads((ROOT / "results" / "swap.json").read_text())["rows"]:
        if row["cues"]:
            shortcut, _ = next(named for start, named in script.SWAPPED.items() if row["set"].startswith(start))
            assert script.CUES[shortcut] == kind_of(row["cues"]), row["set"]
