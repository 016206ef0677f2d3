"""Return the heap profile of the running process, for continuous profiling."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import defaultdict

from memrt import _memrt
from memrt._support.public import public
from memrt._tracking.live import live
from memrt._tracking.pprof import UNKNOWN, Call, Profile, calls_of
from memrt._tracking.sites import site_of


@public("memrt.telemetry")
def heap_profile() -> bytes:
    """Return a profile of the tracked buffers now, for pprof, Pyroscope and Parca.

    The samples are named as in Go's heap profiles: `inuse_space` and `inuse_objects` of the live
    buffers, with the scope as a label, and `alloc_space` and `alloc_objects` of all allocations
    since the start. The profile is empty without tracking. With a sample, all figures are
    estimates. The estimates of all allocations use the present size of the sample and the mean
    size of the allocations of each call stack.

    Returns
    -------
    bytes
        A gzipped message of the format `profile.proto`. The caller owns the bytes.

    Raises
    ------
    MemoryError
        There is no memory for the profile.

    Notes
    -----
    Threads: any thread may call the function, also at the same time. The profile does not change
    afterwards. Totals include allocations while the profile is made.

    Examples
    --------
    >>> import gzip
    >>> import memrt
    >>> with memrt.debug.tracking():
    ...     profiled_table = memrt.zeros(1000)
    ...     content = gzip.decompress(memrt.telemetry.heap_profile())
    >>> b"inuse_space" in content
    True
    """
    profile = Profile("now")
    for (site, scope), (nbytes, count) in _live_sums().items():
        profile.add(_calls(site), {"scope": scope}, (round(nbytes), round(count), 0, 0))
    mean = _memrt.tracking_get()[3]
    for site, (count, nbytes) in enumerate(_memrt.site_allocations(), 1):
        if count:
            scale = _scale(nbytes / count, mean)
            values = (0, 0, round(nbytes * scale), round(count * scale))
            profile.add(_calls(site), {}, values)
    program = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return profile.encoded(program, time.time(), 0, period=max(mean, 1))


def _live_sums() -> dict[tuple[int, str | None], tuple[float, float]]:
    """Return bytes and number of live buffers, by number of the site and path of the scope."""
    sums: defaultdict[tuple[int, str | None], tuple[float, float]]
    sums = defaultdict(lambda: (0.0, 0.0))
    for buffer in live():
        if buffer.weight:  # 0: listed only for its name
            key = (buffer.site_number, buffer.scope)
            nbytes, count = sums[key]
            sums[key] = (nbytes + buffer.nbytes * buffer.weight, count + buffer.weight)
    return sums


def _scale(size: float, mean: int) -> float:
    """Return the number of allocations of a size that one sampled allocation stands for."""
    return 1.0 if not mean or not size else 1 / -math.expm1(-size / mean)


def _calls(site: int) -> list[Call]:
    known = site_of(site)
    return [UNKNOWN] if known is None else calls_of(known.frames)
