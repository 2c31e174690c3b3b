"""Memory: refuse, before it is allocated, what this machine cannot hold; and keep freed memory for reuse."""

from __future__ import annotations

import contextlib
import ctypes
import os
from functools import cache

from unspur.core.files import in_bytes
from unspur.errors import require

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # as glibc's malloc.h numbers them
KEPT = {M_MMAP_THRESHOLD: 2**30, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 2**28}


@cache
def keep_freed_memory() -> bool:
    """Let this process keep freed memory for its next allocations; False where the system has no such setting.

    By default glibc returns a large tensor's memory to the system as soon as it is freed. Every training step then
    allocates the same memory again, a page at a time, on which fine-tuning on photographs spends a quarter of its time
    (benchmarks/freed_memory.py).
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # such as where there is no glibc
        set_option = ctypes.CDLL(None).mallopt
        return all([set_option(option, value) == 1 for option, value in KEPT.items()])
    return False


def machine_memory() -> int | None:
    """The bytes of memory that this machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(needed: int, what: str, instead: str) -> None:
    """Raise an error if ``what`` would need more memory than this machine has; ``instead`` says what to do."""
    has = machine_memory()
    require(
        has is None or needed <= has,
        f"{what} need {in_bytes(needed)} of memory, but this machine has {in_bytes(has or 0)}; {instead}.",
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` is what Python, NumPy or torch raise when they run out of memory.

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
