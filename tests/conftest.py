"""What tests of several rooms share."""

import multiprocessing

import pytest
import torch
from filelock import FileLock

FORKS = "ignore:.*multi-threaded, use of fork:DeprecationWarning"  # later Pythons; the other threads here only wait


@pytest.fixture
def copies(monkeypatch):
    """Processes that begin as copies of this one: they need not import torch again, which takes seconds.

    They compute with one thread, since the threads of this process are not theirs. CUDA, once used, cannot be copied.
    """
    if torch.cuda.is_initialized():
        yield
        return
    context, threads = multiprocessing.get_context("fork"), torch.get_num_threads()
    monkeypatch.setattr(multiprocessing, "get_context", lambda method=None: context)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def only_ray(tmp_path_factory):
    """No other test has a Ray cluster meanwhile: a sweep uses any that runs on this machine, and would wait for it."""
    pytest.importorskip("ray")
    with FileLock(tmp_path_factory.getbasetemp().parent / "ray.lock"):
        yield


def pytest_collection_modifyitems(items):
    for item in items:
        if "copies" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings(FORKS))
