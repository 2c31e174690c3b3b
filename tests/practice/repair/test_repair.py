"""A repair from a run to a page: chosen without harm, stopped and gone on with, and nothing lost."""

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from practice.repair.tagged import tagged, trained
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.synthetic import MoonStar
from unspur.errors import RunFailed, UnspurError
from unspur.parts import balanced_heads
from unspur.parts.logistic import fit_heads
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.stored import StoredAudit, stored
from unspur.practice.repair import repair as repair_module
from unspur.practice.repair.budget import Budget, OutOfTime
from unspur.practice.repair.outcome import conclude, has_moving_mark, keep
from unspur.practice.repair.repair import RepairSettings, repair
from unspur.practice.repair.state import PAGE, REPAIR, read_state
from unspur.practice.repair.target import RepairTarget, repair_target
from unspur.runs.defaults import SCRATCH

SWAP = RepairSettings(methods=("swap",))


@pytest.fixture(autouse=True, scope="module")
def few_steps():
    """Candidates that take a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unspur.runs.defaults.SCRATCH", SCRATCH._replace(steps=50, epochs=(3, 10)))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of images and a run on it."""
    place = tmp_path_factory.mktemp("repair")
    tagged(place / "set")
    trained(place / "set", place / "runs")
    return place


@pytest.fixture(scope="module")
def done(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair_module, "Settings", lambda **given: Settings(**{**given, "local": False}))
        return repair(repair_target(str(own_run(place))), place / "repairs", settings=SWAP)


@pytest.fixture
def audited(done, monkeypatch):
    """No audit is made again: all are what the first one found. Returns that."""
    first = Path(done[1]["audit"])
    made = StoredAudit(first, stored(first), True)
    monkeypatch.setattr(repair_module, "audit_into", lambda *rest, **more: made)
    return made


def own_run(place: Path) -> Path:
    return next((place / "runs").iterdir())


def test_the_mark_is_found_swapped_and_no_longer_followed(done):
    state = done[1]
    assert state["verdict"] == "leans" and state["cues"][0].startswith("cells:8x8:")
    assert state["chosen"] == "swap" and state["run"] == state["tried"][0]["run"]
    before, after = state["baseline"]["scores"], state["tried"][0]["scores"]
    assert after["swapped"] > before["swapped"] + 0.3 and state["tried"][0]["gain"]["p"] < 0.05
    assert state["reliance"][0]["before"] > 0.3 > state["reliance"][0]["after"]
    assert state["sentence"].startswith("Repaired by swap: +")


def test_the_page_shows_before_and_after_and_the_next_command(done):
    folder, state = done
    page = (folder / PAGE).read_text(encoding="utf-8")
    assert "could not be made" not in page and "Repaired by swap" in page
    for text in (
        "Before and after",
        "The same images, before and after",
        "What was tried",
        "unspur predict",
        "your run",
    ):
        assert text in page, text
    assert state["next"] == [f"unspur predict {state['run']} IMAGES", f"unspur export {state['run']} --out DIR"]


def test_the_pages_pictures_have_the_cues_of_other_classes(done):
    page = (done[0] / PAGE).read_text(encoding="utf-8")
    labels = re.findall(r"<figcaption>(\w+) with the cue of (\w+):", page)
    assert len(labels) > 3 and all(own != cue for own, cue in labels)


def test_a_repair_that_has_ended_is_read_and_nothing_is_done_again(place, done, monkeypatch):
    def never(model, *rest):
        raise AssertionError("a model was asked again")

    monkeypatch.setattr("unspur.practice.repair.scoring.evidence_of", never)
    monkeypatch.setattr(repair_module, "Settings", lambda **given: Settings(**{**given, "local": False}))
    said, thorough = [], replace(SWAP, preset="thorough")
    folder, state = repair(repair_target(str(own_run(place))), place / "repairs", settings=thorough, say=said.append)
    first = dict(done[1])
    assert folder == done[0]
    assert said == ["Without a pretrained network and a cue the preset thorough tries no more than the usual one."]
    assert {**state, "seconds": 0, "tried": []} == {**first, "seconds": 0, "tried": []}


def test_a_method_that_fails_is_written_down_and_the_rest_goes_on(place, audited, monkeypatch, tmp_path):
    real = repair_module.run

    def fails(config, *rest, **more):
        if config.method.name == "jtt":
            raise RunFailed("The run stopped on an error in the program.")
        return real(config, *rest, **more)

    monkeypatch.setattr(repair_module, "run", fails)
    both = replace(SWAP, methods=("jtt", "swap"))
    _, state = repair(repair_target(str(own_run(place))), tmp_path, settings=both)
    rows = {row["name"]: row for row in state["tried"]}
    assert rows["jtt"]["status"] == "failed" and "error in the program" in rows["jtt"]["reason"]
    assert state["chosen"] == "swap"


def test_a_moving_mark_is_one_of_no_fixed_place_that_gives_labels_away(audited):
    mark = audited.findings["findings"][0]
    assert mark["kind"] == "place" and mark["grade"] == "leaks" and mark["where"]
    kinds = [{}, {"where": None}, {"where": None, "grade": "context"}, {"where": None, "kind": "image"}]
    found = [has_moving_mark({**audited.findings, "findings": [mark | change]}) for change in kinds]
    assert found == [False, True, False, False]


class Stop(BaseException):
    """As Ctrl-C is: nothing catches it."""


def test_a_repair_that_is_stopped_goes_on_where_it_was(place, audited, tmp_path):
    target = repair_target(str(own_run(place)))

    def stop(stage, done):
        if stage.startswith("swap, training"):
            raise Stop

    with pytest.raises(Stop):
        repair(target, tmp_path, settings=SWAP, progress=stop)
    state = read_state(next(tmp_path.iterdir()))
    assert state["baseline"]["scores"] and state["sentence"] is None
    _, after = repair(target, tmp_path, settings=SWAP)
    assert after["chosen"] == "swap" and after["audit"] == state["audit"]


def test_a_repair_that_is_killed_leaves_a_whole_state(audited, tmp_path):
    code = (
        "import sys; from pathlib import Path; from unspur.practice.repair.repair import *; "
        "from unspur.practice.repair.target import RepairTarget, repair_target; "
        "repair(repair_target(sys.argv[1]), Path(sys.argv[2]), settings=RepairSettings(methods=('swap',)))"
    )
    source = Path(repair_module.__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code, str(audited.folder), str(tmp_path)], env=environment)
    until = time.monotonic() + 120
    while not list(tmp_path.glob(f"*/{REPAIR}")) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = next(tmp_path.iterdir())
    assert json.loads((folder / REPAIR).read_text())["baseline"]["yours"]
    _, state = repair(repair_target(str(audited.folder)), tmp_path, settings=SWAP)
    assert state["chosen"] == "swap" and not list(folder.rglob(".partial-*"))


def test_where_the_audit_finds_nothing_to_swap_the_model_is_kept(place, audited, tmp_path, monkeypatch):
    clean = audited._replace(findings={**audited.findings, "verdict": "clean", "cues": []})
    monkeypatch.setattr(repair_module, "audit_into", lambda *rest, **more: clean)
    state = repair(repair_target(str(own_run(place))), tmp_path, settings=RepairSettings())[1]
    assert state["chosen"] is None and state["run"] == str(own_run(place)) and not state["tried"]
    assert "your model is kept" in state["sentence"] and "kept" in (next(tmp_path.iterdir()) / PAGE).read_text()


def test_without_cues_named_methods_are_judged_by_mined_images(place, audited, tmp_path, monkeypatch):
    clean = audited._replace(findings={**audited.findings, "verdict": "clean", "cues": []})
    monkeypatch.setattr(repair_module, "audit_into", lambda *rest, **more: clean)
    state = repair(repair_target(str(own_run(place))), tmp_path, settings=SWAP)[1]
    assert state["evidence"] in ("mined", "classes") and state["tried"][0]["scores"]["swapped"] is None


def test_a_budget_too_small_for_what_is_left_names_what_would_fit(place, audited, done, monkeypatch):
    monkeypatch.setattr("unspur.practice.repair.candidates.estimated", lambda config, size: 3600.0)
    settings = replace(SWAP, methods=("masktune",), budget=done[1]["seconds"] + 60)
    with pytest.raises(UnspurError, match="too small for any candidate: masktune takes about"):
        repair(repair_target(str(own_run(place))), done[0].parent, settings=settings)


def test_a_repair_that_has_ended_is_read_whatever_is_left_of_its_budget(place, audited, done):
    spent = replace(SWAP, budget=1.0)
    _, state = repair(repair_target(str(own_run(place))), done[0].parent, settings=spent)
    assert state["chosen"] == "swap" and state["sentence"] == done[1]["sentence"]


def test_a_budget_that_ends_in_the_audit_is_a_failure_and_no_mistake(place, tmp_path, monkeypatch):
    monkeypatch.setattr(repair_module, "Budget", lambda total, spent: Budget(total, total))  # used up
    with pytest.raises(RunFailed, match="The budget of 60 s ended; the same command with a larger --budget goes on"):
        repair(repair_target(str(own_run(place))), tmp_path, settings=replace(SWAP, budget=60.0))


def test_what_an_earlier_command_chose_and_audited_is_forgotten_with_its_choice(done):
    assert done[1]["run"] and done[1]["second_verdict"] and done[1]["reliance"]
    kept, nothing = copy.deepcopy(done[1]), copy.deepcopy(done[1])
    keep(kept, "Your model is kept.")
    conclude(nothing, {})  # no candidate is reliably better now
    for state in (kept, nothing):
        assert state["chosen"] is state["run"] is state["second_audit"] is state["second_verdict"] is None
        assert not state["reliance"] and not state["notes"]


def test_images_that_have_changed_are_another_repair(tmp_path):
    root = tagged(tmp_path / "set", each=30)
    target = repair_target(str(root), ["data.size=32", "data.val=0.35"])
    data = target.data.load(DataFiles())
    shutil.copy(next((root / "kind0").iterdir()), next((root / "kind1").iterdir()))
    changed = target.data.load(DataFiles())
    assert len(data.val) == len(changed.val)  # or evidence of other images would not even have the right size
    assert repair_module._key(target, data, 0) != repair_module._key(target, changed, 0)


def test_a_run_that_lies_elsewhere_is_the_same_repair(tmp_path):
    data = MoonStar(train=8, val=8, test=8).load(DataFiles())
    here, there = (RepairTarget("run", MoonStar(), (), tmp_path / place / "erm-0123abcd", None) for place in "ab")
    other = here._replace(run=tmp_path / "a" / "erm-4567cdef")
    keys = [repair_module._key(target, data, 0) for target in (here, there, other)]
    assert keys[0] == keys[1] != keys[2]


def test_groups_that_a_user_has_are_chosen_by(place, audited, tmp_path):
    rows = "".join(f"val/{number},x,{'kind0' if number % 2 else 'kind1'},person\n" for number in range(60))
    (tmp_path / "groups.csv").write_text(f"filename,label,cue,checked\n{rows}")
    labelled = replace(SWAP, groups=tmp_path / "groups.csv")
    _, state = repair(repair_target(str(own_run(place))), tmp_path / "repairs", settings=labelled)
    assert state["evidence"] == "groups" and 0 < state["images"] <= 60


def test_a_method_gets_the_groups_of_training_images_and_the_choice_those_of_validation_images(
    place, audited, tmp_path, monkeypatch
):
    # What a last layer ends with does not matter here: twenty steps a fit, not thousands.
    monkeypatch.setattr(balanced_heads, "fit_heads", lambda *given: fit_heads(*given[:-1], 20))
    images = {"train": range(0, 120, 2), "val": range(60)}  # of both classes, the first of which come first
    rows = "".join(f"{part}/{n},x,kind{n // 2 % 2},person\n" for part, numbers in images.items() for n in numbers)
    (tmp_path / "groups.csv").write_text(f"filename,label,cue,checked\n{rows}")
    labelled = replace(SWAP, groups=tmp_path / "groups.csv", methods=("dfr",))
    _, state = repair(repair_target(str(own_run(place))), tmp_path / "repairs", settings=labelled)
    (row,) = state["tried"]
    assert row["status"] == "done" and f"data.groups={tmp_path / 'groups.csv'}" in row["command"]
    assert (
        json.loads((Path(row["run"]) / "result.json").read_text())["sizes"]["val"] == 60
        and state["evidence"] == "groups"
    )


def test_divdis_gets_the_ticked_training_images_and_their_labels_choose_its_head(place, audited, tmp_path):
    rows = "".join(f"val/{n},x,kind{n // 2 % 2},audit\n" for n in range(60))
    rows += "".join(f"train/{n},x,kind1,{'person' if n % 12 == 0 else 'audit'}\n" for n in range(120))
    (tmp_path / "groups.csv").write_text(f"filename,label,cue,checked\n{rows}")
    labelled = replace(SWAP, groups=tmp_path / "groups.csv", methods=("divdis",))
    _, state = repair(repair_target(str(own_run(place))), tmp_path / "repairs", settings=labelled)
    (row,) = state["tried"]
    assert row["status"] == "done" and row["scores"] is not None, row["reason"]
    result = json.loads((Path(row["run"]) / "result.json").read_text())
    assert result["sizes"]["val"] == 10  # every twelfth of 120; the audit's estimates stay to train on
    right = result["facts"]["head_accuracies"]
    assert all(10 * share == pytest.approx(round(10 * share)) for share in right)  # of these 10 and no others
    assert right[result["facts"]["chosen_head"]] == max(right)


def test_a_run_whose_images_have_changed_is_refused(place, tmp_path):
    shutil.copytree(place / "set", tmp_path / "set")
    run = trained(tmp_path / "set", tmp_path / "runs")
    first = next((tmp_path / "set" / "kind0").iterdir())
    shutil.copy(next((tmp_path / "set" / "kind1").iterdir()), first)
    with pytest.raises(UnspurError, match="have changed since it was trained"):
        repair(repair_target(str(run)), tmp_path / "repairs", settings=SWAP)
    assert not (tmp_path / "repairs").exists()


def test_an_audit_is_gone_on_from_and_one_of_other_images_is_refused(place, done):
    state = done[1]
    audit = Path(state["audit"])
    target = repair_target(str(audit))
    assert target.audit == audit and target.run == own_run(place)
    found = json.loads((audit / "findings.json").read_text())
    config = json.loads((audit / "config.json").read_text())
    other = audit.parent / "other"
    shutil.copytree(audit, other)
    (other / "config.json").write_text(json.dumps({**config, "content": "0" * 32}))
    with pytest.raises(UnspurError, match=r"is an audit of other images than .* has now; audit these again"):
        repair_target(str(other))
    (other / "findings.json").write_text(json.dumps({key: found[key] for key in ("verdict", "sentence")}))
    with pytest.raises(UnspurError, match="audited by an older version"):
        repair_target(str(other))
    shutil.rmtree(other)


def test_settings_beside_a_run_are_refused(place):
    with pytest.raises(UnspurError, match="has its own data; leave --set out"):
        repair_target(str(own_run(place)), ["data.val=0.2"])


def test_without_validation_images_nothing_can_be_chosen(place, tmp_path):
    target = repair_target(str(place / "set"), ["data.val=0", "data.size=32"])
    with pytest.raises(UnspurError, match="there are none; hold some out"):
        repair(target, tmp_path, settings=SWAP)


def test_candidates_of_earlier_commands_stay_in_the_race(place, audited, done, tmp_path):
    shutil.copytree(done[0].parent, tmp_path / "repairs")
    target = repair_target(str(own_run(place)))
    _, state = repair(target, tmp_path / "repairs", settings=replace(SWAP, methods=("randmask",)))
    assert {row["name"] for row in state["tried"]} == {"swap", "randmask"} and state["chosen"] == "swap"


def test_a_budget_that_ends_before_the_second_audit_does_not_lose_the_choice(place, audited, tmp_path, monkeypatch):
    calls = []

    def second_is_late(*rest, **more):
        calls.append(1)
        if len(calls) > 1:
            raise OutOfTime("late")
        return audited

    monkeypatch.setattr(repair_module, "audit_into", second_is_late)
    _, state = repair(repair_target(str(own_run(place))), tmp_path, settings=SWAP)
    assert state["chosen"] == "swap" and "before the second audit" in state["notes"][0]
