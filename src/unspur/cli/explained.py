"""Which page of the docs explains an error: that of the part of unspur in which it arose."""

from __future__ import annotations

from types import TracebackType

from unspur.core.outline import catalogue
from unspur.errors import UnknownName, UnspurError

DOCS = "docs"  # where the pages are; one day the site's address
METHODS = "unspur.methods"  # each method's module has a page of the method's name
PAGES = {
    "unspur.data.images": "your-images.md",
    "unspur.data.sets.folder": "your-images.md",
    "unspur.data.shortcuts": "plant.md",
    "unspur.data.files.pickles": "security.md",
    "unspur.models.foreign": "your-model.md",
    "unspur.models.onnx_file": "your-model.md",
    "unspur.models.weights": "your-model.md",
    "unspur.metrics.selective": "abstention.md",
    "unspur.evaluation.abstention": "abstention.md",
    "unspur.train.probe": "sweeps.md#the-highest-rate-that-converges",
    "unspur.parts.cues": "repair.md#swap",
    "unspur.parts.select": "choosing.md",
    "unspur.runs.folder": "runs.md",
    "unspur.runs.result": "runs.md",
    "unspur.runs.entries": "compare.md",
    "unspur.runs.every_image": "your-images.md#score-a-run-on-new-images",
    "unspur.runs.scoring": "your-images.md#score-a-run-on-new-images",
    "unspur.runs.sweep": "sweeps.md",
    "unspur.runs.search": "sweeps.md#search-instead-of-a-grid",
    "unspur.runs.search_space": "sweeps.md#search-instead-of-a-grid",
    "unspur.runs.analyze": "sweeps.md#what-analyze-computes",
    "unspur.runs.engines": "scale.md#what-to-type",
    "unspur.runs.machines": "scale.md#what-to-type",
    "unspur.runs.supervisor": "scale.md#what-to-type",
    "unspur.papers.reproduce": "reproduce.md",
    "unspur.practice.audit": "audit.md",
    "unspur.practice.audit.onnx_model": "your-model.md",
    "unspur.practice.repair": "repair.md",
    "unspur.practice.predict": "predict.md#what-goes-in",
    "unspur.practice.predict.abstention": "predict.md#abstaining",
    "unspur.practice.predict.audited_cue": "predict.md#abstaining",
    "unspur.practice.predict.calibrate": "predict.md#abstaining",
    "unspur.practice.predict.row_file": "predict.md#what-comes-out",
    "unspur.practice.export": "predict.md#one-file-for-another-program",
}


def explained(error: UnspurError) -> str | None:
    """The page for ``error``, by the innermost module on its way that has one; None: the sentence says it all."""
    if isinstance(error, UnknownName):
        return None
    pages = [page for module in _modules(error.__traceback__) if (page := page_of(module))]
    return f"{DOCS}/{pages[-1]}" if pages else None


def page_of(module: str) -> str | None:
    """The page of a module, or of the package that it is in.

    >>> page_of("unspur.practice.audit.target"), page_of("unspur.methods.masktune"), page_of("unspur.core.files")
    ('audit.md', 'methods/masktune.md', None)
    """
    package, _, name = module.rpartition(".")
    if package == METHODS and name in catalogue(f"{METHODS}.catalog", "METHODS"):
        return f"methods/{name}.md"
    return PAGES.get(module) or (page_of(package) if package else None)


def _modules(trace: TracebackType | None) -> list[str]:
    """The modules that an error came through, the one that raised it last."""
    names = []
    while trace:
        names.append(str(trace.tb_frame.f_globals.get("__name__", "")))
        trace = trace.tb_next
    return names
