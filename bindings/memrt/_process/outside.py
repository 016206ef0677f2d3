"""Read the memory of a process from outside, by the names and the access of its mappings."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from memrt._process.kinds import code_inodes, kind_of
from memrt._process.pieces import Kind
from memrt._process.smaps import read_mappings

_NAMES = {
    Kind.STACK: "stack of the main thread",
    Kind.FILE: "mapped files",
    Kind.SHARED: "shared memory",
    Kind.CODE: "programs and libraries",
}
_ANONYMOUS = "arrays, malloc, Python and other anonymous memory"


class OutsidePart(NamedTuple):
    """Part of the memory of a process, as seen from outside."""

    name: str
    resident: int
    """Bytes in memory."""
    mapped: int
    """Bytes of accessible addresses."""

    def to_dict(self) -> dict[str, str | int]:
        """Return the fields by name."""
        return self._asdict()


def read_parts(pid: int) -> list[OutsidePart]:
    """Return the parts of the memory of a process, the largest first.

    The list is empty if the process has ended, or may not be read.
    """
    try:
        mappings = read_mappings(f"/proc/{pid}/smaps")
    except OSError:
        return []
    code = code_inodes(mappings)
    residents: defaultdict[str, int] = defaultdict(int)
    sizes: defaultdict[str, int] = defaultdict(int)
    for each in mappings:
        name = _NAMES.get(kind_of(each, code, "malloc was not read"), _ANONYMOUS)
        residents[name] += each.resident
        sizes[name] += 0 if each.access.startswith("---") else each.end - each.start
    parts = [OutsidePart(name, residents[name], sizes[name]) for name in residents]
    return sorted(parts, key=lambda part: -part.resident)
