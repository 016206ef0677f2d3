"""Judge the memory of a test by the marks of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memrt._pytest_plugin.marks import argument_of, is_judged_late, marks_of
from memrt._support.units import human_bytes
from memrt._tracking.measure import Measure

if TYPE_CHECKING:
    from memrt._pytest_plugin.process_peak import ProcessPeak

_WORTH_COLLECTING = 64 * 1024  # least bytes left for a collection that only serves the summary


def start_process_peak(item: pytest.Item) -> ProcessPeak | None:
    """Restart the peak of the process for a test with memrt_limit_process."""
    if "memrt_limit_process" not in marks_of(item):
        return None
    from memrt._pytest_plugin.process_peak import ProcessPeak

    return ProcessPeak()


def judge_process_peak(item: pytest.Item, measure: Measure, peak: ProcessPeak | None) -> None:
    """Fail a test with a peak of the process above the limit of memrt_limit_process."""
    if peak is not None:
        peak.judge(argument_of(marks_of(item)["memrt_limit_process"]), measure)


def judge_peak(item: pytest.Item, measure: Measure) -> None:
    """Fail a test whose peak is above the limit of memrt_limit_peak."""
    limit = argument_of(marks_of(item).get("memrt_limit_peak"))
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
    """Collect the garbage of a test after its teardown, and judge the memory that is left.

    Returns the reason why the test fails, or None if the test does not fail."""
    marks = marks_of(item)
    if not is_judged_late(marks):
        measure.collect(lambda: measure.left < _WORTH_COLLECTING)
        return None
    from memrt._pytest_plugin.leftovers import judge_leftovers

    return judge_leftovers(marks, measure)
