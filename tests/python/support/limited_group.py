"""A control group with a memory limit, of version 1 or 2, and programs inside the group."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1 << 20
LIMIT = 256 * MIB
VERSION_2 = Path("/sys/fs/cgroup")
VERSION_1 = Path("/sys/fs/cgroup/memory")
SETTINGS = {  # of each version: the file of the limit, and the setting that prevents swapping
    VERSION_2: ("memory.max", "memory.swap.max"),
    VERSION_1: ("memory.limit_in_bytes", "memory.swappiness"),
}
TIMEOUT = 120


def memory_root() -> Path:
    """Return the root of the control groups that have memory limits.

    Raises OSError without such groups.
    """
    controllers = VERSION_2 / "cgroup.controllers"
    if controllers.exists() and "memory" in controllers.read_text().split():
        (VERSION_2 / "cgroup.subtree_control").write_text("+memory")
        return VERSION_2
    if not (VERSION_1 / "memory.limit_in_bytes").exists():
        raise FileNotFoundError(f"no control groups with memory limits in {VERSION_2}")
    return VERSION_1


@contextmanager
def limited_group(limit: int = LIMIT) -> Iterator[Path]:
    """Make a control group with a limit and without swap. Raises OSError without permission."""
    root = memory_root()
    group = root / f"memrt-{os.getpid()}"
    group.mkdir(exist_ok=True)
    try:
        name, swap = SETTINGS[root]
        (group / name).write_text(str(limit))
        if (group / swap).exists():
            (group / swap).write_text("0")
        yield group
    finally:
        group.rmdir()


def can_limit() -> bool:
    """Return whether this process can make a control group with a limit."""
    try:
        with limited_group():
            return True
    except OSError:
        return False


def start_inside(group: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command inside a control group."""

    def enter() -> None:
        (group / "cgroup.procs").write_text("0")

    pipe = subprocess.PIPE
    return subprocess.Popen(command, preexec_fn=enter, stdout=pipe, stderr=pipe, text=True)


def run_inside(group: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command inside a control group to its end."""
    with start_inside(group, *command) as process:
        try:
            output, errors = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
