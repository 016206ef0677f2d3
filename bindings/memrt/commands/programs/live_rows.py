"""List the source lines with most live bytes, for the summary of a tracked program."""

from __future__ import annotations

from memrt._support.units import human_bytes
from memrt._tracking.live import LiveBuffer, sites
from memrt._tracking.sites import Place, site_text
from memrt.commands.output.table import text_table


def live_lines(live: list[LiveBuffer], listed: int) -> list[str]:
    """Return a title and a table of the `listed` source lines with most live bytes.

    The table is empty for 0 lines, and the title is left out below 0.
    """
    if listed < 0:
        return []
    title = _title(live, listed)
    return [title, text_table(_rows(live)[:listed], right=[0, 1])] if listed else [title]


def _title(live: list[LiveBuffer], listed: int) -> str:
    places = len({buffer.place for buffer in live})
    shown = f"; the {listed} allocation sites with most bytes" if places > listed > 0 else ""
    return f"live buffers: {len(live):,}{shown}"


def _rows(live: list[LiveBuffer]) -> list[tuple[str, ...]]:
    """Return rows by source line, largest sum of bytes first.

    Where a source line calls several lines of a library, the row names the line of its largest
    buffer.
    """
    texts: dict[Place | None, str] = {}
    for buffer in sorted(live, key=lambda each: -each.nbytes):
        texts.setdefault(buffer.place, site_text(buffer.site))
    return [
        (human_bytes(round(usage.bytes)), f"{usage.blocks:,.0f}", texts[usage.place])
        for usage in sites(live)
    ]
