"""Two machines that are two processes on this one: they train as two devices of one machine do."""

import os
import socket
import subprocess
import sys

import pytest
import torch

from unspur.core.files import read_tensors
from unspur.errors import UnspurError
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.machines import VARIABLES, knows_bfloat16, require_devices, require_torchrun, say_if_slower

TINY = ["arch.width=8", "erm.epochs=2", "erm.batch_size=50", "data.train=200", "data.test=100", "data.val=50"]


def as_machine(rank, port, world=2):
    """What torchrun tells the only process of machine ``rank``."""
    told = {"RANK": rank, "GROUP_RANK": rank, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "WORLD_SIZE": world}
    told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test", "OMP_NUM_THREADS": 1}
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    return os.environ | {name: str(value) for name, value in told.items()} | {"PYTHONPATH": path}


def test_two_machines_give_the_weights_of_two_devices_and_one_of_them_speaks(tmp_path, copies):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = [word for setting in TINY for word in ("--set", setting)]
    command = [sys.executable, "-m", "unspur", "train", "erm", "parity", "--arch", "fcn", *settings]
    command += ["--nodes", "2", "--json", "--out", str(tmp_path / "machines")]
    machines = [
        subprocess.Popen(command, env=as_machine(rank, port), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    said = [machine.communicate(timeout=300) for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], said
    assert '"devices": 2' in said[0][0] and said[1][0] == ""
    config = configure("erm", "parity", "fcn", 0, TINY)
    run(config, tmp_path / "devices", devices=2)
    one, other = (read_tensors(Run.create(tmp_path / name, config).folder / "model.safetensors")[0] for name in
                  ("machines", "devices"))  # fmt: skip
    assert one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def test_several_machines_without_torchrun_are_told_the_command(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    require_torchrun(1, 8)
    with pytest.raises(UnspurError, match=r"torchrun --nnodes 4 --nproc-per-node 8 .* -m unspur train"):
        require_torchrun(4, 8)
    with pytest.raises(UnspurError, match="--nodes must be at least 1"):
        require_torchrun(0, 1)


def test_another_number_of_processes_than_torchrun_started_is_refused(monkeypatch):
    for name, value in as_machine(0, 29500, world=6).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UnspurError, match="are 8 processes, but torchrun started 6"):
        require_torchrun(4, 2)


@pytest.mark.parametrize("devices", [0, -1, 100_000])
def test_more_devices_than_there_can_be_are_refused(devices):
    with pytest.raises(UnspurError, match=r"must be at least 1|is more than the .* of this machine; use at most these"):
        require_devices(devices)


@pytest.mark.parametrize(
    ("capabilities", "knows"),
    [
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": True}, True),
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, False),
        ({"avx2": True}, None),  # a torch that does not say
    ],
)
def test_mixed_precision_is_called_slower_only_where_the_processor_is_known_to_lack_it(
    capabilities, knows, monkeypatch
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    said = []
    say_if_slower(["full"], said.append)
    assert knows_bfloat16() is knows and not said
    say_if_slower(["full", "bf16"], said.append)
    assert len(said) == (knows is False)


def test_a_run_in_mixed_precision_says_where_full_precision_is_faster(tmp_path, monkeypatch):
    monkeypatch.setattr("unspur.runs.machines.knows_bfloat16", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    said = []
    config = configure("erm", "parity", settings=[*TINY, "erm.epochs=1", "precision=bf16"])
    run(config, tmp_path, say=said.append)
    run(configure("erm", "parity", settings=[*TINY, "erm.epochs=1"]), tmp_path, say=said.append)
    assert said == [
        "This processor has no bfloat16 arithmetic: precision=bf16 works here, but full precision is faster."
    ]
