"""Time that a repair may take."""

import pytest

from unspur.practice.repair.budget import Budget, OutOfTime


def test_a_budget_counts_what_earlier_commands_took_and_shows_it():
    now = [0.0]
    budget = Budget(100, spent=30, clock=lambda: now[0])
    shown = []
    progress = budget.shown_by(lambda stage, done: shown.append((stage, done)), "swap")
    now[0] = 20.0
    progress("copies", 0.5)
    assert shown == [("swap, copies", 0.5), ("budget", 0.5)] and budget.left == 50


def test_work_stops_when_the_budget_ends():
    now = [0.0]
    progress = Budget(10, clock=lambda: now[0]).shown_by(lambda stage, done: None, "swap")
    progress("training", 0.1)
    now[0] = 10.0
    with pytest.raises(OutOfTime, match="The budget of 10 s ended; the same command with a larger --budget goes on"):
        progress("training", 0.2)
