"""What holds for all Python tests: where CI is set, a skip fails unless its reason is listed."""

from __future__ import annotations

import os
import re

import pytest


def pytest_addoption(parser):
    parser.addini(
        "allowed_skips",
        "Reasons for which a test may be skipped in CI, as regular expressions",
        type="linelist",
    )


def pytest_configure(config):
    if os.environ.get("CI"):
        config.pluginmanager.register(SkipGuard(config.getini("allowed_skips")))


class SkipGuard:
    """Collects the skips that nobody allowed, and fails the run for them."""

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
            terminalreporter.section("skips that allowed_skips in pyproject.toml does not list")
            for line in self.unlisted:
                terminalreporter.line(line)

    def pytest_sessionfinish(self, session) -> None:
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
