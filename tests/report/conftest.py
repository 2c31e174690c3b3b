from pathlib import Path

import pytest

from report.examples import config, run_in, tiny
from unspur.data.catalog import dataset_named


@pytest.fixture
def tiny_data(monkeypatch):
    """biased_mnist is the small example for as long as a test lasts."""
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: tiny())


@pytest.fixture
def tiny_run(tiny_data, tmp_path) -> Path:
    return run_in(tmp_path / "runs", config())
