"""What is read from the source is what an import would show."""

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from unspur.core import outline
from unspur.core.outline import catalogue
from unspur.data.catalog import DATASETS
from unspur.methods.catalog import METHODS, method_named
from unspur.models.catalog import ARCHS

CATALOGUES = [
    ("unspur.methods.catalog", "METHODS", {name: method_named(name) for name in METHODS}),
    ("unspur.models.catalog", "ARCHS", ARCHS),
    ("unspur.data.catalog", "DATASETS", DATASETS),
]


@pytest.mark.parametrize(("module", "variable", "imported"), CATALOGUES, ids=lambda value: str(value)[:30])
def test_a_catalogue_read_is_the_catalogue_imported(module, variable, imported):
    read = catalogue(module, variable)
    assert list(read) == list(imported)
    for name, found in read.items():
        cls = imported[name]
        assert found.summary == (cls.__doc__ or "").splitlines()[0]
        assert {key: getattr(cls, key) for key in found.constants} == dict(found.constants)
        assert set(found.fields) == {field.name for field in dataclasses.fields(cls)}


def source(monkeypatch, **modules):
    """Pretend that the package consists of these modules."""
    trees = {f"unspur.{name}": ast.parse(text) for name, text in modules.items()}
    monkeypatch.setattr(outline, "_parsed", lambda module: trees.get(module, ast.Module([], [])))
    for cached in (outline._classes, outline._imported, outline._assigned):
        monkeypatch.setattr(outline, cached.__name__, cached.__wrapped__)


BASE = """
class Method:
    "What a method is."
    needs_groups: ClassVar[bool] = False
    cost: ClassVar[str] = "1"
    def fit(self): ...
"""
ONE = """
from unspur.base import Method as Parent
class One(Parent):
    '''Do one thing.

    And say more.'''
    name: ClassVar[str] = "one"
    cost: ClassVar[str] = "2"
    lr: float = 0.1
    def _fit(self): ...
"""


def test_class_variables_are_inherited_and_the_nearest_one_counts(monkeypatch):
    source(monkeypatch, base=BASE, one=ONE)
    found = outline.outline("unspur.one", "One")
    assert found.constants == {"needs_groups": False, "cost": "2", "name": "one"}
    assert found.fields == {"lr": "float"} and found.methods == {"fit": "Method", "_fit": "One"}
    assert found.summary == "Do one thing."


def test_of_two_parents_the_one_that_overrides_counts_as_in_python(monkeypatch):
    text = """
class Spec:
    rgb: ClassVar[bool] = False
    def needs(self): ...
class Planted(Spec):
    seed: int = 0
class Images(Spec):
    rgb: ClassVar[bool] = True
    def needs(self): ...
class Both(Planted, Images):
    "Both."
"""
    source(monkeypatch, sets=text)
    found = outline.outline("unspur.sets", "Both")
    scope = {}
    exec("from typing import ClassVar" + text, scope)  # what Python makes of the same lines
    assert found.constants["rgb"] is scope["Both"].rgb is True
    assert found.methods["needs"] == "Images" and scope["Both"].needs is scope["Images"].needs


@pytest.mark.parametrize(
    "lines",
    [
        "from unspur.one import One\nALL: dict[str, type] = {'one': One}",
        "ALL = {'one': 'unspur.one:One'}",
        "from unspur.one import One\n_OWN = (One,)\nALL = {cls.name: cls for cls in _OWN}",
        "from unspur.one import One\nALL = {cls.name: cls for cls in (One,)}",
    ],
)
def test_a_catalogue_may_be_written_in_any_of_these_ways(monkeypatch, lines):
    source(monkeypatch, base=BASE, one=ONE, catalog=lines)
    found = catalogue("unspur.catalog", "ALL")
    assert list(found) == ["one"] and found["one"].name == "One"


def test_reading_imports_nothing_of_what_it_reads():
    code = (
        "import sys; from unspur.core.outline import catalogue; catalogue('unspur.methods.catalog', 'METHODS'); "
        "sys.exit('torch' in sys.modules or 'unspur.methods.erm' in sys.modules)"
    )
    root = Path(outline.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(root)}, check=False).returncode == 0
