"""Rule about arrays that are larger than the part that the program used.

The kernel gives an array a page at the first write or read, so a page that does not exist was never
used. The reverse is not true: blocks that memrt reuses have pages, also without a use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from memrt._process.smaps import PAGE, Memory, read_mappings
from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.held import main_holder
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import site_text

MOST_BUFFERS = 256
LEAST_BYTES = 1024 * 1024
_LEAST_PAGES = 0.5  # unused part of a buffer
_LEAST_PART = 0.2  # of the peak
_WINDOW = 256  # pages
_MOST_WINDOWS = 64


def unused_bytes(buffers: Iterable[LiveBuffer]) -> dict[int, int]:
    """Return the never used bytes of the largest buffers, by address of the buffer.

    Only arrays in private memory of this process count: other processes may have used the pages of
    shared memory. Volatile arrays are no blocks, so pages that the kernel dropped do not count. Of
    more than _MOST_WINDOWS * _WINDOW pages, so many are read, and the result is an estimate. The
    result is empty where the system does not show the pages.

    Parameters
    ----------
    buffers : Iterable[LiveBuffer]
        Buffers in the order of their sizes, the largest first.
    """
    found: dict[int, int] = {}
    large = [each for each in buffers if each.nbytes >= LEAST_BYTES and each.kind == "block"]
    with Memory() as memory:
        for each in large[:MOST_BUFFERS]:
            if not each.inherited:
                unused = round(_unused_part(memory, each) * each.nbytes)
                if unused:
                    found[each.address] = unused
    return _in_private_memory(found)


def _unused_part(memory: Memory, buffer: LiveBuffer) -> float:
    """Return the unused part of the whole pages of a buffer; 0 if not known."""
    first = -(-buffer.address // PAGE)
    count = (buffer.address + buffer.nbytes) // PAGE - first
    starts = range(0, count, _WINDOW)
    if len(starts) > _MOST_WINDOWS:
        starts = range(0, count - _WINDOW, (count - _WINDOW) // (_MOST_WINDOWS - 1))
    unused = pages = 0
    for start in starts:
        end = min(start + _WINDOW, count)
        used = memory.used((first + start) * PAGE, (first + end) * PAGE)
        if used is None:
            return 0.0
        unused += int(np.count_nonzero(~used))
        pages += len(used)
    return unused / pages if unused >= _LEAST_PAGES * pages else 0.0


def _in_private_memory(found: dict[int, int]) -> dict[int, int]:
    """Return the entries whose address is in private memory without a file."""
    if not found:
        return {}
    mappings = [each for each in read_mappings("/proc/self/maps") if each.access.endswith("p")]
    private = [(each.start, each.end) for each in mappings if each.inode == 0]
    return {
        address: unused
        for address, unused in found.items()
        if any(start <= address < end for start, end in private)
    }


def find_untouched(evidence: Evidence) -> Iterator[Finding]:
    """Find lines whose arrays are in large part never used until the end of the program."""
    groups: defaultdict[int, list[LiveBuffer]] = defaultdict(list)
    for buffer in evidence.buffers:
        if buffer.address in evidence.unused:
            groups[buffer.site_number].append(buffer)
    for buffers in groups.values():
        size = round(sum(each.nbytes * each.weight for each in buffers))
        unused = round(sum(evidence.unused[each.address] * each.weight for each in buffers))
        if not evidence.is_large(unused, _LEAST_PART):
            continue
        holder = main_holder(evidence, buffers)
        text = (
            f"{human_bytes(unused)} of {human_bytes(size)} were neither written nor read: "
            f"{plural(len(buffers), 'buffer')} from {site_text(buffers[0].site)}{holder.clause}"
        )
        fix = "create the array with the size that the program uses"
        yield Finding("untouched", 0, text, fix, holder.kind, buffers[0].site)
