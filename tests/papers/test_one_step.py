"""Every setup of every table takes one step: on embedded digits, or on tiny copies of sets that are only read."""

import dataclasses
import functools
import re

import pytest
import torch

from data import cifar_copies, copies
from unspur.data.files.fetch import DataFiles
from unspur.data.sets import cifar_files, svhn
from unspur.models.base import head_of
from unspur.models.torchvision_compat import import_torchvision
from unspur.papers.reproduce import TABLES

# Fields that say how long something trains, on how many copies, and after how much of it at the full rate.
ONCE = {"epochs": 1, "steps": 1, "batch_size": 4, "up": 2, "anneal": 0, "warmup": 0.0}
TINY = ["data.cifar=jpeg", "data.val=10"]
# What lets a set be loaded here: digits that ship with the package, copies of a few images, no downloads.
SMALLER = {
    **{name: ["data.base=mini"] for name in ("biased_mnist", "colored_mnist", "double_mnist", "mnist", "mnist_sc")},
    "cifar10": TINY,
    "corrupted_cifar10": TINY,
    "bffhq": ["data.size=32"],
    "mnist_cifar": [*TINY, "data.base=mini"],
    "svhn": ["data.val=10"],
    "cifar100": ["data.val=10"],
    "imagenet": ["data.size=64", "data.val=0.2"],
    **{name: ["data.size=64"] for name in ("celeba", "spawrious", "urbancars", "waterbirds")},
}


# Networks that take long to draw: 630 million weights, and what is a wider or deeper one of the same family.
LIGHTER = {"vit_h_14": "vit_b_32", "resnet50": "resnet18", "wide_resnet101_2": "resnet18"}


def lighter(setup):
    at = "".join(LIGHTER.get(part, part) for part in re.split("(=)", setup.at))
    return dataclasses.replace(setup, arch=LIGHTER.get(setup.arch, setup.arch), at=at)


def distinct():
    """One setup for each method, data set, architecture and settings; those that differ by numbers alone are one."""
    kinds = {}
    for table in TABLES.values():
        for setup in map(lighter, table.setups()):
            settings = tuple(re.sub(r"=[-+.\de]+$", "", setting) for setting in setup.settings)
            kinds.setdefault((setup.method, setup.data, setup.arch, settings), (table.key, setup))
    return [pytest.param(setup, id=f"{key}-{setup.method}-{setup.data}-{setup.arch}") for key, setup in kinds.values()]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("copies")
    copies.corrected_waterbirds(root / "Waterbirds")
    copies.waterbirds(root / "waterbird_complete95_forest2water2")
    copies.celeba(root / "celeba", kaggle=False)
    copies.bffhq(root / "bffhq")
    copies.urbancars(root / "urbancars")
    copies.spawrious(root / "spawrious224")
    copies.in9(root / "in9")
    copies.cats_vs_dogs(root / "cats_vs_dogs", kaggle=True)
    copies.imagenet(root / "imagenet")
    cifar_copies.jpeg_file(root / "cifar10" / "cifar10_jpeg.npz", 60, test=10)
    return root


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    """Vision transformers of one block, and ResNets of one at each width: the others are like it."""
    models = import_torchvision().models
    transformer, resnet = models.vision_transformer._vision_transformer, models.resnet._resnet
    one = {"num_layers": 1}
    monkeypatch.setattr(models.vision_transformer, "_vision_transformer", lambda **more: transformer(**{**more, **one}))
    monkeypatch.setattr(
        models.resnet, "_resnet", lambda block, _, *more, **named: resnet(block, [1] * 4, *more, **named)
    )


@functools.cache
def loaded(spec, root):
    """A data set, of which several setups are made."""
    return spec.load(DataFiles(root))


def once(spec):
    """The same method, with every training in it as short as can be."""
    changes = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if dataclasses.is_dataclass(value):
            changes[field.name] = once(value)
        elif field.name in ONCE:
            changes[field.name] = ONCE[field.name]
    return dataclasses.replace(spec, **changes)


@pytest.mark.parametrize("setup", distinct())
def test_a_step_of_every_setup(setup, root, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(root / "cache"))
    if setup.data == "svhn":
        pytest.importorskip("scipy.io")
        files = copies.svhn(root / "svhn")
        monkeypatch.setattr(svhn, "FILES", dataclasses.replace(svhn.FILES, files=files))
    if setup.data == "cifar100":
        rows, labels = cifar_copies.pictures(0, 60)
        published = {
            f"{part}.bin": cifar_copies.binary_batch(rows, labels, coarse=labels) for part in ("train", "test")
        }
        cifar_copies.put(root / "cifar100", published)
        monkeypatch.setattr(cifar_files, "CIFAR100", cifar_copies.small(cifar_files.CIFAR100, published))
    more = list(SMALLER.get(setup.data, []))
    for key in ("arch.weights=", "student_weights="):
        if any(setting.startswith(key) for setting in setup.settings):
            more.append(f"{key}none")
    if any(setting.startswith("data.conflict_count=") for setting in setup.settings):
        more.append("data.conflict_count=5")  # the few images cannot hold the published numbers
    if setup.method in ("dcwp", "jtt", "mrm"):
        # Four samples may all be mined, or none.
        monkeypatch.setattr(f"unspur.methods.{setup.method}.require_both", lambda *mined, **named: None)
    config = setup.config(0, tuple(more))
    data = loaded(config.data, root)
    some = torch.arange(0, len(data.train), max(1, len(data.train) // 4))[:4]
    model = config.arch.build(data, seed=0)
    if setup.arch.startswith("vit_"):
        head_of(model).reset_parameters()  # zeros, unless published weights are loaded
    before = torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])
    val = data.val.subset(torch.arange(min(len(data.val), 50)))
    fit = once(config.method).fit(model, data.train.subset(some), val=val, seed=0)
    after = torch.cat([parameter.detach().flatten() for parameter in fit.model.parameters()])
    assert after.isfinite().all() and not torch.equal(before, after)
