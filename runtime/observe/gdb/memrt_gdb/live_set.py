"""The live set: its partitions, slots and removed keys."""

import struct
import time

import gdb

from .meminfo import Buffer, buffer_at, headers_layout
from .program import Layout, has, memory, symbol


def parts_of_live_set():
    parts = symbol("partitions", "observe/live_set.c")
    return [parts[index] for index in range(parts.type.range()[1] + 1)]


def slots_of(part):
    """Return address, number and layout of the slots of a partition.

    Address and number are 0 if the partition has no table.
    """
    table = part["table"]
    entries = Layout(table.type.target()["slots"].type.target())
    if not int(table):
        return 0, 0, entries
    return int(table["slots"].address), int(table["capacity"]), entries


def live_buffers():
    """Yield all MemInfos of the live set, in no order."""
    headers = headers_layout()
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        data = memory(slots, capacity * entries.size) if slots else b""
        for at in range(0, len(data), entries.size):
            key = entries.read(data, at, "key")
            if key:
                header = memory(key, headers.size)
                yield Buffer(key, headers, header).listed(data, at, entries)


def slot_of(key, slots, capacity, entries):
    """Return the address of the slot with a key, or None. Skips the bytes of the key elsewhere."""
    wanted = struct.pack("<Q", key)
    at, end = slots, slots + capacity * entries.size
    while end - at >= len(wanted):
        found = gdb.selected_inferior().search_memory(at, end - at, wanted)
        if found is None or (found - slots) % entries.size == 0:
            return found
        at = found + 1
    return None


def listed_at(key):
    """Return the MemInfo at an address, with the data of the live set if available."""
    buffer = buffer_at(key)
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        found = slot_of(key, slots, capacity, entries)
        if found is not None:
            return buffer.listed(memory(found, entries.size), 0, entries)
    return buffer


def left_of(part):
    """Yield the removed keys that a partition of the live set remembers, the latest first."""
    if not has(part, "removed"):
        return
    room, leavings = part["removed"].type.range()[1] + 1, int(part["removals"])
    for back in range(1, min(room, leavings) + 1):
        yield part["removed"][(leavings - back) % room]


def lately_left(address):
    """Return a freed buffer that contained an address, or None if no such buffer is remembered."""
    for part in parts_of_live_set():
        for left in left_of(part):
            if 0 <= address - int(left["data"]) < max(int(left["size"]), 1):
                return left
    return None


def now(buffers):
    """Return the current time of the clock of allocations.

    For a local process this is the clock of the machine, else the time of the last allocation.
    """
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max((buffer.allocated for buffer in buffers), default=0)
