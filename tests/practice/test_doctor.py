"""What is here and what is missing, told apart."""

import tomllib
from pathlib import Path

import pytest

from unspur.practice import doctor
from unspur.practice.doctor import EXTRAS, diagnose

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNSPUR_DATA", raising=False)
    return tmp_path / "cache"


def test_every_extra_of_the_project_says_what_it_is_for():
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"])


def test_what_is_missing_or_too_old_is_missing_from_its_extra_and_from_those_that_name_it(cache, monkeypatch):
    lines = [
        "numpy>=1",
        'numpy>=1; extra == "svhn"',
        'numpy>=99; extra == "export"',
        'nosuchpackage; extra == "export"',
        'unspur[export,svhn]; extra == "dev"',
    ]
    monkeypatch.setattr("unspur.practice.doctor.importlib.metadata.requires", lambda name: lines)
    monkeypatch.setattr(doctor, "_extras", lambda: ["svhn", "export", "dev"])
    extras = {extra["name"]: [package["name"] for package in extra["missing"]] for extra in diagnose()["extras"]}
    assert extras["svhn"] == [] and extras["export"] == extras["dev"] == ["numpy", "nosuchpackage"]
    assert [package["name"] for package in diagnose()["packages"]] == ["numpy"]


def test_files_are_listed_once_with_all_sets_that_are_made_of_them(cache):
    sources = {files["title"]: files for files in diagnose()["data"]}
    assert {"biased_mnist", "mnist", "mnist_cifar"} <= set(sources["MNIST"]["sets"])
    assert sources["CIFAR-10"]["state"] == "missing" and sources["CIFAR-10"]["get"] == "unspur data fetch cifar10"
    assert sources["Waterbirds"]["get"] == "unspur data info waterbirds"


def test_the_cache_is_measured_where_it_is_and_its_disk_where_it_is_not_yet(cache):
    assert diagnose()["cache"]["bytes"] == 0
    cache.mkdir()
    (cache / "a").write_bytes(bytes(1000))
    found = diagnose()["cache"]
    assert found["bytes"] == 1000 and found["folder"] == str(cache) and found["free"] > 0


def test_a_disk_that_is_nearly_full_is_a_problem(cache, monkeypatch):
    monkeypatch.setattr(doctor, "LEAST_FREE", 1 << 62)
    assert any("make room, or set UNSPUR_CACHE" in problem for problem in diagnose()["problems"])


def test_a_processor_without_bfloat16_is_told(cache, monkeypatch):
    monkeypatch.setattr(doctor, "knows_bfloat16", lambda: False)
    assert diagnose()["devices"][0]["bfloat16"] is False
