"""Assign numbers to the allocation sites of a recording, with the call stack of each site."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memrt._profile.source import Excerpt
from memrt._tracking.sites import Frame, Site, full_text, site_of
from memrt._tracking.user_code import library_call, program_frames, roots, user_call

MOST = 3000  # distinct sites in one recording


class SiteTable:
    """Allocation sites and their call stacks. Each distinct frame text is stored once."""

    def __init__(self, wanted: Iterable[int], excerpts: Iterable[Excerpt] = ()) -> None:
        """Take sites from `wanted`, most important first, until there are MOST sites.

        The excerpts are source text at calls of the sites.
        """
        self._frames: dict[str, int] = {}
        self._rows: dict[int, list[Any]] = {}
        self._user: list[list[int]] = []
        for number in wanted:
            if len(self._rows) >= MOST:
                break
            site = site_of(number)
            if site is not None and number not in self._rows:
                self._rows[number] = [number, str(site.place), self._calls(site)]
                user, library = user_call(site.frames), library_call(site.frames)
                self._user.append([number, self._number(user), self._number(library)])
        self._sources = [
            [self._number(each.frame), each.frame.line, each.first, each.lines] for each in excerpts
        ]

    def _calls(self, site: Site) -> list[int]:
        """Return frame numbers of the program's calls, outermost call first."""
        return [self._number(frame) for frame in reversed(program_frames(site.frames))]

    def _number(self, frame: Frame | None) -> int:
        """Return the number of a frame's text, which has the whole path; -1 for None."""
        return -1 if frame is None else self._frames.setdefault(full_text(frame), len(self._frames))

    def number(self, site: int) -> int:
        """Return the site's number in the recording, or 0 if the recording lacks the site."""
        return site if site in self._rows else 0

    def to_dict(self) -> dict[str, Any]:
        """Return frames, sites, source text and folders in the format of a recording."""
        return {
            "frames": list(self._frames),
            "sites": list(self._rows.values()),
            "user_calls": self._user,
            "sources": self._sources,
            "roots": roots(),
        }
