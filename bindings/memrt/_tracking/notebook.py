"""Measure the memory of a notebook cell: the cell magic ``%%memrt`` of IPython and Jupyter.

Each run of a cell has a new measure. The measure ends with the cell, even if the cell fails.
"""

from __future__ import annotations

import html
from typing import Any

from memrt._stats.snapshot import Stats
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import SiteUsage, sites
from memrt._tracking.measure import Measure, Measures

_SITES_SHOWN = 10  # maximum number of source lines in the table


class CellMemory:
    """Memory of an executed cell, shown as a table.

    Parameters
    ----------
    measure : Measure
        Tracked measure of the cell, after leave().
    """

    def __init__(self, measure: Measure) -> None:
        self.stats: Stats = measure.stats
        """Statistics of the cell; `live` is the memory that the cell left behind."""
        self.peak: int = measure.peak
        """Most bytes in use at once during the cell, above the bytes in use at the start."""
        self.sites: list[SiteUsage] = sites(measure.live())
        """Memory left behind, by source line of the allocation, the largest first."""

    def _figures(self) -> list[tuple[str, str]]:
        return [
            ("peak", human_bytes(self.peak)),
            ("left behind", human_bytes(self.stats.live)),
            ("allocated in total", human_bytes(self.stats.total)),
            ("blocks allocated", f"{self.stats.alloc:,}"),
        ]

    def _site_rows(self) -> list[tuple[str, str]]:
        rows = []
        for usage in self.sites[:_SITES_SHOWN]:
            place = "an unknown source line" if usage.place is None else str(usage.place)
            buffers = plural(round(usage.blocks), "buffer")
            rows.append((f"{human_bytes(round(usage.bytes))} in {buffers}", place))
        return rows

    def __repr__(self) -> str:
        rows = [*self._figures(), *self._site_rows()]
        return "\n".join(["memrt:", *(f"  {name}  {value}" for name, value in rows)])

    def _repr_html_(self) -> str:
        rows = [*self._figures(), *self._site_rows()]
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in rows
        )
        return f"<table><caption>memrt: this cell</caption><tbody>{cells}</tbody></table>"


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%memrt``; called by ``%load_ext memrt``."""

    def memrt(line: str, cell: str) -> None:
        """Run a cell with NumPy on memrt, and show the memory that the cell allocates and leaves.

        The memory left behind is listed by source line. The magic takes no arguments.
        """
        from IPython.core.error import UsageError
        from IPython.display import display

        if line.strip():
            raise UsageError(f"%%memrt takes no arguments, got {line.strip()!r}")
        measure = Measures("cells").new("cell", tracked=True)
        measure.enter()
        try:
            shell.run_cell(cell)
        finally:
            measure.leave()
        display(CellMemory(measure))  # type: ignore[no-untyped-call]

    shell.register_magic_function(memrt, "cell", "memrt")
