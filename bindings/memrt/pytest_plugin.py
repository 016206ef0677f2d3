"""Measure and judge the memory of tests, for the marks, fixture and option of pytest_memrt.

A test with a mark or the fixture, or any test under --memrt, is measured from setup to teardown.
The test has a scope of its own. Fixtures that outlive the test are set up outside of this scope.
"""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from memrt import _memrt
from memrt._leaks.leaks import LeakGroup, amount, describe, group, unexpected
from memrt._stats.snapshot import Stats
from memrt._support.units import human_bytes, parse_bytes, plural
from memrt._tracking.live import LiveBuffer
from memrt._tracking.measure import Measure, spare_scope

_LATE = ("memrt_no_leaks", "memrt_limit_growth")  # judged after the teardown of a test
_UNEXPECTED_PASS = "[XPASS(strict)] "  # pytest's report of a test that should have failed
_WORTH_COLLECTING = 64 * 1024  # least bytes left for a collection that only serves the summary

Ignore = str | Sequence[str] | Callable[[LiveBuffer], bool]

_measure_key = pytest.StashKey[Measure]()
_failed_key = pytest.StashKey[bool]()
_verdict_key = pytest.StashKey[str | None]()  # why the test fails after its teardown
_call_key = pytest.StashKey[pytest.TestReport | None]()  # report of the call phase
_peak_key = pytest.StashKey[int]()  # peak of the call phase


# --- Marks. ---


def _limit(limit: int | str) -> int:
    """Return the argument of memrt_limit_peak or memrt_limit_growth in bytes."""
    if isinstance(limit, bool) or not isinstance(limit, (int, str)):
        raise TypeError(f"limit must be a number of bytes or a text like '20 MB', got {limit!r}")
    count = parse_bytes(limit)
    if count < 0:
        raise ValueError(f"limit must be 0 or more bytes, got {limit!r}")
    return count


def _ignore_filter(ignore: Ignore = ()) -> Callable[[LiveBuffer], bool]:
    """Return the argument of memrt_no_leaks as a function that selects buffers to ignore."""
    if callable(ignore):
        return ignore
    is_list = isinstance(ignore, (list, tuple, set, frozenset))
    patterns: list[Any] = list(ignore) if is_list else [ignore]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(
            f"ignore must be a pattern, a list of patterns or a function, got {ignore!r}"
        )
    return lambda buffer: any(
        fnmatch.fnmatchcase(text, pattern) for text in _texts(buffer) for pattern in patterns
    )


def _texts(buffer: LiveBuffer) -> list[str]:
    """Return the texts of a buffer that patterns of memrt_no_leaks may match."""
    return [buffer.name or "", buffer.policy, str(buffer.place or "")]


_MEANINGS: dict[str, Callable[..., Any]] = {
    "memrt_no_leaks": _ignore_filter,
    "memrt_limit_peak": _limit,
    "memrt_limit_growth": _limit,
}


_FORMS = {
    "memrt_no_leaks": "memrt_no_leaks(ignore=...)",
    "memrt_limit_peak": "memrt_limit_peak(limit)",
    "memrt_limit_growth": "memrt_limit_growth(limit)",
}


def _mark_text(mark: pytest.Mark) -> str:
    named = [f"{name}={value!r}" for name, value in mark.kwargs.items()]
    return f"{mark.name}({', '.join([*map(repr, mark.args), *named])})"


def _mark_value(item: pytest.Item, name: str) -> Any:
    """Return the meaning of the mark nearest to a test, or None without such a mark."""
    mark = item.get_closest_marker(name)
    if mark is None:
        return None
    return _MEANINGS[name](*mark.args, **mark.kwargs)


def _check_mark(mark: pytest.Mark) -> None:
    """Check the arguments of a mark.

    Raises
    ------
    TypeError, ValueError
        The arguments are invalid.
    """
    meaning = _MEANINGS[mark.name]
    try:
        inspect.signature(meaning).bind(*mark.args, **mark.kwargs)
    except TypeError:
        text = f"the mark must have the form {_FORMS[mark.name]}, got {_mark_text(mark)}"
        raise TypeError(text) from None
    meaning(*mark.args, **mark.kwargs)


def check_marks(items: Iterable[pytest.Item]) -> None:
    """Check the marks of all tests.

    Raises
    ------
    pytest.UsageError
        A mark has invalid arguments; the message names the first such test.
    """
    checked = set()  # all tests of a module share the object of a mark of the module
    for item in items:
        for mark in item.iter_markers():
            if mark.name not in _MEANINGS or id(mark) in checked:
                continue
            checked.add(id(mark))
            try:
                _check_mark(mark)
            except (TypeError, ValueError) as error:
                raise pytest.UsageError(f"{item.nodeid}: mark {mark.name}: {error}") from None


# --- The fixture. ---


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


# --- Verdicts. ---


def _judge_peak(item: pytest.Item, measure: Measure) -> None:
    limit = _mark_value(item, "memrt_limit_peak")
    if limit is None or measure.peak <= limit:
        return
    error = measure.stats.peak_error
    about = f" (error bound {human_bytes(error)})" if error else ""
    pytest.fail(
        f"memrt: {human_bytes(measure.peak)} in use at once{about}, "
        f"more than memrt_limit_peak allows: {human_bytes(limit)}",
        pytrace=False,
    )


def _judge_growth(item: pytest.Item, measure: Measure) -> str | None:
    limit = _mark_value(item, "memrt_limit_growth")
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
    is_ignored = _mark_value(item, "memrt_no_leaks")
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


def _judge(item: pytest.Item, measure: Measure) -> str | None:
    """Return the reason why a test fails after its teardown, or None if the test does not fail."""
    verdicts = [_judge_leaks(item, measure), _judge_growth(item, measure)]
    return "\n".join(verdict for verdict in verdicts if verdict is not None) or None


def _collect_garbage(item: pytest.Item, measure: Measure) -> bool:
    """Collect garbage while the verdict or the summary may change.

    Returns true if no memory is left that counts."""
    limit = _mark_value(item, "memrt_limit_growth")

    def is_enough() -> bool:
        live = measure.stats.live
        if limit is None and item.get_closest_marker("memrt_no_leaks") is None:
            return live < _WORTH_COLLECTING
        return (limit is None or live <= limit) and not _leaks(item, measure)

    return measure.collect(is_enough)


def _fail(item: pytest.Item, report: pytest.TestReport, verdict: str) -> None:
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


def _forget_test(item: pytest.Item) -> None:
    """Drop the arguments and the class instance that pytest keeps beyond the teardown of a test.

    pytest creates both again when the test runs again."""
    (getattr(item, "funcargs", None) or {}).clear()
    instance = vars(item).get("_instance")
    method = vars(item).get("_obj")
    if instance is not None and getattr(method, "__self__", None) is instance:
        for name in ("_obj", "_instance"):
            vars(item).pop(name, None)


# --- Hooks. ---


def _wants_buffers(item: pytest.Item) -> bool:
    """Return whether to track live buffers, for the marks on leaks and growth and the fixture.

    The summary of --memrt and the mark on peaks need no tracking.
    """
    by_mark = any(item.get_closest_marker(name) is not None for name in _LATE)
    return by_mark or "memrt_track" in getattr(item, "fixturenames", ())


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
        if not any(item.get_closest_marker(name) is not None for name in _LATE):
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
        by_mark = any(item.get_closest_marker(name) is not None for name in _MEANINGS)
        return self._all or by_mark or _wants_buffers(item)

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
        _judge_peak(item, self._measure)
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
            is_clean = _collect_garbage(item, measure)
            item.stash[_verdict_key] = None if is_clean else _judge(item, measure)
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
                _fail(item, held or report, verdict)
            if _peak_key in item.stash:
                vars(report)["memrt"] = _figures(item)  # xdist's workers send it with the report
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
            for line in _summary(self._figures, self._top):
                terminalreporter.line(line)


def _figures(item: pytest.Item) -> dict[str, int]:
    """Return the figures of a test for the summary.

    A failed test has no figure "left", because its traceback may keep objects alive.
    """
    stats = item.stash[_measure_key].stats
    figures = {"peak": item.stash[_peak_key], "total": stats.total, "blocks": stats.alloc}
    return figures if item.stash[_failed_key] else {**figures, "left": stats.live}


def _row(test: str, figures: dict[str, int]) -> str:
    peak, total = human_bytes(figures["peak"]), human_bytes(figures["total"])
    left = human_bytes(figures["left"]) if "left" in figures else "failed"
    return f"{peak:>11} {total:>11} {figures['blocks']:>9,} {left:>11}  {test}"


def _summary(figures: dict[str, dict[str, int]], top: int) -> list[str]:
    """Return the lines of a table of the tests with the highest peaks, and a line of totals.

    `top` is the most tests to list; 0 lists all tests.
    """
    heaviest = sorted(figures.items(), key=lambda entry: -entry[1]["peak"])
    leaving = [numbers["left"] for numbers in figures.values() if numbers.get("left", 0) > 0]
    return [
        f"{'peak':>11} {'total':>11} {'blocks':>9} {'left':>11}  test",
        *(_row(test, numbers) for test, numbers in heaviest[: top or None]),
        f"{len(figures)} tests measured; {len(leaving)} left {human_bytes(sum(leaving))} in use",
    ]
