"""Measure and judge the memory of tests, for the marks, fixture and option of pytest_memrt.

A test with a mark or the fixture, or any test under --memrt, is measured from setup to teardown.
Each measured test has its own scope. Fixtures of a class, module or session are set up outside.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from memrt import _memrt
from memrt._pytest_plugin.lines import Lines
from memrt._pytest_plugin.marks import (
    Ignore,
    check_marks,
    is_judged_late,
    marks_of,
    set_default_marks,
)
from memrt._pytest_plugin.outcomes import fail_report
from memrt._pytest_plugin.report import Report, append_step_summary
from memrt._pytest_plugin.summary import Figures, TopPeaks, figures_of, summary_lines
from memrt._pytest_plugin.verdicts import (
    judge,
    judge_peak,
    judge_process_peak,
    start_process_peak,
)
from memrt._stats.snapshot import Stats
from memrt._tracking.live import LiveBuffer
from memrt._tracking.measure import Measure, Measures

__all__ = ["Ignore", "Measuring", "Track", "check_marks", "set_default_marks", "track_of"]


class _Record:
    """State of one run of a measured test."""

    __slots__ = ("call", "has_failed", "line", "measure", "peak", "verdict")

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.has_failed = False
        self.verdict: str | None = None  # why the test fails after its teardown
        self.call: pytest.TestReport | None = None  # report of the call phase
        self.peak: int | None = None  # peak of the call phase
        self.line: str | None = None  # heaviest source line of the call phase


_record_key = pytest.StashKey[_Record]()


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
    record = item.stash.get(_record_key, None)
    if record is None:
        pytest.fail(
            "memrt_track must be an argument of the test or of a fixture:"
            " request.getfixturevalue() requests the fixture too late",
            pytrace=False,
        )
    return Track(record.measure)


class Measuring:
    """Plugin that measures tests, and with --memrt shows the tests that use most memory."""

    def __init__(self, config: pytest.Config) -> None:
        folder: str | None = config.getoption("memrt_report")
        self._report = None if folder is None else Report(folder)
        self._all: bool = config.getoption("memrt") or self._report is not None
        self._top: int = config.getoption("memrt_top")
        self._figures: Figures = {}
        self._peaks = TopPeaks(0 if self._report is not None else self._top)
        self._lines = Lines()
        self._measure: Measure | None = None
        self._held: pytest.TestReport | None = None  # report of a call phase, not logged yet
        self._series = Measures("tests")
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

        The test therefore has one outcome. Other plugins with this hook, for example for
        repetitions, have precedence."""
        if not is_judged_late(marks_of(item)):
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

    def _new_measure(self, item: pytest.Item) -> Measure | None:
        """Return a measure for a test, or None if the test is not measured.

        The marks on leaks and growth and the fixture need tracking of live buffers. The summary of
        --memrt and the mark on peaks do not."""
        marks = marks_of(item)
        has_fixture = "memrt_track" in getattr(item, "fixturenames", ())
        if not (self._all or marks or has_fixture):
            return None
        is_tracked = has_fixture or is_judged_late(marks)
        if is_tracked:
            self._keep_call_stacks()
        return self._series.new(item.name, tracked=is_tracked)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        self._measure = self._new_measure(item)
        if self._measure is not None:
            item.stash[_record_key] = _Record(self._measure)
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
        process = start_process_peak(item)
        if self._all:
            self._keep_call_stacks()
            self._lines.begin()
        try:
            yield
        finally:
            if self._all:
                record = item.stash[_record_key]
                record.peak = self._measure.peak
                record.line = self._lines.end(is_wanted=self._peaks.add(record.peak))
        judge_peak(item, self._measure)
        judge_process_peak(item, self._measure, process)
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
        record = item.stash[_record_key]
        if not record.has_failed:  # the traceback of a failure keeps the test's objects alive
            record.verdict = judge(item, measure)
        if record.verdict is not None and self._report is not None:
            record.verdict += f"\n{self._report.dump(item.nodeid)}"
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        record = item.stash.get(_record_key, None)
        if record is None:
            return report
        if call.excinfo is not None and call.when != "teardown":
            record.has_failed = True
        if report.when == "call":
            record.call = self._held = report
        if report.when == "teardown":
            del item.stash[_record_key]  # the statistics of a scope take longer with each scope
            self._finish(item, record, report)
        return report

    def _finish(self, item: pytest.Item, record: _Record, report: pytest.TestReport) -> None:
        """Bring the verdict and the figures of a test into its reports."""
        if record.verdict is not None:
            held = record.call if record.call is self._held else None
            fail_report(item, held or report, record.verdict)
        if record.peak is not None:
            # xdist's workers send the figures with the report.
            figures = figures_of(record.measure.stats, record.peak, record.has_failed)
            vars(report)["memrt"] = {**figures, "line": record.line}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report is self._held:  # the report is logged, and must not change any more
            self._held = None
        figures = vars(report).get("memrt")
        if figures is not None:
            self._figures[report.nodeid] = figures

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._all and self._figures:
            terminalreporter.section("memrt: the heaviest tests")
            lines = summary_lines(self._figures, self._top)
            if self._report is not None:
                lines.append(self._report.write(self._figures))
            failure = append_step_summary(self._figures, self._top)
            for line in [*lines, *([] if failure is None else [failure])]:
                terminalreporter.line(line)


def _forget_test(item: pytest.Item) -> None:
    """Drop the arguments and the class instance that pytest keeps beyond the teardown of a test.

    pytest creates both again when the test runs again."""
    (getattr(item, "funcargs", None) or {}).clear()
    instance = vars(item).get("_instance")
    method = vars(item).get("_obj")
    if instance is not None and getattr(method, "__self__", None) is instance:
        for name in ("_obj", "_instance"):
            vars(item).pop(name, None)
