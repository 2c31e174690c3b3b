"""Training on several machines: what torchrun must have told each process."""

from __future__ import annotations

import os

import torch

from unspur.errors import UnspurError, require

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def require_devices(devices: int) -> None:
    """Refuse more processes than this machine has devices for; without a GPU its processors are these."""
    require(devices >= 1, f"--devices must be at least 1 but got {devices}.")
    gpus, processors = torch.cuda.device_count(), os.cpu_count() or 1
    most, what = (gpus, "GPUs") if gpus else (max(2, processors), "processors")
    require(
        devices <= most, f"--devices {devices:,} is more than the {most} {what} of this machine; use at most these."
    )


def require_torchrun(nodes: int, devices: int) -> None:
    """Refuse several machines unless torchrun has started this process as one of them."""
    require(nodes >= 1, f"--nodes must be at least 1 but got {nodes}.")
    started = all(name in os.environ for name in VARIABLES) and "TORCHELASTIC_RUN_ID" in os.environ
    if nodes == 1:
        return
    command = f"torchrun --nnodes {nodes} --nproc-per-node {devices} --rdzv-backend c10d --rdzv-endpoint HOST:29500"
    if not started:
        raise UnspurError(
            f"--nodes {nodes} needs torchrun on each machine: {command} -m unspur train ... --nodes {nodes} "
            f"--devices {devices}."
        )
    size = os.environ["WORLD_SIZE"]
    require(
        size == str(nodes * devices),
        f"--nodes {nodes} --devices {devices} are {nodes * devices} processes, but torchrun started {size}; give it "
        f"--nnodes {nodes} --nproc-per-node {devices}.",
    )
