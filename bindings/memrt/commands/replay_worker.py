"""One replay, in a process of its own: reads a job from standard input, writes what came of it.

Run as a script by :mod:`memrt.commands.replay`. The allocator to try may be in this process as its
`malloc` (LD_PRELOAD), so little is imported before.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import sys

NAMES = ("nanoseconds", "refused", "live", "peak")


class Outcome(ctypes.Structure):
    """replay_outcome_t of replay.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in NAMES]


def main() -> None:
    job = json.load(sys.stdin)
    with open(job["events"], "rb") as file:
        events = _resident(os.fstat(file.fileno()).st_size, file.fileno())
    blocks = _resident(16 * job["slots"])
    library = ctypes.PyDLL(job["library"])
    replay = getattr(library, f"memrt_replay_{job['table']}")
    more = _table(job)
    outcome = Outcome()
    before = _reset_peak()
    replay(events, ctypes.c_size_t(job["count"]), blocks, ctypes.byref(outcome), *more)
    peak, now = _memory("VmHWM"), _memory("VmRSS")
    result = {name: getattr(outcome, name) for name in NAMES}
    json.dump({**result, "peak_resident": peak - before, "resident": now - before}, sys.stdout)


def _resident(size: int, file: int = -1) -> ctypes.Array[ctypes.c_char]:
    """Memory that is there before anything is measured, zero or what stands in a file. It never was
    the allocator's, which would have it for the replay once it was freed, and nobody would see it.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_POPULATE
    if size == 0:
        return (ctypes.c_char * 1)()
    return (ctypes.c_char * size).from_buffer(mmap.mmap(file, size, flags=flags))


def _table(job: dict[str, str]) -> list[ctypes.c_void_p]:
    """What the call needs besides."""
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
    """Let the peak of resident memory start from what is resident now, which is returned."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    """Bytes, as the system has it."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
