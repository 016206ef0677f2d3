"""Stalls of memory notify the owner of a trigger, and call a callback of memrt.on_pressure."""

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
MIB = limited_group.MIB

# The program reads the limits of the inner group only. Without a signal, the level would stay
# "none" until the program uses 80 % of the limit.
HIGH = 160 * MIB  # of the outer group
LIMIT = 256 * MIB  # of the inner group
REMOUNT = 'umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"'
CONTAINER = ("unshare", "--cgroup", "--mount", "sh", "-c", REMOUNT, "sh")
CALL = """
import memrt
import numpy as np

memrt.enable()
calls, tables = [], []

def drop(level):
    pressure = memrt.debug.pressure()
    calls.append((level, pressure.source, pressure.used / pressure.limit, pressure.of))
    tables.clear()

with memrt.on_pressure(drop, level="low"):
    while not calls:
        tables.append(np.ones(500_000))
print(*calls[0], sep=", ")
"""


def lines(path):
    return [line.split()[0] for line in path.read_text().splitlines()]


assert lines(Path("/proc/pressure/memory")) == ["some", "full"]
with limited_group.limited_group() as group:
    (group / "memory.high").write_text(str(48 * MIB))
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

with limited_group.limited_group() as outer:
    (outer / "memory.high").write_text(str(HIGH))
    (outer / "cgroup.subtree_control").write_text("+memory")
    inner = outer / "inner"
    inner.mkdir()
    (inner / "memory.max").write_text(str(LIMIT))
    begin = time.monotonic()
    result = limited_group.run_inside(inner, *CONTAINER, sys.executable, "-c", CALL)
    inner.rmdir()
    print(
        f"memrt.on_pressure called after {time.monotonic() - begin:.1f} s: {result.stdout}", end=""
    )
    assert result.returncode == 0, result
    level, source, part, of = result.stdout.strip().split(", ")
    assert (level, source, of) == ("medium", "stalls", "for the control group"), result
    assert 0.5 < float(part) < 0.8, result
