import gzip
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unspur.data.catalog import load
from unspur.data.files.fetch import DataFiles
from unspur.data.files.file_set import FileSet
from unspur.data.sets.mnist import FASHION_FILES, MNIST_FILES, FashionMNIST
from unspur.errors import UnspurError


def contents(train: int = 120, test: int = 40, shift: int = 0) -> dict[str, bytes]:
    """Four small files in MNIST's format: image i is filled with i, its label is (i + shift) % 10."""
    made = {}
    for stem, count in (("train", train), ("t10k", test)):
        pixels = b"".join(bytes([number % 256]) * 784 for number in range(count))
        made[f"{stem}-images-idx3-ubyte"] = struct.pack(">4I", 0x803, count, 28, 28) + pixels
        labels = bytes((number + shift) % 10 for number in range(count))
        made[f"{stem}-labels-idx1-ubyte"] = struct.pack(">2I", 0x801, count) + labels
    return made


def small(wanted: FileSet, made: dict[str, bytes]) -> FileSet:
    """The set as if its authors had published ``made``."""
    files = tuple(
        replace(file, digest=f"md5:{hashlib.md5(made[file.name]).hexdigest()}", size=len(made[file.name]))
        for file in wanted.files
    )
    return replace(wanted, files=files, elsewhere=())


@pytest.fixture
def published(monkeypatch):
    made = contents()
    monkeypatch.setattr("unspur.data.sets.mnist.MNIST_FILES", small(MNIST_FILES, made))
    return made


def put(folder: Path, made: dict[str, bytes], packed: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("folder", ["mnist", ".", "MNIST/raw"])
@pytest.mark.parametrize("packed", [True, False], ids=["gz", "plain"])
def test_each_layout_is_read(folder, packed, published, tmp_path):
    put(tmp_path / folder, published, packed)
    data = load("mnist", tmp_path)
    # 120 / 12 = 10 are held out, one of each class
    assert (len(data.train), len(data.val), len(data.tests["test"])) == (110, 10, 40)
    assert data.val.y.sort().values.tolist() == list(range(10))
    assert data.train.x.shape == (110, 1, 28, 28) and data.train.x.dtype == torch.uint8
    for split in (data.train, data.val, data.tests["test"]):
        assert torch.equal(split.x[:, 0, 5, 5] % 10, split.y)  # image i is filled with i, its label is i % 10
    assert (data.mean, data.std) == ((0.1307,), (0.3081,))


@pytest.mark.parametrize(("val", "sizes"), [(0, (120, 0)), (30, (90, 30)), (None, (110, 10))])
def test_val_samples_are_held_out_of_the_training_images(val, sizes, published, tmp_path):
    put(tmp_path / "mnist", published)
    data = load("mnist", tmp_path, val=val)
    assert (len(data.train), len(data.val)) == sizes
    both = torch.cat([data.train.x, data.val.x])[:, 0, 0, 0]
    assert both.sort().values.tolist() == list(range(120))


def test_another_seed_holds_out_other_samples(published, tmp_path):
    put(tmp_path / "mnist", published)
    first, again, other = (load("mnist", tmp_path, seed=seed).val.x for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_size_32_adds_a_margin_of_two_zeros(published, tmp_path):
    put(tmp_path / "mnist", published)
    x = load("mnist", tmp_path, size=32).tests["test"].x
    assert x.shape == (40, 1, 32, 32)
    assert (x[7, 0, 2:30, 2:30] == 7).all() and x[7].sum(dtype=torch.long) == 7 * 784


def test_another_set_in_the_same_format_is_not_taken_for_it(published, tmp_path):
    # Same names, same sizes, in the very folder: only the labels tell.
    put(tmp_path, contents(shift=1))
    with pytest.raises(UnspurError, match="train-labels-idx1-ubyte does not hold the labels of MNIST; replace it"):
        load("mnist", tmp_path)


def test_images_of_another_shape_are_refused(published, tmp_path):
    name = "train-images-idx3-ubyte"
    put(tmp_path, published | {name: struct.pack(">4I", 0x803, 120, 14, 56) + published[name][16:]})
    with pytest.raises(UnspurError, match="does not begin like a file of 28x28 images"):
        load("mnist", tmp_path)


def test_without_files_the_message_offers_the_command_the_layout_and_the_embedded_digits():
    for name in ("mnist", "biased_mnist"):
        with pytest.raises(UnspurError) as error:
            load(name)
        for part in ("`unspur data fetch mnist`", "DIR/mnist", "t10k-labels-idx1-ubyte", "data.base=mini"):
            assert part in str(error.value)


def test_fashion_mnist_is_looked_for_in_its_own_folders(monkeypatch, tmp_path):
    made = contents()
    monkeypatch.setattr("unspur.data.sets.mnist.FASHION_FILES", small(FASHION_FILES, made))
    put(tmp_path, made)  # the bare directory is MNIST's
    with pytest.raises(UnspurError, match="dataset-fashion-mnist"):
        load("fashion_mnist", tmp_path)
    put(tmp_path / "fashion-mnist", made, packed=True)  # as Debian lays it out
    data = load("fashion_mnist", tmp_path)
    assert data.classes[9] == "ankle boot" and data.mean == (0.2860,)
    assert load("biased_mnist", tmp_path, base="fashion").train.x.shape == (110, 3, 28, 28)


def test_debian_s_package_is_found_where_debian_puts_it():
    assert FASHION_FILES.elsewhere == (Path("/usr/share/datasets/fashion-mnist"),)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("mnist", {"base": "fashion"}, "base must be mnist or mini; Fashion-MNIST is the set fashion_mnist"),
        ("fashion_mnist", {"base": "mini"}, "base must be fashion but got 'mini'"),
        ("biased_mnist", {"base": "cifar"}, "base must be mnist, mini or fashion but got 'cifar'"),
        ("mnist", {"size": 30}, "size must be 28 or 32 but got 30"),
        ("mnist", {"val": -1}, "val must be at least 0 but got -1"),
        ("mnist", {"base": "mini", "val": 10_000}, "val must be below the 10000 training images but got 10000"),
    ],
)
def test_what_makes_no_sense_is_an_error(name, options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        load(name, **options)


def test_the_files_are_those_of_the_original_publication():
    assert [file.size for file in MNIST_FILES.files] == [47_040_016, 60_008, 7_840_016, 10_008]
    assert FashionMNIST().needs() == (FASHION_FILES,)
    assert DataFiles().find(MNIST_FILES) is None
