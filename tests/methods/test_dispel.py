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


def test_without_mixing_it_is_dfr():
    alone = replace(QUICK, shares=(1.0,)).fit(network(), shortcut(), val=held_out()).model.state_dict()
    dfr = DFR(erm=PLAIN, strengths=(1.0, 0.1), fits=5, steps=300)
    expected = dfr.fit(network(), shortcut(), val=held_out()).model.state_dict()
    assert all(torch.equal(alone[name], expected[name]) for name in expected)


def test_the_more_is_mixed_in_the_nearer_the_answers_are_to_the_training_sets():
    some = [replace(QUICK, shares=(s,)).fit(network(), shortcut(), val=held_out()) for s in (1.0, 0.3)]
    assert misled(some[1]) < misled(some[0])  # where the shortcut rules


def test_shares_above_one_are_refused():
    with pytest.raises(UnspurError, match=r"shares must be at most 1 but got \[1.5\]"):
        DISPEL(shares=(1.5,))
