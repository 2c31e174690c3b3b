import pytest
import torch

from unspur.core.seeds import data_stream, derive, seeded, stream


def test_data_are_drawn_as_when_figures_were_first_published():
    # sha256("split 0") and sha256("(0, 'erm', 1)") begin with these eight bytes, read from the low end, less one bit
    assert data_stream(0, "split").initial_seed() == 5427413918437147650
    assert derive(0, "erm", 1) == 3996282388054294210
    assert stream(0, "split").initial_seed() != data_stream(0, "split").initial_seed()


def test_the_global_generator_is_as_it_was_after_a_seeded_block():
    before = torch.random.get_rng_state()
    with seeded(0, "dropout"):
        torch.rand(3)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator is seeded as well")
def test_a_seeded_block_leaves_nothing_behind_for_accelerators_that_are_not_there():
    # torch.manual_seed keeps the seed and a stack trace for a CUDA that may come later: once an epoch, for good
    before = len(torch.cuda._queued_calls)
    with seeded(0, "dropout"):
        drawn = torch.rand(3)
    assert len(torch.cuda._queued_calls) == before
    assert torch.equal(drawn, torch.rand(3, generator=stream(0, "dropout")))
