"""Read the source text around the user's lines, for the reader of a report."""

from __future__ import annotations

import linecache
import os
import stat
from collections.abc import Iterable
from textwrap import dedent
from typing import NamedTuple

from memrt._tracking.sites import Frame, site_of
from memrt._tracking.user_code import is_user_call, user_call

MOST_EXCERPTS = 50
NEIGHBOURS = 2  # lines before the line, and lines after
MOST_CHARACTERS = 160  # of one line
MOST_BYTES = 4 << 20  # of one file; larger files are not read


class Excerpt(NamedTuple):
    """A line of source code with its neighbours."""

    frame: Frame
    """Call at the line."""
    first: int
    """Number of the first line of `lines`."""
    lines: list[str]
    """Texts without the common indentation, and without empty lines around. Long lines are cut and
    end with ``…``."""


def excerpts(sites: Iterable[int]) -> list[Excerpt]:
    """Return excerpts of the user's lines of allocation sites, each line once.

    The first MOST_EXCERPTS readable lines count. Cells of notebooks are readable, as linecache
    knows their text.

    Parameters
    ----------
    sites : Iterable[int]
        Numbers of sites, most important first.
    """
    found: dict[tuple[str | None, int], Excerpt | None] = {}
    count = 0
    for number in dict.fromkeys(sites):
        site = site_of(number)
        if site is None or count == MOST_EXCERPTS:
            continue
        frame = user_call(site.frames)
        key = (frame.file, frame.line)
        if key not in found and is_user_call(frame):
            found[key] = _excerpt(frame)
            count += found[key] is not None
    return [each for each in found.values() if each is not None]


def _excerpt(frame: Frame) -> Excerpt | None:
    """Return the lines around a call, or None if the source has no such line."""
    lines = source_lines(frame.file) if frame.file else []
    if not 1 <= frame.line <= len(lines):
        return None
    first, last = max(frame.line - NEIGHBOURS, 1), min(frame.line + NEIGHBOURS, len(lines))
    while first < frame.line and lines[first - 1].isspace():
        first += 1
    while last > frame.line and lines[last - 1].isspace():
        last -= 1
    shown = "\n".join(line.expandtabs(4).rstrip() for line in lines[first - 1 : last])
    return Excerpt(frame, first, [_cut(line) for line in dedent(shown).split("\n")])


def source_lines(file: str) -> list[str]:
    """Return the lines of a source file, or of a notebook's cell; empty without a readable file.

    Devices, pipes and files of more than MOST_BYTES are not read.
    """
    try:
        status = os.stat(file)
    except OSError:
        return linecache.getlines(file)  # text of a notebook's cell
    except ValueError:  # NUL in the name
        return []
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        return []
    return linecache.getlines(file)


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
