import torch

from report.examples import tiny
from unspur.models.catalog import build_model
from unspur.report.maps import explainer


def test_a_convolutional_model_is_explained_by_class_activation_maps():
    data = tiny()
    explain = explainer(build_model("small_cnn", data).eval(), data.sample_shape)
    maps = explain.maps(data.train.batch(torch.arange(3)).x)
    assert explain.name == "XGradCAM"
    assert len(maps) == 3 and maps.shape[1:] < (16, 16)  # at map resolution


def test_a_model_without_a_spatial_layer_is_explained_by_input_gradients_and_says_so():
    data = tiny()
    model = build_model("fcn", data).eval()
    explain = explainer(model, data.sample_shape)
    x = data.train.batch(torch.arange(3)).x
    assert explain.name == "input gradient" and "no spatial layer" in explain.sentence
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).max(1).values.sum(), x)
    assert torch.allclose(explain.maps(x.detach()), gradient.abs().amax(1), atol=1e-6)
