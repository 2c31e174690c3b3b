"""Methods that claim several devices end with the same weights on two of them."""

import torch
from lightning_fabric import Fabric

from methods.ranks import work

CLAIMED = ["asam", "class_balanced", "focal", "group_balanced", "lisa", "mixup", "spectral_decoupling"]


def test_two_devices_end_with_the_same_weights(tmp_path):
    Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn").launch(work, tmp_path, CLAIMED)
    for name in CLAIMED:
        first, second = (torch.load(tmp_path / f"{name}-{rank}.pt", weights_only=True) for rank in range(2))
        assert all(torch.equal(first[key], second[key]) for key in first), name
