"""Rules and fixtures of all Python tests: a time limit, quick collections, listed reasons for skips
in CI, and calls without memory.

pytest-timeout fails a test that exceeds the limit, and prints the stacks of all threads. The plugin
needs the GIL for both. If a test holds the GIL forever, the faulthandler watchdog prints the stacks
from a C thread and ends the process. Environments without pytest-timeout have only the watchdog.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import os
import re

import pytest

HAS_TIMEOUT_PLUGIN = importlib.util.find_spec("pytest_timeout") is not None


def pytest_addoption(parser):
    parser.addini(
        "watchdog_grace",
        "Seconds beyond the time limit until a watchdog ends the process of a test",
        default="60",
    )
    if not HAS_TIMEOUT_PLUGIN:
        parser.addini("timeout", "Time limit of a test in seconds; 0: no limit")
        parser.addini("timeout_method", "Ignored without pytest-timeout")
    parser.addini(
        "allowed_skips",
        "Reasons that allow a skip in CI, as regular expressions",
        type="linelist",
    )


def pytest_configure(config):
    if not HAS_TIMEOUT_PLUGIN:
        config.addinivalue_line("markers", "timeout(seconds): limit of one test")
    config.pluginmanager.register(Watchdog(config))
    if os.environ.get("CI"):
        config.pluginmanager.register(SkipGuard(config.getini("allowed_skips")))


class Watchdog:
    """End the process of a test that exceeds the time limit and holds the GIL."""

    def __init__(self, config) -> None:
        self.stderr = os.dup(2)  # a copy: pytest captures the output of tests
        self.default = config.getoption("timeout", None) or config.getini("timeout") or 0
        self.grace = float(config.getini("watchdog_grace"))  # so pytest-timeout acts first

    def limit_of(self, item) -> float:
        marker = item.get_closest_marker("timeout")
        if marker is None:
            return float(self.default)
        return float(marker.args[0] if marker.args else marker.kwargs.get("timeout", self.default))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        limit = self.limit_of(item)
        if limit > 0:
            faulthandler.dump_traceback_later(limit + self.grace, exit=True, file=self.stderr)
        yield
        faulthandler.cancel_dump_traceback_later()

    def pytest_unconfigure(self) -> None:
        os.close(self.stderr)


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Freeze all objects that exist before the tests of a file, so that gc.collect() skips them.

    Fixtures collect twice for each test. Without the freeze, half of the time of a run is theirs.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def call_without_memory():
    """Return a function that calls a function while one request of Python's allocators fails: the
    request after the first `number` requests. The result is the type of the exception, or None.
    """
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi")

    def call(function, number: int) -> type[Exception] | None:
        testcapi.set_nomemory(number, number + 1)
        try:
            function()
        except Exception as error:
            return type(error)
        finally:
            testcapi.remove_mem_hooks()
        return None

    return call


class SkipGuard:
    """Collect the skips without a listed reason, and fail the run if there are any."""

    def __init__(self, allowed: list[str]) -> None:
        self.allowed = allowed
        self.unlisted: list[str] = []

    def judge(self, report) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not any(re.fullmatch(pattern, reason) for pattern in self.allowed):
            self.unlisted.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report) -> None:
        self.judge(report)

    def pytest_collectreport(self, report) -> None:
        self.judge(report)

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if self.unlisted:
            terminalreporter.section("skips missing in allowed_skips of pyproject.toml")
            for line in self.unlisted:
                terminalreporter.line(line)

    def pytest_sessionfinish(self, session) -> None:
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
