"""A mark that shows in several tests is one leak; another leak beside it stays one."""

import numpy as np
import pytest

from practice.audit.pictures import write_set
from unspur.data.images.listing import list_folder
from unspur.practice.audit.collect import collect
from unspur.practice.audit.data_findings import data_findings
from unspur.practice.audit.image_source import listed


def square(pixels, value):
    """A chequered square in the upper left corner of value 1: lines, at fixed pixels, and nowhere else."""
    if value:
        pixels[:8, :8] = np.where(np.indices((8, 8)).sum(0) % 2, 255, 0)[..., None]
    return pixels


def anywhere(pixels, value):
    """The same square, at a place that the picture itself says."""
    if value:
        row, column = (int(each) % 24 for each in pixels[5, 5, :2])
        pixels[row : row + 8, column : column + 8] = square(pixels[:8, :8].copy(), 1)
    return pixels


def grainy(pixels, value):
    """Noise in all of the image of value 1."""
    grain = np.random.default_rng(int(pixels.sum())).normal(0, 25 * value, pixels.shape)
    return (pixels + grain).clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Families of leaks, and what is said of the others, by what is planted."""

    def look(*changes):
        def change(pixels, value):
            for each in changes:
                pixels = each(pixels, value)
            return pixels

        root = write_set(tmp_path_factory.mktemp("set") / "set", each=240, change=change, conflict=0.05)
        return {each.family: each for each in data_findings(collect(listed(list_folder(root)))).findings}

    return look


def leaks(findings):
    return {family for family, each in findings.items() if each.grade == "leaks"}


def test_a_square_is_one_leak_however_many_tests_it_shows_in(found):
    findings = found(square)
    assert leaks(findings) <= {"place", "pattern"}
    assert "explained by" in findings["moving"].what and findings["moving"].tells_label > 0.9


def test_another_leak_beside_a_mark_stays_one_even_if_both_always_come_together(found):
    findings = found(square, grainy)
    assert {"pattern", "noise"} <= leaks(findings)
    assert "explained by" in findings["moving"].what


def test_a_mark_that_moves_is_not_explained_by_itself(found):
    assert "moving" in leaks(found(anywhere))
