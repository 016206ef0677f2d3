"""Divide and end processes again and again, in every way that memrt promises to survive.

Each clause is a list of tests, of Python or of C, which run so often. Every process has a watchdog,
and every exit code is looked at. Five rounds or more, in which all pass, leave their figures in
docs/reliability.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import page
from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev"
REPORT = ROOT / "build" / "exits.xml"
FORKS = 60  # in a round, of each way
LONGEST = 600  # seconds of one round
RECORDED = 5  # rounds from which on it says enough to be recorded

# A test of Python is file::name, one of C program::name.
CLAUSES = {
    "fork in a process of sixteen threads, mid-allocation": (
        "forks::children_forked_from_sixteen_threads_at_work_use_and_free_what_they_inherit",
        "test_runtime::a_child_forked_while_others_allocate_works_and_leaves_the_parent_alone",
        "test_runtime::a_forked_child_may_start_threads_of_its_own",
    ),
    "os.fork": (
        "test_exits::test_threads_that_fork_at_the_same_time_get_children_that_work",
        "test_lifetime::test_fork_while_another_thread_allocates_leaves_both_processes_working",
        "test_lifetime::test_a_child_may_end_in_the_ordinary_way",
    ),
    "multiprocessing by fork, forkserver and spawn": (
        "test_exits::test_processes_of_multiprocessing_work_and_leave_their_parent_alone",
    ),
    "os._exit, sys.exit, abort and signals while threads are at work": (
        "test_exits::test_a_process_ends_with_its_code_while_threads_are_at_work",
        "forks::a_process_ends_with_its_code_while_sixteen_threads_are_at_work",
    ),
    "handlers of signals that allocate": (
        "test_exits::test_handlers_of_signals_make_and_drop_memory_in_the_middle_of_everything",
    ),
    "arrays in globals, cycles, C statics, daemon threads and atexit": (
        "test_lifetime::test_a_process_ends_quietly_wherever_memory_is_kept",
        "test_lifetime::test_a_process_ends_quietly_under_checking_allocators",
        "test_lifetime::test_what_python_let_go_at_its_end_is_freed_and_the_rest_is_still_there",
        "test_lifetime::test_a_dtor_of_a_module_global_still_runs_at_exit",
        "test_lifetime::test_a_dtor_that_reaches_its_own_array_does_not_run_at_exit",
    ),
    "native threads that release while the interpreter finalizes": (
        "test_lifetime::test_a_thread_of_c_that_releases_while_python_ends_neither_hangs_nor_crashes",
        "test_lifetime::test_an_owner_released_after_python_has_ended_is_dropped",
        "test_lifetime::test_what_waits_when_python_ends_is_run_then",
        "test_lifetime::"
        "test_owners_released_by_a_thread_of_c_before_while_and_after_python_ends_are_run_or_dropped",
    ),
    "embedding with repeated initialize and finalize": (
        "test_exits::test_an_interpreter_that_comes_and_goes_many_times_has_memrt_once",
        "test_lifetime::"
        "test_memory_that_c_keeps_is_there_after_python_has_ended_and_is_freed_by_its_release",
        "test_lifetime::"
        "test_a_second_python_in_a_process_goes_without_memrt_while_its_c_library_goes_on",
    ),
    "a second interpreter, with the GIL shared or its own": (
        "test_lifetime::test_a_subinterpreter_is_refused_with_an_import_error",
        "test_lifetime::test_the_c_library_serves_several_interpreters_at_once_with_one_account",
    ),
    "import after del sys.modules": (
        "test_exits::test_a_package_that_is_imported_anew_finds_what_the_old_one_left",
        "test_lifetime::test_arrays_outlive_the_package",
    ),
}


class FailedError(Exception):
    """A test that did not pass, with what it said."""


def run(command: list[str], **variables: str) -> str:
    result = subprocess.run(
        command,
        env={**os.environ, **variables},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST,
    )
    if result.returncode != 0:
        said = " ".join([*(f"{k}={v}" for k, v in variables.items()), *command])
        raise FailedError(f"{result.stdout}\nfails: {said}")
    return result.stdout


def is_of_python(test: str) -> bool:
    return "::test_" in test


def run_python(tests: list[str]) -> Counter[str]:
    """How often each test passed, by its name without parameters."""
    nodes = ["tests/python/{}.py::{}".format(*test.split("::")) for test in tests]
    report = ["-p", "no:cacheprovider", "-q", f"--junit-xml={REPORT}"]
    run([sys.executable, "-m", "pytest", *report, *nodes])
    passed: Counter[str] = Counter()
    for case in ElementTree.parse(REPORT).iter("testcase"):
        if case.find("skipped") is None:
            module, name = case.get("classname", ""), case.get("name", "")
            passed["::".join([module.rpartition(".")[2], name.partition("[")[0]])] += 1
    return passed


def run_c(test: str, round_number: int) -> None:
    program, name = test.split("::")
    variables = {"STRESS_FORKS": str(FORKS), "STRESS_SEED": str(round_number)}
    output = run([str(BUILD / program)], CK_RUN_CASE=name, **variables)
    if "100%" not in output:
        raise FailedError(f"{output}\n{test} did not run")


def run_round(round_number: int) -> Counter[str]:
    """All tests once; how often each passed. Raises FailedError when one does not."""
    tests = [test for clause in CLAUSES.values() for test in clause]
    passed = run_python([test for test in tests if is_of_python(test)])
    for test in tests:
        if not is_of_python(test):
            run_c(test, round_number)
            passed[test] += 1
    missing = [test for test in tests if passed[test] == 0]
    if missing:
        raise FailedError(f"did not run: {', '.join(missing)}")
    return passed


def record(passed: Counter[str], rounds: int, seconds: float) -> None:
    page.record(
        "exits",
        "Fork, exit, finalization",
        "Processes that divide and end, by the tests of each clause, under a watchdog: "
        "`./dev exits`. Every one ended by itself and with the code that it should.",
        {"minutes": round(seconds / 60), "rounds": rounds, "forks of each C test": FORKS * rounds},
        ["clause", "tests", "times run"],
        [[clause, len(tests), sum(passed[t] for t in tests)] for clause, tests in CLAUSES.items()],
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev exits", description=summary, epilog=about)
    parser.add_argument("rounds", nargs="?", type=int, default=10, help="default 10")
    parsed = parser.parse_args()
    if parsed.rounds < 1:
        parser.error("there must be a round")
    return parsed


def main() -> int:
    rounds, begin = arguments().rounds, time.monotonic()
    passed: Counter[str] = Counter()
    try:
        with Progress(console=Console(stderr=True)) as progress:
            for number in progress.track(range(1, rounds + 1), description="rounds"):
                passed.update(run_round(number))
    except (FailedError, subprocess.TimeoutExpired) as error:
        print(error)
        return 1
    print(f"{rounds} rounds of {len(CLAUSES)} clauses: {passed.total():,} tests passed")
    if rounds >= RECORDED:
        record(passed, rounds, time.monotonic() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
