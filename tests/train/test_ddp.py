"""Two processes that train together see every sample once and end with the same weights."""

import pytest
import torch
from lightning_fabric import Fabric

from train.ranks import FROZEN, PLAIN, N, work


def trained(folder, devices):
    """What each rank saw and ended with, by network."""
    for kind in (FROZEN, PLAIN):
        (folder / kind).mkdir()
    strategy = "ddp_spawn" if devices > 1 else "auto"
    Fabric(accelerator="cpu", devices=devices, strategy=strategy).launch(work, folder)
    ranks = range(devices)
    return {
        kind: [torch.load(folder / kind / f"rank{rank}.pt", weights_only=True) for rank in ranks]
        for kind in (FROZEN, PLAIN)
    }


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.fixture
def together(known, tmp_path, copies):
    """What two ranks did, once for all tests."""
    if not known:
        known.update(trained(tmp_path, 2))
    return known


@pytest.mark.parametrize("kind", [FROZEN, PLAIN])
def test_two_ranks_share_the_samples_and_agree_on_the_weights(together, kind):
    first, second = together[kind]
    for epoch in range(2):
        assert sorted(torch.cat([rank["epochs"][epoch] for rank in (first, second)]).tolist()) == list(range(N))
    for name, tensor in first["state"].items():
        assert torch.equal(tensor, second["state"][name]), name


def test_without_batch_statistics_two_ranks_end_where_one_does(together, tmp_path_factory):
    (alone,) = trained(tmp_path_factory.mktemp("alone"), 1)[FROZEN]
    for name, tensor in alone["state"].items():
        assert torch.allclose(tensor, together[FROZEN][0]["state"][name], atol=1e-6), name
