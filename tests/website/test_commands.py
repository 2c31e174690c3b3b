"""Commands that pages show are right down to their settings: keys, names and values, without a training."""

import itertools
import re
import shlex

import pytest

from unspur.data.catalog import DATASETS
from unspur.methods.catalog import METHODS
from unspur.runs.config import configure
from website.scripts import ROOT, script

PAGES = sorted({*script("site_pages").PAGES.values(), "README.md"})
COMMAND = re.compile(r"^(?:    )?unspur (train|sweep|probe) (\S+) (\S+)(.*)$", re.MULTILINE)


def shown() -> list[tuple[str, str, str, str]]:
    """Page, method, data set and all options of every training that a page shows with real names."""
    found = []
    for page in PAGES:
        for _, method, dataset, rest in COMMAND.findall((ROOT / page).read_text(encoding="utf-8")):
            if method in METHODS and dataset in DATASETS:
                found.append((page, method, dataset, rest.split("  #")[0]))
    return found


def settings(options: str) -> tuple[str | None, list[str]]:
    """The architecture, and every KEY=VALUE of --set and the first value of every --grid."""
    words = shlex.split(options)
    pairs = list(itertools.pairwise(words))
    arch = next((value for name, value in pairs if name == "--arch"), None)
    fixed = [value for name, value in pairs if name == "--set"]
    grid = [value.split(",")[0].split("..")[0] for name, value in pairs if name == "--grid"]
    return arch, fixed + grid


@pytest.mark.parametrize(("page", "method", "dataset", "options"), shown())
def test_a_training_that_a_page_shows_can_be_configured(page, method, dataset, options, tmp_path):
    arch, keys = settings(options)
    keys = [key for key in keys if not key.startswith("audit=")]  # an audit is read when it is configured
    config = configure(method, dataset, arch, 0, keys, lambda sentence: None)
    assert config.method.name == method


def test_there_are_such_commands():
    assert len(shown()) >= 10
