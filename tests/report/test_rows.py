import pytest

from report.examples import config, tiny
from unspur.evaluation.scores import score
from unspur.metrics.groups import wilson_interval
from unspur.report.rows import labels, scored, settings
from unspur.runs.config import configure

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


def test_runs_that_differ_in_precision_alone_are_told_apart():
    assert labels([config(), config("precision=bf16")]) == ["erm precision=full", "erm precision=bf16"]


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
    rows = scored("original", {"accuracy": 0.61}, tiny())
    assert rows.accuracy.value == 0.61
    assert [rows.accuracy.low, rows.worst, rows.aligned, rows.conflicting, rows.mean_group] == [None] * 5
    assert rows.groups == ()


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


def test_settings_that_were_changed_are_told_from_defaults():
    rows = {row.key: row for row in settings(config("erm.lr=0.5"))}
    assert (rows["erm.lr"].value, rows["erm.lr"].changed) == ("0.5", True)
    assert (rows["erm.momentum"].value, rows["erm.momentum"].changed) == ("0.9", False)
    assert (rows["data.base"].value, rows["data.base"].changed) == ("mini", True)
    assert rows["erm.lr"].comment == "learning rate"


def test_settings_name_the_method_the_data_the_arch_and_the_seed():
    rows = {row.key: row.value for row in settings(config(seed=3))}
    chosen = {key: rows[key] for key in ("method", "data.name", "arch.name", "seed")}
    assert chosen == {"method": "erm", "data.name": "biased_mnist", "arch.name": "small_cnn", "seed": "3"}


def test_runs_are_called_by_what_sets_them_apart():
    assert labels([config(), config("erm.lr=0.5")]) == ["erm erm.lr=0.01", "erm erm.lr=0.5"]


def test_runs_that_differ_by_seed_alone_are_called_the_same():
    assert labels([config(), config(seed=1)]) == ["erm", "erm"]


def test_methods_that_had_different_networks_say_so():
    ule = configure("ule", "biased_mnist", "cnn2", 0, ["data.base=mini"])
    erm = configure("erm", "biased_mnist", "small_cnn", 0, ["data.base=mini"])
    assert labels([erm, ule]) == ["erm small_cnn", "ule cnn2"]


def test_another_architecture_is_named_without_all_its_options():
    names = labels([config(), config(arch="fcn"), config("arch.width=7", arch="fcn")])
    assert names == ["erm small_cnn", "erm fcn arch.width=1024", "erm fcn arch.width=7"]


def test_another_version_of_the_data_sets_a_run_apart():
    assert labels([config("data.conflict=0.1"), config("data.conflict=0.2")]) == [
        "erm data.conflict=0.1",
        "erm data.conflict=0.2",
    ]


def test_a_setting_that_only_one_of_two_runs_has_sets_it_apart():
    names = labels([config(), config("erm.schedule=step", "erm.schedule.every=1")])
    assert names == ["erm erm.schedule=constant", "erm erm.schedule=step erm.schedule.every=1 erm.schedule.gamma=0.5"]
