"""What the page shows, in one sentence that a stranger understands, made from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from unspur.report.context import RunContext, RunsContext
from unspur.report.scores import Scored
from unspur.report.section import Section
from unspur.report.words import listed, percent

NAMED = 4  # at most so many runs are named one by one
WARNED = 2  # and so many with their warnings


class Finding(NamedTuple):
    """A finished run: what to call it, its data set and its scores."""

    label: str
    dataset: str
    noun: str  # what its samples are called
    tests: Sequence[Scored]
    warnings: Sequence[str] = ()  # but for one class, which the scores say


def page_headline(page: RunsContext) -> str:
    """The first sentence of a page about runs."""
    if not page.finished and len(page.runs) == 1:
        run = page.runs[0]
        return f"{run.method} on {run.data.data.name}, {run.status}: {run.reason}"
    return headline([_finding(run) for run in page.finished])


def _finding(run: RunContext) -> Finding:
    others = [warning for warning in run.warnings if warning not in run.one_class]
    return Finding(run.label, run.data.data.name, run.data.noun, run.tests, others)


def headline(findings: Sequence[Finding]) -> str:
    """What finished runs show."""
    if not findings:
        return "No run on this page has a result; each one below says why."
    if len(findings) == 1:
        return _alone(findings[0])
    if len({finding.dataset for finding in findings}) == 1:
        return _together(findings) + _warned(findings)
    names = sorted({finding.dataset for finding in findings})
    counted = f"{len(findings)} finished runs on {len(names)} data sets: {listed(names)}."
    blind = [f"{finding.label} on {finding.dataset}" for finding in findings if _blind(finding)]
    return counted + (f" One class for everything: {listed(blind)}." if blind else "") + _warned(findings)


def telling_test(tests: Sequence[Scored]) -> Scored | None:
    """The test set in which a shortcut costs most: the lowest accuracy where it misleads.

    Those with less than half as many conflicting images as another are passed over: few images say little.
    """
    known = [(test, test.conflicting) for test in tests if test.conflicting]
    most = max((share.n or 0 for _, share in known), default=0)
    weighty = [(share.value, test) for test, share in known if 2 * (share.n or 0) >= most]
    return min(weighty, key=lambda pair: pair[0])[1] if weighty else None


def _alone(finding: Finding) -> str:
    if _blind(finding):
        classes = {test.only_class for test in finding.tests}
        named = f"“{finding.tests[0].only_class}”" if len(classes) == 1 else "one class"
        noun = finding.noun.removesuffix("s")
        each = f"every test {noun}" if len(classes) == 1 else f"every {noun} of a test set"
        return f"The classifier trained with {finding.label} predicts {named} for {each}: its accuracy says nothing."
    partly = [
        f" For every one of the {_named(test, finding)} it predicts “{test.only_class}”."
        for test in finding.tests
        if test.only_class
    ]
    return _right(finding) + "".join(partly) + "".join(f" {warning}" for warning in finding.warnings[:1])


def _blind(finding: Finding) -> bool:
    """Whether a model predicts one class wherever it was tested."""
    return bool(finding.tests) and all(test.only_class is not None for test in finding.tests)


def _right(finding: Finding) -> str:
    test = telling_test(finding.tests)
    who = f"A classifier trained with {finding.label} is right on"
    if test is None or test.conflicting is None:
        return f"{who} {listed([f'{percent(t.accuracy.value)} of the {_named(t, finding)}' for t in finding.tests])}."
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
        return f"Of the {_named(hardest, findings[0])}, {_compared(findings, hardest.name, 'accuracy')}."
    chosen = min(telling, key=lambda test: test.conflicting.value)  # type: ignore[union-attr]
    where = f"the {_named(chosen, findings[0])} in which {_pair(chosen)} do not go together as in training"
    return f"Of {where}, {_compared(findings, chosen.name, 'conflicting')}."


def _compared(findings: Sequence[Finding], test: str, score: Literal["accuracy", "conflicting"]) -> str:
    """Each label's mean share right, or the lowest and the highest when there are many; one class is no share."""
    values: dict[str, list[float]] = {}
    blind: dict[str, str] = {}
    for finding in findings:
        for scores in finding.tests:
            share = scores.accuracy if score == "accuracy" else scores.conflicting
            if scores.name == test and scores.only_class is not None:
                blind[finding.label] = scores.only_class
            elif scores.name == test and share:
                values.setdefault(finding.label, []).append(share.value)
    seeds = ", averaged over seeds" if any(len(found) > 1 for found in values.values()) else ""
    many = len(values.keys() | blind.keys()) > NAMED
    if many and blind:
        lost = [f"{len(blind)} of the {len(values.keys() | blind.keys())} kinds of runs predict one class for all"]
    else:
        lost = [f"{label} predicts “{name}” for all" for label, name in blind.items()]
    return listed([*lost, *_ranked(values, many)]) + seeds


def _ranked(values: Mapping[str, Sequence[float]], many: bool) -> list[str]:
    ranked = sorted(((label, fmean(found)) for label, found in values.items()), key=lambda item: item[1])
    if not ranked:
        return []
    first, *rest = ranked
    if many and rest:
        (low, least), (high, most) = first, rest[-1]
        return [f"between {percent(least)} ({low}) and {percent(most)} ({high}) are classified right"]
    return [f"{first[0]} gets {percent(first[1])} right", *(f"{name} {percent(value)}" for name, value in rest)]


def _warned(findings: Sequence[Finding]) -> str:
    """The worst warning of each run, or that there are some."""
    warned = [finding for finding in findings if finding.warnings and not _blind(finding)]
    if len(warned) > WARNED:
        return f" {len(warned)} runs have warnings, which each shows first."
    return "".join(f" {finding.label}: {finding.warnings[0]}" for finding in warned)


def _most_aligned(tests: Sequence[Scored]) -> Scored | None:
    known = [test for test in tests if test.aligned]
    return max(known, key=lambda test: test.aligned.n or 0) if known else None  # type: ignore[union-attr]


def _pair(test: Scored) -> str:
    return listed(["class", *test.attributes])


def _named(test: Scored, finding: Finding) -> str:
    return f"test {finding.noun}" if test.name == "test" else f"“{test.name}” test {finding.noun}"


HEADLINE = Section("headline", page_headline)
