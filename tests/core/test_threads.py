"""Operations that run side by side use one thread each."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from unspur.core.threads import one_thread_each


@pytest.fixture(autouse=True)
def as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_threads_that_are_started_in_the_block_use_one_each():
    torch.set_num_threads(3)
    with one_thread_each(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_the_number_is_as_before_after_an_error():
    torch.set_num_threads(3)
    with pytest.raises(ValueError, match="stop"), one_thread_each():
        raise ValueError("stop")
    assert torch.get_num_threads() == 3
