import numpy as np
import pytest
import torch

from data.cifar_copies import archive, binary_batch, jpeg_file, pictures, put, python_batch, small
from unspur.data.base import groups_of
from unspur.data.catalog import load
from unspur.data.files.fetch import DataFiles
from unspur.data.info import describe
from unspur.data.sets import cifar_files
from unspur.data.sets.cifar import CorruptedCIFAR10
from unspur.data.shortcuts.corruptions import CORRUPTIONS, corrupt
from unspur.errors import UnspurError

NAMES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
ROWS = {name: pictures(seed, 20) for seed, name in enumerate(NAMES)}
BINARY = {f"{name}.bin": binary_batch(*ROWS[name]) for name in NAMES}
PYTHON = {name: python_batch(*ROWS[name]) for name in NAMES}
ARCHIVES = {
    "cifar-10-binary.tar.gz": archive("cifar-10-batches-bin", BINARY),
    "cifar-10-python.tar.gz": archive("cifar-10-batches-py", PYTHON),
}


@pytest.fixture
def tiny(monkeypatch):
    """CIFAR-10 as if a batch had been 20 images."""
    monkeypatch.setattr(cifar_files, "CIFAR10", small(cifar_files.CIFAR10, BINARY | PYTHON | ARCHIVES))


@pytest.mark.parametrize(
    ("folder", "contents"),
    [
        ("cifar10/cifar-10-batches-bin", BINARY),
        ("cifar-10-batches-py", PYTHON),
        ("cifar10", {"cifar-10-binary.tar.gz": ARCHIVES["cifar-10-binary.tar.gz"]}),
        ("", {"cifar-10-python.tar.gz": ARCHIVES["cifar-10-python.tar.gz"]}),
    ],
    ids=["binary", "python", "binary archive", "python archive"],
)
def test_every_published_form_gives_the_same_images(tiny, tmp_path, folder, contents):
    put(tmp_path / folder, contents)
    data = load("cifar10", tmp_path, val=0)
    rows = np.concatenate([ROWS[name][0] for name in NAMES[:5]])
    assert torch.equal(data.train.x[torch.arange(100)], torch.from_numpy(rows).reshape(100, 3, 32, 32))
    assert data.train.y.tolist() == [label for name in NAMES[:5] for label in ROWS[name][1]]
    assert torch.equal(data.tests["test"].x[torch.arange(20)].flatten(1), torch.from_numpy(ROWS["test_batch"][0]))
    assert data.note == "" and data.classes[9] == "truck" and data.sample_shape == (3, 32, 32)


def test_one_tenth_is_held_out_class_by_class(tiny, tmp_path):
    put(tmp_path / "cifar10", BINARY)
    data = load("cifar10", tmp_path)
    assert (len(data.train), len(data.val)) == (90, 10)
    assert data.val.y.bincount().tolist() == [1] * 10  # 10 of each class, a tenth of them held out
    assert all(
        bool((split.x[torch.arange(len(split))][:, 0, 0, 0] == split.y).all()) for split in (data.train, data.val)
    )
    assert not torch.equal(load("cifar10", tmp_path, seed=1).val.x[torch.arange(10)], data.val.x[torch.arange(10)])


def test_fewer_images_are_drawn_class_by_class_and_split_like_all(tiny, tmp_path):
    put(tmp_path / "cifar10", BINARY)
    data = load("cifar10", tmp_path, images=40, val=10)
    assert data.train.y.bincount().tolist() == [3] * 10 and data.val.y.bincount().tolist() == [1] * 10
    assert len(data.tests["test"]) == 20  # what is tested stays whole
    assert len(load("cifar10", tmp_path, images=100, val=0).train) == 100  # all of them
    with pytest.raises(UnspurError, match="images must be at most the 100 training images but got 101"):
        load("cifar10", tmp_path, images=101)
    with pytest.raises(UnspurError, match="images must be at least 1 but got 0"):
        load("cifar10", tmp_path, images=0)
    with pytest.raises(UnspurError, match="val must be below the 10 training images but got 10"):
        load("cifar10", tmp_path, images=10, val=10)


def test_cifar_100_takes_the_fine_label(monkeypatch, tmp_path):
    rows, labels = pictures(0, 20)
    binary = {f"{part}.bin": binary_batch(rows, labels, coarse=[19] * 20) for part in ("train", "test")}
    python = {part: python_batch(rows, labels, key=b"fine_labels") for part in ("train", "test")}
    monkeypatch.setattr(cifar_files, "CIFAR100", small(cifar_files.CIFAR100, binary | python))
    for folder, contents in (("cifar100", binary), ("cifar100/cifar-100-python", python)):
        put(tmp_path / folder, contents)
        assert load("cifar100", tmp_path, val=0).train.y.tolist() == labels
        for name in contents:
            (tmp_path / folder / name).unlink()


def test_what_is_missing_cut_off_or_something_else_is_one_sentence(tiny, tmp_path):
    with pytest.raises(UnspurError, match=r"^CIFAR-10 is not on this machine: run `unspur data fetch cifar10`.*jpeg"):
        load("cifar10", tmp_path)
    put(tmp_path / "cifar10", BINARY | {"test_batch.bin": BINARY["test_batch.bin"][:-1]})
    with pytest.raises(UnspurError, match=r"test_batch\.bin is truncated \(61,459 of 61,460 bytes\)"):
        load("cifar10", tmp_path)
    broken = archive("cifar-10-batches-bin", {"data_batch_1.bin": BINARY["data_batch_1.bin"]})
    for content, sentence in ((broken, "it lacks data_batch_2.bin"), (b"no archive", "is damaged")):
        put(tmp_path / "other" / "cifar10", {"cifar-10-binary.tar.gz": content})
        one = small(cifar_files.CIFAR10, BINARY | {"cifar-10-binary.tar.gz": content})
        with pytest.raises(UnspurError, match=sentence):
            one.read(DataFiles(tmp_path / "other"))


def test_an_archive_cannot_write_outside_its_folder(monkeypatch, tmp_path):
    evil = archive("cifar-10-batches-bin", BINARY, also=["../../escaped", "/tmp/escaped", "cifar-10-batches-bin/../x"])
    put(tmp_path / "data" / "cifar10", {"cifar-10-binary.tar.gz": evil})
    monkeypatch.setattr(cifar_files, "CIFAR10", small(cifar_files.CIFAR10, {"cifar-10-binary.tar.gz": evil}))
    before = sorted(tmp_path.rglob("*"))
    assert len(load("cifar10", tmp_path / "data", val=0).train) == 100
    assert sorted(tmp_path.rglob("*")) == before  # nothing is unpacked at all


def test_info_compares_with_the_published_counts(tiny, tmp_path):
    put(tmp_path / "cifar10", BINARY)
    info = describe(load_spec("cifar10"), tmp_path)
    assert info["files"][0]["state"] == "whole" and info["verified"] is False
    assert {"split": "train", "groups": [[]], "published": 45_000, "found": 90} in info["counts"]
    assert {"split": "test test", "groups": [["cat"]], "published": 1_000, "found": 2} in info["counts"]


def load_spec(name, **options):
    from unspur.data.catalog import dataset_named

    return dataset_named(name)(**options)


def test_the_jpeg_copy_is_named_everywhere_and_decoded_once(tmp_path, monkeypatch):
    decoded = jpeg_file(tmp_path / "cifar10" / "cifar10_jpeg.npz", 40, test=10)
    data = load("cifar10", tmp_path, cifar="jpeg", val=0)
    assert np.array_equal(data.train.x[torch.arange(30)].numpy(), decoded[:30])
    assert np.array_equal(data.tests["test"].x[torch.arange(10)].numpy(), decoded[30:])
    for name, more in (("cifar10", {}), ("corrupted_cifar10", {}), ("mnist_cifar", {"base": "mini"})):
        assert load(name, tmp_path, cifar="jpeg", val=0, **more).note == "CIFAR-10 (JPEG)"
    monkeypatch.setattr("unspur.data.sets.cifar_jpeg._decode", lambda path: pytest.fail("decoded again"))
    load("cifar10", tmp_path, cifar="jpeg", val=0)
    # It is never taken for the original.
    with pytest.raises(UnspurError, match=r"CIFAR-10 is not on this machine.*data\.cifar=jpeg"):
        load("cifar10", tmp_path)


def test_a_jpeg_copy_that_is_no_such_thing_is_one_sentence(tmp_path):
    path = tmp_path / "cifar10" / "cifar10_jpeg.npz"
    with pytest.raises(UnspurError, match=r"CIFAR-10 \(JPEG\) is not on this machine: put cifar10_jpeg\.npz into"):
        load("cifar10", tmp_path, cifar="jpeg")
    path.parent.mkdir()
    path.write_bytes(b"PK, but no archive")
    with pytest.raises(UnspurError, match=r"cannot be read as CIFAR-10 \(JPEG\)"):
        load("cifar10", tmp_path, cifar="jpeg")
    np.savez(path, labels=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(UnspurError, match=r"cannot be read as CIFAR-10 \(JPEG\).*allow_pickle"):
        load("cifar10", tmp_path, cifar="jpeg")
    jpeg_file(path, 20, test=10)
    arrays = dict(np.load(path))
    np.savez(path, **arrays | {"payload": arrays["payload"][:50]})
    with pytest.raises(UnspurError, match=r"Image \d+ of .*cifar10_jpeg\.npz cannot be decoded"):
        load("cifar10", tmp_path, cifar="jpeg")


def test_each_class_has_its_corruption_but_for_an_exact_number(tiny, tmp_path):
    put(tmp_path / "cifar10", BINARY)
    data = load("corrupted_cifar10", tmp_path, conflict_count=7)
    assert int((data.train.attributes["corruption"] != data.train.y).sum()) == 7
    assert data.attribute_values["corruption"] == tuple(CORRUPTIONS)
    # Class 1 goes with contrast, which draws nothing at random: the image can be made again.
    plain = load("cifar10", tmp_path)
    chosen = ((data.train.y == 1) & (data.train.attributes["corruption"] == 1)).nonzero().squeeze(1)
    expected = corrupt(plain.train.x[chosen], "contrast", torch.Generator())
    assert len(chosen) and torch.equal(data.train.x[chosen], expected)


def test_the_unbiased_test_set_has_every_corruption_in_every_class(tmp_path):
    jpeg_file(tmp_path / "cifar10" / "cifar10_jpeg.npz", 220, test=200)
    test = load("corrupted_cifar10", tmp_path, cifar="jpeg").tests["unbiased"]
    assert groups_of(test).id.bincount().tolist() == [2] * 100  # 20 images a class, ten corruptions


def test_dcwps_counts_can_be_chosen():
    # Appendix E.1: (aligned, conflicting) = (44,832, 228), (44,527, 442), (44,145, 887), (42,820, 2,242) of 50,000.
    for aligned, conflicting, val in (
        (44_832, 228, 4_940),
        (44_527, 442, 5_031),
        (44_145, 887, 4_968),
        (42_820, 2_242, 4_938),
    ):
        spec = CorruptedCIFAR10(val=val, conflict_count=conflicting)
        assert 50_000 - spec.held_out(50_000) - conflicting == aligned


def test_dominoes_are_a_digit_above_an_object(tiny, tmp_path):
    put(tmp_path / "cifar10", BINARY)
    data = load("mnist_cifar", tmp_path, base="mini", conflict=0.2)
    assert data.sample_shape == (3, 64, 32) and data.attribute_values == {"digit": tuple("0123456789")}
    plain = load("cifar10", tmp_path)
    every = torch.arange(len(plain.train))
    x = data.train.x[every]
    assert torch.equal(x[:, :, 32:], plain.train.x[every])  # the object below is untouched
    top = x[:, :, :32]
    assert bool((top[:, 0] == top[:, 1]).all()) and int(top[:, :, :2].max()) == 0  # grey, with a margin of two
    assert int((data.train.attributes["digit"] != data.train.y).sum()) == 18  # 0.2 of 90
    # The digits are those that the attribute names.
    digits = load("mnist", base="mini", val=0, size=32).train
    known = {
        image.numpy().tobytes(): int(y) for image, y in zip(digits.x[torch.arange(len(digits))], digits.y, strict=True)
    }
    assert [known[image.numpy().tobytes()] for image in top[:, :1]] == data.train.attributes["digit"].tolist()
