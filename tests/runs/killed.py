"""Do one tiny training that dies by SIGKILL at a moment, and goes on, for several moments: python killed.py OUT.

Each has a folder below OUT. Prints how the processes of each moment ended, and whether the first of them left a result.
They are forks of one that has imported everything, unpacked the digits and computed nothing.
"""

import json
import os
import signal
import sys
from pathlib import Path

import safetensors.torch

from unspur.data.mini.digits import load_mini
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


MOMENTS = ("never", "epoch", "checkpoint", "weights")
TINY = ["arch.width=16", "data.base=mini", "data.val=9000", "erm.epochs=2", "erm.batch_size=100"]


def train(moment: str, out: Path) -> int:
    """How a process ended that trains and dies at ``moment``."""
    child = os.fork()
    if child == 0:
        arrange(moment)
        run(configure("erm", "biased_mnist", "fcn", 0, TINY), out, resume=True)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    load_mini()  # most of the time of so small a run
    told = {}
    for moment in MOMENTS:
        out = Path(sys.argv[1]) / moment
        first = train(moment, out)
        told[moment] = {"first": first, "left": [path.name for path in out.glob("*/result.json")]}
        told[moment]["second"] = train("never", out)
    print(json.dumps(told))
