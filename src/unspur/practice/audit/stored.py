"""An audit's folder: reused if the audit has ended, resumed if it was interrupted (docs/audit.md)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple, TypedDict

from filelock import FileLock

from unspur.core.files import read_json, write_json
from unspur.core.progress import silent
from unspur.core.shapes import checked
from unspur.core.unfinished import remove_partial
from unspur.data.images.decode import Unreadable
from unspur.errors import UnspurError
from unspur.parts.cues.detector import SpeaksLoudest
from unspur.parts.cues.region import Region
from unspur.practice.audit.audit import Progress, Settings, examine
from unspur.practice.audit.collect import Collected, collect
from unspur.practice.audit.collected_file import read_collected, write_collected
from unspur.practice.audit.findings import Audit, AuditJSON, Finding, is_shortcut, write_suspects
from unspur.practice.audit.image_source import MOST_IMAGES, Source, sampled
from unspur.practice.audit.model import ModelToTest
from unspur.practice.audit.on_ray import files_of
from unspur.practice.audit.page import write_audit_page
from unspur.practice.audit.swappable import swappable
from unspur.practice.audit.verdict import REPAIR
from unspur.practice.engine import Engine
from unspur.version import __version__

CONFIG, FINDINGS, PAGE, SUSPECTS = "config.json", "findings.json", "audit.html", "suspects.csv"
LOCK = ".lock"
COLLECTED = "collected.safetensors"  # kept only until the audit has ended


class AuditConfig(TypedDict):
    """What was audited and how; its hash is the audit's key."""

    images: int
    classes: list[str]
    content: str  # a hash of every image's name, label and bytes
    model: str | None  # a hash of the model's weights; None: the audit's own
    side: int | None
    settings: dict[str, bool | int]
    version: str


class StoredAudit(NamedTuple):
    """An audit's folder and its findings.json."""

    folder: Path
    findings: AuditJSON
    found: bool  # whether it was there already

    @property
    def page(self) -> Path:
        return self.folder / PAGE


def audit_into(
    out: Path,
    name: str,
    source: Source,
    *,
    target: str,
    model: ModelToTest | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    engine: Engine = Engine(),  # noqa: B008 (frozen)
    progress: Progress = silent,
) -> StoredAudit:
    """The audit of ``source`` in ``out``/``name``-key: read if it has ended, otherwise done and written.

    Nothing is written before all images could be read for the key; findings.json comes last.
    """
    if engine.name == "ray":
        files_of(source)  # before every image is read for the key
    config = config_of(source, settings, model)
    folder = out / f"{name}-{key_of(config)}"
    with _alone(folder):
        if (folder / FINDINGS).exists():
            (folder / COLLECTED).unlink(missing_ok=True)  # a process killed at the very end may have left it
            return StoredAudit(folder, stored(folder), True)
        remove_partial(folder)
        return _done(folder, name, config, source, target, model, settings, engine, progress)


def _done(
    folder: Path,
    name: str,
    config: AuditConfig,
    source: Source,
    target: str,
    model: ModelToTest | None,
    settings: Settings,
    engine: Engine,
    progress: Progress,
) -> StoredAudit:
    """Do the audit and write it."""
    began = time.monotonic()
    data = _collected(folder, config, source, settings, engine, progress)
    looked = time.monotonic() - began
    done = examine(data, looked, target=target, model=model, settings=settings, progress=progress)
    done = done._replace(audit=_going_on(_kept(done.audit, folder), folder))
    write_suspects(folder / SUSPECTS, done.audit.suspects)
    write_audit_page(folder / PAGE, name, done, seed=settings.seed)
    write_json(folder / FINDINGS, done.audit.as_json())
    (folder / COLLECTED).unlink(missing_ok=True)
    return StoredAudit(folder, stored(folder), False)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time: of two processes that want the same audit, the second waits and finds the first's result.

    The operating system drops the lock when its owner dies. A user error leaves no folder behind.
    """
    made = [each for each in (folder, folder.parent) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire()
    except OSError as error:
        raise UnspurError(f"{folder} cannot be written ({error.strerror}); give another folder with --out.") from None
    try:
        yield
    except UnspurError:
        if not (folder / CONFIG).exists():
            (folder / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody else's files are in it
                for each in made:
                    each.rmdir()
        raise
    finally:
        lock.release()


def _collected(
    folder: Path, config: AuditConfig, source: Source, settings: Settings, engine: Engine, progress: Progress
) -> Collected:
    """What an interrupted audit had collected, or a new pass over the images, saved in case of an interruption."""
    if (folder / COLLECTED).exists():
        progress("images", 1)
        return read_collected(folder / COLLECTED)
    data = collect(source, seed=settings.seed, engine=engine, progress=lambda done: progress("images", done))
    write_json(folder / CONFIG, config)
    write_collected(folder / COLLECTED, data)
    return data


def _kept(found: Audit, folder: Path) -> Audit:
    """The audit with the detectors of its shortcuts in files, so that what they find can be swapped later."""
    detectors = [_detector(each) for each in found.findings]
    findings = [
        replace(each, cue=Region(detector.kept_in(folder))) if detector else each
        for each, detector in zip(found.findings, detectors, strict=True)
    ]
    return replace(found, findings=tuple(findings), cues=swappable(findings))


def _detector(finding: Finding) -> SpeaksLoudest | None:
    shortcut = is_shortcut(finding.grade, finding.reliance)
    find = finding.cue.find if shortcut and isinstance(finding.cue, Region) else None
    return find if isinstance(find, SpeaksLoudest) else None


def _going_on(found: Audit, folder: Path) -> Audit:
    """The audit; if its next command is a repair, that command gets the audit's folder."""
    repairs = found.next.startswith(REPAIR)
    return replace(found, next=f"{REPAIR} {shlex.quote(str(folder))}") if repairs else found


def config_of(source: Source, settings: Settings, model: ModelToTest | None) -> AuditConfig:
    """What defines an audit; every image of it is read, but none is decoded."""
    source = sampled(source, MOST_IMAGES, settings.seed)
    digest = hashlib.sha256()
    for number, name in enumerate(source.names):
        try:
            content = hashlib.blake2b(source.content(number), digest_size=16).digest()
        except Unreadable:
            content = b""
        digest.update(f"{name}\0{int(source.y[number])}\0".encode() + content)
    return {
        "images": len(source.y),
        "classes": list(source.classes),
        "content": digest.hexdigest()[:32],
        "model": model.content if model else None,
        "side": source.side,
        "settings": asdict(settings),
        "version": __version__,
    }


def key_of(config: AuditConfig) -> str:
    """The audit's key: a hash of what defines it."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]


def read_config(folder: Path) -> AuditConfig:
    """config.json of an audit."""
    return checked(read_json(folder / CONFIG), AuditConfig, str(folder / CONFIG))


def stored(folder: Path) -> AuditJSON:
    """findings.json of a finished audit."""
    if not (folder / CONFIG).exists():
        raise UnspurError(f"{folder} is not an audit's folder: it has no {CONFIG}.")
    if not (folder / FINDINGS).exists():
        raise UnspurError(f"{folder} holds an audit that has not ended; audit the same images again to finish it.")
    value = read_json(folder / FINDINGS)
    if isinstance(value, dict) and "verdict" in value and "cues" not in value:
        raise UnspurError(
            f"{folder} was audited by an older version, which did not keep what to repair; delete it and audit again."
        )
    return checked(value, AuditJSON, str(folder / FINDINGS))
