import pytest
import torch
from torch import nn

from unspur.errors import UnspurError
from unspur.metrics.landscape import landscape


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


def test_a_step_moves_each_filter_by_its_own_norm():
    solution = model()
    kept = solution[0].weight.detach().flatten(1).clone()

    def moved(network):
        # at (a, 0) each filter is w + a d with |d| = |w|
        away = (network[0].weight.detach().flatten(1) - kept).norm(dim=1) / kept.norm(dim=1)
        assert away.max() - away.min() < 1e-5
        return float(away[0])

    found = landscape(solution, {"moved": moved}, radius=0.5, points=1)
    assert found.values["moved"] == [[0.0]]
    line = [row[1] for row in _along_one_axis(solution, moved)]
    assert line == pytest.approx([0.5, 0.0, 0.5], abs=1e-5)


def _along_one_axis(solution, measure):
    # only the points with b = 0 obey the rule of one direction
    def guarded(network):
        try:
            return measure(network)
        except AssertionError:
            return -1.0

    return landscape(solution, {"m": guarded}, radius=0.5, points=3).values["m"]


def test_biases_and_batch_norm_stay_and_so_does_the_model():
    solution = model()
    before = {name: tensor.clone() for name, tensor in solution.state_dict().items()}

    def stayed(network):
        own = network.state_dict()
        return float(all(torch.equal(own[name], before[name]) for name in ("0.bias", "1.weight", "1.bias", "3.bias")))

    assert landscape(solution, {"stayed": stayed}, points=2).values["stayed"] == [[1.0, 1.0], [1.0, 1.0]]
    assert all(torch.equal(tensor, before[name]) for name, tensor in solution.state_dict().items())


def test_the_seed_draws_the_plane():
    def total(network):
        return float(network[3].weight.detach().sum())

    first, again, other = (landscape(model(), {"t": total}, points=2, seed=seed).values["t"] for seed in (0, 0, 1))
    assert first == again != other


def test_no_points_are_refused():
    with pytest.raises(UnspurError, match="needs points and a radius above 0, but got 0"):
        landscape(model(), {}, points=0)
