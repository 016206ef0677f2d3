"""Change the outcome of a test that has already passed."""

from __future__ import annotations

import pytest

_UNEXPECTED_PASS = "[XPASS(strict)] "  # pytest's report of a test that should have failed


def fail_report(item: pytest.Item, report: pytest.TestReport, verdict: str) -> None:
    """Change the report of a passed test into the report of a failure.

    Under the mark xfail the report becomes an expected failure, if the mark covers the failure.
    """
    if str(report.longrepr).startswith(_UNEXPECTED_PASS):
        vars(report)["wasxfail"] = str(report.longrepr)[len(_UNEXPECTED_PASS) :]
    try:
        pytest.fail(verdict, pytrace=False)
    except pytest.fail.Exception:
        report.longrepr = item.repr_failure(pytest.ExceptionInfo.from_current())
    report.outcome = "failed"
    if hasattr(report, "wasxfail"):
        if _may_fail(item):
            report.outcome = "skipped"  # pytest's outcome of an expected failure
        else:
            del report.wasxfail


def _may_fail(item: pytest.Item) -> bool:
    """Return whether the mark xfail of a test covers a failure by this plugin."""
    mark = item.get_closest_marker("xfail")
    raises = None if mark is None else mark.kwargs.get("raises")
    return raises is None or issubclass(pytest.fail.Exception, raises)
