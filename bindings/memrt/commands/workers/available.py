"""Determine the memory available to a new process."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_GROUPS = (
    ("::", "sys/fs/cgroup", "memory.max", "memory.current"),
    (":memory:", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the available bytes, or None if the system states no limit.

    The result is the minimum over the machine's available memory, the control groups and RLIMIT_AS.

    Parameters
    ----------
    root : Path
        Folder that contains proc and sys.
    """
    found = [*_machine(root), *_control_groups(root)]
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        found.append(address_space)
    return max(min(found), 0) if found else None


def _machine(root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _control_groups(root: Path) -> Iterator[int]:
    """Yield the unused bytes of each limit: of the process's control group and of all parents."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for mark, folder, limit, used in _GROUPS:
        for line in lines:
            if mark in line:
                path = PurePosixPath(line.partition(mark)[2].lstrip("/"))
                for group in (path, *path.parents):
                    with contextlib.suppress(OSError, ValueError):  # "max" means unlimited
                        files = root / folder / group
                        yield int((files / limit).read_text()) - int((files / used).read_text())
