"""What the pages promise exists: files that they link to, and commands that they show."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from unspur.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += [
    page for page in sorted((ROOT / "results").rglob("*.md")) if page.name != "benchmarks.md"
]  # output as printed


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"


def shown(text: str) -> list[list[str]]:
    """The words after `unspur` in every command that a page shows."""
    fenced = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^unspur (.+)$", fenced, re.MULTILINE)
    lines += re.findall(r"^    unspur (.+)$", text, re.MULTILINE) + re.findall(r"`unspur ([^`]+)`", text)
    return [shlex.split(re.split(r"; |  #", line)[0]) for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_that_a_page_shows_exists_with_its_options(page):
    commands = typer.main.get_command(app).commands
    for first, *words in shown(page.read_text(encoding="utf-8")):
        if first.startswith("-"):
            continue
        assert first in commands, f"{name(page)} shows unspur {first}"
        command = commands[first]
        if first == "data":
            assert words[0] in command.commands, f"{name(page)} shows unspur data {words[0]}"
            command = command.commands[words[0]]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        used = {word.strip("[].") for word in words if word.strip("[").startswith("--")}
        assert used <= known, f"{name(page)} shows unspur {first} with {used - known}"


def test_readme_shows_every_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in typer.main.get_command(app).commands:
        assert f"`unspur {command}" in text, f"README.md does not name unspur {command}"
