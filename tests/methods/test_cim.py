import dataclasses
import itertools

import pytest
import torch
from torch import nn

from methods.shortcuts import network, shortcut
from methods.shrinking import small_network
from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.data.catalog import load
from unspur.errors import UnspurError
from unspur.methods import cim
from unspur.methods.cim import CIM
from unspur.models.classifier import Classifier, Normalize
from unspur.parts.morphing import Morphing, as_pixels, ssim, with_morphing
from unspur.practice.export.export import Wanted, export_run
from unspur.practice.export.layout import exported_module, read_exported
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.train.loop import measure
from unspur.train.recipe import Adam
from unspur.train.session import Session


def stripes(n=128, conflicting=0.5, seed=0):
    """Left, stripes that lie or stand, which is the class; right, stripes that do not as the class in a share."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    cue = torch.where(torch.rand(n, generator=generator) < conflicting, 1 - y, y)
    lying = (torch.arange(16) % 4 < 2).float().expand(16, 16).T
    kinds = torch.stack([lying, lying.T])
    x = torch.cat([kinds[y][:, :, :8], kinds[cue][:, :, 8:]], 2)[:, None]
    return Split((255 * (0.8 * x + 0.2 * torch.rand(x.shape, generator=generator))).byte(), y)


def reading(channels=1):
    with seeded(0, "network"):
        net = nn.Sequential(nn.Conv2d(channels, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 7 * 7, 2))
    return Classifier("reading", Normalize((0.4,) * channels, (0.5,) * channels), net)


def similarity(a, b, window):
    """The index of Wang et al. for one pair of images, window by window."""
    found = []
    starts = [range(0, side - window + 1, max(1, window // 2)) for side in a.shape[1:]]
    for channel, top, left in itertools.product(range(len(a)), *starts):
        p, q = (image[channel, top : top + window, left : left + window].double().flatten() for image in (a, b))
        c_pq = ((p - p.mean()) * (q - q.mean())).mean()
        light = (2 * p.mean() * q.mean() + 1e-4) / (p.mean() ** 2 + q.mean() ** 2 + 1e-4)
        found.append(light * (2 * c_pq + 9e-4) / (p.var(correction=0) + q.var(correction=0) + 9e-4))
    return float(sum(found) / len(found))


def test_structural_similarity_is_the_mean_of_the_index_over_windows():
    a, b = torch.rand(2, 3, 3, 9, 11, generator=torch.Generator().manual_seed(0))
    expected = [similarity(p, q, 5) for p, q in zip(a, b, strict=True)]
    assert ssim(a, b, 5).tolist() == pytest.approx(expected, abs=1e-5)


def stopped(monkeypatch, method, model, data):
    """What a fit would have given to the training: its network and its objective."""
    found = {}
    monkeypatch.setattr(cim, "train_model", lambda whole, *given, **rest: found.update(rest, whole=whole.train()))
    method.fit(model, data)
    return found["whole"], found["objective"]


def test_the_objective_is_cross_entropy_behind_the_mask_and_a_triplet_of_it_with_unmasked_images(monkeypatch):
    # Labels 0 0 1: the first two have one positive and one negative each, the last has no positive and no triplet.
    data = dataclasses.replace(stripes(3), y=torch.tensor([0, 0, 1]))
    method = CIM(lam=2.0, margin=0.3, window=5)
    whole, objective = stopped(monkeypatch, method, reading(), data)
    batch = data.batch(torch.arange(3))
    masked = whole.net[0](whole.normalize(batch.x)) * 0.5 + 0.4  # in pixels, where SSIM's constants belong
    loss = nn.functional.cross_entropy(whole.net[1]((masked - 0.4) / 0.5), batch.y, reduction="none")
    for i, positive, negative in ((0, 1, 2), (1, 0, 2)):
        towards, away = (similarity(masked[i].detach(), batch.x[j], 5) for j in (positive, negative))
        loss[i] += 2.0 * max(0.0, away - towards + 0.3)
    assert torch.allclose(objective(whole, batch, 0).loss, loss, atol=1e-4)


def test_looking_like_the_class_costs_less_not_more():
    # A white class and a black one: s = 1 with the positive and 1e-4 / (1 + 1e-4) with the negative, so that with a
    # margin of 1.5 the loss is 1.5 - 1 + 0.0001; with the two exchanged it would be 1.5 + 1 - 0.0001.
    x, y = torch.ones(4, 1, 8, 8), torch.tensor([0, 0, 1, 1])
    x[2:] = 0
    assert CIM(margin=1.5).triplet(x, x, y).tolist() == pytest.approx([0.5001] * 4, abs=1e-5)


def test_a_positive_is_another_image_and_never_the_same_one():
    # Two images of a class: were the first its own positive, s = 1 and the loss would be max(0, s_n - 1 + m) = 0.
    x = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for _ in range(8):
        found = CIM(margin=1.0).triplet(x, x, torch.tensor([0, 0, 1]))
        assert float(found[0]) == pytest.approx(similarity(x[0], x[2], 7) - similarity(x[0], x[1], 7) + 1, abs=1e-4)


def test_the_mask_lies_between_0_and_1_and_both_terms_move_it(monkeypatch):
    data = stripes(32)
    for lam in (0.0, 1.0):
        whole, objective = stopped(monkeypatch, CIM(lam=lam), reading(), data)
        with torch.no_grad():
            whole.net[0].up.weight.normal_(std=2, generator=torch.Generator().manual_seed(0))  # not as it begins
        masks = []
        whole.net[0].mask.register_forward_hook(lambda module, inputs, output, masks=masks: masks.append(output))
        found = objective(whole, data.batch(torch.arange(32)), 0)
        assert masks[0].shape == (32, 1, 16, 16) and 0 <= masks[0].min() < 0.1 and 0.9 < masks[0].max() <= 1
        first = whole.net[0].down[0].weight
        by_both = torch.autograd.grad(found.loss.mean(), first, retain_graph=True)[0]
        assert by_both.abs().max() > 0  # lam = 0: cross-entropy alone reaches the mask's network
        if lam:
            assert torch.autograd.grad(found.logged["triplet"], first)[0].abs().max() > 0


def test_what_is_compared_is_what_the_network_sees():
    model = with_morphing(reading(3), 1, seed=0)  # grey images in a network for three channels
    x = torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    layer, seen = model.net[0], []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    layer.mask.register_forward_hook(lambda module, inputs, output: seen.append(output))
    model(x)
    plain, masked = as_pixels(model, x, seen[0])
    assert torch.allclose(model.normalize(masked), seen[1], atol=1e-5)
    assert torch.equal(plain, x.expand(2, 3, 16, 16))


def shares(fit, data):
    """The mean of the mask over the half that makes the class, and over the other one."""
    masks = []
    layer = next(layer for layer in fit.model.modules() if isinstance(layer, Morphing))
    layer.mask.register_forward_hook(lambda module, inputs, output: masks.append(output))
    with torch.no_grad():
        fit.model(data.batch(torch.arange(len(data))).x)
    return masks[0][..., :8].mean(), masks[0][..., 8:].mean()


@pytest.mark.parametrize("conflicting", [0.5, 0.2])
def test_the_mask_hides_what_a_class_has_by_chance_or_not_always_and_shows_what_it_always_has(conflicting):
    data, test = stripes(300, conflicting), stripes(200, conflicting, seed=1)
    recipe = Adam(lr=0.003, epochs=10, batch_size=64)
    fit, without = (CIM(training=recipe, lam=lam).fit(reading(), data) for lam in (5.0, 0.0))
    (own, rest), (own_without, rest_without) = shares(fit, test), shares(without, test)
    assert own > 0.8 and rest < 0.4
    assert abs(own_without - rest_without) < 0.1  # cross-entropy alone has no reason to hide anything
    assert measure(fit.model, test, Session())[0] > 0.95


def test_a_cue_that_nearly_all_images_of_a_class_share_is_kept():
    data, test = stripes(300, conflicting=0.02), stripes(200, conflicting=0.02, seed=1)
    own, rest = shares(CIM(training=Adam(lr=0.003, epochs=10, batch_size=64)).fit(reading(), data), test)
    assert own > 0.8 and rest > 0.8  # where it fails: for the triplet that is what makes the class


def test_any_network_can_be_given_and_its_weights_train_in_place():
    data, given = stripes(32), nn.Sequential(nn.Flatten(), nn.Linear(256, 2))
    before = given[1].weight.detach().clone()
    fit = CIM(training=Adam(epochs=1, batch_size=16)).fit(given, data)
    assert fit.model.net[1] is given and not torch.equal(before, given[1].weight)


def test_a_stored_run_and_exported_weights_are_loaded_with_the_mask(tmp_path):
    settings = ["data.base=mini", "data.val=9500", "training.epochs=1"]
    config = configure("cim", "biased_mnist", "small_cnn", 0, settings)
    result = run(config, tmp_path)
    stored, data = Run.create(tmp_path, config), load("biased_mnist", base="mini", val=9500)
    model = stored.load_model(data)
    assert any(isinstance(layer, Morphing) for layer in model.modules())
    accuracy = result["tests"]["biased"]["accuracy"]
    assert measure(model, data.tests["biased"], Session())[0] == pytest.approx(accuracy, abs=1e-6)
    export_run(stored.folder, tmp_path / "out", Wanted("safetensors"))
    exported, _ = exported_module(tmp_path / "out", read_exported(tmp_path / "out"))
    x = data.val.batch(torch.arange(4)).x
    assert torch.allclose(exported(x), model(x), atol=1e-5)


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match=r"cim needs images with sides of 7 pixels or more, but these are \(7,\)"):
        CIM().fit(network(), shortcut())
    with pytest.raises(UnspurError, match="cim needs images with sides of 40 pixels or more"):
        CIM(window=40).fit(small_network(), load("biased_mnist", base="mini").train)
    with pytest.raises(UnspurError, match="A triplet needs 3 samples in a batch, but it has 2"):
        CIM(training=Adam(batch_size=2))
