"""Memory of a cell and of a session, as tables."""

from __future__ import annotations

from collections.abc import Callable

from memrt import _memrt
from memrt._stats.snapshot import Stats, stats
from memrt._support.html_table import html_table
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import SiteUsage, sites
from memrt._tracking.measure import Measure
from memrt._tracking.sites import Place

_SITES_SHOWN = 10  # maximum number of source lines in the table

NameOfPlace = Callable[[Place], str]


class _Table:
    """Figures and source lines, shown as text or as an HTML table."""

    title = ""

    def _rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(["memrt:", *(f"  {name}  {value}" for name, value in self._rows())])

    def _repr_html_(self) -> str:
        return html_table(self.title, self._rows())


def _site_rows(usages: list[SiteUsage], name: NameOfPlace) -> list[tuple[str, str]]:
    rows = []
    for usage in usages[:_SITES_SHOWN]:
        place = "an unknown source line" if usage.place is None else name(usage.place)
        buffers = plural(round(usage.blocks), "buffer")
        rows.append((f"{human_bytes(round(usage.bytes))} in {buffers}", place))
    return rows


class CellMemory(_Table):
    """Memory of an executed cell or statement, shown as a table.

    Parameters
    ----------
    measure : Measure
        Tracked measure of the cell, after leave().
    name : Callable
        Returns the text for a source line.
    """

    title = "memrt: this cell"

    def __init__(self, measure: Measure, name: NameOfPlace = str) -> None:
        self.stats: Stats = measure.stats
        """Statistics of the cell; `live` is the memory that the cell left behind."""
        self.peak: int = measure.peak
        """Most bytes in use at once during the cell, above the bytes in use at the start."""
        self.sites: list[SiteUsage] = sites(measure.live())
        """Memory left behind, by source line of the allocation, the largest first."""
        self._name = name

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("peak", human_bytes(self.peak)),
            ("left behind", human_bytes(self.stats.live)),
            ("allocated in total", human_bytes(self.stats.total)),
            ("blocks allocated", f"{self.stats.alloc:,}"),
            *_site_rows(self.sites, self._name),
        ]


class SessionMemory(_Table):
    """Memory of the process, shown as a table, by source line if tracking is on."""

    title = "memrt: this session"

    def __init__(self, name: NameOfPlace = str) -> None:
        self.stats: Stats = stats()
        """Statistics of the process."""
        self.sites: list[SiteUsage] = sites() if _memrt.tracking_enabled() else []
        """Live memory by source line of the allocation, the largest first."""
        self._name = name

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("live", human_bytes(self.stats.live)),
            ("peak", human_bytes(self.stats.peak)),
            ("allocated in total", human_bytes(self.stats.total)),
            *_site_rows(self.sites, self._name),
        ]
        if not _memrt.tracking_enabled():
            rows.append(("by source line", "unknown: %memrt --on tracks from then on"))
        return rows
