"""Record one process from start to end, and build the document of the recording."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from itertools import chain, islice, zip_longest
from time import perf_counter

import numpy

import memrt
from memrt import _memrt
from memrt._process.account import MEANINGS, process_memory
from memrt._profile.ending import COLUMNS, Ending
from memrt._profile.findings.finding import Evidence
from memrt._profile.moment import Moment
from memrt._profile.recording import Document
from memrt._profile.sampler import Sampler
from memrt._profile.site_table import MOST, SiteTable
from memrt._stats.snapshot import BYTES, stats
from memrt._support.options import options
from memrt._support.units import human_bytes, plural

ENDED = "ended"
"""How a program ended that ran to its end."""

_MemoryRow = tuple[str, str, int | None, int | None]


class Recorder:
    """Recorder of this process, from start() to stop().

    Parameters
    ----------
    settings : dict[str, str]
        Names and values that the report shows to its reader.
    tracked : bool
        Whether allocations are tracked. Only then the report has sites and buffers.
    keep : Callable[[], None] or None
        Called periodically by the sampler thread, to save so_far().
    """

    def __init__(
        self, settings: dict[str, str], tracked: bool, keep: Callable[[], None] | None = None
    ) -> None:
        self._settings, self._tracked = settings, tracked
        self._begin = perf_counter()
        self._started = time.time()
        self._sampler = Sampler(self._begin, tracked, keep)
        self._seconds, self._stats = 0.0, stats()
        self._memory: list[_MemoryRow] = []
        self._huge_pages: dict[str, int | None] = {"asked": 0, "got": 0}
        self._last = 0

    def save_by(self, keep: Callable[[], None]) -> None:
        """Call `keep` periodically, as for the constructor. Requires that start() follows."""
        self._sampler.save_by(keep)

    def start(self) -> None:
        """Start recording."""
        self._sampler.start()

    def stop(self) -> None:
        """Stop recording. Live buffers are examined later, by finish()."""
        self._read_figures()
        self._sampler.stop()
        self._account()

    def _account(self) -> None:
        """Read the memory of the process, at the time of the figures.

        The rows stay empty where the system does not report the memory.
        """
        try:
            memory = process_memory()
        except OSError:
            return
        self._sampler.add_account(self._seconds, memory)
        self._memory = [
            (name, part.reason or MEANINGS[name], part.resident, part.mapped)
            for name, part in memory.parts().items()
        ]
        self._huge_pages = {"asked": memory.huge_asked, "got": memory.huge_got}

    def _read_figures(self) -> None:
        self._seconds = perf_counter() - self._begin
        self._stats = stats()
        self._last = _memrt.tracking_allocations()

    @property
    def _highest(self) -> Moment:
        return self._sampler.moment or Moment(0.0, {}, {})

    def finish(self, ended: str, at_end: bool = True) -> Document:
        """Return the document of the recording. Requires stop() first.

        Parameters
        ----------
        ended : str
            How the program ended, in words.
        at_end : bool
            Whether the program has ended: garbage is collected, and findings are searched.
        """
        ending = Ending()
        if self._tracked:
            ending.examine(collect=at_end)
            by_turns = zip_longest(*self._most_important(ending), fillvalue=0)
            ending.read_source(chain.from_iterable(by_turns))
            if at_end:
                ending.find_problems(self._evidence(ending.listed), complete=ended == ENDED)
        return self._document(ending, ended)

    def so_far(self, ended: str) -> Document:
        """Return the document of the recording so far, without live buffers.

        Parameters
        ----------
        ended : str
            How the program ended, in words.
        """
        self._read_figures()
        return self._document(Ending(), ended)

    def still_running(self, ended: str) -> Document:
        """Read once more, and return the document so far, with live buffers and their holders.

        Parameters
        ----------
        ended : str
            State of the program, in words.
        """
        self._sampler.read_now()
        self._read_figures()
        self._account()
        ending = Ending()
        if self._tracked:
            ending.examine(collect=False)
        return self._document(ending, ended)

    def before_exec(self) -> Document:
        """Read once more, and return the document of a program that ``os.exec*`` replaces."""
        self._sampler.read_now()
        return self.so_far("replaced by os.exec*")

    def _evidence(self, listed: float) -> Evidence:
        """Return the figures of the run; `listed` is the time of the listing at the end."""
        now, readings = self._stats, self._sampler.timeline.samples
        later = sorted(each.cached for each in readings[len(readings) // 2 :])
        delay = listed - self._begin - self._seconds
        return Evidence(
            peak=now.peak,
            live=now.live,
            last=self._last,
            delay=delay,
            moment=self._highest,
            at_peak=self._sampler.contents,
            cached=later[len(later) // 2] if later else 0,
            memory={name: resident or 0 for name, _, resident, _ in self._memory},
            is_sampled=_memrt.tracking_get()[3] != 0,
        )

    def _most_important(self, ending: Ending) -> tuple[list[int], ...]:
        """Return site numbers, most important first: at the peak, in total, of listings, live.

        The first two groups have at most MOST // 3 sites each.
        """
        by_bytes = sorted(self._highest.by_site.items(), key=lambda item: -item[1][1])
        return (
            list(islice((site for (site, _), _ in by_bytes), MOST // 3)),
            list(islice((number for number, _, _ in ending.total), MOST // 3)),
            list(self._sampler.listings.sites()),
            [buffer.site_number for buffer in ending.buffers],
        )

    def _document(self, ending: Ending, ended: str) -> Document:
        highest = self._highest
        important = chain.from_iterable(self._most_important(ending))
        sites = SiteTable(important, ending.excerpts)
        moment = highest.to_dict()
        for row in moment["rows"]:
            row[0] = sites.number(row[0])
        rows = ending.rows(sites.number)
        return {
            "memrt": memrt.__version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "platform": _system(),
            "program": [str(word) for word in sys.argv],
            "pid": os.getpid(),
            "parent": os.getppid(),
            "started": self._started,
            "seconds": self._seconds,
            "ended": ended,
            "settings": [list(item) for item in self._settings.items()],
            "options": [list(option) for option in options()],
            "stats": [
                [name, "bytes" if name in BYTES else "count", number]
                for name, number in self._stats.to_dict().items()
            ],
            "memory": self._memory,
            "huge_pages": self._huge_pages,
            "memory_over_time": self._sampler.process.to_dict(),
            "notes": [*self._notes(highest), *ending.notes],
            "timeline": self._sampler.timeline.to_dict(),
            **sites.to_dict(),
            "highest": moment,
            "listings": self._sampler.listings.to_dict(sites.number),
            "total": [[sites.number(number), n, size] for number, n, size in ending.total],
            "live": {
                "columns": list(COLUMNS),
                "rows": rows,
                "more": len(ending.buffers) - len(rows),
            },
            **ending.to_dict(),
            "groups": ending.groups(sites.number),
        }

    def _notes(self, highest: Moment) -> list[str]:
        """Return sentences for the reader on the accuracy of the report."""
        sampler, notes = self._sampler, []
        if self._tracked:
            notes.append(
                f"The highest observed moment, {highest.t:.3f} s after the start, had "
                f"{human_bytes(round(highest.nbytes))} in tracked buffers. The peak of the runtime "
                f"covers every moment: {human_bytes(self._stats.peak)}."
            )
        else:
            notes.append("Tracking was off: the report has no allocation sites and no buffers.")
        if sampler.missed:
            notes.append(
                f"{plural(sampler.missed, 'listing')} of live buffers did not take place, to limit "
                "the delay of the program. --sample makes a listing cheaper."
            )
        if sampler.failed:
            notes.append(
                f"{plural(sampler.failed, 'reading')} failed, for example for lack of memory or "
                "threads."
            )
        return notes


def _system() -> str:
    """Return name, release and machine of the system, by os.uname().

    platform.platform() starts a process. A program that waits for any child could then reap the
    wrong child.
    """
    system = os.uname()
    return f"{system.sysname} {system.release} {system.machine}"
