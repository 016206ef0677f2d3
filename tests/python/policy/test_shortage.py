"""Out-of-memory errors."""

import copy
import pickle
import resource
import subprocess
import sys
import textwrap

import memrt
import numpy as np
import pytest


def shortage(function, *arguments, **keywords):
    with pytest.raises(memrt.OutOfMemoryError) as caught:
        function(*arguments, **keywords)
    return caught.value


def test_error_states_the_request_usage_and_limits():
    policy = memrt.Policy(name="short")
    kept = memrt.alloc(3 << 20, policy=policy)
    error = shortage(memrt.empty, (10**6, 10**9), "f8", policy=policy)
    lines = str(error).splitlines()
    assert lines[0] == "no memory for 7.1 PiB (8000000000000000 bytes) of policy 'short'"
    assert lines[1].startswith("3.0 MiB live in the policy, peak 3.0 MiB, kept for reuse ")
    assert " live in the process, peak " in lines[2]
    assert lines[3].startswith("limits: ")
    assert error.nbytes == 8 * 10**15
    assert isinstance(error, MemoryError)
    assert kept.nbytes == 3 << 20


def test_error_lists_the_largest_sites_if_tracked():
    with memrt.debug.tracking():
        kept = [memrt.alloc(2 << 20) for _ in range(4)]
    text = str(shortage(memrt.alloc, 1 << 55))
    assert "allocation sites with the most tracked live bytes:\n  8.0 MiB allocated in " in text
    assert f"at {__file__}:" in text
    assert len(kept) == 4


def test_error_lists_the_largest_named_buffers_with_holders(probe):
    kept = [memrt.alloc(size << 20, name=f"{size} MiB of it") for size in (1, 2, 4, 3)]
    address = probe.hold_as(memrt.as_array(kept[1], 1), "user", 1)
    text = str(shortage(memrt.alloc, 1 << 55))
    assert text.endswith(
        "\nlargest live buffers with a name or a named reference:\n"
        "  4.0 MiB '4 MiB of it'\n"
        "  3.0 MiB '3 MiB of it'\n"
        "  2.0 MiB '2 MiB of it', held by C reference 'user'"
    )
    probe.release_as(address, "user", 1)


def test_error_of_adopt_names_the_failed_operation():
    array = np.zeros(10, "u1")
    with memrt.testing.fail_allocations(every=1):
        error = shortage(memrt.adopt, array)
    assert str(error).startswith("cannot adopt an array of 10 bytes\n")
    assert error.nbytes == 0


def test_errors_can_be_copied_pickled_and_constructed():
    error = shortage(memrt.alloc, 1 << 55)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is memrt.OutOfMemoryError
        assert str(other) == str(error)
    assert str(memrt.OutOfMemoryError("by hand")) == "by hand"
    assert str(memrt.OutOfMemoryError()) == ""


def test_many_live_errors_keep_separate_messages():
    errors = [shortage(memrt.alloc, (1 << 55) + i) for i in range(100)]
    assert [error.nbytes for error in errors] == [(1 << 55) + i for i in range(100)]
    assert len({str(error).splitlines()[0] for error in errors}) == 100


WITHOUT_MEMORY = """
import sys
import _testcapi
import memrt

_testcapi.set_nomemory(0, 1)  # one allocation fails; a traceback needs some
try:
    memrt.alloc(1 << 55)
except memrt.OutOfMemoryError as error:
    caught = error
_testcapi.remove_mem_hooks()
print(str(caught).splitlines()[0])
"""


def test_error_is_raised_if_a_python_allocation_fails():
    pytest.importorskip("_testcapi")
    result = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True)
    assert result.stdout.startswith("no memory for 32.0 PiB (36028797018963968 bytes)"), result


def test_error_states_the_address_space_limit():
    program = f"""
        import resource
        import memrt
        size = {2 << 30}
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        try:
            memrt.alloc(size)
        except MemoryError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert "limits: 2.0 GiB of address space (RLIMIT_AS), " in result.stdout
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 2 << 30
