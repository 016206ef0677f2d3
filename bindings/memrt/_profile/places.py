"""Assign numbers to the allocation sites of a recording, with the call stack of each site."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memrt._tracking.sites import Site, program_frames, site_of

MOST = 3000  # distinct sites in one recording


class Places:
    """Allocation sites and their call stacks. Each distinct frame text is stored once."""

    def __init__(self, wanted: Iterable[int]) -> None:
        """Take sites from `wanted`, most important first, until there are MOST sites."""
        self._frames: dict[str, int] = {}
        self._rows: dict[int, list[Any]] = {}
        for number in wanted:
            if len(self._rows) >= MOST:
                break
            site = site_of(number)
            if site is not None and number not in self._rows:
                self._rows[number] = [number, str(site.place), self._calls(site)]

    def _calls(self, site: Site) -> list[int]:
        """Return frame numbers of the program's calls, outermost call first."""
        frames = reversed(program_frames(site.frames))
        return [self._frames.setdefault(str(f), len(self._frames)) for f in frames]

    def number(self, site: int) -> int:
        """Return the site's number in the recording, or 0 if the recording lacks the site."""
        return site if site in self._rows else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the frames and sites in the format of a recording."""
        return {"frames": list(self._frames), "sites": list(self._rows.values())}
