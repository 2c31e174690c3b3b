"""What every method must keep, run over all of them with settings that take a moment."""

import dataclasses
import json

import pytest
import torch
from lightning_fabric import Fabric

from unspur.data.files.fetch import DataFiles
from unspur.methods.catalog import METHODS
from unspur.runs.config import configure
from unspur.train.session import Session

SHORT = ["masks.steps=3", "masks.batch_size=8"]
# Settings that make a fit take a moment; a new method adds a line.
QUICK = {
    "balanced_last_layer": ["lrs=0.1,0.01", "l2s=0.001", "epochs=4", "every=2"],
    "dcwp": ["mining.training.epochs=1", "erm.epochs=1", *SHORT, *(key.replace("masks", "tuning") for key in SHORT)],
    "erm": ["erm.epochs=2"],
    "large_lr": ["erm.epochs=2", "erm.lr=0.1", "probe.steps=3", "probe.tries=1", "probe.samples=100"],
    "masktune": ["erm.epochs=2", "iterations=2"],
    "mrm": ["erm.epochs=1", *SHORT],
    "randmask": ["erm.epochs=2"],
    "ule": ["erm.epochs=1"],
    "ule_last_layer": ["lams=0.5,1", "lrs=0.1,0.01", "l2s=0.001", "epochs=4", "every=2"],
}
ARCH = "cnn2"  # has dropout: the global generator is tempting


@pytest.fixture(scope="module")
def data():
    whole = configure("erm", "biased_mnist", ARCH, settings=["data.base=mini"]).data.load(DataFiles(None))
    some = torch.arange(0, len(whole.train), 25)
    return dataclasses.replace(whole, train=whole.train.subset(some), val=whole.val.subset(torch.arange(100)))


def fit(name, data, folder=None, *, seed=0, groups=True, session=None):
    config = configure(name, "biased_mnist", ARCH, settings=QUICK[name])
    train, val = (split if groups else split.without_attributes() for split in (data.train, data.val))
    model = config.arch.build(data, seed=seed)
    return config.method.fit(model, train, val=val, seed=seed, session=session or Session(folder=folder))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name, data):
    first, second, other = fit(name, data), fit(name, data), fit(name, data, seed=1)
    assert same(first.model, second.model) and not same(first.model, other.model)
    assert json.dumps(first.facts) == json.dumps(second.facts)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.needs_groups])
def test_a_method_that_needs_no_groups_does_not_look_at_them(name, data):
    assert same(fit(name, data).model, fit(name, data, groups=False).model)


@pytest.mark.parametrize("name", METHODS)
def test_global_random_state_is_left_alone(name, data):
    torch.rand(1)
    before = torch.get_rng_state()
    fit(name, data)
    assert torch.equal(before, torch.get_rng_state())


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_interrupted_anywhere_resumes_to_the_same_bits(name, data, tmp_path):
    whole = fit(name, data)
    calls = count_progress(name, data)
    for number, part in enumerate((0.3, 0.6, 0.95)):
        folder = tmp_path / str(number)
        left = int(calls * part)

        def stop(stage, done):
            nonlocal left
            left -= 1
            if left < 0:
                raise Interrupt

        with pytest.raises(Interrupt):
            fit(name, data, session=Session(folder=folder, progress=stop))
        resumed = fit(name, data, folder)
        assert same(whole.model, resumed.model)
        for stage, model in whole.stages.items():
            assert same(model, resumed.stages[stage]), stage
        assert json.dumps(whole.facts) == json.dumps(resumed.facts)


def count_progress(name, data):
    calls = []
    fit(name, data, session=Session(progress=lambda stage, done: calls.append(done)))
    assert all(0 < done <= 1 for done in calls)
    return len(calls)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_frozen_dataclass_with_a_line_of_description(name):
    method = METHODS[name]()
    assert method.name == name
    assert type(method).__doc__.splitlines()[0].endswith(".")
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.name = "other"


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.mixes])
def test_a_method_that_mixes_precisions_computes_in_16_bits_and_keeps_weights_in_32(name, data, monkeypatch):
    seen, forward = set(), torch.nn.Conv2d.forward

    def spy(layer, x):
        y = forward(layer, x)
        if layer.training:
            seen.add(y.dtype)
        return y

    monkeypatch.setattr(torch.nn.Conv2d, "forward", spy)
    mixed = fit(name, data, session=Session(Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")))
    assert seen == {torch.bfloat16}  # in every stage that trains
    assert {weight.dtype for weight in mixed.model.parameters()} == {torch.float32}
