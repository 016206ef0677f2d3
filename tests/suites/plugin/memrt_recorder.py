"""Pytest plugin: puts NumPy on memrt and records the outcome of every test.

SUITE_OUT names the output file. The file gets a line of JSON per event, flushed at once, so the
events before a crash are not lost. With SUITE_ON_MEMRT=1 the plugin enables memrt, and counts
memrt's allocations and the tests that allocate. Otherwise the plugin does not import memrt.
"""

from __future__ import annotations

import json
import os
import random
import sys
import zlib

import numpy as np
import pytest

_BY_PLACE = ("PytestUnhandledThreadExceptionWarning", "PytestUnraisableExceptionWarning")


class Recorder:
    """Write the output file."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        self._outcome = ("passed", "")

    def write(self, **words: object) -> None:
        self._file.write(json.dumps(words) + "\n")
        self._file.flush()

    def pytest_collection_finish(self, session):
        self.write(collected=[item.nodeid for item in session.items])

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(test=report.nodeid, outcome="error", detail=str(report.longrepr))

    def pytest_runtest_setup(self, item):
        """Seed the random generators by test name, so that all sides get the same numbers."""
        seed = zlib.crc32(item.nodeid.encode())
        random.seed(seed)
        np.random.seed(seed)
        self._outcome = ("passed", "")

    def pytest_warning_recorded(self, warning_message):
        """Turn an exception in a thread or finalizer into an outcome; pytest only warns."""
        if warning_message.category.__name__ in _BY_PLACE and self._outcome[0] == "passed":
            first, *_ = str(warning_message.message).splitlines()
            self._outcome = ("passed, but raised elsewhere", first)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            word = "failed" if report.when == "call" else "error"
            self._outcome = (word, str(report.longrepr))
        elif report.skipped:
            self._outcome = ("xfailed" if hasattr(report, "wasxfail") else "skipped", "")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Write the outcome. The wrapper is outermost, because warnings arrive last in a test."""
        result = yield from self.run_test(item)
        outcome, detail = self._outcome
        self.write(test=item.nodeid, outcome=outcome, detail=detail)
        return result

    def run_test(self, item):
        return (yield)


class OnStock(Recorder):
    """Recorder for unmodified NumPy."""

    def pytest_sessionfinish(self):
        self.write(proof={"memrt": "memrt" in sys.modules})


class OnMemrt(Recorder):
    """Recorder for NumPy on memrt, with memrt's counters as proof."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        import memrt

        memrt.enable()
        self._memrt = memrt
        self._used = 0
        self._lost: list[str] = []

    def run_test(self, item):
        before = self._memrt.stats().alloc
        result = yield
        self._used += self._memrt.stats().alloc > before
        if self._memrt.handler_name() != "memrt":
            self._lost.append(item.nodeid)
        return result

    def pytest_sessionfinish(self):
        stats = self._memrt.stats()
        proof = {
            "memrt": True,
            "alloc": stats.alloc,
            "used": self._used,
            "lost": self._lost,
            "options": {option.name: str(option.value) for option in self._memrt.debug.options()},
        }
        self.write(proof=proof)


def pytest_configure(config):
    kind = OnMemrt if os.environ["SUITE_ON_MEMRT"] == "1" else OnStock
    config.pluginmanager.register(kind(os.environ["SUITE_OUT"]))
