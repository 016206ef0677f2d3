"""The marks, the fixture and the option that pytest has from memrt, as its users meet them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

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

WITHOUT_HYPOTHESIS = ("-p", "no:hypothesispytest")  # which takes most of a short run
OPTIONS = ("-p", "no:cacheprovider", *WITHOUT_HYPOTHESIS, "--strict-markers")


@pytest.fixture
def run(pytester):
    """Runs a test file that leaves nothing behind; its result."""

    def run_here(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(HEAD + text)
        return pytester.runpytest_inprocess(*OPTIONS, *options)

    return run_here


@pytest.fixture
def apart(pytester):
    """The same in a process of its own."""

    def run_apart(text: str, *options: str, conftest: str = "") -> pytest.RunResult:
        pytester.makepyfile(HEAD + text)
        pytester.makeconftest(conftest)
        return pytester.runpytest_subprocess(*OPTIONS, *options, timeout=60)

    return run_apart


def table(result: pytest.RunResult) -> dict[str, list[str]]:
    """The rows of the terminal summary by the name of the test: peak, total, blocks, left."""
    found = {}
    for line in result.outlines:
        amount = r" *([\d.]+ \w+)"
        row = re.fullmatch(rf"{amount}{amount} +([\d,]+)(?:{amount}| +failed)  \S+::(\S+)", line)
        if row is not None:
            found[row[5]] = list(row.groups()[:4])
    return found


# --- Nothing without being asked. ---


def test_a_run_that_asks_for_nothing_imports_neither_memrt_nor_numpy(pytester):
    pytester.makepyfile("import sys\ndef test(): assert not {'memrt', 'numpy'} & set(sys.modules)")
    pytester.runpytest_subprocess(*WITHOUT_HYPOTHESIS).assert_outcomes(passed=1)


def test_tests_without_a_mark_are_left_alone_beside_those_with_one(run):
    result = run(
        """
@pytest.mark.memrt_no_leaks
def test_marked():
    assert memrt.handler_name() == "memrt"
    assert memrt.current_scope() is not None

def test_plain():
    assert not memrt.is_managed(np.ones(10))
    assert memrt.current_scope() is None
    assert memrt.live() == []
    assert "_threads" not in threading.Thread.start.__code__.co_filename
"""
    )
    result.assert_outcomes(passed=2)


# --- Leaks. ---


def test_a_buffer_that_outlives_its_test_is_a_leak(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
def test_keeps():
    kept.append(np.ones(1_000_000))
    kept.append(memrt.alloc(1000, name="lookup table"))

@pytest.mark.memrt_no_leaks
def test_drops():
    np.ones(1_000_000)
"""
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_keeps*",
            "memrt: 2 buffers made by this test outlived it, 7.6 MiB",
            "  7.6 MiB in 1 buffer born in test_keeps at *.py:*",
            "      it is 7.6 MiB, * old, refcount 1, policy default",
            "      └─ ndarray float64 (1000000,), owner of the block",
            "         └─ *.kept?0?",
            "  1000 B in 1 buffer born in test_keeps at *.py:*",
            "      it is 'lookup table', 1000 B, * old, refcount 1, policy default",
        ]
    )


def test_leaks_of_one_line_are_told_once_with_the_calls_and_the_scope_within_the_test(apart):
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
    result.stdout.fnmatch_lines(
        [
            "memrt: 50 buffers made by this test outlived it, 390.6 KiB",
            "  390.6 KiB in 50 buffers born in load at *.py:*",
            "      called from test_many at *.py:*",
            "      the largest is 7.8 KiB, * old, refcount 1, policy default, scope read/decode",
        ],
        consecutive=True,
    )


def test_what_is_known_to_last_is_no_leak_of_the_test_that_happens_to_make_it(apart):
    result = apart(
        """
memrt.expect_to_last("tables at *", "tables of a test")

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
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["memrt: 1.5 MiB left in use, more than memrt_limit_growth allows: 976.6 KiB"]
    )
    result.stdout.no_fnmatch_line("*born in tables*")


def test_garbage_of_cycles_is_no_leak(run):
    result = run(
        """
@pytest.mark.memrt_no_leaks
def test_cycle():
    cycle = [np.ones(1000)]
    cycle.append(cycle)
"""
    )
    result.assert_outcomes(passed=1)


def test_what_fixtures_of_the_test_make_must_go_with_it(apart):
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
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["memrt: 1 buffer made by this test outlived it, 15.6 KiB"])


@pytest.mark.parametrize("scope", ["class", "session"])
@pytest.mark.parametrize("environment", ["0", "1"])
def test_fixtures_that_outlive_the_test_are_none_of_its(apart, scope, environment, monkeypatch):
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


def test_leaks_may_be_ignored_by_name_policy_or_function(apart):
    result = apart(
        """
def keep():
    kept.append(memrt.alloc(1000, name="cache of plans"))
    kept.append(memrt.alloc(3000, policy=memrt.Policy(name="tables")))

@pytest.mark.memrt_no_leaks(ignore=["cache*", "tables"])
def test_by_patterns(): keep()

@pytest.mark.memrt_no_leaks(ignore=lambda buffer: buffer.size < 5000)
def test_by_function(): keep()

@pytest.mark.memrt_no_leaks(ignore="cache*")
def test_by_one(): keep()
"""
    )
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["memrt: 1 buffer made by this test outlived it, 2.9 KiB"])


def test_a_test_that_failed_is_not_told_to_leak(apart):
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


def test_threads_of_a_test_are_its_and_others_are_not(apart):
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
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_own*", "memrt: 1 buffer *7.6 MiB"])


# --- Limits. ---


def test_a_peak_above_its_limit_fails_the_test(run):
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


def test_growth_above_its_limit_fails_with_the_buffers(apart):
    result = apart(
        """
@pytest.mark.memrt_limit_growth("1 MiB")
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test(count):
    kept.append(np.ones(count))
    del kept[0:-1]
"""
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test?1000000?*",
            "memrt: 7.6 MiB left in use, more than memrt_limit_growth allows: 1.0 MiB",
            "  7.6 MiB in 1 buffer born in test at *.py:*",
            "      it is 7.6 MiB, * old, refcount 1, policy default",
        ]
    )


def test_marks_of_a_class_hold_for_unittests_and_their_setups(apart):
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
    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of TestCase.test_leak*"])


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("memrt_limit_peak('much')", "'much' is no number of bytes"),
        ("memrt_limit_peak('-1')", "'-1' is no number of bytes"),
        ("memrt_limit_peak(-1)", "no number below zero"),
        ("memrt_limit_peak", "missing 1 required positional argument: 'limit'"),
        ("memrt_limit_growth(1.5)", "a text like '20 MB', got 1.5"),
        ("memrt_limit_growth(True)", "a text like '20 MB', got True"),
        ("memrt_limit_growth(1, 2)", "takes 1 positional argument but 2 were given"),
        ("memrt_no_leaks(ignore=3)", "'int' object is not iterable"),
        ("memrt_no_leaks(ignore=[3])", "ignore is a pattern, several, or a function"),
        ("memrt_no_leaks(limit=3)", "unexpected keyword argument 'limit'"),
    ],
)
def test_a_mark_that_means_nothing_is_told_before_any_test_runs(run, mark, why):
    result = run(f"@pytest.mark.{mark}\ndef test_it(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert "::test_it: mark " + mark.partition("(")[0] in line
    assert why in line


def test_limits_are_read_as_people_write_them(apart):
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


def test_the_fixture_tells_what_the_test_has(run):
    result = run(
        """
def test(memrt_track):
    large = np.zeros(1_000_000)
    half = large[::2].copy()
    del large
    named = memrt.alloc(100, name="a name")
    assert [(b.size, b.name) for b in memrt_track.live()] == [(4_000_000, None), (100, "a name")]
    assert memrt_track.peak == 12_000_000
    assert memrt_track.stats.live == 4_000_100
    assert memrt_track.stats.total == 12_000_100

def test_another(memrt_track):
    assert memrt_track.live() == []
    assert memrt_track.stats.total == memrt_track.peak == 0
"""
    )
    result.assert_outcomes(passed=2)


def test_the_fixture_is_to_be_asked_for_before_the_test_begins(run):
    result = run(
        """
def test(request):
    request.getfixturevalue("memrt_track")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["memrt_track is an argument of the test or of its fixtures*"])


def test_a_test_that_is_run_again_is_judged_anew(apart):
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
    result.assert_outcomes(passed=1, failed=1, errors=1)


# --- What is around. ---


def test_a_policy_that_is_in_force_stays_so(apart):
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


def test_tests_may_enable_and_disable_memrt_themselves(apart):
    result = apart(
        """
@pytest.mark.memrt_no_leaks
def test():
    memrt.enable(memrt.Policy(name="mine"))
    assert memrt.handler_name() == "memrt:mine"
    memrt.disable()
    assert memrt.handler_name() == "memrt"

@pytest.mark.memrt_no_leaks
def test_that_leaves_it_enabled():
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
    np.zeros((megabytes, 2**20), "u1") + memrt.zeros((megabytes, 2**20), "u1")

def test_keeping():
    kept.append(np.zeros(2**20, "u1"))

def test_failing():
    array = np.zeros(2**21, "u1")
    raise AssertionError

@pytest.mark.skip
def test_skipped(): pass
"""


def test_the_summary_shows_the_heaviest_tests_first(apart):
    result = apart(HEAVY, "--memrt")
    assert list(table(result)) == [
        *("test_parts[5]", "test_parts[3]", "test_parts[1]", "test_failing", "test_keeping")
    ]
    assert table(result)["test_parts[5]"] == ["10.0 MiB", "10.0 MiB", "2", "0 B"]
    assert table(result)["test_keeping"] == ["1.0 MiB", "1.0 MiB", "1", "1.0 MiB"]
    assert table(result)["test_failing"] == ["2.0 MiB", "2.0 MiB", "1", None]
    result.stdout.fnmatch_lines(["5 tests measured; 1 left 1.0 MiB in use"])
    assert list(table(apart(HEAVY, "--memrt", "--memrt-top=2"))) == [
        "test_parts[5]",
        "test_parts[3]",
    ]


def test_xdist_gathers_the_summary_and_the_failures_from_its_workers(apart):
    alone = apart(HEAVY, "--memrt", "--memrt-top=0")
    marked = '\npytestmark = pytest.mark.memrt_limit_growth("1 KB")\n'
    result = apart(HEAVY + marked, "--memrt", "--memrt-top=0", "-n2")
    result.assert_outcomes(passed=4, failed=1, errors=1, skipped=1)
    assert table(result) == table(alone)
    result.stdout.fnmatch_lines(["memrt: 1.0 MiB left in use, more than *"])


def test_without_the_option_there_is_no_summary(run):
    result = run("@pytest.mark.memrt_no_leaks\ndef test(): np.ones(10)\n")
    assert "heaviest" not in result.stdout.str()


def test_tests_for_which_there_is_no_scope_left_are_measured_in_one(apart):
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
from memrt import _scopes

@pytest.fixture(scope="session", autouse=True)
def many():
    held = []
    with pytest.raises(RuntimeError):
        while True:
            held.append(_scopes._open(None, str(len(held))))
    yield
""",
    )
    result.assert_outcomes(passed=2)
    assert table(result)["test_dropping"] == ["2.0 MiB", "2.0 MiB", "1", "0 B"]


def test_the_marks_are_told_by_pytest_itself():
    command = [sys.executable, "-m", "pytest", "--markers", *OPTIONS]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for mark in ("memrt_no_leaks(ignore=())", "memrt_limit_peak(limit)", "memrt_limit_growth(limi"):
        assert f"@pytest.mark.{mark}" in shown
