"""Fork and end processes repeatedly, in all ways that memrt must survive.

Each clause is a list of Python and C tests. Every round runs all tests of all clauses. Every
process has a watchdog, and every exit code is checked. A run of five rounds or more without
a failure writes figures to docs/reliability.md.
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
        "test_exits::test_python_restarted_many_times_imports_memrt_only_once",
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


class FailedError(Exception):
    """A test failed, hung or did not run. The message has the output."""


def run(command: list[str], **variables: str) -> str:
    """Run a command and return its output. A failed or hung command raises FailedError."""
    said = " ".join([*(f"{k}={v}" for k, v in variables.items()), *command])
    try:
        result = subprocess.run(
            command,
            env={**os.environ, **variables},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as hung:
        output = (hung.stdout or b"").decode(errors="replace")
        raise FailedError(f"{output}\nhangs: {said}") from hung
    if result.returncode != 0:
        raise FailedError(f"{result.stdout}\nfails: {said}")
    return result.stdout


def is_of_python(test: str) -> bool:
    return "::test_" in test


def run_python(tests: list[str]) -> Counter[str]:
    """Run Python tests and count the passes of each test, by its name without parameters."""
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
    """Run all tests once and count the passes of each test.

    Raises FailedError if a test fails, hangs or does not run.
    """
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
        "Processes that fork and exit, in the tests of each clause, under a watchdog: "
        "`./dev stress exits`. Every process ended in time, with the expected exit status.",
        {"minutes": round(seconds / 60), "rounds": rounds, "forks of each C test": FORKS * rounds},
        ["clause", "tests", "times run"],
        [[clause, len(tests), sum(passed[t] for t in tests)] for clause, tests in CLAUSES.items()],
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev stress exits", description=summary, epilog=about)
    parser.add_argument(
        "rounds", nargs="?", type=int, default=10, help="number of rounds, default 10"
    )
    parsed = parser.parse_args()
    if parsed.rounds < 1:
        parser.error(f"rounds must be 1 or more, got {parsed.rounds}")
    return parsed


def main() -> int:
    rounds, begin = arguments().rounds, time.monotonic()
    passed: Counter[str] = Counter()
    try:
        with Progress(console=Console(stderr=True)) as progress:
            for number in progress.track(range(1, rounds + 1), description="rounds"):
                passed.update(run_round(number))
    except FailedError as error:
        print(error)
        return 1
    print(f"{rounds} rounds of {len(CLAUSES)} clauses: {passed.total():,} tests passed")
    if rounds >= RECORDED:
        record(passed, rounds, time.monotonic() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
