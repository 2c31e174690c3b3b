"""The version, and the commit of a checkout."""

import re
import subprocess
from pathlib import Path

import pytest

from unspur import version


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of its own with a package and a result beside it."""
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    for file in (package / "version.py", tmp_path / "result.json"):
        file.write_text("1")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "begin"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(version, "__file__", str(package / "version.py"))
    version.commit.cache_clear()
    yield tmp_path
    version.commit.cache_clear()


def test_the_version_is_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.__version__)


def test_the_commit_of_an_unchanged_checkout_is_twelve_digits(checkout):
    assert re.fullmatch("[0-9a-f]{12}", version.commit())


@pytest.mark.parametrize("changed", ["version.py", "new.py"])
def test_the_commit_is_marked_where_the_package_differs_from_it(checkout, changed):
    (Path(version.__file__).parent / changed).write_text("2")
    assert re.fullmatch("[0-9a-f]{12}-dirty", version.commit())


def test_results_that_are_being_written_do_not_mark_it(checkout):
    (checkout / "result.json").write_text("2")
    assert version.commit().isalnum()


def test_outside_a_checkout_there_is_no_commit(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    (checkout / ".git").rename(checkout / "gone")
    assert version.commit() is None


def test_without_git_there_is_no_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    assert version.commit() is None


def test_a_package_installed_in_the_checkout_of_something_else_has_no_commit(checkout, monkeypatch):
    installed = checkout / ".venv" / "unspur"
    installed.mkdir(parents=True)
    (installed / "version.py").write_text("1")  # never added to that repository
    monkeypatch.setattr(version, "__file__", str(installed / "version.py"))
    assert version.commit() is None
