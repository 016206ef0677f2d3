"""Measure exact peaks for the duration of a ``with`` block."""

from __future__ import annotations

from types import TracebackType

from memrt import _memrt


class exact_peak:  # noqa: N801 - reads as a noun where it is used
    """Context manager: peaks of the process, policies and scopes are exact, on all threads.

    Every allocation, resize and free updates all peaks concerned, and so takes longer. A peak is
    exact from the next start of the peak: a new scope inside, or :func:`reset_peak`. Other threads
    may have unpublished changes at that moment. ``stats().peak_error`` covers such changes until
    the threads have freed a buffer or ended, and the peak starts again.

    Entering waits at most 50 ms for such threads. The ``with`` blocks may be nested, and used by
    several threads and in signal handlers. Exact peaks end with the last ``with`` block.
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
