"""A command that is shown makes the run that it is shown for."""

import itertools
import shlex
from dataclasses import replace

import pytest

from unspur.methods.catalog import METHODS
from unspur.methods.swap import Swap
from unspur.runs.config import configure
from unspur.runs.defaults import SetSize, fitted, given_keys
from unspur.runs.train_command import train_command
from unspur.train.recipe import SGD, AdamW
from unspur.train.schedules import Cosine

SIZE = SetSize(1800, 2)


def typed(command, size=SIZE):
    """The configuration that `unspur train` makes of a command."""
    _, _, method, data, _, arch, *rest = shlex.split(command)
    settings = [word for flag, word in itertools.pairwise(rest) if flag == "--set"]
    config = configure(method, data, arch, int(rest[-1]), settings)
    return fitted(config, given_keys(config.method, arch, settings), size)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("data", ["biased_mnist", "folder"])
def test_every_method_is_made_again_with_and_without_fitted_settings(name, data):
    plain = configure(name, data, "small_cnn", 7)
    assert typed(train_command(plain, SIZE)) == plain  # a folder's run that somebody made without fitted settings
    own = fitted(plain, frozenset({"arch"}), SIZE)
    assert typed(train_command(own, SIZE)) == own


def test_settings_survive_whatever_they_are():
    config = configure("masktune", "folder", "small_cnn", -3, ["data.root=my photos; rm", "data.augment.flip=false"])
    config = replace(config, method=replace(config.method, erm=AdamW(lr=1 / 3, epochs=2, schedule=Cosine())))
    config = replace(config, precision="bf16")
    assert typed(train_command(config, SIZE)) == config


def test_cues_of_a_swap_and_a_frozen_body_are_named():
    cues = ("cells:8x8:c0c0000000000000", "cast")
    config = configure("swap", "folder", "small_cnn", 0, ["data.root=photos"])
    config = replace(config, method=Swap(cues=cues, layers="last"), arch=replace(config.arch, freeze="backbone"))
    command = train_command(config, SIZE)
    assert "--set cues=cells:8x8:c0c0000000000000,cast" in command and "--set arch.freeze=backbone" in command
    assert typed(command) == config


def test_what_defaults_give_is_not_said():
    config = configure("erm", "biased_mnist", "small_cnn", 0, ["data.base=mini"])
    assert config.method.erm == SGD()
    assert train_command(config, SIZE) == "unspur train erm biased_mnist --arch small_cnn --set data.base=mini --seed 0"
