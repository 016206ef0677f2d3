"""Order processes as a tree: each process below the nearest listed ancestor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from memrt._telemetry.stats_pages import Snapshot

_DEPTH = 100  # ancestors that are searched


def parent_of(pid: int) -> int:
    """Return the process id of the parent, or 0 if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def in_tree(snapshots: list[Snapshot]) -> list[tuple[str, Snapshot]]:
    """Return the processes as a tree, each with the branch before its name.

    Siblings keep their order. The parent of a dead process is not known.
    """
    running = {one.pid for one in snapshots if one.runs}
    children: defaultdict[int, list[Snapshot]] = defaultdict(list)
    for one in snapshots:
        children[_listed_ancestor(one.pid, running) if one.runs else 0].append(one)
    return list(_branches(children, 0, ""))


def _listed_ancestor(pid: int, running: set[int]) -> int:
    for _ in range(_DEPTH):
        pid = parent_of(pid)
        if pid in running or pid == 0:
            return pid
    return 0


def _branches(
    children: dict[int, list[Snapshot]], parent: int, before: str
) -> Iterator[tuple[str, Snapshot]]:
    found = children.get(parent, [])
    for one in found:
        is_last = one is found[-1]
        branch = "" if parent == 0 else "└ " if is_last else "├ "
        yield before + branch, one
        if one.runs:
            inner = "" if parent == 0 else "  " if is_last else "│ "
            yield from _branches(children, one.pid, before + inner)
