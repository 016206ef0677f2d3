"""memrt.limit("auto") follows the limit of a control group that changes while the program runs."""

import subprocess
import sys
import time

import limited_group

MIB = limited_group.MIB
PATIENCE = 30  # seconds

FOLLOW = """
import memrt

def limit():
    (row,) = [row for row in memrt.debug.limits() if row.of == "process"]
    return row.limit

memrt.limit("auto")
before = limit()
print(before, flush=True)
while limit() == before:
    pass
print(limit(), flush=True)
"""


def start(group):
    return limited_group.start_inside(group, sys.executable, "-c", FOLLOW)


def check_change(before, after):
    """Change the limit of a group, and check that a program in the group follows."""
    with limited_group.limited_group(before * MIB) as group, start(group) as program:
        first = int(program.stdout.readline())
        begin = time.monotonic()
        (group / "memory.max").write_text(str(after * MIB))
        try:
            output, errors = program.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
        assert program.returncode == 0, errors
        second = int(output)
        print(
            f"{before} MiB to {after} MiB: auto from {first / MIB:.1f} to {second / MIB:.1f} MiB",
            f"in {time.monotonic() - begin:.1f} s",
        )
        assert abs((second - first) - (after - before) * MIB * 9 // 10) < 16 * MIB


check_change(256, 192)
check_change(256, 512)
