"""What every method must keep, run over all of them with settings that take a moment."""

import dataclasses
import json
import math
import typing

import pytest
import torch
from lightning_fabric import Fabric

from methods.shrinking import shrunk, small_network
from unspur.data.augment import Augment
from unspur.data.catalog import load
from unspur.errors import UnspurError
from unspur.methods import base
from unspur.methods.base import LogitsMethod
from unspur.methods.catalog import METHODS
from unspur.models.catalog import build_model
from unspur.train import loop, sharpness
from unspur.train.session import Session


@pytest.fixture(scope="module")
def data():
    whole = load("biased_mnist", base="mini")
    some = torch.arange(0, len(whole.train), 60)
    conflicting = (whole.val.attributes["square"] == whole.val.y).nonzero().squeeze(1)  # a few, so that no group lacks
    held = torch.cat([torch.arange(100), conflicting]).unique()
    return dataclasses.replace(whole, train=whole.train.subset(some), val=whole.val.subset(held))


def fit(name, data, folder=None, *, seed=0, groups=True, session=None):
    method = shrunk(METHODS[name]())
    train = data.train if groups else data.train.without_attributes()
    val = data.val if groups or method.needs_val_groups else data.val.without_attributes()
    model = small_network(seed)
    return method.fit(model, train, val=val, seed=seed, session=session or Session(folder=folder))


@pytest.fixture(scope="module")
def whole(data):
    """By a method's name: its fit, made once, its progress, and the global states before and after."""
    known = {}

    def of(name):
        if name not in known:
            calls = []
            torch.rand(1)
            before = torch.get_rng_state()
            found = fit(name, data, session=Session(progress=lambda stage, done: calls.append(done)))
            known[name] = found, calls, (before, torch.get_rng_state())
        return known[name]

    return of


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name, data, whole):
    first, second, other = whole(name)[0], fit(name, data), fit(name, data, seed=1)
    assert same(first.model, second.model) and not same(first.model, other.model)
    assert json.dumps(first.facts) == json.dumps(second.facts)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.needs_groups])
def test_a_method_that_needs_no_groups_does_not_look_at_them(name, data, whole):
    assert same(whole(name)[0].model, fit(name, data, groups=False).model)


@pytest.mark.parametrize("name", METHODS)
def test_global_random_state_is_left_alone(name, whole):
    before, after = whole(name)[2]
    assert torch.equal(before, after)


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_interrupted_anywhere_resumes_to_the_same_bits(name, data, whole, tmp_path):
    expected, calls, _ = whole(name)
    assert all(0 < done <= 1 for done in calls)
    for number, part in enumerate((0.3, 0.8)):
        folder = tmp_path / str(number)
        left = int(len(calls) * part)

        def stop(stage, done):
            nonlocal left
            left -= 1
            if left < 0:
                raise Interrupt

        with pytest.raises(Interrupt):
            fit(name, data, session=Session(folder=folder, progress=stop))
        resumed = fit(name, data, folder)
        assert same(expected.model, resumed.model)
        for stage, model in expected.stages.items():
            assert same(model, resumed.stages[stage]), stage
        assert json.dumps(expected.facts) == json.dumps(resumed.facts)


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


@pytest.mark.parametrize("name", METHODS)
def test_an_objective_changes_nothing_so_that_it_can_be_asked_twice(name, data, whole, monkeypatch):
    """ASAM asks it twice a step; here every step asks once more, and the weights must stay the same."""
    expected, step = whole(name)[0], loop._Stage._step

    def twice(stage, module, optimiser, batch, size, number):
        with torch.random.fork_rng(), sharpness._statistics_kept(module):
            stage.objective(module, batch, number)
        return step(stage, module, optimiser, batch, size, number)

    monkeypatch.setattr(loop._Stage, "_step", twice)
    assert same(expected.model, fit(name, data).model)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.needs_groups])
def test_a_method_that_needs_groups_refuses_data_without_them_and_names_others(name, data):
    with pytest.raises(UnspurError, match=f"{name} needs training data with group labels.*such as masktune"):
        fit(name, data, groups=False)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.needs_val_groups])
def test_a_method_that_needs_groups_to_choose_refuses_validation_data_without_them(name, data):
    for val in (None, data.val.without_attributes(), data.val.subset(torch.arange(0))):
        with pytest.raises(UnspurError, match=f"{name} needs validation data with group labels.*such as masktune"):
            METHODS[name]().fit(small_network(), data.train, val=val)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.one_device])
def test_a_method_for_one_device_refuses_two(name, data):
    with pytest.raises(UnspurError, match=f"{name} runs on one device, but got 2; use --devices 1"):
        METHODS[name]().require(small_network(), data.train, data.val, devices=2)


@pytest.mark.parametrize("name", METHODS)
def test_a_baseline_is_one_of_the_stages(name, whole):
    found = whole(name)[0]
    assert found.baseline is None or found.baseline.stage in found.stages


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if issubclass(method, LogitsMethod)])
def test_a_frozen_network_trained_on_its_features_is_the_one_trained_on_images(name, data, monkeypatch):
    def fitted():
        model = build_model("cnn3", data, seed=0, freeze="backbone")
        still = dataclasses.replace(data.train, augment=Augment())  # moves nothing, as it is for folders
        return shrunk(METHODS[name]()).fit(model, still, val=data.val)

    computed = []
    features = base.on_features
    monkeypatch.setattr(base, "on_features", lambda *given: computed.append(given[-1]) or features(*given))
    by_features = fitted()
    assert computed == ["features", "val-features"]
    assert ("which are frozen" in " ".join(by_features.warnings)) == METHODS[name].moves_features
    monkeypatch.setattr(base, "frozen_body", lambda *given: False)
    by_images = fitted()
    x = data.val.batch(torch.arange(50)).x
    for a, b in [
        (by_features.model, by_images.model),
        *zip(by_features.stages.values(), by_images.stages.values(), strict=True),
    ]:
        torch.testing.assert_close(a(x), b(x), atol=0.02, rtol=0)


def numbers(spec):
    """Every field of the class ``spec``, and of all classes that its fields can hold, that is a number or several."""
    hints, found = typing.get_type_hints(spec), {}
    for field in dataclasses.fields(spec):
        hint = hints[field.name]
        kinds = [hint, *typing.get_args(hint)]
        several = tuple[float, ...] in kinds
        if several or float in kinds:
            found[f"{spec.__name__}.{field.name}"] = spec, field.name, several
        for kind in filter(dataclasses.is_dataclass, kinds):
            found |= numbers(kind)
    return found


NUMBERS = {key: setting for method in METHODS.values() for key, setting in numbers(method).items()}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("spec", "name", "several"), NUMBERS.values(), ids=NUMBERS)
def test_a_setting_that_is_no_finite_number_is_refused_in_one_sentence(spec, name, several, value):
    for given in [(value,), (0.5, value), (value, 0.5)] if several else [value]:
        with pytest.raises(UnspurError) as error:
            spec(**{name: given})
        sentence = str(error.value)
        assert name in sentence and str(value) in sentence and sentence.find(". ") < 0 and sentence.endswith(".")
