"""A program that the kernel kills has the exit status of SIGKILL, and leaves a readable trace."""

import signal
import sys

import full_group
import limited_group
import memrt

TRACED = """
import sys
import memrt
import numpy as np

memrt.enable()
memrt.debug.trace(sys.argv[1], frames=0).__enter__()
small = [memrt.zeros(10) for _ in range(3000)]
tables = []
while len(tables) < 100:
    tables.append(np.ones(500_000))
"""
TRACE = "/tmp/killed.trace"


def oom_kills(group):
    """Return how many processes of a group the kernel killed for lack of memory."""
    lines = (group / "memory.events").read_text().splitlines()
    return {name: int(count) for name, count in map(str.split, lines)}["oom_kill"]


with limited_group.limited_group() as group:
    result = limited_group.run_inside(group, sys.executable, "-c", TRACED, TRACE)
    assert result.returncode == -signal.SIGKILL, result
    assert oom_kills(group) == 1, oom_kills(group)
trace = memrt.debug.Trace(TRACE)
print(f"the trace of the killed process has {len(trace)} events: {trace.problem}")
assert trace.problem is not None
assert len(trace) > 1000

with limited_group.limited_group() as group:
    result = limited_group.run_inside(group, *full_group.MEMRT, "-c", full_group.HANDLE)
    assert (result.returncode, result.stdout) == (0, "saved\n"), result
    assert oom_kills(group) == 0, oom_kills(group)
print("with a limit of memrt, the kernel killed no process")
