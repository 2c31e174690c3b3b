"""repair(...): from an audit's finding to a model that no longer needs the shortcut, or else back to your own model."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from unspur.core.progress import Progress, duration, silent
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.errors import RunFailed, UnspurError
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.findings import AuditJSON
from unspur.practice.audit.stored import StoredAudit, audit_into, stored
from unspur.practice.audit.target import target_named
from unspur.practice.repair.budget import Budget, OutOfTime
from unspur.practice.repair.candidates import (
    ALL_LAYERS,
    THOROUGH,
    Candidate,
    candidates,
    plain_training,
    require_known,
    require_one_fits,
    require_trainable,
)
from unspur.practice.repair.choice import judge
from unspur.practice.repair.labelled_groups import validation_labels
from unspur.practice.repair.outcome import conclude, has_moving_mark, keep, reliance_change
from unspur.practice.repair.page import Shown, write_repair_page
from unspur.practice.repair.scoring import Referee, groups_for
from unspur.practice.repair.state import (
    AUDITS,
    PAGE,
    RUNS,
    RepairJSON,
    TriedJSON,
    alone,
    new_state,
    read_state,
    write_state,
)
from unspur.practice.repair.target import RepairTarget, unchanged
from unspur.runs.defaults import SetSize, given_keys
from unspur.runs.estimate import prepared
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.train_command import train_command
from unspur.version import __version__

MARGIN = 0.01  # the largest loss on ordinary images that a repair may risk
Say = Callable[[str], None]


@dataclass(frozen=True)
class RepairSettings:
    """How a repair goes about it."""

    budget: float = 1200.0  # seconds, in all
    methods: tuple[str, ...] = ()  # what to try; none: what the tables expect most of
    groups: Path | None = None  # groups.csv of an audit's page
    margin: float = MARGIN
    seed: int = 0
    preset: str = "usual"  # or thorough: swap trains all layers of a pretrained network, too

    def __post_init__(self) -> None:
        require_known(self.methods, self.preset)


def repair(
    target: RepairTarget,
    out: Path,
    *,
    settings: RepairSettings = RepairSettings(),  # noqa: B008 (frozen)
    data_dir: Path | None = None,
    progress: Progress = silent,
    say: Say = lambda sentence: None,
) -> tuple[Path, RepairJSON]:
    """Repair what ``target`` names, in its own folder below ``out``; a repair that was stopped is resumed."""
    files = DataFiles(data_dir)
    data = unchanged(target, files)
    some = settings.groups is not None and isinstance(target.data, Folder)
    require_trainable(settings.methods, groups=bool(data.train.attributes), some=some)
    labelled = validation_labels(settings.groups, target.data, data, files) if settings.groups else None
    folder = out / f"{target.name}-{_key(target, data, settings.seed)}"
    state = read_state(folder) or new_state(target.words, settings.seed, settings.margin)
    budget = Budget(settings.budget, state["seconds"])
    work = _Repair(target, settings, folder, data, labelled, files, data_dir, budget, progress, say, state)
    with alone(folder):
        work.go()
    return folder, work.state


def _key(target: RepairTarget, data: Dataset, seed: int) -> str:
    """What defines a repair. Methods and budget do not, so a repair can be continued with more of either.

    Runs and audits count by the keys in their names, since their location may change.
    """
    given = [path.resolve().name if path else None for path in (target.run, target.audit)]
    parts = [target.words, data.content, *given, seed, __version__]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


@dataclass
class _Repair:
    target: RepairTarget
    settings: RepairSettings
    folder: Path
    data: Dataset
    labelled: Tensor | None  # groups of validation images that the user gave
    files: DataFiles
    data_dir: Path | None
    budget: Budget
    progress: Progress
    say: Say
    state: RepairJSON

    def go(self) -> None:
        """Do every step, except those that an earlier command has already done."""
        base = self._baseline()
        audited = self._audit(base)
        found = audited.findings
        self.state |= {"cues": found["cues"], "verdict": found["verdict"], "finding": found["sentence"]}
        self.state |= {"audit": str(audited.folder), "margin": self.settings.margin}
        self._save()
        if not found["cues"] and not self.settings.methods:
            keep(self.state, "The audit found nothing that can be swapped between images; your model is kept.")
            return self._finish(None)
        referee = self._referee(base, found)
        self._baseline_scores(base, referee)
        for each in self._candidates(base):
            self._try(each, referee)
        chosen = self._choose(base, referee)
        if chosen is not None:
            self._audit_again(chosen, found)
        self._finish(Shown(referee, base, chosen))

    @property
    def size(self) -> SetSize:
        return SetSize(len(self.data.train), len(self.data.classes))

    def _save(self) -> None:
        self.state["seconds"] = round(self.budget.spent, 1)
        write_state(self.folder, self.state)

    def _baseline(self) -> Run:
        """The user's run, or plain training."""
        base = Run.open(self.target.run) if self.target.run else self._train_plainly()
        result = base.finished()
        self.state["baseline"] = {
            "run": str(base.folder),
            "yours": self.target.run is not None,
            "command": train_command(base.config, self.size),
            "seconds": result["seconds"],
            "scores": None,
        }
        self._save()
        return base

    def _train_plainly(self) -> Run:
        plain = plain_training(self.target.data, self.settings.seed)
        given = given_keys(plain.method, plain.arch.name, self.target.settings)
        config = prepared(plain, given, self.files, self.say)
        show = self.budget.shown_by(self.progress, "baseline")
        result = run(config, self.folder / RUNS, files=self.files, resume=True, progress=show, say=self.say)
        if result["status"] != "done":
            raise RunFailed(f"Plain training did not end ({result.get('reason')}), so that there is nothing to repair.")
        return Run.create(self.folder / RUNS, config)

    def _audit(self, base: Run) -> StoredAudit:
        """The given audit, or one of the baseline with its own images."""
        if self.target.audit is not None:
            return StoredAudit(self.target.audit, stored(self.target.audit), True)
        return self._audited(base, Settings(seed=self.settings.seed))

    def _audited(self, of: Run, settings: Settings) -> StoredAudit:
        found = target_named(str(of.folder), (), self.data_dir)
        return audit_into(
            self.folder / AUDITS,
            found.name,
            found.source,
            target=found.words,
            model=found.model,
            settings=settings,
            progress=self.budget.shown_by(self.progress, "audit"),
        )

    def _referee(self, base: Run, found: AuditJSON) -> Referee:
        kind, group = groups_for(base.load_model(self.data), self.data, found["cues"], self.labelled)
        self.state |= {"evidence": kind, "images": int((group >= 0).sum())}
        leak = found["verdict"] in ("leaks", "leans")
        return Referee(self.folder, self.data, tuple(found["cues"]), kind, group, leak, self.settings.seed)

    def _baseline_scores(self, base: Run, referee: Referee) -> None:
        show = self.budget.shown_by(self.progress, "baseline")
        assert self.state["baseline"] is not None
        self.state["baseline"]["scores"] = referee.json(referee.evidence(base, show))
        self._save()

    def _candidates(self, base: Run) -> list[Candidate]:
        seconds, groups = base.finished()["seconds"], bool(self.data.train.attributes)
        config = replace(base.config, seed=self.settings.seed)
        own, cues = self.settings, self.state["cues"]
        found = candidates(
            config, cues, self.size, seconds, own.methods, groups=groups, ticked=own.groups, preset=own.preset
        )
        if own.preset == THOROUGH and ALL_LAYERS not in [each.name for each in found]:
            self.say("Without a pretrained network and a cue the preset thorough tries no more than the usual one.")
        begun = [each for each in found if Run.create(self.folder / RUNS, each.config).result() is not None]
        if not begun:  # candidates of an earlier command take less time, or none
            require_one_fits(found, self.budget.left)
        return found

    def _try(self, each: Candidate, referee: Referee) -> None:
        """Try one candidate, from its run to its scores; if it fails, the reason is recorded and the rest goes on."""
        row: TriedJSON = {
            "name": each.name,
            "status": "done",
            "reason": None,
            "run": str(Run.create(self.folder / RUNS, each.config).folder),
            "command": train_command(each.config, self.size),
            "seconds": 0.0,
            "expected_seconds": round(each.seconds, 1),
            "scores": None,
            "gain": None,
            "ordinary": None,
        }
        show = self.budget.shown_by(self.progress, each.name)
        stored_run = Run.create(self.folder / RUNS, each.config)
        if stored_run.result() is None and each.seconds > self.budget.left:
            row |= {"status": "does not fit", "run": None}
            row["reason"] = f"It takes about {duration(each.seconds)}, and {duration(self.budget.left)} were left."
            return self._note(row)
        try:
            result = run(each.config, self.folder / RUNS, files=self.files, resume=True, progress=show, say=self.say)
            row |= {"status": result["status"], "seconds": result["seconds"], "reason": result.get("reason")}
            if result["status"] == "done":
                row["scores"] = referee.json(referee.evidence(stored_run, show))
        except RunFailed as error:
            late = isinstance(error, OutOfTime) or isinstance(error.__cause__, OutOfTime)
            row |= {"status": "out of time" if late else "failed", "reason": str(error)}
        except UnspurError as error:  # such as a network without a layer that is a map
            row |= {"status": "failed", "reason": str(error), "run": None}
        self._note(row)

    def _note(self, row: TriedJSON) -> None:
        self.state["tried"] = [old for old in self.state["tried"] if old["name"] != row["name"]] + [row]
        self._save()

    def _choose(self, base: Run, referee: Referee) -> Run | None:
        """The best harmless candidate, including those of earlier commands; None: the baseline."""
        tried = [row for row in self.state["tried"] if row["status"] == "done" and row["run"]]
        runs = [Run.open(Path(str(row["run"]))) for row in tried]
        scores = [referee.scores(referee.evidence(each, silent)) for each in (base, *runs)]
        found = judge(
            scores[0],
            scores[1:],
            evidence_group=referee.group,
            ordinary_group=referee.by_label,
            margin=self.settings.margin,
            seed=self.settings.seed,
        )
        conclude(self.state, dict(zip([row["name"] for row in tried], found, strict=True)))
        self._save()
        chosen = [each for each, judgement in zip(runs, found, strict=True) if judgement.reason == "chosen"]
        return chosen[0] if chosen else None

    def _audit_again(self, chosen: Run, before: AuditJSON) -> None:
        """Audit the result as the baseline was audited; moving marks are searched for only if there was one."""
        try:
            after = self._audited(chosen, Settings(seed=self.settings.seed, local=has_moving_mark(before)))
        except OutOfTime:
            self.state["notes"] = [
                "The budget ended before the second audit; the same command with more of it makes it."
            ]
            return
        self.state["notes"] = []
        self.state |= {"second_audit": str(after.folder), "second_verdict": after.findings["verdict"]}
        self.state["reliance"] = reliance_change(before, after.findings)

    def _finish(self, shown: Shown | None) -> None:
        run_folder = self.state["run"] or (self.state["baseline"] or {"run": ""})["run"]
        quoted = shlex.quote(run_folder)
        self.state |= {
            "run": run_folder,
            "next": [f"unspur predict {quoted} IMAGES", f"unspur export {quoted} --out DIR"],
        }
        write_repair_page(self.folder / PAGE, self.target.name, self.state, shown)
        self._save()
