import pytest
import torch
from torch import nn

from methods.shortcuts import network, shortcut
from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods import rebias
from unspur.methods.erm import ERM
from unspur.methods.rebias import ReBias
from unspur.parts.independence import dependence, gaussian_kernel, hsic, patch_network
from unspur.train.loop import measure
from unspur.train.recipe import Adam
from unspur.train.session import Session

RECIPE = Adam(lr=0.003, epochs=8, batch_size=64)


def bars(n=600, conflicting=0.05, seed=0):
    """Bars that lie or stand, which is the class, on a colour that goes with it but for a share of the images."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    colour = torch.where(torch.rand(n, generator=generator) < conflicting, 1 - y, y)
    x, at = 0.2 * torch.rand(n, 3, 8, 8, generator=generator), torch.randint(1, 7, (n,), generator=generator)
    for i in range(n):
        x[i, int(colour[i])] += 0.5
        x[i, :, :, int(at[i])] += 0.3 * y[i]
        x[i, :, int(at[i])] += 0.3 * (1 - y[i])
    return Split((255 * x).byte(), y, {"colour": colour})


def convolving():
    with seeded(0, "network"):
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(),
            nn.Linear(64, 2),
        )  # fmt: skip


def test_the_estimate_is_the_unbiased_one_written_as_sums_over_different_samples():
    # the mean over four different samples of k_ij (l_ij + l_qr - 2 l_iq)
    generator = torch.Generator().manual_seed(0)
    n, k, l = 6, *(gaussian_kernel(torch.randn(6, 2, generator=generator), 1.0) for _ in range(2))  # noqa: E741
    total, count = 0.0, 0
    for i in range(n):
        for j in set(range(n)) - {i}:
            for q in set(range(n)) - {i, j}:
                for r in set(range(n)) - {i, j, q}:
                    total, count = total + float(k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q])), count + 1
    assert float(hsic(k, l)) == pytest.approx(total / count, rel=1e-4)


def test_the_diagonals_have_no_say():
    # neither is constant: a constant one could as well be subtracted from every row, which is the wrong reading
    generator, own = torch.Generator().manual_seed(0), torch.arange(8.0, dtype=torch.double)
    features = [torch.randn(8, 2, generator=generator, dtype=torch.double) for _ in range(2)]
    k, l = (gaussian_kernel(x, 1.0) for x in features)  # noqa: E741
    assert torch.allclose(hsic(k + own.diag(), l), hsic(k, l), rtol=1e-9)
    assert torch.allclose(hsic(k, l - own.square().diag()), hsic(k, l), rtol=1e-9)


def test_independent_features_have_none_on_average_and_the_same_ones_much():
    generator = torch.Generator().manual_seed(0)
    pairs = [(torch.randn(16, 2, generator=generator), torch.randn(16, 2, generator=generator)) for _ in range(300)]
    apart = torch.stack([dependence(a, b, None) for a, b in pairs])
    assert abs(float(apart.mean())) < 3 * float(apart.std()) / 300**0.5  # the biased estimate is not around 0
    assert float(dependence(*2 * (pairs[0][0],), None)) > 10 * float(apart.std())


def test_each_network_minimises_its_own_side_and_moves_no_feature_of_the_other(monkeypatch):
    data, model, found = bars(32), convolving(), {}
    monkeypatch.setattr(rebias, "train_model", lambda pair, *given, **rest: found.update(rest, pair=pair.train()))
    ReBias(lam=2.0, lam_biased=3.0, radius=1.0).fit(model, data)
    pair, batch = found["pair"], data.batch(torch.arange(32))
    loss, seen = found["objective"](pair, batch, 0).loss, pair.both(pair, batch.x)
    apart = hsic(gaussian_kernel(seen.kept_features, 1.0), gaussian_kernel(seen.helper_features, 1.0))
    weight = model[-1].weight, model[0].weight
    kept = nn.functional.cross_entropy(seen.kept, batch.y) + 2.0 * apart
    for found_slope, own in zip(
        torch.autograd.grad(loss, weight, retain_graph=True), torch.autograd.grad(kept, weight, retain_graph=True),
        strict=True,
    ):  # fmt: skip
        assert torch.allclose(found_slope, own, atol=1e-6)
    inner = pair.helper.net[0].weight
    biased = nn.functional.cross_entropy(seen.helper, batch.y) - 3.0 * apart
    slope = torch.autograd.grad(loss, inner)[0]
    assert torch.allclose(slope, torch.autograd.grad(biased, inner)[0], atol=1e-5)


def test_a_network_of_pixels_cannot_tell_where_they_are_and_one_of_patches_can():
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    moved = x.flatten(2)[:, :, torch.randperm(64, generator=torch.Generator().manual_seed(1))].reshape(x.shape)
    for patch, same in ((1, True), (3, False)):
        net = patch_network(nn.Identity(), 3, 2, patch, seed=0).eval()
        assert torch.allclose(net(x), net(moved), atol=1e-5) == same


def test_conflicting_images_are_classified_better_than_by_plain_training():
    data, test = bars(), bars(500, conflicting=1.0, seed=3)
    plain, fit = ERM(erm=RECIPE).fit(convolving(), data), ReBias(training=RECIPE).fit(convolving(), data)
    before, after = (measure(one.model, test, Session())[0] for one in (plain, fit))
    assert after > before + 0.1


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match=r"rebias needs images with sides of 1 pixels or more, but these are \(7,\)"):
        ReBias().fit(network(), shortcut())
    with pytest.raises(UnspurError, match="HSIC needs 4 samples in a batch, but it has 2"):
        ReBias(training=Adam(batch_size=2))


def test_the_median_width_is_never_so_narrow_that_a_slope_overflows():
    # most features equal, as of patches of one colour: their median distance is 0
    a = torch.rand(1, 8, generator=torch.Generator().manual_seed(0)).repeat(16, 1)
    a[:3] = torch.rand(3, 8, generator=torch.Generator().manual_seed(1))
    b = torch.rand(16, 8, generator=torch.Generator().manual_seed(2))
    a.requires_grad_()
    slope = torch.autograd.grad(dependence(a, b, None), a)[0]
    assert torch.isfinite(slope).all() and slope.abs().max() < 1e6
