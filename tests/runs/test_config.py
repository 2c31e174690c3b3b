import json

import pytest

from unspur.errors import UnspurError
from unspur.runs.config import Config, configure, key_of
from unspur.runs.experiment import run
from unspur.runs.folder import Run


def test_precision_is_part_of_a_run_and_full_precision_changes_no_key():
    full, mixed = (configure("erm", "parity", settings=[f"precision={word}"]) for word in ("full", "bf16"))
    assert full == configure("erm", "parity") and "precision" not in full.to_json()
    assert mixed.key != full.key and Config.from_json(mixed.to_json()) == mixed


def test_a_run_trains_in_the_precision_that_is_set(tmp_path):
    quick = ["data.train=300", "data.val=0", "data.test=50", "erm.epochs=1"]
    for word in ("full", "bf16"):
        run(configure("erm", "parity", settings=[*quick, f"precision={word}"]), tmp_path)
    lines = sorted(path.read_text() for path in tmp_path.glob("*/metrics.jsonl"))
    assert len(lines) == 2 and lines[0] != lines[1]


def test_a_precision_that_is_unknown_or_that_a_method_cannot_use_is_refused_with_a_sentence():
    with pytest.raises(UnspurError, match="precision must be full or bf16 but got 'fp8'"):
        configure("erm", "parity", settings=["precision=fp8"])
    with pytest.raises(UnspurError, match="ule trains in full precision only"):
        configure("ule", "mnist_sc", settings=["precision=bf16"])


def test_a_name_is_set_before_its_parts_in_whatever_order_they_come():
    settings = ["erm.schedule.every=3", "erm.lr=0.5", "erm.schedule=step", "erm=adam"]
    for order in (settings, settings[::-1]):
        erm = configure("erm", "parity", None, 0, order).method.erm
        assert (erm.name, erm.lr, erm.schedule.name, erm.schedule.every) == ("adam", 0.5, "step", 3)


def test_a_setting_by_its_old_name_works_and_is_said_to_have_a_new_one():
    said = []
    old = configure("ule", "mnist_sc", "cnn2", 0, ["erm=sgd", "erm.epochs=3"], said.append)
    assert old == configure("ule", "mnist_sc", "cnn2", 0, ["training=sgd", "training.epochs=3"])
    assert said == [
        "The setting erm of ule is now called training.",
        "The setting erm.epochs of ule is now called training.epochs.",
    ]


def test_a_stored_configuration_with_a_fields_old_name_is_read_and_keeps_its_own_key(tmp_path):
    now = configure("ule", "mnist_sc", "cnn2").to_json()
    old = {**now, "method": {"erm" if name == "training" else name: value for name, value in now["method"].items()}}
    key = key_of(old)
    folder = tmp_path / f"ule-mnist_sc-{key}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(old))
    stored = Run.open(folder)
    assert stored.config == Config.from_json(now) and stored.key == key != stored.config.key
