"""Run one replay in a separate process: read a job from standard input, and print the result.

:mod:`memrt.commands.replay` runs the file as a script. The tested allocator may serve `malloc` in
the whole process by LD_PRELOAD, so the script imports few modules before the replay.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import sys

NAMES = ("nanoseconds", "refused", "live", "peak", "written", "unwritten")


class Outcome(ctypes.Structure):
    """replay_outcome_t of replay.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in NAMES]


class Block(ctypes.Structure):
    """replay_block_t of replay.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("written", ctypes.c_size_t),
    ]


def main() -> None:
    job = json.load(sys.stdin)
    with open(job["events"], "rb") as file:
        events = _resident(os.fstat(file.fileno()).st_size, file.fileno())
    blocks = _resident(ctypes.sizeof(Block) * job["slots"])
    library = ctypes.PyDLL(job["library"])
    replay = getattr(library, f"memrt_replay_{job['table']}")
    more = _table(job)
    outcome = Outcome()
    before = _reset_peak()
    count, limit = ctypes.c_size_t(job["count"]), ctypes.c_uint64(job["limit"])
    replay(events, count, blocks, limit, ctypes.byref(outcome), *more)
    peak, now = _memory("VmHWM", "VmRSS")
    result = {name: getattr(outcome, name) for name in NAMES}
    json.dump({**result, "peak_resident": peak - before, "resident": now - before}, sys.stdout)


def _resident(size: int, file: int = -1) -> ctypes.Array[ctypes.c_char]:
    """Return populated memory, resident before the measurement: zeros or the contents of a file.

    The memory comes from mmap, never from the tested allocator. The allocator could otherwise
    reuse freed memory in the replay, and the measurement would miss the reuse.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_POPULATE
    if size == 0:
        return (ctypes.c_char * 1)()
    return (ctypes.c_char * size).from_buffer(mmap.mmap(file, size, flags=flags))


def _table(job: dict[str, str]) -> list[ctypes.c_void_p]:
    """Return the extra arguments of the replay call: memrt's table, or NumPy's handler."""
    if job["table"] == "malloc":
        return []
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    sys.path[:0] = job["path"]
    from memrt import _memrt

    if job["table"] == "memrt":
        return [ctypes.c_void_p(pointer(_memrt.api, b"memrt._memrt.api"))]
    return [ctypes.c_void_p(pointer(_memrt.get_handler(), b"mem_handler"))]


def _reset_peak() -> int:
    """Reset the peak of resident memory to the current value, and return that value."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _memory("VmRSS")[0]


def _memory(*names: str) -> list[int]:
    """Return fields of /proc/self/status in bytes, all from one reading.

    A reading needs memory, so a second reading may find more resident memory than the first peak.
    """
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return [int(fields[name].split()[0]) * 1024 for name in names]


if __name__ == "__main__":
    main()
