"""Policies with placement, and memrt.debug.placement."""

import ctypes
import mmap
import os
import resource
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import memrt
import numpy as np
import pytest

MIB = 2**20


def has_nodes() -> bool:
    try:
        memrt.adaptors.placed(node=0)
    except ValueError:
        return False
    return True


needs_nodes = pytest.mark.skipif(not has_nodes(), reason="the container refuses mbind()")


def run_in_child(function: Callable[..., None], *args: object) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def filled(nbytes: int) -> np.ndarray:
    return np.ones(nbytes, "u1")


@needs_nodes
@pytest.mark.parametrize(
    "node", [0, "0", "0!", "local", "interleave:0", "weighted:0", "split:1", "0!home:0"]
)
def test_arrays_lie_on_the_node(node):
    with memrt.Policy(node=node, pages="4K"):
        array = filled(3 * MIB)
    found = memrt.debug.placement(array)
    assert found.resident == found.nbytes == sum(found.nodes.values())
    assert found.asked.node == str(node)
    assert found.asked.refused == {} or node in ("weighted:0", "0!home:0")
    if node != "local":
        assert set(found.nodes) == {0}


@needs_nodes
def test_small_and_resized_arrays_are_placed():
    with memrt.Policy(node=0, prefault=True):
        small = np.arange(10)
        text = np.array(["a", "bc"], dtype=object)
        grown = np.zeros(1000)
        grown.resize(10**6, refcheck=False)
    assert small.sum() == 45
    assert text[1] == "bc"
    assert grown.sum() == 0
    assert memrt.debug.placement(grown).resident == memrt.debug.placement(grown).nbytes


@needs_nodes
@pytest.mark.parametrize("threads", [False, True, 1, 3])
def test_threads_give_memory_to_arrays(threads):
    with memrt.Policy(node="local", pages="4K", prefault=threads):
        array = np.empty(32 * MIB, "u1")
    found = memrt.debug.placement(array)
    assert found.resident == found.nbytes or not threads
    assert found.asked.prefault == threads


def locked_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmLck:"))


def test_locked_array_is_resident_and_locked():
    with memrt.Policy(lock=True):
        array = np.empty(64 << 10, "u1")
    if locked_memory() == 0:
        return  # sanitizers replace mlock() by a function without effect
    found = memrt.debug.placement(array)
    assert found.locked == found.resident == found.nbytes
    assert "locked" in str(found)


def lock_without_right() -> None:
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    drop_rights(may_read_proc=True)
    with memrt.Policy(lock="try") as policy:
        array = np.ones(10**6)
    found = memrt.debug.placement(array)
    assert found.locked == 0
    assert found.asked.refused["lock"] in ("EPERM", "ENOMEM")
    assert "lock refused (E" in str(found)
    assert policy.stats().live == 8 * 10**6
    with memrt.Policy(lock=True), pytest.raises(MemoryError):
        np.ones(10**6)


def drop_rights(*, may_read_proc: bool) -> None:
    """Become a user without the right to lock memory (CAP_IPC_LOCK)."""
    if os.geteuid() == 0:
        os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, may_read_proc, 0, 0, 0)  # PR_SET_DUMPABLE


def test_refused_lock_is_an_error_or_a_fact(libc_malloc):
    run_in_child(lock_without_right)


def may_lack_huge_pages() -> bool:
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    major, minor = os.uname().release.split(".")[:2]
    return not switch.exists() or (int(major), int(minor)) < (6, 1)


def test_huge_pages_or_memory_error():
    with memrt.Policy(pages="thp!") as policy:
        try:
            array = np.empty(5 * MIB, "u1")
        except MemoryError:
            assert may_lack_huge_pages()
            return
        tiny = np.ones(3)
    for each in (array, tiny):
        found = memrt.debug.placement(each)
        assert found.huge in (found.nbytes, None)
    assert policy.stats().live == array.nbytes + tiny.nbytes


def pool_pages() -> int:
    """Return the pages of 2 MiB in the pool of the machine."""
    pool = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    return int(pool.read_text()) if pool.exists() else 0


@pytest.mark.skipif(pool_pages() > 0, reason="the machine has a pool: see tests/guest")
def test_empty_pool_is_an_error_or_a_fact():
    with memrt.Policy(pages="1G,2M,thp"):
        array = np.ones(3 * MIB, "u1")
    found = memrt.debug.placement(array)
    assert set(found.asked.refused) <= {"2M", "thp"}  # pages of 1 GiB were not tried
    assert found.asked.refused["2M"] in ("ENOMEM", "EINVAL", "ENOENT")
    assert "2M refused (E" in str(found)
    for demand in ("2M!", "1G!"):
        with memrt.Policy(pages=demand), pytest.raises(MemoryError):
            np.ones(10)


@needs_nodes
def test_bad_settings_are_refused():
    for setting, error, message in [
        ({"pages": "8K"}, ValueError, "pages must be some of '1G', '2M', 'thp' and '4K' in this"),
        ({"pages": "4K,2M"}, ValueError, "'!' at most at the end, got '4K,2M'"),
        ({"node": "x"}, ValueError, "node must be 'local', 'N', 'N,N!'"),
        ({"node": 63}, ValueError, "node must exist, see /sys/devices/system/node/online"),
        ({"node": -1}, ValueError, "node must be 'local', 'N', 'N,N!'"),
        ({"node": "split:0"}, ValueError, "'weighted:N,N' or 'split:W:W', got 'split:0'"),
        ({"node": 1.5}, TypeError, "node must be a whole number, a text or None, got float"),
        ({"node": True}, TypeError, "node must be a whole number, a text or None, got bool"),
        ({"prefault": 65}, ValueError, "prefault must be from 0 to 64 threads, got 65"),
        ({"prefault": -1}, ValueError, "prefault must be from 0 to 64 threads, got -1"),
        ({"prefault": "x"}, TypeError, "prefault must be True, False or a number, got str"),
        ({"lock": "maybe"}, ValueError, "lock must be True, False or 'try', got 'maybe'"),
        ({"lock": 1}, ValueError, "lock must be True, False or 'try', got 1"),
        ({"node": 0, "cache_limit": 0}, ValueError, "must be None for a policy with an allocator"),
        ({"node": 0, "pinned": True}, ValueError, "pages, node, lock and prefault must be unset"),
        ({"lock": True, "allocator": memrt.adaptors.guard()}, ValueError, "must be unset"),
    ]:
        with pytest.raises(error, match=message.replace("(", r"\(")):
            memrt.Policy(**setting)


def test_placement_of_other_memory():
    array = np.ones(10**6)
    found = memrt.debug.placement(array)
    assert found.asked is None
    assert found.resident == found.nbytes >= array.nbytes
    view = array[::-2]
    assert memrt.debug.placement(view).nbytes <= found.nbytes
    assert memrt.debug.placement(np.empty(0)).nbytes <= mmap.PAGESIZE
    fresh = mmap.mmap(-1, MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    unread = memrt.debug.placement(np.frombuffer(fresh, "u1"))
    assert (unread.nbytes, unread.resident) == (MIB, 0)
    with pytest.raises(
        TypeError, match=r"array must be a numpy\.ndarray or a memoryview, got list"
    ):
        memrt.debug.placement([1])


def read_without_right() -> None:
    drop_rights(may_read_proc=False)
    with pytest.raises(OSError, match="/proc/self/pagemap must be readable"):
        memrt.debug.placement(np.ones(10))


def test_unreadable_page_map_is_an_error():
    run_in_child(read_without_right)


@needs_nodes
def test_threads_share_a_placed_policy():
    policy = memrt.Policy(node="local", prefault=True)

    def work() -> None:
        with policy:
            for size in range(1, 200):
                array = np.full(size * 1000, size)
                assert array[-1] == size

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert policy.stats().live == 0


def write_inherited(array: np.ndarray, policy: memrt.Policy) -> None:
    array += 1
    with policy:
        fresh = np.ones(array.size)
    assert array.sum() == 2 * fresh.sum()


@needs_nodes
def test_forked_child_uses_inherited_arrays():
    with memrt.Policy(node=0, lock="try", prefault=True) as policy:
        array = np.ones(10**5)
        np.ones(10**5)  # freed, cached with its lock
    run_in_child(write_inherited, array, policy)
    assert array.sum() == array.size
