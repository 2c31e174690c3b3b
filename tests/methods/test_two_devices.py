"""Methods that claim several devices end with the same weights on two of them."""

from dataclasses import fields

import torch
from lightning_fabric import Fabric

from methods.ranks import work
from unspur.methods.catalog import METHODS

# Methods of one training; the loop's own tests and those of runs cover the others.
CLAIMED = [
    name
    for name, method in METHODS.items()
    if not method.one_device and fields(method)[0].name == "training" and name != "ule"
]


def test_two_devices_end_with_the_same_weights(tmp_path, copies):
    assert {"asam", "class_balanced", "focal", "group_balanced", "lisa", "mixup"} <= set(CLAIMED)
    Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn").launch(work, tmp_path, CLAIMED)
    for name in CLAIMED:
        first, second = (torch.load(tmp_path / f"{name}-{rank}.pt", weights_only=True) for rank in range(2))
        assert all(torch.equal(first[key], second[key]) for key in first), name
