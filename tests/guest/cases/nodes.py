"""Arrays lie on the NUMA nodes of their policies, and a node without pages is MemoryError."""

import os
import threading
import traceback
from pathlib import Path

import memrt
import numpy as np

MACHINE = "nodes"
"""Nodes of 3.5 GiB, 768 MiB and 256 MiB, the last without a processor; a page of 1 GiB."""

MIB = 2**20
SIZE = 32 * MIB
POOL = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"


def place(size=SIZE, fill=1, **settings):
    """Return the place of a written array of a policy."""
    with memrt.Policy(**settings):
        array = np.empty(size, "u1")
    array[:] = fill
    return memrt.debug.placement(array)


def check_nodes(expected, **settings):
    """Check the nodes of an array. A share may differ from the expected share by 2 MiB."""
    found = place(**settings)
    print(settings, found, flush=True)
    assert found.resident == found.nbytes == sum(found.nodes.values()), found
    assert found.nodes.keys() == expected.keys(), found
    for node, share in expected.items():
        assert abs(found.nodes[node] - share * found.nbytes) <= 2 * MIB, found
    return found.asked.refused


def check_local_node():
    for node in (0, 1):
        os.sched_setaffinity(0, {node})
        assert check_nodes({node: 1}, node="local", pages="4K") == {}
    os.sched_setaffinity(0, {0, 1})


def check_settings():
    for node in (0, 1, 2):
        assert check_nodes({node: 1}, node=node) == {}
        assert check_nodes({node: 1}, node=f"{node}!", prefault=2, lock="try") == {}
        assert check_nodes({node: 1}, node=node, pages="thp!") == {}
    halves = {0: 0.5, 1: 0.5}
    assert check_nodes(halves, node="interleave:0,1", pages="4K") == {}
    assert check_nodes(halves, node="weighted:0,1", pages="4K") == {"node": "EINVAL"}
    assert check_nodes({0: 0.75, 1: 0.25}, node="split:3:1") == {}
    assert check_nodes({0: 0.25, 2: 0.75}, node="split:1:0:3", pages="4K", prefault=2) == {}
    for node in (1, 2):
        assert check_nodes({node: 1}, node=f"1,2!home:{node}", pages="4K") == {}
    spilled = place(size=320 * MIB, node=2, pages="4K")
    assert spilled.nodes[2] > 100 * MIB, spilled
    assert len(spilled.nodes) > 1, spilled


def check_pool_of_a_node():
    """Node 1 has 8 pages, and node 0 many: the reservation of the system succeeds for 9 pages."""
    Path(POOL.format(0)).write_text("32")
    Path(POOL.format(1)).write_text("8")
    assert check_nodes({1: 1}, size=15 * MIB, node="1!", pages="2M!") == {}
    policy = memrt.Policy(node="1!", pages="2M!")
    with policy:
        kept = np.zeros(1000)
        try:
            np.empty(17 * MIB, "u1")
        except MemoryError:
            print("a full node is MemoryError", memrt.debug.placement(kept).asked.refused)
        else:
            raise AssertionError("node 1 gave more pages than it has")
    assert memrt.debug.placement(kept).asked.refused["2M"] in ("ENOMEM", "EFAULT")
    assert check_nodes({0: 0.5, 1: 0.5}, size=16 * MIB - 4096, node="split:1:1", pages="2M!") == {}


def check_giant_page():
    giant = memrt.Policy(pages="1G!", prefault=2)
    with giant:
        array = np.empty(1024 * MIB - 4096, "u1")
    array[:: 2 * MIB] = 7
    found = memrt.debug.placement(array)
    assert found.huge == found.nbytes == 1024 * MIB, found
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert (array[:: 2 * MIB] == 7).all()
            array[:: 2 * MIB] = 8
            assert memrt.debug.placement(array).huge in (0, None)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (array[:: 2 * MIB] == 7).all()
    refused = place(size=1030 * MIB, fill=0, pages="1G,4K").asked.refused
    assert refused == {"1G": "ENOMEM"}, refused
    del array
    with memrt.Policy(pages="1G,2M!"):
        mixed = np.ones(1030 * MIB, "u1")
    found = memrt.debug.placement(mixed)
    assert found.huge == found.nbytes > 1030 * MIB, found


threads = [threading.Thread(target=check_local_node)]
threads[0].start()
threads[0].join()
check_settings()
check_pool_of_a_node()
check_giant_page()
