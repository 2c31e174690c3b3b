"""The commands that list methods and architectures, or show one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from unspur.cli.shared import Json, print_json, suggest


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show one method with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or show one with its settings and defaults.

    With --json, the list has every method's settings too.

    Example: unspur methods masktune
    """
    from unspur.cli.listing import METHODS_LEGEND, facts, method_rows, print_rows, tried

    rows = method_rows()
    if name is None and not as_json:
        print_rows(rows, METHODS_LEGEND)
        return suggest("unspur methods masktune", why="what it does, and every setting")
    from unspur.methods.catalog import METHODS, method_named

    known = {each: {**own, "tried on": tried(each)} for each, own in facts(rows).items()}
    _show_specs({each: method_named(each)() for each in ([name] if name else METHODS)}, known, name, as_json)
    if not as_json:
        suggest(f"unspur train {name} biased_mnist --set data.base=mini", why="try it on the embedded digits")


def archs(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show one architecture with its options.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the architectures, or show one with its options and defaults.

    With --json, the list has every architecture's options too.

    Example: unspur archs small_cnn
    """
    from unspur.cli.listing import arch_rows, facts, print_rows

    rows = arch_rows()
    if name is None and not as_json:
        print_rows(rows, "And every classifier of torchvision by its own name, such as resnet18 or swin_t.")
        return suggest("unspur archs small_cnn", why="its options")
    from unspur.models.catalog import ARCHS, arch_named

    specs = {each: arch_named(each) for each in ([name] if name else ARCHS)}
    _show_specs(specs, facts(rows), name, as_json, prefix="arch.")
    if not as_json:
        suggest(f"unspur train erm DATASET --arch {name}", why="train it")


def _show_specs(
    specs: Mapping[str, object],
    facts: Mapping[str, Mapping[str, str | None]],
    name: str | None,
    as_json: bool,
    prefix: str = "",
) -> None:
    """One spec or, only for ``--json``, all of them."""
    from unspur.cli.show.specs import describe_spec, print_spec

    if not as_json:
        for each, spec in specs.items():
            print_spec(each, spec, facts.get(each, {}), prefix)
        return
    entries = [describe_spec(each, spec, facts.get(each, {})) for each, spec in specs.items()]
    print_json(entries[0] if name else entries)
