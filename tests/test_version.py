"""The version, and the commit of a checkout."""

import re
import subprocess

import pytest

from unspur import version


@pytest.fixture
def git(monkeypatch):
    """Let git answer with a text, or fail."""

    def answer(text):
        def run(command, **more):
            if text is None:
                raise subprocess.CalledProcessError(128, command)
            return subprocess.CompletedProcess(command, 0, stdout=text)

        monkeypatch.setattr(subprocess, "run", run)
        version.commit.cache_clear()

    yield answer
    version.commit.cache_clear()


def test_the_version_is_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.__version__)


def test_the_commit_is_marked_where_files_differ_from_it(git):
    git("0123456789ab-dirty\n")
    assert version.commit() == "0123456789ab-dirty"


def test_outside_a_checkout_there_is_no_commit(git):
    git(None)
    assert version.commit() is None
