import pytest

from unspur.runs.ranking import mean_ranks, ranks


def test_equal_scores_share_the_mean_of_their_ranks():
    assert ranks({"a": (0.9,), "b": (0.5,), "c": (0.5,), "d": (0.5,), "e": (0.1,)}) == {
        "a": 1,
        "b": 3,
        "c": 3,
        "d": 3,
        "e": 5,
    }


def test_the_best_mean_rank_comes_first():
    blocks = [
        {"a": (0.1,), "b": (0.9,), "c": (0.5,)},
        {"a": (0.3,), "b": (0.2,), "c": (0.9,)},
        {"a": (0.1,), "b": (0.8,), "c": (0.7,)},
    ]
    found = mean_ranks(blocks)
    # a: 3, 2, 3; b: 1, 3, 1; c: 2, 1, 2
    assert list(found) == ["b", "c", "a"] and found["a"]["rank"] == pytest.approx(8 / 3)


def test_an_interval_holds_the_mean_and_lies_within_what_was_seen_and_few_blocks_have_none():
    blocks = [
        {"a": (0.1,), "b": (0.9,)},
        {"a": (0.9,), "b": (0.1,)},
        {"a": (0.1,), "b": (0.9,)},
        {"a": (0.2,), "b": (0.9,)},
    ]
    rank = mean_ranks(2 * blocks)["a"]
    low, high = rank["ci95"]
    assert 1 <= low < rank["rank"] == 1.75 < high <= 2 and rank["blocks"] == 8
    assert mean_ranks(blocks)["a"]["ci95"] is None  # of four, a bootstrap's interval is about their range


def test_intervals_are_the_same_every_time():
    blocks = 2 * [{"a": (0.1,), "b": (0.9,)}, {"a": (0.9,), "b": (0.1,)}, {"a": (0.5,), "b": (0.1,)}]
    assert mean_ranks(blocks) == mean_ranks(blocks)


def test_a_method_that_did_not_run_somewhere_is_ranked_where_it_did():
    found = mean_ranks([{"a": (0.5,), "b": (0.9,)}, {"a": (0.5,)}])
    assert found["b"] == {"rank": 1.0, "ci95": None, "blocks": 1} and found["a"]["blocks"] == 2
