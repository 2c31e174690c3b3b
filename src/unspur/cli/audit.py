"""The command that looks for shortcuts in images, and for a model that takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, DataSettings, Json, Quiet, Where, Workers, print_json, say


def audit(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|CSV|DATASET|RUN",
            help="Your images, a data set, or a run with its own model.",
            show_default=False,
        ),
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="FILE.onnx", help="A model to test. Default: a quick one is trained.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The parent of audit folders.")] = Path("audits"),
    settings: DataSettings = None,
    engine: Where = "local",
    workers: Workers = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find what gives labels away without being the object, where it is, and whether the model uses it.

    Example: unspur audit photos
    """
    from unspur.cli.show.audit import print_audit
    from unspur.core.progress import ProgressBar
    from unspur.practice.audit.stored import audit_into
    from unspur.practice.audit.target import target_named
    from unspur.practice.engine import Engine

    where = Engine(engine, workers)
    target = target_named(what, settings or [], data_dir, model)
    with ProgressBar(target.name) as progress:
        done = audit_into(
            out,
            target.name,
            target.source,
            target=target.words,
            model=target.model,
            engine=where,
            progress=progress,
        )
    if as_json:
        return print_json({"folder": str(done.folder), "page": str(done.page), **done.findings})
    print_audit(done.findings)
    say(f"Open {done.page} in a browser{' (this audit was there already)' if done.found else ''}.")
    say(f"Next: {done.findings['next']}")
