"""Killed before any file operation and started again, everything that writes leaves the same bytes as undisturbed."""

import pytest

from hostile.commands import COMMANDS
from hostile.hunts import STRIDE, chosen, command, killed, training, whole
from unspur.methods.catalog import METHODS

QUICK = ("train", "predict", "analyze", "plant")  # of which the ordinary tests have a sample
SEVERAL = [name for name, method in METHODS.items() if not method.one_device]
EVERY = [*((name, 1) for name in METHODS), *((name, 2) for name in SEVERAL)]


def hunt(hunted, folder, note, what, step=1, sample=None):
    operations, expected = whole(hunted, folder / "whole")
    places = range(1 + len(what) % (step * STRIDE), len(operations) + 1, step * STRIDE)
    found = killed(hunted, folder, chosen(places, what, sample), expected)
    note("kills", what, **found.counts(), of=len(operations), stride=step * STRIDE)
    assert found.faults and not found.wrong, "\n".join(found.wrong)


@pytest.mark.parametrize(("method", "devices"), [("masktune", 1), ("erm", 2)])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, note, method, devices):
    hunt(training(method, devices), tmp_path, note, f"{method}, {devices} devices, sample", sample=2)


@pytest.mark.parametrize("name", QUICK)
def test_a_killed_command_started_again_leaves_the_same_bytes(tmp_path, good, note, name):
    hunt(command(name, good), tmp_path, note, f"unspur {name}, sample", sample=1)


@pytest.mark.hostile
@pytest.mark.parametrize(("method", "devices"), EVERY)
def test_a_run_killed_before_any_file_operation_resumes_to_the_same_bytes(tmp_path, note, method, devices):
    hunt(training(method, devices), tmp_path, note, f"{method}, {devices} device{'s' * (devices > 1)}")


@pytest.mark.hostile
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_before_any_file_operation_leaves_the_same_bytes(tmp_path, good, note, name):
    hunt(command(name, good), tmp_path, note, f"unspur {name}", step=COMMANDS[name].step)
