import math
from itertools import pairwise

import pytest

from unspur.report.charts import FRAME, stage_charts, ticks


def lines(stage="erm", **columns):
    return [
        {"stage": stage, "epoch": epoch, **dict(zip(columns, values, strict=True))}
        for epoch, values in enumerate(zip(*columns.values(), strict=True), 1)
    ]


def only_chart(**columns):
    (stage,) = stage_charts(lines(**columns))
    (chart,) = stage.charts
    return chart


def test_every_stage_has_its_own_charts_in_the_order_of_training():
    stages = stage_charts(lines(loss=[1.0, 0.5]) + lines("finetune", loss=[0.4]))
    assert [(stage.stage, len(stage.charts[0].points)) for stage in stages] == [("erm", 2), ("finetune", 1)]


def test_what_else_a_stage_logs_comes_behind_loss_accuracy_and_rate():
    (stage,) = stage_charts(lines(sparsity=[0.1], lr=[0.01], accuracy=[0.5], loss=[1.0]))
    assert [chart.title for chart in stage.charts] == ["loss", "accuracy", "learning rate", "sparsity"]


def test_a_loss_falls_from_the_top_of_its_chart_towards_zero_at_the_bottom():
    # Ticks 0, 0.2 ... 0.8: 0.8 lies at the top edge and 0.4 half way down.
    chart = only_chart(loss=[0.8, 0.4])
    assert [point.y for point in chart.points] == [FRAME.top, (FRAME.top + FRAME.bottom) / 2]
    assert [point.x for point in chart.points] == [FRAME.left, FRAME.right]
    assert chart.y_ticks[0].label == "0"


def test_accuracy_is_drawn_up_to_one_hundred_per_cent_and_no_further():
    for values in ([0.5, 0.75], [1.0, 1.0]):
        assert only_chart(accuracy=values).y_ticks[-1].label == "100 %"


def test_a_point_says_its_value():
    assert only_chart(loss=[0.8, 0.123456]).points[1].title == "epoch 2: loss 0.1235"


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_what_is_not_a_number_leaves_a_gap(bad):
    chart = only_chart(loss=[0.8, bad, 0.4])
    assert [point.title for point in chart.points] == ["epoch 1: loss 0.8", "epoch 3: loss 0.4"]


def test_a_column_without_any_number_has_no_chart():
    (stage,) = stage_charts(lines(loss=[math.nan]))
    assert stage.charts == ()


def test_a_single_epoch_is_a_point_in_the_middle():
    chart = only_chart(loss=[0.8])
    assert chart.points[0].x == (FRAME.left + FRAME.right) / 2
    assert [tick.label for tick in chart.x_ticks] == ["1"]


def test_epochs_are_whole_numbers():
    assert [tick.label for tick in only_chart(loss=[3.0, 2.0, 1.0]).x_ticks] == ["1", "2", "3"]


def test_a_stage_counted_in_steps_is_drawn_over_its_steps():
    lines = [{"stage": "masks", "step": step, "loss": loss} for step, loss in ((100, 0.8), (200, 0.4), (400, 0.2))]
    (stage,) = stage_charts(lines)
    (chart,) = stage.charts  # the step itself is no quantity
    assert chart.along == "step" and [tick.label for tick in chart.x_ticks] == ["100", "200", "300", "400"]
    # 200 lies a third of the way from 100 to 400, not half way
    assert chart.points[1].x == pytest.approx(FRAME.left + (FRAME.right - FRAME.left) / 3)
    assert chart.points[1].title == "step 200: loss 0.4"


def test_the_share_of_weights_kept_is_in_per_cent():
    chart = only_chart(kept=[1.0, 0.5])
    assert chart.points[1].title == "epoch 2: share of weights kept 50 %" and chart.y_ticks[-1].label == "100 %"


@pytest.mark.parametrize("low, high", [(0, 0), (0, 1e-5), (-3, 2), (1, 200), (0.5, 0.5), (0, 2.3), (0.999, 1)])
def test_ticks_enclose_their_range_and_are_few(low, high):
    values = ticks(low, high)
    assert values[0] <= low and values[-1] >= high
    assert 2 <= len(values) <= 7
    steps = {round((b - a) / (values[1] - values[0]), 6) for a, b in pairwise(values)}
    assert steps == {1}


def test_what_is_noted_at_every_step_is_drawn_over_steps():
    epochs = [
        {"stage": "erm", "epoch": 1, "loss": 1.0, "loss_ratios": [0.1, 0.2, None]},
        {"stage": "erm", "epoch": 2, "loss": 0.5, "loss_ratios": [0.4, 0.8, 0.6]},
    ]
    (stage,) = stage_charts(epochs)
    chart = stage.charts[-1]
    assert (chart.along, len(chart.points)) == ("step", 5)
    assert chart.summary == "loss of conflicting samples, share: 0.1 after step 1, 0.6 after step 6"


def test_many_steps_are_drawn_as_means_of_parts():
    (stage,) = stage_charts([{"stage": "erm", "epoch": 1, "loss_ratios": [0.0, 1.0] * 500}])
    (chart,) = stage.charts
    assert len(chart.points) == 100 and {point.title.split()[-1] for point in chart.points} == {"0.5"}


def test_steps_without_any_value_are_not_drawn():
    (stage,) = stage_charts([{"stage": "erm", "epoch": 1, "loss": 1.0, "loss_ratios": [None, None]}])
    assert [chart.title for chart in stage.charts] == ["loss"]
