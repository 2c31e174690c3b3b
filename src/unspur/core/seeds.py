"""Independent random streams from one seed, so that nothing has to touch the global generator."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

import torch


def derive(seed: int, *labels: str | int) -> int:
    """A new seed for the purpose that ``labels`` name, independent of the seeds for other purposes.

    >>> derive(0, "erm", 1) == derive(0, "erm", 1), derive(0, "erm", 1) == derive(0, "erm", 2)
    (True, False)
    """
    return _seed_from(repr((seed, *labels)))


def stream(seed: int, *labels: str | int) -> torch.Generator:
    """A generator for the purpose that ``labels`` name."""
    return torch.Generator().manual_seed(derive(seed, *labels))


def data_stream(seed: int, purpose: str) -> torch.Generator:
    """A generator for one purpose in making or splitting data.

    Its seed is derived differently from ``stream``'s, and must stay so: published figures depend on the splits and
    planted sets that it draws.
    """
    return torch.Generator().manual_seed(_seed_from(f"{purpose} {seed}"))


@contextlib.contextmanager
def seeded(seed: int, *labels: str | int) -> Iterator[None]:
    """Run the block with torch's global generator seeded (dropout and initialisers use no other), then restore it."""
    with torch.random.fork_rng():
        # Without an accelerator, torch.manual_seed would keep a stack trace for each kind of accelerator, for good.
        seed_all = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
        seed_all(derive(seed, *labels))
        yield


def _seed_from(text: str) -> int:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1  # torch takes 63 bits
