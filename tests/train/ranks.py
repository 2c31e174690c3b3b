"""What each of two processes does in the tests of training together; a module, so that they can import it."""

from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import nn

from unspur.data.base import Split
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session, leave_group
from watching import Watch

N = 45  # not a multiple of anything here: batches of 8 leave a tail of 5, which splits 3 : 2


def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 6, generator=generator)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return model, Split(x, (x[:, 0] > 0).long())


FROZEN, PLAIN = "frozen", "plain"  # without batch statistics the ranks' mean gradient is exactly the whole batch's


def work(fabric: Fabric, folder: Path) -> None:
    """Train both networks; a process starts so slowly that one does for both."""
    for kind in (FROZEN, PLAIN):
        _train(fabric, folder / kind, kind)
    leave_group()


def _train(fabric: Fabric, folder: Path, kind: str) -> None:
    model, split = problem()
    if kind == FROZEN:
        model[1] = nn.Identity()
    seen = []
    recipe = SGD(lr=0.1, epochs=2, batch_size=8)
    carry = [Watch(lambda m: seen.append((m.epoch, m.batch.index)))]
    train(model, split, recipe, stage="erm", session=Session(fabric, folder), carry=carry)
    epochs = [torch.cat([index for epoch, index in seen if epoch == number]) for number in range(2)]
    torch.save({"epochs": epochs, "state": model.state_dict()}, folder / f"rank{fabric.global_rank}.pt")
