"""The commands `unspur data ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, DataName, DataSettings, Json, given, print_json, suggest

data_app = typer.Typer(no_args_is_help=True, help="What data sets there are; get them, check them, look at them.")


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """List the data sets: how to get their files, and where they come from.

    With --json, the list has every data set's options too. Example: unspur data list
    """
    from unspur.cli.listing import DATA_LEGEND, data_rows, facts, print_rows

    rows = data_rows()
    if not as_json:
        print_rows(rows, DATA_LEGEND)
        return suggest("unspur data info biased_mnist", why="its options, and whether it is here and complete")
    from unspur.cli.show.specs import describe_spec
    from unspur.data.catalog import DATASETS

    known = facts(rows)
    print_json([describe_spec(name, spec(), known[name]) for name, spec in DATASETS.items()])


@data_app.command("info")
def data_info(name: DataName, settings: DataSettings = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what a data set is, where it comes from, whether it is here and complete, and which options it has.

    Example: unspur data info biased_mnist --set data.base=mini
    """
    from unspur.cli.show.datasets import print_info
    from unspur.cli.show.specs import print_options
    from unspur.data.info import describe
    from unspur.runs.config import configure_data

    spec = configure_data(name, settings or [])
    info = describe(spec, data_dir)
    if as_json:
        return print_json(info)
    print_info(info)
    print_options(spec, "data.")
    if info["splits"] is not None:
        suggest(f"unspur data preview {name}{given(settings)} --out preview.png", why="look at it")
    elif spec.needs():
        suggest(f"unspur data fetch {name}", why="download it")
    else:
        suggest(f"unspur data info {name}{given(settings)} --data-dir DIR", why="check it once it is there")


@data_app.command("fetch")
def data_fetch(name: DataName, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Download a data set into the user's cache, or say how to get it.

    Example: unspur data fetch mnist
    """
    from unspur.cli.show.console import plain
    from unspur.data.catalog import fetch

    paths = [str(path) for path in fetch(name, data_dir)]
    if as_json:
        return print_json({"files": paths})
    typer.echo(plain("\n".join(paths)))
    suggest(f"unspur data info {name}", why="what is in it")


@data_app.command("preview")
def data_preview(
    name: DataName,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("preview.png"),
    settings: DataSettings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Draw training samples by class and group.

    Example: unspur data preview biased_mnist --set data.base=mini --out preview.png
    """
    from unspur.cli.show.console import plain
    from unspur.data.files.fetch import DataFiles
    from unspur.data.preview import write_preview
    from unspur.runs.config import configure_data

    write_preview(configure_data(name, settings or []).load(DataFiles(data_dir)), out)
    if as_json:
        print_json({"picture": str(out)})
    else:
        typer.echo(plain(f"Wrote {out}."))
        suggest(f"unspur train erm {name}{given(settings)}", why="see whether plain training takes the shortcut")


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
    settings: DataSettings = None,
    as_json: Json = False,
) -> None:
    """Copy your images with a shortcut planted in them, so that any method can be tried with a known answer.

    Example: unspur data plant photos --shortcut watermark --conflict 0.05 --out photos-marked
    """
    from unspur.cli.show.console import plain
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
        typer.echo(plain(planted.summary()))
