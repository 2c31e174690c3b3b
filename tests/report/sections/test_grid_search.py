from types import SimpleNamespace
from typing import get_args

from report.examples import rewrite, run_in
from unspur.parts.select import Rule
from unspur.report.runs_page import write_report
from unspur.report.sections.grid_search import GRID_SEARCH, RULES, grid_table, sensitivity_chart
from unspur.runs.config import configure


def test_the_curve_has_a_point_for_each_lambda_that_was_scored():
    rows = [{"lam": 1.0, "score": 0.5}, {"lam": 0.0, "score": 0.25}, {"lam": 0.5, "score": None}]
    chart = sensitivity_chart({"sensitivity": rows, "rule": "worst_group"})
    assert [point.title for point in chart.points] == [
        "lambda 0: best validation accuracy of the worst group 25 %",
        "lambda 1: best validation accuracy of the worst group 50 %",
    ]
    assert chart.along == "lambda" and chart.summary.endswith("50 % at lambda 1")


def test_every_rule_has_words():
    assert tuple(RULES) == get_args(Rule)


def test_one_lambda_makes_no_curve_and_no_grid_no_table():
    assert sensitivity_chart({"sensitivity": [{"lam": 1.0, "score": 0.5}]}) is None
    assert sensitivity_chart({}) is None
    assert grid_table({}) == ()


def test_the_best_setting_comes_first():
    rows = [
        {"lam": 0.1 * n, "lr": 0.1, "l2": 0.0, "score": score, "epoch": 10} for n, score in enumerate((0.2, 0.9, 0.4))
    ]
    assert [row[3] for row in grid_table({"grid": rows})] == ["90.0 %", "40.0 %", "20.0 %"]


def test_a_single_setting_is_no_search():
    row = {"lam": 1.0, "lr": 0.1, "l2": 0.0, "score": 0.5, "epoch": 10}
    one, two = (SimpleNamespace(facts={"grid": [row] * n}, label="ule") for n in (1, 2))
    assert not GRID_SEARCH.applies(one) and GRID_SEARCH.applies(two)
    shown = GRID_SEARCH.view(two)
    assert (shown.chart, len(shown.rows)) == (None, 2)  # one lambda, no curve


def test_a_grid_search_is_drawn_and_not_written_out(tiny_data, tmp_path):
    settings = ["data.base=mini", "lams=0.5,1", "lrs=0.1,0.01", "l2s=0.001", "epochs=2", "rule=mean"]
    run = run_in(tmp_path, configure("ule_last_layer", "biased_mnist", "small_cnn", 0, settings))
    write_report([run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "4 settings, each with its best score" in page and "validation accuracy of all" in page
    assert "<dt>grid</dt>" not in page and "<dt>chosen</dt><dd>lam " in page


def test_names_in_a_grid_are_words_on_the_page(tiny_run, tmp_path):
    hostile = {"lam": 0.5, "lr": 0.1, "l2": 0.0, "score": 0.5, "epoch": "<script>alert(1)</script>"}
    rewrite(tiny_run / "result.json", facts={"grid": [hostile, hostile]})
    write_report([tiny_run], tmp_path / "page.html")
    assert "<script>alert" not in (tmp_path / "page.html").read_text()
