"""One finding, and the evidence that all rules examine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memrt._leaks.leaks import LeakGroup
from memrt._leaks.survey import Survey
from memrt._profile.findings.contents import Content
from memrt._profile.moment import Moment
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import Site
from memrt._tracking.user_code import program_frames, user_call

LEAST_BYTES = 1024 * 1024
"""Findings about fewer bytes are left out."""
LEAST_PART = 0.1
"""Findings about a smaller part of the peak are left out."""


@dataclass(frozen=True)
class Finding:
    """A memory problem of a recorded program."""

    rule: str
    """Name of the rule, such as 'growth'."""
    bytes: int
    """Bytes that a fix would save; for growth, the bytes so far."""
    text: str
    """One sentence: number, place and holder."""
    fix: str
    """The next step, as an imperative sentence."""
    holder: str | None = None
    """Description of the holders; None if not known."""
    site: Site | None = None
    """Allocation site, or the most important one of several; None if not known."""
    is_rising: bool = False
    """Whether a longer run needs more bytes. Such bytes count twice in the order."""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding in the format of a recording."""
        return {
            "rule": self.rule,
            "bytes": self.bytes,
            "text": self.text,
            "fix": self.fix,
            "place": None if self.site is None else str(self.site.place),
            "holder": self.holder,
            "calls": _calls(self.site),
        }


def _calls(site: Site | None) -> list[list[Any]]:
    """Return function, path and line of the Python calls: the user's, then innermost first."""
    if site is None:
        return []
    user = user_call(site.frames)
    frames = [user, *(frame for frame in program_frames(site.frames) if frame is not user)]
    return [
        [frame.function or "code", frame.file, frame.line]
        for frame in frames
        if frame.file is not None and not frame.is_native
    ]


@dataclass
class Evidence:
    """Figures of a recording that the rules examine."""

    peak: int
    """Most live bytes of the run."""
    live: int
    """Live bytes at the end."""
    last: int
    """Serial number of the last allocation of the recording."""
    delay: float = 0.0
    """Seconds from the end of the recording to the listing of `buffers`."""
    buffers: Sequence[LiveBuffer] = ()
    """Tracked buffers that are live at the end, after garbage collection."""
    lost: Sequence[LeakGroup] = ()
    held: Sequence[LeakGroup] = ()
    """All groups of lost and of held buffers, without suppressed buffers."""
    survey: Survey | None = None
    retained: Sequence[Any] = ()
    """Buffers that views of a part keep: memrt.types.Retained."""
    moment: Moment = field(default_factory=lambda: Moment(0.0, {}, {}))
    """The highest observed moment."""
    at_peak: Sequence[Content] = ()
    at_end: Sequence[Content] = ()
    """Sampled contents of the largest buffers, at the highest moment and at the end."""
    unused: Mapping[int, int] = field(default_factory=dict)
    """Never used bytes of large buffers, by address. Empty if the program did not run to its end,
    because the program may have used the bytes later."""
    total: Sequence[tuple[int, int, int]] = ()
    """Number of a site, number of its allocations, and their bytes."""
    cached: int = 0
    """Median of the bytes that memrt kept for reuse, in the second half of the run."""
    memory: dict[str, int] = field(default_factory=dict)
    """Resident bytes at the end by part of the process."""
    is_sampled: bool = False
    """Whether a sample of the allocations was tracked."""

    def is_large(self, nbytes: float, part: float = LEAST_PART) -> bool:
        """Return whether a number of bytes is worth a finding."""
        return nbytes >= LEAST_BYTES and nbytes >= part * self.peak
