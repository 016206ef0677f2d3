"""Compare any sequence of allocations, views, exports, thread hand-overs, forks and frees with a
model.

The model has a bytearray per buffer. After each step every holder shows its buffer's bytes, and
memrt's account matches the live memory of the model.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
from contextlib import ExitStack

import hypothesis.strategies as st
import memrt
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

SIZES = st.one_of(st.integers(0, 300), st.integers(0, 70_000), st.sampled_from([2**20, 2**21 + 1]))
CHILD_SECONDS = 30


class Buffer:
    """The expected contents of a buffer, and the account that counts the buffer."""

    def __init__(self, contents: bytes, account: str, least: int = 0) -> None:
        self.contents = bytearray(contents)
        self.account = account  # "live", "adopted", or "" for memory outside of memrt
        self.least = least  # minimum size in bytes, as its creator requests

    def size(self) -> int:
        return max(len(self.contents), self.least)


class Holder:
    """An object that keeps a part of a buffer alive: an array, a MemInfo, a memoryview."""

    def __init__(self, thing: object, buffer: Buffer, start: int, stop: int) -> None:
        self.thing, self.buffer, self.start, self.stop = thing, buffer, start, stop

    def expected(self) -> bytearray:
        return self.buffer.contents[self.start : self.stop]

    def seen(self) -> np.ndarray:
        return np.frombuffer(self.thing, np.uint8)

    def verify(self) -> None:
        assert self.seen().tobytes() == self.expected()


def pattern(size: int, seed: int) -> bytes:
    return np.resize(np.arange(seed, seed + 251, dtype=np.uint8), size).tobytes()


def make_alloc(contents: bytes) -> object:
    mi = memrt.alloc(len(contents), name="made")
    memoryview(mi)[:] = contents
    return mi


def make_empty(contents: bytes) -> object:
    array = memrt.empty(len(contents), np.uint8)
    array[:] = np.frombuffer(contents, np.uint8)
    return array


def make_zeros(contents: bytes) -> object:
    array = memrt.zeros(len(contents), np.uint8)
    assert not array.any()
    array[:] = np.frombuffer(contents, np.uint8)
    return array


def make_by_numpy(contents: bytes) -> object:
    return np.frombuffer(contents, np.uint8).copy()


def make_wrapped(contents: bytes) -> object:
    owner = ctypes.create_string_buffer(contents, max(len(contents), 1))
    return memrt.wrap(ctypes.addressof(owner), len(contents), owner=owner)


MAKERS = {
    make_alloc: "live",
    make_empty: "live",
    make_zeros: "live",
    make_wrapped: "adopted",
    make_by_numpy: "",  # "live" under a policy
}
LEAST_OF_NUMPY = 1  # NumPy never requests 0 bytes from PyDataMem_UserNEW (NumPy 2.4, ctors.c)


class Memory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        gc.collect()
        self.before = memrt.stats()
        self.handler_before = memrt.handler_name()
        self.options_before = {option.name: option.value for option in memrt.debug.options()}
        self.holders: list[Holder] = []
        self.entered = ExitStack()
        self.depth = 0
        self.seed = 0

    def pick(self, data: st.DataObject) -> Holder:
        return self.holders[data.draw(st.integers(0, len(self.holders) - 1), "holder")]

    def verify_all(self) -> None:
        for holder in self.holders:
            holder.verify()

    def under_policy(self) -> bool:
        return memrt.handler_name().startswith("memrt")

    @rule(maker=st.sampled_from(list(MAKERS)), size=SIZES)
    def make(self, maker, size):
        self.seed += 1
        contents = pattern(size, self.seed % 251)
        buffer = Buffer(contents, MAKERS[maker])
        if maker is make_by_numpy:
            buffer = Buffer(contents, "live" if self.under_policy() else "", LEAST_OF_NUMPY)
        self.holders.append(Holder(maker(contents), buffer, 0, size))

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def view(self, data):
        holder = self.pick(data)
        size = holder.stop - holder.start
        start = data.draw(st.integers(0, size))
        stop = data.draw(st.integers(start, size))
        part = holder.seen()[start:stop]
        self.holders.append(Holder(part, holder.buffer, holder.start + start, holder.start + stop))

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def export(self, data):
        holder = self.pick(data)
        self.holders.append(
            Holder(memoryview(holder.thing), holder.buffer, holder.start, holder.stop)
        )

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def find_meminfo(self, data):
        holder = self.pick(data)
        if not holder.buffer.account:
            assert not memrt.is_managed(holder.seen())
            return
        mi = memrt.meminfo(holder.thing)
        assert mi.refcount >= 1
        assert mi.nbytes == holder.buffer.size()
        if mi.nbytes == len(holder.buffer.contents):  # else NumPy added a byte to 0 bytes
            self.holders.append(Holder(mi, holder.buffer, 0, mi.nbytes))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), alignment=st.sampled_from([None, 4096]))
    def adopt(self, data, alignment):
        holder = self.pick(data)
        if holder.buffer.account or not isinstance(holder.thing, np.ndarray):
            return
        with memrt.Policy(alignment=alignment, name="adopts"):
            adopted = memrt.adopt(holder.thing)
        if adopted is holder.thing:
            holder.buffer.account, holder.buffer.least = "adopted", 0
        else:  # a memoryview separates the array from its memory
            copy = Buffer(holder.expected(), "live")
            self.holders.append(Holder(adopted, copy, 0, len(copy.contents)))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), value=st.integers(0, 255))
    def write(self, data, value):
        holder = self.pick(data)
        written = bytes([value]) * (holder.stop - holder.start)
        memoryview(holder.thing)[:] = written
        holder.buffer.contents[holder.start : holder.stop] = written

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), size=SIZES)
    def resize(self, data, size):
        """Resize an array that is the only holder of a buffer. NumPy may move the memory."""
        holder = self.pick(data)
        array, alone = holder.thing, [h.buffer for h in self.holders].count(holder.buffer) == 1
        if not (alone and isinstance(array, np.ndarray) and array.flags.owndata):
            return
        array.resize(size, refcheck=False)
        old = holder.buffer.contents
        holder.buffer.contents = bytearray((bytes(old) + bytes(size))[:size])
        holder.stop = size

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def drop(self, data):
        holder = self.pick(data)
        holder.verify()
        self.holders.remove(holder)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def hand_to_a_thread(self, data):
        """Hand a holder to another thread, which verifies and drops the holder, then allocates
        memory.
        """
        given, failures = [self.pick(data)], []
        self.holders.remove(given[0])

        def take() -> None:
            try:
                given.pop().verify()
                make_zeros(b"own")
            except AssertionError as failure:
                failures.append(failure)

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert not failures

    @precondition(lambda self: self.holders)
    @rule()
    def fork(self):
        child = os.fork()
        if child == 0:
            self.be_child()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def be_child(self) -> None:
        """Verify, allocate, and free all inherited memory; the exit code is 0 on success."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # only the parent uses pytest's handler
        signal.alarm(CHILD_SECONDS)
        status = 1
        try:
            self.verify_all()
            make_zeros(bytes(5000))
            self.entered.close()
            self.holders.clear()
            gc.collect()
            status = 0 if memrt.stats().live == self.before.live else 2
        finally:
            os._exit(status)

    @rule(alignment=st.sampled_from([None, 64, 256]), limited=st.booleans())
    def enter_policy(self, alignment, limited):
        limits = {"cache_limit": "1M", "decay": 0} if limited else {}
        self.entered.enter_context(memrt.Policy(alignment, "entered", **limits))
        self.depth += 1

    @precondition(lambda self: self.depth)
    @rule()
    def leave_policies(self):
        self.entered.close()
        self.depth = 0
        assert memrt.handler_name() == self.handler_before

    @rule()
    def release_unused(self):
        memrt.release_unused()

    @rule()
    def track(self):
        self.entered.enter_context(memrt.debug.tracking())
        self.depth += 1

    @rule(option=st.sampled_from([("cache_limit", "none"), ("cache_limit", 0), ("decay", 0)]))
    def set_option(self, option):
        memrt.set_option(*option)

    @invariant()
    def everything_is_as_the_model_says(self):
        self.verify_all()
        buffers = {id(h.buffer): h.buffer for h in self.holders}.values()
        sums = {"live": 0, "adopted": 0, "": 0}
        for buffer in buffers:
            sums[buffer.account] += buffer.size()
        now = memrt.stats()
        assert now.live - self.before.live == sums["live"]
        assert now.adopted - self.before.adopted == sums["adopted"]

    def teardown(self) -> None:
        self.holders.clear()
        self.entered.close()
        for name in ("MEMRT_CACHE_LIMIT", "MEMRT_DECAY"):
            memrt.set_option(name, self.options_before[name])
        now = memrt.stats() - self.before
        assert (now.live, now.adopted) == (0, 0)
        assert (now.alloc - now.free, now.mi_alloc - now.mi_free) == (0, 0)


TestMemory = Memory.TestCase
TestMemory.settings = settings(max_examples=1 + settings().max_examples // 4)
