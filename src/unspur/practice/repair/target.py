"""What `unspur repair` was pointed at: images, a run, or an audit of either."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import user_path
from unspur.data.base import Dataset
from unspur.data.catalog import DATASETS
from unspur.data.files.fetch import DataFiles
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError, require
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.findings import AuditJSON
from unspur.practice.audit.sources import run_source, source_of, train_words
from unspur.practice.audit.stored import CONFIG, SUSPECTS, config_of, read_config, stored
from unspur.practice.audit.target import data_named
from unspur.runs.config import configure_data
from unspur.runs.folder import Run


class RepairTarget(NamedTuple):
    """Images to train on, the model to repair, and what is known about both."""

    name: str  # of the repair's folder
    data: DataSpec
    settings: tuple[str, ...]  # of the data, that the user gave
    run: Path | None  # the user's model; None: plain training is the baseline
    audit: Path | None  # None: it is made

    @property
    def words(self) -> str:
        """The data in the words of `unspur train`."""
        return train_words(self.data)


def repair_target(what: str, settings: Sequence[str] = (), data_dir: Path | None = None) -> RepairTarget:
    """What ``what`` names; the name of a data set takes precedence over a folder."""
    path = user_path(what)
    if what in DATASETS or not (path / CONFIG).exists():
        name, spec = data_named(what, settings)
        return RepairTarget(name, spec, tuple(settings), None, None)
    require(not settings, f"{what} has its own data; leave --set out, or name the images instead.")
    if not (path / SUSPECTS).exists():
        run = Run.open(path)
        run.finished()
        return RepairTarget(path.resolve().name, run.config.data, (), path, None)
    return _audited(path, stored(path), data_dir)


def _audited(folder: Path, found: AuditJSON, data_dir: Path | None) -> RepairTarget:
    """The images of an audit, which must not have changed since."""
    try:
        data, *rest = shlex.split(found["target"])
    except ValueError:  # open quotes, or nothing at all
        raise UnspurError(f"{folder} does not say what was audited; audit the images again.") from None
    spec = configure_data(data, [word for word in rest if word != "--set"])
    run = None if found["run"] is None else Path(found["run"])
    require(
        run is None or (run / CONFIG).exists(),
        f"{folder} is an audit of the run {run}, which is not there; put it back, or repair the images themselves.",
    )
    config = read_config(folder)
    source = run_source(run, data_dir).source if run else source_of(spec, data_dir)
    now = config_of(source, Settings(seed=int(config["settings"].get("seed", 0))), None)
    require(
        now["content"] == config["content"],
        f"{folder} is an audit of other images than {found['target']} has now; audit these again.",
    )
    return RepairTarget(folder.resolve().name, spec, (), run, folder)


def unchanged(target: RepairTarget, files: DataFiles) -> Dataset:
    """The data, after checking that a run's images are what it was trained on."""
    data = target.data.load(files)
    if target.run:
        Run.open(target.run).require_unchanged(data)
    require(
        len(data.val) > 0,
        "A repair is chosen on validation images, and there are none; hold some out (--set data.val=0.1).",
    )
    return data
