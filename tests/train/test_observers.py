import itertools

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import Diverged
from unspur.train.loop import train
from unspur.train.observers import Dynamics
from unspur.train.recipe import SGD
from unspur.train.session import Session


def split(attributes=True):
    # four aligned samples and two conflicting ones: the attribute mostly equals the label
    y = torch.tensor([0, 0, 1, 1, 0, 1])
    a = torch.tensor([0, 0, 1, 1, 1, 0])
    x = torch.stack([y * 2.0 - 1, a * 2.0 - 1], 1)
    return Split(x, y, {"a": a} if attributes else {})


def model():
    line = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        line.weight.copy_(torch.tensor([[0.0, -1.0], [0.0, 1.0]]))  # looks at the attribute only
    return line


def fit(line, data, observer):
    session = Session(observer=observer)
    train(line, data, SGD(lr=0.1, epochs=2, batch_size=6, momentum=0.0), stage="erm", session=session)
    return session.history["erm"]


def test_an_epochs_line_has_the_losses_by_alignment_and_their_ratio():
    # logits (-a, a): aligned samples lose ln(1 + e^-2), conflicting ones ln(1 + e^2)
    right, wrong = (nn.functional.softplus(torch.tensor(value)).item() for value in (-2.0, 2.0))
    first = fit(model(), split(), Dynamics(split()))[0]
    assert first["aligned_loss"] == pytest.approx(right, rel=1e-5)
    assert first["conflicting_loss"] == pytest.approx(wrong, rel=1e-5)
    assert first["loss_ratio"] == pytest.approx(2 * wrong / (2 * wrong + 4 * right), rel=1e-5)
    assert first["logit_norm"] == pytest.approx(2**0.5, rel=1e-5)


def test_the_ratio_of_every_step_is_noted_and_its_largest():
    session = Session(observer=Dynamics(split()))
    train(model(), split(), SGD(lr=0.1, epochs=2, batch_size=2, momentum=0.0), stage="erm", session=session)
    for line in session.history["erm"]:
        assert len(line["loss_ratios"]) == 3
        assert max(line["loss_ratios"]) == pytest.approx(line["loss_ratio"], abs=1e-4)


def test_each_epoch_has_its_own_figures():
    first, second = fit(model(), split(), Dynamics(split()))
    assert second["conflicting_loss"] < first["conflicting_loss"]
    assert second["parameter_norm"] != first["parameter_norm"]


def test_a_training_that_diverged_leaves_nothing_to_the_next():
    observer = Dynamics(split())
    session, recipe = Session(observer=observer), SGD(lr=0.1, epochs=1, batch_size=2, momentum=0.0)
    losses = itertools.count()

    def diverging(logits, batch):
        return logits.square().sum(1) * (1e20 if next(losses) == 0 else torch.nan)

    with pytest.raises(Diverged):
        train(model(), split(), recipe, stage="erm", session=session, loss=diverging)
    train(model(), split(), recipe, stage="erm-2", session=session)
    alone = Session(observer=Dynamics(split()))
    train(model(), split(), recipe, stage="erm-2", session=alone)
    assert session.history["erm-2"] == alone.history["erm-2"]


def test_without_attributes_only_norms_are_followed():
    line = fit(model(), split(False), Dynamics(split(False)))[0]
    assert set(line) == {"stage", "epoch", "loss", "accuracy", "lr", "logit_norm", "parameter_norm"}


def test_a_subset_is_looked_up_by_its_own_attributes():
    # of the samples 4 and 5 both conflict, whatever samples 0 and 1 of the whole set do
    some = split().subset(torch.tensor([4, 5]))
    line = fit(model(), some, Dynamics(split()))[0]
    assert line["loss_ratio"] == 1.0 and "aligned_loss" not in line


def test_observing_changes_nothing():
    watched, alone = model(), model()
    fit(watched, split(), Dynamics(split()))
    fit(alone, split(), None)
    assert torch.equal(watched.weight, alone.weight)
