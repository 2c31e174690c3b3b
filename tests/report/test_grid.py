from typing import get_args

from unspur.parts.select import Rule
from unspur.report.grid import RULES, grid, grid_table, sensitivity_chart


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
    assert grid({"grid": [row]}) is None
    assert grid({"grid": [row, row]}).chart is None  # one lambda
    assert len(grid({"grid": [row, row]}).rows) == 2
