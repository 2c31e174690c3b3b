import json

from data.copies import waterbirds
from data.sets.test_mnist import contents, put, small
from unspur.cli.show.datasets import print_info
from unspur.data.catalog import DATASETS, dataset_named
from unspur.data.files.fetch import cache_folder
from unspur.data.info import describe
from unspur.data.sets.mnist import MNIST_FILES
from unspur.data.sets.waterbirds import Waterbirds


def test_a_set_that_is_made_of_nothing_but_itself_is_described_whole():
    info = describe(dataset_named("biased_mnist")(base="mini", val=0))
    assert info["name"] == "biased_mnist" and "MaskTune" in info["citation"] and info["licence"] == "CC BY-SA 3.0"
    assert info["files"] == [] and info["options"]["base"] == "mini"
    assert info["splits"]["train"] == {
        "n": 10_000,
        "groups": [
            {"class": "0-4", "attributes": {"square": "none"}, "n": 50},
            {"class": "0-4", "attributes": {"square": "blue"}, "n": 4950},
            {"class": "5-9", "attributes": {"square": "none"}, "n": 4950},
            {"class": "5-9", "attributes": {"square": "blue"}, "n": 50},
        ],
    }
    assert info["splits"]["val"] == {"n": 0, "groups": []} and info["splits"]["test original"]["n"] == 2000
    json.dumps(info)


def test_files_are_missing_whole_or_damaged(monkeypatch, tmp_path):
    made = contents()
    monkeypatch.setattr("unspur.data.sets.mnist.MNIST_FILES", small(MNIST_FILES, made))
    info = describe(dataset_named("mnist")())
    assert info["files"][0]["state"] == "missing" and "`unspur data fetch mnist`" in info["files"][0]["reason"]
    assert info["files"][0]["folder"] is None and info["splits"] is None

    put(tmp_path / "mnist", made)
    info = describe(dataset_named("mnist")(), tmp_path)
    assert info["files"][0]["state"] == "whole" and info["files"][0]["folder"] == str(tmp_path / "mnist")
    assert info["splits"]["train"]["n"] == 110

    # One changed pixel: loading would not notice, the digest does.
    name = "train-images-idx3-ubyte"
    put(cache_folder() / "mnist", made | {name: made[name][:-1] + b"!"})
    info = describe(dataset_named("mnist")())
    assert info["files"][0]["state"] == "damaged" and "is not the published file (md5" in info["files"][0]["reason"]
    assert info["splits"] is None


def test_every_set_says_where_it_comes_from():
    for spec in DATASETS.values():
        assert spec.__doc__ and spec.about.citation and spec.about.licence and spec.about.get


def test_people_see_groups_by_split_and_what_differs_from_the_published_counts(tmp_path, capsys):
    waterbirds(tmp_path / "waterbirds")
    print_info(describe(dataset_named("waterbirds")(), tmp_path))
    shown = capsys.readouterr().out
    assert f"Waterbirds: whole, in {tmp_path / 'waterbirds'}" in shown
    row = next(line for line in shown.splitlines() if line.split("│")[1:3] == [" landbird  ", " water "])
    assert [cell.strip() for cell in row.split("│")[3:6]] == ["2", "2", "1"]  # train, val, test
    assert "train, landbird, water: 2 here, but 184 were published." in shown and "agree" not in shown
    print_info(describe(dataset_named("waterbirds")()))
    assert "Waterbirds is not on this machine" in capsys.readouterr().out
    print_info(describe(dataset_named("folder")()))
    assert "problem: The data set 'folder' needs your images' folder" in capsys.readouterr().out


def test_a_folder_is_listed_once_for_a_command(tmp_path, monkeypatch):
    waterbirds(tmp_path / "waterbirds")
    listed, real = [], Waterbirds.entries
    monkeypatch.setattr(Waterbirds, "entries", lambda self, root: listed.append(root) or real(self, root))
    assert describe(Waterbirds(), tmp_path)["splits"] is not None
    assert listed == [(tmp_path / "waterbirds").resolve()]
