"""Two processes that train together see every sample once and end with the same weights."""

from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from unspur.data.base import Split
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session

N = 45  # not a multiple of anything here: batches of 8 leave a tail of 5, which splits 3 : 2


def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 6, generator=generator)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return model, Split(x, (x[:, 0] > 0).long())


def work(fabric: Fabric, folder: Path, frozen_norm: bool) -> None:
    model, split = problem()
    if frozen_norm:  # without batch statistics the ranks' mean gradient is exactly the whole batch's
        model[1] = nn.Identity()
    seen = []
    recipe = SGD(lr=0.1, epochs=2, batch_size=8)
    session = Session(fabric, folder)
    train(
        model,
        split,
        recipe,
        stage="erm",
        seed=0,
        session=session,
        watch=lambda m: seen.append((m.epoch, m.batch.index)),
    )
    epochs = [torch.cat([index for epoch, index in seen if epoch == number]) for number in range(2)]
    torch.save({"epochs": epochs, "state": model.state_dict()}, folder / f"rank{fabric.global_rank}.pt")


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
