"""One self-contained HTML page about stored runs: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unspur.core.files import write_text
from unspur.core.progress import Progress, silent
from unspur.errors import UnspurError
from unspur.report.charts import FRAME
from unspur.report.headline import Finding, headline, percent
from unspur.report.pictures import scale
from unspur.report.rows import Share
from unspur.report.views import RunView, gather, hero
from unspur.version import __version__

HERE = Path(__file__).parent


def write_report(runs: Sequence[Path], out: Path, data_dir: Path | None = None, progress: Progress = silent) -> None:
    """Write a page about the run folders ``runs`` to the file ``out``; on an error nothing is written."""
    if not runs:
        raise UnspurError("A report needs at least one run folder.")
    if out.is_dir():
        raise UnspurError(f"{out} is a folder; name the file to write, such as {out / 'report.html'}.")
    distinct = {folder.resolve(): folder for folder in runs}
    text = render(gather(list(distinct.values()), data_dir, progress))
    try:
        write_text(out, text)
    except OSError as error:
        raise UnspurError(f"Cannot write {out} ({error.strerror or error}); name another file with --out.") from None


def render(runs: Sequence[RunView]) -> str:
    """The page's text."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    by_data: dict[str, list[RunView]] = {}
    for run in runs:
        by_data.setdefault(run.dataset, []).append(run)
    finished = [Finding(run.label, run.dataset, run.data.noun, run.tests) for run in runs if run.status == "done"]
    template = _environment().get_template("page.html.j2")
    return template.render(
        headline=headline(finished) if finished or len(runs) > 1 else _without_result(runs[0]),
        hero=hero(runs),
        runs=runs,
        by_data=by_data,
        data_views=list(dict.fromkeys(run.data for run in runs)),
        frame=FRAME,
        scale=scale(),
        version=__version__,
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def interval(share: Share) -> str:
    """The 95 % interval in per cent, as short as it can be read.

    >>> interval(Share(0.985, 0.9823, 0.987, 10000))
    '98.2 to 98.7'
    """
    return "" if share.low is None or share.high is None else f"{100 * share.low:.1f} to {100 * share.high:.1f}"


def _without_result(run: RunView) -> str:
    return f"{run.method} on {run.dataset}, {run.status}: {run.reason}"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": percent, "interval": interval, "count": lambda n: f"{n:,}"}
    return environment
