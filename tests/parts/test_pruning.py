import copy

import pytest
import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.errors import UnspurError
from unspur.parts.pruning import Gate, add_gates, kept_ratio, masks_of, prunable, prune, pruned, sparsity
from unspur.train.recipe import Adadelta, Kron


def network():
    with seeded(0, "network"):
        convolve = nn.Conv2d(3, 4, 3, padding=1)
        return nn.Sequential(
            convolve, nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        )


def test_every_convolution_and_linear_weight_has_a_gate_and_nothing_else():
    gates = add_gates(network())
    assert list(gates) == ["0.weight", "5.weight"]
    assert all(gate.theta.eq(1.5).all() for gate in gates.values())


def test_attention_projections_have_gates_too():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    gates = add_gates(model)
    assert set(gates) == {"self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight", "linear2.weight"}
    model.train()
    with seeded(0):
        model(torch.ones(1, 3, 8)).square().sum().backward()
    assert all(gate.theta.grad is not None and gate.theta.grad.any() for gate in gates.values())


def test_a_model_without_prunable_weights_is_told_so():
    with pytest.raises(UnspurError, match="BatchNorm2d has no convolution and no linear layer"):
        prunable(nn.BatchNorm2d(3))


@pytest.mark.parametrize("theta", [-3.0, -1.0, 0.0, 1.5])
def test_a_weight_is_kept_with_probability_sigmoid_theta_also_below_one_half(theta):
    gate = Gate(torch.ones(100_000), start=theta)
    with seeded(0, "noise"):
        share = float(gate(torch.ones(100_000)).detach().mean())
    # sigmoid(-3) = 0.047, sigmoid(-1) = 0.269, sigmoid(0) = 0.5, sigmoid(1.5) = 0.818; the standard error is 0.0016.
    # sigmoid(sigmoid(-3)) would be 0.512.
    assert share == pytest.approx(torch.tensor(theta).sigmoid().item(), abs=0.007)


def test_the_sample_is_hard_and_its_gradient_that_of_the_relaxed_sample():
    weight, temperature = torch.tensor([2.0, -1.0, 3.0, 0.5]), 0.7
    gate = Gate(weight, start=0.3, temperature=temperature)
    with seeded(0, "noise"):
        out = gate(weight)
    with seeded(0, "noise"):
        uniform = torch.rand(4)
    theta = torch.full((4,), 0.3, requires_grad=True)
    soft = torch.sigmoid((theta + uniform.log() - (1 - uniform).log()) / temperature)
    assert torch.equal(out, weight * (soft > 0.5))
    upstream = torch.tensor([1.0, -2.0, 0.5, 4.0])
    out.backward(upstream)
    (upstream * weight * soft).sum().backward()
    assert torch.allclose(gate.theta.grad, theta.grad, atol=1e-6)


def test_each_training_pass_draws_anew_and_evaluation_does_not_draw():
    model = network()
    gates = add_gates(model)
    x = torch.ones(2, 3, 4, 4)
    with seeded(0):
        model.train()
        assert not torch.equal(model[0].weight, model[0].weight)
    with torch.no_grad():
        gates["0.weight"].theta[0] = -0.1
    model.eval()
    before = torch.get_rng_state()
    assert torch.equal(model(x), model(x)) and torch.equal(before, torch.get_rng_state())
    assert not model[0].weight[0].any() and model[0].weight[1:].all()


def test_only_theta_is_trained():
    model = network()
    before = copy.deepcopy(model)
    gates = add_gates(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(trained) == 2 and {id(p) for p in trained} == {id(gate.theta) for gate in gates.values()}
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    with seeded(0):
        nn.functional.cross_entropy(model(torch.rand(4, 3, 4, 4)), torch.tensor([0, 1, 0, 1])).backward()
    optimiser.step()
    for name, value in before.named_parameters():
        name = name.replace("weight", "parametrizations.weight.original") if name in gates else name
        assert torch.equal(model.get_parameter(name), value), name
    assert all(not gate.theta.eq(1.5).all() for gate in gates.values())


def test_an_l1_on_theta_ends_at_one_half_and_one_on_the_keep_probability_below_it():
    gates = {of: {"a": Gate(torch.ones(1), start=1.5)} for of in ("theta", "keep")}
    assert sparsity(gates["theta"], "theta").item() == pytest.approx(1.5)
    assert sparsity(gates["keep"], "keep").item() == pytest.approx(0.8176, abs=1e-4)  # sigmoid(1.5)
    for of, own in gates.items():
        optimiser = torch.optim.SGD([own["a"].theta], lr=0.1)
        for _ in range(400):
            optimiser.zero_grad()
            sparsity(own, of).backward()
            optimiser.step()
    assert abs(gates["theta"]["a"].theta.item()) <= 0.1 + 1e-6  # a step's length from 0, where sigmoid is one half
    assert gates["keep"]["a"].theta.item() < -2


def test_sparsity_sums_over_all_gates():
    gates = {"a": Gate(torch.ones(2), start=-2.0), "b": Gate(torch.ones(3), start=1.0)}
    assert sparsity(gates, "theta").item() == pytest.approx(2 * 2 + 3 * 1)  # the raw logits would sum to -1


def test_a_pruned_model_is_an_ordinary_one_with_zeros():
    model = network()
    names = list(model.state_dict())
    gated = copy.deepcopy(model)
    gates = add_gates(gated)
    with torch.no_grad():
        gates["5.weight"].theta[0] = -1.0
    masks = masks_of(gates)
    prune(model, masks)
    assert list(model.state_dict()) == names and type(model[5]) is nn.Linear
    assert not model[5].weight[0].any() and model[5].weight[1].all()
    assert kept_ratio(masks) == (4 * 3 * 9 + 4) / (4 * 3 * 9 + 8)


@pytest.mark.parametrize(
    "optimiser",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, lr=0.1),
        lambda p: Adadelta().optimiser(list(p)),
        lambda p: Kron().optimiser(list(p)),  # its preconditioner mixes weights
    ],
)
def test_pruned_weights_stay_zero_whatever_trains_them_and_only_in_the_block(optimiser):
    model = network()
    mask = torch.rand(4, 3, 3, 3, generator=torch.Generator().manual_seed(0)) > 0.5
    made = optimiser(model.parameters())

    def step():
        made.zero_grad()
        nn.functional.cross_entropy(model(torch.rand(4, 3, 4, 4)), torch.tensor([0, 1, 0, 1])).backward()
        made.step()

    with seeded(0), pruned(model, {"0.weight": mask}):
        for _ in range(3):
            step()
        assert torch.equal(model[0].weight != 0, mask)
    with seeded(1):
        step()
    assert model[0].weight.all()
