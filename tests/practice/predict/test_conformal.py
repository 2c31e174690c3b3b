"""Sets of labels keep their promise for any number of validation images, and not a whole number beside it."""

import csv
import io
import json

import pytest
import torch

from practice.conftest import DOG, ODD
from practice.predict.test_audited_cue import CORNER, audit
from unspur.errors import UnspurError
from unspur.practice.export.export import Wanted as Export
from unspur.practice.export.export import export_run
from unspur.practice.predict.abstention import calibration_of_json
from unspur.practice.predict.conformal import Known, fewest, floor_for, in_set, require_enough, sets_of
from unspur.practice.predict.predict import Wanted, predict_into


def test_of_new_images_like_ten_known_ones_ten_in_eleven_reach_the_floor_for_nine_in_ten():
    # The floor is the ceil(11 x 0.9) = 10th largest of ten. A new value comes at each of the 11 places between
    # them alike, and 10 of these are above it: 0.909. The ceil(10 x 0.9) = 9th would hold 9 in 11 = 0.818, too few.
    draws = torch.rand(20_000, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    held = torch.tensor([row[10] >= floor_for(row[:10], 0.9) for row in draws]).double().mean()
    assert float(held) == pytest.approx(10 / 11, abs=4 * (10 / 11 / 11 / 20_000) ** 0.5)


def test_sets_hold_whatever_the_model():
    # logits that know nothing of the label, and are sure of themselves: sets grow until they hold it
    draw = torch.Generator().manual_seed(1)
    probability = (5 * torch.randn(6_000, 4, generator=draw, dtype=torch.float64)).softmax(1)
    y = torch.randint(4, (6_000,), generator=draw)
    old, new = Known("old", probability[:2_000], y[:2_000]), Known("new", probability[2_000:], y[2_000:])
    sets = sets_of([old, new], [old])
    for place, expected in enumerate(sets["expected"]):
        share = (place + 1) / 100
        deviation = (share * (1 - share) * (1 / 2_000 + 1 / 4_000)) ** 0.5
        assert expected[0]["coverage"] >= share and expected[1]["coverage"] >= share - 4 * deviation
    assert sets["expected"][89][1]["size"] > 3.4  # of four: nine in ten by chance alone


def test_the_set_of_an_image_is_what_reaches_the_floor_and_the_likeliest_label():
    probability = torch.tensor([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.9, 0.08, 0.02]])
    assert in_set(probability, 0.3).sum(1).tolist() == [2, 2, 1]
    assert in_set(probability, 0.6).tolist() == [[True, False, False]] * 3
    assert in_set(probability, 0.0).all()


def test_a_floor_from_two_kinds_of_images_holds_for_the_harder_one():
    right = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    easy, hard = (Known(name, p, torch.zeros(3, dtype=torch.long)) for name, p in (("a", right), ("b", right - 0.2)))
    assert sets_of([easy], [easy])["floors"][74] == pytest.approx(0.7)  # ceil(4 x 0.75) = 3rd of three
    assert sets_of([easy, hard], [easy, hard])["floors"][74] == pytest.approx(0.5)
    assert sets_of([easy], [easy])["floors"][75] == 0  # ceil(4 x 0.76) = 4: all labels


def test_too_few_images_are_one_sentence():
    # nine images: ceil(10 x 0.9) = 9 is the least of them; eight: ceil(9 x 0.9) = 9 is none of them
    assert fewest(0.9) == 9 and floor_for(torch.rand(9), 0.9) > 0 and floor_for(torch.rand(8), 0.9) == 0
    require_enough(9, 0.9)
    with pytest.raises(UnspurError, match=r"too small for --conformal 0\.9: it has 8 images and needs at least 9"):
        require_enough(8, 0.9)


@pytest.mark.parametrize("share", [0.0, 1.0, 0.995, -1.0, float("nan")])
def test_a_share_that_no_set_can_promise_is_refused(share):
    with pytest.raises(UnspurError, match=r"--conformal is a share of images above 0 and up to 0\.99"):
        Wanted(conformal=share)


def test_rows_have_a_set_in_every_format_and_go_on_with_it(plain_run, new_photos, tmp_path):
    given, wanted = (str(new_photos),), Wanted(conformal=0.9)
    stream = io.BytesIO()
    done = predict_into(plain_run, given, wanted, None, printed=stream)
    printed = list(csv.DictReader(io.StringIO(stream.getvalue().decode(), newline="")))
    summed = predict_into(plain_run, given, wanted, None)["rows"]
    assert done["sets"]["share"] == 0.9 and done["sets"]["expected"][0]["coverage"] >= 0.9 and not done["abstention"]
    for cells, row in zip(printed, summed, strict=True):
        if row["label"] is None:
            assert cells["set"] == "" and "set" not in row  # a file that cannot be read
        else:
            assert json.loads(cells["set"]) == row["set"] and row["set"][0] == row["label"]
            assert set(row["set"]) <= {ODD, DOG}  # a name with a comma, quotes and a newline survives
    out = tmp_path / "rows.csv"
    predict_into(plain_run, given, wanted, out)
    whole = out.read_bytes()
    assert whole == stream.getvalue()
    out.write_bytes(whole[:-5])
    assert predict_into(plain_run, given, wanted, out, resume=True)["found"] == 13 and out.read_bytes() == whole
    with pytest.raises(UnspurError, match="was made with another conformal"):
        predict_into(plain_run, given, Wanted(conformal=0.8), out, resume=True)


def test_an_exported_model_has_the_sets_of_its_run(plain_run, new_photos, tmp_path):
    export_run(plain_run, tmp_path / "out", Export("safetensors"))
    given = (str(new_photos),)
    own, found = (predict_into(path, given, Wanted(conformal=0.9), None) for path in (plain_run, tmp_path / "out"))
    assert found["sets"] == own["sets"]
    assert [row.get("set") for row in found["rows"]] == [row.get("set") for row in own["rows"]]
    with pytest.raises(UnspurError, match=r"too small for --conformal 0\.99: it has 48 images and needs at least 99"):
        predict_into(tmp_path / "out", given, Wanted(conformal=0.99), None)
    with pytest.raises(UnspurError, match=r"too small for --conformal 0\.99: it has 48 images and needs at least 99"):
        predict_into(plain_run, given, Wanted(conformal=0.99), None)
    stored = json.loads((tmp_path / "out" / "abstention.json").read_text())
    del stored["sets"]  # as version 0.2 wrote it
    with pytest.raises(UnspurError, match="here was exported by a version without --conformal; export the run again"):
        calibration_of_json(stored, "here").sets(0.9, "here")


def test_with_an_audit_sets_also_hold_with_the_cue_swapped(plain_run, new_photos, tmp_path):
    half = CORNER | {"cue": "cells:8x8:ffffffff00000000"}  # the first four rows, which tell the classes apart
    folder = audit(tmp_path / "audit", half, classes=[ODD, DOG])
    plain, audited = (
        predict_into(plain_run, (str(new_photos),), Wanted(conformal=0.9, audit=given), None)["sets"]
        for given in (None, folder)
    )
    kinds = {each["images"]: each for each in audited["expected"]}
    assert kinds["with the cue of another class"]["coverage"] >= 0.9 and audited["cue"] == "a mark"
    assert audited["floor"] < plain["floor"] and audited["expected"][0]["size"] > plain["expected"][0]["size"]
