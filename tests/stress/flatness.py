"""Decide whether the memory of a busy process stays flat."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

MIB = 1 << 20
LEAST = 16  # minimum of samples for a verdict
WARM_UP = 0.15  # share of the samples that is skipped
GROWTH = 0.05  # allowed growth of the peak from the first to the second half
ROUNDING = 0.08  # share of reserved bytes; rounding by allocators, not counted
UNTOLD = 8 * MIB  # resident bytes unknown to memrt: stacks, the program itself
DRIFT = 2 * MIB  # allowed growth of unknown bytes between the halves


@dataclass(frozen=True)
class Sample:
    """The state at the end of a round, after its threads have ended. Sizes are in bytes."""

    seconds: float  # seconds since the start
    peak: int  # maximum of resident memory in the round
    resident: int
    held: int  # bytes held, counted by the program
    live: int  # bytes live, from memrt's statistics, like cached and reserved
    cached: int
    reserved: int  # bytes in use and cached, with headers
    made: int  # number of blocks so far
    threads: int  # number of threads so far

    @property
    def untold(self) -> int:
        """Resident bytes that memrt does not know of."""
        return self.resident - self.reserved


def _middles(values: list[int]) -> tuple[float, float]:
    """Return the medians of the first and the second half."""
    half = len(values) // 2
    return median(values[:half]), median(values[half:])


def _mib(count: float) -> str:
    return f"{count / MIB:.1f} MiB"


def _peaks(samples: list[Sample]) -> list[str]:
    first, later = _middles([sample.peak for sample in samples])
    if later <= first * (1 + GROWTH):
        return []
    return [f"the peak grows: {_mib(first)} in the first half, {_mib(later)} in the second half"]


def _drift(samples: list[Sample]) -> list[str]:
    first, later = _middles([sample.untold for sample in samples])
    if later <= first + DRIFT:
        return []
    return [f"memory unknown to memrt grows: from {_mib(first)} to {_mib(later)}"]


def _accounts(samples: list[Sample], idle: Sample) -> list[str]:
    """Compare memrt's statistics with the program's count and with resident memory."""
    found = []
    for sample in samples:
        at = f"after {sample.seconds:.0f} s"
        if sample.live - idle.live != sample.held:
            found.append(f"{at} live bytes must be {sample.held}, got {sample.live - idle.live}")
        allowed = idle.untold + sample.reserved * ROUNDING + UNTOLD
        if sample.untold > allowed:
            found.append(f"{at} {_mib(sample.untold)} of resident memory are unknown to memrt")
    return found


def faults(samples: list[Sample]) -> list[str]:
    """Return the reasons why memory is not flat; an empty list means flat memory.

    The first sample must be taken before all work.
    """
    idle, *worked = samples
    if len(worked) < LEAST:
        return [f"samples must be at least {LEAST}, got {len(worked)}"]
    if len({sample.made for sample in worked}) < len(worked):
        return ["a round allocated no block"]
    settled = worked[int(len(worked) * WARM_UP) :]
    return _peaks(settled) + _drift(settled) + _accounts(worked, idle)[:3]
