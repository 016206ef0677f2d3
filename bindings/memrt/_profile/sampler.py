"""Sample statistics in a background thread, with a bounded effect on the program."""

from __future__ import annotations

import _thread
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any

from memrt import _memrt
from memrt._process.account import ProcessMemory
from memrt._profile.findings.contents import Candidates, Content, sample_contents
from memrt._profile.listings import Listings
from memrt._profile.moment import (
    Moment,
    content_rows,
    moment_of,
    rows_outside_calls,
    scope_paths,
)
from memrt._profile.timeline import ProcessTimeline, Sample, Scoped, Timeline, largest
from memrt._stats.snapshot import Stats, stats
from memrt._tracking.user_code import running_library_calls

FIRST_PERIOD = 0.005
REST = 50  # minimum pause after a reading or save, as a multiple of its CPU time
MOMENTS_PART = 0.05  # fraction of the program's run time that moments may take
MOMENTS_GRACE = 0.1  # seconds that moments may take in addition to MOMENTS_PART
RISE = 1.02  # growth of live bytes since the last moment that triggers another moment
LISTINGS_PART = 0.5  # fraction of the time for moments that listings without a rise may take
REVIEW = 0.1  # seconds between moments while live bytes stay at the highest value
MOST_CONTENTS = 64  # buffers whose contents are sampled at a moment: 1 MiB is read at most
MOST_SCOPES = 3500  # scopes read at once; a read holds each scope, of at most 4096 scopes
FIRST_KEEPING = 0.05  # seconds until the first save; later saves follow after the elapsed time
KEEPING = 0.5  # upper limit of the elapsed time as the pause between two saves, in seconds
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM_MOST = 256  # bytes of /proc/self/statm
_LIVE = tuple(Stats.__dataclass_fields__).index("live")


class Sampler:
    """Reader of statistics from start() to stop(), and of the highest moment if tracking is on.

    Threads: the sampler thread comes from `_thread`, not from `threading`. The program does not see
    the thread, no join waits for the thread, and hooks for the program's threads do not run there.
    The thread blocks all signals, prints nothing and raises nothing. A fork waits until the current
    reading has ended. A forked child has no sampler.
    """

    def __init__(self, begin: float, tracked: bool, keep: Callable[[], None] | None = None) -> None:
        """Start without readings. `keep` is called periodically, to save the readings so far."""
        self.timeline = Timeline()
        self.process = ProcessTimeline()
        self.moment: Moment | None = None
        """The recorded moment with the most live bytes."""
        self.listings = Listings()
        """Moments over the whole time, in bounded number."""
        self.contents: list[Content] = []
        """Sampled contents of the largest buffers of a high moment, that stayed unchanged since."""
        self._candidates = Candidates()
        self.moments = 0
        """The number of moments taken."""
        self.missed = 0
        """The number of moments skipped because moments would have taken too much time."""
        self.failed = 0
        """The number of readings that failed."""
        self._begin, self._tracked, self._keep = begin, tracked, keep
        self._next_keeping = begin + FIRST_KEEPING
        self._highest = 0
        self._listed = (-1, -1)  # blocks allocated and freed until the last moment
        self._next_review = 0.0
        self._spent = 0.0
        self._cost = 1e-6  # seconds per live block, measured at the last moment
        self._reading = _thread.RLock()  # recursive: a signal handler or finalizer may fork
        self._going = _thread.allocate_lock()  # held until the thread should end
        self._running = _thread.allocate_lock()  # held while the thread runs

    def save_by(self, keep: Callable[[], None]) -> None:
        """Call `keep` periodically, from start() on."""
        self._keep = keep

    def start(self) -> None:
        """Start the sampler thread, and register the fork handlers."""
        self._going.acquire()
        self._running.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # no more threads: only the reading in stop() remains
            self.failed += 1
            self._running.release()
        os.register_at_fork(
            before=self._reading.acquire,
            after_in_parent=self._reading.release,
            after_in_child=self._forget,
        )

    def stop(self) -> None:
        """End the thread, then read a last time, with a moment of any duration."""
        if self._going.locked():
            self._going.release()
        self._running.acquire()
        self._running.release()
        self._spent = float("-inf")  # the program has ended: no time limit for moments
        self._keep = None  # the caller takes the complete recording now
        self.listings.gap = 0.0  # ranges reach to the end
        self._read()

    def read_now(self) -> None:
        """Read once, with a moment of any duration, and no save for the next KEEPING seconds."""
        with self._reading:
            spent, self._spent = self._spent, float("-inf")
            self._next_keeping = perf_counter() + KEEPING  # the caller saves now
            self._read()
            self._spent = spent

    def add_account(self, t: float, memory: ProcessMemory) -> None:
        """Add an account of the memory of the process that the caller read."""
        with self._reading:
            self.process.add(t, memory)

    def _forget(self) -> None:
        """Reset the sampler in a forked child, which has no sampler thread."""
        self._reading.release()
        self.timeline, self.process = Timeline(), ProcessTimeline()
        self._running = _thread.allocate_lock()

    def _run(self) -> None:  # pragma: no cover - untraced thread
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            took = 0.0
            while not self._going.acquire(timeout=self._rest(took)):
                took = self._read()
        finally:
            self._running.release()

    def _rest(self, took: float) -> float:  # pragma: no cover - untraced thread
        return max(FIRST_PERIOD * (1 << self.timeline.halvings), REST * took)

    def _read(self) -> float:
        """Read once, and return the CPU time of the reading, without moments, accounts and saves.

        These have limits of their own. CPU time leaves out the wait for the GIL, which
        is most of the elapsed time and does not slow the program.
        """
        with self._reading:
            begin = thread_time()
            before = self._spent + self.process.spent
            try:
                self._take(perf_counter() - self._begin)
                if self._keep is not None and perf_counter() >= self._next_keeping:
                    self._keep_so_far(self._keep)
            except Exception:
                self.failed += 1
            return thread_time() - begin - (self._spent + self.process.spent - before)

    def _keep_so_far(self, keep: Callable[[], None]) -> None:  # pragma: no cover - untraced thread
        begin = thread_time()
        self._next_keeping = float("inf")  # no further save after a failed save
        keep()
        took = thread_time() - begin
        self._spent += took
        now = perf_counter()
        self._next_keeping = now + max(min(KEEPING, now - self._begin), REST * took)

    def _take(self, t: float) -> None:
        now = stats()
        if self._tracked:
            if self._candidates.are_due(t, now.alloc):
                self._confirm()
            if self._is_worth_a_moment(t, now.live):
                self._look(t, now)
            elif self.listings.is_due(t) and self._listed != (now.alloc, now.free):
                self._look_between(t, now)
        self.timeline.add(Sample(t, now.live, now.cached, resident(), _scoped()))
        if self.process.is_due(t):
            self.process.read(t)

    def _is_worth_a_moment(self, t: float, live: int) -> bool:
        """Return whether live bytes rose, or stay at the highest value since the last moment."""
        if live > self._highest * RISE:
            return True
        return live * RISE > self._highest > 0 and t > self._next_review

    def _look(self, t: float, now: Stats) -> None:
        """Take a moment, unless the time for moments is used up."""
        if self._is_too_expensive(t, now, 1):
            self.missed += 1
            return
        self._next_review = t + REVIEW
        begin = thread_time()
        rows = self._list(t, now)
        if rows is not None:
            sampled = sample_contents(content_rows(rows), MOST_CONTENTS)
            self._candidates = Candidates(t, now.alloc, sampled)
        self._highest = max(now.live, self._highest)
        self._spent += thread_time() - begin

    def _confirm(self) -> None:
        begin = thread_time()
        self.contents = self._candidates.unchanged(self.contents)
        self._candidates = Candidates()
        self._spent += thread_time() - begin

    def _look_between(self, t: float, now: Stats) -> None:
        """Take a moment below the highest, which leaves time for higher moments."""
        if not self._is_too_expensive(t, now, LISTINGS_PART):
            begin = thread_time()
            self._list(t, now)
            self._spent += thread_time() - begin

    def _is_too_expensive(self, t: float, now: Stats, part: float) -> bool:
        cost = self._cost * max(now.alloc - now.free, 1)
        return self._spent + cost > part * (MOMENTS_PART * t + MOMENTS_GRACE)

    def _list(self, t: float, now: Stats) -> list[tuple[Any, ...]] | None:
        """List live buffers. Returns rows for contents if the moment is kept as the highest."""
        begin = thread_time()
        running = running_library_calls()
        rows = _memrt.live(lambda: scope_paths(_scopes()))
        moment = moment_of(t, rows)
        self.listings.add(t, moment.by_site, _memrt.site_allocations())
        self._listed = (now.alloc, now.free)
        self._cost = (thread_time() - begin) / max(now.alloc - now.free, 1)
        return rows_outside_calls(rows, running) if self.consider(moment) else None

    def consider(self, moment: Moment) -> bool:
        """Count a moment, and keep the moment if it has the most live bytes so far, or almost.

        Of two moments with a similar number of bytes, the contents of buffers are complete in the
        later one. Returns whether the moment is kept.
        """
        self.moments += 1
        if self.moment is not None and moment.nbytes * RISE <= self.moment.nbytes:
            return False
        self.moment = moment
        return True


def resident() -> int:
    """Return the resident bytes of this process, or -1 if /proc/self/statm cannot be opened."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:  # for example at the limit of open files
        return -1
    try:
        return int(os.read(file, _STATM_MOST).split()[1]) * _PAGE
    finally:
        os.close(file)


def _scopes() -> list[object]:
    found: list[object] = _memrt.scopes()
    return found if len(found) <= MOST_SCOPES else []


def _scoped() -> Scoped:
    """Return live bytes by scope path, each without the bytes of its child scopes."""
    capsules = _scopes()
    if not capsules:
        return []
    own: dict[int, int] = {}
    inside: defaultdict[int, int] = defaultdict(int)
    for capsule in capsules:
        number, _, parent = _memrt.scope_info(capsule)
        own[number] = _memrt.scope_stats(capsule)[_LIVE]
        inside[parent] += own[number]
    paths = scope_paths(capsules)
    return largest([(paths[number], own[number] - inside[number]) for number in own])
