"""Memory: what a machine has, so that what no machine can hold is refused before it is asked for."""

from __future__ import annotations

import os

from unspur.core.files import in_bytes
from unspur.errors import require


def machine_memory() -> int | None:
    """The bytes of memory that this machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(needed: int, what: str, instead: str) -> None:
    """Stop before ``what`` is made if it needs more memory than this machine has; ``instead`` says what to do."""
    has = machine_memory()
    require(
        has is None or needed <= has,
        f"{what} need {in_bytes(needed)} of memory, but this machine has {in_bytes(has or 0)}; {instead}.",
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` is what Python, NumPy or torch raise when they get no memory.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    True
    """
    told = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("allocate memory" in told or "out of memory" in told)
    )


OUT_OF_MEMORY = (
    "This takes more memory than there is; use smaller batches (erm.batch_size), smaller images (data.size), fewer "
    "samples or a smaller network"
)
