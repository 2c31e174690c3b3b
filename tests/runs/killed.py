"""Run one tiny training and die by SIGKILL at a chosen moment: python killed.py MOMENT OUT [SETTING...]."""

import os
import signal
import sys
from pathlib import Path

import safetensors.torch

from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.train.session import Session


def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)


def arrange(moment: str) -> None:
    """Make this process die at ``moment``."""
    if moment == "epoch":  # half-way through the second epoch
        plain = Session.__init__

        def init(self, *args, **more):
            plain(self, *args, **more)
            self.progress = lambda stage, done: die() if done > 0.75 else None

        Session.__init__ = init
    elif moment == "checkpoint":  # half of the second checkpoint has been written
        save, calls = safetensors.torch.save_file, []

        def save_half(tensors, path, **more):
            save(tensors, path, **more)
            calls.append(path)
            if len(calls) == 2:
                whole = Path(path).read_bytes()
                Path(path).write_bytes(whole[: len(whole) // 2])
                die()

        safetensors.torch.save_file = save_half
    elif moment == "weights":  # model.safetensors is there, result.json is not
        Run.end = die


if __name__ == "__main__":
    moment, out, *settings = sys.argv[1:]
    arrange(moment)
    tiny = ["data.base=mini", "data.val=9000", "erm.epochs=2", "erm.batch_size=100", *settings]
    run(configure("erm", "biased_mnist", "small_cnn", 0, tiny), Path(out), resume=True)
