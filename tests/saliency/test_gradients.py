import pytest
import torch
from torch import nn

from unspur.saliency.gradients import input_gradients


def linear():
    model = nn.Linear(2, 3, bias=False)
    model.weight.data = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
    return model


def test_the_gradient_of_a_linear_model_is_the_predicted_classs_weights():
    # x = (3, 1): logits (3, 2, -4), class 0; x = (0, 1): (0, 2, -1), class 1
    x = torch.tensor([[3.0, 1.0], [0.0, 1.0]])
    assert input_gradients(linear(), x).tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_it_is_the_logit_that_is_differentiated_not_a_probability_and_of_the_class_given():
    x = torch.tensor([[3.0, 1.0], [0.0, 1.0]])
    assert input_gradients(linear(), x, target=torch.tensor([2, 0])).tolist() == [[-1.0, -1.0], [1.0, 0.0]]


class Square(nn.Module):
    """S = (w x)^2."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([[3.0]]))

    def forward(self, x):
        return (x @ self.w) ** 2


def test_with_a_graph_the_gradient_can_be_differentiated_by_the_parameters():
    # dS/dx = 2 w^2 x = 36 at w = 3, x = 2; its derivative by w is 4 w x = 24.
    model = Square()
    gradient = input_gradients(model, torch.tensor([[2.0]]), create_graph=True)
    assert gradient.item() == 36
    gradient.sum().backward()
    assert model.w.grad.item() == 24


def test_without_a_graph_nothing_hangs_on_to_the_model():
    assert not input_gradients(Square(), torch.tensor([[2.0]])).requires_grad


def test_parameters_gradients_and_the_input_are_left_alone():
    model, x = linear(), torch.tensor([[3.0, 1.0]])
    model.weight.grad = torch.ones(3, 2)
    input_gradients(model, x)
    assert model.weight.grad.tolist() == [[1.0, 1.0]] * 3
    assert not x.requires_grad and x.grad is None


def test_the_model_runs_in_the_mode_it_is_in():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    input_gradients(model.eval(), torch.rand(4, 2))
    assert model[0].num_batches_tracked == 0 and not model.training
    input_gradients(model.train(), torch.rand(4, 2))
    assert model[0].num_batches_tracked == 1 and model.training


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_works_where_gradients_are_off(mode):
    model = linear()
    with mode():
        assert input_gradients(model, torch.tensor([[3.0, 1.0]])).tolist() == [[1.0, 0.0]]
