"""Measure and judge the memory of tests, for the marks, fixture and option of pytest_memrt.

A test with a mark or the fixture, or any test under --memrt, is measured from setup to teardown.
The test has a scope of its own. Fixtures that outlive the test are set up outside of this scope.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from memrt import _memrt
from memrt._pytest_plugin.marks import Ignore, check_marks, has_mark, is_judged_late
from memrt._pytest_plugin.outcomes import fail_report
from memrt._pytest_plugin.summary import figures_of, summary_lines
from memrt._pytest_plugin.verdicts import collect_garbage, judge, judge_peak
from memrt._stats.snapshot import Stats
from memrt._tracking.live import LiveBuffer
from memrt._tracking.measure import Measure, spare_scope

__all__ = ["Ignore", "Measuring", "Track", "check_marks", "track_of"]

_measure_key = pytest.StashKey[Measure]()
_failed_key = pytest.StashKey[bool]()
_verdict_key = pytest.StashKey[str | None]()  # why the test fails after its teardown
_call_key = pytest.StashKey[pytest.TestReport | None]()  # report of the call phase
_peak_key = pytest.StashKey[int]()  # peak of the call phase


class Track:
    """Memory of the running test: allocations from memrt by the test and its fixtures."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def live(self) -> list[LiveBuffer]:
        """Return the live buffers of the test, oldest first."""
        return self._measure.live()

    @property
    def stats(self) -> Stats:
        """Statistics since the start of the setup of the test."""
        return self._measure.stats

    @property
    def peak(self) -> int:
        """Most bytes in use at once during the body of the test, above the bytes at its start."""
        return self._measure.peak


def track_of(item: pytest.Item) -> Track:
    """Return the memory of a measured test; fail the test if it is not measured."""
    if _measure_key not in item.stash:
        pytest.fail(
            "memrt_track must be an argument of the test or of a fixture:"
            " request.getfixturevalue() requests the fixture too late",
            pytrace=False,
        )
    return Track(item.stash[_measure_key])


class Measuring:
    """Plugin that measures tests, and with --memrt shows the tests that use most memory."""

    def __init__(self, config: pytest.Config) -> None:
        self._all: bool = config.getoption("memrt")
        self._top: int = config.getoption("memrt_top")
        self._figures: dict[str, dict[str, int]] = {}
        self._measure: Measure | None = None
        self._held: pytest.TestReport | None = None  # report of a call phase, not logged yet
        self._spare = spare_scope()
        self._tracking: int | None = None

    def _keep_call_stacks(self) -> None:
        """Keep the recorded call stacks from test to test, with an outer block of tracking.

        The end of the last block of tracking drops the call stacks. The outer block uses the
        present settings of tracking, and so changes nothing else."""
        if self._tracking is None:
            self._tracking = _memrt.tracking_open(_memrt.tracking_get())

    def pytest_unconfigure(self) -> None:
        if self._tracking is not None:
            _memrt.tracking_close(self._tracking)
            self._tracking = None

    @pytest.hookimpl
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test that is judged after its teardown, and report the test after the verdict.

        The test therefore has one outcome. Other plugins that run tests, such as plugins that
        repeat tests, have precedence."""
        if not is_judged_late(item):
            return None
        if self._run_other_hooks(item, nextitem):
            return True
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run_other_hooks(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Call the hook implementations between this plugin and pytest's own runner.

        Returns whether one of these ran the test."""
        runner = item.config.pluginmanager.getplugin("runner")
        arguments = {"item": item, "nextitem": nextitem}
        implementations = iter(reversed(item.ihook.pytest_runtest_protocol.get_hookimpls()))
        for each in implementations:
            if each.plugin is self:
                break
        for each in implementations:
            if each.plugin is runner or each.wrapper or each.hookwrapper:
                continue
            if each.function(*(arguments[name] for name in each.argnames)) is not None:
                return True
        return False

    def _is_measured(self, item: pytest.Item) -> bool:
        return self._all or has_mark(item) or _wants_buffers(item)

    def _new_measure(self, item: pytest.Item) -> Measure:
        item.stash[_failed_key] = False  # an earlier run of the test may have set the keys
        item.stash[_verdict_key] = None
        item.stash[_call_key] = None
        wants_buffers = _wants_buffers(item)
        if wants_buffers:
            self._keep_call_stacks()
        return Measure(item.name, wants_buffers, self._spare)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        if self._is_measured(item):
            self._measure = item.stash[_measure_key] = self._new_measure(item)
            self._measure.enter()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Exclude fixtures that outlive the test from the measure of the test."""
        measure = self._measure
        if measure is None or fixturedef.scope == "function":
            return (yield)
        self._measure = None  # also for the fixtures that this fixture requests
        measure.leave()
        try:
            return (yield)
        finally:
            measure.enter()
            self._measure = measure

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        if self._measure is None:
            return (yield)
        self._measure.restart_peak()
        try:
            yield
        finally:
            if self._all:
                item.stash[_peak_key] = self._measure.peak
        judge_peak(item, self._measure)
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        measure = self._measure
        if measure is None:
            return (yield)
        try:
            yield
        finally:
            self._measure = None
            measure.leave(is_last=True)
        _forget_test(item)
        if not item.stash[_failed_key]:  # the traceback of a failure keeps the test's objects alive
            is_clean = collect_garbage(item, measure)
            item.stash[_verdict_key] = None if is_clean else judge(item, measure)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if _measure_key not in item.stash:
            return report
        if call.excinfo is not None and call.when != "teardown":
            item.stash[_failed_key] = True
        if report.when == "call":
            item.stash[_call_key] = self._held = report
        if report.when == "teardown":
            verdict, called = item.stash[_verdict_key], item.stash[_call_key]
            item.stash[_call_key] = item.stash[_verdict_key] = None
            if verdict is not None:
                held = called if called is self._held else None
                fail_report(item, held or report, verdict)
            if _peak_key in item.stash:
                # xdist's workers send the figures with the report.
                stats, peak = item.stash[_measure_key].stats, item.stash[_peak_key]
                vars(report)["memrt"] = figures_of(stats, peak, item.stash[_failed_key])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report is self._held:  # the report is logged, and must not change any more
            self._held = None
        figures = vars(report).get("memrt")
        if figures is not None:
            self._figures[report.nodeid] = figures

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._all and self._figures:
            terminalreporter.section("memrt: the heaviest tests")
            for line in summary_lines(self._figures, self._top):
                terminalreporter.line(line)


def _wants_buffers(item: pytest.Item) -> bool:
    """Return whether to track live buffers, for the marks on leaks and growth and the fixture.

    The summary of --memrt and the mark on peaks need no tracking.
    """
    return is_judged_late(item) or "memrt_track" in getattr(item, "fixturenames", ())


def _forget_test(item: pytest.Item) -> None:
    """Drop the arguments and the class instance that pytest keeps beyond the teardown of a test.

    pytest creates both again when the test runs again."""
    (getattr(item, "funcargs", None) or {}).clear()
    instance = vars(item).get("_instance")
    method = vars(item).get("_obj")
    if instance is not None and getattr(method, "__self__", None) is instance:
        for name in ("_obj", "_instance"):
            vars(item).pop(name, None)
