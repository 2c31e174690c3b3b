"""Swap on a few images with a mark that tells the label, and an object that does so, too."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shrinking import small_network
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.swap import Swap
from unspur.runs.config import Config, configure
from unspur.train.recipe import Adam

CORNER = "cells:4x4:8000"  # the first of 4 x 4 cells
QUICK = Adam(lr=3e-3, epochs=6, batch_size=32)


def marked(n=200, seed=0, told=True):
    """28 x 28 noise; a bar in the middle that is bright for class 1, a white corner that is there for class 1, too."""
    generator = stream(seed, "images")
    y = torch.arange(n) % 2
    x = torch.randint(0, 60, (n, 3, 28, 28), generator=generator)
    x[:, :, 12:16, 8:20] += (60 * y)[:, None, None, None]
    corner = y if told else 1 - y
    x[:, :, :7, :7] = torch.where(corner[:, None, None, None] > 0, 255, x[:, :, :7, :7])
    return Split(x.to(torch.uint8), y, {"corner": corner})


def accuracy(model, split):
    with torch.no_grad():
        return float((model.eval()(split.batch(torch.arange(len(split))).x).argmax(1) == split.y).float().mean())


def test_swap_unlearns_the_mark_that_plain_training_takes():
    against = marked(told=False, seed=1)
    plain = ERM(QUICK).fit(small_network(), marked()).model
    swapped = Swap(cues=(CORNER,), training=QUICK).fit(small_network(), marked()).model
    assert accuracy(plain, marked(seed=2)) == 1 and accuracy(plain, against) < 0.3
    assert accuracy(swapped, against) > 0.9


def test_swap_unlearns_it_in_the_last_layer_alone_and_keeps_plain_training_as_what_was_before():
    features = small_network()  # as drawn: nothing of it was trained
    fit = Swap(cues=(CORNER,), layers="last", l2s=(0.01, 1.0)).fit(features, marked(400), val=marked(100, 3))
    against = marked(told=False, seed=1)
    before, after = accuracy(fit.stages["erm"], against), accuracy(fit.model, against)
    assert after > before + 0.3 and fit.baseline.stage == "erm"
    grid = fit.facts["strengths"]
    assert [row["l2"] for row in grid] == [0.01, 1.0] and fit.facts["chosen_l2"] in (0.01, 1.0)
    assert all(0.5 < row["swapped"] <= 1 and 0.5 < row["ordinary"] <= 1 for row in grid)


def test_in_the_last_layer_every_class_counts_the_same():
    few = torch.cat([torch.arange(0, 400, 2), torch.arange(1, 400, 20)])  # 200 of class 0, 20 of class 1
    rare = marked(400).subset(few)
    method = Swap(cues=(CORNER,), layers="last", l2s=(10.0,))
    against = marked(told=False, seed=1)
    model = method.fit(small_network(), rare).model
    right = (model(against.batch(torch.arange(200)).x).argmax(1) == against.y).float()
    assert abs(float(right[0::2].mean() - right[1::2].mean())) < 0.35  # strong L2 alone would say 0 for all


def test_without_cues_a_biased_model_shows_what_to_swap():
    fit = Swap(training=QUICK, erm=QUICK).fit(small_network(), marked())
    assert fit.baseline.stage == "erm" and 0 < fit.facts["masked_fraction"] < 0.5
    assert accuracy(fit.stages["erm"], marked(told=False, seed=1)) < 0.3


def test_a_configuration_holds_the_cues_of_the_audit_and_not_its_folder(tmp_path):
    (tmp_path / "findings.json").write_text(json.dumps({"cues": [CORNER, "cast"]}))
    config = configure("swap", "biased_mnist", None, 0, [f"audit={tmp_path}", "data.base=mini"])
    assert config.method.cues == (CORNER, "cast") and config.method.audit == ""
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert config == configure("swap", "biased_mnist", None, 0, [f"cues={CORNER},cast", "data.base=mini"])


@pytest.mark.parametrize(
    "written, sentence",
    [
        (None, "holds no finished audit"),
        ({"verdict": "leaks"}, "audited by an older version"),
        ({"cues": []}, "found nothing that can be swapped"),
        ({"cues": ["smell"]}, "Unknown cue 'smell'"),
    ],
)
def test_an_audit_that_has_no_cues_is_refused(tmp_path, written, sentence):
    if written is not None:
        (tmp_path / "findings.json").write_text(json.dumps(written))
    with pytest.raises(UnspurError, match=sentence):
        configure("swap", "biased_mnist", None, 0, [f"audit={tmp_path}"])


def test_the_share_of_copies_is_such_that_a_cue_says_nothing():
    # of two classes half, so that either label has either class's cue as often
    assert Swap(cues=(CORNER,), training=QUICK).fit(small_network(), marked()).facts["share"] == 0.5
    chosen = Swap(cues=(CORNER,), training=QUICK, share=0.25).fit(small_network(), marked())
    assert chosen.facts["share"] == 0.25


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"copies": 0}, "copies must be at least 1 but got 0"),
        ({"share": 1.5}, r"share must lie in \(0, 1\] but got 1.5"),
        ({"l2s": ()}, "l2s needs at least one value"),
        ({"l2s": (0.0,)}, "l2s must be above 0 but got 0.0"),
        ({"cues": ("colr",)}, "Did you mean 'colour'"),
        ({"cues": ("cast",), "audit": "audits/x"}, "either an audit or cues"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, sentence):
    with pytest.raises(UnspurError, match=sentence):
        replace(Swap(), **changes)


def test_strengths_cannot_be_chosen_without_validation_images():
    with pytest.raises(UnspurError, match="needs validation data; hold some out, or name one"):
        Swap(cues=(CORNER,), layers="last").fit(small_network(), marked())


def test_vectors_have_no_cue_to_swap():
    data = Split(torch.zeros(4, 5), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(UnspurError, match="images of 1 or 3 channels only"):
        Swap(cues=("cast",)).fit(nn.Linear(5, 2), data)
