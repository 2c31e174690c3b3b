"""A bad input is answered with a sentence: exit code 2, no traceback, nothing written, however it is bad."""

import pytest

from hostile.bad_inputs import ALL, bounded, tried
from hostile.cases import CALLS, _commands, case

SAMPLE, CHUNK = 200, 50


def hunt(good, numbers, note):
    with bounded():
        answers = [tried(good, number) for number in numbers]
    bad = [f"case {number}: {answer}" for number, answer in zip(numbers, answers, strict=True) if answer.complaint]
    refused = sum(answer.outcome.code == 2 for answer in answers)
    note("bad inputs", f"cases from {numbers[0]}", tried=len(answers), well=len(answers) - len(bad), refused=refused)
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("first", range(0, SAMPLE, CHUNK))
def test_a_bad_input_is_one_sentence_and_writes_nothing(good, first, note):
    hunt(good, range(first, first + CHUNK), note)


@pytest.mark.hostile
@pytest.mark.parametrize("first", range(SAMPLE, ALL, CHUNK))
def test_any_bad_input_is_one_sentence_and_writes_nothing(good, first, note):
    hunt(good, range(first, first + CHUNK), note)


def test_every_command_is_among_the_bad_inputs():
    assert set(CALLS) == set(_commands())


def test_a_number_is_always_the_same_case():
    assert [case(1, number).arguments for number in range(50)] == [case(1, number).arguments for number in range(50)]
