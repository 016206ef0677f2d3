"""A sampler: a thread that reads statistics while a program runs, and takes care not to harm it."""

from __future__ import annotations

import _thread
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter, thread_time

from memrt import _memrt
from memrt._report.moment import Moment, moment_of, scope_paths
from memrt._report.timeline import Sample, Scoped, Timeline, largest
from memrt._stats import Stats, stats

FIRST_PERIOD = 0.005
REST = 50  # times as long as a reading took, at least, until the next
MOMENTS_PART = 0.05  # of the time of the program that moments may take
MOMENTS_GRACE = 0.1  # seconds that they may take beyond that
RISE = 1.02  # of what is live since the last moment, for another
MOST_SCOPES = 3500  # that are followed: those that are read are held, of 4096 that there may be
FIRST_KEEPING = 0.05  # seconds until what was read so far is kept; again after as long as that
KEEPING = 0.5  # seconds between two keepings, at most
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LIVE = tuple(Stats.__dataclass_fields__).index("live")


class Sampler:
    """Reads statistics from start() to stop(); the highest moment, too, where births are tracked.

    Not of `threading`: the program does not see the thread, nothing waits for it, and hooks that
    are for the program's threads do not run in it. It takes no signals, prints nothing and raises
    nothing. A fork waits until a reading has ended; the child has no sampler.
    """

    def __init__(self, begin: float, tracked: bool, keep: Callable[[], None] | None = None) -> None:
        """:param keep: called now and then, to keep what was read so far."""
        self.timeline = Timeline()
        self.moment: Moment | None = None
        """The highest moment that was seen."""
        self.moments = 0
        """Moments that were looked at."""
        self.missed = 0
        """Those that would have taken too long."""
        self.failed = 0
        """Readings that could not be made."""
        self._begin, self._tracked, self._keep = begin, tracked, keep
        self._next_keeping = begin + FIRST_KEEPING
        self._highest = 0
        self._spent = 0.0
        self._cost = 1e-6  # seconds for each live block, as last seen
        self._reading = _thread.allocate_lock()
        self._going = _thread.allocate_lock()  # held until the thread is to end
        self._running = _thread.allocate_lock()  # held while it runs

    def start(self) -> None:
        """Begin to read."""
        self._going.acquire()
        self._running.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # no more threads: what is read at the end must do
            self.failed += 1
            self._running.release()
        os.register_at_fork(
            before=self._reading.acquire,
            after_in_parent=self._reading.release,
            after_in_child=self._forget,
        )

    def stop(self) -> None:
        """Read once more, with a moment whatever it takes, and no more after that."""
        if self._going.locked():
            self._going.release()
        self._running.acquire()
        self._running.release()
        self._spent = float("-inf")  # no program waits any more
        self._keep = None  # all of it is asked for now
        self._read()

    def _forget(self) -> None:
        """In a forked child: nothing reads on there."""
        self._reading.release()
        self.timeline = Timeline()
        self._running = _thread.allocate_lock()

    def _run(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            took = 0.0
            while not self._going.acquire(timeout=self._rest(took)):
                took = self._read()
        finally:
            self._running.release()

    def _rest(self, took: float) -> float:
        return max(FIRST_PERIOD * (1 << self.timeline.halvings), REST * took)

    def _read(self) -> float:
        """Read once; the processor's time for it, without moments, which have limits of their own.
        The wait for other threads of Python, which is most of the time that passes, harms nobody.
        """
        with self._reading:
            begin = thread_time()
            before = self._spent
            try:
                self._take(perf_counter() - self._begin)
                if self._keep is not None and perf_counter() >= self._next_keeping:
                    self._keep_so_far(self._keep)
            except Exception:
                self.failed += 1
            return thread_time() - begin - (self._spent - before)

    def _keep_so_far(self, keep: Callable[[], None]) -> None:
        begin = thread_time()
        self._next_keeping = float("inf")  # where it fails, it is not tried again
        keep()
        took = thread_time() - begin
        self._spent += took
        now = perf_counter()
        self._next_keeping = now + max(min(KEEPING, now - self._begin), REST * took)

    def _take(self, t: float) -> None:
        now = stats()
        if self._tracked and now.live > self._highest * RISE:
            self._look(t, now)
        self.timeline.add(Sample(t, now.live, now.cached, resident(), _scoped()))

    def _look(self, t: float, now: Stats) -> None:
        """Take a moment, unless moments took too much time already."""
        blocks = max(now.alloc - now.free, 1)
        if self._spent + self._cost * blocks > MOMENTS_PART * t + MOMENTS_GRACE:
            self.missed += 1
            return
        begin = thread_time()
        self.consider(moment_of(t, _memrt.live(scope_paths(_scopes()))))
        self._highest = now.live
        took = thread_time() - begin
        self._spent += took
        self._cost = took / blocks

    def consider(self, moment: Moment) -> None:
        """Keep a moment if it is the highest."""
        self.moments += 1
        if self.moment is None or moment.nbytes > self.moment.nbytes:
            self.moment = moment


def resident() -> int:
    """Bytes of this process that are in memory; -1 where the system does not tell."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # as where no more files may be open
        return -1
    try:
        return int(os.read(file, 256).split()[1]) * _PAGE
    finally:
        os.close(file)


def _scopes() -> list[object]:
    found: list[object] = _memrt.scopes()
    return found if len(found) <= MOST_SCOPES else []


def _scoped() -> Scoped:
    """What is live by scope, without the scopes inside of it."""
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
