"""How many threads an operation may use, where several operations run side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """During the block each operation uses one thread, also in threads started there, which share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
