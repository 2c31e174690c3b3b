"""L1, focal loss, adaptive SAM and the Kronecker-preconditioned optimiser, through the shared loop."""

import importlib.util
import resource

import pytest
import torch
from torch import nn

from unspur.data.base import Batch, Split
from unspur.errors import UnspurError
from unspur.methods.dcwp import DCWP
from unspur.methods.erm import ERM
from unspur.parts.mining import GCE
from unspur.train.loop import train
from unspur.train.losses import cross_entropy, focal
from unspur.train.recipe import SGD, Kron
from unspur.train.session import Session
from unspur.train.sharpness import ETA, ascended
from watching import Watch


def points(n=40):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    return Split(x, (x[:, 0] > 0).long())


def line():
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.1, -0.2, 0.3], [0.0, 0.5, -0.6]]))
        model.bias.copy_(torch.tensor([0.05, -0.1]))
    return model


def fit(model, recipe, split=None, session=None, **more):
    train(model, split or points(), recipe, stage="erm", session=session or Session(), **more)
    return model


def test_l1_adds_the_sum_of_magnitudes_to_the_loss():
    # one step of plain SGD on mean cross-entropy + 0.1 * sum |w|, by autograd
    model, split = line(), points()
    loss = nn.functional.cross_entropy(model(split.x), split.y)
    loss = loss + 0.1 * sum(parameter.abs().sum() for parameter in model.parameters())
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    expected = [p.detach() - 0.5 * g for p, g in zip(model.parameters(), gradients, strict=True)]
    fit(model, SGD(lr=0.5, epochs=1, batch_size=40, momentum=0.0, l1=0.1))
    assert all(torch.allclose(p, e, atol=1e-6) for p, e in zip(model.parameters(), expected, strict=True))


def test_focal_loss_counts_by_what_is_missing_to_certainty():
    # p of the label: softmax(0, ln 3) = 3/4 and 1/4; gamma 2: (1/4)^2 ln(4/3), (3/4)^2 ln 4
    logits = torch.tensor([[1.0, 3.0], [3.0, 1.0]]).log()
    batch = Batch(torch.zeros(2, 1), torch.tensor([1, 1]), torch.arange(2))
    p = torch.tensor([0.75, 0.25])
    assert torch.allclose(focal(2.0)(logits, batch), (1 - p) ** 2 * -p.log(), atol=1e-6)
    assert torch.allclose(focal(0.0)(logits, batch), cross_entropy(logits, batch))


@pytest.mark.parametrize("gamma", [0.001, 0.5, 25.0])
def test_focal_loss_has_a_finite_gradient_where_the_model_is_certain(gamma):
    logits = torch.tensor([[0.0, 200.0], [200.0, 0.0]], requires_grad=True)
    focal(gamma)(logits, Batch(torch.zeros(2, 1), torch.tensor([1, 1]), torch.arange(2))).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_erm_minimises_the_focal_loss_when_asked():
    recipe = SGD(lr=0.5, epochs=1, batch_size=40, momentum=0.0)
    asked, plain, expected = line(), line(), line()
    ERM(recipe, focal=2.0).fit(asked, points())
    ERM(recipe).fit(plain, points())
    fit(expected, recipe, loss=focal(2.0))
    assert torch.equal(asked.weight, expected.weight) and not torch.equal(asked.weight, plain.weight)


def test_the_ascent_is_the_worst_step_in_units_of_each_weight():
    # w = (2, -1), g = (3, 4): T = (2 + eta, 1 + eta), step rho T^2 g / |T g|
    model = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, -1.0]]))
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    size, gradient = torch.tensor([[2 + ETA, 1 + ETA]]), torch.tensor([[3.0, 4.0]])
    expected = model.weight.detach() + 0.5 * size**2 * gradient / (size * gradient).norm()
    with ascended(model, 0.5):
        assert torch.allclose(model.weight, expected)
    assert torch.equal(model.weight, torch.tensor([[2.0, -1.0]]))


def test_an_asam_step_uses_the_gradient_from_the_ascended_weights():
    model, split = line(), points()
    gradients = torch.autograd.grad(nn.functional.cross_entropy(model(split.x), split.y), list(model.parameters()))
    sizes = [model.weight.detach().abs() + ETA, torch.ones(2)]
    norm = sum(((s * g) ** 2).sum() for s, g in zip(sizes, gradients, strict=True)).sqrt()
    up = [
        (p + 0.3 * s**2 * g / norm).detach().requires_grad_()
        for p, s, g in zip(model.parameters(), sizes, gradients, strict=True)
    ]
    again = torch.autograd.grad(nn.functional.cross_entropy(split.x @ up[0].T + up[1], split.y), up)
    expected = [p.detach() - 0.5 * g for p, g in zip(model.parameters(), again, strict=True)]
    fit(model, SGD(lr=0.5, epochs=1, batch_size=40, momentum=0.0, asam=0.3))
    assert all(torch.allclose(p, e, atol=1e-6) for p, e in zip(model.parameters(), expected, strict=True))


def test_asam_leaves_the_statistics_of_batch_norm_to_the_weights_that_are_kept():
    def network():
        torch.nn.init.constant_((first := nn.Linear(3, 2)).weight, 0.5)
        return nn.Sequential(first, nn.BatchNorm1d(2), nn.Linear(2, 2))

    models = {asam: network() for asam in (0.0, 5.0)}
    for model in models.values():
        model.load_state_dict(models[0.0].state_dict())
    means, counts = [], []

    def look(moment):
        means.append(model[1].running_mean.clone())
        counts.append(int(model[1].num_batches_tracked))

    for asam, model in models.items():
        fit(model, SGD(lr=0.1, epochs=1, batch_size=40, asam=asam), carry=[Watch(look)])
    # one step: the statistics are those of the one pass at the weights before it, twice the same
    assert torch.equal(*means) and counts == [1, 1]
    assert not torch.equal(models[0.0][0].weight, models[5.0][0].weight)


def test_kron_resumes_to_the_same_bits(tmp_path):
    pytest.importorskip("pytorch_optimizer")
    recipe = Kron(lr=0.01, epochs=3, batch_size=10, weight_decay=0.1)
    whole = fit(line(), recipe)

    def stop(moment):
        if moment.step == 6:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(line(), recipe, session=Session(folder=tmp_path), carry=[Watch(stop)])
    resumed = fit(line(), recipe, session=Session(folder=tmp_path), carry=[Watch(lambda moment: None)])
    assert torch.equal(whole.weight, resumed.weight)
    assert not torch.equal(whole.weight, line().weight)


@pytest.mark.parametrize("method", [ERM(erm=Kron()), DCWP(mining=GCE(training=Kron()))], ids=["own", "of a part"])
@pytest.mark.parametrize("lacks", ["pytorch_optimizer", "opt_einsum"])
def test_kron_without_a_package_says_what_to_install_before_anything_is_trained(monkeypatch, lacks, method):
    if lacks == "opt_einsum":
        monkeypatch.setattr(torch.backends.opt_einsum, "is_available", lambda: False)
    else:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == lacks else find(name))
    split = Split(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(UnspurError, match=r"pip install 'unspur\[kron\]'"):
        method.require(line(), split)


def test_kron_takes_no_more_memory_than_its_factors_on_a_convolution():
    pytest.importorskip("pytorch_optimizer")
    # 3 x 3 filters between 128 channels: from left to right the factors are 128 x 128 x 128 x 128 numbers, 1 GB
    layer = nn.Conv2d(128, 128, 3)
    optimiser = Kron().optimiser(layer.parameters())
    layer(torch.zeros(1, 128, 3, 3)).sum().backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    optimiser.step()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
