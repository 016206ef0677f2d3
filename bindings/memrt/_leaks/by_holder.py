"""Group buffers by allocation site and kind of holder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from memrt._leaks.survey import Survey
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import Place


class HolderGroup(NamedTuple):
    """Buffers of one source line with the same kind of holder."""

    holder: str
    """Holder as text, such as ``Index.tiles[...]``."""
    buffers: list[LiveBuffer]
    """Buffers of the group, the largest first; never empty."""

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers; an estimate if allocations were sampled."""
        return round(sum(buffer.nbytes * buffer.weight for buffer in self.buffers))


def by_holder(buffers: Iterable[LiveBuffer], survey: Survey) -> list[HolderGroup]:
    """Return groups of buffers, most bytes first. Buffers outside the survey are left out."""
    found: defaultdict[tuple[Place | None, str], list[LiveBuffer]] = defaultdict(list)
    for buffer in buffers:
        if survey.knows(buffer):
            found[buffer.place, survey.main_holder(buffer)].append(buffer)
    groups = [
        HolderGroup(holder, sorted(members, key=lambda buffer: -buffer.nbytes))
        for (_, holder), members in found.items()
    ]
    return sorted(groups, key=lambda each: -each.nbytes)
