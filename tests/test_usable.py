import pytest

from unspur.usable import Ended, gives_one_answer, usable


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
def test_one_answer_for_all_is_told_from_the_groups(block, one):
    assert gives_one_answer(block) is one


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


def test_a_dead_network_is_not_the_best_that_others_are_compared_with():
    assert usable({"dead": [done(0.95, 0.0, 1.0)], "alive": [done(0.6)]}) == {"alive"}


def test_a_network_that_is_dead_on_one_of_two_test_sets_has_learned():
    both = {"status": "done", "tests": {"a": scores(1.0, 0.0), "b": scores(0.9, 0.5)}}
    assert usable({"one": [Ended(both, 1.0)]}) == {"one"}
