import re

import pytest

from report.examples import HOSTILE, config, rewrite, run_in, tiny
from unspur.errors import UnspurError
from unspur.report.page import write_report
from unspur.report.repair import repair
from unspur.report.rows import scored
from unspur.runs.config import configure

QUICK = [
    "data.base=mini", "erm=sgd", "erm.epochs=1", "erm.batch_size=20", "mining.training.epochs=1",
    "mining.training.batch_size=20", "masks.steps=4", "masks.batch_size=8", "masks.lr=1", "masks.l1=0",
    "tuning.steps=4", "tuning.batch_size=8", "tuning.every=2",
]  # fmt: skip
FACTS = {
    "mined": 3,
    "mined_by_class": [2, 1],
    "mining": {"precision": 0.25, "recall": None},
    "kept": 0.5,
    "kept_by_layer": {"conv.weight": 1.0, "head.weight": 0.25},
    "selection": {"by": "mined validation samples", "step": 50, "loss": 0.25, "mined": 3, "of": 40},
    "warnings": ["Nothing is left of a layer."],
    "seconds per step": 0.1,
}


def scores(value):
    return (scored("biased", {"accuracy": value}, tiny()),)


@pytest.fixture
def pruned_run(tiny_data, tmp_path):
    return run_in(tmp_path / "runs", configure("dcwp", "biased_mnist", "small_cnn", 0, QUICK))


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_accuracy_is_drawn_from_plain_training_over_each_stage_to_the_result():
    (chart,) = repair({}, [("erm", scores(0.25)), ("pruned", scores(0.5))], scores(1.0), tiny()).charts
    assert [tick.label for tick in chart.x_ticks] == ["erm", "pruned", "result"]
    assert [point.title for point in chart.points] == ["erm: 25 %", "pruned: 50 %", "result: 100 %"]
    # three equal parts of the axis, from 46 to 308: the middle stage is at (46 + 308) / 2
    assert [point.x for point in chart.points] == [tick.at for tick in chart.x_ticks] and chart.points[1].x == 177
    assert chart.points[0].y > chart.points[1].y > chart.points[2].y  # higher on the page is more
    assert chart.summary == "accuracy on test “biased”: 25 % after erm, 50 % after pruned, 100 % after result"


def test_a_run_without_plain_training_before_it_has_no_such_chart():
    # A student is trained beside the result, not before it.
    assert repair({}, [("student", scores(0.25))], scores(1.0), tiny()).charts == ()


def test_what_is_drawn_of_the_facts_is_not_written_out_as_well():
    found = repair(FACTS, (), scores(1.0), tiny())
    assert found.drawn == set(FACTS) - {"seconds per step"}
    assert (found.mined.count, found.mined.of, found.mined.by_class) == (3, 40, (("low", 2), ("high", 1)))
    assert found.mined.precision.value == 0.25 and found.mined.recall is None
    assert [(name, share.value) for name, share in found.kept.layers] == [("conv.weight", 1.0), ("head.weight", 0.25)]
    assert found.warnings == ("Nothing is left of a layer.",)


def test_a_count_alone_stays_among_the_facts():
    assert repair({"mined": 3}, (), scores(1.0), tiny()).drawn == frozenset()


def test_nothing_pruned_has_no_layers_to_show():
    assert repair({"kept": 1.0, "kept_by_layer": {}}, (), scores(1.0), tiny()).kept is None


def test_the_page_of_a_pruned_run_shows_what_was_mined_kept_and_chosen_and_the_steps_on_the_way(pruned_run, tmp_path):
    write_report([pruned_run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    text = words(page)
    for part in (
        "What was mined",
        "(precision)",
        "What was kept",
        "net.head.0.weight",
        "The result ",
        "accuracy on test “original”",
        "share of weights kept",
        "validation accuracy",
        "How the features lie",
        "Painted by square",
    ):
        assert part in text, part
    assert "mined_by_class" not in text and "kept_by_layer" not in text
    # masks were logged at each of 4 steps, the tuning at steps 2 and 4
    assert "step 3: share of weights kept" in text and "step 2: cross entropy" in text
    assert page.count('class="chart plane"') == 3 * 2  # three stages, painted by class and by square


def test_a_run_without_stages_shows_none_of_it(tiny_run, tmp_path):
    write_report([tiny_run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for part in ("What was mined", "What was kept", "How the features lie", 'class="chart plane"'):
        assert part not in page


def test_warnings_are_notices_and_never_markup(tiny_data, tmp_path):
    run = run_in(tmp_path, config())
    rewrite(run / "result.json", facts=FACTS | {"warnings": [HOSTILE[0]], "kept_by_layer": {HOSTILE[1]: 0.5}})
    write_report([run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<p class="notice" role="note">&lt;script&gt;alert(1)' in page
    assert page.count("<script") == 1 and "<img src=x" not in page


def test_facts_of_the_wrong_shape_are_named(tiny_data, tmp_path):
    run = run_in(tmp_path, config())
    rewrite(run / "result.json", facts=FACTS | {"kept_by_layer": 7})
    with pytest.raises(UnspurError, match=r"result\.json is not what a run of this data set writes"):
        write_report([run], tmp_path / "page.html")
