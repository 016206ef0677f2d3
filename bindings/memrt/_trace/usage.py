"""Sum the memory of an event trace by source line, scope, policy or thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memrt._support.public import public
from memrt._trace.events import ADOPTION, ALLOC


@public("memrt.types")
class TraceUsage(NamedTuple):
    """Memory of one source line, scope, policy or thread in a trace.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.memtrace")
    >>> with memrt.debug.trace(path):
    ...     table = memrt.zeros(1000)
    ...     memrt.debug.mark("loaded")
    >>> [usage] = memrt.debug.Trace(path).usage("policy")
    >>> usage.name, usage.allocations, usage.at_peak
    ('default', 1, 8000)
    """

    name: str
    """Source line, path of the scope, name of the policy, or number of the thread."""
    allocations: int
    """Number of buffers allocated or adopted."""
    total: int
    """Bytes allocated. Growth by resizing counts, shrinking does not."""
    at_peak: int
    """Bytes live at the peak of the whole trace."""
    at_end: int
    """Bytes live at the end of the trace."""


def sum_usage(
    types: NDArray[Any],
    changes: NDArray[np.int64],
    peak_event: int,
    keys: NDArray[np.intp],
    names: list[str],
) -> list[TraceUsage]:
    """Return the memory of each name, most bytes at the peak first.

    Parameters
    ----------
    types : numpy.ndarray
        Type of each event.
    changes : numpy.ndarray
        Change of the live bytes by each event.
    peak_event : int
        Index of the event after which most bytes were live; -1 without events.
    keys : numpy.ndarray
        Index into `names` for each event.
    names : list of str
        Source lines, scopes, policies or threads.

    Returns
    -------
    list of TraceUsage
        Sums of each name that has any.
    """
    peak, count = peak_event + 1, len(names)
    allocations = np.bincount(keys[(types == ALLOC) | (types == ADOPTION)], minlength=count)
    total = _sums(keys, np.maximum(changes, 0), count)
    at_peak, at_end = _sums(keys[:peak], changes[:peak], count), _sums(keys, changes, count)
    rows = [
        TraceUsage(name, int(allocations[i]), int(total[i]), int(at_peak[i]), int(at_end[i]))
        for i, name in enumerate(names)
        if allocations[i] or total[i] or at_peak[i] or at_end[i]
    ]
    return sorted(rows, key=lambda row: (-row.at_peak, -row.total, row.name))


def _sums(keys: NDArray[np.intp], values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    sums = np.bincount(keys, values, count)  # exact up to 2**53
    return np.rint(sums).astype(np.int64)
