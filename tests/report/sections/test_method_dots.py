from pathlib import Path

import pytest

from unspur.report.compare_page import write_comparison
from unspur.report.sections.method_dots import LEFT, METHOD_DOTS, RIGHT, view


def spread(values):
    return {"mean": sum(values) / len(values), "deviation": None, "n": len(values)} if values else None


def row(method, worst, mean, groups="none", known=None):
    """A method with the scores of its seeds; ``known`` are the means over groups where groups chose."""
    chosen = {
        "none": [{"seed": n, "worst": w, "mean": m} for n, (w, m) in enumerate(zip(worst, mean, strict=True))],
        "groups": [],
    }
    return {
        "method": method, "groups": groups, "left_out": "", "diverged": 0, "lost": [], "cost": 1.0, "chosen": chosen,
        "worst": {"none": spread(worst), "groups": None}, "mean": {"none": spread(mean), "groups": spread(known or [])},
    }  # fmt: skip


def block(*rows):
    return {"dataset": "parity", "test": "unbiased", "arch": "fcn", "rows": list(rows)}


def test_the_best_is_on_top_and_places_are_in_proportion():
    # ticks of 0 to 0.8 in steps of 0.2, so that 0.4 is half of the way
    found = view(block(row("erm", [0.2, 0.2], [0.5, 0.5]), row("jtt", [0.8, 0.0], [0.6, 0.6])))
    assert [line.method for line in found.lines] == ["jtt", "erm"] and found.score == "worst group"
    assert found.lines[0].without == (LEFT + RIGHT) / 2 and found.lines[0].seeds == (RIGHT, LEFT)
    assert found.plain == found.lines[1].without == LEFT + (RIGHT - LEFT) / 4
    assert found.lines[0].title == "jtt: 40.0 % (80.0 %, 0.0 %)"


def test_where_the_worst_group_is_at_zero_for_most_the_mean_counts():
    rows = [row("erm", [0.0], [0.3]), row("irm", [0.0], [0.2], "training"), row("swap", [0.1], [0.4], known=[0.5])]
    found = view(block(*rows))
    assert found.score == "mean over groups" and [line.method for line in found.lines] == ["swap", "erm", "irm"]
    assert found.lines[0].with_groups > found.lines[0].without and found.lines[1].with_groups is None
    assert [line.reads for line in found.lines] == ["none", "none", "training"]
    assert found.summary == "mean over groups: swap 40.0 %, plain training 30.0 %"


def test_a_method_that_lost_every_seed_has_no_dot_and_scores_of_zero_have_a_scale():
    found = view(block(row("erm", [0.0], [0.0]), row("jtt", [0.0], [0.0]), row("irm", [], [])))
    assert [line.method for line in found.lines] == ["erm", "jtt"]
    assert {line.without for line in found.lines} == {LEFT}


def test_a_single_method_needs_no_picture():
    assert not METHOD_DOTS.applies(block(row("erm", [0.1], [0.3])))
    assert METHOD_DOTS.applies(block(row("erm", [0.1], [0.3]), row("jtt", [0.2], [0.3])))


@pytest.mark.parametrize("name", ["<script>alert(1)</script>"])
def test_the_page_draws_them_and_escapes_names(name, tmp_path):
    found = {
        "command": "unspur compare", "commit": None, "seeds": [0], "candidates": 1, "done": 2, "of": 2,
        "datasets": [block(row("erm", [0.1], [0.3]), row(name, [0.2], [0.4]))], "ranks": {"groups": {}, "none": {}},
    }  # fmt: skip
    page = Path(tmp_path / "page.html")
    assert write_comparison(found, page) == []
    text = page.read_text()
    assert text.count('<circle class="mean"') == 2 and "plain training</text>" in text
    assert name not in text and "&lt;script&gt;alert(1)" in text
