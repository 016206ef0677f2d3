"""Every public call meets failures, and what a failure leaves behind is told."""

import importlib
import subprocess
import sys
from pathlib import Path

import memrt
import pytest
import refusal

WORKER = Path(__file__).with_name("meet.py")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failures")
    refusal.build(folder)
    return folder


@pytest.fixture
def run_worker(built):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, WORKER, *arguments],
            env=refusal.environment(built), capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_every_public_call_meets_memrts_own_failures_and_those_of_malloc_and_mmap(run_worker):
    result = run_worker("--faults", "memrt,heap,mmap")
    assert result.stderr == ""
    assert result.returncode == 0
    points = [int(line.split()[1].replace(",", "")) for line in result.stdout.splitlines()]
    assert len(points) == 3
    assert all(points)


def test_pythons_failures_and_those_of_the_system_strike(run_worker):
    result = run_worker("--faults", "python,munmap,mremap,madvise,thread", "large")
    assert result.stderr == ""
    assert result.returncode == 0
    assert " 0 points" not in result.stdout


# Calls that once left something behind where Python had no memory: a handler in force, a thread
# patch, tracking on, a block that counts as a MemInfo, another error than MemoryError.
ONCE_WRONG = (
    *("memrt.Policy, with limits", "memrt.Policy.__exit__", "memrt.enable", "memrt.empty, of obj"),
    *("memrt.tracking.__enter__", "memrt.meminfo", "memrt.handler_name", "memrt.Stats.__sub__"),
    *("memrt.get_include", "memrt_import"),
)


def test_calls_that_once_left_something_behind_do_so_no_more(run_worker):
    result = run_worker("--faults", "python", *ONCE_WRONG)
    assert result.stderr == ""
    assert result.returncode == 0


@pytest.fixture
def parts(built, monkeypatch):
    """The modules of the worker, in this process."""
    monkeypatch.syspath_prepend(built)
    names = ("cases", "driver", "faults")
    yield [importlib.import_module(name) for name in names]
    for name in (*names, "probe", "nomemory", "variables"):
        sys.modules.pop(name, None)


def leak(ground):
    memrt.alloc(10)
    ground.kept.append(memrt.alloc(10))
    memrt.alloc(10)


def keep_input(ground):
    ground.kept = ground.mi
    memrt.alloc(10)


def word_otherwise(ground):
    try:
        memrt.alloc(10)
    except MemoryError:
        raise RuntimeError("no more") from None


def work_once(ground):
    ground.kept.append(None)
    if len(ground.kept) > 1:
        raise RuntimeError("not twice")
    memrt.alloc(10)


def leave_tracking_on(ground):
    was = memrt._memrt.set_tracking(True)
    memrt.alloc(10)
    memrt._memrt.set_tracking(was)


FAULTY = {
    leak: "meminfos: .* -> ",
    keep_input: "references: mi",
    word_otherwise: "no more",
    work_once: "the call does not work afterwards: .*not twice",
    leave_tracking_on: "tracking: False -> True",
}


def give_room(ground):
    ground.kept = []


@pytest.mark.parametrize("call", FAULTY, ids=lambda call: call.__name__)
def test_a_call_that_does_not_survive_its_failure_is_told(call, parts):
    cases, driver, faults = parts
    plan = faults.Plan()
    fault = faults.Fault("memrt", plan.run, plan.points, True)
    case = cases.Case(call, give_room)
    try:
        with pytest.raises(driver.WrongError, match=FAULTY[call]):
            driver.count("planted", case, fault, goes_on=False)
    finally:
        memrt._memrt.set_tracking(False)


def test_a_public_name_without_a_case_is_told(parts, monkeypatch):
    cases, _, _ = parts
    assert cases.missing() == set()
    for name in ("memrt.Policy.stats", "memrt.alloc", "memrt_array_meminfo"):
        for each in [case for case in cases.CASES if cases.called(case) == name]:
            monkeypatch.delitem(cases.CASES, each)
    assert cases.missing() == {"memrt.Policy.stats", "memrt.alloc", "memrt_array_meminfo"}
