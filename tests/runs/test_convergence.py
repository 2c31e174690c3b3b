import pytest

from unspur.runs.convergence import Ended, predicts_one_class, usable


def scores(*shares, classes=2):
    """A test set whose groups, first all of one attribute and then all of the other, have these accuracies."""
    return {"groups": [{"y": number % classes, "accuracy": share} for number, share in enumerate(shares)]}


def done(fitted, *shares):
    return Ended({"status": "done", "tests": {"test": scores(*(shares or (0.9, 0.8, 0.7, 0.6)))}}, fitted)


@pytest.mark.parametrize(
    ("block", "one"),
    [
        (scores(1.0, 0.0, 1.0, 0.0), True),
        (scores(1.0, 0.0, 0.0, classes=3), True),
        (scores(0.0, 0.0, 0.0, 0.0), False),  # a shortcut on images where it misleads
        (scores(1.0, 0.0, 0.0, 1.0), False),  # the answer is the attribute
        (scores(1.0, 1.0), False),
        (scores(1.0, 0.01), False),
        (scores(1.0, classes=1), False),  # a single class tells nothing
    ],
)
def test_one_class_for_all_is_seen_in_the_groups_of_runs_that_do_not_store_it(block, one):
    assert predicts_one_class(block) is one


def test_a_setting_is_usable_if_all_its_runs_learned_and_fit_nearly_as_well_as_the_best():
    runs = {
        "good": [done(1.0), done(0.76)],
        "one of two lost": [done(1.0), done(0.74)],
        "diverged": [done(1.0), Ended({"status": "diverged"}, None)],
        "dead": [done(0.9, 1.0, 0.0)],
        "not known": [done(None)],
        "not run": [],
    }
    assert usable(runs) == {"good", "not known"}


def test_what_ends_well_beyond_a_failure_does_not_count_where_there_is_an_order():
    weak, fine, lucky = [done(0.5)], [done(1.0), done(0.9)], [done(1.0)]
    failures = {
        "diverged": [done(1.0), Ended({"status": "diverged"}, None)],
        "lost": [done(0.7)],
        "dead": [done(1.0, 1.0, 0.0)],
    }
    for failure in failures.values():
        runs = {0.1: weak, 0.2: fine, 0.4: failure, 0.8: lucky}
        assert usable(runs) == {0.2, 0.8}
        assert usable(runs, in_order=True) == {0.2}


@pytest.mark.parametrize(
    "own", [[], [Ended({"status": "failed"}, None)], [done(1.0), Ended({"status": "unfinished"}, None)]]
)
def test_a_setting_that_was_not_run_to_its_end_is_no_failure(own):
    runs = {0.1: [done(1.0)], 0.2: own, 0.4: [done(1.0)]}
    assert usable(runs, in_order=True) == {0.1, 0.4}


def test_a_dead_network_is_not_the_best_that_others_are_compared_with():
    assert usable({"dead": [done(0.95, 0.0, 1.0)], "alive": [done(0.6)]}) == {"alive"}


def test_a_network_that_is_dead_on_one_of_two_test_sets_has_learned():
    both = {"status": "done", "tests": {"a": scores(1.0, 0.0), "b": scores(0.9, 0.5)}}
    assert usable({"one": [Ended(both, 1.0)]}) == {"one"}
