"""Two tiny runs on pictures, one of them with a model before the repair, made once for all tests."""

import numpy as np
import pytest
from PIL import Image

from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run

SIDE = 16
ODD = '=cat, "big"\nor small'  # a class that a careless CSV breaks on: formula sign, comma, quotes, newline
DOG = "dog"


def picture(label: int, number: int) -> np.ndarray:
    """Noise, brighter above for one class and brighter below for the other."""
    generator = np.random.default_rng((label, number))
    pixels = generator.integers(0, 160, (SIDE, SIDE, 3), dtype=np.uint8)
    half = slice(0, SIDE // 2) if label else slice(SIDE // 2, None)
    pixels[half] += np.uint8(generator.integers(15, 95))
    return pixels


def save(path, label: int, number: int):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(label, number)).save(path)
    return path


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSPUR_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("UNSPUR_DATA", raising=False)
        yield


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for label, name in enumerate((ODD, DOG)):
        for number in range(60):
            save(root / name / f"{number:03}.png", label, number)
    return root


def trained(method, photos, out, *settings):
    config = configure(
        method,
        "folder",
        "cnn3",
        0,
        [f"data.root={photos}", f"data.size={SIDE}", "data.val=0.5", "erm.epochs=2", "erm.batch_size=16", *settings],
    )
    run(config, out)
    return Run.create(out, config).folder


@pytest.fixture(scope="session")
def plain_run(photos, tmp_path_factory):
    return trained("erm", photos, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def repaired_run(photos, tmp_path_factory):
    return trained("masktune", photos, tmp_path_factory.mktemp("runs"), "finetune_lr=0.1", "saliency=gradient")


@pytest.fixture(scope="session")
def new_photos(tmp_path_factory):
    """Twelve new pictures in two folders, a file that is no image and an empty one."""
    root = tmp_path_factory.mktemp("new")
    for number in range(12):
        save(root / ("a" if number < 6 else "b") / f"{number:02}.png", number % 2, 100 + number)
    (root / "a" / "broken.jpg").write_bytes(b"nothing")
    (root / "b" / "empty.png").write_bytes(b"")
    (root / "readme.txt").write_text("no image\n")
    return root
