"""Read the memory map of this process from /proc: mappings, resident pages, contents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PAGE = os.sysconf("SC_PAGE_SIZE")
CLEAR_REFS = "/proc/self/clear_refs"
_RESTART_PEAK = b"5"  # command of CLEAR_REFS
_KB = 1024  # bytes of a "kB" in /proc
_PRESENT, _SWAPPED = np.uint64(1 << 63), np.uint64(1 << 62)  # highest bits of a page's entry
_PART = 1 << 20  # bytes of entries that one read takes
# Longest range whose pages are read, in about 0.4 s. Sanitizers and drivers reserve more address
# space, up to 20 TiB, and use little of it.
_LONGEST = 256 << 30
_HEX = b"0123456789abcdef"  # first characters of a line with addresses


class Mapping(NamedTuple):
    """Mapping of the kernel, with its bytes in memory."""

    start: int
    end: int
    access: str
    """Access as /proc shows it: "rw-p"."""
    inode: int
    """Inode of the mapped file; 0: none."""
    name: str
    """Path of the file, or name like "[heap]"; empty for most anonymous memory."""
    resident: int
    swapped: int

    @property
    def is_private(self) -> bool:
        """Whether the mapping has neither a file nor a name, and belongs to this process alone."""
        return self.inode == 0 and not self.name and self.access.endswith("p")


def read_mappings(path: str = "/proc/self/smaps") -> list[Mapping]:
    """Return the mappings of a process, in the order of addresses.

    Raises
    ------
    OSError
        The file cannot be read; the error names the file.
    """
    with open(path, "rb", buffering=0) as file:
        return list(_parse(file.readall().splitlines()))


def _parse(lines: list[bytes]) -> Iterator[Mapping]:
    header: list[bytes] = []
    resident = swapped = 0
    for line in lines:
        if line[0] in _HEX:
            if header:
                yield _mapping(header, resident, swapped)
            header, resident, swapped = line.split(maxsplit=5), 0, 0
        elif line.startswith(b"Rss:"):
            resident = int(line.split()[1]) * _KB
        elif line.startswith(b"Swap:"):
            swapped = int(line.split()[1]) * _KB
    if header:
        yield _mapping(header, resident, swapped)


def _mapping(header: list[bytes], resident: int, swapped: int) -> Mapping:
    start, end = (int(part, 16) for part in header[0].split(b"-"))
    name = os.fsdecode(header[5]) if len(header) > 5 else ""
    return Mapping(start, end, header[1].decode(), int(header[4]), name, resident, swapped)


def read_peak_resident() -> int:
    """Return the most resident bytes of this process so far; 0: the system does not know."""
    with open("/proc/self/status", "rb", buffering=0) as file:
        for line in file.readall().splitlines():
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * _KB
    return 0


def restart_peak_resident() -> int:
    """Restart the peak of resident bytes at the resident bytes of now, and return the latter.

    The kernel keeps the peak of a process, so no sample can miss a short peak.

    Raises
    ------
    OSError
        The system cannot restart the peak, for example in a sandbox.
    """
    with open(CLEAR_REFS, "wb", buffering=0) as file:
        file.write(_RESTART_PEAK)
    return read_peak_resident()


class Memory:
    """Contents and pages of this process, read through /proc.

    A read of unmapped memory gives nothing, in place of a crash. Where /proc refuses, for example
    in some sandboxes, all reads give nothing.
    """

    def __init__(self) -> None:
        self._contents = _open("/proc/self/mem")
        self._pages = _open("/proc/self/pagemap")

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *unused: object) -> None:
        for file in (self._contents, self._pages):
            if file >= 0:
                os.close(file)

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes at an address, or fewer bytes if the memory cannot be read."""
        try:
            return os.pread(self._contents, size, address) if self._contents >= 0 else b""
        except (OSError, OverflowError):  # for example unmapped meanwhile
            return b""

    def present(self, start: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Return for each page of a range whether the page is in memory. None: not known."""
        return self._are_at_least(_PRESENT, start, end)

    def used(self, start: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Return for each page of a range whether the page exists: in memory, or in swap space.

        A page that does not exist was never written or read. None: not known.
        """
        return self._are_at_least(_SWAPPED, start, end)

    def _are_at_least(self, state: np.uint64, start: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Return for each page of a range whether the kernel's entry is at least `state`.

        None: not known, or the range is address space beyond _LONGEST.
        """
        if self._pages < 0 or end - start > _LONGEST:
            return None
        found = np.zeros((end - start) // PAGE, np.bool_)
        done = 0
        try:
            while done < len(found):
                size = min(_PART, (len(found) - done) * 8)
                entries = np.frombuffer(
                    os.pread(self._pages, size, (start // PAGE + done) * 8), np.uint64
                )
                if not len(entries):
                    return None
                found[done : done + len(entries)] = entries >= state
                done += len(entries)
        except OSError:
            return None
        return found

    def present_pages(self, start: int, end: int) -> list[int]:
        """Return the addresses of the pages of a range that are in memory."""
        present = self.present(start, end)
        if present is None:
            return []
        pages: list[int] = (np.flatnonzero(present) * PAGE + start).tolist()
        return pages


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1
