"""The commands that put a model to work: predict and export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, Json, Quiet, RunFolder, Where, Workers, print_json, say, suggest

Coverage = Annotated[
    float | None, typer.Option(help="The share of images to answer; the model abstains on the rest. Default: all.")
]


def predict(
    model: Annotated[Path, typer.Argument(metavar="RUN|FOLDER|FILE.onnx", help="A run, an exported folder or a file.")],
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES...",
            help="Files, folders, patterns, a CSV, a .txt with a path a line, or - for such lines on stdin.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .csv, .jsonl or .parquet file to write. Default: CSV on stdout.")
    ] = None,
    coverage: Coverage = None,
    audit: Annotated[
        Path | None, typer.Option(metavar="AUDIT", help="An audit: abstain where the shortcut that it found decides.")
    ] = None,
    conformal: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="A set of labels for each image, which holds the right one for this share of images."
        ),
    ] = None,
    topk: Annotated[int, typer.Option(help="How many of the likeliest classes each row has.")] = 1,
    batch: Annotated[int, typer.Option(help="Images that the model takes at once.")] = 64,
    column: Annotated[str, typer.Option(help="The column of file names in a CSV.")] = "filename",
    engine: Where = "local",
    workers: Workers = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue behind the last whole row of --out.")] = False,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label images with a trained model, or abstain and say why.

    Example: unspur predict runs/masktune-folder-0123456789ab new-photos --out labels.csv --coverage 0.9

    Example: find new-photos -name '*.jpg' | unspur predict exported - --out labels.jsonl
    """
    from unspur.cli.show.console import TerminalBytes
    from unspur.cli.show.predictions import print_expected, print_predicted
    from unspur.core.progress import ProgressBar
    from unspur.practice.engine import Engine
    from unspur.practice.predict.predict import Wanted, predict_into

    wanted = Wanted(topk, batch, coverage, audit, conformal)
    printed = None if as_json or out else TerminalBytes(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer
    with ProgressBar("predict") as bar:
        done = predict_into(
            model,
            tuple(images),
            wanted,
            out,
            resume=resume,
            column=column,
            engine=Engine(engine, workers),
            data_dir=data_dir,
            stdin=sys.stdin.buffer if "-" in images else None,
            printed=printed,
            bar=bar,
            say=lambda abstention, sets: None if as_json else print_expected(abstention, sets),
        )
    if as_json:
        return print_json(done)
    print_predicted(done)
    if coverage is None and done["out"]:
        suggest("unspur predict", model, "IMAGES --coverage 0.9", why="abstain on one image in ten")
    elif model.is_dir() and (model / "result.json").exists():
        suggest("unspur export", model, "--out exported", why="one file for another program")


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    format: Annotated[str, typer.Option(help="onnx, torch (torch.export) or safetensors.")] = "onnx",
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Remove channels that pruning left dead (torch-pruning).")
    ] = False,
    margin: Annotated[float, typer.Option(help="Validation accuracy that --shrink may cost.")] = 0.01,
    coverage: Annotated[
        float | None,
        typer.Option(help="Put the rule for abstaining into the file, to answer this share of the images."),
    ] = None,
    audit: Annotated[
        list[Path] | None,
        typer.Option(metavar="AUDIT", help="Audits for the model card, such as one before and one after the repair."),
    ] = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a run's model for another program: one file, checked against the run, with labels and a model card.

    Example: unspur export runs/masktune-folder-0123456789ab --out exported
    """
    from unspur.cli.show.predictions import print_exported
    from unspur.core.progress import ProgressBar
    from unspur.practice.export.export import Wanted, export_run

    wanted = Wanted(format, shrink, margin, coverage, tuple(audit or ()))
    with ProgressBar("export") as bar:
        done = export_run(run, out, wanted, data_dir=data_dir, progress=bar)
    if as_json:
        return print_json(done)
    print_exported(done)
    say(f"Read {out / 'README.md'}: what the model was trained on, what it gets right and when it abstains.")
    if format != "torch":
        suggest("unspur predict", out, "IMAGES", why="label images with it")
