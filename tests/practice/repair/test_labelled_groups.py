"""groups.csv of an audit's page, for choosing."""

import csv

import pytest
import torch

from practice.repair.tagged import tagged
from unspur.data.files.fetch import DataFiles
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.sets.folder import Folder
from unspur.errors import UnspurError
from unspur.practice.repair.labelled_groups import validation_labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    spec = Folder(root=str(tagged(tmp_path_factory.mktemp("images") / "set", each=40)), size=32, val=0.5)
    files = DataFiles(None)
    listing = spec.listed(files)
    y = codes(listing.labels, names_in_order(listing.labels))
    numbers = partition(listing, y, spec.val, spec.test, spec.seed)[0]["val"].tolist()
    return spec, spec.load(files), files, [listing.files[number].name for number in numbers]


def table(path, rows, columns=("filename", "label", "cue", "checked")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def test_validation_images_get_the_groups_of_the_table(folder, tmp_path):
    spec, data, files, names = folder
    kinds = ["kind0", "kind1"]
    rows = [(name, name[:5], kinds[place % 2], "person") for place, name in enumerate(names)]
    group = validation_labels(table(tmp_path / "groups.csv", rows), spec, data, files)
    expected = data.val.y * 2 + torch.arange(len(names)) % 2
    assert group.tolist() == expected.tolist()


def test_a_group_of_fewer_than_five_images_does_not_count(folder, tmp_path):
    spec, data, files, names = folder
    zero = [name for name, label in zip(names, data.val.y.tolist(), strict=True) if label == 0]
    rows = [(name, "kind0", "kind0" if place < 6 else "kind1", "person") for place, name in enumerate(zero[:9])]
    group = validation_labels(table(tmp_path / "groups.csv", rows), spec, data, files)
    assert int((group == 0).sum()) == 6 and set(group.tolist()) == {-1, 0}


def test_a_file_name_that_was_made_safe_for_spreadsheets_is_the_same_file(folder, tmp_path):
    spec, data, files, names = folder
    rows = [(f"./{name}", name[:5], "'kind0", "person") for name in names]
    assert (validation_labels(table(tmp_path / "groups.csv", rows), spec, data, files) >= 0).all()


def test_images_that_do_not_exist_are_named(folder, tmp_path):
    spec, data, files, _ = folder
    path = table(tmp_path / "groups.csv", [("kind0/gone.png", "kind0", "kind1", "person")])
    with pytest.raises(UnspurError, match=r"names kind0/gone\.png, which is not among"):
        validation_labels(path, spec, data, files)


def test_a_table_without_cues_or_with_too_few_is_refused(folder, tmp_path):
    spec, data, files, names = folder
    with pytest.raises(UnspurError, match="has no column 'cue'"):
        validation_labels(table(tmp_path / "a.csv", [("x", "y")], ("filename", "label")), spec, data, files)
    few = table(tmp_path / "b.csv", [(names[0], "kind0", "kind0", "person")])
    with pytest.raises(UnspurError, match="too few validation images to choose by"):
        validation_labels(few, spec, data, files)
    with pytest.raises(UnspurError, match="cannot be read as a table"):
        validation_labels(tmp_path / "none.csv", spec, data, files)
