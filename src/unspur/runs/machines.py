"""What machines can do: how many devices there are, what torchrun must have told each process, and 16-bit products."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

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


def say_if_slower(precisions: Iterable[str], say: Callable[[str], None]) -> None:
    """Say that mixed precision, if it is one of ``precisions``, takes longer on this machine than full precision."""
    accelerated = torch.cuda.is_available() or torch.backends.mps.is_available()
    if "bf16" in precisions and not accelerated and knows_bfloat16() is False:
        say("This processor has no bfloat16 arithmetic: precision=bf16 works here, but full precision is faster.")


def knows_bfloat16() -> bool | None:
    """Whether this machine's processor computes in bfloat16 and need not imitate it; None where torch does not say."""
    told: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)  # an older torch has none
    known = [bool(has) for name, has in told().items() if "bf16" in name]
    return any(known) if known else None
