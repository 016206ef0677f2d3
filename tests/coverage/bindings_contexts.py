"""Label coverage data with the running test: a pytest plugin for coverage runs.

The label is the context of coverage.py, in the test process and in all child processes.
"""

import os

import coverage
import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    file = os.environ["BINDINGS_COVERAGE_TEST"]
    name = item.nodeid.partition("[")[0].partition("::")[2]
    context = f"{file}|{name}"
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(name)
    os.environ["BINDINGS_COVERAGE_TEST"] = context
    try:
        return (yield)
    finally:
        os.environ["BINDINGS_COVERAGE_TEST"] = file
        if measured is not None:
            measured.switch_context("")
