import pytest
import torch
from torch import nn

from unspur.errors import UnspurError
from unspur.parts.layers import from_input, from_layer, frozen_up_to, layer_named, with_output


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Linear(4, 2)).eval()


X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def test_the_layers_there_are_are_listed():
    with pytest.raises(UnspurError, match=r"There is no layer 'fc'; there are: 0, 1, 2, 3\."):
        layer_named(network(), "fc")


def test_the_gradient_at_a_layer_is_what_follows_it():
    model = network()
    logits, at = from_layer(model, model[2], X)
    (gradient,) = torch.autograd.grad(logits[:, 1].sum(), at)
    assert torch.equal(gradient, model[3].weight[1].expand(5, 4))
    assert torch.equal(logits, model(X))


def test_a_layer_that_is_changed_in_place_afterwards_can_be_looked_at():
    model = network()
    logits, at = from_layer(model, model[1], X)
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), at)
    assert torch.equal(gradient, model[3].weight[0] * (at > 0))


def test_an_output_that_is_changed_in_place_afterwards_is_kept_as_it_was():
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    _, at = with_output(model, model[0], x)
    assert torch.equal(at, model[0](x)) and (at < 0).any()


def test_looking_at_the_input_leaves_the_batch_alone():
    x = X.clone()
    _, at = from_input(network(), x)
    assert at.requires_grad and not x.requires_grad


def test_gradients_flow_through_an_output_that_is_looked_at():
    model = network()
    _, output = with_output(model, model[0], X)
    output.sum().backward()
    assert model[0].weight.grad is not None


def test_what_runs_up_to_the_layer_is_frozen_for_the_block_alone():
    model = network()
    with frozen_up_to(model, model[1], X) as still:
        assert [p.requires_grad for p in model.parameters()] == [False] * 4 + [True] * 2
        assert set(still) == {model[0], model[1]}
    assert all(p.requires_grad for p in model.parameters())


def test_a_parameter_of_no_layer_is_frozen_if_the_layer_depends_on_it():
    class Token(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
            self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.body(x + self.before)) + self.after

    model = Token()
    with frozen_up_to(model, model.body, X):
        assert {name for name, p in model.named_parameters() if p.requires_grad} == {
            "after",
            "head.weight",
            "head.bias",
        }


def test_a_layer_that_never_runs_is_named_as_such():
    model = network()
    model.register_module("spare", nn.Linear(2, 2))
    model.forward = lambda x: model[3](model[2](model[1](model[0](x))))
    for look in (lambda: from_layer(model, model.spare, X), lambda: frozen_up_to(model, model.spare, X).__enter__()):
        with pytest.raises(UnspurError, match="never run"):
            look()
