"""A page for each command, from the command line itself: what it does, its arguments and options, its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from site_pages import menu

from unspur.cli.main import app


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its name, those of a group as `data list`."""
    for name, command in typer.main.get_command(app).commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", own) for inner, own in command.commands.items())
        else:
            yield name, command


def write_commands(out: Path) -> None:
    """The pages of all commands below ``out``, and one that leads to them."""
    out.mkdir(parents=True, exist_ok=True)
    known = dict(commands())
    for name, command in known.items():
        (out / f"{slug(name)}.md").write_text(page(name, command), encoding="utf-8")
    rows = [f"| [`unspur {name}`]({slug(name)}.md) | {_summary(command)} |" for name, command in known.items()]
    text = "Every command takes `--json` and ends by naming the next one.\n\n"
    text += "\n".join(["| command | what it does |", "| --- | --- |", *rows]) + EXIT_CODES
    (out / "index.md").write_text(menu("Commands", [slug(name) for name in known], text), encoding="utf-8")


EXIT_CODES = """

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | the run failed or diverged; its folder says why |
| 2 | a mistake in what was asked for: one sentence, and nothing was written |
| 130 | interrupted; the same command goes on (`train` and `predict` with `--resume`) |
"""


def slug(name: str) -> str:
    return name.replace(" ", "-")


def page(name: str, command: Any) -> str:
    """The page of one command."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join(["unspur", name, "[OPTIONS]", *(_metavar(one) for one in arguments)])
    text = [f"# unspur {name}", _text(command), f"```text\n{usage}\n```"]
    if arguments:
        text.append(_table("argument", ((f"`{_cell(_metavar(one))}`", one.help or "") for one in arguments)))
    text.append(_table("option", ((_names(one), _help(one)) for one in options)))
    text += _examples(command)
    return "\n\n".join(text) + "\n"


def _metavar(argument: Any) -> str:
    return str(argument.metavar or (argument.name or "").upper())


def _names(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or str(option.name).split('_')[-1].upper()}"
    return ", ".join(f"`{_cell(one)}{_cell(value) if one == option.opts[0] else ''}`" for one in option.opts)


def _help(option: Any) -> str:
    shown = not option.is_flag and option.default not in (None, "", ()) and not callable(option.default)
    default = f" Default: `{option.default}`." if shown else ""
    variable = f" Environment: `{option.envvar}`." if option.envvar else ""
    return f"{option.help or ''}{default}{variable}"


def _summary(command: Any) -> str:
    return _text(command).partition("\n")[0]


def _text(command: Any) -> str:
    return re.sub(r"\s*Example: .*", "", command.help or "").strip()


def _examples(command: Any) -> list[str]:
    found = re.findall(r"Example: (.+)", command.help or "")
    return ["## Examples\n\n```sh\n" + "\n".join(found) + "\n```"] if found else []


def _table(heading: str, rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| {name} | {_cell(text)} |" for name, text in rows]
    return "\n".join([f"| {heading} | meaning |", "| --- | --- |", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
