import re

import pytest

from report.examples import opened, run_in
from unspur.report.context import StageScores
from unspur.report.runs_page import write_report
from unspur.report.scores import Scored, Share
from unspur.report.sections.stages import STAGES, charts
from unspur.runs.config import configure

QUICK = [
    "data.base=mini", "erm=sgd", "erm.epochs=1", "erm.batch_size=20", "mining.training.epochs=1",
    "mining.training.batch_size=20", "masks.steps=4", "masks.batch_size=8", "masks.lr=1", "masks.l1=0",
    "tuning.steps=4", "tuning.batch_size=8", "tuning.every=2",
]  # fmt: skip


def scores(value):
    return (Scored("biased", (), Share(value), None, None, None, None, None, ()),)


@pytest.fixture
def pruned_run(tiny_data, tmp_path):
    return run_in(tmp_path / "runs", configure("dcwp", "biased_mnist", "small_cnn", 0, QUICK))


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_accuracy_is_drawn_from_plain_training_over_each_stage_to_the_result():
    (chart,) = charts([StageScores("erm", scores(0.25)), StageScores("pruned", scores(0.5))], scores(1.0))
    assert [tick.label for tick in chart.x_ticks] == ["erm", "pruned", "result"]
    assert [point.title for point in chart.points] == ["erm: 25 %", "pruned: 50 %", "result: 100 %"]
    # three equal parts of the axis, from 46 to 308: the middle stage is at (46 + 308) / 2
    assert [point.x for point in chart.points] == [tick.at for tick in chart.x_ticks] and chart.points[1].x == 177
    assert chart.points[0].y > chart.points[1].y > chart.points[2].y  # higher on the page is more
    assert chart.summary == "accuracy on test “biased”: 25 % after erm, 50 % after pruned, 100 % after result"


def test_a_student_trained_beside_the_result_is_no_step_on_its_way(tiny_data, tmp_path):
    student = opened(run_in(tmp_path, configure("ule", "biased_mnist", "small_cnn", 0, ["erm.epochs=0"])))
    assert student.baseline == {"stage": "student", "role": "student"} and not student.repaired
    assert STAGES.applies(student) and STAGES.view(student) == ()


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
