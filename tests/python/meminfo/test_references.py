"""Calls of the extension keep reference counts and memory as before, also when they fail."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import threading
import tracemalloc
import weakref

import arrowarray
import capsules
import memrt
import numpy as np
import pytest
from dltensor import Producer
from gil import GIL_IS_OFF
from memrt import _memrt

clear_method_cache = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
ROUNDS = 128
# Rounds of calls that visit every object of the process, and refuse to do so without the GIL.
SLOW = {} if GIL_IS_OFF else {"holders": 16}
# Without the GIL, the interpreter's lists of memory to free later grow for more windows.
WINDOWS = 32 if GIL_IS_OFF else 8
NOISE = 8  # bytes in each round: less than half of the smallest object


class Things:
    """Long-lived arguments; their reference counts show lost and surplus references."""

    def __init__(self) -> None:
        self.policy = memrt.Policy(name="references")
        self.handler = self.policy.handler
        self.mi = memrt.alloc(192, zero=True, name="references")
        self.array = memrt.empty((2, 3, 4))
        self.plain = np.arange(24.0)
        self.tensor = memrt.types.Tensor(self.array)
        self.dtype = np.dtype("<f8")
        self.structured = np.dtype([("a", "i4"), ("b", "f8")])
        self.bytes = ctypes.create_string_buffer(64)
        self.address = ctypes.addressof(self.bytes)
        self.dtor = Dtor()
        self.shape, self.text = (2, 3), "text " + str(id(self))
        with memrt.scope("references") as self.scope:
            self.scoped = memrt.alloc(10)
        self.handler_of_array = _memrt.get_handler()
        self.stream = memrt.alloc(5)

    def counts(self) -> dict[str, int]:
        common = {"None": None, "True": True, "False": False, "ndarray": np.ndarray}
        types = {"MemInfo": memrt.MemInfo, "Tensor": memrt.types.Tensor, "Policy": memrt.Policy}
        own = {**vars(self), "handler": self.policy.handler, **common, **types}
        own["base of array"] = self.array.base
        own["base of tensor"] = self.tensor.meminfo
        return {name: sys.getrefcount(value) for name, value in own.items()}


class Dtor:
    """A destructor for wrap()."""

    def __call__(self, address: int, size: int) -> None:
        pass


class Capsule:
    """An object with a number in place of the capsule of __memrt_meminfo__."""

    def __memrt_meminfo__(self):
        return 5


def dlpack(thing, **options):
    return thing.__dlpack__(max_version=(1, 3), **options)


def within(things: Things, call):
    with memrt.scope("references"):
        return call()


def tracked(call):
    with memrt.debug.tracking():
        return call()


CALLS = {
    # Arrays and MemInfos.
    "alloc": lambda t: memrt.alloc(100, 128, True, t.policy, t.text),
    "alloc: size": lambda t: memrt.alloc(-1),
    "alloc: alignment": lambda t: memrt.alloc(1, alignment=3),
    "alloc: name": lambda t: memrt.alloc(1, name=5),
    "alloc: policy": lambda t: memrt.alloc(1, policy=t.text),
    "alloc: too large": lambda t: memrt.alloc(2**62, policy=t.policy),
    "empty": lambda t: memrt.empty(t.shape, t.dtype, policy=t.policy),
    "empty: structured": lambda t: memrt.empty(t.shape, t.structured, "F"),
    "empty: shape": lambda t: memrt.empty((-1, 2), t.dtype),
    "empty: dtype": lambda t: memrt.empty(t.shape, "no type"),
    "empty: order": lambda t: memrt.empty(t.shape, t.dtype, "X"),
    "empty: policy": lambda t: memrt.empty(t.shape, t.dtype, policy=t.text),
    "empty: alignment": lambda t: memrt.empty(t.shape, t.dtype, alignment=3),
    "empty: too large": lambda t: memrt.empty((2**40, 2**20), t.dtype),
    "zeros": lambda t: memrt.zeros(t.shape, t.dtype, alignment=128),
    "zeros: objects": lambda t: memrt.zeros(3, object),
    "as_array": lambda t: memrt.as_array(t.mi, t.shape, t.dtype, offset=8),
    "as_array: strides": lambda t: memrt.as_array(t.mi, t.shape, t.dtype, (8, 16)),
    "as_array: beyond": lambda t: memrt.as_array(t.mi, (100,), t.dtype),
    "as_array: offset": lambda t: memrt.as_array(t.mi, t.shape, t.dtype, offset=10**9),
    "as_array: strides beyond": lambda t: memrt.as_array(t.mi, t.shape, t.dtype, (800, 8)),
    "as_array: objects": lambda t: memrt.as_array(t.mi, (2,), object),
    "as_array: no memory": lambda t: memrt.as_array(t.text),
    "as_array: protocol": lambda t: memrt.as_array(Capsule()),
    "wrap": lambda t: memrt.wrap(t.address, 64, t.dtor, t.bytes, True, t.text, t.policy),
    "wrap: dtor": lambda t: memrt.wrap(t.address, 64, 5, t.bytes),
    "wrap: size": lambda t: memrt.wrap(t.address, -1, t.dtor, t.bytes),
    "wrap: address": lambda t: memrt.wrap(0, 64, t.dtor, t.bytes),
    "wrap: policy": lambda t: memrt.wrap(t.address, 64, t.dtor, t.bytes, policy=t.text),
    "meminfo": lambda t: memrt.meminfo(t.array[1:]),
    "meminfo: memoryview": lambda t: memrt.meminfo(memoryview(t.array)),
    "meminfo: foreign": lambda t: memrt.meminfo(t.plain),
    "meminfo: wrong type": lambda t: memrt.meminfo(t.text),
    "is_managed": lambda t: (memrt.is_managed(t.array), memrt.is_managed(t.plain)),
    "properties": lambda t: [
        getattr(t.mi, name)
        for name in "data size refcount parent readonly kind policy name external_allocator".split()
    ],
    "name": lambda t: setattr(t.mi, "name", t.text),
    "name: bad": lambda t: setattr(t.mi, "name", 5),
    "equality": lambda t: (t.mi == t.mi, t.mi == t.text, hash(t.mi), repr(t.mi)),
    "buffer": lambda t: memoryview(t.mi).release(),
    "array interface": lambda t: (t.mi.__array_interface__, t.mi.__array_struct__),
    "numpy": lambda t: np.asarray(t.mi),
    "capsule": lambda t: memrt.meminfo(t.mi.__memrt_meminfo__()),
    "adopt": lambda t: memrt.adopt(np.empty(10, np.int16)),
    "take over": lambda t: _memrt.take_over(np.empty(10, np.int16), t.policy),
    "take over: policy": lambda t: _memrt.take_over(t.plain, t.text),
    # Tensors and exchange.
    "Tensor": lambda t: memrt.types.Tensor(t.array[::-1]),
    "Tensor: foreign": lambda t: memrt.types.Tensor(t.plain),
    "Tensor: dtype": lambda t: memrt.types.Tensor(memrt.empty(3, t.structured)),
    "Tensor: wrong type": lambda t: memrt.types.Tensor(t.text),
    "Tensor.repr": lambda t: repr(t.tensor),
    "Tensor.array": lambda t: (t.tensor.array, t.tensor.shape, t.tensor.meminfo),
    "Tensor device": lambda t: (t.tensor.__dlpack_device__(), t.mi.__dlpack_device__()),
    "tensor_over": lambda t: _memrt.tensor_over(t.mi, t.dtype, (2, 3), (24, 8), 0, False),
    "tensor_over: dtype": lambda t: _memrt.tensor_over(t.mi, t.structured, (2,), (12,), 0, False),
    "tensor_over: shape": lambda t: _memrt.tensor_over(t.mi, t.dtype, ("x",), (8,), 0, False),
    "tensor_over: strides": lambda t: _memrt.tensor_over(t.mi, t.dtype, (2,), ("x",), 0, False),
    "tensor_over: steps": lambda t: _memrt.tensor_over(t.mi, t.dtype, (2,), (12,), 0, False),
    "tensor_layout": lambda t: _memrt.tensor_layout(t.tensor),
    "tensor_layout: wrong type": lambda t: _memrt.tensor_layout(t.mi),
    "tensor_layout: dtype": lambda t: _memrt.tensor_layout(
        memrt.from_dlpack(Producer(dtype=(4, 16, 1)))
    ),
    "export": lambda t: (dlpack(t.tensor), dlpack(t.mi)),
    "export: old": lambda t: t.tensor.__dlpack__(),
    "export: copy": lambda t: dlpack(t.tensor, copy=True),
    "export: device": lambda t: dlpack(t.tensor, dl_device=(2, 0)),
    "export: stream": lambda t: dlpack(t.tensor, stream=t.text),
    "export: version": lambda t: t.tensor.__dlpack__(max_version=t.text),
    "import": lambda t: memrt.from_dlpack(t.tensor, policy=t.policy),
    "import: policy": lambda t: memrt.from_dlpack(t.tensor, policy=t.text),
    "import: foreign": lambda t: memrt.from_dlpack(Producer()),
    "import: copy": lambda t: memrt.from_dlpack(Producer(), copy=True),
    "import: version": lambda t: memrt.from_dlpack(Producer(version=(9, 0))),
    "import: wrong type": lambda t: memrt.from_dlpack(t.text),
    "take_capsule": lambda t: _memrt.take_capsule(dlpack(t.tensor), t.policy),
    "take_capsule: wrong type": lambda t: _memrt.take_capsule(t.text, None),
    "arrow": lambda t: (t.mi.__arrow_c_schema__(), t.mi.__arrow_c_array__()),
    "arrow: device": lambda t: t.mi.__arrow_c_device_array__(),
    "arrow: schema": lambda t: t.mi.__arrow_c_array__(t.text),
    "from_arrow": lambda t: memrt.from_arrow(t.mi),
    "from_arrow: foreign": lambda t: memrt.from_arrow(arrowarray.Producer(), policy=t.policy),
    "from_arrow: policy": lambda t: memrt.from_arrow(arrowarray.Producer(), policy=t.text),
    "from_arrow: format": lambda t: memrt.from_arrow(arrowarray.Producer(schema_format=b"+s")),
    "from_arrow: wrong type": lambda t: memrt.from_arrow(t.text),
    # Policies, scopes and statistics.
    "Policy": lambda t: memrt.Policy(128, t.text, decay=7),
    "Policy: alignment": lambda t: memrt.Policy(3),
    "Policy: name": lambda t: memrt.Policy(name="x" * 64),
    "Policy: option": lambda t: memrt.Policy(decay="soon"),
    "policy_info": lambda t: _memrt.policy_info(t.handler),
    "policy_info: wrong type": lambda t: _memrt.policy_info(t.text),
    "policies": lambda t: _memrt.policies(),
    "handler": lambda t: _memrt.set_handler(_memrt.set_handler(t.handler)),
    "handler: wrong type": lambda t: _memrt.set_handler(t.text),
    "handler_name": lambda t: (memrt.handler_name(), memrt.handler_name(t.array)),
    "handler_name: foreign": lambda t: memrt.handler_name(t.plain),
    "with": lambda t: t.policy.__enter__() and t.policy.__exit__(),
    "stats": lambda t: (memrt.stats(), memrt.stats(t.policy)),
    "stats: wrong type": lambda t: memrt.stats(t.text),
    "threads": lambda t: (_memrt.threads(), memrt.stats(thread=threading.current_thread())),
    "reset_peak": lambda t: (memrt.debug.reset_peak(), memrt.debug.reset_peak(t.policy)),
    "scope": lambda t: memrt.scope("references").__enter__(),
    "scope_open: parent": lambda t: _memrt.scope_open(t.text, "name"),
    "scope_open: name": lambda t: _memrt.scope_open(None, ""),
    "scopes": lambda t: [_memrt.scope_info(each) for each in _memrt.scopes()],
    "scope_info: wrong type": lambda t: _memrt.scope_info(t.mi),
    "scope figures": lambda t: (t.scope.stats(), t.scope.sizes(), t.scope.reset_peak()),
    "sizes": lambda t: (memrt.debug.sizes(), memrt.debug.sizes(t.policy, live=True)),
    "sizes: wrong type": lambda t: _memrt.stats_sizes(t.mi),
    "scope figures: wrong type": lambda t: _memrt.scope_sizes(t.mi),
    "in_scope": lambda t: _memrt.in_scope(t.handler),
    "in_scope: of NumPy": lambda t: within(t, lambda: _memrt.in_scope(t.handler_of_array)),
    "in_scope: entered": lambda t: within(t, lambda: _memrt.in_scope(t.handler)),
    "alloc: in a scope": lambda t: within(t, lambda: memrt.alloc(10, policy=t.policy)),
    "empty: in a scope": lambda t: within(t, lambda: memrt.empty(t.shape, policy=t.policy)),
    "with: in a scope": lambda t: within(t, lambda: t.policy.__enter__() and t.policy.__exit__()),
    "options": lambda t: (memrt.debug.options(), _memrt.features(), _memrt.library_path()),
    "set_option": lambda t: memrt.set_option("no such option", 5),
    # Tracking and holders.
    "live": lambda t: memrt.debug.live(),
    "live: scopes": lambda t: _memrt.live(lambda: t.text),
    "tracking": lambda t: _memrt.tracking_close(_memrt.tracking_open((False, 4, 0, 0))),
    "tracking: bad": lambda t: _memrt.tracking_open((True, 4)),
    "sites": lambda t: (
        _memrt.site_allocations(),
        _memrt.site_frames(10**6),
        _memrt.suppression_at(10**6),
    ),
    "sites: tracked": lambda t: tracked(lambda: (memrt.alloc(10), _memrt.site_allocations())),
    "running_calls": lambda t: _memrt.running_calls(),
    "suppression": lambda t: _memrt.suppression_add("", t.text),
    "holders": lambda t: _memrt.find_holders(t.array, 2, 1),
    "find_places": lambda t: _memrt.find_places([t.array], [t.array, t.text]),
    "holders: foreign": lambda t: memrt.holders(t.plain),
    "find_place": lambda t: _memrt.find_place({t.text: t.mi}, t.mi),
    "find_place: not there": lambda t: _memrt.find_place([t.mi], t.array),
    "instance_dict": lambda t: (_memrt.instance_dict(t), _memrt.instance_dict(t.shape)),
    "frame_variables": lambda t: len(_memrt.frame_variables(sys._getframe())),
    "call_after": lambda t: _memrt.call_after(list, tuple, t.shape),
    "call_after: fails": lambda t: _memrt.call_after(list, int, t.shape),
    "one_object": lambda t: _memrt.one_object({}, 1, t.policy),
    "one_object: known": lambda t: _memrt.one_object({1: weakref.ref(t.policy)}, 1, t.policy),
    "one_object: bad key": lambda t: _memrt.one_object({}, [], t.policy),
    "exact_peak": lambda t: (_memrt.exact_peak_open(), _memrt.exact_peak_close()),
    "out of memory": lambda t: memrt.OutOfMemoryError("text").nbytes,
    "trace": lambda t: (_memrt.trace_stats(), _memrt.trace_mark(t.text)),
    "fail": lambda t: memrt.testing.fail_allocations(3, 0).__enter__(),
}


@contextlib.contextmanager
def nothing_left():
    """Leave scopes, stop fault injection and end loans that a call may leave behind."""
    entered = memrt.current_scope()
    try:
        yield
    finally:
        _memrt.stop_failing()
        capsules.forget_loans()
        if memrt.current_scope() != entered:
            _memrt.scope_variable.set(())


def collect() -> None:
    """Collect cycles, and free their memory: CPython without a GIL frees the keys of dicts in the
    next collection. CPython's cache of methods keeps names that NumPy makes for each call.
    """
    gc.collect()
    gc.collect()
    clear_method_cache()


def repeat(call, things: Things, rounds: int) -> tuple[dict[str, int], float]:
    """Return the reference counts that change, by how much, and the growth in bytes per round."""
    collect()
    counts = things.counts()
    memory = tracemalloc.get_traced_memory()[0]
    for _ in range(rounds):
        with nothing_left(), contextlib.suppress(Exception):
            call(things)
    collect()
    grown = tracemalloc.get_traced_memory()[0] - memory
    changes = {key: now - counts[key] for key, now in things.counts().items()}
    return {key: n for key, n in changes.items() if abs(n) >= rounds // 2}, grown / rounds


def lost_by(call, rounds: int = ROUNDS) -> tuple[dict[str, int], float]:
    """Measure until a window shows no loss, at most WINDOWS times. Caches fill and tables grow, but
    a lost reference appears in every window.
    """
    things = Things()
    for _ in range(WINDOWS):
        changes, grown = repeat(call, things, rounds)
        if not changes and grown < NOISE:
            break
    return changes, grown


@pytest.mark.parametrize("name", CALLS)
def test_call_preserves_reference_counts_and_memory(name):
    tracemalloc.start()
    try:
        changes, grown = lost_by(CALLS[name], SLOW.get(name, ROUNDS))
    finally:
        tracemalloc.stop()
    assert changes == {}
    assert grown < NOISE
