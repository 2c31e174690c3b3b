"""The commands `unspur data ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, DataName, Json, Settings, print_json, show_specs

data_app = typer.Typer(no_args_is_help=True, help="What data sets there are; get them, check them, look at them.")


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """List the data sets with their options and defaults."""
    from unspur.data.catalog import DATASETS

    show_specs({name: spec() for name, spec in DATASETS.items()}, as_json)


@data_app.command("info")
def data_info(name: DataName, settings: Settings = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what a data set is, where it comes from, and whether it is here and whole.

    Example: unspur data info biased_mnist --set data.base=mini
    """
    from unspur.cli.console import print_info
    from unspur.data.info import describe
    from unspur.runs.config import configure_data

    info = describe(configure_data(name, settings or []), data_dir)
    if as_json:
        print_json(info)
    else:
        print_info(info)


@data_app.command("fetch")
def data_fetch(name: DataName, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Download a data set into the user's cache, or say how to get it.

    Example: unspur data fetch mnist
    """
    from unspur.data.catalog import fetch

    paths = [str(path) for path in fetch(name, data_dir)]
    if as_json:
        print_json({"files": paths})
    else:
        typer.echo("\n".join(paths))


@data_app.command("preview")
def data_preview(
    name: DataName,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("preview.png"),
    settings: Settings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Draw training samples by class and group.

    Example: unspur data preview biased_mnist --set data.base=mini --out preview.png
    """
    from unspur.data.files.fetch import DataFiles
    from unspur.data.preview import write_preview
    from unspur.runs.config import configure_data

    write_preview(configure_data(name, settings or []).load(DataFiles(data_dir)), out)
    if as_json:
        print_json({"picture": str(out)})
    else:
        typer.echo(f"Wrote {out}.")


@data_app.command("plant")
def data_plant(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Your images, as the set `folder` reads them.")],
    shortcut: Annotated[
        str, typer.Option(help="square, color, corruption, watermark, border, domino or disc.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The folder to write, which must not exist yet.", show_default=False)],
    conflict: Annotated[float | None, typer.Option(help="The share of training images that conflict.")] = None,
    conflict_count: Annotated[int | None, typer.Option(help="Their exact number, instead of the share.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes everything random.")] = 0,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Copy your images with a shortcut planted in them, so that any method can be tried with a known answer.

    Example: unspur data plant photos --shortcut watermark --conflict 0.05 --out photos-marked
    """
    from unspur.data.sets.folder import Folder
    from unspur.data.shortcuts.plant_folder import plant
    from unspur.runs.config import configure_data

    own = [f"data.root={root}", f"data.seed={seed}", *(settings or [])]
    source = configure_data("folder", own)
    assert isinstance(source, Folder)
    planted = plant(source, shortcut, out, conflict=conflict, conflict_count=conflict_count)
    if as_json:
        print_json(planted.as_json())
    else:
        typer.echo(planted.summary())
