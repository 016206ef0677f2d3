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
from gil import needs_gil


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


HOLDERS = "holders of the largest tracked buffers:"


@needs_gil
def test_error_names_holders_of_the_largest_buffers_if_tracked():
    with memrt.debug.tracking():
        tables = {"rows": memrt.empty(9 << 20, "u1"), "small": memrt.empty(5, "u1")}
        columns = memrt.empty(7 << 20, "u1")
        parts = [memrt.empty(8 << 20, "u1")[:100]]
        error = shortage(memrt.alloc, 1 << 55)
    lines = str(error).splitlines()
    at = lines.index(HOLDERS)
    assert [line[:11] for line in lines[at + 1 :]] == ["  9.0 MiB h", "  8.0 MiB h", "  7.0 MiB h"]
    function = "in test_error_names_holders_of_the_largest_buffers_if_tracked()"
    assert f"held by `tables[...]` {function}" in lines[at + 1]
    assert f"held by `parts[...]` {function}" in lines[at + 2]
    assert f"held by `columns` {function}" in lines[at + 3]
    del tables, columns, parts
    assert str(error).splitlines() == lines  # the text does not change any more
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_error_without_tracking_has_no_holders():
    with memrt.debug.tracking():
        kept = memrt.empty(9 << 20, "u1")
    assert HOLDERS not in str(shortage(memrt.alloc, 1 << 55))
    assert kept.nbytes == 9 << 20


@needs_gil
def test_holders_are_found_when_the_text_is_read(monkeypatch):
    reads = []
    monkeypatch.setattr("memrt._leaks.shortage.live", lambda: reads.append(1) or [])
    with memrt.debug.tracking():
        error = shortage(memrt.alloc, 1 << 55)
    assert reads == []
    assert HOLDERS not in str(error)
    assert str(error) == str(error)
    assert reads == [1]


@pytest.mark.parametrize("reason", [MemoryError, ValueError])
def test_text_has_no_holders_if_the_search_fails(monkeypatch, reason):
    def fail():
        raise reason

    monkeypatch.setattr("memrt._leaks.shortage.live", fail)
    with memrt.debug.tracking():
        error = shortage(memrt.alloc, 1 << 55)
    assert str(error).startswith("no memory for 32.0 PiB")
    assert HOLDERS not in str(error)


def test_text_states_why_holders_cannot_be_searched(monkeypatch):
    def refuse(buffers):
        raise RuntimeError("no GIL")

    monkeypatch.setattr("memrt._leaks.shortage.Survey", refuse)
    with memrt.debug.tracking():
        kept = memrt.empty(1 << 20, "u1")
        error = shortage(memrt.alloc, 1 << 55)
    assert str(error).endswith("\nholders are not listed: no GIL")
    assert kept.nbytes == 1 << 20


@needs_gil
def test_interrupted_search_leaves_the_text_for_the_next_read(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    with memrt.debug.tracking():
        kept = memrt.empty(1 << 20, "u1")
        error = shortage(memrt.alloc, 1 << 55)
    with monkeypatch.context() as patch:
        patch.setattr("memrt._leaks.shortage.live", interrupt)
        with pytest.raises(KeyboardInterrupt):
            str(error)
    assert HOLDERS in str(error)
    assert kept.nbytes == 1 << 20


def test_error_lists_the_scopes_with_most_live_bytes():
    with memrt.scope("load"):
        table = memrt.empty(3 << 20, "u1")
        with memrt.scope("parse"):
            rows = memrt.empty(2 << 20, "u1")
    text = str(shortage(memrt.alloc, 1 << 55))
    assert (
        "\nscopes with the most live bytes, with inner scopes:\n"
        "  5.0 MiB in scope 'load'\n"
        "  2.0 MiB in scope 'load/parse'\n"
    ) in text
    assert table.nbytes + rows.nbytes == 5 << 20


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


def test_error_states_the_address_space_limit(libc_malloc):
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


AT_THE_END = """
import memrt, sys
with memrt.debug.tracking():
    try:
        memrt.alloc(1 << 55)
    except MemoryError as error:
        caught = error
class Late:
    def __init__(self, error, write):
        self.error, self.write = error, write
    def __del__(self):
        self.write(str(self.error).splitlines()[0])
sys.late = Late(caught, sys.stdout.write)
"""


def test_error_can_be_read_at_the_end_of_the_interpreter(run_python):
    result = run_python(AT_THE_END)
    assert result.stdout.startswith("no memory for 32.0 PiB (36028797018963968 bytes)")
