import copy

import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.core.files import write_tensors
from unspur.core.options import to_json, with_option
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import evaluating
from unspur.models.catalog import ARCHS, arch_from_json, arch_named, build_model
from unspur.parts.pruning import add_gates
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session

DATA = blank(1, 28, 28)


def pictures(n=32):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (n, 1, 28, 28), dtype=torch.uint8, generator=generator)
    return Split(x, torch.randint(0, 10, (n,), generator=generator))


def norms(model):
    return [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]


def changed(model, before):
    return {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}


def after_training(model, folder=None):
    """The names of what a short training changes."""
    before = copy.deepcopy(model.state_dict())
    train(model, pictures(), SGD(lr=0.1, epochs=1, batch_size=8), stage="erm", session=Session(folder=folder))
    return changed(model, before)


def test_frozen_norm_keeps_its_statistics_and_trains_its_scales():
    found = after_training(build_model("cnn3", DATA, freeze="norm"))
    assert not any("running" in name or "num_batches" in name for name in found)
    assert {"net.1.weight", "net.1.bias", "net.0.weight", "net.11.weight"} <= found


def test_a_frozen_backbone_trains_its_last_layer_alone():
    assert after_training(build_model("small_cnn", DATA, freeze="backbone")) == {"net.head.3.weight", "net.head.3.bias"}


def test_nothing_frozen_trains_everything():
    model = build_model("cnn3", DATA, freeze="none")
    assert after_training(model) == set(model.state_dict())


@pytest.mark.parametrize("freeze", ["norm", "backbone"])
def test_what_is_frozen_stays_so_in_copies_and_whatever_mode_is_set(freeze):
    model = copy.deepcopy(build_model("small_cnn", DATA, freeze=freeze))
    for part in (model, nn.ModuleList([model])):  # as a part of something else, too, such as DDP's wrapper
        part.eval()
        part.train()
        assert model.training and not any(norm.training for norm in norms(model))
        with evaluating(model):
            pass
        assert not any(norm.training for norm in norms(model))
    assert model.net.head[3].training
    assert model.net.features[0].training == (freeze == "norm")
    assert model.net.features[0].weight.requires_grad == (freeze == "norm")


def test_a_frozen_training_that_is_resumed_ends_with_the_same_bits(tmp_path):
    whole, again = (build_model("small_cnn", DATA, freeze="backbone") for _ in range(2))
    after_training(whole, tmp_path)
    after_training(again, tmp_path)
    assert not changed(again, whole.state_dict())


def test_a_network_that_begins_with_weights_keeps_its_statistics_unless_told_otherwise(tmp_path):
    file = str(tmp_path / "w.safetensors")
    write_tensors(tmp_path / "w.safetensors", build_model("cnn3", DATA).state_dict())
    arch = arch_named("cnn3")
    assert arch.frozen == "none"
    assert with_option(arch, "weights", file).frozen == "norm"
    assert with_option(with_option(arch, "weights", file), "freeze", "none").frozen == "none"
    assert arch_named("efficientnet_lite0").frozen == "norm"
    assert not build_model("cnn3", DATA, weights=file).train().net[1].training


def test_a_restored_model_is_frozen_as_it_was_though_its_weights_are_not_read_again(tmp_path):
    arch = with_option(arch_named("cnn3"), "weights", str(tmp_path / "long-gone.pt"))
    model = arch.restore(DATA, build_model("cnn3", DATA).state_dict(), "model.safetensors")
    assert not any(norm.training for norm in norms(model.train()))


@pytest.mark.parametrize("name", [*ARCHS, "resnet18"])
def test_keys_of_runs_that_knew_nothing_of_freezing_stay(name):
    arch = arch_named(name)
    assert "freeze" not in to_json(arch) and arch_from_json(to_json(arch)) == arch
    frozen = with_option(arch, "freeze", "backbone")
    assert to_json(frozen)["freeze"] == "backbone" and arch_from_json(to_json(frozen)) == frozen


def test_a_misspelt_part_is_one_sentence():
    with pytest.raises(UnspurError, match=r"^arch\.freeze must be auto, none, norm or backbone but got 'head'\.$"):
        with_option(arch_named("cnn3"), "freeze", "head", "arch.freeze")
    with pytest.raises(UnspurError, match=r"^arch\.freeze must be auto, none, norm or backbone but got 'head'\.$"):
        build_model("cnn3", DATA, freeze="head")


def test_gates_on_a_frozen_backbone_are_sampled_in_training():
    model = build_model("small_cnn", DATA, freeze="backbone")
    gates = add_gates(model)
    model.train()
    assert all(gate.training for gate in gates.values())


def test_a_network_whose_last_layer_convolves_has_a_backbone_too():
    model = build_model("squeezenet1_1", blank(3, 64, 64), freeze="backbone")
    assert [name for name, p in model.named_parameters() if p.requires_grad] == [
        "net.classifier.1.weight",
        "net.classifier.1.bias",
    ]
