"""Policies with arrays in files, adopted memory-mapped files, and memrt.debug.cold."""

import mmap
import os
import re
import threading
from pathlib import Path

import memrt
import numpy as np
import pytest

MIB = 2**20

kinds = pytest.mark.parametrize("kind", ["file", "memfd"])


def policy_of(kind, folder):
    return memrt.Policy(file=folder) if kind == "file" else memrt.Policy(memfd=True)


def mapping_of(array):
    """Return the line of /proc/self/maps for the first byte of an array."""
    address = array.ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(text, 16) for text in re.match(r"(\w+)-(\w+)", line).groups())
        if start <= address < end:
            return line
    raise AssertionError("not mapped")


def wait_for_child(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@kinds
def test_arrays_lie_in_files_without_names(kind, tmp_path):
    policy = policy_of(kind, tmp_path)
    with policy:
        arrays = [np.ones(size, "u1") for size in (1, 5000, 3 * MIB)]
    for array in arrays:
        assert "(deleted)" in mapping_of(array)
        assert ("memfd:memrt" if kind == "memfd" else str(tmp_path)) in mapping_of(array)
        assert array.ctypes.data % mmap.PAGESIZE == 0
        assert array.all()
    assert list(tmp_path.iterdir()) == []
    assert policy.stats().live == sum(array.nbytes for array in arrays)
    del array, arrays
    assert policy.stats().live == 0
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


@kinds
def test_zeros_resize_and_other_creators(kind, tmp_path):
    policy = policy_of(kind, tmp_path)
    table = memrt.zeros((100, 1000), policy=policy)
    assert not table.any()
    assert "(deleted)" in mapping_of(table)
    with policy:
        grown = np.arange(1000)
        grown.resize(100_000)
    assert "(deleted)" in mapping_of(grown)
    assert grown[999] == 999
    assert not grown[1000:].any()


@kinds
def test_child_and_parent_share_contents(kind, tmp_path):
    policy = policy_of(kind, tmp_path)
    with policy:
        array = np.ones(MIB, "u1")
    child = os.fork()
    if child == 0:
        array[0] = 7
        with policy:
            own = np.full(MIB, 5, "u1")
        status = 0 if own[0] == 5 and "(deleted)" in mapping_of(own) else 1
        del array, own
        os._exit(status)
    assert wait_for_child(child) == 0
    assert array[0] == 7
    assert array[1:].all()
    assert policy.stats().live == MIB


def test_child_keeps_contents_that_the_parent_frees(tmp_path):
    array = memrt.zeros(MIB, "u1", policy=memrt.Policy(file=tmp_path))
    array[:] = 3
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)  # the parent has freed the array
        os._exit(0 if (array == 3).all() else 1)
    del array
    os.close(writer)
    os.close(reader)
    assert wait_for_child(child) == 0


def test_threads_make_and_free_arrays(tmp_path):
    policy = memrt.Policy(file=tmp_path)

    def work(number):
        with policy:
            for _ in range(20):
                array = np.full(50_000, number)
                assert (array == number).all()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert policy.stats().live == 0


LIMITED = """
import resource, sys
import numpy as np, memrt
policy = memrt.Policy(file=sys.argv[1])
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (64 << 20), resource.RLIM_INFINITY))
try:
    np.empty(256 << 20, "u1")
except MemoryError:
    pass
else:
    raise AssertionError("the limit has no effect")
with policy:
    array = np.empty(256 << 20, "u1")
array[:: 1 << 20] = 1
assert array.sum() >= 256
print(memrt.debug.cold(array, pageout=True) == array.nbytes)
"""


def test_array_may_exceed_the_memory_of_the_process(run_python, tmp_path):
    assert run_python(LIMITED, str(tmp_path)).stdout == "True\n"


FULL = """
import resource, sys
import numpy as np, memrt
policy = memrt.Policy(file=sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
with policy:
    small = np.ones(1 << 19, "u1")
    try:
        np.empty(1 << 21, "u1")
    except MemoryError as error:
        print(small.all(), policy.stats().failed)
"""


def test_full_file_system_is_a_memory_error(run_python, tmp_path):
    assert run_python(FULL, str(tmp_path)).stdout == "True 1\n"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"file": "/missing/x"}, FileNotFoundError, "'/missing/x'"),
        ({"file": "/dev/null"}, NotADirectoryError, "'/dev/null'"),
        ({"file": b"/tmp"}, TypeError, "file must be a text or a path, got bytes"),
        ({"file": 3}, TypeError, "not int"),
        ({"file": "a\0b"}, ValueError, "null (byte|character)"),
        ({"file": "/tmp", "memfd": True}, ValueError, "memfd must be False for a policy with"),
        ({"memfd": True, "pages": "thp"}, ValueError, "file and memfd must be unset for"),
        ({"file": "/tmp", "pinned": True}, ValueError, "file and memfd must be unset for"),
        ({"memfd": True, "decay": 3}, ValueError, "cache_limit, decay, hugepages and guard must"),
        ({"memfd": True, "alignment": 16}, ValueError, "alignment must not be 16 for a policy"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        memrt.Policy(**arguments)


@pytest.mark.parametrize("adaptor", ["arena", "counting", "guard", "thread_safe"])
def test_adaptors_refuse_files(adaptor):
    from memrt._allocators.files import file_capsule

    with pytest.raises(ValueError, match="cannot create"):
        getattr(memrt.adaptors, adaptor)(file_capsule(None, True))


def test_memory_mapped_file_is_adopted_in_place(tmp_path):
    mapped = np.memmap(tmp_path / "table", dtype="i8", mode="w+", shape=(1000,))
    array = memrt.adopt(mapped)
    assert array.ctypes.data == mapped.ctypes.data
    del mapped  # the adopted array keeps the file mapped
    array[:] = 7
    del array
    assert (np.fromfile(tmp_path / "table", "i8") == 7).all()


def test_cold_keeps_contents_and_counts_whole_pages(tmp_path):
    page = mmap.PAGESIZE
    for array in (
        memrt.zeros(10 * page, "u1", policy=memrt.Policy(file=tmp_path)),
        memrt.zeros(10 * page, "u1"),
        np.memmap(tmp_path / "table", dtype="u1", mode="w+", shape=(10 * page,)),
    ):
        array[:] = 5
        for pageout in (False, True):
            nbytes = memrt.debug.cold(array, pageout=pageout)
            assert nbytes % page == 0
            assert 9 * page <= nbytes <= 10 * page
            assert (array == 5).all()
        assert memrt.debug.cold(memoryview(array)[: 2 * page]) in (page, 2 * page)
        assert memrt.debug.cold(array[:10]) == 0
        assert memrt.debug.cold(array[:0]) == 0
        assert memrt.debug.cold(array[:: 5 * page]) > 0


def test_cold_of_locked_memory_is_refused():
    with memrt.Policy(lock="try"):
        array = np.ones(MIB, "u1")
    if memrt.debug.placement(array).locked == 0:
        pytest.skip("the system locks no memory")
    with pytest.raises(OSError, match="array must not be locked in memory"):
        memrt.debug.cold(array)


def test_cold_of_other_objects_is_a_type_error():
    with pytest.raises(TypeError, match=r"array must be a numpy\.ndarray or a memoryview"):
        memrt.debug.cold([1, 2])
