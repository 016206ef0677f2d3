"""Time one loop of loops.c over one subject, in this process.

usage: python -I blocks.py JOB, a JSON object:

  loops     path of the compiled loops.c or patterns.c
  subject   kind (malloc, memrt, watched, blocks, nrt, double or bare) and the parameters of
            the kind
  loop      name of a function of this file
  size      bytes of a block; many_live takes lists instead, `sizes` and `order`
  threads   number of threads, for loops with this argument
  target    approximate nanoseconds of a measurement
  repeats   measurements; the figure is the median, or the minimum for loops with threads
  least     minimum of blocks in one measurement
  count     replaces target: run exactly `count` blocks, once

Prints {"ns": nanoseconds of one block}.

No library times the loops: pyperf times calls of Python, and one call takes longer than an
allocation.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import statistics
import sys
import sysconfig
from pathlib import Path

DATA_AT = 24  # offset of the data pointer in a MemInfo, memrt's and Numba's
PLAIN = -1  # the object is the data
ON_THE_WALL = ("in_threads", "many_in_threads", "handed_over", "short_threads")


class Subject(ctypes.Structure):
    """The functions that loops.c calls: subject_t in subject.h."""

    _fields_ = (
        ("alloc", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("acquire", ctypes.c_void_p),
        ("data_at", ctypes.c_ssize_t),
        ("clock", ctypes.c_void_p),
    )


class Raw(ctypes.Structure):
    """Functions with the signatures of NEP 49: raw_t in raw.h."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("alloc", "calloc", "realloc", "free"))


def address(function: object) -> int | None:
    """Return the address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value


def malloc(_wanted: dict) -> Subject:
    """Return the malloc of this process, which may be preloaded."""
    process = ctypes.CDLL(None)
    return Subject(address(process.malloc), address(process.free), None, PLAIN, None)


def memrt_table(library: str):
    """Return the function table of a libmemrt as an array of words."""
    get_api = ctypes.CDLL(library).memrt_get_api
    get_api.restype = ctypes.POINTER(ctypes.c_void_p)
    return get_api(ctypes.c_uint32(1), None)


def memrt(wanted: dict) -> Subject:
    """Return allocate, release and acquire of the table."""
    table = memrt_table(wanted["library"])
    return Subject(table[0], table[4], table[3], DATA_AT, None)


def begun(wanted: dict) -> tuple[ctypes.CDLL, ctypes.POINTER]:
    """Enter a scope if `scope` is set. Return table.c and memrt's table."""
    library, table = ctypes.CDLL(wanted["table"]), memrt_table(wanted["library"])
    if wanted["scope"] and not library.table_enter_scope(table):
        raise MemoryError("cannot enter a scope for the measurement")
    return library, table


def watched(wanted: dict) -> Subject:
    """Return allocate and release of the table, after table.c has entered a scope if asked."""
    _, table = begun(wanted)
    return Subject(table[0], table[4], None, DATA_AT, None)


def raw_functions(library: ctypes.CDLL, table: ctypes.POINTER) -> Raw:
    """Return the block functions of the table."""
    functions = Raw()
    library.table_raw(table, ctypes.byref(functions))
    return functions


def blocks(wanted: dict) -> Subject:
    """Return the block functions of the table, for loops compiled with BLOCKS."""
    functions = raw_functions(*begun(wanted))
    return Subject(functions.alloc, functions.free, None, PLAIN, None)


def alone(package: str, module: str):
    """Load an extension module without importing its package, which is slow to import."""
    folder = Path(importlib.util.find_spec(package).origin).parent
    path = str(folder / module) + sysconfig.get_config_var("EXT_SUFFIX")
    spec = importlib.util.spec_from_file_location(Path(module).name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def nrt(wanted: dict) -> Subject:
    """Return the helpers of Numba's runtime, with the statistics on or off."""
    sys.path[:0] = wanted["path"]
    runtime = alone("numba", "core/runtime/_nrt_python")
    if wanted["statistics"]:
        runtime.memsys_enable_stats()
    else:
        runtime.memsys_disable_stats()
    helpers = runtime.c_helpers
    get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(helpers["get_api"])
    return Subject(
        helpers["MemInfo_alloc"], helpers["MemInfo_release"], get_api()[3], DATA_AT, None
    )


def double(wanted: dict) -> Subject:
    """Return a test double: an allocator with a simulated clock."""
    library = ctypes.CDLL(wanted["library"])
    alloc = getattr(library, wanted["alloc"])
    return Subject(
        address(alloc), address(library.release), None, PLAIN, address(library.fake_clock)
    )


def bare(_wanted: dict) -> Subject:
    """Return a subject without functions, for loops that call no allocator."""
    return Subject(None, None, None, PLAIN, None)


KINDS = {
    "malloc": malloc,
    "memrt": memrt,
    "watched": watched,
    "blocks": blocks,
    "nrt": nrt,
    "double": double,
    "bare": bare,
}


def prepared(job: dict):
    """Return a function that runs the loop for `count` blocks and returns the elapsed ticks."""
    loop = getattr(ctypes.CDLL(job["loops"]), job["loop"])
    loop.restype = ctypes.c_uint64
    subject = KINDS[job["subject"]["kind"]](job["subject"])
    if "order" in job:
        live = len(job["order"])
        sizes = (ctypes.c_size_t * live)(*job["sizes"])
        order = (ctypes.c_uint32 * live)(*job["order"])
        objects = (ctypes.c_void_p * live)()

        def run(count: int) -> int:
            whole = ctypes.c_size_t(-(-count // live) * live)
            return loop(ctypes.byref(subject), sizes, order, ctypes.c_size_t(live), whole, objects)
    else:
        extra = [ctypes.c_size_t(job["threads"])] if "threads" in job else []

        def run(count: int) -> int:
            size = ctypes.c_size_t(job["size"])
            return loop(ctypes.byref(subject), size, ctypes.c_size_t(count), *extra)

    return run


def spent(run, count: int) -> int:
    """Run `count` blocks and return the ticks. Raise MemoryError for 0 ticks."""
    took = run(count)
    if took == 0:
        raise MemoryError("subject returned NULL, or its clock does not advance")
    return took


def calibrated(run, target: int, step: int, least: int) -> int:
    """Return a number of blocks that takes about `target`. The trial runs warm up the subject."""
    count = -(-least // step) * step
    spent(run, count)
    while (took := spent(run, count)) < target // 4:
        count *= 2
    return max(least, step, int(count * target / took) // step * step)


def measure(job: dict) -> float:
    """Return the nanoseconds per block."""
    run = prepared(job)
    step = len(job.get("order", "1"))
    if "count" in job:
        return spent(run, job["count"]) / job["count"]
    count = calibrated(run, job["target"], step, job.get("least", 1))
    times = [spent(run, count) for _ in range(job["repeats"])]
    summary = min if job["loop"] in ON_THE_WALL else statistics.median
    return summary(times) / count


if __name__ == "__main__":
    print(json.dumps({"ns": measure(json.loads(sys.argv[1]))}))
