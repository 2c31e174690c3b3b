import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from data.photos import class_folders, photo
from unspur.cli.main import main
from unspur.core.unfinished import unfinished_folder
from unspur.data.base import groups_of
from unspur.data.catalog import load
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts.natural import named_colours
from unspur.data.shortcuts.plant_folder import plant
from unspur.errors import UnspurError


def rows(folder):
    with (folder / "metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def photos(tmp_path):
    return class_folders(tmp_path / "photos", cat=20, dog=20)


def test_the_copy_has_exactly_the_share_of_conflicts_and_an_unbiased_test_set(photos, tmp_path):
    out = tmp_path / "new"
    planted = plant(Folder(root=str(photos), test=0.4, val=0.25), "border", out, conflict=0.25)
    # 40 images: 16 for testing; of 24 a quarter, 6, for validation; of the other 18 a quarter, 4.5, conflicts (rounded
    # to even: 4).
    assert (planted.images, planted.training, planted.conflicting) == (40, 18, 4)
    values = {"cat": "red", "dog": "green"}
    table = rows(out)
    assert list(table[0]) == ["filename", "label", "split", "border"] and len(table) == 40
    train = [row for row in table if row["split"] == "train"]
    assert sum(row["border"] != values[row["label"]] for row in train) == 4
    test = [(row["label"], row["border"]) for row in table if row["split"] == "test"]
    assert {group: test.count(group) for group in test} == {
        (label, value): 4 for label in ("cat", "dog") for value in ("red", "green")
    }


def test_each_copy_shows_what_the_table_says_and_is_otherwise_the_original(photos, tmp_path):
    out = tmp_path / "new"
    plant(Folder(root=str(photos)), "border", out, conflict=0.1)
    colours = named_colours(2)
    for row in rows(out):
        copy = np.asarray(Image.open(out / row["filename"]))
        original = np.asarray(Image.open(photos / row["filename"].removeprefix("images/")))
        assert copy.shape == original.shape and tuple(copy[0, 0]) == colours[row["border"]]
        assert np.array_equal(copy[1:-1, 1:-1], original[1:-1, 1:-1])  # a border of 8 / 16, at least a pixel


def test_the_copy_is_read_by_the_set_folder(photos, tmp_path):
    planted = plant(Folder(root=str(photos)), "square", tmp_path / "new", conflict_count=3)
    options = dict(setting.removeprefix("data.").split("=", 1) for setting in planted.settings)
    data = load("folder", **options | {"attributes": (options["attributes"],)}, size=8)
    assert data.classes == ("cat", "dog") and data.attribute_values == {"square": ("green", "red")}
    disagreeing = (data.train.y == 0) == (data.train.attributes["square"] == 0)  # cats are red
    assert int(disagreeing.sum()) == planted.conflicting == 3
    assert groups_of(data.tests["test"]).id.bincount().tolist() == [2, 2, 2, 2]  # 8 test images


def test_a_seed_fixes_everything(photos, tmp_path):
    outs = [tmp_path / name for name in ("a", "b", "c")]
    for out, seed in zip(outs, (0, 0, 1), strict=True):
        plant(Folder(root=str(photos), seed=seed), "corruption", out, conflict=0.2)

    def contents(out):
        return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}

    assert contents(outs[0]) == contents(outs[1]) != contents(outs[2])


def test_a_table_of_images_keeps_its_splits_and_attributes(tmp_path):
    root = tmp_path / "root"
    lines = ["filename,label,split,place"]
    for number in range(12):
        photo(root / f"{number}.jpg", size=(30 + number, 40))
        lines.append(f"{number}.jpg,{'ab'[number % 2]},{('train', 'train', 'test')[number % 3]},{'xy'[number % 2]}")
    (root / "labels.csv").write_text("\n".join(lines))
    source = Folder(root=str(root), csv="labels.csv", attributes=("place",), val=0.25)
    plant(source, "watermark", tmp_path / "new", conflict=0)
    table = {row["filename"]: row for row in rows(tmp_path / "new")}
    assert list(table["images/2.png"].values())[1:] == ["a", "test", table["images/2.png"]["watermark"], "x"]
    assert {row["split"] for row in table.values()} == {"train", "val", "test"}
    with Image.open(tmp_path / "new" / "images" / "7.png") as image:
        assert image.size == (37, 40)


def test_files_that_differ_only_in_their_ending_stay_apart(tmp_path):
    root = class_folders(tmp_path / "photos", a=5, b=5)
    photo(root / "a" / "000.jpg")
    plant(Folder(root=str(root), val=0), "color", tmp_path / "new", conflict=0)
    names = [row["filename"] for row in rows(tmp_path / "new")]
    assert len(set(names)) == 11 and {"images/a/000.png", "images/a/000.png.png"} <= set(names)


def test_a_broken_image_leaves_nothing_behind(photos, tmp_path):
    (photos / "dog" / "013.png").write_bytes(b"\x89PNG, not really")
    with pytest.raises(UnspurError, match=r"dog/013\.png is not an image .*; fix or remove it, or .*skip_broken"):
        plant(Folder(root=str(photos)), "border", tmp_path / "new", conflict=0.1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["photos"]


def test_broken_images_are_left_out_where_told_to(photos, tmp_path):
    for name in ("cat/001.png", "dog/013.png"):
        (photos / name).write_bytes(b"")
    source = Folder(root=str(photos), skip_broken=True, val=0)
    planted = plant(source, "border", tmp_path / "new", conflict=0.2)
    # 38 images are left, 8 of them (7.6) for testing; of the other 30 a fifth conflicts: none of the broken ones count
    assert (planted.images, planted.training, planted.conflicting) == (38, 30, 6)
    assert len(rows(tmp_path / "new")) == 38 and not (tmp_path / "new/images/cat/001.png").exists()
    sentence = "2 of 40 images could not be used and were left out: cat/001.png is empty (0 bytes); dog/013.png"
    assert planted.notes[0].startswith(sentence) and planted.notes[0] in planted.summary()


def test_images_of_which_none_can_be_read_are_refused(tmp_path):
    photos = class_folders(tmp_path / "photos", a=2, b=2)
    for path in photos.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(UnspurError, match=r"None of the 4 images in .* can be used: a/000\.png is empty"):
        plant(Folder(root=str(photos), skip_broken=True), "border", tmp_path / "new", conflict=0)


KILLED = """
import os, signal, sys
from pathlib import Path
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts import plant_folder
plant_folder._write_table = lambda path, rows: os.kill(os.getpid(), signal.SIGKILL)
plant_folder.plant(Folder(root=sys.argv[1]), "border", Path(sys.argv[2]), conflict=0)
"""


def unfinished(parent):
    return sorted(path for path in parent.iterdir() if path.name.startswith(".partial-"))


def test_what_a_killed_process_left_is_deleted_by_the_next_and_what_a_live_one_writes_is_not(photos, tmp_path):
    out = tmp_path / "out"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", KILLED, photos, out / "new"], check=False, env=environment)
    assert died.returncode == -signal.SIGKILL
    left = unfinished(out)
    assert len(left) == 1 and len(list(left[0].rglob("*.png"))) == 40
    with unfinished_folder(out / "other") as live:
        assert unfinished(out) == [live]  # the other one is gone
        plant(Folder(root=str(photos)), "border", out / "new", conflict=0)
        assert unfinished(out) == [live]
    assert len(rows(out / "new")) == 40


def test_bad_requests_are_one_sentence_and_write_nothing(photos, tmp_path):
    source, out = Folder(root=str(photos)), tmp_path / "new"
    for options, sentence in (
        ({}, "Give conflict, a share, or conflict_count, a number"),
        ({"conflict": 0.1, "conflict_count": 2}, "not both"),
        ({"conflict": 2}, "between 0 and 1 but got 2"),
        ({"conflict_count": 1000}, "at most the 29 samples but got 1000"),
    ):
        with pytest.raises(UnspurError, match=sentence):
            plant(source, "border", out, **options)
    with pytest.raises(UnspurError, match="Unknown shortcut 'bordr'"):
        plant(source, "bordr", out, conflict=0.1)
    with pytest.raises(UnspurError, match="lies in the folder of your images"):
        plant(source, "border", photos / "new", conflict=0.1)
    circle = out.parent / "circle"
    circle.symlink_to(circle)
    with pytest.raises(UnspurError, match=r"circle/new cannot be written .* name another folder"):
        plant(source, "border", circle / "new", conflict=0.1)
    out.mkdir()
    with pytest.raises(UnspurError, match="exists already; delete it or name another folder with --out"):
        plant(source, "border", out, conflict=0.1)
    assert list(out.iterdir()) == []


def test_the_command_line_plants_and_says_how_to_train(photos, tmp_path, monkeypatch, capsys):
    def run(*arguments):
        command = ["unspur", "data", "plant", str(photos), "--shortcut", "square", "--conflict", "0.1", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    code, out, _err = run("--out", str(tmp_path / "new"))
    assert code == 0 and "Wrote 40 images" in out and f"--set data.root={tmp_path / 'new'}" in out
    code, out, err = run("--out", str(tmp_path / "new"))
    assert code == 2 and err.startswith("Error: ") and "exists already" in err and not out
    code, out, _err = run("--out", str(tmp_path / "other"), "--json", "--set", "data.test=0.5")
    assert code == 0 and json.loads(out)["training"] == 18  # half of 40, less a tenth


def test_images_are_drawn_independently_of_each_other(photos, tmp_path):
    plant(Folder(root=str(photos)), "color", tmp_path / "all", conflict=0)
    few = tmp_path / "few"
    for row in rows(tmp_path / "all")[::2]:
        copy = few / row["filename"].removeprefix("images/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((photos / row["filename"].removeprefix("images/")).read_bytes())
    plant(Folder(root=str(few)), "color", tmp_path / "fewer", conflict=0)
    known = {row["filename"]: row["color"] for row in rows(tmp_path / "all")}
    same = [row["filename"] for row in rows(tmp_path / "fewer") if known[row["filename"]] == row["color"]]
    assert same
    for name in same:
        assert (tmp_path / "fewer" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()
