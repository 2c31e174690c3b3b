"""The page about a repair: everything as words and pictures, and names that cannot break it."""

import torch

from report.examples import HOSTILE
from unspur.report.page import render
from unspur.report.repair_context import PictureRow, RelianceRow, RepairContext, ScoreRow, TriedRow
from unspur.report.repair_page import page_of
from unspur.report.scores import Share

IMAGE, MAP = torch.full((3, 32, 32), 90, dtype=torch.uint8), torch.rand(8, 8)


def context(repaired=True):
    picture = PictureRow(IMAGE, IMAGE, MAP, MAP, HOSTILE[0], "dog", "dog", HOSTILE[0])
    tried = TriedRow("swap", "chosen", True, 0.91, 0.97, "+40.0 ± 2.0", "-0.2 ± 0.3", 61.0, "unspur train swap folder")
    failed = TriedRow("dcwp", "failed: no layer", False, None, None, None, None, 0.0, "unspur train dcwp folder")
    return RepairContext(
        name=HOSTILE[0],
        sentence="Repaired by swap." if repaired else "Nothing here is reliably better; your model is kept.",
        repaired=repaired,
        finding="The model leans on a mark.",
        facts=(("took", "3 min"),),
        next=("unspur predict RUN IMAGES", "unspur export RUN --out DIR"),
        result="swap",
        scores=(ScoreRow("images as they are", Share(0.98, 0.97, 0.99, 500), Share(0.97) if repaired else None),),
        classes=(ScoreRow(HOSTILE[0], Share(0.9), None),),
        classes_swapped=(ScoreRow("dog", Share(0.3), Share(0.9)),),
        reliance=(RelianceRow("a mark", 0.8, Share(0.01, -0.01, 0.03)), RelianceRow("noise", None, None)),
        second="leaks" if repaired else None,
        tried=(tried, failed),
        explained="A map shows something.",
        pictures=(picture,) if repaired else (),
        notes=("One note.",),
    )


def test_the_page_shows_scores_pictures_candidates_and_commands():
    text, failed = render(page_of(context()))
    assert not failed
    for words in (
        "Repaired by swap.",
        "98.0\N{NO-BREAK SPACE}%",
        "+40.0 ± 2.0",
        "failed: no layer",
        "unspur train dcwp folder",
    ):
        assert words in text, words
    assert text.count("data:image") >= 4 and "One note." in text and "second audit" in text


def test_a_model_that_was_kept_has_no_pictures_and_says_why():
    text, failed = render(page_of(context(repaired=False)))
    assert not failed and "your model is kept" in text and "The same images" not in text


def test_names_are_shown_and_not_run():
    text = render(page_of(context())).text
    assert HOSTILE[0] not in text and "&lt;script&gt;alert(1)" in text
