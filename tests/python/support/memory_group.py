"""Control groups (cgroups) of version 1 for tests, below the group of the test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

MOUNT = Path("/sys/fs/cgroup/memory")


def own_group() -> Path | None:
    """Return the folder of this process's memory group of version 1, or None."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return MOUNT / path.lstrip("/")
    return None


@contextlib.contextmanager
def limited_group(limit: int) -> Iterator[Path]:
    """Make a group with a limit, and remove the group when its processes have ended."""
    own = own_group()
    if own is None or not os.access(own, os.W_OK):
        pytest.skip("no memory group of version 1 can be made")
    group = own / f"memrt-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        pytest.skip("no memory group of version 1 can be made")
    try:
        yield group
    finally:
        group.rmdir()
