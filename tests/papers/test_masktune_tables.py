import json
import shutil
from dataclasses import replace

import pytest

from data import cifar_copies
from unspur.data.catalog import DATASETS
from unspur.errors import DataMissing, UnspurError
from unspur.papers import reproduce as module
from unspur.papers.reproduce import TABLES, reproduce, table_named
from unspur.papers.table import Cell, Score, Setup, Table


@pytest.mark.parametrize("key", TABLES)
def test_every_cell_has_a_configuration_that_parses(key):
    table = table_named(key)
    for setup in table.setups():
        for quick in (False, True):
            assert setup.config(0, table.quick if quick else (), quick=quick).data.name in DATASETS
    for cell in table.cells:
        assert bool(cell.setups) == bool(cell.measure)
        assert cell.setups or cell.published is not None


def test_the_published_values_are_the_papers():
    # MaskTune's Table 5, row by row, as printed
    cells = {(cell.row, cell.column): (cell.published, cell.deviation) for cell in TABLES["masktune/table5"].cells}
    assert cells["2", "accumulative biased"] == (97.01, 2.86)
    assert cells["3", "accumulative original"] == (99.00, 0.14)
    assert cells["1", "non-accumulative biased"] == (28.08, 11.44)
    assert cells["ERM, no masking", "non-accumulative original"] == (60.78, 0.74)
    # Table 4, Cats vs. Dogs at 90 %
    cells = {(cell.row, cell.column): cell.published for cell in TABLES["masktune/table4"].cells}
    row = "Cats vs. Dogs, 90 %"
    assert [cells[row, f"{peer} error"] for peer in ("SR", "SN", "DG", "OSP", "MaskTune")] == [
        2.28,
        3.3,
        2.5,
        1.74,
        1.94,
    ]


@pytest.mark.parametrize("key", [key for key in TABLES if key.startswith("masktune/")])
def test_a_rate_that_falls_is_said_to_and_the_setting_that_keeps_it_as_the_authors_code_does_works(key):
    def last(setup, *more):
        method = setup.config(0, more).method
        recipe = getattr(method, "erm", None) or method.training
        return recipe.schedule.factor(recipe.epochs - 1, recipe.epochs, 0)

    table, kept = TABLES[key], "erm.schedule.gamma=1"
    falls = any(last(setup) < 1 for setup in table.setups())
    assert ("The rate falls" in table.differs) == falls == (table.name in ("table3", "table4", "table7"))
    if kept in table.differs:
        assert {last(setup, "erm.epochs=100", kept) for setup in table.setups()} == {1}
    else:  # CelebA's and Waterbirds' rates are constant
        assert table.name in ("table1", "table2")


def small(*settings):
    tiny = ("arch.width=16", "saliency=gradient", "data.base=mini", "data.val=9500", "erm.epochs=1")
    setup = Setup("masktune", "biased_mnist", "fcn", (*tiny, *settings))
    missing = Setup("erm", "mnist", "small_cnn")
    return Table(
        "test",
        "table",
        "A small table",
        (
            Cell("theirs", "biased", 12.0),
            Cell("ERM", "biased", 50.0, 1.0, setup, Score("biased", stage="erm")),
            Cell("MaskTune", "biased", 98.0, 0.5, setup, Score("biased")),
            Cell("ERM on MNIST", "test", 99.0, None, missing, Score("test")),
        ),
        quick=("erm.epochs=1",),
    )


def test_a_table_puts_ours_beside_theirs_and_says_what_it_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNSPUR_DATA", raising=False)
    said = []
    outcome = reproduce(small(), [0, 1], results=tmp_path / "results", runs=tmp_path / "runs", say=said.append)
    theirs, erm, ours, skipped = outcome["cells"]
    assert theirs["why_none"] == "quoted" and skipped["why_none"] == "skipped"
    assert len(erm["values"]) == len(ours["values"]) == 2
    assert ours["ours"] == pytest.approx(sum(ours["values"]) / 2) and ours["ours_deviation"] is not None
    assert "MNIST is not on this machine" in said[0] and len(said) == 1
    assert {run["commit"] for run in outcome["runs"]} == {outcome["commit"]}  # the code that trained, and that read
    assert json.loads((tmp_path / "results" / "test-table.json").read_text())["cells"][1:3] == [erm, ours]


def test_finished_runs_are_not_repeated(tmp_path, monkeypatch):
    first = reproduce(small(), [0], results=tmp_path / "results", runs=tmp_path / "runs")
    monkeypatch.setattr("unspur.runs.experiment._work", lambda *args: pytest.fail("it ran again"))
    again = reproduce(small(), [0], results=tmp_path / "results", runs=tmp_path / "runs")
    assert again["cells"] == first["cells"]


def test_only_some_of_a_table_can_be_asked_for_by_method_data_set_and_row(tmp_path):
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    outcome = reproduce(small(), [0], only=["biased_mnist", "MaskTune"], **out)
    assert [cell["why_none"] for cell in outcome["cells"]] == ["quoted", None, None, "skipped"]
    left = "left out by --only biased_mnist --only MaskTune."
    assert outcome["skipped"] == {"ERM on MNIST: erm on mnist, small_cnn": left}
    with pytest.raises(UnspurError, match=r"Unknown method, data set or row of test/table 'masktun'.*'masktune'"):
        reproduce(small(), [0], only=["masktun"], **out)


def test_what_is_left_out_is_read_if_it_has_been_run(tmp_path):
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    first = reproduce(small(), [1], only=["masktune"], **out)
    # Nothing has both names, so that nothing is run; seed 1 is done and seed 0 is not.
    again = reproduce(small(), [0, 1], only=["masktune", "ERM on MNIST"], **out)
    assert again["cells"] == first["cells"] and len(again["runs"]) == 1


def test_cells_whose_runs_were_deleted_stay_in_the_stored_table(tmp_path):
    tiny = ("arch.width=16", "data.base=mini", "data.val=9500", "erm.epochs=1")
    *cells, _ = small().cells
    plain = Cell("plain", "original", 50.0, None, Setup("erm", "biased_mnist", "fcn", tiny), Score("original"))
    table = replace(small(), cells=(*cells, plain))
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    first = reproduce(table, [0], only=["masktune"], **out)
    shutil.rmtree(tmp_path / "runs")
    again = reproduce(table, [1], only=["plain"], **out)
    assert again["cells"][:3] == first["cells"][:3] and again["cells"][3]["values"]
    assert [(run["method"], run["seed"]) for run in again["runs"]] == [("masktune", 0), ("erm", 1)]
    assert again["seeds"] == [0, 1] and json.loads((tmp_path / "results" / "test-table.json").read_text()) == again


def test_another_seed_joins_those_that_are_stored_if_the_configuration_is_the_same(tmp_path):
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    first = reproduce(small(), [0], only=["masktune"], **out)
    shutil.rmtree(tmp_path / "runs")
    both = reproduce(small(), [2], only=["masktune"], **out)
    for old, new in zip(first["cells"][1:3], both["cells"][1:3], strict=True):
        assert new["values"][:1] == old["values"] and len(new["values"]) == 2
        assert new["ours"] == pytest.approx(sum(new["values"]) / 2)
    assert [run["seed"] for run in both["runs"]] == [0, 2] == both["seeds"]
    shutil.rmtree(tmp_path / "runs")
    again = reproduce(small(), [0], only=["masktune"], **out)  # the same seed again: once, not twice
    assert [run["seed"] for run in again["runs"]] == [2, 0]
    assert again["cells"][1]["values"] == both["cells"][1]["values"][::-1]


def test_what_is_run_with_other_settings_replaces_all_that_was_known_of_it(tmp_path):
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    reproduce(small(), [0], only=["masktune"], **out)
    other = reproduce(small("erm.lr=0.02"), [2], only=["masktune"], **out)
    assert [run["seed"] for run in other["runs"]] == [2]
    assert all(len(cell["values"]) == 1 for cell in other["cells"][1:3])


def test_a_stored_table_is_not_replaced_by_one_with_other_settings(tmp_path):
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    reproduce(small(), [0], settings=["erm.lr=0.02"], **out)
    stored = (tmp_path / "results" / "test-table.json").read_text()
    with pytest.raises(UnspurError, match=r"test-table.json holds this table with --set erm.lr=0.02; move it, or name"):
        reproduce(small(), [0], **out)
    assert (tmp_path / "results" / "test-table.json").read_text() == stored
    reproduce(small(), [0], settings=["erm.lr=0.02"], **out)


def test_quick_results_are_labelled_and_kept_apart(tmp_path):
    outcome = reproduce(small(), [0], quick=True, results=tmp_path / "results", runs=tmp_path / "runs")
    assert outcome["quick"] is True
    assert (tmp_path / "results" / "test-table-quick.json").exists()
    assert not (tmp_path / "results" / "test-table.json").exists()


def test_missing_data_is_its_own_error(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path))
    monkeypatch.delenv("UNSPUR_DATA", raising=False)
    with pytest.raises(DataMissing, match="unspur data fetch mnist"):
        module.run(Setup("erm", "mnist", "small_cnn").config(0), tmp_path)


def test_every_way_to_abstain_of_table_4_runs_and_is_read_from_its_own_method(tmp_path):
    # None but MaskTune's has a stage of plain training beside its result; SN and DG answer by what they have learnt.
    cifar_copies.jpeg_file(tmp_path / "data" / "cifar10" / "cifar10_jpeg.npz", 80, test=40)
    table, tiny = TABLES["masktune/table4"], ["data.cifar=jpeg", "data.val=20"]
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs", "data_dir": tmp_path / "data"}
    outcome = reproduce(table, [0], quick=True, only=["cifar10"], settings=tiny, **out)
    found = {cell["column"]: cell["ours"] for cell in outcome["cells"] if cell["row"] == "CIFAR-10, 90 %"}
    assert set(found) == {
        f"{peer} {n}" for peer in ("SR", "SN", "DG", "OSP", "MaskTune") for n in ("coverage", "error")
    }
    assert None not in found.values(), outcome["skipped"]
    methods = [run["method"] for run in outcome["runs"]]
    assert sorted(methods) == ["deep_gamblers", "masktune", "osp", *3 * ["selectivenet"]]  # SN for each coverage
    setups = {cell.column: cell.setup for cell in table.cells if cell.row == "CIFAR-10, 90 %"}
    plain, betting = (setups[f"{peer} error"].config(0, ("erm.epochs=9",)).method for peer in ("SR", "DG"))
    assert betting.training == plain.erm and betting.after == pytest.approx(1 / 3)  # as long as SR is trained
    modes = {cell.setup.method: cell.measure.mode for cell in table.cells if not cell.column.startswith(("SR", "Mask"))}
    assert modes == {"selectivenet": "learned", "deep_gamblers": "learned", "osp": "softmax_response"}


def test_cim_lff_jtt_and_divdis_are_run_where_masktunes_tables_have_them():
    one, three = ({cell.row: cell.setup for cell in TABLES[f"masktune/{name}"].cells} for name in ("table1", "table3"))
    rows = {"CIM (groups in validation)": "cim", "LfF": "lff", "JTT": "jtt", "DivDis": "divdis"}
    assert {row: one[row].method for row in rows} == rows and three["CIM"].method == "cim"
    for setup, plain in (
        (one["LfF"], one["ERM"]),
        (one["DivDis"], one["ERM"]),
        (three["CIM"], three["Baseline (ERM)"]),
    ):
        assert setup.config(0).method.training == plain.config(0).method.erm
    jtt = one["JTT"].config(0).method  # its authors' script for CelebA
    assert (jtt.erm.epochs, jtt.training.epochs, jtt.training.lr, jtt.up) == (1, 50, 1e-5, 50)


def test_what_is_set_for_a_table_reaches_the_plain_training_of_every_method():
    def epochs(setup):
        method = setup.config(0, ("erm.epochs=9",)).method
        return tuple(getattr(method, name).epochs for name in ("erm", "training") if hasattr(method, name))

    assert epochs(Setup("jtt", "mnist", "small_cnn")) == (1, 9)  # its first is short so that it finds the bias
    assert epochs(Setup("osp", "mnist", "small_cnn")) == epochs(Setup("erm", "mnist", "small_cnn")) == (9,)


@pytest.mark.parametrize(
    ("table", "row", "rate", "epochs", "batch", "area", "held_out"),
    [
        ("table1", "MaskTune", 1e-4, 20, 512, 0.7, None),
        ("table2", "MaskTune", 1e-4, 100, 128, 0.7, None),
        ("table3", "MaskTune", 1e-4, 100, 1024, 0.08, None),
        ("table4", "CIFAR-10, 90 %", 0.1, 300, 128, 1.0, 10_000),
        ("table4", "SVHN, 90 %", 0.1, 300, 1024, 1.0, 14_651),
        ("table4", "Cats vs. Dogs, 90 %", 1e-3, 200, 128, 1.0, 0.2),
        ("table6", "MaskTune", 0.01, 10, 128, None, None),
    ],
)
def test_the_settings_are_section_3s_and_the_authors_scripts(table, row, rate, epochs, batch, area, held_out):
    # RandomResizedCrop: scale 0.7 to 1 for CelebA and Waterbirds, torchvision's 0.08 to 1 for ImageNet-9. A fifth of
    # the images of the selective sets is held out.
    cells = TABLES[f"masktune/{table}"].cells
    config = next(cell for cell in cells if cell.row == row and cell.setup.method == "masktune").setup.config(0)
    recipe = config.method.erm
    assert (recipe.lr, recipe.epochs, recipe.batch_size) == (rate, epochs, batch)
    if area is not None:
        assert config.data.augment.area == area
        assert config.data.augment.flip == (config.data.name != "svhn")  # a mirrored 5 is none
    if held_out is not None:
        assert config.data.val == held_out
