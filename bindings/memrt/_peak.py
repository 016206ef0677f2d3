"""Peaks that are exact for a while."""

from __future__ import annotations

import threading
from types import TracebackType

from memrt import _memrt

_NAME = "MEMRT_PEAK"
_lock = threading.Lock()  # for what follows
_inside = 0
_before = "bounded"


def _in_force() -> str:
    return {name: value for name, value, _ in _memrt.options()}[_NAME]


class exact_peak:  # noqa: N801 - reads as what it is where it is used
    """Context manager: peaks are exact, of the process, of policies and of scopes, on all threads.

    Every birth, resize and death is told to all peaks that it belongs to, which takes longer. A
    peak is exact from when it next starts: a scope that is new inside, or :func:`reset_peak`. What
    other threads had not told by then shows in ``stats().peak_error`` until they have gone on and
    the peak starts again. May be nested and used by several threads; ends with the last block.
    """

    def __enter__(self) -> exact_peak:
        global _inside, _before
        with _lock:
            if _inside == 0:
                before = _in_force()
                _memrt.set_option(_NAME, "exact")
                _before = before
            _inside += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        global _inside
        with _lock:
            if _inside == 0:
                raise RuntimeError("exact_peak was left more often than it was entered")
            if _inside == 1:
                _memrt.set_option(_NAME, _before)
            _inside -= 1
