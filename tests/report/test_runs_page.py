import json
import re
from dataclasses import replace

import pytest
import torch

from report.examples import HOSTILE, config, rewrite, run_in, tiny
from unspur.data.catalog import dataset_named, load
from unspur.errors import UnspurError
from unspur.report.runs_page import write_report
from unspur.runs.config import configure


def written(runs, folder):
    out = folder / "page" / "report.html"
    write_report(runs, out)
    return out.read_text(encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader sees, roughly: no tags, no images."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_asks_for_nothing_outside_itself(tiny_run, tmp_path):
    page = written([tiny_run], tmp_path)
    addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')>\s]+)""", page)
    assert addresses
    inside = ("data:", "#", "URL.createObjectURL(")  # the last is what the page itself makes for a download
    assert [address for address in addresses if not address.startswith(inside)] == []
    assert "default-src 'none'" in page


def test_a_done_run_shows_its_scores_groups_settings_and_machine(tiny_run, tmp_path):
    text = text_of(written([tiny_run], tmp_path))
    result = json.loads((tiny_run / "result.json").read_text())
    assert f"{100 * result['tests']['original']['accuracy']:.1f} %" in text
    for words in (
        "low, square: absent",
        "conflicting",
        "erm.lr",
        "data.base",
        "mini",
        tiny_run.name,
        result["machine"],
    ):
        assert words in text


def test_the_training_accuracy_is_that_of_the_last_epoch_and_names_its_stage(tiny_run, tmp_path):
    with (tiny_run / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "finetune", "epoch": 1, "loss": 0.5, "accuracy": 0.4375, "lr": 0.1}\n')
    words = "training 43.8 % of the training images, in the last epoch of stage “finetune”"
    assert words in text_of(written([tiny_run], tmp_path))


def test_every_group_of_every_test_set_has_a_row(tiny_run, tmp_path):
    page = written([tiny_run], tmp_path)
    tables = re.findall(r'<table class="sortable groups">.*?</table>', page, re.DOTALL)
    assert [len(re.findall("<tr><th scope=.row.", table)) for table in tables] == [4, 2]


def test_several_runs_are_compared_first(tiny_data, tmp_path):
    runs = [run_in(tmp_path, config(seed=seed)) for seed in (0, 1)]
    page = written(runs, tmp_path)
    assert page.index('id="comparison"') < page.index('id="data"') < page.index('id="run-1"') < page.index('id="run-2"')
    assert page.count("The data: biased_mnist") == 1


def test_one_run_is_not_compared_with_itself(tiny_run, tmp_path):
    assert 'id="comparison"' not in written([tiny_run, tiny_run.parent / "." / tiny_run.name], tmp_path)


def test_a_diverged_run_is_shown_with_its_reason_and_what_it_learnt_before(tiny_run, tmp_path):
    result = json.loads((tiny_run / "result.json").read_text())
    kept = {key: value for key, value in result.items() if key not in ("tests", "stages", "facts")}
    reason = "The loss was not finite at step 12 of stage 'erm'."
    (tiny_run / "result.json").write_text(json.dumps(kept | {"status": "diverged", "reason": reason}))
    (tiny_run / "model.safetensors").unlink()
    page = written([tiny_run], tmp_path)
    assert "erm on biased_mnist, diverged: The loss was not finite at step 12" in text_of(page)
    assert 'class="chart"' in page and "Where it looks" not in page


def test_an_unfinished_run_is_shown_as_such(tiny_run, tmp_path):
    (tiny_run / "result.json").unlink()
    assert "unfinished" in text_of(written([tiny_run], tmp_path))


def test_stages_are_shown_beside_the_result(tiny_run, tmp_path):
    tests = json.loads((tiny_run / "result.json").read_text())["tests"]
    tests["biased"]["accuracy"] = 0.6125
    rewrite(tiny_run / "result.json", stages={"warm-up": {"tests": tests}})
    text = text_of(written([tiny_run], tmp_path))
    assert "On the way" in text and "warm-up" in text and "61.3 %" in text


def test_a_page_of_the_embedded_digits_is_small_enough_to_send(monkeypatch, tmp_path):
    # Five such runs on one page, as a demo may have, stay below 1.5 MB.
    digits = load("biased_mnist", base="mini")
    some = replace(digits, tests={name: test.subset(torch.arange(0, 2000, 5)) for name, test in digits.tests.items()})
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: some)
    page = written([run_in(tmp_path, config("erm.epochs=0"))], tmp_path)
    assert page.count("<img") > 100
    assert len(page) < 300_000


def test_vector_data_has_no_gallery_and_says_so(tmp_path):
    wanted = configure("erm", "parity", "fcn", 0, ["erm.epochs=0", "arch.width=8"])
    text = text_of(written([run_in(tmp_path, wanted)], tmp_path))
    assert "so there are no pictures to show" in text and "nothing to lay a map over" in text


def test_a_model_without_a_spatial_layer_says_that_its_maps_are_gradients(tiny_data, tmp_path):
    run = run_in(tmp_path, config("arch.width=8", arch="fcn"))
    assert "no spatial layer, so a map shows the size of the input gradient" in text_of(written([run], tmp_path))


def test_nothing_from_the_data_or_the_run_is_taken_for_markup(monkeypatch, tmp_path):
    data = replace(tiny(HOSTILE, HOSTILE), note=HOSTILE[0])
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: data)
    run = run_in(tmp_path, config())
    rewrite(run / "result.json", facts={HOSTILE[0]: HOSTILE[1]}, stages={HOSTILE[0]: {"tests": {}}}, machine=HOSTILE[1])
    failed = run_in(tmp_path, config(seed=1))
    rewrite(failed / "result.json", status="failed", reason=HOSTILE[1])
    page = written([run, failed], tmp_path)
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script") == 1 and "onerror='" not in page and "<img src=x" not in page


@pytest.mark.parametrize(
    "file, content, sentence",
    [
        ("config.json", "{", "config.json cannot be read as JSON"),
        ("result.json", "{", "result.json cannot be read as JSON"),
        ("result.json", '{"key": "other"}', "method is missing"),
        ("metrics.jsonl", '{"stage": "erm"}\n{"st', "line 2, cannot be read as JSON"),
        ("metrics.jsonl", "[1]", "line 1 names no stage"),
    ],
)
def test_a_corrupt_file_is_named_and_nothing_is_written(tiny_run, tmp_path, file, content, sentence):
    (tiny_run / file).write_text(content)
    with pytest.raises(UnspurError, match=sentence):
        written([tiny_run], tmp_path)
    assert not (tmp_path / "page").exists()


def test_a_result_whose_groups_the_data_does_not_have_is_named(tiny_run, tmp_path):
    tests = json.loads((tiny_run / "result.json").read_text())["tests"]
    tests["original"]["groups"][0]["attributes"]["square"] = 7
    rewrite(tiny_run / "result.json", tests=tests)
    with pytest.raises(UnspurError, match=r"result\.json does not fit its data set"):
        written([tiny_run], tmp_path)


def test_weights_that_cannot_be_read_are_named_in_their_place_and_the_rest_is_written(tiny_run, tmp_path):
    (tiny_run / "model.safetensors").write_text("no weights")
    text = text_of(written([tiny_run], tmp_path))
    assert "This part (gallery) could not be made" in text and "is not a readable safetensors file" in text
    assert "Accuracy by group" in text and "erm.lr" in text


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(UnspurError, match="nowhere is not a run folder"):
        written([tmp_path / "nowhere"], tmp_path)


def test_no_run_at_all_is_an_error(tmp_path):
    with pytest.raises(UnspurError, match="at least one run folder"):
        written([], tmp_path)


def test_a_folder_as_the_file_to_write_is_an_error_that_names_a_file(tiny_run, tmp_path):
    with pytest.raises(UnspurError, match=r"is a folder; name the file to write, such as .*report\.html"):
        write_report([tiny_run], tmp_path)


def test_a_file_where_a_folder_should_be_is_an_error(tiny_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnspurError, match=r"Cannot write .*; name another file"):
        write_report([tiny_run], tmp_path / "file" / "report.html")


def test_an_old_page_survives_a_failed_attempt(tiny_run, tmp_path):
    out = tmp_path / "report.html"
    write_report([tiny_run], out)
    before = out.read_bytes()
    (tiny_run / "result.json").write_text("{")
    with pytest.raises(UnspurError):
        write_report([tiny_run], out)
    assert out.read_bytes() == before


def test_the_same_runs_make_the_same_page(tiny_run, tmp_path):
    assert written([tiny_run], tmp_path) == written([tiny_run], tmp_path)


def test_what_is_printed_as_json_says_what_the_headline_and_the_notices_say(tiny_run, tmp_path):
    tests = json.loads((tiny_run / "result.json").read_text())["tests"]
    rewrite(
        tiny_run / "result.json", tests={name: own | {"only_class": 1} for name, own in tests.items()}, warnings=["w"]
    )
    found = write_report([tiny_run], tmp_path / "report.html")
    page = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert found["headline"].startswith("The classifier trained with erm predicts “high” for every test image")
    assert found["headline"] in page
    (warnings,) = found["warnings"].values()
    assert warnings[0].startswith("The model predicts the class 'high' for every image") and warnings[1] == "w"
    assert all(warning in page.replace("&#39;", "'") for warning in warnings) and found["failed"] == {}
