import copy
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import network, shortcut
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods.dcwp import DCWP, UP, Tuning
from unspur.models.base import with_features
from unspur.parts.contrastive import alignment
from unspur.parts.debias import Debias, MaskTraining
from unspur.parts.mining import GCE, EarlyStopped, EpochEnsemble, Mined, upweighted
from unspur.parts.pruning import pruned_warnings
from unspur.train.loop import train
from unspur.train.losses import cross_entropy
from unspur.train.recipe import Adam
from unspur.train.session import Session

TRAINING = Adam(lr=0.01, epochs=3, batch_size=64)
SMALL = DCWP(
    mining=GCE(training=TRAINING),
    erm=TRAINING,
    masks=MaskTraining(steps=60, lr=0.05, batch_size=64, up=20, l1=1e-3),
    tuning=Tuning(steps=60, batch_size=64, up=20, every=20),
)


@pytest.fixture(scope="module")
def fit():
    return SMALL.fit(network(), shortcut(), seed=0)


def masks(fit):
    return {name.removeprefix("mask."): mask for name, mask in fit.artifacts.items() if name.startswith("mask.")}


def accuracy(model, split):
    return float((model.eval()(split.x).argmax(1) == split.y).double().mean())


def test_the_result_is_an_ordinary_model_with_zeros_where_its_masks_say(fit):
    assert list(fit.model.state_dict()) == list(network().state_dict()) and type(fit.model[0]) is nn.Linear
    assert set(masks(fit)) == {"0.weight", "3.weight"}
    for name, mask in masks(fit).items():
        assert not fit.model.get_parameter(name)[~mask].any() and (~mask).any()
        assert fit.model.get_parameter(name)[mask].all()
    assert all(parameter.requires_grad for parameter in fit.model.parameters())


def test_the_pruned_stage_is_the_pretrained_model_without_some_weights_and_fine_tuning_does_not_reset(fit):
    erm, cut = fit.stages["erm"], fit.stages["pruned"]
    for name, value in erm.named_parameters():
        mask = masks(fit).get(name, torch.ones_like(value, dtype=torch.bool))
        assert torch.equal(cut.get_parameter(name), value * mask), name
    distance = {
        stage: sum((p - q).abs().sum().item() for p, q in zip(fit.model.parameters(), other.parameters(), strict=True))
        for stage, other in {"pruned": cut, "initial": network()}.items()
    }
    assert distance["pruned"] < distance["initial"] / 3


def test_pruning_and_fine_tuning_repair_the_shortcut(fit):
    test = shortcut(2000, conflicting=1000, seed=2)  # tells nothing
    before, after = accuracy(fit.stages["erm"], test), accuracy(fit.model, test)
    assert before < 0.75 < 0.85 < after


def test_the_kept_share_is_told_layer_by_layer(fit):
    kept = fit.facts["kept_by_layer"]
    assert kept == {name: mask.double().mean().item() for name, mask in masks(fit).items()}
    total = torch.cat([mask.flatten() for mask in masks(fit).values()])
    assert fit.facts["kept"] == pytest.approx(total.double().mean().item()) and 0 < fit.facts["kept"] < 1


def test_the_mined_samples_are_told(fit):
    mined = fit.artifacts["mined"]
    assert fit.facts["mined"] == len(mined) == sum(fit.facts["mined_by_class"])
    assert fit.facts["mined_by_class"] == torch.bincount(shortcut().y[mined], minlength=2).tolist()
    assert (mined < 30).double().mean() > 0.8  # most of what is mined conflicts
    assert list(fit.warnings) == []


def test_the_weights_are_chosen_by_mined_validation_samples():
    session, val = Session(), shortcut(seed=1)
    hasty = replace(SMALL, masks=replace(SMALL.masks, steps=2), tuning=replace(SMALL.tuning, lr=0.03))
    fit = hasty.fit(network(), shortcut(), val=val, seed=0, session=session)
    lines, selection = session.history["tuning"], fit.facts["selection"]
    assert [line["step"] for line in lines] == [20, 40, 60]
    (chosen,) = [line for line in lines if line["step"] == selection["step"]]
    assert chosen["val_mined_loss"] == selection["loss"] < lines[-1]["val_mined_loss"]
    mined = val.subset(fit.artifacts["mined_val"])
    loss = nn.functional.cross_entropy(fit.model.eval()(mined.x), mined.y).item()
    assert loss == pytest.approx(selection["loss"], rel=1e-5)
    assert selection["loss_before"] > selection["loss_after"] == selection["loss"]


def test_without_pruning_the_pretrained_network_is_not_a_candidate():
    wild = replace(SMALL, prune=False, tuning=replace(SMALL.tuning, lr=100.0))
    fit = wild.fit(network(), shortcut(), val=shortcut(seed=1), seed=0)
    assert fit.facts["selection"]["step"] > 0


def test_where_fine_tuning_only_harms_the_pruned_network_is_the_result():
    wild = replace(SMALL, tuning=replace(SMALL.tuning, lr=100.0))
    fit = wild.fit(network(), shortcut(), val=shortcut(seed=1), seed=0)
    assert fit.facts["selection"]["step"] == 0
    pruned = fit.stages["pruned"].state_dict()
    assert all(torch.equal(value, pruned[name]) for name, value in fit.model.state_dict().items())


def test_without_validation_data_the_last_weights_are_taken_and_the_result_says_so():
    fit = SMALL.fit(network(), shortcut(), seed=0)
    assert fit.facts["selection"] == {"by": "the last step", "why": "There is no validation set."}


def test_mask_training_logs_its_terms_and_the_kept_share():
    session = Session()
    replace(SMALL, tuning=replace(SMALL.tuning, align=0.0)).fit(network(), shortcut(), seed=0, session=session)
    lines = session.history["masks"]
    assert [line["step"] for line in lines] == list(range(3, 61, 3))  # twenty times in 60 steps
    assert set(lines[0]) == {"stage", "step", "loss", "cross_entropy", "alignment", "sparsity", "lr", "kept"}
    assert set(session.history["tuning"][0]) == {"stage", "step", "loss", "cross_entropy", "lr"}


def test_mask_training_logs_how_the_network_pruned_so_far_does_on_validation_data_and_learns_the_same(fit):
    session, val = Session(), shortcut(seed=1)
    other = SMALL.fit(network(), shortcut(), val=val, seed=0, session=session)
    line = session.history["masks"][-1]
    assert 0 <= line["val_mined_accuracy"] <= 1 and 0 <= line["val_other_accuracy"] <= 1
    unseen = SMALL.fit(network(), shortcut(), seed=0)
    assert all(torch.equal(mask, masks(unseen)[name]) for name, mask in masks(other).items())


def test_without_pruning_it_is_fine_tuning_alone(fit):
    fine = replace(SMALL, prune=False).fit(network(), shortcut(), val=shortcut(seed=1), seed=0)
    assert set(fine.stages) == {"erm"} and not masks(fine)
    assert fine.facts["kept"] == 1.0 and fine.facts["kept_by_layer"] == {}
    assert all(p.all() for p in fine.model.parameters())
    same = zip(fine.stages["erm"].state_dict().values(), fit.stages["erm"].state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)


@pytest.mark.parametrize(
    "change",
    [
        {"masks": replace(SMALL.masks, up=1.0)},
        {"masks": replace(SMALL.masks, align=0.0)},
        {"masks": replace(SMALL.masks, penalise="theta")},
        {"tuning": replace(SMALL.tuning, up=1.0)},
        {"tuning": replace(SMALL.tuning, align=0.0)},
        {"mining": EarlyStopped(training=replace(TRAINING, epochs=1))},
        {"mining": EpochEnsemble(score=0.5, training=TRAINING)},
        {"reading": "group"},
        {"temperature": 0.5},
    ],
    ids=str,
)
def test_every_switch_of_table_2_and_every_reading_changes_the_result(change, fit):
    other = replace(SMALL, **change).fit(network(), shortcut(), seed=0)
    assert any(not torch.equal(a, b) for a, b in zip(other.model.parameters(), fit.model.parameters(), strict=True))


def test_a_layer_that_is_pruned_whole_is_warned_of():
    strong = replace(SMALL.masks, l1=100.0, lr=1.0, steps=10)
    fit = replace(SMALL, masks=strong, tuning=replace(SMALL.tuning, steps=2)).fit(network(), shortcut(), seed=0)
    assert fit.facts["kept"] == 0.0
    assert [warning.split(":")[0] for warning in fit.warnings] == [
        "Nothing is left of 0.weight",
        "Nothing is left of 3.weight",
    ]


def test_a_class_of_which_nothing_is_mined_is_warned_of():
    whole = shortcut()
    keep = (torch.arange(len(whole)) >= 30) | (whole.y == 1)  # class 0 always follows the shortcut
    fit = SMALL.fit(network(), whole.subset(keep.nonzero().squeeze(1)), seed=0)
    assert fit.facts["mined_by_class"][0] == 0 < fit.facts["mined_by_class"][1]
    assert list(fit.warnings) == ["No sample of class 0 was mined, so none of it is drawn more often."]


def test_a_class_that_the_biased_model_gave_up_is_warned_of():
    y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    mined = torch.tensor([True, False, False, False, True, True, True, False])  # 25 % of class 0, 75 % of class 1
    (said,) = Mined(mined, None, y).warnings()
    assert said.startswith("Most of class 1 (75 %) was mined: the biased model gave that up")


def test_many_classes_of_which_nothing_is_mined_are_one_sentence():
    # 500 classes with 3 samples each, of which the first is mined in class 0 alone: 499 classes without any
    y = torch.arange(1500) % 500
    assert Mined(torch.arange(1500) == 0, None, y).warnings() == [
        "No sample of classes 1, 2, 3, 4, 5 and 494 more was mined, so none of it is drawn more often."
    ]


def test_classes_of_which_nothing_is_mined_are_named_where_their_names_are_known():
    mined = Mined(torch.tensor([False, False, True, True]), None, torch.tensor([0, 0, 1, 1]))
    none, most = mined.warnings(("benign", "melanoma"))
    assert none.startswith("No sample of class 'benign' was mined")
    assert most.startswith("Most of class 'melanoma' (100 %) was mined")


def test_masks_that_keep_every_weight_are_warned_of():
    # theta begins at 1.5 and moves by at most lr = 0.01 a step: after 3 steps it is at least 1.47 everywhere
    fit = replace(SMALL, masks=replace(SMALL.masks, steps=3, lr=0.01, start=1.5)).fit(network(), shortcut(), seed=0)
    assert fit.facts["kept"] == 1.0
    assert fit.warnings[0].startswith("The masks keep every weight, so that nothing was pruned")


def test_masks_that_keep_nearly_every_weight_are_warned_of():
    kept = {"a": torch.ones(1000, dtype=torch.bool), "b": torch.arange(1000) > 15}  # 1,984 of 2,000
    (said,) = pruned_warnings(kept)
    assert said.startswith("The masks keep 99.2 % of the weights, so that next to nothing was pruned; to prune more")
    assert pruned_warnings({**kept, "b": torch.arange(1000) > 25}) == []  # 98.7 %


def test_a_batch_without_a_pair_does_not_stop_the_training():
    small = replace(SMALL.masks, batch_size=2), replace(SMALL.tuning, batch_size=2)
    fit = replace(SMALL, masks=small[0], tuning=small[1]).fit(network(), shortcut(), seed=0)
    assert all(torch.isfinite(p).all() for p in fit.model.parameters())
    # The result names it. Two samples make a pair when both are mined and of one class: most batches have none.
    words = r"In (\d+) of 60 batches of stage '(\w+)' there was no pair to align: the cross-entropy alone counted\."
    found = [re.fullmatch(words, warning) for warning in fit.warnings]
    assert [match[2] for match in found] == ["masks", "tuning"]
    assert all(30 < int(match[1]) < 60 for match in found)


def test_without_an_alignment_loss_there_is_no_pair_to_miss():
    off = {"batch_size": 2, "align": 0.0}
    fit = replace(SMALL, masks=replace(SMALL.masks, **off), tuning=replace(SMALL.tuning, **off)).fit(
        network(), shortcut(), seed=0
    )
    assert list(fit.warnings) == []


def test_nothing_mined_stops_before_the_long_training():
    session, train = Session(), shortcut(conflicting=0)
    long = replace(SMALL, mining=EarlyStopped(training=replace(TRAINING, epochs=40)))
    with pytest.raises(UnspurError, match="Mining found no bias-conflicting sample among 600"):
        long.fit(network(), train, seed=0, session=session)
    assert "erm" not in session.history


def test_everything_mined_stops_too():
    # Class 1 alone, and a network that says class 0 and hardly learns: all wrong.
    model = network()
    with torch.no_grad():
        model[3].bias.copy_(torch.tensor([100.0, -100.0]))
    x = torch.randn(20, 7, generator=torch.Generator().manual_seed(0))
    with pytest.raises(UnspurError, match="Mining took all 20 samples"):
        replace(SMALL, mining=GCE(training=replace(TRAINING, lr=1e-30, epochs=1))).fit(
            model, Split(x, torch.ones(20).long()), seed=0
        )


def test_a_model_without_prunable_weights_stops_before_anything_is_trained():
    with pytest.raises(UnspurError, match="Flatten has no convolution"):
        SMALL.fit(nn.Flatten(), shortcut(), seed=0)


def test_a_model_without_features_to_align_stops_before_anything_is_trained_and_runs_without_that_loss():
    def convolving():
        return nn.Sequential(nn.Unflatten(1, (7, 1, 1)), nn.Conv2d(7, 2, 1), nn.Flatten())

    session = Session()
    with pytest.raises(UnspurError, match="does not end in a linear layer"):
        SMALL.fit(convolving(), shortcut(), seed=0, session=session)
    assert not session.history
    off = {"align": 0.0}
    SMALL.check(network(), shortcut())
    replace(SMALL, masks=replace(SMALL.masks, **off), tuning=replace(SMALL.tuning, **off)).check(
        convolving(), shortcut()
    )


def test_fine_tuning_alone_needs_nothing_to_prune():
    replace(SMALL, prune=False, tuning=replace(SMALL.tuning, align=0.0)).check(nn.Flatten(), shortcut())


@pytest.mark.parametrize(
    "settings", [{"up": 0.5}, {"up": float("inf")}, {"align": -1.0}, {"l1": -1e-8}, {"noise": 0.0}]
)
def test_settings_of_the_masks_out_of_range_are_refused(settings):
    with pytest.raises(UnspurError, match=f"masks.{next(iter(settings))} must be"):
        MaskTraining(**settings)


@pytest.mark.parametrize("settings", [{"up": 0.0}, {"align": float("nan")}, {"every": 0}, {"steps": 0}])
def test_settings_of_the_fine_tuning_out_of_range_are_refused(settings):
    with pytest.raises(UnspurError, match=f"tuning.{next(iter(settings))} must be"):
        Tuning(**settings)


def test_a_temperature_that_is_not_positive_is_refused():
    with pytest.raises(UnspurError, match="temperature must be positive but got 0"):
        DCWP(temperature=0)


def test_in_the_scripts_order_about_a_third_of_what_is_drawn_is_mined_at_every_ratio():
    counts = {0.5: 249, 1.0: 491, 2.0: 986, 5.0: 2449}  # of 55,000 (E.1)
    printed = dict(zip(UP, reversed(UP.values()), strict=True))

    def share(order, percent):
        mined = torch.arange(55_000) < counts[percent]
        return upweighted(mined, order[percent])[mined].sum().item()

    # 80 * 249 = 19,920 of 19,920 + 54,751: 27 %; then 24,550 of 79,059, 29,580 of 83,594 and 24,490 of 77,041
    assert [round(share(UP, percent), 2) for percent in UP] == [0.27, 0.31, 0.35, 0.32]
    assert [round(share(printed, percent), 2) for percent in UP] == [0.04, 0.21, 0.48, 0.79]


def test_equation_17_adds_lambda_align_times_the_alignment_loss():
    split, model = shortcut(), network()
    mined = torch.arange(len(split)) < 20
    batch = split.batch(torch.arange(64))
    found = Debias(mined, "sample", 0.5).objective(0.3)(model, batch, 0)
    terms = found.logged
    assert torch.equal(found.loss, terms["cross_entropy"] + terms["alignment"])
    features, logits = with_features(model, batch.x)
    assert torch.equal(terms["cross_entropy"], cross_entropy(logits, batch).mean())
    assert (
        torch.allclose(terms["alignment"], 0.3 * alignment(features, batch, mined[:64], 0.5)) and terms["alignment"] > 0
    )


def test_what_the_paper_leaves_open_is_as_stated():
    method = DCWP()
    assert [part.batch_size for part in (method.mining.training, method.erm, method.masks, method.tuning)] == [256] * 4
    assert (method.temperature, method.tuning.steps, method.tuning.up) == (0.07, 1000, 50)


def test_the_model_that_mines_leaves_the_main_one_alone(fit):
    # The same pretraining without any mining before it.
    model = copy.deepcopy(network())
    train(model, shortcut(), TRAINING, stage="erm", session=Session())
    same = zip(model.state_dict().values(), fit.stages["erm"].state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)
