"""What the page shows, in one sentence that a stranger understands, made from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from unspur.report.rows import Scored

NAMED = 4  # at most so many runs are named one by one


class Finding(NamedTuple):
    """A finished run: what to call it, its data set and its scores."""

    label: str
    dataset: str
    noun: str  # what its samples are called
    tests: Sequence[Scored]


def percent(value: float) -> str:
    r"""A proportion in per cent; what is not quite all or nothing does not read as if it were.

    >>> print(*(percent(v).replace("\xa0", "") for v in (0.985, 1.0, 0.9999, 0.0, 0.0001)))
    98.5% 100% >99.9% 0% <0.1%
    """
    extremes = {"100.0": "100" if value == 1 else ">99.9", "0.0": "0" if value == 0 else "<0.1"}
    text = f"{100 * value:.1f}"
    text = extremes.get(text, text)
    return f"{text}\N{NO-BREAK SPACE}%"


def headline(findings: Sequence[Finding]) -> str:
    """The page's first sentence."""
    if not findings:
        return "No run on this page has a result; each one below says why."
    if len({finding.dataset for finding in findings}) > 1:
        names = sorted({finding.dataset for finding in findings})
        return f"{len(findings)} finished runs on {len(names)} data sets: {_listed(names)}."
    return _alone(findings[0]) if len(findings) == 1 else _together(findings)


def telling_test(tests: Sequence[Scored]) -> Scored | None:
    """The test set in which a shortcut costs most: the lowest accuracy where it misleads.

    Those with less than half as many conflicting images as another are passed over: few images say little.
    """
    known = [(test, test.conflicting) for test in tests if test.conflicting]
    most = max((share.n or 0 for _, share in known), default=0)
    weighty = [(share.value, test) for test, share in known if 2 * (share.n or 0) >= most]
    return min(weighty, key=lambda pair: pair[0])[1] if weighty else None


def _alone(finding: Finding) -> str:
    test = telling_test(finding.tests)
    who = f"A classifier trained with {finding.label} is right on"
    if test is None or test.conflicting is None:
        return f"{who} {_listed([f'{percent(t.accuracy.value)} of the {_named(t, finding)}' for t in finding.tests])}."
    pair, wrong = _pair(test), percent(test.conflicting.value)
    easy = test if test.aligned else _most_aligned(finding.tests)
    if easy is None or easy.aligned is None:
        return f"{who} {wrong} of the {_named(test, finding)}, in which {pair} do not go together as in training."
    right = f"{percent(easy.aligned.value)} of the {_named(easy, finding)} in which {pair} go together as in training"
    others = "those" if easy is test else f"the {_named(test, finding)},"
    return f"{who} {right}, and on {wrong} of {others} in which they do not."


def _together(findings: Sequence[Finding]) -> str:
    """The runs' accuracies where the shortcut misleads, else in the hardest test set.

    Runs that differ by their seed alone are averaged.
    """
    telling = [test for finding in findings if (test := telling_test(finding.tests))]
    if not telling:
        hardest = min((test for finding in findings for test in finding.tests), key=lambda test: test.accuracy.value)
        accuracies = _by_label(findings, hardest.name, "accuracy")
        return f"Of the {_named(hardest, findings[0])}, {_compared(accuracies)}."
    chosen = min(telling, key=lambda test: test.conflicting.value)  # type: ignore[union-attr]
    where = f"the {_named(chosen, findings[0])} in which {_pair(chosen)} do not go together as in training"
    return f"Of {where}, {_compared(_by_label(findings, chosen.name, 'conflicting'))}."


def _by_label(
    findings: Sequence[Finding], test: str, score: Literal["accuracy", "conflicting"]
) -> Mapping[str, Sequence[float]]:
    values: dict[str, list[float]] = {}
    for finding in findings:
        for scores in finding.tests:
            share = scores.accuracy if score == "accuracy" else scores.conflicting
            if scores.name == test and share:
                values.setdefault(finding.label, []).append(share.value)
    return values


def _compared(values: Mapping[str, Sequence[float]]) -> str:
    """Each label's mean share right, or the lowest and the highest when there are many."""
    ranked = sorted(((label, fmean(found)) for label, found in values.items()), key=lambda item: item[1])
    seeds = ", averaged over seeds" if any(len(found) > 1 for found in values.values()) else ""
    if len(ranked) > NAMED:
        (low, least), (high, most) = ranked[0], ranked[-1]
        return f"between {percent(least)} ({low}) and {percent(most)} ({high}) are classified right{seeds}"
    first, *rest = ranked
    parts = [f"{first[0]} gets {percent(first[1])} right", *(f"{name} {percent(value)}" for name, value in rest)]
    return _listed(parts) + seeds


def _most_aligned(tests: Sequence[Scored]) -> Scored | None:
    known = [test for test in tests if test.aligned]
    return max(known, key=lambda test: test.aligned.n or 0) if known else None  # type: ignore[union-attr]


def _pair(test: Scored) -> str:
    return _listed(["class", *test.attributes])


def _named(test: Scored, finding: Finding) -> str:
    return f"test {finding.noun}" if test.name == "test" else f"“{test.name}” test {finding.noun}"


def _listed(words: Sequence[str]) -> str:
    """
    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
