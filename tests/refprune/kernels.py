"""Compile and run kernels that use structrefs, typed lists and closures: kernels.py 0|1.

The argument 1 turns memrt's refcount pruner on. The output is JSON: for each kernel the seconds of
a compilation, the seconds of a call, and the number of refcount calls in its code.
"""

import gc
import json
import sys
import time

import memrt.numba

memrt.numba.install(refprune=sys.argv[1] == "1")
import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import types  # noqa: E402
from numba.experimental import structref  # noqa: E402
from numba.typed import List  # noqa: E402

ROUNDS = 7


@structref.register
class PointType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Point(structref.StructRefProxy):
    def __new__(cls, data, next_data):
        return structref.StructRefProxy.__new__(cls, data, next_data)


structref.define_proxy(Point, PointType, ["data", "next_data"])


@numba.njit
def structrefs(n):
    point = Point(np.ones(4), np.zeros(4))
    total = 0.0
    for i in range(n):
        data = point.data
        total += data[i & 3]
        if i & 1:
            point = Point(point.next_data, data)
    return total


@numba.njit
def typed_lists(n):
    arrays = List()
    for i in range(16):
        arrays.append(np.ones(8) * i)
    total = 0.0
    for i in range(n):
        array = arrays[i & 15]
        if array[0] > 3.0:
            total += array[i & 7]
    return total


@numba.njit
def closures(n):
    table = np.arange(16.0)

    def look(i):
        part = table[i & 7 :]
        return part[0] if part.size > 9 else part[1]

    total = 0.0
    for i in range(n):
        total += look(i)
    return total


@numba.njit
def branches(n):
    a, b = np.ones(8), np.zeros(8)
    total = 0.0
    for i in range(n):
        c = a if i & 1 else b
        d = c if i & 2 else a
        e = d if i & 4 else b
        total += e[i & 7]
    return total


@numba.njit
def many_branches(n):
    point = Point(np.ones(16), np.zeros(16))
    counts = np.zeros(16)
    for i in range(n):
        data = point.data
        if i & 1:
            counts[1] += data[1]
        if i & 2:
            counts[2] += data[2]
        if i & 4:
            counts[3] += data[3]
        if i & 8:
            counts[4] += data[4]
        if i & 16:
            counts[5] += data[5]
        if i & 32:
            counts[6] += data[6]
        if i & 64:
            counts[7] += data[7]
        if i & 128:
            counts[8] += data[8]
    return counts.sum()


KERNELS = (structrefs, typed_lists, closures, branches, many_branches)
CALLS = 200_000


def measure(kernel):
    gc.collect()
    began = time.process_time()
    kernel(3)
    compiled = time.process_time() - began
    text = kernel.inspect_llvm(kernel.signatures[0])
    best = min(seconds_of(kernel) for _ in range(ROUNDS))
    return {"compile": compiled, "run": best, "refops": text.count("call void @NRT_")}


def seconds_of(kernel):
    began = time.process_time()
    kernel(CALLS)
    return time.process_time() - began


if __name__ == "__main__":
    gc.disable()  # a collection would count for one kernel only
    numba.njit(lambda n: Point(np.ones(n), np.ones(n)))(1)  # loads Numba's modules
    print(json.dumps({kernel.__name__: measure(kernel) for kernel in KERNELS}))
