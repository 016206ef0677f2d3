"""memrt.limit("auto") and shares of memory follow the lowest limit of all control groups."""

import sys

import limited_group

MIB = limited_group.MIB
NONE = "max"
ROOT = limited_group.memory_root()

# memory.max and memory.high of the outer and the inner group in MiB, and the lowest.
ROWS = (
    ((NONE, NONE), (256, NONE), 256),
    ((256, NONE), (NONE, NONE), 256),
    ((128, NONE), (256, NONE), 128),
    ((512, NONE), (256, 192), 192),
    ((512, 160), (256, NONE), 160),
)
READ = "import memrt; print(memrt.limit('50%'), memrt.limit('auto'))"
REMOUNT = 'umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"'
HOST = ()
CONTAINER = ("unshare", "--cgroup", "--mount", "sh", "-c", REMOUNT, "sh")
"""Command before a program that sees its own control group as the root of all groups."""


def write_limits(group, limits):
    for name, limit in zip(("memory.max", "memory.high"), limits, strict=True):
        (group / name).write_text(NONE if limit == NONE else str(limit * MIB))


def read_limits(outer_limits, inner_limits, container):
    """Return half of the memory and the automatic limit, as read in the inner group."""
    outer = ROOT / "outer"
    inner = outer / "inner"
    outer.mkdir()
    (outer / "cgroup.subtree_control").write_text("+memory")
    inner.mkdir()
    write_limits(outer, outer_limits)
    write_limits(inner, inner_limits)
    result = limited_group.run_inside(inner, *container, sys.executable, "-c", READ)
    inner.rmdir()
    outer.rmdir()
    assert result.returncode == 0, result
    return map(int, result.stdout.split())


def check_row(outer_limits, inner_limits, lowest, container=HOST):
    half, auto = read_limits(outer_limits, inner_limits, container)
    exact, most = lowest * MIB // 2, lowest * MIB * 9 // 10
    right = exact - 100 < half <= exact and exact < auto <= most  # shares are whole percents
    place = ", in a container" if container else ""
    print(
        f"{'right' if right else 'WRONG'}: outer {outer_limits}, inner {inner_limits}:",
        f"50% is {half / MIB:.1f} MiB of {lowest}, auto is {auto / MIB:.1f} MiB{place}",
        flush=True,
    )
    return right


results = [check_row(*row) for row in ROWS]
results.append(check_row((NONE, NONE), (256, NONE), 256, CONTAINER))
results.append(check_row((512, NONE), (256, 128), 128, CONTAINER))
sys.exit(not all(results))
