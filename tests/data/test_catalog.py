import pytest

from unspur.data.catalog import DATASETS, dataset_named, fetch, load
from unspur.errors import UnspurError


def test_each_set_is_filed_under_its_own_name():
    assert all(spec.name == name for name, spec in DATASETS.items())
    assert {
        "biased_mnist", "mnist_sc", "colored_mnist", "double_mnist", "mnist", "fashion_mnist", "parity", "moon_star",
    } <= set(DATASETS)  # fmt: skip


def test_a_misspelt_set_or_option_is_met_with_the_nearest_name():
    with pytest.raises(UnspurError, match=r"Unknown data set 'biased_mnst'\. Did you mean 'biased_mnist'\?"):
        dataset_named("biased_mnst")
    with pytest.raises(UnspurError, match=r"Unknown option of biased_mnist 'conflct'\. Did you mean 'conflict'\?"):
        load("biased_mnist", conflct=0.1)


def test_sets_that_are_made_by_code_have_nothing_to_fetch():
    assert fetch("parity") == []


def test_equal_options_are_equal_sets():
    assert DATASETS["biased_mnist"](base="mini") == DATASETS["biased_mnist"](base="mini")
    assert hash(DATASETS["parity"]()) == hash(DATASETS["parity"]())
