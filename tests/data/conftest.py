import pytest

from data.photos import SIZE, photo
from unspur.data.images.cache import Cache


@pytest.fixture(autouse=True)
def nothing_but_the_test(tmp_path, monkeypatch):
    """An empty cache, no data directory, no way out through a proxy, no npm."""
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNSPUR_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("unspur.data.files.download.which", lambda name: None)


@pytest.fixture
def root(tmp_path):
    """A folder of 40 pictures, each of another colour."""
    for number in range(40):
        photo(tmp_path / "root" / f"{number:02}.png")
    return tmp_path / "root"


@pytest.fixture
def cache(tmp_path, root):
    """A cache for these."""
    return Cache(tmp_path / "cache", root, SIZE, "stretch")
