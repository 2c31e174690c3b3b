"""An audit's folder: whole, found again, and finished after an interruption."""

import csv
import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from practice.audit.pictures import write_set
from unspur.data.images.listing import list_folder
from unspur.errors import UnspurError
from unspur.parts.cues.texts import cue_of
from unspur.practice.audit import stored as stored_module
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.collect import collect
from unspur.practice.audit.collected_file import read_collected, write_collected
from unspur.practice.audit.image_source import listed
from unspur.practice.audit.stored import COLLECTED, audit_into, stored

QUICK = Settings(model=False, local=False)


def corner(pixels, value):
    if value:
        pixels[:4, :4] = (30, 60, 220)
    return pixels


@pytest.fixture
def root(tmp_path):
    return write_set(tmp_path / "set", each=40, change=corner, conflict=0.1)


def look(root, out, source=None, settings=QUICK):
    return audit_into(out, "set", source or listed(list_folder(root)), target="folder", settings=settings)


def never(*arguments):
    raise AssertionError("an image was decoded again")


def test_an_audits_folder_has_findings_suspects_and_a_page(root, tmp_path):
    done = look(root, tmp_path / "audits")
    assert sorted(path.name for path in done.folder.iterdir()) == [
        ".lock",
        "audit.html",
        "config.json",
        "findings.json",
        "suspects.csv",
    ]
    with (done.folder / "suspects.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["filename", "label", "score", "why"]
    found = json.loads((done.folder / "findings.json").read_text())
    assert found["verdict"] == "leaks" and found["model"] is None and found["findings"][0]["reliance"] is None
    assert done.findings == found == stored(done.folder)


def test_a_mark_that_moves_is_kept_as_a_cue_that_can_be_swapped(tmp_path):
    draw = np.random.default_rng(1)

    def anywhere(pixels, value):
        row, column = draw.integers(0, 26, 2)
        if value:
            pixels[row : row + 6, column : column + 6] = (250, 20, 20)
            pixels[row + 2 : row + 4, column + 2 : column + 4] = (20, 250, 20)
        return pixels

    root = write_set(tmp_path / "set", each=180, change=anywhere)
    found = look(root, tmp_path / "audits", settings=Settings(model=False)).findings
    assert found["cues"][0].startswith("detected:")
    with_mark, without = (
        torch.tensor(np.stack([np.asarray(Image.open(path)) for path in sorted((root / name).iterdir())])) / 255
        for name in ("kind1", "kind0")
    )
    with_mark, without = with_mark.permute(0, 3, 1, 2), without.permute(0, 3, 1, 2)
    swapped = cue_of(found["cues"][0]).swap(without, with_mark)
    red = (swapped - torch.tensor([250, 20, 20])[:, None, None] / 255).abs().amax(1) < 0.02
    # Each mark has 32 red pixels: most images without one have been given most of it.
    assert float((red.flatten(1).sum(1) >= 24).float().mean()) > 0.8


def test_a_wrong_field_of_stored_findings_is_named_with_its_file(root, tmp_path):
    folder = look(root, tmp_path / "audits").folder
    found = json.loads((folder / "findings.json").read_text())
    found["findings"][0]["tells_label"] = "much"
    (folder / "findings.json").write_text(json.dumps(found))
    with pytest.raises(UnspurError, match=r"findings\.json: findings\[0\]\.tells_label must be a number but is 'much'"):
        stored(folder)


def test_the_same_images_are_not_audited_again_and_others_are(root, tmp_path):
    first = look(root, tmp_path / "audits")
    again = look(root, tmp_path / "audits", replace(listed(list_folder(root)), read=never))
    assert (first.found, again.found, again.findings) == (False, True, first.findings)
    (first.folder / COLLECTED).write_bytes(b"left")  # by a process that was killed before it deleted it
    look(root, tmp_path / "audits")
    assert not (first.folder / COLLECTED).exists()
    assert look(root, tmp_path / "audits", settings=replace(QUICK, seed=1)).folder != first.folder
    changed = next((root / "kind0").iterdir())
    changed.write_bytes(next((root / "kind1").iterdir()).read_bytes())
    assert look(root, tmp_path / "audits").folder != first.folder


def test_an_interrupted_audit_goes_on_without_decoding_an_image_again(root, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stored_module, "examine", interrupted)
        look(root, tmp_path / "audits")
    folder = next((tmp_path / "audits").iterdir())
    assert (folder / COLLECTED).exists()
    with pytest.raises(UnspurError, match="has not ended; audit the same images again"):
        stored(folder)
    done = look(root, tmp_path / "audits", replace(listed(list_folder(root)), read=never))
    assert done.folder == folder and not (folder / COLLECTED).exists()
    whole = look(root, tmp_path / "elsewhere").findings
    other = {"seconds": {}, "next": ""}  # which names the folder
    assert done.findings | other == whole | other
    assert done.findings["next"] == f"unspur repair {folder}"


def test_two_processes_that_want_the_same_audit_do_it_once(root, tmp_path, monkeypatch):
    # While the first works, the second waits; then it finds what the first wrote and reads no image.
    out, second = tmp_path / "audits", []
    examine = stored_module.examine

    def meanwhile(*arguments, **options):
        if not second:
            blind = replace(listed(list_folder(root)), read=never)
            second.append(threading.Thread(target=lambda: second.append(look(root, out, blind))))
            second[0].start()
            second[0].join(0.5)
            assert second[0].is_alive()  # it waits
        return examine(*arguments, **options)

    monkeypatch.setattr(stored_module, "examine", meanwhile)
    first = look(root, out)
    second[0].join()
    assert (first.found, second[1].found) == (False, True) and second[1].findings == first.findings


def test_what_was_collected_is_read_as_it_was_written(root, tmp_path):
    data = collect(listed(list_folder(root)))
    write_collected(tmp_path / "kept", data)
    read = read_collected(tmp_path / "kept")
    assert (read.names, read.classes, read.facts, read.flatness) == (
        data.names,
        data.classes,
        data.facts,
        data.flatness,
    )
    assert all(bool((getattr(read, name) == getattr(data, name)).all()) for name in ("y", "cells", "pictures"))
    assert all(bool((read.traces[name] == data.traces[name]).all()) for name in data.traces)


def test_a_mistake_in_the_images_writes_nothing(tmp_path):
    one = write_set(tmp_path / "one", each=30, classes=1)
    with pytest.raises(UnspurError, match="only one is so large"):
        look(one, tmp_path / "audits")
    assert not (tmp_path / "audits").exists()


def test_a_mistake_that_shows_only_in_the_pixels_writes_nothing(tmp_path):
    root = write_set(tmp_path / "set", each=30)
    for file in root.rglob("*.png"):
        file.write_bytes(b"no picture")
    with pytest.raises(UnspurError, match="None of the 60 images can be decoded"):
        look(root, tmp_path / "audits")
    assert not (tmp_path / "audits").exists()


def test_a_folder_that_is_no_audit_is_refused(tmp_path):
    with pytest.raises(UnspurError, match="is not an audit's folder"):
        stored(tmp_path)
