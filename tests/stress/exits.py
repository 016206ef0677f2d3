"""Fork and end processes repeatedly, in all ways that memrt must survive.

Each clause is a list of Python and C tests. Every round runs all tests of all clauses. Every
process has a watchdog, and every exit code is checked. A run of five rounds or more without
a failure writes figures to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from rich.progress import Progress
from runs import BUILD, ROOT, FailedRunError, Report, Run, number, output_of

REPORT = ROOT / "build" / "exits.xml"
FORKS = 60  # forks of each C test in a round
LONGEST = 600  # time limit of a command, in seconds
RECORDED = 5  # minimum number of rounds for recorded figures

# Tests by clause. A Python test is written file::name, a C test program::name.
CLAUSES = {
    "fork in a process of sixteen threads, mid-allocation": (
        "forks::forked_children_use_and_free_inherited_buffers",
        "test_runtime::child_forked_during_allocations_leaves_parent_intact",
        "test_runtime::forked_child_can_start_threads",
    ),
    "os.fork": (
        "test_exits::test_concurrent_forks_from_threads_give_working_children",
        "test_lifetime::test_fork_during_allocation_keeps_both_processes_working",
        "test_lifetime::test_forked_child_can_exit_normally",
    ),
    "multiprocessing by fork, forkserver and spawn": (
        "test_exits::test_multiprocessing_workers_leave_parent_memory_unchanged",
    ),
    "os._exit, sys.exit, abort and signals while threads work": (
        "test_exits::test_exit_status_is_kept_while_threads_allocate",
        "forks::process_exits_with_its_code_while_16_threads_work",
    ),
    "signal handlers that allocate": (
        "test_exits::test_signal_handlers_may_allocate_and_free_memory",
    ),
    "arrays in globals, cycles, C statics, daemon threads and atexit": (
        "test_lifetime::test_process_exits_silently_wherever_memory_is_held",
        "test_lifetime::test_process_exits_silently_under_checking_allocators",
        "test_lifetime::test_python_end_frees_all_but_c_and_daemon_thread_memory",
        "test_lifetime::test_destructor_of_a_module_global_runs_at_exit",
        "test_lifetime::test_destructor_in_a_cycle_with_array_is_skipped_at_exit",
    ),
    "native threads that release while the interpreter finalizes": (
        "test_lifetime::test_c_thread_may_release_memory_while_python_ends",
        "test_lifetime::test_owner_released_after_python_ended_is_dropped",
        "test_lifetime::test_queued_destructor_runs_when_python_ends",
        "test_lifetime::test_owners_released_by_a_c_thread_are_all_run_or_dropped",
    ),
    "embedding with repeated initialize and finalize": (
        "test_lifetime::test_python_restarted_many_times_imports_memrt_only_once",
        "test_lifetime::test_memory_held_by_c_outlives_python_until_released",
        "test_lifetime::test_restarted_python_refuses_import_and_memory_is_freed",
    ),
    "a second interpreter, with a shared or a separate GIL": (
        "test_lifetime::test_import_in_a_subinterpreter_raises_import_error",
        "test_lifetime::test_c_library_shares_counters_between_interpreters",
    ),
    "import after del sys.modules": (
        "test_exits::test_reimported_package_keeps_memory_and_stays_enabled",
        "test_lifetime::test_arrays_outlive_the_package",
    ),
}


TESTS = [test for clause in CLAUSES.values() for test in clause]


def is_of_python(test: str) -> bool:
    return "::test_" in test


def file_of(test: str) -> Path:
    """Return the path of a Python test's file, anywhere under tests/python."""
    name = test.split("::")[0]
    return next((ROOT / "tests" / "python").rglob(f"{name}.py"))


def run_python(tests: list[str]) -> Counter[str]:
    """Run Python tests and count the passes of each test, by its name without parameters."""
    nodes = [f"{file_of(test)}::{test.split('::')[1]}" for test in tests]
    report = ["-p", "no:cacheprovider", "-q", f"--junit-xml={REPORT}"]
    output_of(Run("pytest", [sys.executable, "-m", "pytest", *report, *nodes], LONGEST))
    passed: Counter[str] = Counter()
    for case in ElementTree.parse(REPORT).iter("testcase"):
        if case.find("skipped") is None:
            module, name = case.get("classname", ""), case.get("name", "")
            passed["::".join([module.rpartition(".")[2], name.partition("[")[0]])] += 1
    return passed


def run_c(test: str, round_number: int) -> None:
    program, name = test.split("::")
    variables = {"STRESS_FORKS": str(FORKS), "STRESS_SEED": str(round_number), "CK_RUN_CASE": name}
    run = Run(test, [str(BUILD / program)], LONGEST, variables)
    output = output_of(run)
    if "100%" not in output:
        raise FailedRunError(run, "did not run", output)


def run_round(round_number: int) -> Counter[str]:
    """Run all tests once and count the passes of each test.

    Raises FailedRunError if a test fails, hangs or does not run.
    """
    python = [test for test in TESTS if is_of_python(test)]
    passed = run_python(python)
    for test in TESTS:
        if test not in python:
            run_c(test, round_number)
            passed[test] += 1
    if missing := [test for test in TESTS if passed[test] == 0]:
        run = Run(", ".join(missing), ["./dev", "stress", "exits", "1"], LONGEST)
        raise FailedRunError(run, "did not run", "")
    return passed


def perform(options: argparse.Namespace, progress: Progress) -> Report:
    """Run all rounds and report the number of passes of each clause."""
    passed: Counter[str] = Counter()
    for round_number in progress.track(range(1, options.rounds + 1), description="rounds"):
        passed.update(run_round(round_number))
    return Report(
        f"{options.rounds} rounds of {len(CLAUSES)} clauses: {passed.total():,} tests passed",
        "exits" if options.rounds >= RECORDED else "",
        "Fork, exit, finalization",
        "Processes that fork and exit, in the tests of each clause, under a watchdog: "
        "`./dev stress exits`. Every process ended in time, with the expected exit status.",
        {"rounds": options.rounds, "forks of each C test": FORKS * options.rounds},
        ["clause", "tests", "times run"],
        [[clause, len(tests), sum(passed[t] for t in tests)] for clause, tests in CLAUSES.items()],
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rounds", nargs="?", type=number(int, 1), default=10,
                        help="number of rounds, default 10")  # fmt: skip
