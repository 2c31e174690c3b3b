"""The cue of an audit, made again: it is swapped, removed, and seen to decide."""

import json

import pytest
import torch

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.parts.cues.texts import WHOLE
from unspur.practice.predict.audited_cue import audited_cue, stored_shortcut

CORNER = {
    "kind": "place", "what": "a mark", "grade": "leaks", "where": [[0, 0]], "tells_label": 0.95, "ci95": [0.9, 1.0],
    "p": 0.005, "separation": 5.0, "reliance": None, "suspects": 3, "accuracy_on_suspects": None,
    "suspects_ci95": None, "cue": "cells:8x8:8000000000000000",
}  # fmt: skip
CLASSES = ("cat", "dog")
SIDE = 16  # a cell of the 8x8 grid has 2x2 pixels


def audit(folder, *findings, classes=CLASSES):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")
    found = {"verdict": "leaks", "sentence": "A mark | gives labels away.", "classes": list(classes), "model": None}
    rest = {"images": 8, "of": 8, "tested": [], "leak_map": [], "pattern_map": [], "model_accuracy": None, "next": ""}
    found |= rest | {"estimated_worst_group": None, "notes": [], "seconds": {}, "findings": list(findings)}
    found |= {"cues": [], "target": "photos", "run": None}
    (folder / "findings.json").write_text(json.dumps(found))
    return folder


def marked(labels, bright):
    """Grey images, with a corner that is white (dog's) or black."""
    images = torch.full((len(labels), 3, SIDE, SIDE), 100, dtype=torch.uint8)
    images[:, :, :2, :2] = torch.tensor(bright, dtype=torch.uint8).view(-1, 1, 1, 1) * 255
    return images


VAL = Split(marked([0, 1] * 4, [0, 1] * 4), torch.tensor([0, 1] * 4))


def by_corner(images):
    """A model that looks at the corner alone."""
    white = images[:, 0, 0, 0].float()
    return torch.stack([255 - white, white], 1)


def by_middle(images):
    """A model that never looks at the corner, and always says dog."""
    return torch.stack([torch.zeros(len(images)), images[:, 0, 8, 8].float()], 1)


def test_the_corner_is_swapped_with_that_of_another_class_and_nothing_else(tmp_path):
    cue = audited_cue(audit(tmp_path, CORNER), CLASSES, VAL)
    images = marked([0, 1], [0, 1])
    assert torch.equal(cue.swapped(images, torch.tensor([0, 1])), marked([0, 1], [1, 0]))
    assert cue.what == "a mark"


def test_without_the_cue_all_images_have_the_same_corner(tmp_path):
    cue = audited_cue(audit(tmp_path, CORNER), CLASSES, VAL)
    assert torch.equal(cue.removed(marked([0, 1], [0, 1])), torch.full((2, 3, SIDE, SIDE), 100, dtype=torch.uint8))


def test_the_cue_decides_where_a_model_follows_it_and_not_where_it_does_not(tmp_path):
    cue = audited_cue(audit(tmp_path, CORNER), CLASSES, VAL)
    images = marked([0, 1, 1], [0, 1, 0])
    assert cue.decides(images, by_corner(images).argmax(1), by_corner).tolist() == [True, True, True]
    assert cue.decides(images, by_middle(images).argmax(1), by_middle).tolist() == [False, False, False]


def test_what_the_object_may_explain_is_no_shortcut_unless_the_model_leans_on_it(tmp_path):
    context = CORNER | {"grade": "context"}
    leaning = context | {"reliance": {"follows_cue": 0.6, "control": 0.1, "ci95": [0.4, 0.6], "images": 100}}
    trifle = context | {"reliance": {"follows_cue": 0.14, "control": 0.1, "ci95": [0.01, 0.07], "images": 100}}
    assert [stored_shortcut(each) for each in (CORNER, context, leaning, trifle)] == [True, False, True, False]
    assert audited_cue(audit(tmp_path, context), CLASSES, VAL) is None


def test_the_cue_is_what_the_audit_kept_and_may_be_more_than_the_place_that_it_shows(tmp_path):
    merged = CORNER | {"cue": "cells:8x8:c000000000000000"}  # the first two bits: of a place and a pattern beside it
    assert audited_cue(audit(tmp_path, merged), CLASSES, VAL).cue.cells == ((0, 0), (0, 1))


def test_a_cue_may_be_of_the_whole_image(tmp_path):
    brightness = CORNER | {"kind": "image", "what": "brightness", "where": None, "cue": "brightness"}
    assert audited_cue(audit(tmp_path, brightness, CORNER), CLASSES, VAL).cue == WHOLE["brightness"]


MOVING = CORNER | {"what": "a mark that moves", "where": None, "cue": None}


def test_the_gravest_cue_counts_which_comes_first_and_can_be_moved(tmp_path):
    edge = CORNER | {"what": "an edge", "where": [[7, 7]], "cue": "cells:8x8:0000000000000001"}
    cue = audited_cue(audit(tmp_path, MOVING, edge, CORNER), CLASSES, VAL)
    assert cue.what == "an edge" and cue.cue.cells == ((7, 7),)


def test_a_cue_that_an_audit_does_not_keep_is_one_sentence(tmp_path):
    with pytest.raises(UnspurError, match="found a mark that moves, which cannot be moved between images"):
        audited_cue(audit(tmp_path, MOVING), CLASSES, VAL)


def test_an_audit_of_an_earlier_version_is_read(tmp_path):
    cue = audited_cue(audit(tmp_path, CORNER | {"family": "place"}), CLASSES, VAL)
    assert cue.cue.cells == ((0, 0),)


def test_an_audit_of_other_data_is_one_sentence(tmp_path):
    with pytest.raises(UnspurError, match="is an audit of the classes cow, but the model knows cat, dog"):
        audited_cue(audit(tmp_path, CORNER, classes=["cow"]), CLASSES, VAL)
    with pytest.raises(UnspurError, match="is not an audit's folder"):
        audited_cue(tmp_path / "nothing", CLASSES, VAL)
