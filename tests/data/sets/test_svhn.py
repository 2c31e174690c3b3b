import builtins
from dataclasses import replace

import pytest
import torch

from data import copies
from unspur.data.catalog import load
from unspur.data.info import describe
from unspur.data.sets import svhn
from unspur.errors import UnspurError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("scipy.io")
    files = copies.svhn(tmp_path / "svhn")
    monkeypatch.setattr(svhn, "FILES", replace(svhn.FILES, files=files))
    return tmp_path


def test_the_label_10_is_the_digit_0(folder):
    data = load("svhn", folder)
    assert (len(data.train), len(data.val), len(data.tests["test"])) == (36, 4, 20)
    for split in (data.train, data.val, data.tests["test"]):
        assert torch.equal(split.x[torch.arange(len(split))][:, 2, 4, 7] % 10, split.y)
    assert data.classes == tuple("0123456789") and data.sample_shape == (3, 32, 32)


def test_published_counts_are_compared(folder):
    info = describe(svhn.SVHN(), folder)
    assert info["files"][0]["state"] == "whole" and info["verified"] is False
    assert {"split": "test test", "groups": [["1"]], "published": 5_099, "found": 2} in info["counts"]
    assert sum(svhn.TEST_COUNTS) == 26_032


def test_a_damaged_file_is_one_sentence(folder, monkeypatch):
    path = folder / "svhn" / "test_32x32.mat"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UnspurError, match=r"test_32x32\.mat is damaged \(.*\); replace it"):
        load("svhn", folder)
    assert describe(svhn.SVHN(), folder)["files"][0]["state"] == "damaged"


def test_without_scipy_it_says_what_to_install(folder, monkeypatch):
    real = builtins.__import__

    def without_scipy(name, *rest):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    with pytest.raises(UnspurError, match=r"needs scipy; install it with `pip install unspur\[svhn\]`"):
        load("svhn", folder)


def test_missing_files_name_the_command():
    with pytest.raises(UnspurError, match=r"SVHN is not on this machine: run `unspur data fetch svhn`"):
        load("svhn")
