"""Statistics of threads."""

import threading
import time

import memrt
import numpy as np
import pytest
from elsewhere import created_elsewhere


class Worker:
    """A thread that runs functions until the end of a ``with`` block."""

    def __init__(self, name):
        self.work = None
        self.turn = threading.Barrier(2)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self):
        self.turn.wait()
        while self.work is not None:
            self.work()
            self.turn.wait()
            self.turn.wait()

    def run(self, work):
        """Run a function on the thread, and wait for its end."""
        self.work = work
        self.turn.wait()
        self.turn.wait()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.work = None
        self.turn.wait()
        self.thread.join()


def await_end(number):
    """Wait until a joined thread has returned its record.

    Before Python 3.13, a thread counts as joined before its thread-specific destructors run.
    """
    end = time.monotonic() + 60
    while number in [thread.id for thread in memrt.debug.threads()]:
        assert time.monotonic() < end, f"thread {number} is still listed"
        time.sleep(0.001)


def test_thread_has_its_own_allocations_and_frees():
    kept = []
    before = time.time()
    with Worker("loader") as worker:
        assert memrt.stats(thread=worker.thread).started == 0
        worker.run(lambda: kept.extend(memrt.alloc(1000) for _ in range(3)))
        worker.run(lambda: kept.pop() and None)
        work = memrt.stats(thread=worker.thread)
        assert (work.id, work.name) == (worker.thread.native_id, "loader")
        assert before - 1 <= work.started <= time.time() + 1
        assert (work.alloc, work.free, work.allocated, work.freed) == (3, 1, 3000, 1000)
        assert memrt.stats(thread=worker.thread.native_id) == work


def test_free_counts_on_the_thread_that_frees():
    def create():
        with memrt.Policy():
            return memrt.alloc(5000), np.empty(3000, "u1")

    kept = created_elsewhere(create)
    with Worker("cleaner") as worker:
        worker.run(kept.clear)
        work = memrt.stats(thread=worker.thread)
        assert (work.alloc, work.free, work.allocated, work.freed) == (0, 2, 0, 8000)


def test_new_thread_in_the_record_of_an_ended_one_begins_at_zero():
    seen = []
    for _ in range(3):
        with Worker("short") as worker:
            worker.run(lambda: memrt.alloc(100) and None)
            seen.append(memrt.stats(thread=worker.thread))
        await_end(seen[-1].id)
    assert [(work.alloc, work.allocated) for work in seen] == [(1, 100)] * 3
    assert len({(work.id, work.started) for work in seen}) == 3


def test_threads_are_listed_in_the_order_of_their_start():
    with Worker("first") as first, Worker("second") as second:
        first.run(lambda: memrt.alloc(1) and None)
        second.run(lambda: memrt.alloc(1) and None)
        names = [thread.name for thread in memrt.debug.threads()]
    assert names.index("first") < names.index("second")


def test_repr_has_id_name_and_readable_amounts():
    work = memrt.types.ThreadStats(77, "loader", 1.0, 3000, 2, 5 << 20, 10)
    assert repr(work) == (
        "<memrt.types.ThreadStats of thread 77 'loader': allocated 5.0 MiB in 3,000 blocks, "
        "freed 10 B in 2 blocks>"
    )


ENDED = threading.Thread(target=int, name="ended")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"thread": "main"}, TypeError, "thread must be a threading.Thread or the native id"),
        ({"thread": True}, TypeError, "thread must be a threading.Thread or the native id"),
        ({"thread": -1}, ValueError, "native id of a thread that uses memrt, got -1"),
        ({"thread": ENDED}, ValueError, "thread must be running, got <Thread"),
        ({"policy": 5, "thread": 1}, TypeError, r"stats\(\) takes a policy or a thread, got both"),
    ],
)
def test_thread_that_cannot_be_read_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        memrt.stats(**arguments)
