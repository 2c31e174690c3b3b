import pytest

from report.examples import rewrite, tiny
from unspur.errors import UnspurError
from unspur.evaluation.analysis import FIGURES
from unspur.report.analysed import MEANINGS, analysed
from unspur.report.page import write_report
from unspur.runs.analyze import analyze


def test_every_figure_has_a_meaning():
    assert list(MEANINGS) == list(FIGURES)


def test_a_run_that_was_never_analysed_has_no_analysis(tiny_run):
    assert analysed(tiny_run, tiny()) is None


def test_an_analysis_has_figures_curves_and_maps(tiny_run):
    found = analyze(tiny_run, test="original")
    view = analysed(tiny_run, tiny())
    assert (view.test, view.samples) == ("original", 40)
    assert {figure.name: figure.value for figure in view.figures}["CSI"] == found["csi"]
    assert len(view.charts) == 3 and len(view.charts[0].points) == 10
    assert view.charts[0].summary.startswith("left after pruning nodes and kernels: 1 at share 0")
    assert len(view.maps) == 12 and [layer.name for layer in view.maps[0].layers] == list(view.kinds)
    right = [tile.right for tile in view.maps]
    assert right == [tile.truth == tile.predicted for tile in view.maps]


def test_the_page_shows_it(tiny_run, tmp_path):
    analyze(tiny_run)
    write_report([tiny_run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "How it computes" in page and "left after pruning columns" in page and "Integrated Gradients" in page


def test_a_file_that_is_no_analysis_is_named(tiny_run):
    analyze(tiny_run)
    rewrite(tiny_run / "analysis.json", prunability=7)
    with pytest.raises(UnspurError, match=r"analysis.json is not what `unspur analyze` writes"):
        analysed(tiny_run, tiny())
