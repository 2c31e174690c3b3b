"""`unspur report`: the page about stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from unspur.core.files import require_writable
from unspur.core.progress import Progress, of_stage, silent
from unspur.errors import UnspurError
from unspur.report.context import RunContext, RunsContext, open_runs
from unspur.report.page import Page, Part, placed, write_page
from unspur.report.sections.catalog import DATA, END, HEAD, OVERVIEW, RUN
from unspur.report.sections.headline import HEADLINE, page_headline
from unspur.report.words import listed


class WrittenReport(TypedDict):
    """What `unspur report --json` prints."""

    report: str
    headline: str | None  # None if that part failed
    warnings: dict[str, list[str]]  # of each run that has any, by its folder
    failed: dict[str, str]  # parts that could not be made, and why


def write_report(
    runs: Sequence[Path], out: Path, data_dir: Path | None = None, progress: Progress = silent
) -> WrittenReport:
    """Write a page about the run folders ``runs`` to the file ``out``.

    A folder that cannot be read is an error, and nothing is written; a part of the page that cannot be made is not.
    """
    if not runs:
        raise UnspurError("A report needs at least one run folder.")
    if out.is_dir():
        raise UnspurError(f"{out} is a folder; name the file to write, such as {out / 'report.html'}.")
    require_writable(out)
    distinct = {folder.resolve(): folder for folder in runs}
    context = open_runs(list(distinct.values()), data_dir)
    failed = write_page(page_of(context), out, of_stage(progress, "sections"))
    return {
        "report": str(out),
        "headline": None if HEADLINE.name in dict(failed) else page_headline(context),
        "warnings": {str(run.run.folder): list(run.warnings) for run in context.runs if run.warnings},
        "failed": dict(failed),
    }


def page_of(context: RunsContext) -> Page:
    """The parts of a page about runs: the comparison, the data, each run, and what the numbers mean."""
    several = [Part("comparison", "Comparison", placed(OVERVIEW, context))] if len(context.runs) > 1 else []
    data = [place for own in context.data for place in placed(DATA, own)]
    runs = [Part(run.anchor, _link(run, context), placed(RUN, run)) for run in context.runs]
    methods = dict.fromkeys(run.method for run in context.runs)
    return Page(
        title=f"unspur report: {listed(list(methods))} on {listed(list(context.by_data))}",
        head=placed(HEAD, context),
        parts=[
            *several,
            Part("data", "Data", data),
            *runs,
            Part("meaning", "What the numbers mean", placed(END, None)),
        ],
    )


def _link(run: RunContext, context: RunsContext) -> str:
    on = f" on {run.data.data.name}" if len(context.by_data) > 1 else ""
    return f"{run.label}{on}" + (f", seed {run.run.config.seed}" if len(context.runs) > 1 else "")
