"""Judge the memory of a test by the marks of the test."""

from __future__ import annotations

import pytest

from memrt._leaks.leaks import LeakGroup, amount, describe, group, unexpected
from memrt._pytest_plugin.marks import mark_value
from memrt._support.units import human_bytes, plural
from memrt._tracking.measure import Measure

_WORTH_COLLECTING = 64 * 1024  # least bytes left for a collection that only serves the summary


def judge_peak(item: pytest.Item, measure: Measure) -> None:
    """Fail a test whose peak is above the limit of memrt_limit_peak."""
    limit = mark_value(item, "memrt_limit_peak")
    if limit is None or measure.peak <= limit:
        return
    error = measure.stats.peak_error
    about = f" (error bound {human_bytes(error)})" if error else ""
    pytest.fail(
        f"memrt: {human_bytes(measure.peak)} in use at once{about}, "
        f"more than memrt_limit_peak allows: {human_bytes(limit)}",
        pytrace=False,
    )


def judge(item: pytest.Item, measure: Measure) -> str | None:
    """Return the reason why a test fails after its teardown, or None if the test does not fail."""
    verdicts = [_judge_leaks(item, measure), _judge_growth(item, measure)]
    return "\n".join(verdict for verdict in verdicts if verdict is not None) or None


def collect_garbage(item: pytest.Item, measure: Measure) -> bool:
    """Collect garbage while the verdict or the summary may change.

    Returns true if no memory is left that counts."""
    limit = mark_value(item, "memrt_limit_growth")

    def is_enough() -> bool:
        live = measure.stats.live
        if limit is None and item.get_closest_marker("memrt_no_leaks") is None:
            return live < _WORTH_COLLECTING
        return (limit is None or live <= limit) and not _leaks(item, measure)

    return measure.collect(is_enough)


def _judge_growth(item: pytest.Item, measure: Measure) -> str | None:
    limit = mark_value(item, "memrt_limit_growth")
    if limit is None or measure.stats.live <= limit:
        return None
    left = group(measure.live())
    growth = measure.stats.live - amount(each for each in left if each.suppression is not None)[1]
    if growth <= limit:
        return None
    title = (
        f"memrt: {human_bytes(growth)} left in use, "
        f"more than memrt_limit_growth allows: {human_bytes(limit)}"
    )
    return "\n".join([title, *describe(unexpected(left))])


def _leaks(item: pytest.Item, measure: Measure) -> list[LeakGroup]:
    is_ignored = mark_value(item, "memrt_no_leaks")
    if is_ignored is None:
        return []
    return unexpected(group(each for each in measure.live() if not is_ignored(each)))


def _judge_leaks(item: pytest.Item, measure: Measure) -> str | None:
    leaks = _leaks(item, measure)
    if not leaks:
        return None
    count, size = amount(leaks)
    title = f"memrt: {plural(count, 'buffer')} leaked by this test, {human_bytes(size)}"
    return "\n".join([title, *describe(leaks)])
