import pytest

from report.examples import tiny
from unspur.evaluation.scores import score
from unspur.metrics.groups import wilson_interval
from unspur.report.scores import only_class, scored

BLOCK = {
    "n": 40,
    "accuracy": 0.7,
    "ci95": [0.5, 0.8],
    "mean_group_accuracy": 0.7,
    "worst_group_accuracy": 0.3,
    "aligned_accuracy": 1.0,
    "conflicting_accuracy": 0.4,
    "train_weighted_accuracy": 0.94,
    "groups": [
        {"y": 0, "attributes": {"square": 0}, "n": 10, "accuracy": 0.5, "ci95": [0.2, 0.8]},
        {"y": 0, "attributes": {"square": 1}, "n": 10, "accuracy": 1.0, "ci95": [0.7, 1.0]},
        {"y": 1, "attributes": {"square": 0}, "n": 10, "accuracy": 1.0, "ci95": [0.7, 1.0]},
        {"y": 1, "attributes": {"square": 1}, "n": 10, "accuracy": 0.3, "ci95": [0.1, 0.6]},
    ],
}


def test_groups_go_by_the_names_of_their_class_and_values():
    rows = scored("original", BLOCK, tiny()).groups
    names = [(row.label, *row.values) for row in rows]
    assert names == [("low", "absent"), ("low", "present"), ("high", "absent"), ("high", "present")]


def test_a_group_is_aligned_when_training_pairs_its_class_and_value_more_often_than_chance():
    # Training: low goes with the square in 18 of 20, high without it in 18 of 20.
    assert [row.aligned for row in scored("original", BLOCK, tiny()).groups] == [False, True, True, False]


def test_the_worst_group_brings_its_own_interval():
    test = scored("original", BLOCK, tiny())
    assert (test.worst.value, test.worst.low, test.worst.high) == (0.3, 0.1, 0.6)


def test_the_interval_of_conflicting_images_counts_the_conflicting_groups_alone():
    # Two groups of 10, of which 5 and 3 are right: 8 of 20, and not 16 of all 40.
    conflicting = scored("original", BLOCK, tiny()).conflicting
    assert conflicting.n == 20
    assert (conflicting.low, conflicting.high) == wilson_interval(8, 20)


def test_the_rows_agree_with_a_real_evaluation():
    data = tiny()
    test = data.tests["original"]
    guess = 1 - test.attributes["square"]  # right on the aligned half, wrong on the other
    logits = guess[:, None] == guess.new_tensor([0, 1])
    rows = scored("original", score(logits.float(), test, data.train), data)
    assert (rows.accuracy.value, rows.aligned.value, rows.conflicting.value) == (0.5, 1.0, 0.0)
    assert [row.share.value for row in rows.groups] == [0.0 if row.aligned is False else 1.0 for row in rows.groups]


def test_what_cannot_be_known_is_none_and_never_zero():
    unknown = dict.fromkeys(
        ("worst_group_accuracy", "aligned_accuracy", "conflicting_accuracy", "mean_group_accuracy"), None
    )
    rows = scored("original", BLOCK | unknown | {"groups": []}, tiny())
    assert rows.accuracy.value == 0.7
    assert [rows.worst, rows.aligned, rows.conflicting, rows.mean_group] == [None] * 4
    assert rows.groups == ()


def test_a_model_that_predicts_one_class_is_known_by_its_name():
    assert scored("original", BLOCK | {"only_class": 1}, tiny()).only_class == "high"
    assert scored("original", BLOCK | {"only_class": None}, tiny()).only_class is None


def test_of_an_old_run_the_class_that_is_always_right_is_the_one_that_is_predicted():
    # Version 0.1 stored no class: high is right and low wrong, in both groups each.
    groups = [group | {"accuracy": float(group["y"])} for group in BLOCK["groups"]]
    assert only_class(BLOCK | {"groups": groups}) == 1
    assert only_class(BLOCK) is None


def test_with_other_attributes_than_in_training_nothing_is_aligned_or_conflicting():
    block = BLOCK | {
        "aligned_accuracy": None,
        "conflicting_accuracy": None,
        "groups": [{"y": 0, "attributes": {}, "n": 40, "accuracy": 0.7, "ci95": [0.5, 0.8]}],
    }
    rows = scored("original", block, tiny())
    assert [row.aligned for row in rows.groups] == [None] and rows.conflicting is None


def test_a_value_that_the_data_does_not_have_is_an_error():
    group = {"y": 0, "attributes": {"square": 7}, "n": 10, "accuracy": 0.5, "ci95": [0.2, 0.8]}
    with pytest.raises(IndexError):
        scored("original", BLOCK | {"groups": [group]}, tiny())
