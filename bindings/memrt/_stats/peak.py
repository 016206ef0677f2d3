"""Measure exact peaks for the duration of a ``with`` block."""

from __future__ import annotations

import os
from types import TracebackType

from memrt import _memrt
from memrt._stats.snapshot import reset_peak
from memrt._support.options import set_option
from memrt._support.public import public


@public("memrt.debug")
class exact_peak:  # noqa: N801 - reads as a noun where it is used
    """Context manager: peaks of the process, policies and scopes are exact, on all threads.

    Every allocation, resize and free updates all peaks concerned, and so takes longer. A peak is
    exact from the next start of the peak: a new scope inside, or :func:`memrt.debug.reset_peak`.
    Exact peaks end with the last ``with`` block.

    Raises
    ------
    RuntimeError
        The block was left more often than entered.

    Notes
    -----
    Threads: other threads may have unpublished changes on entry. ``stats().peak_error`` covers such
    changes until the threads have freed a buffer or ended, and the peak starts again. Entering
    waits at most 50 ms for such threads. The ``with`` blocks may be nested, and used by several
    threads and in signal handlers.

    Examples
    --------
    >>> import memrt
    >>> with memrt.debug.exact_peak(), memrt.scope("exact") as load:
    ...     table = memrt.zeros(1000)
    >>> load.peak, load.stats().peak_error
    (8000, 0)
    """

    def __enter__(self) -> exact_peak:
        _memrt.exact_peak_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if not _memrt.exact_peak_close() and kind is None:
            raise RuntimeError("exact_peak was left more often than entered")


def set_precision_of_peaks(exact: bool) -> None:
    """Make peaks of this process exact or close from now on, before a program starts.

    Close peaks are off by at most 2 %. A value of MEMRT_PEAK in the environment replaces them.
    """
    if exact or "MEMRT_PEAK" not in os.environ:
        set_option("peak", "exact" if exact else "close")
    reset_peak()
