"""Arrays in the system's pool of huge pages survive forks when the pool is empty."""

import os
import traceback
from pathlib import Path

import memrt
import numpy as np

MIB = 2**20
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGES = 64


def free_pages():
    return int((POOL / "free_hugepages").read_text())


def run_in_child(function, *args):
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
    return child


def wait_for(child):
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status


def write_inherited(array):
    found = memrt.debug.placement(array)
    assert found.huge in (0, None), found
    assert (array == 7).all()
    array += 1
    assert (array == 8).all()
    assert free_pages() == 0


def write_later(array, ready):
    os.read(ready, 1)  # the parent has written to all pages
    write_inherited(array)


def check_forks(array):
    wait_for(run_in_child(write_inherited, array))
    assert (array == 7).all()
    begin, end = os.pipe()
    child = run_in_child(write_later, array, begin)
    array += 2
    os.write(end, b"x")
    wait_for(child)
    assert (array == 9).all()
    found = memrt.debug.placement(array)
    assert found.huge == found.nbytes > array.size, found


(POOL / "nr_hugepages").write_text(str(PAGES))
assert free_pages() == PAGES, free_pages()

policy = memrt.Policy(pages="2M!", node=0)
with policy:
    array = np.empty(PAGES * 2 * MIB - 4096, "u1")
array[:] = 7
found = memrt.debug.placement(array)
print(found)
assert found.huge == found.resident == found.locked == found.nbytes, found
assert found.nodes == {0: found.nbytes}, found
assert free_pages() == 0
check_forks(array)

with policy:
    try:
        np.empty(1)
    except MemoryError:
        print("an empty pool is MemoryError")
    else:
        raise AssertionError("an empty pool gave a page")
assert policy.stats().live == array.nbytes
assert memrt.debug.placement(array).asked.refused == {"2M": "ENOMEM"}

with memrt.Policy(pages="2M,4K"):
    small = np.ones(4 * MIB, "u1")
assert memrt.debug.placement(small).asked.refused == {"2M": "ENOMEM"}
del array
assert free_pages() == PAGES, free_pages()

with memrt.Policy(pages="1G,2M,thp"):
    part = np.ones(5 * MIB, "u1")
    assert free_pages() == PAGES - 2, free_pages()
    part.resize(11 * MIB, refcheck=False)
    assert free_pages() == PAGES - 5, free_pages()
del part, small
assert free_pages() == PAGES
