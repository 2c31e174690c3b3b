import pytest

from data.photos import SIZE, photo
from unspur.data.images.cache import Cache


@pytest.fixture
def root(tmp_path):
    for number in range(40):
        photo(tmp_path / "root" / f"{number:02}.png")
    return tmp_path / "root"


@pytest.fixture
def cache(tmp_path, root):
    return Cache(tmp_path / "cache", root, SIZE, "stretch")
