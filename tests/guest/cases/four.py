"""Arrays lie on four NUMA nodes, two of them without processors."""

import memrt
import numpy as np

MACHINE = "four nodes"
MIB = 2**20


def shares(**settings):
    """Return the nodes of an array with their shares in eighths."""
    with memrt.Policy(**settings):
        array = np.ones(32 * MIB - 4096, "u1")
    found = memrt.debug.placement(array)
    print(settings, found, flush=True)
    assert found.resident == found.nbytes, found
    return {node: round(8 * size / found.nbytes) for node, size in found.nodes.items()}


assert shares(node="interleave:0,1,2,3", pages="4K") == {0: 2, 1: 2, 2: 2, 3: 2}
assert shares(node="split:1:4:1:2", pages="4K", prefault=2) == {0: 1, 1: 4, 2: 1, 3: 2}
assert shares(node="2,3!home:3", pages="4K") == {3: 8}
assert shares(node=3, pages="thp!") == {3: 8}
try:
    memrt.Policy(node=4)
except ValueError as error:
    print(error)
else:
    raise AssertionError("node 4 does not exist")
