import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from data.photos import class_folders, photo
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.methods.catalog import METHODS
from unspur.methods.dcwp import DCWP, Tuning
from unspur.methods.erm import ERM
from unspur.methods.jtt import JTT
from unspur.methods.lff import LfF
from unspur.methods.masktune import MaskTune
from unspur.methods.mrm import MRM
from unspur.methods.ssa import SSA
from unspur.methods.xrm import XRM
from unspur.parts.debias import MaskTraining
from unspur.parts.mining import GCE
from unspur.runs.config import configure
from unspur.runs.defaults import SetSize, given_keys
from unspur.runs.estimate import BESIDE, blind, doubts, images_trained, prepared, seconds, size_of, summary
from unspur.train.recipe import SGD

SMALL = ["data.size=32", "arch.hidden=0"]


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))


def of(root, method="erm", *settings):
    chosen = [f"data.root={root}", *SMALL, *settings]
    config = configure(method, "folder", "small_cnn", 0, chosen)
    return config, given_keys(config.method, "small_cnn", chosen)


def test_one_line_says_what_is_trained_and_how_long_it_takes(tmp_path):
    config, given = of(class_folders(tmp_path / "photos", cat=100, dog=100))
    said = []
    fitted = prepared(config, given, DataFiles(), said.append)
    # 200 images less 40 for test and a tenth of 160 for validation; an eighth of 144 is a batch of 18, 8 steps an epoch
    (line,) = said
    begin, rest = line.split("; about ")
    assert begin == "small_cnn (from scratch), 32 px, 144 images: AdamW 0.001 cosine, 50 epochs of batches of 18"
    assert rest.endswith(". --set changes any of it.")
    assert fitted.method.erm.epochs == 50


def test_maps_that_are_too_coarse_are_said_before_the_training(tmp_path):
    config, given = of(class_folders(tmp_path / "photos", cat=100, dog=100), "masktune", "data.size=16")
    said = []
    prepared(config, given, DataFiles(), said.append)
    # two convolutions leave 12 of 16 pixels, pooling 6, and two more convolutions 2
    assert len(said) == 2 and said[0].startswith("The network's last map has 2x2 cells for images of 16x16, too few")


def test_digits_are_left_alone_and_nothing_is_said():
    config, said = configure("erm", "biased_mnist"), []
    assert prepared(config, frozenset(), DataFiles(), said.append) is config and said == []


def test_frozen_parts_and_weights_are_in_the_line():
    config = configure("erm", "folder", "efficientnet_lite0")
    line = summary(config, SetSize(1800, 2))
    assert line.startswith("efficientnet_lite0 (ImageNet weights, norm frozen), 128 px, 1,800 images: ")
    heads = summary(configure("ule_last_layer", "folder", "resnet18"), SetSize(1800, 2))
    assert heads.endswith("110 heads on its features, 300 epochs of batches of 128")  # 11 lambdas, 5 rates, 2 L2


def test_the_images_of_every_stage_are_counted():
    # each by hand, of 100 images
    assert images_trained(ERM(erm=SGD(epochs=3)), 100) == 300
    # 3 epochs, maps and a last look at 0.3 each, and one epoch on masked images
    assert images_trained(MaskTune(erm=SGD(epochs=3)), 100) == pytest.approx(300 + 160)
    # the second training sees 5 % of the images 20 times: 1 + 0.05 * 19 = 1.95 times as many
    assert images_trained(JTT(erm=SGD(epochs=1), training=SGD(epochs=2)), 100) == pytest.approx(100 + 390)
    masks = MaskTraining(steps=10, batch_size=20)
    dcwp = DCWP(
        mining=GCE(training=SGD(epochs=1)), erm=SGD(epochs=2), masks=masks, tuning=Tuning(steps=5, batch_size=20)
    )
    assert images_trained(dcwp, 100) == pytest.approx(100 + 200 + 1.5 * 200 + 100)
    # twins at two rates, and the result; three folds that each see the other two
    assert images_trained(XRM(twins=SGD(epochs=2), training=SGD(epochs=3)), 100) == 100 * (2 * 2 * 2 + 3)
    assert images_trained(SSA(attribute=SGD(epochs=2), training=SGD(epochs=3)), 100) == 100 * (2 * 2 + 3)
    assert images_trained(LfF(training=SGD(epochs=3)), 100) == 600
    assert images_trained(MRM(erm=SGD(epochs=2), masks=masks), 100) == pytest.approx(200 + 200 + 300)  # nothing mined


@pytest.mark.parametrize("name", BESIDE)
def test_a_step_with_more_beside_it_is_estimated_within_a_factor_of_two_of_what_was_measured(name):
    measured = []
    for file in (Path(__file__).parents[2] / "results").glob("compare-*.json"):
        if "frozen" not in file.name:  # heads on features have no such steps
            rows = json.loads(file.read_text())["datasets"][0]["rows"]
            measured += [row["cost"] for row in rows if row["method"] == name and row["cost"]]
    assert measured and BESIDE[name] / 2 < min(measured) <= max(measured) < 2 * BESIDE[name]
    method = METHODS[name](training=SGD(epochs=3))
    assert images_trained(method, 100) == pytest.approx(300 * BESIDE[name])
    if " to " in method.cost:  # a stated range holds all that was measured
        least, most = map(float, method.cost.split(" to "))
        assert least <= round(min(measured), 1) and round(max(measured), 1) <= most


@pytest.mark.parametrize("method", ["erm", "ule_last_layer"])
def test_an_estimate_leaves_random_state_alone_and_grows_with_the_set(method, tmp_path):
    config, _ = of(tmp_path, method)
    before = torch.get_rng_state()
    few, many = (seconds(config, SetSize(images, 2)) for images in (100, 100_000))
    assert 0 < few < many and torch.equal(before, torch.get_rng_state())


def test_twelve_images_are_said_to_be_few(tmp_path):
    size = size_of(of(class_folders(tmp_path / "photos", cat=6, dog=6))[0], DataFiles())
    assert size == SetSize(images=9, classes=2)  # 2 for test, 1 for validation
    assert doubts(size) == ["9 training images are few: a repair cannot be told from chance; add images."]


def test_many_classes_of_three_images_are_said_to_be_too_small():
    # 500 classes of 3: of 1,500 images 300 for test and 120 for validation
    (said,) = doubts(SetSize(images=1080, classes=500))
    assert said.startswith("500 classes have 2.2 training images each, too few")
    assert doubts(SetSize(images=100, classes=10)) == []


def test_a_folder_of_one_picture_is_refused(tmp_path):
    for number in range(12):
        photo(tmp_path / "photos" / "ab"[number % 2] / f"{number}.png", colour=(1, 2, 3))
    with pytest.raises(UnspurError, match=r"All 12 images of .*photos are the same picture.*check data\.root"):
        size_of(of(tmp_path / "photos")[0], DataFiles())
    photo(tmp_path / "photos" / "a" / "0.png", colour=(3, 2, 1))  # of as many bytes
    assert size_of(of(tmp_path / "photos")[0], DataFiles()).images == 9


def test_files_that_cannot_be_read_are_left_to_the_loader(tmp_path, monkeypatch):
    for name in ("a/0.png", "b/0.png", "a/1.png", "b/1.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((4, 4, 3), dtype=np.uint8)).save(path)
    config, _ = of(tmp_path / "photos", "erm", "data.val=0")
    listing = config.data.listing()
    (tmp_path / "photos" / "a" / "0.png").unlink()
    monkeypatch.setattr(type(config.data), "listing", lambda spec: listing)
    assert size_of(config, DataFiles()).classes == 2


def test_a_frozen_network_with_random_weights_is_told_of(tmp_path):
    config, _ = of(tmp_path, "erm", "arch.freeze=backbone")
    (sentence,) = blind(config)
    assert sentence.startswith(
        "arch.freeze=backbone keeps all layers of small_cnn but the last at their random weights"
    )
    assert not blind(of(tmp_path, "erm")[0])


@pytest.mark.parametrize("method", ["ula", "ee", "ule_last_layer", "balanced_last_layer"])
def test_a_method_that_reads_the_features_of_an_untrained_network_is_told_of(method, tmp_path):
    (sentence,) = blind(of(tmp_path, method)[0])
    assert sentence.startswith(f"{method} reads the features of an untrained network: the weights of small_cnn")
    (frozen,) = blind(of(tmp_path, method, "arch.freeze=backbone")[0])  # one sentence, not two
    assert frozen.startswith("arch.freeze=backbone keeps all layers")
    assert not blind(of(tmp_path, method, "arch.weights=weights.pt")[0])
