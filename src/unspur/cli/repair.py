"""The command that takes a shortcut out of a model, or keeps the model that there was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, DataSettings, Json, Quiet, Seed, print_json, say

Repairable = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER|CSV|DATASET|RUN|AUDIT",
        help="Your images, a data set, a run whose model to repair, or an audit of either.",
        show_default=False,
    ),
]


def repair(
    what: Repairable,
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long it may take, such as 90s, 20m or 2h.")] = "20m",
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="What to try. Default: what committed results expect most of."),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="usual, or thorough: all layers of a pretrained network on swapped copies, too.")
    ] = "usual",
    groups: Annotated[
        Path | None, typer.Option(metavar="groups.csv", help="Groups from an audit's page, to choose by.")
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="The largest share of ordinary images that a repair may lose.")
    ] = 0.01,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="The parent of repair folders.")] = Path("repairs"),
    settings: DataSettings = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Take the shortcut that an audit finds out of a model, if that can be done without harm; no group labels needed.

    What was stopped goes on with the same command.

    Example: unspur repair photos --budget 20m --preset thorough

    Example: unspur repair runs/erm-folder-0123456789ab --methods swap,masktune
    """
    from unspur.cli.show.repair import print_repair
    from unspur.core.progress import ProgressBar, seconds_of
    from unspur.practice.repair.repair import RepairSettings
    from unspur.practice.repair.repair import repair as repair_target_in
    from unspur.practice.repair.state import PAGE
    from unspur.practice.repair.target import repair_target

    names = tuple(name.strip() for name in (methods or "").split(",") if name.strip())
    chosen = RepairSettings(seconds_of(budget), names, groups, margin, seed, preset)
    target = repair_target(what, settings or [], data_dir)
    with ProgressBar(target.name) as progress:
        folder, state = repair_target_in(target, out, settings=chosen, data_dir=data_dir, progress=progress, say=say)
    if as_json:
        return print_json({"folder": str(folder), "page": str(folder / PAGE), **state})
    print_repair(state)
    say(f"Open {folder / PAGE} in a browser.")
    for command in state["next"]:
        say(f"Next: {command}")
