import json

import pytest

from report.examples import opened, rewrite, tiny
from unspur.data.catalog import dataset_named
from unspur.evaluation.analysis import NO_SHORTCUT
from unspur.evaluation.figures import FIGURES
from unspur.report.runs_page import write_report
from unspur.report.sections.analysis import ANALYSIS, MEANINGS
from unspur.runs.analyze import FILE, analyze


def test_every_figure_has_a_meaning():
    assert list(MEANINGS) == list(FIGURES)


def test_a_run_that_was_never_analysed_has_no_analysis(tiny_run):
    assert not ANALYSIS.applies(opened(tiny_run))


def test_an_analysis_has_figures_curves_and_maps(tiny_run):
    found = analyze(tiny_run, test="original")
    view = ANALYSIS.view(opened(tiny_run))
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


def test_a_file_that_is_no_analysis_is_named_in_its_place(tiny_run, tmp_path):
    analyze(tiny_run)
    rewrite(tiny_run / "analysis.json", prunability=7)
    failed = write_report([tiny_run], tmp_path / "page.html")["failed"]
    assert "analysis.json: prunability must be an object but is 7; restore or delete the file." in failed["analysis"]
    assert "could not be made" in (tmp_path / "page.html").read_text()


def test_an_early_analysis_without_warnings_or_surroundings_is_shown(tiny_run):
    analyze(tiny_run)
    found = json.loads((tiny_run / FILE).read_text())
    for name in ("made", "warnings", "surroundings"):
        del found[name]
    (tiny_run / FILE).write_text(json.dumps(found))
    view = ANALYSIS.view(opened(tiny_run))
    assert view.figures and view.warnings == view.planes == ()


@pytest.fixture
def bare_run(tiny_run, monkeypatch):
    """Of the test set "bare" no image has the square."""
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: tiny(bare=True))
    return tiny_run


def shares(view):
    return {
        figure.name: figure.value
        for figure in view.figures
        if figure.name in ("core attribution", "spurious attribution")
    }


def test_attribution_to_a_shortcut_that_no_image_has_is_not_measured(bare_run):
    found = analyze(bare_run, test="bare")
    assert found["attribution"]["integrated_gradients"]["shares"] is None
    assert found["unknown"]["attribution.shares"] == NO_SHORTCUT
    view = ANALYSIS.view(opened(bare_run))
    assert shares(view) == {"core attribution": None, "spurious attribution": None}
    assert view.warnings[0] == NO_SHORTCUT and NO_SHORTCUT not in dict(view.unknown).values()


def test_where_images_have_the_shortcut_it_is_measured(bare_run):
    analyze(bare_run, test="biased")
    view = ANALYSIS.view(opened(bare_run))
    assert sum(shares(view).values()) == pytest.approx(1) and NO_SHORTCUT not in view.warnings


def test_an_old_analysis_without_the_shortcut_is_no_comfort_either(bare_run, tmp_path):
    analyze(bare_run, test="bare")
    found = json.loads((bare_run / "analysis.json").read_text())
    found["attribution"]["integrated_gradients"]["shares"] = {"core": 1.0, "spurious": 0.0}
    rewrite(bare_run / "analysis.json", attribution=found["attribution"], unknown={})
    assert shares(ANALYSIS.view(opened(bare_run))) == {"core attribution": None, "spurious attribution": None}
    write_report([bare_run], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("not measured</span>") == 2 and "No image of this test set has the shortcut" in page
