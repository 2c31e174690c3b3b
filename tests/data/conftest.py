import pytest


@pytest.fixture(autouse=True)
def nothing_but_the_test(tmp_path, monkeypatch):
    """An empty cache, no data directory, no way out through a proxy, no npm."""
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNSPUR_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("unspur.data.files.download.which", lambda name: None)
