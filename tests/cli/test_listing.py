"""The lists of methods, architectures and data sets: a line for each name, at once, and true."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unspur.cli import listing
from unspur.data.catalog import DATASETS
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.methods.catalog import METHODS, method_named
from unspur.models.catalog import ARCHS

LISTS = [(["methods"], METHODS), (["archs"], ARCHS), (["data", "list"], DATASETS)]


@pytest.mark.parametrize(("arguments", "names"), LISTS)
def test_a_list_has_a_line_for_each_name_and_names_the_command_for_details(unspur, arguments, names):
    code, out, err = unspur(*arguments)
    header, *lines = out.partition("\n\n")[0].splitlines()
    assert code == 0 and [line.split()[0] for line in lines] == list(names)
    assert "what it" in header and err.startswith("Next: unspur ")


@pytest.mark.parametrize(("arguments", "names"), LISTS)
def test_a_list_in_json_has_every_option_and_nothing_else_is_printed(unspur, arguments, names):
    code, out, err = unspur(*arguments, "--json")
    entries = json.loads(out)
    assert (code, err) == (0, "") and [entry["name"] for entry in entries] == list(names)
    assert all(set(entry) == {"name", "description", "facts", "options"} for entry in entries)
    assert all({"key", "default", "comment"} == set(option) for entry in entries for option in entry["options"])


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in LISTS])
def test_a_list_needs_neither_torch_nor_what_it_lists(arguments):
    code = (
        "import sys; sys.argv[1:] = sys.argv[1:]\n"
        "from unspur.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'torchvision', 'unspur.methods.erm', 'unspur.data.base'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_methods_say_which_need_group_labels():
    for name, *facts in listing.method_rows()[1:]:
        method = method_named(name)
        expected = "needed" if method.needs_groups else "validation" if method.needs_val_groups else "no"
        assert facts[0] == expected


def test_the_files_of_a_data_set_are_had_as_the_list_says(tmp_path):
    for name, files, *_ in listing.data_rows()[1:]:
        spec = DATASETS[name]()
        assert bool(spec.needs()) == files.startswith("fetch"), name
        if files == "fetch or mini":
            assert not DATASETS[name](base="mini").needs()
        if files == "none":
            assert len(spec.load(DataFiles(tmp_path)).train)
        if files == "by hand":
            with pytest.raises(UnspurError):
                spec.load(DataFiles(tmp_path))


def test_where_something_comes_from_is_its_paper_or_the_end_of_its_first_line():
    outline = listing.Outline("X", "Do it (ULE 4.2: as PyTorch).", {}, {}, {})
    assert listing._source_and_summary(outline) == ("ULE 4.2", "Do it.")
    assert listing._source_and_summary(outline._replace(constants={"paper": "arXiv:1"})) == ("arXiv:1", "Do it.")
    assert listing._source_and_summary(outline._replace(summary="Do it.")) == ("-", "Do it.")


def test_what_is_not_known_is_null_in_json_and_left_out_of_the_details():
    rows = [("method", "cost", "from", "what"), ("erm", "1", "-", "Train.")]
    assert listing.facts(rows) == {"erm": {"cost": "1", "from": None}}


def test_on_a_terminal_a_line_is_cut_and_never_wrapped(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "12")
    listing.print_rows([("name", "what"), ("erm", "a long sentence")], "legend")
    assert capsys.readouterr().out == "name  what\nerm   a lon…\n\nlegend\n"


@pytest.mark.parametrize("arguments", [["methods", "ule"], ["archs", "fcn"], ["archs", "resnet18"]])
def test_a_name_shows_its_options_with_defaults_and_what_to_do_with_it(unspur, arguments):
    code, out, err = unspur(*arguments)
    assert code == 0 and out.startswith(arguments[1]) and "options, for --set:" in out and "=" in out
    assert err.startswith("Next: unspur train ")
    code, out, _ = unspur(*arguments, "--json")
    assert code == 0 and json.loads(out)["name"] == arguments[1]


@pytest.mark.parametrize(("arguments", "near"), [(["methods", "masktun"], "masktune"), (["archs", "cnn33"], "cnn3")])
def test_a_name_that_does_not_exist_is_a_mistake_with_the_nearest_one(unspur, arguments, near):
    code, out, err = unspur(*arguments)
    assert (code, out) == (2, "") and f"Did you mean '{near}'?" in err


def test_info_shows_a_data_sets_options_as_set_takes_them(unspur):
    code, out, err = unspur("data", "info", "parity")
    assert code == 0 and "    data.core=6  " in out and err.startswith("Next: unspur data preview parity ")


def test_the_methods_say_what_they_were_shown_to_repair_where_they_gained(monkeypatch, unspur):
    lost, won = ({"shortcut": name, "images": "digits", "seeds": 3, "file": "results/x.json"} for name in ("a", "b"))
    known = {"erm": [lost | {"before": 50.0, "after": 40.0}, won | {"before": 50.0, "after": 60.5}], "jtt": [lost]}
    known["jtt"][0] |= {"before": 50.0, "after": 40.0}
    monkeypatch.setattr(listing, "shown", lambda: known)
    cells = {row[0]: row[4] for row in listing.method_rows()}
    assert (cells["erm"], cells["jtt"], cells["ule"]) == ("b: 50.0 to 60.5 %", "no gain", "-")
    # what did not help is said with the details
    _, out, _ = unspur("methods", "jtt")
    assert "tried on: a (digits): 50.0 to 40.0 %, 3 seeds, results/x.json" in out
