"""Defaults that a method's paper names, where its own tests use others: a changed one is another method."""

import pytest

from unspur.methods.catalog import METHODS

NAMED = {
    "deep_gamblers": {"payoff": 2.2},  # the middle of what its paper tries on CIFAR-10
    "disent": {"q": 0.7, "decay": 0.7, "bias": 10.0, "swap": 1.0, "swap_bias": 10.0, "after": 0.2},  # Colored MNIST's
    "divdis": {"heads": 2, "information": 10.0, "shares": 10.0},
    "eiil": {"lr": 1e-3, "steps": 10_000},
    "end": {"alpha": 0.1, "beta": 0.1},
    "lff": {"q": 0.7, "decay": 0.7},
    "osp": {"mu": 0.49},
    "selectivenet": {"lam": 32.0, "alpha": 0.5},
    "spare": {"apart": 0.9},
    "ssa": {"folds": 3, "least": 0.95},
}


@pytest.mark.parametrize("name", NAMED)
def test_the_defaults_are_those_that_the_paper_names(name):
    method = METHODS[name]()
    assert {setting: getattr(method, setting) for setting in NAMED[name]} == NAMED[name]
