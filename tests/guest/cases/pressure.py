"""The kernel has pressure files of memory, and notifies the owner of a trigger."""

import select
import sys
import time
from pathlib import Path

import limited_group

TRIGGER = b"some 50000 1000000\0"  # stalls of 50 ms within 1 s
STALL = """
import numpy as np

tables = [np.ones(500_000) for _ in range(20)]
for _ in range(200):
    for table in tables:
        table += 1
"""
PATIENCE = 60_000  # ms


def lines(path):
    return [line.split()[0] for line in path.read_text().splitlines()]


assert lines(Path("/proc/pressure/memory")) == ["some", "full"]
with limited_group.limited_group() as group:
    (group / "memory.high").write_text(str(48 * limited_group.MIB))
    assert lines(group / "memory.pressure") == ["some", "full"]
    with (group / "memory.pressure").open("r+b", buffering=0) as file:
        file.write(TRIGGER)
        poll = select.poll()
        poll.register(file, select.POLLPRI)
        assert poll.poll(0) == [], "a trigger fired without a stall"
        begin = time.monotonic()
        child = limited_group.start_inside(group, sys.executable, "-c", STALL)
        events = poll.poll(PATIENCE)
        print(f"the trigger fired after {time.monotonic() - begin:.1f} s: {events}")
        child.kill()
        child.wait()
        assert [event for _, event in events] == [select.POLLPRI]
