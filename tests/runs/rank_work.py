"""What processes that work together do in the tests of their supervisor; a module, so that they can import it."""

import os
import signal
from functools import partial

from lightning_fabric import Fabric

fabric = partial(Fabric, accelerator="cpu")


def reason(error):
    return f"reason: {error}"


def numbers(fabric):
    """Every process meets the others, and returns who it is."""
    fabric.barrier()
    return fabric.global_rank, fabric.world_size


def killed(fabric):
    """The second process is killed while the first waits for it."""
    fabric.barrier()
    if fabric.global_rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    fabric.barrier()


def full_disk(fabric):
    """The first process cannot write while the second waits for it."""
    fabric.barrier()
    if fabric.global_rank == 0:
        raise OSError(28, "No space left on device")
    fabric.barrier()


def end_at_once(fabric, **_rest):
    """Every process ends without a word."""
    os._exit(3)
