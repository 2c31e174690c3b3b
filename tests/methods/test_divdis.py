import math

import pytest
import torch
from torch import nn

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods import divdis
from unspur.methods.divdis import DivDis
from unspur.methods.erm import ERM
from unspur.parts.diverse_heads import ManyHeads, disputed, divergence, mutual_information, shared_information
from unspur.train.loop import measure
from unspur.train.recipe import SGD
from unspur.train.session import Session

RECIPE = SGD(lr=0.02, epochs=8, batch_size=64)


def other(n=400, seed=4):
    """Images of which half go against the shortcut."""
    return shortcut(n, conflicting=n // 2, seed=seed)


def test_mutual_information_is_the_definition_written_as_a_loop():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(9, 3, generator=generator).softmax(1) for _ in range(2))
    total = 0.0
    for i in range(3):
        for j in range(3):
            joint = float(sum(a[n, i] * b[n, j] for n in range(9)) / 9)
            total += joint * math.log(joint / float(a[:, i].mean() * b[:, j].mean()))
    assert float(mutual_information(a, b)) == pytest.approx(total, rel=1e-4)


def test_heads_that_answer_independently_share_nothing_and_opposite_ones_as_much_as_equal_ones():
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert float(mutual_information(sure, sure[[0, 2, 1, 3]])) == pytest.approx(0, abs=1e-6)
    # so that disagreement alone, which one head gains by always saying the opposite, is not what is sought
    assert torch.isclose(mutual_information(sure, 1 - sure), mutual_information(sure, sure))
    assert torch.isclose(shared_information(torch.stack([sure, sure, sure])), mutual_information(sure, sure))


def test_the_divergence_is_that_of_mean_answers_from_the_labels_shares():
    chance = torch.tensor([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]])
    labels = torch.tensor([0.5, 0.5])
    # the second head's mean is 3/4, 1/4: 3/4 log 3/2 + 1/4 log 1/2; the first's costs nothing
    expected = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2
    assert float(divergence(chance, labels)) == pytest.approx(expected, rel=1e-5)


def test_the_objective_fits_all_heads_on_labels_and_separates_them_on_other_images_alone(monkeypatch):
    data, val, model, found = shortcut(30), other(50), network().eval(), {}
    monkeypatch.setattr(divdis, "train_model", lambda many, *given, **rest: found.update(rest, many=many))
    DivDis(information=2.0, shares=3.0).fit(model, data, val=val)
    many, batch = found["many"].eval(), data.batch(torch.arange(30))
    torch.manual_seed(1)
    loss = found["objective"](many, batch, 0).loss
    torch.manual_seed(1)
    chance = many.logits(many, val.x[torch.randint(50, (30,))]).softmax(2)
    logits = many.logits(many, batch.x)
    fitted = sum(nn.functional.cross_entropy(head, batch.y) for head in logits) / 2
    labels = torch.bincount(data.y) / 30
    expected = fitted + 2.0 * mutual_information(chance[0], chance[1]) + 3.0 * divergence(chance, labels)
    assert torch.isclose(loss, expected, atol=1e-5)


def test_the_images_that_choose_are_those_on_which_heads_differ_most():
    chance = torch.tensor([[[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9], [0.4, 0.6]]])
    assert disputed(chance, 2).tolist() == [1, 2]


def test_the_images_that_are_asked_for_are_the_disputed_ones_and_not_the_first(monkeypatch):
    val, asked = other(), []
    monkeypatch.setattr(divdis, "disputed", lambda chance, count: asked.append(count) or torch.tensor([len(val) - 1]))
    fit = DivDis(training=SGD(epochs=1, batch_size=64), labels=5).fit(network(), shortcut(), val=val)
    assert asked == [5]
    assert set(fit.facts["head_accuracies"]) <= {0.0, 1.0}  # of that one image


def test_the_chosen_head_becomes_the_networks_own():
    many = ManyHeads(network().eval(), 3, seed=0)
    x = torch.randn(5, 7)
    before = many.logits(many, x)
    many.give_head(2)
    assert torch.allclose(many.network(x), before[2], atol=1e-5)


def test_one_head_takes_the_shortcut_and_the_one_that_a_few_labels_choose_does_not():
    data, val = shortcut(), other()
    plain, fit = ERM(erm=RECIPE).fit(network(), data), DivDis(training=RECIPE).fit(network(), data, val=val)
    test = shortcut(1000, 1000, seed=2)
    before, after = (measure(one.model, test, Session())[0] for one in (plain, fit))
    assert after > before + 0.2


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match="divdis needs validation images, on which its heads are to differ"):
        DivDis().fit(network(), shortcut())
    with pytest.raises(UnspurError, match="heads must be at least 2 but got 1"):
        DivDis(heads=1)
