import platform
import subprocess
import sys

import pytest

from unspur.core import memory
from unspur.core.memory import keep_freed_memory, machine_memory, require_memory
from unspur.errors import UnspurError


def test_what_does_not_fit_is_refused_with_both_figures(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 8_000_000_000)
    require_memory(8_000_000_000, "Samples", "take fewer")
    with pytest.raises(
        UnspurError, match=r"^Samples need 8.1 GB of memory, but this machine has 8.0 GB; take fewer\.$"
    ):
        require_memory(8_100_000_000, "Samples", "take fewer")


def test_a_system_that_does_not_say_what_it_has_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    require_memory(10**30, "Samples", "take fewer")


def test_this_machine_has_some_memory():
    assert (machine_memory() or 2**30) > 2**28


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_what_a_training_frees_is_kept_for_its_next_step():
    """Memory that was freed is there at once: no page of it must be asked for again."""
    script = (
        "import resource, torch\n"
        "from unspur.core.memory import keep_freed_memory\n"
        "print(keep_freed_memory())\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(20): torch.ones(2**23)\n"
        "before = faults()\n"
        "for _ in range(20): torch.ones(2**23)\n"
        "print(faults() - before < 8192)\n"  # the pages of one such tensor
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_where_there_is_no_such_setting_nothing_happens(monkeypatch):
    keep_freed_memory.cache_clear()
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert keep_freed_memory() is False
    keep_freed_memory.cache_clear()
