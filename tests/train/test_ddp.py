"""Two processes that train together see every sample once and end with the same weights."""

import pytest
import torch
from lightning_fabric import Fabric

from train.ranks import N, work


@pytest.mark.parametrize("frozen_norm", [True, False])
def test_two_ranks_share_the_samples_and_agree_on_the_weights(tmp_path, frozen_norm):
    Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn").launch(work, tmp_path, frozen_norm)
    ranks = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2)]
    for epoch in range(2):
        assert sorted(torch.cat([rank["epochs"][epoch] for rank in ranks]).tolist()) == list(range(N))
    for name, tensor in ranks[0]["state"].items():
        assert torch.equal(tensor, ranks[1]["state"][name]), name
    if frozen_norm:
        alone = tmp_path / "alone"
        alone.mkdir()
        work(Fabric(accelerator="cpu", devices=1), alone, frozen_norm)
        expected = torch.load(alone / "rank0.pt", weights_only=True)["state"]
        for name, tensor in expected.items():
            assert torch.allclose(tensor, ranks[0]["state"][name], atol=1e-6), name
