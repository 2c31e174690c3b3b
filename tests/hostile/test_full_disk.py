"""On a disk that is full from any write on, what writes says so in a sentence, and works once there is room."""

import pytest

from hostile.commands import COMMANDS
from hostile.faults import GROWS
from hostile.hunts import LIMITS, STRIDE, chosen, command, starved, training, whole
from unspur.methods.catalog import METHODS


def hunt(hunted, folder, note, what, step=1, sample=None, limits=LIMITS):
    operations, expected = whole(hunted, folder / "whole")
    growing = [place for place, operation in enumerate(operations, 1) if operation.split()[0] in GROWS]
    places = growing[:: step * STRIDE]
    found = starved(hunted, folder, chosen(places, what, sample), expected, limits)
    note("full disk", what, **found.counts(), of=len(growing), stride=step * STRIDE)
    assert found.faults and not found.wrong, "\n".join(found.wrong)


@pytest.mark.parametrize("name", ["train", "export"])
def test_a_full_disk_is_a_sentence(tmp_path, good, note, name):
    hunt(command(name, good), tmp_path, note, f"unspur {name}, sample", sample=1, limits=(100,))


def test_a_full_disk_is_a_sentence_with_two_devices_too(tmp_path, note):
    hunt(training("erm", 2), tmp_path, note, "erm, 2 devices, sample", sample=1, limits=())


@pytest.mark.hostile
@pytest.mark.parametrize("method", METHODS)
def test_a_full_disk_at_any_write_of_a_run_is_a_sentence(tmp_path, note, method):
    hunt(training(method, 1), tmp_path, note, f"{method}, 1 device", limits=LIMITS[1::2])


@pytest.mark.hostile
@pytest.mark.parametrize("method", ["erm", "masktune"])
def test_a_full_disk_at_any_write_with_two_devices_is_a_sentence(tmp_path, note, method):
    hunt(training(method, 2), tmp_path, note, f"{method}, 2 devices")


@pytest.mark.hostile
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_at_any_write_of_a_command_is_a_sentence(tmp_path, good, note, name):
    hunt(command(name, good), tmp_path, note, f"unspur {name}", step=COMMANDS[name].step)
