import hashlib
import os
import re
import urllib.error
from pathlib import Path

import pytest
import torch

from models.blank import blank
from unspur.core.files import write_tensors
from unspur.core.options import with_option
from unspur.errors import DataMissing, UnspurError
from unspur.models.catalog import arch_named, build_model
from unspur.models.spec import IMAGENET
from unspur.models.torchvision_compat import import_torchvision

GREY = {"mean": (0.1307,), "std": (0.3081,)}


def same(one, other):
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_runs_whole_model_is_loaded_with_its_normalisation(tmp_path):
    first = build_model("cnn3", blank(1, 28, 28, **GREY), seed=1)
    write_tensors(tmp_path / "model.safetensors", first.state_dict())
    # The new data's own statistics would be none.
    again = build_model("cnn3", blank(1, 28, 28), seed=2, weights=str(tmp_path / "model.safetensors"))
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(again.eval()(x), first.eval()(x))


def test_a_whole_model_that_does_not_normalise_brings_that_too(tmp_path):
    first = build_model("cnn3", blank(1, 28, 28), seed=1)
    write_tensors(tmp_path / "model.safetensors", first.state_dict())
    again = build_model("cnn3", blank(1, 28, 28, **GREY), seed=2, weights=str(tmp_path / "model.safetensors"))
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(again.eval()(x), first.eval()(x))


def test_a_bare_networks_state_dict_is_loaded_under_the_datas_normalisation(tmp_path):
    first = build_model("cnn3", blank(1, 28, 28), seed=1)
    torch.save(first.net.state_dict(), tmp_path / "net.pt")
    again = build_model("cnn3", blank(1, 28, 28, **GREY), seed=2, weights=str(tmp_path / "net.pt"))
    assert same(first.net.state_dict(), again.net.state_dict())
    assert again.normalize.mean.item() == pytest.approx(0.1307)


@pytest.mark.parametrize("whole", [True, False])
def test_a_head_for_other_classes_is_drawn_anew_and_the_rest_loaded(tmp_path, whole):
    first = build_model("cnn3", blank(1, 28, 28, classes=1000), seed=1)
    write_tensors(tmp_path / "w.safetensors", (first if whole else first.net).state_dict())
    drawn = build_model("cnn3", blank(1, 28, 28, classes=3), seed=2)
    again = build_model("cnn3", blank(1, 28, 28, classes=3), seed=2, weights=str(tmp_path / "w.safetensors"))
    assert torch.equal(again.net[0].weight, first.net[0].weight)
    assert torch.equal(again.net[-1].weight, drawn.net[-1].weight)
    assert torch.equal(again.net[-1].bias, drawn.net[-1].bias)


def test_what_does_not_fit_is_named(tmp_path):
    state = build_model("cnn3", blank(3, 28, 28)).net.state_dict()
    state["extra.weight"] = torch.zeros(1)
    del state["1.weight"], state["4.weight"]
    torch.save(state, tmp_path / "odd.pt")
    sentence = (
        r"odd\.pt does not fit cnn3: it lacks '1\.weight' \(and 1 more like it\), the model has no 'extra\.weight', "
        r"'0\.weight' is 64x3x4x4 and should be 64x1x4x4\.$"
    )
    with pytest.raises(UnspurError, match=sentence):
        build_model("cnn3", blank(1, 28, 28), weights=str(tmp_path / "odd.pt"))


def test_a_head_of_other_features_is_not_taken_for_one_of_other_classes(tmp_path):
    torch.save(build_model("fcn", blank(4), depth=0).net.state_dict(), tmp_path / "narrow.pt")
    with pytest.raises(UnspurError, match=r"'1\.weight' is 10x4 and should be 3x5"):
        build_model("fcn", blank(5, classes=3), depth=0, weights=str(tmp_path / "narrow.pt"))


class Trap:
    """Unpickled by a careless reader, it leaves a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_code_in_a_weights_file_is_never_run(tmp_path):
    mark = str(tmp_path / "mark")
    torch.save({"0.weight": Trap(mark)}, tmp_path / "trap.pt")
    with pytest.raises(UnspurError, match="neither a safetensors file nor a plain torch state dict"):
        build_model("cnn3", blank(1, 28, 28), weights=str(tmp_path / "trap.pt"))
    assert not Path(mark).exists()


@pytest.mark.parametrize("name", ["garbage.pt", "garbage.safetensors"])
def test_a_file_that_holds_no_weights_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"not weights at all")
    with pytest.raises(UnspurError, match=name):
        build_model("cnn3", blank(1, 28, 28), weights=str(tmp_path / name))


def test_a_checkpoint_that_is_more_than_a_state_dict_is_refused(tmp_path):
    torch.save({"epoch": 3, "model": {"0.weight": torch.zeros(1)}}, tmp_path / "checkpoint.pt")
    with pytest.raises(UnspurError, match="holds more than a state dict"):
        build_model("cnn3", blank(1, 28, 28), weights=str(tmp_path / "checkpoint.pt"))


@pytest.mark.parametrize("name", ["nowhere.pt", "nowhere.safetensors"])
def test_a_file_that_is_not_there_is_said_so(tmp_path, name):
    with pytest.raises(UnspurError, match=f"{name} does not exist"):
        build_model("cnn3", blank(1, 28, 28), weights=str(tmp_path / name))


def test_a_network_of_our_own_has_no_published_weights():
    with pytest.raises(UnspurError, match="no published weights for cnn3"):
        build_model("cnn3", blank(1, 28, 28), weights="default")


@pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/bash\n", "", "(", "c", "}q", "hello: world", "\x80\x02."])
def test_a_file_of_something_else_is_one_sentence_whatever_it_begins_with(tmp_path, text):
    (tmp_path / "passwd").write_text(text, encoding="latin-1")
    with pytest.raises(UnspurError, match=r"neither a safetensors file nor a plain|more than a state"):
        build_model("resnet18", blank(3, 32, 32), weights=str(tmp_path / "passwd"))


def test_what_is_no_file_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UnspurError, match=r"must name a file of weights, but .* is none\.$"):
            build_model("resnet18", blank(3, 32, 32), weights=str(path))


def test_a_file_named_for_its_hash_must_have_it(tmp_path):
    net = build_model("cnn3", blank(1, 28, 28), seed=1).net
    torch.save(net.state_dict(), tmp_path / "net.pth")
    digest = hashlib.sha256((tmp_path / "net.pth").read_bytes()).hexdigest()
    right = (tmp_path / "net.pth").rename(tmp_path / f"cnn3-{digest[:8]}.pth")
    assert same(net.state_dict(), build_model("cnn3", blank(1, 28, 28), weights=str(right)).net.state_dict())
    wrong = right.rename(tmp_path / "cnn3-f37072fd.pth")
    sentence = rf"by its name its SHA-256 begins with f37072fd, but it begins with {digest[:8]}; get it again"
    with pytest.raises(UnspurError, match=sentence):
        build_model("cnn3", blank(1, 28, 28), weights=str(wrong))


@pytest.mark.parametrize("name", ["mnasnet0_5", "googlenet"])
def test_torchvisions_own_state_dict_is_loaded_from_a_file_and_restored(tmp_path, name):
    # MNASNet asks for a version in the state dict; GoogLeNet's files have two heads more.
    options = {"init_weights": False} if name == "googlenet" else {}
    theirs = import_torchvision().models.get_model(name, **options).eval()
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    data = blank(3, 64, 64, classes=1000)
    ours = build_model(name, data, weights=str(tmp_path / "theirs.pth")).eval()
    x = torch.rand(2, 3, 64, 64)
    expected = theirs((x - 0.5) / 0.5) if name == "googlenet" else theirs(ours.normalize(x))
    torch.testing.assert_close(ours(x), expected)
    again = with_option(arch_named(name), "weights", "gone.pth").restore(data, ours.state_dict(), "model.safetensors")
    assert torch.equal(again.eval()(x), ours(x))


def test_a_densenets_file_may_have_the_names_of_before_2018(tmp_path):
    net = build_model("densenet121", blank(3, 32, 32), seed=1).net
    old = {re.sub(r"(denselayer\d+\.(?:norm|conv))(\d)", r"\1.\2", key): t for key, t in net.state_dict().items()}
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    torch.save(old, tmp_path / "densenet.pth")
    again = build_model("densenet121", blank(3, 32, 32), weights=str(tmp_path / "densenet.pth"))
    assert same(net.state_dict(), again.net.state_dict())


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """torch's own cache of downloads, in a folder that is empty."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", ["shufflenet_v2_x0_5", "squeezenet1_1"])
@pytest.mark.parametrize("weights", ["default", "IMAGENET1K_V1"])
def test_published_weights_bring_imagenets_statistics_and_a_new_head(hub, name, weights):
    models = import_torchvision().models
    published = models.get_model(name)
    torch.save(published.state_dict(), hub / Path(models.get_model_weights(name).DEFAULT.url).name)
    model = build_model(name, blank(3, 64, 64, classes=2, mean=(0.5,) * 3, std=(0.5,) * 3), weights=weights)
    assert model.normalize.mean.flatten().tolist() == pytest.approx(IMAGENET.mean)
    first = next(iter(published.state_dict()))
    assert torch.equal(model.net.state_dict()[first], published.state_dict()[first])
    assert model.eval()(torch.rand(1, 3, 64, 64)).shape == (1, 2)


def test_published_weights_without_a_network_say_which_file_to_get(hub, monkeypatch):
    def fail(*args, **kwargs):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr("torch.hub.download_url_to_file", fail)
    with pytest.raises(DataMissing, match=r"resnet18 cannot be downloaded .*no route.*get .*resnet18.*\.pth elsewhere"):
        build_model("resnet18", blank(3, 32, 32), weights="default")


def test_a_stored_model_is_restored_without_the_weights_it_began_with(tmp_path):
    first = build_model("cnn3", blank(1, 28, 28, **GREY), seed=1)
    arch = type(arch_named("cnn3"))(weights=str(tmp_path / "long-gone.pt"))
    again = arch.restore(blank(1, 28, 28), first.state_dict(), "model.safetensors")
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(again.eval()(x), first.eval()(x))
    with pytest.raises(
        UnspurError, match=r"model\.safetensors does not fit cnn3: '11\.weight' is 10x256 and should be 3x256"
    ):
        arch.restore(blank(1, 28, 28, classes=3), first.state_dict(), "model.safetensors")
