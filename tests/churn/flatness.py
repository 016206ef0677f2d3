"""Whether the memory of a process that works all the time is flat."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

MIB = 1 << 20
LEAST = 16  # samples that say anything
WARM_UP = 0.15  # of the samples, which are left out
GROWTH = 0.05  # by which peaks may differ from half to half
ROUNDING = 0.08  # of what memrt has: what allocators round up, which no account shows
UNTOLD = 8 * MIB  # of what the kernel says and memrt does not know: stacks, the program's own
DRIFT = 2 * MIB  # of that, from half to half


@dataclass(frozen=True)
class Sample:
    """What there is at the end of a round, whose threads have ended; in bytes but for the last."""

    seconds: float  # since the start
    peak: int  # most that was resident in the round
    resident: int
    held: int  # as the program itself counts what it holds
    live: int  # the same by memrt's statistics, as the next two
    cached: int
    reserved: int  # in use and cached, with headers
    made: int  # blocks so far
    threads: int  # so far

    @property
    def untold(self) -> int:
        """What is resident beyond what memrt knows of."""
        return self.resident - self.reserved


def _middles(values: list[int]) -> tuple[float, float]:
    """Medians of the first and of the later half."""
    half = len(values) // 2
    return median(values[:half]), median(values[half:])


def _mib(count: float) -> str:
    return f"{count / MIB:.1f} MiB"


def _peaks(samples: list[Sample]) -> list[str]:
    first, later = _middles([sample.peak for sample in samples])
    if later <= first * (1 + GROWTH):
        return []
    return [f"the peak grows: {_mib(first)} in the first half, {_mib(later)} in the later"]


def _drift(samples: list[Sample]) -> list[str]:
    first, later = _middles([sample.untold for sample in samples])
    if later <= first + DRIFT:
        return []
    return [f"memory that memrt does not know of grows: {_mib(first)}, later {_mib(later)}"]


def _accounts(samples: list[Sample], idle: Sample) -> list[str]:
    """Memrt says what the program and the kernel say."""
    found = []
    for sample in samples:
        at = f"after {sample.seconds:.0f} s"
        if sample.live - idle.live != sample.held:
            found.append(f"{at} {sample.held} bytes are held, live are {sample.live - idle.live}")
        allowed = idle.untold + sample.reserved * ROUNDING + UNTOLD
        if sample.untold > allowed:
            found.append(f"{at} memrt does not know of {_mib(sample.untold)} that are resident")
    return found


def faults(samples: list[Sample]) -> list[str]:
    """Why the memory is not flat; empty: it is. The first sample is from before all work."""
    idle, *worked = samples
    if len(worked) < LEAST:
        return [f"{len(worked)} samples are too few"]
    if len({sample.made for sample in worked}) < len(worked):
        return ["nothing was made in some round"]
    settled = worked[int(len(worked) * WARM_UP) :]
    return _peaks(settled) + _drift(settled) + _accounts(worked, idle)[:3]
