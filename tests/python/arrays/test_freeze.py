"""memrt.debug.freeze: read-only arrays and pages, and writable memory after the end."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt.debug import freeze

LARGE = 500_000


def fill(array):
    """Write to the memory of an array as compiled code does."""
    ctypes.memset(array.ctypes.data, 1, array.nbytes)


def crash(code, **environment):
    """Run code in another process, and return the exit status and standard error."""
    prelude = """
        import ctypes, os, memrt
        import numpy as np

        def write(array, offset=100_000):
            ctypes.memset(array.ctypes.data + offset, 1, 1)
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(code)
    variables = os.environ | {"PYTHONFAULTHANDLER": ""} | environment
    done = subprocess.run(
        [sys.executable, "-c", text], env=variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def handled(count=LARGE):
    with memrt.Policy(name="frozen"):
        return np.zeros(count)


@pytest.mark.parametrize("make", [memrt.zeros, handled])
def test_frozen_array_refuses_writes_until_the_thaw(make):
    array = make(LARGE)
    with freeze(array) as frozen:
        assert frozen.protection == "pages"
        assert frozen.reason is None
        assert array.nbytes - 2 * 4096 < frozen.protected <= array.nbytes
        assert "bytes in pages" in repr(frozen)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        assert not array[5:].flags.writeable
        assert array.sum() == 0
    assert repr(frozen) == "<memrt.types.Frozen, thawed>"
    frozen.thaw()
    array[:] = 1
    fill(array)


def test_aligned_array_is_protected_from_its_start():
    array = memrt.zeros(4096 * 100, alignment=4096)
    with freeze(array) as frozen:
        assert frozen.protected == array.nbytes


def objects():
    with memrt.Policy(name="objects"):
        return np.full(LARGE, None)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: memrt.zeros(100), "no whole page belongs to the array alone"),
        (lambda: memrt.zeros((LARGE, 2))[:, 0], "a part of a buffer of 8000000 bytes"),
        (lambda: memrt.zeros(LARGE)[1:], "a part of a buffer of 4000000 bytes"),
        (lambda: memrt.zeros((0, LARGE)), "the array has no elements"),
        (lambda: memrt.adopt(np.zeros(LARGE)), "the memory is adopted"),
        (objects, "NumPy writes to an array of objects"),
    ],
)
def test_array_without_pages_gets_the_flag_only(make, reason):
    array = make()
    with freeze(array) as frozen:
        assert (frozen.protection, frozen.protected) == ("flag", 0)
        assert reason in frozen.reason
        assert "flag: " in repr(frozen)
        assert not array.flags.writeable
    assert array.flags.writeable


@pytest.mark.thread_unsafe(reason="threads share the injected failures")
def test_refused_memory_leaves_the_array_writable():
    array = memrt.zeros(LARGE)
    freeze(array).thaw()
    with memrt.testing.fail_allocations(every=1), pytest.raises(MemoryError, match="protect pages"):
        freeze(array)
    assert array.flags.writeable
    fill(array)


@pytest.mark.thread_unsafe(reason="threads share the limit on frozen buffers")
def test_array_beyond_the_limit_gets_the_flag_only():
    arrays = [memrt.empty(1536) for _ in range(4096)]
    frozen = [freeze(array) for array in arrays]
    with freeze(memrt.empty(1536)) as beyond:
        assert beyond.reason == "4,096 buffers are frozen"
    for each in frozen:
        each.thaw()


def test_views_of_the_whole_array_have_its_pages():
    array = memrt.zeros((100, 5000))
    for view in (array.T, array[::-1, ::-1], array.reshape(-1), array.view("i4")):
        with freeze(view) as frozen:
            assert frozen.protection == "pages"
            assert array.flags.writeable
        fill(array)


def test_each_freeze_needs_a_thaw():
    array = memrt.zeros(LARGE)
    first, second, of_view = freeze(array), freeze(array), freeze(array.view())
    first.thaw()
    assert not array.flags.writeable
    second.thaw()
    assert array.flags.writeable
    assert crash_in_child(array) == 11
    of_view.thaw()
    fill(array)


def crash_in_child(array):
    """Write to an array in a forked child. Return the number of the signal that ends the child."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        fill(array)
        os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


def test_read_only_array_stays_read_only():
    array = memrt.zeros(LARGE)
    array.flags.writeable = False
    freeze(array).thaw()
    assert not array.flags.writeable
    base = handled()
    view = base[1:]
    of_view = freeze(view)
    with freeze(base):
        of_view.thaw()
        assert not view.flags.writeable


def test_memory_is_writable_after_the_array_ends():
    for _ in range(20):
        for array in (memrt.zeros(LARGE), handled(), memrt.zeros(5000), handled(5000)):
            freeze(array)
            assert not array.flags.writeable
        del array
        gc.collect(0)
        arrays = [memrt.empty(LARGE), memrt.empty(5000), handled(), handled(5000)]
        for array in arrays:
            fill(array)
        arrays[3] = None


def test_frozen_array_cannot_be_resized():
    array = handled()
    frozen = freeze(array)
    array.flags.writeable = True
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize(2 * LARGE, refcheck=False)
    frozen.thaw()
    array.resize(2 * LARGE, refcheck=False)
    fill(array)


def test_threads_freeze_one_array():
    array = memrt.zeros(LARGE)

    def work():
        for _ in range(50):
            with freeze(array):
                assert not array.flags.writeable

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert array.flags.writeable
    fill(array)


def test_foreign_memory_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"call memrt\.adopt\(\)"):
        freeze(np.frombuffer(bytearray(10_000)))
    with pytest.raises(TypeError, match=r"array must be a numpy\.ndarray, got list"):
        freeze([1])
    array = memrt.zeros(LARGE)
    for call in (lambda: _memrt.freeze_pages(array, array), lambda: _memrt.thaw_pages(array)):
        with pytest.raises(TypeError, match=r"expected a memrt\.MemInfo, got numpy"):
            call()
    with pytest.raises(TypeError, match="freeze_pages"):
        _memrt.freeze_pages(1)
    with pytest.raises(LookupError, match="cannot end the protection of 4000000 bytes"):
        _memrt.thaw_pages(memrt.meminfo(array))


@pytest.mark.parametrize("first", ["memrt", "faulthandler"])
def test_write_of_compiled_code_is_reported(first):
    code = """
        def load():
            array = memrt.zeros(1_000_000)
            memrt.debug.freeze(array)
            return array

        array = load()
        view = array[10:]
        if os.environ["FIRST"] == "memrt":
            import faulthandler
            faulthandler.enable()
        write(array)
    """
    environment = {} if first == "memrt" else {"PYTHONFAULTHANDLER": "1"}
    status, errors = crash(code, FIRST=first, **environment)
    assert status == -11
    assert re.search(r"memrt: refused write at 0x\w+ by thread \d+, at offset 100000 ", errors)
    assert " of a frozen array of 8000000 bytes at 0x" in errors
    report = re.sub("\n    .*[+].*|\n    0x.*", "", errors)  # native frames
    frames = r"\n    write at <string>:\d+\n    <module> at <string>:\d+\n"
    written = re.search(f"written at{frames}  frozen by thread", report)
    assert (written is not None) == (sys.version_info >= (3, 11))
    assert re.search(r"frozen by thread \d+ at\n(    .*freezing.*\n)*    load at <string>:", report)
    assert 'File "<string>", line' in errors


def test_write_of_numpy_through_an_older_view_is_reported():
    code = """
        array = memrt.zeros(1_000_000)
        view = array[10:]
        memrt.debug.freeze(array)
        view[50_000] = 1
    """
    status, errors = crash(code)
    assert status == -11
    assert "at offset 400080 of a frozen array" in errors


def test_system_call_into_frozen_pages_fails():
    array = memrt.zeros(LARGE, "u1")
    with freeze(array), open("/dev/zero", "rb", buffering=0) as source:
        address = array.ctypes.data + 8192
        pages = (ctypes.c_char * 4096).from_address(address)
        with pytest.raises(OSError, match="Bad address"):
            source.readinto(pages)
