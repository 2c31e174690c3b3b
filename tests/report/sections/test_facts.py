from types import SimpleNamespace

import pytest

from report.examples import HOSTILE, config, opened, rewrite, run_in, tiny
from unspur.errors import UnspurError
from unspur.report.runs_page import write_report
from unspur.report.sections.facts import remaining
from unspur.report.sections.mining import MINING
from unspur.report.sections.pruning import PRUNING

FACTS = {
    "mined": 3,
    "mined_by_class": [2, 1],
    "mining": {"precision": 0.25, "recall": None},
    "kept": 0.5,
    "kept_by_layer": {"conv.weight": 1.0, "head.weight": 0.25},
    "selection": {"by": "mined validation samples", "step": 50, "loss": 0.25, "mined": 3, "of": 40},
    "seconds per step": 0.1,
}


def run(facts):
    return SimpleNamespace(facts=facts, label="dcwp", data=SimpleNamespace(data=tiny(), noun="images"))


def test_what_other_parts_show_is_not_written_out_as_well():
    assert remaining(run(FACTS)) == (("seconds per step", "0.1"),)


def test_a_count_alone_stays_among_the_facts():
    assert remaining(run({"mined": 3})) == (("mined", "3"),)


def test_what_was_mined_goes_by_the_names_of_the_classes():
    mined = MINING.view(run(FACTS))
    assert (mined.count, mined.of, mined.by_class) == (3, 40, (("low", 2), ("high", 1)))
    assert mined.precision.value == 0.25 and mined.recall is None


def test_what_was_kept_is_shown_layer_by_layer_unless_nothing_was_pruned():
    kept = PRUNING.view(run(FACTS))
    assert [(name, share.value) for name, share in kept.layers] == [("conv.weight", 1.0), ("head.weight", 0.25)]
    assert not PRUNING.applies(run({"kept": 1.0, "kept_by_layer": {}}))


def test_warnings_are_notices_and_never_markup(tiny_data, tmp_path):
    folder = run_in(tmp_path, config())
    rewrite(folder / "result.json", facts=FACTS | {"kept_by_layer": {HOSTILE[1]: 0.5}}, warnings=[HOSTILE[0]])
    write_report([folder], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<p class="notice" role="note">&lt;script&gt;alert(1)' in page
    assert page.count("<script") == 1 and "<img src=x" not in page


def test_facts_of_the_wrong_shape_are_named(tiny_data, tmp_path):
    folder = run_in(tmp_path, config())
    rewrite(folder / "result.json", facts=FACTS | {"kept_by_layer": 7})
    with pytest.raises(UnspurError, match=r"result\.json: facts\.kept_by_layer must be an object but is 7"):
        opened(folder)
