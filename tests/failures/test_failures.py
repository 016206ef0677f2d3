"""Test all public calls with failures, and the reports of wrong state after a failure."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import failures
import memrt
import pytest
import refusal

WORKER = Path(__file__).with_name("meet.py")
REFUSED = Path(__file__).with_name("refused.py")
LOADING = Path(__file__).with_name("loading.py")


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


# ./dev verify failures --quick makes all calls with failures of each source.
@pytest.mark.slow
def test_large_calls_survive_failures_of_python_and_the_system(run_worker, monkeypatch):
    monkeypatch.setenv("MEMRT_DECAY", "never")  # so that each free has to start the purger thread
    result = run_worker("--faults", "python,munmap,mremap,madvise,thread", "large")
    assert result.stderr == ""
    assert result.returncode == 0
    assert " 0 points" not in result.stdout


def test_only_memrts_own_code_is_struck(built, tmp_path):
    folder = tmp_path / "memrt"
    shutil.copytree(built, folder)
    code = (
        "import ctypes, memrt, nomemory, probe\n"
        "nowhere = 10**6\n"
        "print(ctypes.CDLL(None).refusing_strike(0, ctypes.c_ulong(nowhere), 0))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=refusal.environment(folder), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout == "2\n"  # libmemrt and the extension


# Calls that once went wrong after failures of Python's allocators. The faults: a handler left in
# force, a thread patch, tracking left on, a block that counts as a MemInfo, another error than
# MemoryError.
ONCE_WRONG = (
    *("memrt.Policy, with limits", "memrt.Policy.__exit__", "memrt.enable", "memrt.empty, of obj"),
    *(
        "memrt.debug.tracking.__enter__",
        "memrt.meminfo",
        "memrt.handler_name",
        "memrt.types.Stats.__sub__",
    ),
    *("memrt.get_include", "memrt_import"),
)


@pytest.mark.slow
def test_calls_with_past_bugs_survive_failures_of_python(run_worker):
    result = run_worker("--faults", "python", *ONCE_WRONG)
    assert result.stderr == ""
    assert result.returncode == 0


@pytest.mark.slow
def test_survey_survives_failures_of_python(run_worker):
    result = run_worker("--faults", "python", "_memrt.survey")
    assert result.stderr == ""
    assert result.returncode == 0
    assert " 0 points" not in result.stdout


@pytest.fixture
def run_without_coverage(built):
    """Return a function that runs a worker without coverage.py, which crashes without memory."""

    def run(*arguments, **options):
        environment = {**refusal.environment(built), **options}
        environment.pop("COVERAGE_PROCESS_START", None)
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("load", ["first", "again"])
def test_failed_load_of_the_extension_can_be_repeated(load, run_without_coverage):
    result = run_without_coverage(LOADING, load)
    assert result.returncode == 0, result.stderr
    requests, refused = map(int, result.stdout.split())
    assert 100 < refused <= requests


def test_failed_read_of_option_warnings_can_be_repeated(run_without_coverage):
    result = run_without_coverage(LOADING, "warnings", MEMRT_NONSENSE="1")
    assert result.returncode == 0, result.stderr
    _, refused = map(int, result.stdout.split())
    assert refused > 0


def test_refusal_without_memory_raises_either_error(run_without_coverage):
    result = run_without_coverage(REFUSED)
    assert (result.stderr, result.returncode) == ("", 0)


@pytest.fixture
def parts(built, monkeypatch):
    """Import the modules of the worker into the test process, and remove the modules afterwards."""
    monkeypatch.syspath_prepend(built)
    names = ("cases", "driver", "faults")
    modules = [importlib.import_module(name) for name in names]
    yield modules
    modules[0].FOLDER.cleanup()  # a finalizer would warn in a later test
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
    work_once: "the repeated call failed: .*not twice",
    leave_tracking_on: "tracking: False -> True",
}


def give_room(ground):
    ground.kept = []


@pytest.mark.parametrize("call", FAULTY, ids=lambda call: call.__name__)
def test_wrong_state_after_a_failure_is_reported(call, parts):
    cases, driver, faults = parts
    plan = faults.Plan()
    fault = faults.Fault("memrt", plan.run, plan.points, True)
    case = cases.Case(call, give_room)
    try:
        with pytest.raises(driver.WrongError, match=FAULTY[call]):
            driver.count("planted", case, fault, goes_on=False)
    finally:
        memrt._memrt.set_tracking(False)


def test_public_name_without_a_case_is_reported(parts, monkeypatch):
    cases, _, _ = parts
    assert cases.missing() == set()
    for name in ("memrt.Policy.stats", "memrt.alloc", "memrt_array_meminfo"):
        for each in [case for case in cases.CASES if cases.called(case) == name]:
            monkeypatch.delitem(cases.CASES, each)
    assert cases.missing() == {"memrt.Policy.stats", "memrt.alloc", "memrt_array_meminfo"}


def test_every_kind_of_failure_has_a_column(parts):
    _, _, faults = parts
    columns = {kind for kinds in failures.KINDS.values() for kind in kinds}
    assert {"memrt", "python", *faults.CALLS} <= columns


def test_context_variables_that_share_a_slot_are_detected(parts, monkeypatch):
    variables = importlib.import_module("variables")
    monkeypatch.setattr(variables, "_place", lambda variable: 3)
    assert variables.share_a_place()
    monkeypatch.setattr(variables, "_place", id)
    assert not variables.share_a_place()
