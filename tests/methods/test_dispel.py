from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.base import Fit
from unspur.methods.dfr import DFR
from unspur.methods.dispel import DISPEL

QUICK = DISPEL(erm=PLAIN, strengths=(1.0, 0.1), fits=5, steps=300)


def held_out():
    return shortcut(400, conflicting=40, seed=5)


def test_conflicting_samples_are_classified_better_than_by_the_network_it_began_as():
    fit = QUICK.fit(network(), shortcut(), val=held_out())
    before = misled(Fit(fit.stages["erm"]))
    assert before < 0.1 and misled(fit) > before + 0.5
    assert fit.facts["chosen"]["share"] in (1.0, 0.9, 0.8, 0.7)


def test_it_fits_as_many_samples_of_each_class_as_the_smaller_class_has_in_both_sets():
    data, val = shortcut(), held_out()
    y = torch.cat([data.y, val.y])
    fit = QUICK.fit(network(), data, val=val)
    assert fit.facts["fitted_samples"] == 2 * int(torch.bincount(y).min())
    alone = DFR(erm=PLAIN, strengths=(1.0, 0.1), fits=5, steps=300).fit(network(), data, val=val)
    assert fit.facts["fitted_samples"] > 5 * alone.facts["fitted_samples"]


def test_the_more_is_mixed_in_the_nearer_the_answers_are_to_the_training_sets():
    some = [replace(QUICK, shares=(s,)).fit(network(), shortcut(), val=held_out()) for s in (1.0, 0.3)]
    assert misled(some[1]) < misled(some[0])  # where the shortcut rules


def test_shares_above_one_are_refused():
    with pytest.raises(UnspurError, match=r"shares must be at most 1 but got \[1.5\]"):
        DISPEL(shares=(1.5,))
