"""Memory of a Dask worker: limits from the worker's memory limit, cached memory, early spilling.

distributed compares the resident memory of the process with parts of the worker's memory limit. The
worker spills above one part and pauses above another part. The nanny ends the process above a third
part.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from time import monotonic, thread_time
from typing import Any

import distributed

from memrt import _memrt
from memrt._policy.limit import limit as set_limit
from memrt._policy.limit_amount import read_limit
from memrt._policy.refusal import on_refusal
from memrt._process.pressure import on_pressure
from memrt._profile.sampler import resident
from memrt._stats.memory import memory_stats
from memrt._stats.snapshot import stats

PART = 0.9
"""Part of the memory limit of a worker that "auto" uses."""
STEP = 1 / 128
"""Smallest change of the limit that is applied, as a part of the memory limit."""
REST = 50
"""Minimum pause between two measurements, as a multiple of the CPU time of a measurement."""
PAUSE = 1.0
"""Seconds between two collections of garbage, and between two releases of malloc's memory."""
LEAST_CACHED = 1 << 20
"""Cached bytes that are worth a release."""
MOST_WAIT = 30.0
"""Seconds that a refused allocation waits for spilling."""
_READ = "get_process_memory"
_FRACTIONS = ("memory_target_fraction", "memory_spill_fraction", "memory_pause_fraction")

_log = logging.getLogger("memrt.dask")
_leaders: list[WorkerMemory] = []  # the last one sets the limit of the process
_warned = False


class WorkerMemory:
    """Memory of one worker, from start() to stop().

    The limit "auto" follows the memory of the process that is not memrt's. Cached memory is
    released before the worker spills or pauses. A rise above the soft limit, and a refused
    allocation, spill results of tasks.

    Threads: start(), stop() and read() run on the event loop of the worker.
    """

    def __init__(self, worker: Any, limit: int | str | None) -> None:
        self.worker, self._limit = worker, limit
        manager = getattr(worker, "memory_manager", None)
        self._most: int = getattr(manager, "memory_limit", None) or 0
        """Memory limit of the worker; 0: none."""
        self._target, self._spill, self._pause = (getattr(manager, x, 0) or 0 for x in _FRACTIONS)
        self._closable: list[Any] = []
        self._waits: set[Future[None]] = set()
        self._hooked = False
        self._set: int | None = None
        self._next_measurement = self._next_trim = self._next_collection = 0.0

    # --- Start and stop. ---

    def start(self) -> None:
        """Set the limit, and follow the memory of the worker."""
        if self._most:
            missing = missing_fact(self.worker)
            if missing:
                _warn(missing)
            else:
                self._hook()
        if self._most and self._limit == "auto":
            _leaders.append(self)
            self._set_limits()
        elif self._limit is not None:
            set_limit(self._limit)

    def _hook(self) -> None:
        monitor = self.worker.monitor
        self._read = getattr(monitor, _READ)
        setattr(monitor, _READ, self.read)
        self._hooked = True
        if self._spills():
            self._loop = asyncio.get_running_loop()
            self._loop_thread = threading.get_ident()
            self._closable = [on_refusal(self._make_room), on_pressure(self._relieve, "medium")]

    def _spills(self) -> bool:
        """Return whether the worker spills, by the public protocol ManualEvictProto."""
        data = self.worker.data
        return bool(self._spill) and hasattr(data, "fast") and hasattr(data, "evict")

    def stop(self) -> None:
        """End the effects on the worker. The limit stays."""
        if self in _leaders:
            _leaders.remove(self)
        for wait in list(self._waits):  # close() waits for refused allocations
            wait.cancel()
        for each in self._closable:
            each.close()
        self._closable.clear()
        monitor = getattr(self.worker, "monitor", None)
        if self._hooked and monitor.__dict__.get(_READ) == self.read:
            delattr(monitor, _READ)
        self._hooked = False

    # --- The reading of distributed, ten times a second. ---

    def read(self) -> int:
        """Return the resident bytes of the process, after a release of cached memory if needed."""
        self._follow()
        memory: int = self._read()
        first = min((part for part in (self._spill, self._pause) if part), default=PART)
        if memory > first * self._most:
            everything = monotonic() >= self._next_trim
            if everything or stats().cached >= LEAST_CACHED:
                self._next_trim = monotonic() + PAUSE if everything else self._next_trim
                _memrt.release_unused(everything=everything)
                memory = self._read()
        return memory

    def _follow(self) -> None:
        """Measure and set the limit. Rest after a measurement. Leave a limit of the user alone."""
        if _leaders and _leaders[-1] is self and monotonic() >= self._next_measurement:
            begin = thread_time()
            if read_limit(None) == self._set:
                self._set_limits()
            self._next_measurement = monotonic() + REST * (thread_time() - begin)

    def _set_limits(self) -> None:
        """Set the limits of the process, less the resident memory that is not memrt's."""
        others = bytes_of_others()
        limit = max(int(PART * self._most) - others, self._most // 10)
        if self._set is not None and abs(limit - self._set) < STEP * self._most:
            return
        soft = None
        if self._closable:
            soft = min(max(int(self._spill * self._most) - others, self._most // 20), limit)
        self._set = set_limit(limit, soft=soft)

    # --- Spilling. ---

    def _relieve(self, level: str) -> None:
        """Spill on the event loop, after a rise above the soft limit. Does not wait."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            asyncio.run_coroutine_threadsafe(self._evict(0), self._loop)

    def _make_room(self, wanted: int) -> None:
        """Free memory for a refused allocation: garbage, then results of tasks that spill."""
        if not self._needs_room(wanted):
            return
        if monotonic() >= self._next_collection:
            self._next_collection = monotonic() + PAUSE
            gc.collect()
        # A wait on the event loop for the event loop would not end.
        if self._needs_room(wanted) and threading.get_ident() != self._loop_thread:
            with contextlib.suppress(RuntimeError, FutureTimeoutError, CancelledError):
                spilling = asyncio.run_coroutine_threadsafe(self._evict(wanted), self._loop)
                self._waits.add(spilling)
                spilling.add_done_callback(self._waits.discard)
                spilling.result(MOST_WAIT)

    def _needs_room(self, wanted: int) -> bool:
        """Return whether the limit of the process refuses bytes that spilling may make possible."""
        limit = read_limit(None)
        if limit is None or stats().live + wanted <= limit:
            return False
        return wanted <= (PART * self._most if limit == self._set else limit)

    async def _evict(self, wanted: int) -> None:
        """Spill the oldest results until live and wanted bytes are below the target.

        A call that begins after stop() spills nothing.
        """
        target = (self._target or self._spill) * self._most
        data = self.worker.data
        while self._hooked and data.fast and stats().live + wanted + bytes_of_others() > target:
            if data.evict() < 0:  # the disk is full, or the result has no serialization
                break
            await asyncio.sleep(0)
        if self._set is not None and read_limit(None) == self._set:
            self._set_limits()


def bytes_of_others() -> int:
    """Return the resident bytes of the process that are not memrt's."""
    return max(resident() - memory_stats().resident, 0)


def missing_fact(worker: Any) -> str:
    """Return the fact about distributed that the hook needs and that is false, or an empty text."""
    manager = worker.memory_manager
    if not callable(getattr(getattr(worker, "monitor", None), _READ, None)):
        return f"distributed must read the memory of a worker by monitor.{_READ}()"
    monitor = inspect.unwrap(getattr(type(manager), "memory_monitor", missing_fact))
    if _READ not in monitor.__code__.co_names:
        return f"WorkerMemoryManager.memory_monitor of distributed must call monitor.{_READ}()"
    for name in _FRACTIONS:
        if not hasattr(manager, name):
            return f"WorkerMemoryManager of distributed must have {name}"
    return ""


def _warn(fact: str) -> None:
    """Log one warning in this process."""
    global _warned
    if not _warned:
        _warned = True
        _log.warning(
            "%s, got distributed %s: memrt sets the limit once, and leaves spilling alone",
            *(fact, distributed.__version__),
        )
