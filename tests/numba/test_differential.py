"""Compare random operations through Numba's C helpers and through memrt's: equal outcomes.

The tests at the end cover bugs of Numba that memrt does not share, and state the behaviour of both.
"""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from memrt.testing import fail_allocations
from runtimes import DTOR, MANAGED_DTOR, Counted, Runtime, word

OPERATIONS = 400
HEADER = 48  # bytes of a MemInfo in Numba's runtime


@dataclass
class Actor:
    """One runtime, with the MemInfos and blocks made by a sequence of operations, by number."""

    runtime: Runtime
    held: dict[int, int] = field(default_factory=dict)
    raw: dict[int, int] = field(default_factory=dict)
    destroyed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counted = Counted(self.runtime)
        self.dtor = DTOR(self.note_destroyed)
        self.managed_dtor = MANAGED_DTOR(lambda data: self.note_destroyed(data, 0, None))
        self.owner = ["owner"]
        self.references = sys.getrefcount(self.owner)

    def note_destroyed(self, data: int, size: int, info: object) -> None:
        """Note the MemInfos with this data. Numba's resizable MemInfos pass only the data."""
        self.destroyed += [key for key, mi in self.held.items() if word(mi, 3) == data]

    def state(self) -> dict[str, object]:
        """Return the state that must be equal in both runtimes."""
        mis = self.held.items()
        return {
            "counters": self.counted.delta(),
            "counts": {key: word(mi, 0) for key, mi in mis},
            "sizes": {key: word(mi, 4) for key, mi in mis},
            "contents": {key: contents(mi) for key, mi in mis},
            "destroyed": self.destroyed,
            "owner": sys.getrefcount(self.owner) - self.references,
        }


def contents(mi: int) -> bytes:
    return ctypes.string_at(word(mi, 3), word(mi, 4)) if word(mi, 4) else b""


def fill(address: int, size: int, value: int) -> None:
    ctypes.memset(address, value, size)


class Sequence:
    """A seeded sequence: chooses each operation once and runs the operation in every actor."""

    def __init__(self, seed: int, actors: list[Actor]) -> None:
        self.random = random.Random(seed)
        self.actors = actors
        self.counts: dict[int, int] = {}
        self.varsize: set[int] = set()
        self.raw: set[int] = set()
        self.fresh = 0

    def size(self) -> int:
        return self.random.choice([0, 1, 7, 48, 64, 100, 4096, 100_000])

    def some(self, among: set[int] | dict[int, int]) -> int | None:
        return self.random.choice(sorted(among)) if among else None

    def make(self, name: str, *arguments: object, varsize: bool = False) -> None:
        """Make a MemInfo with the helper `name`. Argument "dtor" means the actor's destructor."""
        size, value, self.fresh = self.size(), self.random.randrange(256), self.fresh + 1
        for actor in self.actors:
            own = [actor.dtor if argument == "dtor" else argument for argument in arguments]
            mi = getattr(actor.runtime, name)(size, *own)
            if "safe" in name:
                assert contents(mi) == b"\xcb" * size
            fill(word(mi, 3), size, value)
            actor.held[self.fresh] = mi
        self.counts[self.fresh] = 1
        if varsize:
            self.varsize.add(self.fresh)

    def alloc(self) -> None:
        self.make(self.random.choice(["MemInfo_alloc", "MemInfo_alloc_safe", "allocate"]))

    def alloc_aligned(self) -> None:
        name = self.random.choice(["MemInfo_alloc_aligned", "MemInfo_alloc_safe_aligned"])
        align = self.random.choice([1, 7, 16, 24, 32, 64, 4096])
        self.make(name, align)
        for actor in self.actors:
            assert word(actor.held[self.fresh], 3) % align == 0 or align & (align - 1)

    def alloc_dtor(self) -> None:
        name = self.random.choice(["MemInfo_alloc_dtor", "MemInfo_alloc_dtor_safe"])
        self.make(name, self.random.choice(["dtor", None]))

    def alloc_external(self) -> None:
        size, self.fresh = self.size(), self.fresh + 1
        for actor in self.actors:
            sample = actor.runtime._nrt_get_sample_external_allocator()
            mi = actor.runtime.MemInfo_alloc_safe_aligned_external(size, 32, sample)
            actor.held[self.fresh] = mi
        self.counts[self.fresh] = 1

    def alloc_external_by_table(self) -> None:
        size, own, self.fresh = self.size(), self.random.random() < 0.5, self.fresh + 1
        for actor in self.actors:
            sample = actor.runtime._nrt_get_sample_external_allocator() if own else None
            mi = actor.runtime.allocate_external(size, sample)
            assert actor.runtime.get_data(mi) == word(mi, 3)
            assert word(mi, 5) == (sample or 0)
            fill(word(mi, 3), size, 3)
            actor.held[self.fresh] = mi
        self.counts[self.fresh] = 1

    def manage(self) -> None:
        self.fresh += 1
        for actor in self.actors:
            data = id(actor) + self.fresh  # an arbitrary address, never dereferenced
            mi = actor.runtime.manage_memory(data, actor.managed_dtor)
            assert word(mi, 3) == data
            actor.held[self.fresh] = mi
        self.counts[self.fresh] = 1

    def new_varsize(self) -> None:
        if self.random.random() < 0.5:
            self.make("MemInfo_new_varsize", varsize=True)
        else:
            self.make("MemInfo_new_varsize_dtor", self.random.choice([None, "dtor"]), varsize=True)

    def adopt(self) -> None:
        self.fresh += 1
        for actor in self.actors:
            data = id(actor)
            mi = actor.runtime.meminfo_new_from_pyobject(data, actor.owner)
            assert word(mi, 3) == data
            actor.held[self.fresh] = mi
        self.counts[self.fresh] = 1

    def acquire(self) -> None:
        key = self.some(self.counts)
        if key is None:
            return
        compiled = self.random.random() < 0.5
        for actor in self.actors:
            if compiled:
                ctypes.c_size_t.from_address(actor.held[key]).value += 1
            else:
                actor.runtime.acquire(actor.held[key])
        self.counts[key] += 1

    def release(self) -> None:
        key = self.some(self.counts)
        if key is None:
            return
        way = self.random.choice(["release", "MemInfo_release", "compiled"])
        self.counts[key] -= 1
        for actor in self.actors:
            give_up(actor.runtime, actor.held[key], way)
            if self.counts[key] == 0:
                del actor.held[key]
        if self.counts[key] == 0:
            del self.counts[key]
            self.varsize.discard(key)

    def resize(self) -> None:
        key = self.some(self.varsize)
        if key is None:
            return
        size = self.size() or 1
        for actor in self.actors:
            mi = actor.held[key]
            kept = contents(mi)[:size]
            assert actor.runtime.MemInfo_varsize_realloc(mi, size) == word(mi, 3)
            assert contents(mi)[: len(kept)] == kept
            fill(word(mi, 3), size, size % 251)

    def renew(self) -> None:
        key, size = self.some(self.varsize), self.size()
        if key is None:
            return
        for actor in self.actors:
            mi = actor.held[key]
            old = word(mi, 3)
            data = actor.runtime.MemInfo_varsize_alloc(mi, size)
            fill(data, size, 5)
            actor.runtime.MemInfo_varsize_free(mi, old)
            assert word(mi, 3) == data

    def allocate(self) -> None:
        size, self.fresh = self.size(), self.fresh + 1
        for actor in self.actors:
            actor.raw[self.fresh] = actor.runtime.Allocate(size)
            fill(actor.raw[self.fresh], size, 1)
        self.raw.add(self.fresh)

    def free(self) -> None:
        key = self.some(self.raw)
        if key is None:
            return
        self.raw.remove(key)
        for actor in self.actors:
            actor.runtime.Free(actor.raw.pop(key))

    OPERATIONS = (
        *(alloc, alloc_aligned, alloc_dtor, alloc_external, new_varsize, adopt),
        *(alloc_external_by_table, manage),
        *(acquire, acquire, resize, renew, allocate, free, free, *(release,) * 10),
    )

    def step(self) -> None:
        self.random.choice(self.OPERATIONS)(self)

    def end(self) -> None:
        """Release all references and free all blocks."""
        while self.counts:
            self.release()
        while self.raw:
            self.free()


def give_up(runtime: Runtime, mi: int, way: str) -> None:
    """Release one reference, by a function of the runtime or like compiled code does."""
    if way != "compiled":
        getattr(runtime, way)(mi)
        return
    count = ctypes.c_size_t.from_address(mi)
    count.value -= 1
    if count.value == 0:
        runtime.MemInfo_call_dtor(mi)


@pytest.mark.parametrize("seed", range(8))
def test_random_operations_match_stock_numba(on_stock, on_memrt, seed):
    actors = [Actor(on_stock), Actor(on_memrt)]
    sequence = Sequence(seed, actors)
    for _ in range(OPERATIONS):
        sequence.step()
        stock, memrt = (actor.state() for actor in actors)
        assert memrt == stock
    sequence.end()
    stock, memrt = (actor.state() for actor in actors)
    assert memrt == stock
    assert memrt["counters"]["alloc"] == memrt["counters"]["free"] > 100
    assert memrt["counters"]["mi_alloc"] == memrt["counters"]["mi_free"] > 50
    assert len(memrt["destroyed"]) > 5


def outcome(call, *arguments, **named):
    """Return the result of a call, or the type and message of its exception."""
    try:
        return "result", call(*arguments, **named)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda nrt: nrt.meminfo_alloc(),
        lambda nrt: nrt.meminfo_alloc(2**62),
        lambda nrt: nrt.meminfo_alloc_safe(2**62),
        lambda nrt: nrt.memsys_shutdown(1),
        lambda nrt: nrt.memsys_enable_stats(),
        lambda nrt: nrt.memsys_stats_enabled(),
        lambda nrt: nrt.meminfo_new(),
        lambda nrt: nrt.meminfo_new("address", None),
    ],
)
def test_module_calls_match_stock_numba(on_stock, on_memrt, call):
    stock, memrt = (outcome(call, runtime.module) for runtime in (on_stock, on_memrt))
    assert memrt[0] == stock[0]
    if stock[0] == "result":
        assert memrt == stock


# --- Intended differences from Numba ---


@pytest.fixture(scope="module")
def raw_failure(compile_library):
    """Compile a library that makes Python's raw allocator fail on requests of one size.

    Stock Numba can use the raw allocator.
    """
    source = Path(__file__).with_name("ext") / "rawfailure.c"
    include = ("-isystem", sysconfig.get_path("include"))
    return ctypes.PyDLL(str(compile_library(source, flags=include)))


class StockFailing:
    """Context manager: stock's requests of `size` bytes fail inside."""

    def __init__(self, runtime: Runtime, library: ctypes.PyDLL, size: int) -> None:
        runtime.module.memsys_disable_stats()  # with statistics on, leaked blocks forbid the switch
        runtime.module.memsys_use_cpython_allocator()
        runtime.module.memsys_enable_stats()
        self.library, self.size = library, size

    def __enter__(self) -> None:
        self.library.start_failing(ctypes.c_size_t(self.size))

    def __exit__(self, *error: object) -> None:
        self.library.stop_failing()


def test_wrong_address_raises_where_numba_crashes(run_python):
    code = """
import sys
import memrt.numba
if sys.argv[1] == "memrt":
    memrt.numba.install()
from numba.core.runtime import _nrt_python as nrt
try:
    nrt._MemInfo("no address")
except TypeError:
    print("refused")
"""
    assert run_python(code, "memrt").stdout == "refused\n"
    assert run_python(code, "stock", check=False).returncode < 0


def test_overflowing_size_is_refused_where_numba_wraps(on_stock, on_memrt):
    too_much = 2**64 - 1
    mi = on_stock.MemInfo_alloc(too_much)
    assert word(mi, 4) == too_much
    on_stock.release(mi)
    assert on_memrt.MemInfo_alloc(too_much) is None
    assert on_memrt.MemInfo_alloc_aligned(too_much, 32) is None


def test_alignment_0_is_valid_where_numba_misplaces_the_data(on_stock, on_memrt):
    mi = on_stock.MemInfo_alloc_aligned(64, 0)
    assert not mi < word(mi, 3) < mi + HEADER + 64 + 64
    on_stock.release(mi)
    mi = on_memrt.MemInfo_alloc_aligned(64, 0)
    assert word(mi, 3) % 64 == 0
    on_memrt.release(mi)


def test_failed_allocation_counts_in_numba_and_not_in_memrt(on_stock, on_memrt):
    for runtime, expected in ((on_stock, 1), (on_memrt, 0)):
        counted = Counted(runtime)
        assert runtime.MemInfo_alloc(2**62) is None
        assert counted.delta()["alloc"] == expected


def test_failed_realloc_keeps_data_that_numba_drops(on_stock, on_memrt):
    for runtime in (on_stock, on_memrt):
        mi = runtime.MemInfo_new_varsize(16)
        data = word(mi, 3)
        fill(data, 16, 6)
        assert runtime.MemInfo_varsize_realloc(mi, 2**62) is None
        if runtime is on_memrt:
            assert (word(mi, 3), word(mi, 4), contents(mi)) == (data, 16, b"\x06" * 16)
        else:
            assert word(mi, 3) == 0
            ctypes.c_size_t.from_address(mi + 24).value = data
        runtime.release(mi)


def test_failed_varsize_alloc_keeps_data_that_numba_drops(on_stock, on_memrt):
    for runtime in (on_stock, on_memrt):
        mi = runtime.MemInfo_new_varsize(16)
        data = word(mi, 3)
        assert runtime.MemInfo_varsize_alloc(mi, 2**62) is None
        assert word(mi, 3) == (data if runtime is on_memrt else 0)
        ctypes.c_size_t.from_address(mi + 24).value = data
        runtime.release(mi)


def test_failed_varsize_new_frees_data_that_numba_leaks(on_stock, on_memrt, raw_failure):
    counted = Counted(on_memrt)
    for nth in (1, 2):
        with fail_allocations(nth):
            assert on_memrt.MemInfo_new_varsize(100) is None
    delta = counted.delta()
    assert delta["alloc"] == delta["free"]
    failing = StockFailing(on_stock, raw_failure, HEADER)
    counted = Counted(on_stock)
    with failing:
        assert on_stock.MemInfo_new_varsize(100) is None
    assert (counted.delta()["alloc"], counted.delta()["free"]) == (2, 0)


def test_failed_unboxing_raises_where_numba_drops_the_owner(on_stock, on_memrt, raw_failure):
    array = np.arange(4.0)
    space = (ctypes.c_size_t * 7)()
    references = sys.getrefcount(array)
    with fail_allocations(), pytest.raises(MemoryError):
        on_memrt.adapt_ndarray_from_python(array, space)
    assert list(space) == [0] * 7
    assert sys.getrefcount(array) == references
    with StockFailing(on_stock, raw_failure, HEADER):
        assert on_stock.adapt_ndarray_from_python(array, space) == 0
    assert space[0] == 0
    assert sys.getrefcount(array) == references + 1
    gc.collect()


def test_alignment_48_is_64_where_numba_aligns_to_48(on_stock, on_memrt):
    mi = on_stock.MemInfo_alloc_aligned(100, 48)
    assert word(mi, 3) % 48 == 0
    on_stock.release(mi)
    mi = on_memrt.MemInfo_alloc_aligned(100, 48)
    assert word(mi, 3) % 64 == 0
    on_memrt.release(mi)
