from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods.dcwp import DCWP, Tuning
from unspur.methods.mrm import MRM
from unspur.parts.debias import MaskTraining
from unspur.parts.mining import GCE
from unspur.train.recipe import Adam
from unspur.train.session import Session

TRAINING = Adam(lr=0.01, epochs=3, batch_size=64)
MASKS = MaskTraining(steps=40, lr=0.05, batch_size=64, up=20, l1=1e-3)
PLAIN = MRM(erm=TRAINING, masks=MASKS)
DEBIASED = replace(PLAIN, debias=True, mining=GCE(training=TRAINING))


def masks(fit):
    return {name.removeprefix("mask."): mask for name, mask in fit.artifacts.items() if name.startswith("mask.")}


def test_what_is_left_is_reset_to_its_initial_weights():
    still = replace(PLAIN, erm=replace(TRAINING, epochs=0))  # neither training changes anything: the reset is left
    fit = still.fit(network(), shortcut(), seed=0)
    for name, value in network().named_parameters():
        mask = masks(fit).get(name, torch.ones_like(value, dtype=torch.bool))
        assert torch.equal(fit.model.get_parameter(name), value * mask), name


def test_the_second_training_holds_pruned_weights_at_zero():
    session = Session()
    fit = PLAIN.fit(network(), shortcut(), seed=0, session=session)
    assert [line["epoch"] for line in session.history["retraining"]] == [1, 2, 3]
    for name, mask in masks(fit).items():
        assert torch.equal(fit.model.get_parameter(name) != 0, mask) and (~mask).any()
    # The stage before the reset has the pretrained weights.
    cut = fit.stages["pruned"].get_parameter("0.weight")
    assert torch.equal(cut, fit.stages["erm"].get_parameter("0.weight") * masks(fit)["0.weight"])


def test_the_second_training_can_take_other_epochs_than_the_first():
    session = Session()
    replace(PLAIN, epochs_again=2).fit(network(), shortcut(), seed=0, session=session)
    assert [len(session.history[stage]) for stage in ("erm", "retraining")] == [3, 2]
    with pytest.raises(UnspurError, match="epochs_again must be at least 1 but got 0"):
        replace(PLAIN, epochs_again=0)


def test_equation_12_draws_all_samples_alike_and_neither_mines_nor_aligns():
    session = Session()
    fit = PLAIN.fit(network(), shortcut(), seed=0, session=session)
    assert set(session.history) == {"erm", "masks", "retraining"}
    assert {"val_accuracy", "alignment"}.isdisjoint(session.history["masks"][0]) and "mined" not in fit.artifacts
    changed = replace(PLAIN, masks=replace(MASKS, up=5, align=1.0)).fit(network(), shortcut(), seed=0)
    assert all(torch.equal(masks(fit)[name], mask) for name, mask in masks(changed).items())


def test_mask_training_logs_the_accuracy_on_validation_data():
    session = Session()
    PLAIN.fit(network(), shortcut(), val=shortcut(seed=1), seed=0, session=session)
    assert 0.5 < session.history["masks"][0]["val_accuracy"] <= 1


def test_mrm_debias_has_the_masks_of_dcwp_and_resets():
    fit = DEBIASED.fit(network(), shortcut(), seed=0)
    dcwp = DCWP(mining=DEBIASED.mining, erm=TRAINING, masks=MASKS, tuning=Tuning(steps=1, batch_size=2))
    theirs = dcwp.fit(network(), shortcut(), seed=0)
    assert all(torch.equal(masks(fit)[name], mask) for name, mask in masks(theirs).items())
    assert torch.equal(fit.artifacts["mined"], theirs.artifacts["mined"])
    assert fit.facts["mined"] == theirs.facts["mined"] and fit.facts["kept"] == theirs.facts["kept"]
    plain = PLAIN.fit(network(), shortcut(), seed=0)
    assert any(not torch.equal(masks(fit)[name], mask) for name, mask in masks(plain).items())


def test_nothing_mined_is_said_with_debias_and_does_not_matter_without():
    nothing = replace(DEBIASED, mining=GCE(training=replace(TRAINING, epochs=60)))
    with pytest.raises(UnspurError, match="found no bias-conflicting sample"):
        nothing.fit(network(), shortcut(conflicting=0), seed=0)
    replace(nothing, debias=False).fit(network(), shortcut(conflicting=0), seed=0)


def test_a_model_that_cannot_be_pruned_or_aligned_stops_before_anything_is_trained():
    convolving = nn.Sequential(nn.Unflatten(1, (7, 1, 1)), nn.Conv2d(7, 2, 1), nn.Flatten())
    PLAIN.check(convolving, shortcut())  # Eq. 12 aligns nothing
    for method, model, words in ((PLAIN, nn.Flatten(), "no convolution"), (DEBIASED, convolving, "a linear layer")):
        session = Session()
        with pytest.raises(UnspurError, match=words):
            method.fit(model, shortcut(), seed=0, session=session)
        assert not session.history


def test_a_temperature_that_is_not_positive_is_refused():
    with pytest.raises(UnspurError, match="temperature must be positive but got 0"):
        MRM(temperature=0)
