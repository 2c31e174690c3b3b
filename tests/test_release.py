"""Version, changelog and citation agree, and the package says what it is."""

import re
import tomllib
from pathlib import Path

from unspur.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def latest() -> tuple[str, str]:
    """Version and date of the newest section of the changelog that is released."""
    found = re.search(
        r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    return found[1], found[2]


def test_the_changelog_has_a_section_of_this_version():
    assert latest()[0] == __version__


def test_the_citation_is_of_the_same_version_and_date():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version, date = latest()
    assert f"\nversion: {version}\n" in citation and f"\ndate-released: {date}\n" in citation


def test_the_wheel_takes_along_everything_in_the_package_that_is_not_python():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["unspur"]
    package = ROOT / "src" / "unspur"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    other = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert other <= packed, f"{other - packed} would be missing from the wheel"
    assert (package / "py.typed") in packed


def test_every_version_of_python_that_the_workflow_tries_is_named_by_the_package():
    tried = re.search(r"python: \[(.+)\]", (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))[1]
    for version in re.findall(r"[\d.]+", tried):
        assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_every_package_that_the_project_asks_for_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]  # the first is a comment
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pins = {re.sub(r"[-_.]+", "-", line.split("==")[0].lower()) for line in lines}
    own = PROJECT["project"]
    wanted = [*own["dependencies"], *(line for extra in own["optional-dependencies"].values() for line in extra)]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0].lower()) for line in wanted} - {"unspur"}
    assert names - pins <= {"pyarrow"}, "Pin it in constraints.txt."  # pyarrow is of no set-up command
