"""Every module has a test file of its name in its room, or a line in CONTRIBUTING.md that says which one covers it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unspur"
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name not in ("__init__.py", "__main__.py")]
ROW = re.compile(r"^\| `(tests/[\w/]+\.py)` \| (.+) \|$", re.MULTILINE)


def listed() -> dict[str, str]:
    """Of each module that CONTRIBUTING names, the test that covers it."""
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return {module: test for test, modules in rows for module in re.findall(r"`([\w/]+\.py)`", modules)}


def own_tests(path: Path) -> list[Path]:
    """Tests of the module's name in its room: cli/sweep.py is not tested by tests/runs/test_sweep.py."""
    room = path.relative_to(SOURCE).parts[0] if path.parent != SOURCE else ""
    return list((ROOT / "tests" / room).rglob(f"test_{path.stem}.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_has_a_test_of_its_name_or_a_line_in_contributing(path):
    name = path.relative_to(SOURCE).as_posix()
    assert own_tests(path) or name in listed(), f"Add a test_{path.stem}.py, or {name} to CONTRIBUTING.md's last table."


def test_contributing_names_only_modules_and_tests_that_exist():
    for module, test in listed().items():
        assert (SOURCE / module).is_file(), f"CONTRIBUTING.md names {module}, which does not exist."
        assert (ROOT / test).is_file(), f"CONTRIBUTING.md names {test}, which does not exist."


def test_a_module_with_a_test_of_its_own_needs_no_line():
    assert not [module for module in listed() if own_tests(SOURCE / module)]
