"""Units that say when to abstain, from training to a stored run's evaluation."""

import pytest

from unspur.evaluation.abstention import LEARNED
from unspur.parts.abstaining import Selector
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.scoring import learned_selector, score_run


@pytest.mark.parametrize(("method", "kind"), [("selectivenet", "selection"), ("deep_gamblers", "reservation")])
def test_a_stored_run_is_evaluated_by_what_it_learnt(tmp_path, method, kind):
    settings = ["data.train=300", "data.val=100", "data.test=100", "training.epochs=2", "arch.width=16"]
    run(configure(method, "parity", settings=settings), tmp_path)
    (folder,) = tmp_path.glob(f"{method}-*")
    scores = score_run(folder, None, (), None, coverage=0.8)["selective"]["unbiased"]
    assert set(scores) == {"product", "softmax_response", "agreement", LEARNED}
    assert scores[LEARNED]["n"] == 100 and sum(group["n"] for group in scores[LEARNED]["groups"]) == 100
    stored = learned_selector(Run.open(folder))
    assert isinstance(stored, Selector) and stored.kind == kind
