"""The memory of tests: what marks, fixture and option of pytest_memrt measure and judge.

Each test that asks is measured from its setup to its teardown, in a scope of its own. Fixtures that
outlive it are made outside of that.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import pytest

from memrt._leaks import amount, describe, group, unexpected
from memrt._live import LiveBuffer
from memrt._measure import Measure, spare_scope
from memrt._stats import Stats
from memrt._units import human_bytes, parse_bytes, plural

Ignore = str | Sequence[str] | Callable[[LiveBuffer], bool]

_measure_key = pytest.StashKey[Measure]()
_failed_key = pytest.StashKey[bool]()
_peak_key = pytest.StashKey[int]()  # of the test itself


# --- Marks. ---


def _limit(limit: int | str) -> int:
    """The argument of memrt_limit_peak and memrt_limit_growth, in bytes."""
    if isinstance(limit, bool) or not isinstance(limit, (int, str)):
        raise TypeError(f"the limit is a number of bytes or a text like '20 MB', got {limit!r}")
    count = parse_bytes(limit)
    if count < 0:
        raise ValueError(f"the limit is no number below zero, got {limit!r}")
    return count


def _ignoring(ignore: Ignore = ()) -> Callable[[LiveBuffer], bool]:
    """The argument of memrt_no_leaks: whether a buffer does not count."""
    if callable(ignore):
        return ignore
    patterns = [ignore] if isinstance(ignore, str) else list(ignore)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(f"ignore is a pattern, several, or a function, got {ignore!r}")
    return lambda buffer: any(
        fnmatch.fnmatchcase(text, pattern) for text in _texts(buffer) for pattern in patterns
    )


def _texts(buffer: LiveBuffer) -> list[str]:
    """What the patterns of memrt_no_leaks may match."""
    return [buffer.name or "", buffer.policy, str(buffer.place or "")]


_MEANINGS: dict[str, Callable[..., Any]] = {
    "memrt_no_leaks": _ignoring,
    "memrt_limit_peak": _limit,
    "memrt_limit_growth": _limit,
}


def _meaning(item: pytest.Item, name: str) -> Any:
    """What the mark nearest to a test says; None without one."""
    mark = item.get_closest_marker(name)
    return None if mark is None else _MEANINGS[name](*mark.args, **mark.kwargs)


def check_marks(items: Iterable[pytest.Item]) -> None:
    """UsageError for the first test with a mark that means nothing."""
    for item in items:
        for name in _MEANINGS:
            try:
                _meaning(item, name)
            except (TypeError, ValueError) as error:
                raise pytest.UsageError(f"{item.nodeid}: mark {name}: {error}") from None


# --- The fixture. ---


class Track:
    """The memory of the running test: what it and its fixtures made in memrt's memory."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def live(self) -> list[LiveBuffer]:
        """The live buffers that were made, oldest first."""
        return self._measure.live()

    @property
    def stats(self) -> Stats:
        """All that was counted since the setup of the test began."""
        return self._measure.stats

    @property
    def peak(self) -> int:
        """Most bytes in use at once since the test itself began, above those at its begin."""
        return self._measure.peak


def track_of(item: pytest.Item) -> Track:
    """The memory of a test that is measured."""
    if _measure_key not in item.stash:
        pytest.fail(
            "memrt_track is an argument of the test or of its fixtures, to be known before the test"
            " begins: request.getfixturevalue() comes too late",
            pytrace=False,
        )
    return Track(item.stash[_measure_key])


# --- Verdicts. ---


def _judge_peak(item: pytest.Item, measure: Measure) -> None:
    limit = _meaning(item, "memrt_limit_peak")
    if limit is None or measure.peak <= limit:
        return
    error = measure.stats.peak_error
    about = f" (give or take {human_bytes(error)})" if error else ""
    pytest.fail(
        f"memrt: {human_bytes(measure.peak)} in use at once{about}, "
        f"more than memrt_limit_peak allows: {human_bytes(limit)}",
        pytrace=False,
    )


def _judge_growth(item: pytest.Item, measure: Measure) -> None:
    limit = _meaning(item, "memrt_limit_growth")
    if limit is None or measure.stats.live <= limit:
        return
    left = group(measure.live())
    growth = measure.stats.live - amount(each for each in left if each.lasting is not None)[1]
    if growth <= limit:
        return
    title = (
        f"memrt: {human_bytes(growth)} left in use, "
        f"more than memrt_limit_growth allows: {human_bytes(limit)}"
    )
    pytest.fail("\n".join([title, *describe(unexpected(left))]), pytrace=False)


def _judge_leaks(item: pytest.Item, measure: Measure) -> None:
    is_ignored = _meaning(item, "memrt_no_leaks")
    if is_ignored is None:
        return
    leaks = unexpected(group(each for each in measure.live() if not is_ignored(each)))
    if not leaks:
        return
    count, size = amount(leaks)
    title = f"memrt: {plural(count, 'buffer')} made by this test outlived it, {human_bytes(size)}"
    pytest.fail("\n".join([title, *describe(leaks)]), pytrace=False)


# --- Hooks. ---


def _wants_buffers(item: pytest.Item) -> bool:
    """Whether to track what lives; the marks and the fixture tell of it, the summary does not."""
    listing = ("memrt_no_leaks", "memrt_limit_growth")
    by_mark = any(item.get_closest_marker(name) is not None for name in listing)
    return by_mark or "memrt_track" in getattr(item, "fixturenames", ())


class Measuring:
    """Measures tests, and shows with --memrt which were the heaviest."""

    def __init__(self, config: pytest.Config) -> None:
        self._all: bool = config.getoption("memrt")
        self._top: int = config.getoption("memrt_top")
        self._figures: dict[str, dict[str, int]] = {}
        self._measure: Measure | None = None
        self._spare = spare_scope()

    def _is_measured(self, item: pytest.Item) -> bool:
        by_mark = any(item.get_closest_marker(name) is not None for name in _MEANINGS)
        return self._all or by_mark or _wants_buffers(item)

    def _new_measure(self, item: pytest.Item) -> Measure:
        item.stash[_failed_key] = False  # which may have been set, where a test runs again
        return Measure(item.name, _wants_buffers(item), self._spare)

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
        """What outlives the test is none of its."""
        measure = self._measure
        if measure is None or fixturedef.scope == "function":
            return (yield)
        self._measure = None  # also for the fixtures that this one asks for
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
            measure.leave()
        getattr(item, "funcargs", {}).clear()  # which pytest would keep a little longer
        measure.collect()
        if not item.stash[_failed_key]:  # whose traceback holds what the test held
            _judge_leaks(item, measure)
            _judge_growth(item, measure)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and call.when != "teardown":
            item.stash[_failed_key] = True
        if report.when == "teardown" and _peak_key in item.stash:
            vars(report)["memrt"] = _figures(item)  # goes with the report from xdist's workers
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        figures = vars(report).get("memrt")
        if figures is not None:
            self._figures[report.nodeid] = figures

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._all and self._figures:
            terminalreporter.section("memrt: the heaviest tests")
            for line in _summary(self._figures, self._top):
                terminalreporter.line(line)


def _figures(item: pytest.Item) -> dict[str, int]:
    """What the summary has of a test that ran. What a failed one left its traceback may hold."""
    stats = item.stash[_measure_key].stats
    figures = {"peak": item.stash[_peak_key], "total": stats.total, "blocks": stats.alloc}
    return figures if item.stash[_failed_key] else {**figures, "left": stats.live}


def _row(test: str, figures: dict[str, int]) -> str:
    peak, total = human_bytes(figures["peak"]), human_bytes(figures["total"])
    left = human_bytes(figures["left"]) if "left" in figures else "failed"
    return f"{peak:>11} {total:>11} {figures['blocks']:>9,} {left:>11}  {test}"


def _summary(figures: dict[str, dict[str, int]], top: int) -> list[str]:
    """A table of the tests with the highest peaks, `top` of them or all, and a line about all."""
    heaviest = sorted(figures.items(), key=lambda entry: -entry[1]["peak"])
    leaving = [numbers["left"] for numbers in figures.values() if numbers.get("left", 0) > 0]
    return [
        f"{'peak':>11} {'total':>11} {'blocks':>9} {'left':>11}  test",
        *(_row(test, numbers) for test, numbers in heaviest[: top or None]),
        f"{len(figures)} tests measured; {len(leaving)} left {human_bytes(sum(leaving))} in use",
    ]
