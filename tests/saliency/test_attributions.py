import pytest
import torch
from torch import nn
from torch.nn import functional

from unspur.errors import UnspurError
from unspur.models.base import penultimate
from unspur.saliency.attributions import attributions, deeplift, integrated_gradients, neuron_attribution


def network(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))


def images(n=5):
    return torch.rand(n, 3, 2, 2, generator=torch.Generator().manual_seed(1))


def by_hand(model, x, target, steps=2000):
    """(x - 0) times the mean gradient at the middles of many short pieces of the path."""
    total = torch.zeros_like(x)
    for step in range(steps):
        point = (x * (step + 0.5) / steps).requires_grad_()
        score = model(point).gather(1, target[:, None]).sum()
        total += torch.autograd.grad(score, point)[0]
    return x * total / steps


def test_integrated_gradients_are_the_mean_gradient_along_the_path_times_the_input():
    model, x = network(), images()
    target = torch.tensor([0, 1, 2, 0, 1])
    found = integrated_gradients(model, x, target=target, steps=200)
    assert torch.allclose(found, by_hand(model, x, target), atol=2e-3)


@pytest.mark.parametrize("kind", ["integrated_gradients", "deeplift"])
def test_attributions_add_up_to_the_difference_from_black(kind):
    model, x = network(), images()
    with torch.no_grad():
        predicted = model(x).argmax(1)
        difference = (model(x) - model(torch.zeros_like(x))).gather(1, predicted[:, None]).squeeze(1)
    total = attributions(kind, model, x).flatten(1).sum(1)
    assert torch.allclose(total, difference, atol=1e-5 if kind == "deeplift" else 2e-2)


@pytest.mark.parametrize("kind", ["integrated_gradients", "deeplift"])
def test_the_size_of_a_batch_changes_nothing(kind):
    model, x = network(), images(7)
    assert torch.allclose(attributions(kind, model, x, batch_size=2), attributions(kind, model, x), atol=1e-6)


def test_no_more_points_than_the_batch_size_pass_at_once():
    model, sizes = network(), []
    handle = model.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    integrated_gradients(model, images(7), steps=10, batch_size=3)
    handle.remove()
    assert max(sizes) <= 3


class Shared(nn.Module):
    """One ReLU used twice and one that is a function, as in residual networks."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.one(x))
        x = x + self.relu(self.two(x))
        return self.head(functional.relu(x - 0.5))


def test_deeplift_works_where_one_relu_serves_twice():
    model, x = Shared(), torch.rand(4, 4)
    with torch.no_grad():
        predicted = model(x).argmax(1)
        difference = (model(x) - model(torch.zeros(1, 4))).gather(1, predicted[:, None]).squeeze(1)
    assert torch.allclose(deeplift(model, x).sum(1), difference, atol=1e-5)
    assert [name for name, _ in model.named_children()] == ["one", "two", "head", "relu"]  # the model is untouched


def test_deeplift_says_so_where_it_has_no_rule():
    with torch.random.fork_rng():
        torch.manual_seed(0)  # with other weights the sums may happen to be right
        model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 2))
        x = torch.rand(4, 4)
    with torch.no_grad():
        model[0].weight.mul_(10)
    with pytest.raises(UnspurError, match="do not add up"):
        deeplift(model, x)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_deeplift_says_so_where_it_cannot_follow():
    with pytest.raises(UnspurError, match="cannot follow this network"):
        deeplift(Branching(), torch.rand(4, 4))


def test_a_neurons_attribution_explains_its_activation():
    model, x = network(), images()
    with torch.no_grad():
        active = penultimate(model, x)
        neuron = int(active.mean(0).argmax())
        rise = active[:, neuron] - penultimate(model, torch.zeros_like(x))[:, neuron]
    found = neuron_attribution(model, x, neuron, steps=200)
    assert torch.allclose(found.flatten(1).sum(1), rise, atol=1e-2)


def test_a_neuron_that_does_not_exist_is_refused():
    with pytest.raises(UnspurError, match="neurons 0 to 7, but got 8"):
        neuron_attribution(network(), images(), 8)


def test_the_model_is_left_as_it_was():
    model = network().train()
    for kind in ("integrated_gradients", "deeplift"):
        attributions(kind, model, images())
    assert model.training and all(p.grad is None and p.requires_grad for p in model.parameters())
