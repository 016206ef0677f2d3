"""Guard pages: sampled and for all buffers, in processes of their own."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

NAMES_RUNNING_CALLS = sys.version_info >= (3, 11)


def run(code, sample="1", **environment):
    """Run code with guard pages, and return the exit status and standard error."""
    prelude = """
        import ctypes
        import memrt
        import numpy as np

        memrt.enable()

        def write(array, offset):
            ctypes.memset(array.ctypes.data + offset, 1, 1)
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(code)
    variables = {k: v for k, v in os.environ.items() if k != "MEMRT_CHECK"}
    variables |= {"MEMRT_GUARD_SAMPLE": sample, "PYTHONFAULTHANDLER": ""} | environment
    done = subprocess.run(
        [sys.executable, "-c", text], env=variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "write(np.zeros(1000, np.uint8), 1024)",
            "25 bytes past the end of an array of 1000 bytes",
        ),
        ("write(np.zeros(8, np.uint8), 64)", "57 bytes past the end of an array of 8 bytes"),
        (
            "a = np.ones(512); b = a.ctypes.data; del a; ctypes.memset(b + 8, 1, 1)",
            "at offset 8 of a freed array of 4096 bytes",
        ),
    ],
)
def test_write_outside_of_array_is_reported_with_size_and_offset(code, expected):
    status, errors = run(code)
    assert status == -11
    assert "memrt: refused write at 0x" in errors
    assert expected in errors
    assert "\n  allocated by thread" in errors


def test_write_within_alignment_is_found_at_free():
    status, errors = run("a = np.zeros(1000, np.uint8); write(a, 1003); del a")
    assert status == -6
    assert "a write 4 bytes past the end was found" in errors


def test_report_has_python_calls_of_access_allocation_and_free():
    code = """
        def load():
            return np.zeros(1000)

        def drop(arrays):
            arrays.clear()

        arrays = [load()]
        address = arrays[0].ctypes.data
        drop(arrays)
        ctypes.memset(address, 1, 1)
    """
    status, errors = run(code, MEMRT_TRACK="1")
    assert status == -11
    report = re.sub("\n    .*[+].*|\n    0x.*", "", errors)  # native frames
    accessed = re.search(r"\n  accessed at\n    <module> at <string>:\d+\n  allocated by", report)
    assert (accessed is not None) == NAMES_RUNNING_CALLS
    assert re.search(r"allocated by thread \d+ at\n    load at <string>:\d+\n    <module>", report)
    assert re.search(r"freed by thread \d+ at\n    drop at <string>:\d+\n    <module>", report)


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        ("write(arrays[0], 1003); drop(arrays)", ["allocated", "called"]),
        ("write(arrays[0], -3); drop(arrays)", ["allocated", "called"]),
        ("a = arrays[0].ctypes.data; drop(arrays); ctypes.memset(a, 1, 1); memrt.release_unused()",
         ["allocated", "freed"]),
    ],
)  # fmt: skip
def test_checking_mode_reports_python_calls(fault, calls):
    code = f"""
        def load():
            return np.zeros(1000, np.uint8)

        def drop(arrays):
            arrays.clear()

        arrays = [load()]
        {fault}
    """
    status, errors = run(code, sample="0", MEMRT_CHECK="1")
    assert status == -6
    functions = {"allocated": "load", "freed": "drop", "called": "drop"}
    for call in calls:
        found = re.search(
            rf"\n  {call} at\n    {functions[call]} at <string>:\d+\n    <module>", errors
        )
        assert (found is not None) == (NAMES_RUNNING_CALLS or call != "called")


def test_access_without_the_gil_has_python_calls():
    code = """
        import threading
        a = np.zeros(1000, np.uint8)
        thread = threading.Thread(target=write, args=(a, 1024))
        thread.start()
        thread.join()
    """
    status, errors = run(code)
    assert status == -11
    accessed = re.search(
        r"accessed at\n    write at <string>:\d+\n    Thread.run at .*threading", errors
    )
    assert (accessed is not None) == NAMES_RUNNING_CALLS


def test_policy_guards_all_of_its_arrays_and_no_others(libc_malloc):
    status, errors = run(
        """
        with memrt.Policy(guard="all", name="kernels") as policy:
            inside = np.zeros(1000, np.uint8)
        assert policy.options == {"MEMRT_GUARD_SAMPLE": "1"}
        outside = np.zeros(1000, np.uint8)
        write(outside, 1000)  # in the slack of the size class
        write(inside, 1024)
        """,
        sample="0",
    )
    assert status == -11
    assert "25 bytes past the end of an array of 1000 bytes" in errors


@pytest.mark.parametrize("first", [True, False])
def test_faulthandler_reports_lines_before_or_after_memrt(first):
    variables = {"PYTHONFAULTHANDLER": "1"} if first else {}
    later = "" if first else "import faulthandler; faulthandler.enable()\n"
    status, errors = run(later + "write(np.zeros(64, np.uint8), 64)", **variables)
    assert status == -11
    assert "1 bytes past the end of an array of 64 bytes" in errors
    assert 'File "<string>", line' in errors


def test_arrays_with_guard_pages_work_and_are_counted():
    status, errors = run(
        """
        import os, threading
        a = np.arange(1000.0)
        a.resize(5000, refcheck=False)
        assert a[:1000].sum() == 499500 and not a[1000:].any()
        arrays = [np.full(n, n) for n in range(1, 500)]
        assert all((x == len(x)).all() for x in arrays)
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()
        before = memrt.stats().live
        mi = memrt.meminfo(a)
        assert mi.nbytes == 40000 and mi.refcount >= 1
        del mi
        child = os.fork()
        if child == 0:
            a[:] = 3
            b = np.ones(1000)
            del a, b
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert a[0] == 0
        del a
        assert memrt.stats().live == before - 40000
        """
    )
    assert (status, errors) == (0, "")
