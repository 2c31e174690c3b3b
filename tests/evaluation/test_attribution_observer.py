import json
import re

import pytest
import torch
from torch import nn

from unspur.core.files import read_tensors
from unspur.data.base import Split
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.evaluation.attribution_observer import FOLLOWED, Attributions
from unspur.report.runs_page import write_report
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.saliency.attributions import integrated_gradients
from unspur.train.loop import train
from unspur.train.observers import Dynamics, Together
from unspur.train.recipe import SGD
from unspur.train.session import Session

MASKS = {"core": torch.tensor([True, False]), "spurious": torch.tensor([False, True])}
TINY = ["arch.width=8", "erm.epochs=2", "data.train=200", "data.test=100", "data.val=0"]
DIGITS = ["arch.width=8", "arch.depth=1", "data.base=mini", "data.val=9500"]


def split(n=40):
    y = torch.arange(n) % 2
    return Split(torch.ones(n, 2), y, {"a": y})


def network():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[3.0, 1.0], [-1.0, -1.0]]))
        model[2].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    return model


class Moment:
    stage = "erm"

    def __init__(self, model, epoch=0):
        self.model, self.epoch = model, epoch


def figures(neuron, model=None):
    observer = Attributions(split(), MASKS, neuron, seed=0)
    observer.see(Moment(model or network()))
    return observer.figures()


def test_a_neurons_spurious_use_is_its_share_of_what_it_fires_for():
    # inputs (1, 1): neuron 0 is 3 x_core + 1 x_spurious, a share of 1/4; logit 0 is that neuron
    found = figures(0)
    assert found["neuron_spurious_use"] == pytest.approx(0.25, abs=1e-5)
    assert found["spurious_attribution"] == pytest.approx(0.25, abs=1e-5)
    assert found["core_attribution"] == pytest.approx(0.75, abs=1e-5)


def test_a_neuron_that_never_fires_uses_nothing_that_could_be_told():
    assert "neuron_spurious_use" not in figures(1)


def test_the_neuron_is_looked_at_every_20_steps_and_its_change_is_relative():
    observer, model = Attributions(split(), MASKS, 0, seed=0), network()
    for step in range(41):
        if step == 20:  # from 3 x_core + x_spurious to 3 x_core + 5 x_spurious: from 4 to 8, a change of 4 / (4 + 8)
            model[0].weight.data[0, 1] = 5.0
        observer.see(Moment(model))
    found = observer.figures()
    uses, changes = found["neuron_uses"], found["neuron_changes"]
    assert len(uses) == len(changes) == 41
    assert [uses[step] for step in (0, 20, 40)] == pytest.approx([0.25, 0.625, 0.625], abs=1e-4)
    assert [changes[step] for step in (0, 20, 40)] == [None, 0.3333, 0.0]
    assert {uses[step] for step in range(41) if step % 20} == {None}
    observer.see(Moment(model, epoch=1))
    assert observer.figures()["neuron_changes"] == [None]  # as a run that is resumed here would note


def test_a_neuron_that_begins_to_fire_has_changed_wholly_and_one_that_does_not_fire_not_at_all():
    observer, model = Attributions(split(), MASKS, 1, seed=0), network()
    for step in range(41):
        if step == 40:
            model[0].weight.data[1] = 1.0
        observer.see(Moment(model))
    changes = observer.figures()["neuron_changes"]
    assert (changes[20], changes[40]) == (None, 1.0)


def test_it_follows_the_neuron_through_training():
    session = Session(observer=Together([Dynamics(split()), Attributions(split(), MASKS, 0, seed=0)]))
    train(network(), split(), SGD(lr=0.5, epochs=2, batch_size=20), stage="erm", session=session)
    first, second = session.history["erm"]
    assert {"neuron_spurious_use", "core_attribution", "parameter_norm"} <= set(first)
    assert first["neuron_spurious_use"] != second["neuron_spurious_use"]


def test_a_data_set_without_a_place_for_its_shortcut_is_refused():
    with pytest.raises(UnspurError, match="where class and shortcut lie apart"):
        Attributions(split(), {}, 0, seed=0)


def test_following_changes_no_weight_and_is_written_with_the_run(tmp_path):
    config = configure("erm", "parity", "fcn", 0, TINY)
    run(config, tmp_path / "plain")
    run(config, tmp_path / "followed", follow=3)
    plain, followed = (Run.create(tmp_path / name, config).folder for name in ("plain", "followed"))
    assert (plain / "model.safetensors").read_bytes() == (followed / "model.safetensors").read_bytes()
    lines = [json.loads(line) for line in (followed / "metrics.jsonl").read_text().splitlines()]
    assert all(len(line["neuron_uses"]) == len(line["loss_ratios"]) for line in lines)
    shares = [sum(line[f"{part}_attribution"] for part in ("core", "spurious", "noise")) for line in lines]
    assert shares == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("data", "neuron", "sentence"),
    [("parity", 8, "neurons 0 to 7, but got 8")],
)
def test_what_cannot_be_followed_is_told_before_anything_is_written(tmp_path, data, neuron, sentence):
    with pytest.raises(UnspurError, match=sentence):
        run(configure("erm", data, "fcn", 0, TINY), tmp_path / "out", follow=neuron)
    assert not (tmp_path / "out").exists()


def test_a_linear_model_has_no_neuron_to_follow(tmp_path):
    with pytest.raises(UnspurError, match="no penultimate activations"):
        run(configure("erm", "parity", "fcn", 0, [*TINY, "arch.depth=0"]), tmp_path / "out", follow=0)
    assert not (tmp_path / "out").exists()


def test_a_run_that_has_ended_cannot_be_followed_any_more(tmp_path):
    config, said = configure("erm", "parity", "fcn", 0, TINY), []
    run(config, tmp_path)
    run(config, tmp_path, follow=0, say=said.append)
    assert len(said) == 1 and "has ended before" in said[0]


def test_maps_of_the_same_images_are_kept_after_every_epoch_also_where_shortcut_and_class_share_their_place(tmp_path):
    config = configure("erm", "colored_mnist", "fcn", 0, [*DIGITS, "erm.epochs=2"])
    run(config, tmp_path / "plain")
    run(config, tmp_path / "followed", follow=0)
    plain, followed = (Run.create(tmp_path / name, config).folder for name in ("plain", "followed"))
    assert (plain / "model.safetensors").read_bytes() == (followed / "model.safetensors").read_bytes()
    assert not (plain / FOLLOWED).exists()
    first, last = (read_tensors(followed / FOLLOWED / f"erm-{epoch:05d}.safetensors")[0] for epoch in (1, 2))
    assert first["index"].equal(last["index"]) and first["maps"].shape == (6, 28, 28)
    data = config.data.load(DataFiles(None))
    model = Run.create(tmp_path / "followed", config).load_model(data)
    maps = integrated_gradients(model, data.train.batch(last["index"]).x).sum(1).abs()
    assert torch.allclose(last["maps"], maps, atol=1e-5) and not torch.allclose(first["maps"], maps, atol=1e-3)
    write_report([followed], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "epoch by epoch" in page and len(re.findall(r"map of training image \d+ after epoch 2", page)) == 6
