import pytest

from unspur.core import memory
from unspur.core.memory import machine_memory, require_memory
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
