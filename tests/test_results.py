"""README.md and results/ show the figures of the JSON files: `make results` writes them, this test compares them."""

import doctest
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def scripts(monkeypatch):
    """The scripts as modules."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import make_results
    import result_tables

    return make_results, result_tables


def test_every_page_shows_what_the_results_say(scripts):
    make_results, _ = scripts
    differ = [str(page.relative_to(ROOT)) for page in make_results.stale() | make_results.stale_lists()]
    assert not differ, f"{', '.join(differ)} differ from results/*.json; run `make results`."


def test_a_changed_result_is_noticed_and_written_to_its_place_only(scripts, tmp_path, monkeypatch):
    import result_files

    make_results, _ = scripts
    shutil.copy(ROOT / "results/dcwp-table2.json", tmp_path)
    monkeypatch.setattr(result_files, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("By hand: 45.39.\n<!-- table: dcwp-table2 -->\n<!-- end -->\nAnd after.\n")
    page.write_text(make_results.filled(page.read_text()))
    assert not make_results.stale([page])
    table = json.loads((tmp_path / "dcwp-table2.json").read_text())
    table["cells"][0]["ours"] += 1  # the row "1 (-)" has 45.39
    (tmp_path / "dcwp-table2.json").write_text(json.dumps(table))
    new = make_results.stale([page])[page]
    assert "| 1 (-) | 46.39 | 43.1 |" in new and "45.39" not in new.partition("<!-- table")[2]
    assert new.startswith("By hand: 45.39.\n") and new.endswith("<!-- end -->\nAnd after.\n")


def test_a_table_names_its_command_seeds_sizes_and_commit_and_marks_what_was_published(scripts):
    _, result_tables = scripts
    how, _, headers, *_ = result_tables.reproduced("masktune-table6")
    assert how.startswith("`unspur reproduce masktune/table6`; seeds 0, 1, 2; 55,000 training images; commit ")
    assert headers == "|  | biased | published | original | published |"


def test_a_published_number_does_not_look_more_precise_than_it_was(scripts):
    _, result_tables = scripts
    rows = result_tables.reproduced("ule-table1")  # the paper prints 85, we measured 84.11
    assert any("| 84.11 ± 5.60 | 85 |" in row for row in rows)


def test_a_place_for_a_result_that_does_not_exist_names_it(scripts):
    make_results, _ = scripts
    with pytest.raises(FileNotFoundError, match="masktune-table99"):
        make_results.filled("<!-- table: masktune-table99 -->\n<!-- end -->\n")


def test_the_cost_model_of_labelling_counts_processes_cores_and_the_one_that_writes(scripts):
    import scale_table

    assert doctest.testmod(scale_table).failed == 0
    found = {"cores": 2, "decode": 0.01, "model": 0.02, "hand_out": 0.0008, "write": 0.0002, "points": []}
    # 1,281,167 x 0.03 s = 38,435 s on one core; one process needs 1,281 s of it, more than 64 cores with 601 s
    rows = {(row[0], row[1]): row[2:] for row in scale_table.far_rows(found)}
    assert rows["1,281,167", "1"] == ["3.6 h", "7.1 h", "21.4 min", "10.7 h", "the cores"]
    assert rows["1,281,167", "64"][3:] == ["21.4 min", "the one process that lists and writes"]
    assert scale_table.enough_cores(found) == 30  # 0.03 / 0.001


def test_a_cell_is_at_its_published_value_within_one_deviation_and_else_above_or_below(scripts):
    from cells_table import verdict

    # 97.0 - 0.1 is still at it, 96.89 is not; without a deviation 98.5 rounds to the printed 99, 98.4 does not
    assert [verdict(value, 97.0, 0.1) for value in (97.11, 97.1, 96.9, 96.89)] == ["above", "at", "at", "below"]
    assert [verdict(value, 99, None) for value in (98.6, 98.4)] == ["at", "below"]
    assert [verdict(value, 0.56, None) for value in (0.5551, 0.5549)] == ["at", "below"]
    assert verdict(5.0, 6.54, 0.39, less_is_better=True) == "above"  # an error


def test_cells_are_counted_once_each_and_only_those_that_were_run_make_the_share(scripts):
    from cells_table import lines, page

    found = list(lines())
    assert len(found) == len({(line.table, line.cell.row, line.cell.column) for line in found})
    found = [line for line in found if not line.cell.column.endswith("coverage")]
    run = [line for line in found if line.ours]
    good = sum(line.verdict in ("at", "above") for line in run)
    (summed,) = [row for row in page() if row.startswith("| all that were run |")]
    assert summed.endswith(f"| {100 * good / len(run):.0f} % |")
    assert any(str(len(found) - len(run)) in row and "were not run" in row for row in page())
    # a shorter training of the paper's network on its images is one kind, another network or other images the other
    departures = {line.table: line.ours.departure for line in run}
    assert departures["masktune/table5"].instead == "" and "10 epochs" in departures["masktune/table5"].training
    assert "JPEG" in departures["masktune/table4"].instead


def test_coverage_is_shown_and_neither_judged_nor_counted_for_a_threshold_sets_it_to_a_target(scripts):
    from cells_table import lines

    words = {(line.table, line.cell.column): line.verdict for line in lines() if line.ours}
    # at a target of 80 % the paper has 79.03 and we 80.81: to answer more than one should is no success
    assert words["masktune/table7", "MaskTune coverage"] == words["masktune/table4", "SR coverage"] == "not judged"
    assert words["masktune/table7", "MaskTune error"] == "below"


def test_cells_of_dcwp_say_where_their_masks_do_not_begin_as_the_papers_do(scripts):
    from cells_table import lines

    own = {
        (line.cell.row, line.cell.column): line.ours for line in lines() if line.table == "dcwp/table1" and line.ours
    }
    trained = {place: ours.departure.training for place, ours in own.items()}
    for percent in ("0.5", "1.0", "2.0", "5.0"):
        dcwp, erm = (trained[f"CMNIST, {percent} %", column] for column in ("DCWP", "ERM"))
        assert "theta = 0" in dcwp and "biased model by SGD" in dcwp and erm == ""
    # MRM has no biased model, and its older run at 1 % began at the paper's 1.5
    assert "theta = 0" in trained["CMNIST, 2.0 %", "MRM"] and "SGD" not in trained["CMNIST, 2.0 %", "MRM"]
    assert trained["CMNIST, 1.0 %", "MRM"] == ""


def test_what_plain_training_and_controls_have_is_counted_apart_from_the_papers_own_methods(scripts):
    from cells_table import kind_of, lines

    kinds = {(line.table, line.cell.row, line.cell.column): kind_of(line) for line in lines() if line.ours}
    others = "other methods, plain training and controls"
    assert kinds["masktune/table5", "ERM, no masking", "accumulative biased"] == others  # a stage of a MaskTune run
    assert kinds["masktune/table6", "random masking, windows", "biased"] == others
    assert kinds["masktune/table5", "2", "accumulative biased"] == "MaskTune"
    assert kinds["masktune/table5", "2", "non-accumulative biased"] == others  # a control that is to fail
    assert kinds["masktune/table4", "CIFAR-10, 95 %", "SR error"] == others
    assert kinds["dcwp/table1", "CMNIST, 1.0 %", "ERM"] == kinds["dcwp/table1", "CMNIST, 1.0 %", "MRM"] == others
    assert kinds["dcwp/table1", "CMNIST, 1.0 %", "DCWP"] == "DCWP"
    assert kinds["ule/table1", "MNIST, tested on MNIST", "ULE test"] == "ULE"


def test_a_number_that_two_tables_print_is_counted_once(scripts):
    from cells_table import lines

    from unspur.papers.reproduce import TABLES

    # MaskTune's Table 7 repeats Table 4 at 100, 95 and 90 % coverage, and adds 85 and 80 %
    coverages = {line.cell.row.split(", ")[1] for line in lines() if line.table == "masktune/table7"}
    assert coverages == {"85 %", "80 %"}
    whole = {cell.row.split(", ")[1] for cell in TABLES["masktune/table7"].cells}
    assert whole == {"100 %", "95 %", "90 %", "85 %", "80 %"}
    # and Table 5 prints plain training, which accumulates nothing, in both of its halves
    plain = [line.cell.column for line in lines() if line.cell.row == "ERM, no masking"]
    assert plain == ["accumulative biased", "accumulative original"]


def test_rows_of_a_comparison_that_were_run_again_replace_the_stored_ones_and_are_ranked_again(scripts):
    from compare_again import with_rows
    from result_files import read

    stored = read("compare-petscapes-tuned")
    (block,) = stored["datasets"]
    dfr, swap = (next(row for row in block["rows"] if row["method"] == name) for name in ("dfr", "swap"))
    better = swap | {"chosen": dfr["chosen"], "worst": dfr["worst"], "mean": dfr["mean"]}
    plain = {"method": "erm", "left_out": "its row is not taken"}
    new = stored | {"commit": "0123456789ab", "datasets": [block | {"rows": [plain, better]}], "done": 6, "of": 6}
    found = with_rows(stored, new)
    assert found["ranks"]["none"]["swap"] == found["ranks"]["none"]["dfr"]  # as good in all seeds: 1.5 of each
    assert found["ranks"]["none"]["swap"]["rank"] == 1.5
    (rows,) = ([row for row in each["rows"] if row["method"] != "swap"] for each in found["datasets"])
    assert rows == [row for row in block["rows"] if row["method"] != "swap"]
    assert found["commit"].endswith(", 0123456789ab") and found["command"].endswith("; then the same with swap")
    with pytest.raises(SystemExit, match="not whole, or of other seeds"):
        with_rows(stored, new | {"seeds": [0]})
    with pytest.raises(SystemExit, match="has no row of jtt"):
        with_rows(stored, new | {"datasets": [block | {"rows": [better | {"method": "jtt"}]}]})


def test_what_stored_tables_call_published_is_what_the_pinned_tables_have():
    from unspur.papers.reproduce import TABLES

    compared = 0
    for file in sorted((ROOT / "results").glob("*.json")):
        stored = json.loads(file.read_text())
        if not isinstance(stored, dict) or "cells" not in stored or "table" not in stored:
            continue
        pinned = {(c.row, c.column): (c.published, c.deviation) for c in TABLES[stored["table"]].cells}
        for cell in stored["cells"]:
            theirs = (cell["published"], cell["published_deviation"])
            assert theirs == pinned[cell["row"], cell["column"]], (file.name, cell["row"], cell["column"])
            compared += 1
    assert compared > 100


def test_the_loss_ratios_of_supplement_b_are_the_papers(scripts):
    from large_lr_tables import SUPPLEMENT_B

    # supplement B: low and high rate
    assert SUPPLEMENT_B == {"colored_mnist": (3.9e-3, 3.4e-3), "double_mnist": (9.5e-3, 7.4e-6)}


def test_every_shortfall_has_a_reason_and_no_reason_is_left_without_one(scripts):
    from fnmatch import fnmatch

    from cells_table import lines

    below = [line for line in lines() if line.verdict == "below"]
    assert not [line for line in below if not line.reason]
    names = [f"{line.table}|{line.cell.row}|{line.cell.column}" for line in below]
    reasons = json.loads((ROOT / "results/shortfalls.json").read_text())
    assert not [pattern for pattern in reasons if not any(fnmatch(name, pattern) for name in names)]


def test_methods_of_the_papers_photographs_stand_beside_plain_training_of_their_own_series(scripts):
    from result_files import over_seeds, read
    from stand_in_table import HEADERS, STOOD_FOR, stand_in

    tables = "\n".join(stand_in()).split("#### ")[1:]
    lines = [[[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[4:]] for table in tables]
    rows = {
        key: {row[0]: dict(zip(HEADERS, row, strict=True)) for row in own if row}
        for key, own in zip(STOOD_FOR, lines, strict=True)
    }
    assert {"erm", "mixup", "lisa", "ule_last_layer"} <= set(rows["ule/table5"])
    assert set(rows["masktune/table2"]) == {"groupdro", "erm", "masktune"}
    masked = [
        row["tests"]["before"]["test"]["worst_group_accuracy"]
        for row in read("photographs")["rows"]
        if (row["method"], row["set"]) == ("masktune", "petscapes")
    ]  # of the same size of images
    beside = {"masktune": over_seeds(masked)}
    for method, name in (("cim", "compare-petscapes-pixels"), ("groupdro", "compare-petscapes-tuned")):
        (erm,) = [row for row in read(name)["datasets"][0]["rows"] if row["method"] == "erm"]
        beside[method] = over_seeds([seed["worst"] for seed in erm["chosen"]["none"]])
    assert {method: rows["masktune/table1"][method]["its ERM: worst"] for method in beside} == beside
    assert len(set(beside.values())) == 3 and rows["masktune/table1"]["erm"]["its ERM: worst"] == ""
