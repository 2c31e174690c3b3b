import pytest
import torch
from torch import nn

from report.examples import run_in, tiny
from unspur.data.catalog import dataset_named, load
from unspur.evaluation.scores import predict
from unspur.report.runs_page import write_report
from unspur.report.sections.shortcut_effect import effects
from unspur.runs.config import configure


class Sees(nn.Module):
    """Two logits, the first as many times the square's brightness as ``slope`` says."""

    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        score = self.slope * x[:, 2, :4, :4].mean((1, 2))
        return torch.stack([score, torch.ones_like(score)], 1)


def test_only_images_that_have_the_shortcut_are_compared():
    # Of 40 conflicting images the 20 of class 1 have a square. With a slope of 5 it gives 5 > 1, so class 0; noise
    # from 0 to 59, 0.116 of full brightness on average, gives 0.58 < 1, so class 1.
    data = tiny(bare=True)

    def says(slope):
        return lambda test: predict(Sees(slope), data.tests[test])

    (found,) = effects({"weak": says(0.0), "strong": says(5.0)}, data)
    assert (found.on, found.off, found.images) == ("biased", "bare", 20)
    rows = dict(found.rows)
    assert rows["weak"] == pytest.approx((0.0, 0.0, 0.0))
    assert rows["strong"].flipped == 1.0
    # lead with the square: 5 - 1; without it: 0.58 - 1; lost: 5 x 0.884
    assert rows["strong"].logit == pytest.approx(5 * (1 - 29.5 / 255), abs=0.1)


@pytest.mark.parametrize("name", ["biased_mnist", "mnist_sc", "colored_mnist"])
def test_sets_with_a_planted_shortcut_show_the_same_images_without_it(name):
    data = load(name, base="mini", val=9900)
    ((on, off),) = data.without_shortcut.items()
    shown, bare = data.tests[on], data.tests[off]
    assert torch.equal(shown.y, bare.y)
    if name == "colored_mnist":  # a colour is never brighter than the grey that it is a part of
        assert (shown.x <= bare.x).all()
    else:  # the same below the square and the code
        assert torch.equal(shown.x[:, :, 4:], bare.x[:, :, 4:])


def test_the_page_shows_the_student_the_teacher_and_what_the_shortcut_does_to_both(monkeypatch, tmp_path):
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: tiny(bare=True))
    run = run_in(tmp_path, configure("ule", "biased_mnist", "small_cnn", 0, ["erm.epochs=1"]))
    write_report([run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<h3>Student and teacher</h3>" in page and "With and without the shortcut" in page
    assert "input gradient map of the student" in page and "XGradCAM map of the teacher" in page
    table = page[page.index("20 images of test") :]
    assert table.index('data-value="student"') < table.index('data-value="result"')


def test_data_without_such_a_pair_has_no_such_table(tiny_run, tmp_path):
    write_report([tiny_run], tmp_path / "page.html")
    assert "With and without the shortcut" not in (tmp_path / "page.html").read_text()
