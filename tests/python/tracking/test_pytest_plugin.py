"""memrt's pytest marks, fixture and option, as users see them."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from xml.etree import ElementTree

import memrt
import pytest
from gil import needs_gil
from memrt import _memrt
from memrt._process import smaps
from memrt._profile.recording import loads
from memrt._pytest_plugin.lines import Lines
from memrt._pytest_plugin.summary import TopPeaks, heaviest

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

HEAD = """
import gc
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import memrt
import numpy as np
import pytest

kept = []
"""

WITHOUT_HYPOTHESIS = ("-p", "no:hypothesispytest")  # the plugin takes most of a short run
OPTIONS = ("-p", "no:cacheprovider", *WITHOUT_HYPOTHESIS, "--strict-markers")


@pytest.fixture
def run(pytester):
    """Return a function that runs a test file in the same process and returns the result. The file
    must leave no memory behind.
    """

    def run_here(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(HEAD + text)
        return pytester.runpytest_inprocess(*OPTIONS, *options)

    return run_here


@pytest.fixture
def apart(pytester):
    """Return a function that runs a test file in a subprocess and returns the result."""

    def run_apart(text: str, *options: str, conftest: str = "") -> pytest.RunResult:
        pytester.makepyfile(HEAD + text)
        pytester.makeconftest(conftest)
        return pytester.runpytest_subprocess(*OPTIONS, *options, timeout=60)

    return run_apart


def table(result: pytest.RunResult) -> dict[str, list[str]]:
    """Return the rows of the terminal summary by name of the test: peak, total, blocks, left."""
    found = {}
    for line in result.outlines:
        amount = r" *([\d.]+ \w+)"
        row = re.fullmatch(rf"{amount}{amount} +([\d,]+)(?:{amount}| +failed)  \S+::(\S+)", line)
        if row is not None:
            found[row[5]] = list(row.groups()[:4])
    return found


def heaviest_lines(result: pytest.RunResult) -> dict[str, str]:
    """Return the function of the heaviest line by name of the test, from the terminal summary."""
    found = {}
    for row, line in zip(result.outlines, result.outlines[1:], strict=False):
        match = re.fullmatch(r" +most from (\w+) at test_\w+\.py:\d+", line)
        if match is not None:
            found[row.rpartition("::")[2]] = match[1]
    return found


# --- No effect without a request. ---


def test_unused_plugin_imports_neither_memrt_nor_numpy(pytester):
    pytester.makepyfile("import sys\ndef test(): assert not {'memrt', 'numpy'} & set(sys.modules)")
    options = (*WITHOUT_HYPOTHESIS, "-p", "no:run-parallel")  # a plugin that imports NumPy
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)


def test_marks_have_no_effect_on_unmarked_tests(run):
    result = run(
        """
@pytest.mark.memrt_no_leaks
def test_marked():
    assert memrt.handler_name() == "memrt"
    assert memrt.current_scope() is not None

def test_plain():
    assert not memrt.is_managed(np.ones(10))
    assert memrt.current_scope() is None
    assert memrt.debug.live() == []
    assert "_threads" not in threading.Thread.start.__code__.co_filename
"""
    )
    result.assert_outcomes(passed=2)


# --- Leaks. ---


@needs_gil
def test_buffer_that_outlives_its_test_is_a_leak(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
def test_keeps():
    assert memrt.current_scope().path == ("test 1: test_keeps",)
    kept.append(np.ones(1_000_000))
    kept.append(memrt.alloc(1000, name="lookup table"))

@pytest.mark.memrt_no_leaks
def test_drops():
    np.ones(1_000_000)
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_keeps _*",
            "memrt: 2 buffers leaked by this test, 7.6 MiB",
            "  7.6 MiB in 1 buffer allocated in test_keeps at *.py:*",
            "      buffer: 7.6 MiB, * old, refcount 1, policy default",
            "      └─ ndarray float64 (1000000,), owner of the block",
            "         └─ *.kept?0?",
            "  1000 B in 1 buffer allocated in test_keeps at *.py:*",
            "      buffer: 'lookup table', 1000 B, * old, refcount 1, policy default",
        ]
    )


@needs_gil
def test_leaks_of_a_line_are_reported_once_with_calls_and_scope(apart):
    result = apart(
        """
def load():
    kept.append(np.ones(1000))

@pytest.mark.memrt_no_leaks
def test_many():
    with memrt.scope("read"), memrt.scope("decode"):
        for _ in range(50):
            load()
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "memrt: 50 buffers leaked by this test, 390.6 KiB",
            "  390.6 KiB in 50 buffers allocated in load at *.py:*",
            "      through ones at numpy/*core/numeric.py:*",
            "      called from test_many at *.py:*",
            "      50 x `*.kept?...?`",
            "      largest buffer: 7.8 KiB, * old, refcount 1, policy default, scope read/decode",
        ],
        consecutive=True,
    )


def test_suppressed_buffer_is_not_a_leak(apart):
    result = apart(
        """
memrt.debug.suppress_leaks("tables at *", "tables of a test")

def tables():
    kept.append(np.ones(1_000_000))

@pytest.mark.memrt_no_leaks
def test_leaks():
    tables()

@pytest.mark.memrt_limit_growth("1 MB")
def test_growth():
    tables()
    kept.append(np.ones(100_000))
    kept.append(np.ones(100_000))
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["memrt: 1.5 MiB left in use, more than memrt_limit_growth allows: 976.6 KiB"]
    )
    result.stdout.no_fnmatch_line("*allocated in tables*")


def test_suppressed_buffers_are_not_growth(apart):
    result = apart(
        """
memrt.debug.suppress_leaks("tables at *", "tables of a test")

def tables():
    kept.append(np.ones(1_000_000))
    kept.append(memrt.alloc(5000))

@pytest.mark.memrt_limit_growth(0)
def test_suppressed_only():
    tables()

@pytest.mark.memrt_limit_growth(1000)
def test_suppressed_and_at_the_limit():
    tables()
    kept.append(memrt.alloc(1000))

@pytest.mark.memrt_limit_growth(1000)
def test_suppressed_and_above_the_limit():
    tables()
    kept.append(memrt.alloc(1001))
"""
    )
    said = result.stdout.str()
    for name in ("test_suppressed_only", "test_suppressed_and_at_the_limit"):
        assert f"_ {name} _" not in said
    result.stdout.fnmatch_lines(
        [
            "*_ test_suppressed_and_above_the_limit _*",
            "memrt: 1001 B left in use, more than memrt_limit_growth allows: 1000 B",
        ]
    )


def test_cyclic_garbage_is_not_a_leak(run):
    result = run(
        """
@pytest.mark.memrt_no_leaks
def test_cycle():
    cycle = [np.ones(1000)]
    cycle.append(cycle)
"""
    )
    result.assert_outcomes(passed=1)


def test_buffer_that_a_test_fixture_keeps_is_a_leak(apart):
    result = apart(
        """
@pytest.fixture
def data():
    yield np.ones(1000)

@pytest.fixture
def forgetful():
    kept.append(np.ones(2000))
    return kept[-1]

@pytest.mark.memrt_no_leaks
def test_right(data): pass

@pytest.mark.memrt_no_leaks
def test_wrong(forgetful): pass
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["memrt: 1 buffer leaked by this test, 15.6 KiB"])


@pytest.mark.parametrize("scope", ["class", "session"])
@pytest.mark.parametrize("environment", ["0", "1"])
def test_buffers_of_wider_fixtures_are_not_leaks_of_a_test(apart, scope, environment, monkeypatch):
    monkeypatch.setenv("MEMRT_TRACK", environment)
    result = apart(
        f"""
@pytest.fixture(scope={scope!r})
def inner():
    return memrt.zeros(1000)

@pytest.fixture(scope={scope!r})
def data(inner):
    assert memrt.current_scope() is None
    return memrt.zeros(1000)

@pytest.fixture
def own(data):
    assert memrt.current_scope() is not None
    return data + 1

@pytest.mark.memrt_no_leaks
@pytest.mark.memrt_limit_growth(0)
def test(own, data):
    assert memrt.is_managed(own)
""",
    )
    result.assert_outcomes(passed=1)


def test_leaks_can_be_ignored_by_name_policy_or_function(apart):
    result = apart(
        """
def keep():
    kept.append(memrt.alloc(1000, name="cache of plans"))
    kept.append(memrt.alloc(3000, policy=memrt.Policy(name="tables")))

@pytest.mark.memrt_no_leaks(ignore=["cache*", "tables"])
def test_by_patterns(): keep()

@pytest.mark.memrt_no_leaks(ignore=lambda buffer: buffer.nbytes < 5000)
def test_by_function(): keep()

@pytest.mark.memrt_no_leaks(ignore="cache*")
def test_by_pattern(): keep()
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["memrt: 1 buffer leaked by this test, 2.9 KiB"])


def test_failed_test_with_a_live_buffer_has_no_extra_error(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
@pytest.mark.memrt_limit_growth(0)
def test():
    array = np.ones(1000)
    assert array.sum() == 0
"""
    )
    result.assert_outcomes(failed=1)


def test_thread_of_a_test_counts_and_other_threads_do_not(apart):
    result = apart(
        """
wanted, made, ended = threading.Event(), threading.Event(), threading.Event()

def elder():
    wanted.wait(30)
    kept.append(memrt.alloc(1000))
    made.set()
    ended.wait(30)

@pytest.fixture(scope="module")
def pool():
    thread = threading.Thread(target=elder)
    thread.start()
    yield
    ended.set()
    thread.join()

@pytest.mark.memrt_no_leaks
@pytest.mark.memrt_limit_growth(0)
def test_beside_another_thread(pool):
    wanted.set()
    assert made.wait(30)

@pytest.mark.memrt_no_leaks
def test_own():
    thread = threading.Thread(target=lambda: kept.append(np.ones(1_000_000)))
    thread.start()
    thread.join()
    assert "run" not in vars(thread)
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*_ test_own _*", "memrt: 1 buffer *7.6 MiB"])


# --- Limits. ---


def test_peak_above_the_limit_fails_the_test(run):
    result = run(
        """
@pytest.fixture
def large():
    return np.ones(10_000_000)

@pytest.mark.memrt_limit_peak("20 MB")
def test_in_place(large):
    large += 1
    np.ones(2_000_000)

@pytest.mark.memrt_limit_peak("20 MB")
def test_too_much(large):
    large + 1

@pytest.mark.memrt_limit_peak("1 MB")
def test_threads():
    def work(): np.ones(1_000_000)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

@pytest.mark.memrt_limit_peak("1 MB")
def test_pool():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(np.ones, 1_000_000).result()
"""
    )
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        ["memrt: 76.3 MiB in use at once, more than memrt_limit_peak allows: 19.1 MiB"]
    )


def test_growth_above_the_limit_fails_and_lists_the_buffers(apart):
    result = apart(
        """
@pytest.mark.memrt_limit_growth("1 MiB")
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test(count):
    kept.append(np.ones(count))
    del kept[0:-1]
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test?1000000? _*",
            "memrt: 7.6 MiB left in use, more than memrt_limit_growth allows: 1.0 MiB",
            "  7.6 MiB in 1 buffer allocated in test at *.py:*",
            "      buffer: 7.6 MiB, * old, refcount 1, policy default",
        ]
    )


def test_class_marks_apply_to_unittest_methods_and_set_up(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
@pytest.mark.memrt_limit_peak("1 MB")
class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = memrt.zeros(1_000_000)

    def setUp(self):
        self.data = np.ones(1000)

    def test_right(self):
        assert memrt.is_managed(self.data)

    def test_leak(self):
        kept.append(self.data)

    @pytest.mark.memrt_limit_peak("100 MB")
    def test_with_a_limit_of_its_own(self):
        np.ones(1_000_000)

    def test_too_much(self):
        np.ones(1_000_000)
"""
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*_ TestCase.test_leak _*"])


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (
            "memrt_limit_peak('much')",
            "size must be a number of bytes like 20000000, 20 MB or 512K, got 'much'",
        ),
        (
            "memrt_limit_peak('-1')",
            "size must be a number of bytes like 20000000, 20 MB or 512K, got '-1'",
        ),
        ("memrt_limit_peak(-1)", "limit must be 0 or more bytes, got -1"),
        ("memrt_limit_peak", "must have the form memrt_limit_peak(limit), got memrt_limit_peak()"),
        ("memrt_limit_process([])", "a text like '20 MB', got []"),
        ("memrt_limit_growth(1.5)", "a text like '20 MB', got 1.5"),
        ("memrt_limit_growth(True)", "a text like '20 MB', got True"),
        ("memrt_limit_growth(1, 2)", "(limit), got memrt_limit_growth(1, 2)"),
        ("memrt_no_leaks(ignore=3)", "ignore must be a pattern, a list of patterns or a function"),
        (
            "memrt_no_leaks(ignore=[3])",
            "ignore must be a pattern, a list of patterns or a function",
        ),
        ("memrt_no_leaks(limit=3)", "(ignore=...), got memrt_no_leaks(limit=3)"),
    ],
)
def test_bad_mark_arguments_are_a_usage_error(run, mark, why):
    result = run(f"@pytest.mark.{mark}\ndef test_it(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert "::test_it: mark " + mark.partition("(")[0] in line
    assert why in line


def test_limits_accept_numbers_and_units(apart):
    result = apart(
        """
@pytest.mark.parametrize("count", [
    pytest.param(count, marks=pytest.mark.memrt_limit_peak(limit))
    for limit in (20_000_000, "20 MB", "19.2MiB", "20M", "0.02 GB")
    for count in (2_490_000, 2_630_000)
])
def test(count):
    np.zeros(count)
"""
    )
    result.assert_outcomes(passed=5, failed=5)


# --- The fixture. ---


def test_memrt_track_reports_buffers_and_statistics_of_a_test(run):
    result = run(
        """
def test(memrt_track):
    large = np.zeros(1_000_000)
    half = large[::2].copy()
    del large
    named = memrt.alloc(100, name="a name")
    assert [(b.nbytes, b.name) for b in memrt_track.live()] == [(4_000_000, None), (100, "a name")]
    assert memrt_track.peak == 12_000_000
    assert memrt_track.stats.live == 4_000_100
    assert memrt_track.stats.total == 12_000_100

def test_another(memrt_track):
    assert memrt_track.live() == []
    assert memrt_track.stats.total == memrt_track.peak == 0
"""
    )
    result.assert_outcomes(passed=2)


def test_getfixturevalue_of_memrt_track_fails(run):
    result = run(
        """
def test(request):
    request.getfixturevalue("memrt_track")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["memrt_track must be an argument of the test or of a fixture*"])


def test_repeated_test_is_checked_again(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
def test():
    kept.append(np.zeros(1000))
    assert len(kept) == 2
""",
        conftest="""
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            item.ihook.pytest_runtest_logreport(report=report)
    return True
""",
    )
    result.assert_outcomes(failed=2)


# --- Policies, the summary, xdist and the limit of scopes. ---


def test_enabled_policy_stays_in_force_under_marks(apart):
    result = apart(
        """
@pytest.mark.memrt_limit_peak("1 MB")
def test():
    assert memrt.handler_name() == "memrt:mine"
    names = []
    thread = threading.Thread(target=lambda: names.append(memrt.handler_name(np.ones(10))))
    thread.start()
    thread.join()
    assert names == ["memrt:mine"]
    np.ones(1_000_000)
""",
        conftest="import memrt\nmemrt.enable(memrt.Policy(name='mine'))\n",
    )
    result.assert_outcomes(failed=1)


def test_tests_can_enable_and_disable_memrt(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
def test():
    memrt.enable(memrt.Policy(name="mine"))
    assert memrt.handler_name() == "memrt:mine"
    memrt.disable()
    assert memrt.handler_name() == "memrt"

@pytest.mark.memrt_no_leaks
def test_leaves_memrt_enabled():
    memrt.enable()

def test_after():
    assert memrt.handler_name() == "memrt"
    memrt.disable()
    assert not memrt.is_managed(np.ones(10))
"""
    )
    result.assert_outcomes(passed=3)


HEAVY = """
@pytest.mark.parametrize("megabytes", [1, 5, 3])
def test_parts(megabytes):
    both = np.zeros((megabytes, 2**20), "u1"), memrt.zeros((megabytes, 2**20), "u1")

def test_keeping():
    kept.append(np.zeros(2**20, "u1"))

def test_failing():
    array = np.zeros(2**21, "u1")
    raise AssertionError

@pytest.mark.skip
def test_skipped(): pass
"""


def test_summary_lists_the_heaviest_tests_first(apart):
    result = apart(HEAVY, "--memrt")
    assert list(table(result)) == [
        *("test_parts[5]", "test_parts[3]", "test_parts[1]", "test_failing", "test_keeping")
    ]
    assert table(result)["test_parts[5]"] == ["10.0 MiB", "10.0 MiB", "2", "0 B"]
    assert table(result)["test_keeping"] == ["1.0 MiB", "1.0 MiB", "1", "1.0 MiB"]
    assert table(result)["test_failing"] == ["2.0 MiB", "2.0 MiB", "1", None]
    assert heaviest_lines(result) == {
        **{f"test_parts[{n}]": "test_parts" for n in (1, 3, 5)},
        **{name: name for name in ("test_failing", "test_keeping")},
    }
    result.stdout.fnmatch_lines(["5 tests measured; 1 left 1.0 MiB in use"])
    assert list(table(apart(HEAVY, "--memrt", "--memrt-top=2"))) == [
        "test_parts[5]",
        "test_parts[3]",
    ]


def test_xdist_collects_summary_and_failures_of_its_workers(apart):
    alone = apart(HEAVY, "--memrt", "--memrt-top=0")
    marked = '\npytestmark = pytest.mark.memrt_limit_growth("1 KB")\n'
    result = apart(HEAVY + marked, "--memrt", "--memrt-top=0", "-n2")
    result.assert_outcomes(passed=3, failed=2, skipped=1)
    assert table(result) == table(alone)
    assert heaviest_lines(result) == heaviest_lines(alone) != {}
    result.stdout.fnmatch_lines(["memrt: 1.0 MiB left in use, more than *"])


def test_summary_needs_the_memrt_option(run):
    result = run("@pytest.mark.memrt_no_leaks\ndef test(): np.ones(10)\n")
    assert "heaviest" not in result.stdout.str()


def test_tests_beyond_the_scope_limit_are_still_measured(apart):
    result = apart(
        """
def test_keeping():
    kept.append(np.zeros(2**20, "u1"))

def test_dropping():
    np.zeros(2**21, "u1")
""",
        "--memrt",
        conftest="""
import memrt, pytest
from memrt._policy.scope import open_scope

@pytest.fixture(scope="session", autouse=True)
def many():
    held = []
    with pytest.raises(RuntimeError):
        while True:
            held.append(open_scope(None, str(len(held))))
    yield
""",
    )
    result.assert_outcomes(passed=2)
    assert table(result)["test_dropping"] == ["2.0 MiB", "2.0 MiB", "1", "0 B"]


def test_pytest_markers_lists_the_memrt_marks():
    command = [sys.executable, "-m", "pytest", "--markers", *OPTIONS]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    limits = [f"memrt_limit_{name}(limit)" for name in ("peak", "growth", "process")]
    for mark in ("memrt_no_leaks(ignore=())", *limits):
        assert f"@pytest.mark.{mark}" in shown


# --- One outcome. ---

OUTCOMES = """
@pytest.fixture
def data():
    cycle = [np.ones(1000)]
    cycle.append(cycle)
    yield cycle[0]
    del cycle

@pytest.mark.memrt_no_leaks
def test_fixture_holds_until_teardown(data): data + 1

@pytest.mark.memrt_no_leaks
class TestInstance:
    def test_attribute_of_the_instance(self): self.data = np.ones(1000)

@pytest.mark.memrt_no_leaks
@pytest.mark.memrt_limit_growth(10)
def test_leaks(data): kept.append(np.ones(1000))

@pytest.mark.memrt_no_leaks
@pytest.mark.xfail
def test_may_leak(): kept.append(np.ones(1000))

@pytest.mark.memrt_no_leaks
@pytest.mark.xfail(strict=True)
def test_must_leak(): kept.append(np.ones(1000))

@pytest.mark.memrt_no_leaks
@pytest.mark.xfail(raises=ValueError)
def test_may_raise_but_leaks(): kept.append(np.ones(1000))
"""


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["alone", "xdist"])
def test_leaking_test_has_a_single_outcome(apart, pytester, options):
    result = apart(OUTCOMES, "--junitxml=results.xml", *options)
    result.assert_outcomes(passed=2, failed=2, xfailed=2)
    result.stdout.no_fnmatch_line("*ERROR*")
    (suite,) = ElementTree.parse(pytester.path / "results.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "2", "errors": "0", "skipped": "2"}


def test_leak_stops_the_run_with_option_x(apart):
    text = "@pytest.mark.memrt_no_leaks\ndef test_{}(): kept.append(np.ones(9))\n"
    apart(text.format("one") + text.format("two"), "-x").assert_outcomes(failed=1)


def test_teardown_failure_is_reported_as_an_error(apart):
    result = apart(
        """
@pytest.fixture
def bad():
    yield
    raise KeyError("of the fixture")

@pytest.mark.memrt_no_leaks
def test(bad): kept.append(np.ones(9))
"""
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E * KeyError: 'of the fixture'"])


RERUNS = """
import pytest
from _pytest.runner import runtestprotocol

class Reruns:  # as pytest-rerunfailures repeats tests that fail
    def pytest_runtest_protocol(self, item, nextitem):
        for attempt in range(3):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            reports = runtestprotocol(item, nextitem=nextitem, log={log})
            failed = any(report.failed for report in reports)
            for report in reports:
                if report.failed and attempt < 2:
                    report.outcome = "rerun"
                if not {log}:
                    item.ihook.pytest_runtest_logreport(report=report)
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            if not failed or {log}:
                return True
        return True

    def pytest_report_teststatus(self, report):
        if report.outcome == "rerun":
            return "rerun", "R", "RERUN"

def pytest_configure(config):
    config.pluginmanager.register(Reruns(), "reruns")
"""
LEAKS_TWICE = """
@pytest.mark.memrt_no_leaks
def test_twice():
    if len(kept) < 2:
        kept.append(np.ones(9))

@pytest.mark.memrt_no_leaks
def test_always(): kept.append(np.ones(9))
"""


def test_plugin_that_reruns_tests_sees_the_leak(apart):
    result = apart(LEAKS_TWICE, conftest=RERUNS.format(log=False))
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "rerun": 4}


def test_early_report_turns_the_leak_into_a_teardown_error(apart):
    result = apart(LEAKS_TWICE, conftest=RERUNS.format(log=True))
    result.assert_outcomes(passed=2, errors=2)


# --- Cost. ---

COLLECTIONS = """
import gc

counts = [0, 0, 0]

def count(phase, info):
    counts[info["generation"]] += phase == "start"

def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()  # what pytest has does not count
    gc.set_threshold(100_000, 1000, 1000)
    gc.callbacks.append(count)

def pytest_unconfigure(config):
    gc.callbacks.remove(count)
    print("full collections:", counts[2])
"""


@pytest.mark.parametrize("mark", ["memrt_no_leaks", "memrt_limit_growth(0)", None])
def test_tests_with_little_garbage_cause_no_full_collection(apart, mark):
    text = """
@pytest.mark.parametrize("number", range(50))
class TestMany:
    def test(self, number):
        self.data = np.ones(30)
        cycle = [np.ones(30)]
        cycle.append(cycle)
"""
    if mark is not None:
        text = f"\npytestmark = pytest.mark.{mark}\n{text}"
    conftest = COLLECTIONS.replace("def pytest_unconfigure", "@hook\ndef pytest_unconfigure")
    conftest = "import pytest\nhook = pytest.hookimpl(tryfirst=True)\n" + conftest
    result = apart(text, *(["--memrt"] if mark is None else []), "-s", conftest=conftest)
    result.assert_outcomes(passed=50)
    (line,) = [line for line in result.outlines if line.startswith("full collections:")]
    assert int(line.split()[-1]) == 0


ENDING = """
import gc, sys, pytest
import numpy as np  # NumPy's import counts for no test

@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config):
    from memrt._tracking.measure import Measure
    gc.collect()
    print("measures:", sum(isinstance(each, Measure) for each in gc.get_objects()))
    loaders = {type(module.__loader__).__name__ for name, module in sys.modules.items()
               if name == "memrt" or name.startswith("memrt._tracking")}
    print("loaders:", *sorted(loaders))
"""


def test_finished_tests_keep_no_scope_and_memrt_is_not_rewritten(apart):
    text = "@pytest.mark.parametrize('number', range(20))\ndef test(number): np.ones(30)\n"
    result = apart(text, "--memrt", "-s", conftest=ENDING)
    result.assert_outcomes(passed=20)
    assert "measures: 0" in result.outlines
    assert "loaders: SourceFileLoader" in result.outlines


CALLS = """
import importlib.util, os, sys

package = os.path.dirname(importlib.util.find_spec("memrt").origin)
calls = 0

def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call") and frame.f_code.co_filename.startswith(package)

def pytest_collection_finish(session):
    sys.setprofile(count)

def pytest_unconfigure(config):
    sys.setprofile(None)
    print("calls:", calls)
"""


def test_measuring_a_test_takes_at_most_170_calls(apart):
    def count_calls(tests):
        text = f"@pytest.mark.parametrize('number', range({tests}))\ndef test(number): pass\n"
        result = apart(text, "--memrt", "-s", conftest=CALLS)
        result.assert_outcomes(passed=tests)
        (line,) = [line for line in result.outlines if line.startswith("calls:")]
        return int(line.split()[-1])

    calls = (count_calls(30) - count_calls(10)) / 20
    assert 50 < calls <= 170, calls


def test_live_reads_scopes_only_if_a_buffer_has_a_scope():
    called = []
    with memrt.debug.tracking():
        kept = memrt.alloc(10)
        rows = _memrt.live(lambda: called.append(None) or {})
        assert [row[1] for row in rows if row[8] == kept.address] == [10]
        assert called == []
        with memrt.scope("somewhere"):
            inside = memrt.alloc(20)
        rows = _memrt.live(lambda: called.append(None) or {})
    assert len(called) == 1
    assert inside.nbytes == 20
    with pytest.raises(TypeError, match="scopes must be a dict, got int"):
        _memrt.live(lambda: 5)


class Number:
    """A key with the hash of a number, whose comparison raises KeyError."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        raise KeyError("eq")


def test_live_passes_on_errors_of_the_scope_lookup():
    def fail():
        raise KeyError("scopes")

    with memrt.debug.tracking(), memrt.scope("somewhere") as scope:
        inside = memrt.alloc(20)
        with pytest.raises(KeyError, match="scopes"):
            _memrt.live(fail)
        number = _memrt.scope_info(scope._capsule)[0]
        with pytest.raises(KeyError, match="eq"):
            _memrt.live(lambda: {Number(number): "path"})
    assert inside.nbytes == 20


# --- Limits for all tests, and reports. ---

THREE = """
def test_small():
    np.ones(1000)

def test_large():
    np.ones(1_000_000)

@pytest.mark.memrt_limit_peak("10 MB")
def test_marked():
    np.ones(1_000_000)
"""


@pytest.mark.parametrize("by", ["option", "ini"])
def test_configured_peak_applies_to_tests_without_the_mark(run, pytester, by):
    if by == "ini":
        pytester.makepyprojecttoml("[tool.pytest.ini_options]\nmemrt_limit_peak = '1 MB'")
        result = run(THREE)
    else:
        result = run(THREE, "--memrt-limit-peak", "1 MB")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines("memrt: 7.6 MiB in use at once, more than memrt_limit_peak *")


def test_option_precedes_the_configured_limit(run, pytester):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nmemrt_limit_peak = '1 MB'")
    run(THREE, "--memrt-limit-peak", "20 MB").assert_outcomes(passed=3)


LEAKING = """
def test_leak():
    kept.append(np.ones(50_000))

def test_clean():
    np.ones(1000)

@pytest.mark.memrt_no_leaks(ignore="*")
@pytest.mark.memrt_limit_growth("1 MB")
def test_ignored():
    kept.append(np.ones(50_000))
"""


@pytest.mark.parametrize(
    "options",
    [
        ("--memrt-no-leaks",),
        ("-o", "memrt_no_leaks=true"),
        ("--memrt-limit-growth", "1 KiB"),
        ("-o", "memrt_limit_growth=1 KiB"),
    ],
    ids=" ".join,
)
def test_configured_leaks_and_growth_apply_to_all_tests(apart, options):
    result = apart(LEAKING, *options)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["memrt: *390.6 KiB*", "FAILED *::test_leak - *"])


NATIVE = """
@pytest.fixture
def large():
    return b"x" * 40_000_000

def test_python_objects(large):
    b"y" * 40_000_000

def test_arrays():
    np.ones(5_000_000)

def test_large_arguments(large):
    np.ones(100_000)

@pytest.mark.memrt_limit_process("100 MB")
def test_of_its_own_limit():
    bytearray(40_000_000)
"""


@pytest.mark.parametrize(
    "options",
    [
        ("--memrt-limit-process", "20 MB"),
        ("--memrt-limit-process", "20 MB", "-n", "2"),
        ("-o", "memrt_limit_process=20 MB"),
    ],
    ids=" ".join,
)
def test_process_above_the_limit_fails_with_its_largest_parts(run, apart, options):
    result = (apart if "-n" in options else run)(NATIVE, *options)
    result.assert_outcomes(passed=2, failed=2)
    head = "memrt: the process had ??.? MiB more in memory at once, more than memrt_limit_process"
    parts = "  the process after the test body: * MiB, most in * MiB, * MiB, * MiB"
    for name, peak in (("python_objects", "0 B"), ("arrays", "38.1 MiB")):
        arrays = f"  peak of memrt's arrays of the test: {peak}"
        lines = [f"*_ test_{name} _*", f"{head} allows: 19.1 MiB", arrays, parts]
        result.stdout.fnmatch_lines(lines)


def test_free_memory_of_the_process_does_not_hide_a_rise(run):
    result = run(
        """
import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
libc.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
libc.free.argtypes = (ctypes.c_void_p,)

def use_malloc():
    blocks = [libc.memset(libc.malloc(100_000), 1, 100_000) for _ in range(400)]
    for block in blocks:  # each below malloc's size for mappings
        libc.free(block)

@pytest.fixture
def free():
    use_malloc()
    table = np.ones(5_000_000)

pytestmark = pytest.mark.memrt_limit_process("20 MB")

def test_arrays(free):
    np.ones(5_000_000)

def test_malloc(free):
    use_malloc()
"""
    )
    result.assert_outcomes(failed=2)


@pytest.mark.parametrize("file", ["/no/such/file", "/dev/null"])
def test_process_limit_needs_a_system_that_restarts_peaks(run, monkeypatch, file):
    monkeypatch.setattr(smaps, "CLEAR_REFS", file)
    if file == "/dev/null":
        monkeypatch.setattr(smaps, "read_peak_resident", lambda: 0)
    result = run(NATIVE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"mark memrt_limit_process: {file} must restart the peak of the process, got *"
    result.stderr.fnmatch_lines(f"*::test_of_its_own_limit: {said}")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--memrt-limit-peak", "much"], "memrt_limit_peak: size must be a number of bytes *"),
        (["--memrt-limit-process", "-1 MB"], "memrt_limit_process: size must be a number of *"),
        (["-o", "memrt_limit_growth=-1"], "memrt_limit_growth: size must be a number of bytes *"),
        (
            ["--memrt-report", "/dev/null/d"],
            "--memrt-report must be a folder, got '/dev/null/d': *",
        ),
    ],
)
def test_bad_configuration_ends_the_run_with_its_name(apart, options, says):
    result = apart(THREE, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(f"ERROR: {says}")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_report_has_all_figures_and_a_recording_of_a_leak(apart, pytester, workers):
    result = apart(LEAKING, "--memrt-report", "out", "--memrt-no-leaks", *workers)
    result.assert_outcomes(passed=2, failed=1)
    folder = pytester.path / "out"
    (leak,) = folder.glob("*.memrt")
    assert leak.name.endswith(".py_test_leak.memrt")
    result.stdout.fnmatch_lines([f"recording of the live buffers: {leak}",
                                 f"figures of 3 tests: {folder}/tests.json"])  # fmt: skip
    (document,) = loads(leak.read_bytes())
    assert 400_000 in [row[1] for row in document["live"]["rows"]]
    content = json.loads((folder / "tests.json").read_text())
    assert (content["format"], content["version"]) == ("memrt tests", 1)
    figures = {row["test"].partition("::")[2]: row for row in content["tests"]}
    assert set(figures) == {"test_leak", "test_clean", "test_ignored"}
    assert figures["test_leak"]["peak"] >= figures["test_leak"]["left"] == 400_000
    assert figures["test_leak"]["line"].startswith("test_leak at test_")
    assert sorted(path.name for path in folder.iterdir()) == [leak.name, "tests.json"]
    apart(THREE, "--memrt-report", "out", *workers).assert_outcomes(passed=3)
    assert "test_large" in (folder / "tests.json").read_text()


def test_report_that_cannot_be_written_keeps_the_outcomes(apart, pytester):
    spoil = """
import pytest
@pytest.fixture(autouse=True)
def spoil(request):
    yield
    folder = request.config.rootpath / "out"
    if folder.is_dir():
        folder.rmdir()
"""
    result = apart(LEAKING, "--memrt-report", "out", "--memrt-no-leaks", conftest=spoil)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["memrt: no recording was written: No such file or directory",
                                 "memrt: no figures were written: No such file*"])  # fmt: skip


def test_step_summary_has_the_heaviest_tests(run, pytester, monkeypatch):
    path = pytester.path / "summary.md"
    path.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    names = THREE + "\n@pytest.mark.parametrize('text', ['<b>|`\\n'])\ndef test_named(text): pass\n"
    run(names, "--memrt", "--memrt-top", "3").assert_outcomes(passed=4)
    lines = path.read_text().splitlines()
    assert lines[:3] == ["before", "", "### memrt: the heaviest tests"]
    rows = [line for line in lines if line.startswith("| 7.6 MiB | 7.6 MiB | ")]
    assert len(rows) == 2
    cells = re.compile(r"::(\w+)</code> \| <code>(\w+) at \S+\.py:\d+</code> \|$")
    found = {cells.search(row).groups() for row in rows}
    assert found == {("test_large", "test_large"), ("test_marked", "test_marked")}
    assert lines[-1] == "4 tests measured"
    run(names, "--memrt", "--memrt-top", "0")
    (named,) = [line for line in path.read_text().splitlines() if "test_named" in line]
    assert "&lt;b&gt;&#124;`" in named
    assert named.count("|") == 7


def test_heaviest_line_is_unknown_without_allocations_or_memory(monkeypatch):
    lines = Lines()
    lines.begin()
    assert lines.end(is_wanted=True) is None
    lines.begin()
    kept = memrt.alloc(1_000_000)
    line = lines.end(is_wanted=True)
    assert line.startswith("test_heaviest_line_is_unknown_without_allocations_or_memory at ")

    def fail():
        raise MemoryError

    lines.begin()
    kept = memrt.alloc(kept.nbytes)
    monkeypatch.setattr(_memrt, "site_allocations", fail)
    assert lines.end(is_wanted=True) is None
    assert not _memrt.tracking_get()[0]


def test_line_that_is_not_wanted_belongs_to_no_later_test():
    def allocate_much():
        return memrt.alloc(2_000_000)

    lines = Lines()
    lines.begin()
    kept = [allocate_much()]
    assert lines.end(is_wanted=False) is None
    lines.begin()
    kept.append(memrt.alloc(1_000_000))
    line = lines.end(is_wanted=True)
    assert line.startswith("test_line_that_is_not_wanted_belongs_to_no_later_test at ")


@pytest.mark.parametrize("top", [0, 1, 3, 10, 200])
def test_all_tests_of_a_summary_are_among_the_top_peaks(top):
    peaks = random.Random(top).choices(range(40), k=100)
    found = TopPeaks(top)
    chosen = {test for test, peak in enumerate(peaks) if found.add(peak)}
    figures = {test: {"peak": peak} for test, peak in enumerate(peaks)}
    assert {test for test, _ in heaviest(figures, top)} <= chosen
    assert top not in (1, 3) or len(chosen) < 40


def test_step_summary_that_cannot_be_written_is_reported(run, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/no/such/folder/summary")
    result = run(THREE, "--memrt")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines("memrt: cannot append to GITHUB_STEP_SUMMARY: No such file *")


def test_runs_without_the_option_leave_the_step_summary_alone(run, pytester, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    run(THREE)
    assert not (pytester.path / "summary.md").exists()
