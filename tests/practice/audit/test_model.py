import numpy as np
import pytest
import torch

from practice.audit.pictures import scene, write_set
from unspur.data.catalog import load
from unspur.data.images.listing import list_folder
from unspur.errors import UnspurError
from unspur.practice.audit import quick_model as quick_module
from unspur.practice.audit.audit import Settings, audit
from unspur.practice.audit.collect import collect
from unspur.practice.audit.image_source import listed
from unspur.practice.audit.model import module_predict
from unspur.practice.audit.moving import find_moving
from unspur.practice.audit.quick_model import quick_model
from unspur.practice.audit.sources import splits_source, training


def corner(pixels, value):
    if value:
        pixels[:8, :8] = (30, 60, 220)
    return pixels


@pytest.fixture
def no_pretrained_weights(monkeypatch):
    def missing(classes, seed):
        raise UnspurError("no packages")

    monkeypatch.setattr(quick_module, "_frozen", missing)


def test_a_quick_network_leans_on_the_only_thing_there_is_to_learn(tmp_path, no_pretrained_weights):
    root = write_set(tmp_path / "set", change=corner, conflict=0.05)
    result = audit(listed(list_folder(root)), target="folder", settings=Settings(local=False))
    assert result.model == "the audit's quick network"
    assert result.verdict == "leans" and result.next == "unspur repair folder"
    assert result.findings[0].reliance.follows_cue > result.findings[0].reliance.control + 0.3
    assert result.estimated_worst_group < 0.5  # it is wrong where the mark is wrong


def test_halves_are_tested_by_the_model_that_did_not_see_them(tmp_path, no_pretrained_weights):
    data = collect(listed(list_folder(write_set(tmp_path / "set", each=30))))
    model = quick_model(data)
    first, second = model.parts
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(60))
    assert int((model.predictions(data) < 0).sum()) == 0


def test_a_module_gets_images_of_its_own_size_and_channels():
    sizes = []

    class Net(torch.nn.Module):
        def forward(self, x):
            sizes.append(tuple(x.shape[1:]))
            return x.mean((2, 3))

    for shape in ((3, 24, 24), (1, 28, 56)):
        module_predict(Net(), shape)(torch.rand(2, 3, 32, 32))
    assert sizes == [(3, 24, 24), (1, 28, 56)]


def test_a_mark_that_moves_is_told_and_found_where_it_is():
    draw = np.random.default_rng(0)
    images, places = [], []
    y = torch.arange(360) % 2
    for label in y.tolist():
        pixels, (row, column) = scene(draw), draw.integers(0, 26, 2)
        if label:
            pixels[row : row + 6, column : column + 6] = (250, 20, 20)
            pixels[row + 2 : row + 4, column + 2 : column + 4] = (20, 250, 20)
        images.append(torch.from_numpy(pixels).permute(2, 0, 1))
        places.append((row + 3, column + 3))
    found = find_moving(torch.stack(images), y, 2)
    assert found.balanced > 0.9 and found.separation > 4 and found.label == 1
    off = (found.place * 32 - torch.tensor(places)).abs().max(1).values[y == 1]
    assert float((off <= 5).float().mean()) > 0.8


def test_a_set_without_files_names_its_images_by_split():
    data = load("biased_mnist", base="mini", conflict_count=100)
    source = splits_source(data, {"train": data.train, "val": data.val})
    assert len(source.y) == len(data.train) + len(data.val)
    assert source.names[0] == "train/0" and source.names[-1] == f"val/{len(data.val) - 1}"
    last = source.read(len(source.y) - 1, 32)
    assert last.facts is None and last.small.shape == (3, 32, 32)


def test_only_training_images_are_audited_where_splits_are_known(tmp_path):
    for split in ("train", "test"):
        write_set(tmp_path / "set" / split, each=20)
    listing = training(list_folder(tmp_path / "set"))
    assert len(listing) == 40 and all(file.name.startswith("train") for file in listing.files)
