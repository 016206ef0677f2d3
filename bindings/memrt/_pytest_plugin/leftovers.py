"""Judge leftover memory of a test by the marks of the test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memrt._leaks.leaks import LeakGroup, amount, describe, group, unexpected
from memrt._pytest_plugin.marks import argument_of
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer
from memrt._tracking.measure import Measure

_IsIgnored = Callable[[LiveBuffer], bool]


def judge_leftovers(marks: dict[str, pytest.Mark], measure: Measure) -> str | None:
    """Collect the garbage of a test after teardown, and judge leftover memory.

    Returns the reason of a failure, or None for a test that passes."""
    limit = argument_of(marks.get("memrt_limit_growth"))
    is_ignored = argument_of(marks.get("memrt_no_leaks"))
    if _collect_garbage(measure, limit, is_ignored):
        return None
    verdicts = [_judge_leaks(measure, is_ignored), _judge_growth(measure, limit)]
    return "\n".join(verdict for verdict in verdicts if verdict is not None) or None


def _collect_garbage(measure: Measure, limit: int | None, is_ignored: _IsIgnored | None) -> bool:
    """Collect garbage while the verdict may change.

    Returns true without leftover memory."""

    def is_enough() -> bool:
        return (limit is None or measure.left <= limit) and not _leaks(measure, is_ignored)

    return measure.collect(is_enough)


def _judge_growth(measure: Measure, limit: int | None) -> str | None:
    if limit is None or measure.left <= limit:
        return None
    left = group(measure.live())
    growth = measure.left - amount(each for each in left if each.suppression is not None)[1]
    if growth <= limit:
        return None
    title = (
        f"memrt: {human_bytes(growth)} left in use, "
        f"more than memrt_limit_growth allows: {human_bytes(limit)}"
    )
    return "\n".join([title, *describe(unexpected(left))])


def _leaks(measure: Measure, is_ignored: _IsIgnored | None) -> list[LeakGroup]:
    if is_ignored is None:
        return []
    return unexpected(group(each for each in measure.live() if not is_ignored(each)))


def _judge_leaks(measure: Measure, is_ignored: _IsIgnored | None) -> str | None:
    leaks = _leaks(measure, is_ignored)
    if not leaks:
        return None
    count, size = amount(leaks)
    title = f"memrt: {plural(count, 'buffer')} leaked by this test, {human_bytes(size)}"
    return "\n".join([title, *describe(leaks)])
