"""The figures that ship with the package."""

from pathlib import Path

from unspur.methods.catalog import METHODS
from unspur.methods.shown import shown

ROOT = Path(__file__).parents[2]


def test_every_committed_figure_is_of_a_method_and_a_file_that_exist():
    for method, rows in shown().items():
        assert method in METHODS and all((ROOT / row["file"]).exists() for row in rows), method
