"""Judge the memory of the whole process during a test: arrays, malloc, Python's objects, code."""

from __future__ import annotations

import pytest

import memrt
from memrt._process import smaps
from memrt._process.account import process_memory
from memrt._support.units import human_bytes
from memrt._tracking.measure import Measure

_NAMED_PARTS = 3  # parts of the process in a message


def require_process_peak() -> None:
    """Check that the system can restart the peak of a process.

    Raises
    ------
    ValueError
        The system cannot.
    """
    try:
        if smaps.restart_peak_resident() > 0:
            return
        why = "no figure VmHWM in /proc/self/status"
    except OSError as error:
        why = f"{error.strerror}"
    raise ValueError(f"{smaps.CLEAR_REFS} must restart the peak of the process, got {why}")


class ProcessPeak:
    """Rise of the resident memory of this process, since the start of the body of a test."""

    def __init__(self) -> None:
        memrt.release_unused(everything=True)  # a reuse of free memory would be no rise
        self._start = smaps.restart_peak_resident()

    def judge(self, limit: int, measure: Measure) -> None:
        """Fail the test whose peak is more than `limit` bytes above the start."""
        rise = smaps.read_peak_resident() - self._start
        if rise <= limit:
            return
        pytest.fail(
            f"memrt: the process had {human_bytes(rise)} more in memory at once, "
            f"more than memrt_limit_process allows: {human_bytes(limit)}\n"
            f"  peak of memrt's arrays of the test: {human_bytes(measure.peak)}\n"
            f"  the process after the test body: {_largest_parts()}",
            pytrace=False,
        )


def _largest_parts() -> str:
    """Return the largest parts of the memory of the process now."""
    memory = process_memory()
    parts = sorted(memory.parts().items(), key=lambda part: -(part[1].resident or 0))
    named = [f"{name} {human_bytes(part.resident or 0)}" for name, part in parts[:_NAMED_PARTS]]
    return f"{human_bytes(memory.resident)}, most in {', '.join(named)}"
