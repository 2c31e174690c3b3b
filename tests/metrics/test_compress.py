from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils import prune as torch_prune

from unspur.errors import UnspurError
from unspur.metrics.compress import KAPPAS, compressibility, layer_weights, pq_index, prunability, prune, sparsity


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cnn():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 10, 3), nn.BatchNorm2d(10), nn.ReLU(), nn.Conv2d(10, 20, 3), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 4),
        )  # fmt: skip


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_sparsity_counts_exact_zeros_only():
    assert sparsity(torch.tensor([0.0, -0.0, 1e-30, 2.0])) == 0.5


@pytest.mark.parametrize(("q", "kappa"), [(2, 0.3), (1, 0.5), (0.5, 0.1), (3, 0.0), (2, 1.0)])
def test_compressibility_equals_the_infimum_over_every_support(q, kappa):
    # 7 entries: ceil(0.3 * 7) = 3 may stay; try all sets of that size
    z = random(7).double().numpy()
    kept = int(np.ceil(kappa * 7))

    def norm(v):
        return (np.abs(v) ** q).sum() ** (1 / q)

    best = min(norm(z * [i not in support for i in range(7)]) for support in combinations(range(7), kept))
    assert float(compressibility(torch.from_numpy(z), q, kappa)) == pytest.approx(1 - best / norm(z), abs=1e-12)


def test_compressibility_rounds_the_number_kept_up_but_not_because_of_binary_fractions():
    # 0.07 * 100 is 7.000000000000001 in binary: 7 entries stay, and of 100 equal ones 93 are lost
    assert float(compressibility(torch.ones(100), 1, 0.07)) == pytest.approx(0.07)
    # 0.05 * 10 = 0.5: one entry stays
    assert float(compressibility(torch.ones(10), 1, 0.05)) == pytest.approx(0.1)


def test_compressibility_is_of_each_sample_not_of_the_whole_batch():
    # (4, 3): 1 - 3/5; (40, 0): 1. Of the four values together, two kept lose 3 and nothing: another figure.
    each = compressibility(torch.tensor([[4.0, 3.0], [40.0, 0.0]]), 2, 0.5)
    torch.testing.assert_close(each, torch.tensor([0.4, 1.0], dtype=torch.float64))


def test_a_vector_of_zeros_is_compressed_completely():
    z = torch.zeros(5)
    assert float(sparsity(z)) == float(compressibility(z)) == float(pq_index(z)) == 1


@pytest.mark.parametrize(("p", "q"), [(1, 2), (0.5, 1), (1, 3)])
def test_pq_index_equals_its_formula_with_power_means(p, q):
    # d^(1/q - 1/p) ||z||_p / ||z||_q is the ratio of power means M_p / M_q
    z = random(4, 9)
    size = z.double().abs().numpy()
    expected = 1 - (size**p).mean(1) ** (1 / p) / (size**q).mean(1) ** (1 / q)
    np.testing.assert_allclose(pq_index(z, p, q).numpy(), expected, atol=1e-12)


def test_pq_index_rises_with_sparsity_and_ignores_scale_and_copies():
    dense, sparse = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 0.0, 3.0, 4.0])
    assert 0 < pq_index(dense) < pq_index(sparse)
    assert float(pq_index(7 * dense)) == pytest.approx(float(pq_index(dense)))
    assert float(pq_index(dense.repeat(3))) == pytest.approx(float(pq_index(dense)))


def test_pq_index_refuses_the_orders_the_paper_prints():
    with pytest.raises(UnspurError, match="0 < p < q, but got p = 2 and q = 1"):
        pq_index(torch.ones(3), p=2, q=1)


@pytest.mark.parametrize("kappa", [-0.1, 1.01, float("nan")])
def test_a_share_outside_0_to_1_is_refused(kappa):
    with pytest.raises(UnspurError, match="from 0 to 1"):
        compressibility(torch.ones(3), kappa=kappa)
    with pytest.raises(UnspurError, match="from 0 to 1"):
        prune(cnn(), kappa)


@pytest.mark.parametrize(("unit", "dim"), [("node", 0), ("column", 1)])
def test_structured_pruning_equals_torchs(unit, dim):
    model, kappa = cnn(), 0.3  # 0.3 of 10, 20, 30 are whole numbers, so torch's rounding is ours
    pruned = prune(model, kappa, unit)
    for number in (3, 7):  # neither first nor last
        reference = torch_prune.ln_structured(cnn()[number], "weight", kappa, n=2, dim=dim)
        torch.testing.assert_close(pruned[number].weight, reference.weight)


def test_magnitude_pruning_equals_torchs_in_every_layer():
    pruned = prune(cnn(), 0.5, "weight")
    for number in (0, 3, 7, 9):
        reference = torch_prune.l1_unstructured(cnn()[number], "weight", 0.5)
        torch.testing.assert_close(pruned[number].weight, reference.weight)
        torch.testing.assert_close(pruned[number].bias, reference.bias)


def test_pruning_leaves_the_original_as_it_was():
    model = cnn().train()
    before = weights(model)
    for unit in ("node", "column", "weight"):
        prune(model, 0.9, unit)
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(model).items())


def test_a_pruned_node_gives_0_with_its_bias():
    pruned = prune(cnn(), 0.5)
    hidden = pruned[7](random(6, 20))
    assert int((hidden == 0).all(0).sum()) == 15  # half of 30, for any input
    assert int((pruned[7].bias == 0).sum()) == 15


def test_classes_are_never_pruned_as_nodes_nor_pixels_as_columns():
    model = cnn()
    by_node, by_column = prune(model, 0.9), prune(model, 0.9, "column")
    assert torch.equal(by_node[9].weight, model[9].weight) and not torch.equal(by_node[0].weight, model[0].weight)
    assert torch.equal(by_column[0].weight, model[0].weight) and not torch.equal(by_column[9].weight, model[9].weight)


def test_a_head_registered_first_can_be_spared():
    model = nn.ModuleDict({"head": nn.Linear(4, 2), "body": nn.Linear(3, 4)})
    pruned = prune(model, 0.5, spare=model["head"])
    assert torch.equal(pruned["head"].weight, model["head"].weight)
    assert int((pruned["body"].weight == 0).all(1).sum()) == 2
    with pytest.raises(UnspurError, match="not a part of the model"):
        prune(model, 0.5, spare=nn.Linear(4, 2))


def test_a_layer_keeps_a_node_below_kappa_1_and_none_at_1():
    # floor(0.9 * 3) = 2 of 3 go; rounding would take all
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    assert int((prune(model, 0.9)[0].weight != 0).any(1).sum()) == 1
    assert not prune(model, 1.0)[0].weight.any()


def test_a_share_that_binary_cannot_hold_prunes_the_full_count():
    # 0.29 * 100 is 28.999999999999996 in binary
    model = nn.Sequential(nn.Linear(1, 100), nn.Linear(100, 2))
    assert int((prune(model, 0.29)[0].weight == 0).sum()) == 29


def test_channels_last_weights_lose_the_same_entries():
    model = cnn()
    expected = weights(prune(model, 0.5, "weight"))
    got = weights(prune(model.to(memory_format=torch.channels_last), 0.5, "weight"))
    assert all(torch.equal(expected[name], got[name]) for name in expected)


def test_parametrised_weights_are_pruned_as_the_network_uses_them():
    class Gate(nn.Module):
        def forward(self, weight):
            return weight * torch.tensor([[10.0], [1.0]])

    model = nn.Sequential(nn.Linear(1, 2, bias=False), nn.Linear(2, 2))
    model[0].weight.data = torch.tensor([[1.0], [2.0]])
    parametrize.register_parametrization(model[0], "weight", Gate())
    # in use: 10 and 2, so the second goes; the raw values 1 and 2 would lose the first
    assert prune(model, 0.5)[0](torch.ones(1, 1)).tolist() == [[10.0, 0.0]]
    assert model[0](torch.ones(1, 1)).tolist() == [[10.0, 2.0]]  # the original works on, unpruned


def test_a_model_without_hidden_layers_has_no_nodes_to_prune():
    with pytest.raises(UnspurError, match="nothing to prune by node"):
        prune(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), 0.5)


def test_layer_weights_are_those_of_linear_and_convolutional_layers_alone():
    assert {name: len(w) for name, w in layer_weights(cnn()).items()} == {"0": 270, "3": 1800, "7": 600, "9": 120}


def test_prunability_is_the_mean_of_accuracy_ratios_over_ten_shares():
    # the share of nodes left in the hidden layer of 10 stands for accuracy, doubled: ratios 1, 0.9, ..., 0.1
    model = nn.Sequential(nn.Linear(1, 10), nn.Linear(10, 2))
    result = prunability(model, lambda m: 2 * float((m[0].weight != 0).double().mean()))
    assert result.kappas == KAPPAS == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert result.retained == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert result.mean == pytest.approx(0.55)  # not the sum, 5.5, which the text names


def test_prunability_of_a_model_that_is_never_right_is_refused():
    with pytest.raises(UnspurError, match="accuracy is 0"):
        prunability(cnn(), lambda model: 0.0)
    with pytest.raises(UnspurError, match="at least one share"):
        prunability(cnn(), lambda model: 1.0, ())
