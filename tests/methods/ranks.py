"""What each of two processes does in the test of methods on two devices; a module, so that they can import it."""

import torch

from methods.shrinking import shrunk, small_network
from unspur.data.catalog import load
from unspur.methods.catalog import METHODS
from unspur.train.session import Session, leave_group


def work(fabric, folder, names):
    data = load("biased_mnist", base="mini")
    train, val = data.train.subset(torch.arange(0, len(data.train), 60)), data.val.subset(torch.arange(100))
    for name in names:
        fit = shrunk(METHODS[name]()).fit(small_network(), train, val=val, session=Session(fabric))
        torch.save(fit.model.state_dict(), folder / f"{name}-{fabric.global_rank}.pt")
    leave_group()
