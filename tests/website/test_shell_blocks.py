"""Every command that a page shows in a block of its own is run on tiny data, or a reason says why it is not."""

import glob
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from data.photos import class_folders
from hostile.calling import call
from hostile.world import inside
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.stored import audit_into
from unspur.practice.audit.target import target_named
from website.scripts import ROOT, script

capture = script("site_capture")
PAGES = ["README.md", "docs/site/index.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
PAGES += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/methods/*.md"))
FENCED = re.compile(r"(?:^<!-- run -->\n+)?^```(?P<kind>\w*)\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^ {4,}\S.*\n)+", re.MULTILINE)
COMMANDS = ("unspur", "make", "python", "python3", "pip", "podman", "torchrun", "head", "ls")
LEFT_OUT = {  # how a command begins, and why no test runs it
    "make ": "CI and this suite are what it runs",
    "python3 -m venv": "an environment is made by `make dist`",
    "pip install": "the wheel is installed by `make dist`",
    "podman ": "a container is built where there is one",
    "torchrun ": "four machines; tests/runs/test_machines.py has two",
    "unspur demo": "minutes; `make dist` runs it from the wheel",
    "unspur repair": "minutes; the start page's is run below, and tests/cli/test_repair.py repairs a run",
    "unspur reproduce masktune": "hours; tests/papers runs tables with one tiny cell",
    "unspur compare": "24 runs; tests/cli/test_compare.py compares two methods",
    "unspur sweep erm DATASET": "a pattern; tests/cli/test_sweep.py searches",
    "unspur train large_lr DATASET": "a pattern; docs/learning-rates.md has one with a data set",
    "unspur probe METHOD": "a pattern; tests/cli/test_sweep.py probes",
    "unspur train swap colored_mnist": "needs MNIST, which tests do not have; tests/methods/test_swap.py trains it",
}
DIGITS = ["--set", "data.val=9000"]
SMALL = {  # how a command begins, and what is added so that it takes seconds
    "unspur train erm folder": ["--arch", "small_cnn", "--set", "data.size=16", "--set", "erm.epochs=1"],
    "unspur train masktune folder": ["--arch", "small_cnn", "--set", "data.size=16", "--set", "erm.epochs=1"],
    "unspur train swap folder": ["--arch", "small_cnn", "--set", "data.size=16", "--set", "training.epochs=1"],
    "unspur train masktune biased_mnist": [*DIGITS, "--set", "erm.epochs=1"],
    "unspur train large_lr double_mnist": [*DIGITS, "--set", "arch.width=32"],
    "unspur train erm parity": ["--set", "data.train=200", "--set", "erm.epochs=1"],
    "unspur sweep erm double_mnist": [*DIGITS, "--set", "data.base=mini", "--set", "erm.epochs=1", "--seeds", "0"],
}


class Block(NamedTuple):
    """Commands that stand together on a page."""

    page: str
    number: int
    lines: tuple[str, ...]
    in_order: bool  # run in the order of the page when the site is built


def blocks() -> list[Block]:
    """Every block of commands: fenced as sh, or indented."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        fenced = [(one["code"], "<!-- run -->" in one[0]) for one in FENCED.finditer(text) if one["kind"] == "sh"]
        rest = [(one[0], False) for one in INDENTED.finditer(FENCED.sub("", text))]
        for number, (code, in_order) in enumerate([*fenced, *rest]):
            lines = [line.strip() for line in code.replace("\\\n", " ").splitlines()]
            lines = [line for line in lines if line.split(" ")[0] in COMMANDS]
            if lines:
                found.append(Block(page, number, tuple(lines), in_order))
    return found


BLOCKS = blocks()


def reason(line: str) -> str | None:
    """Why a command is not run; None: it is."""
    return next((why for beginning, why in LEFT_OUT.items() if line.startswith(beginning)), None)


RUN = [block for block in BLOCKS if not block.in_order and not all(map(reason, block.lines))]

PAGES_RUN = sorted({block.page for block in RUN})


def test_every_reason_is_needed_and_every_fenced_block_is_of_a_known_kind():
    lines = [line for block in BLOCKS if not block.in_order for line in block.lines]
    for beginning in LEFT_OUT:
        assert any(line.startswith(beginning) for line in lines), f"No page shows {beginning} any more."
    for page in PAGES:
        kinds = {one["kind"] for one in FENCED.finditer((ROOT / page).read_text(encoding="utf-8"))}
        assert kinds <= {"sh", "python", "math", "text", "json", ""}, f"{page}: a test must run or name these."


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Photographs with a mark, new ones, a run of two methods, an audit and an ONNX file."""
    root = tmp_path_factory.mktemp("blocks") / "world"
    class_folders(root / "unmarked", cat=150, dog=150)
    with inside(root):
        done("data", "plant", "unmarked", "--shortcut", "square", "--conflict", "0.05", "--out", "marked")
        shutil.move("marked/images", "photos")
        shutil.rmtree("marked")
        for name in ("new", "new-photos"):
            shutil.copytree("unmarked", name)
        names = [f"{path.relative_to('new-photos')},{path.parent.name}" for path in Path("new-photos").rglob("*.png")]
        Path("new-photos/labels.csv").write_text("\n".join(["filename,species", *names]) + "\n")
        Path("photos/groups.csv").write_text("\n".join(["filename,label,cue", *shown()]) + "\n")
        for method in ("erm", "masktune"):
            line = f"unspur train {method} folder"
            done(*line.split()[1:], "--set", "data.root=photos", *SMALL[line])
        found = target_named("photos")  # without a model, which would take longest; a page's own audits have one
        audit_into(Path("audits"), found.name, found.source, target=found.words, settings=Settings(model=False))
        (run,) = glob.glob("runs/erm-*")
        done("export", run, "--out", "out")
        for name in ("mine.onnx", "my.onnx"):
            shutil.copy("out/model.onnx", name)
    return root


def shown() -> list[str]:
    """Lines of a groups.csv, as an audit's page makes it."""
    paths = sorted(Path("photos").rglob("*.png"))
    return [f"{path.relative_to('photos')},{path.parent.name},{path.parent.name}" for path in paths]


def done(*arguments: str) -> None:
    outcome = call(list(arguments), patience=capture.SECONDS)
    assert outcome.code == 0, f"unspur {shlex.join(arguments)}\n{outcome.err}\n{outcome.raised}"


def words(line: str) -> list[str]:
    """What a shell makes of a line, with this world's keys instead of the page's."""
    found = []
    for word in shlex.split(line, comments=True)[1:]:
        word = re.sub(r"-0123\w+", "-*", word)
        key, equals, value = word.rpartition("=")
        paths = sorted(glob.glob(value)) if "*" in value else [value]
        found += [f"{key}{equals}{path}" for path in paths]
    return found


@pytest.mark.site
@pytest.mark.parametrize("page", PAGES_RUN)
def test_the_commands_of_a_page_run_one_after_the_other(page, made, tmp_path):
    copy = tmp_path / "world"
    shutil.copytree(made, copy)
    with inside(copy):
        for line in (line for block in RUN if block.page == page for line in block.lines):
            if reason(line) is None:
                more = next((more for beginning, more in SMALL.items() if line.startswith(beginning)), [])
                done(*words(line), *more)


@pytest.mark.site
def test_the_start_page_runs_from_top_to_bottom(tmp_path):
    for found in capture.BLOCK.finditer((ROOT / "docs" / "start.md").read_text(encoding="utf-8")):
        capture.output_of(found["kind"], found["code"], tmp_path, Path(sys.executable), str(ROOT / "src"))
