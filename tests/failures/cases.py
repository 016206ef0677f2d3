"""Define a case for every public call, to run while memory, pages or threads are refused.

The name of a case is the name of the called function, then optionally a comma and a variant. The
arguments of the calls are attributes of a Ground, which is made anew for each run.

No library lists the calls: arguments, preparation and cleanup are specific to memrt.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import inspect
import io
import mmap
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
import tracemalloc
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import memrt
import numpy as np
import probe
from memrt import _memrt, adaptors
from memrt._allocators.files import file_capsule
from memrt.testing import exhaust, fail_allocations
from opentelemetry.metrics import NoOpMeterProvider

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "support"))
from arrowarray import StreamProducer

SYSTEM = ("heap", "mmap", "munmap", "mremap", "madvise", "mprotect", "thread")
NOT_PYTHONS = ("memrt", *SYSTEM)
NOT_MEMRTS = ("python", *SYSTEM)
# Callbacks for memory pressure need a thread: test_refused_thread_raises_memory_error.
NOT_THREADS = ("memrt", "python", *SYSTEM[:-1])
# The advice is what the call is for, so refused advice is an error: test_file_backed.c.
NOT_ADVICE = ("memrt", "python", *(each for each in SYSTEM if each != "madvise"))
# Python code that makes a closure without memory: CPython 3.11 may lose a reference, CPython 3.13
# may crash. So failures of Python's allocators are injected before Python 3.12 only.
WITH_CLOSURE = ("memrt", *NOT_MEMRTS) if sys.version_info < (3, 12) else NOT_PYTHONS
SPARES = 64  # capacity of each free list of the extension
LARGE = 3 * 2**20
CODE = compile("1", "<case>", "exec")
PACKAGE = Path(memrt.__file__).parent


def ignore(address: int, nbytes: int) -> None:
    """Destructor that does nothing."""


# Memory of the allocators in Python: a single block at a time.
LENT = mmap.mmap(-1, 2**16)
LENT_ADDRESS = ctypes.addressof(ctypes.c_char.from_buffer(LENT))

# A memrt_allocator_t, which no call uses: the functions only must not be NULL.
ALLOC = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
TABLE = (ctypes.c_uint64 * 11)(88, 1, 0, 0, ALLOC, 0, 0, ALLOC, 0, 0, 0)
NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
NEW_CAPSULE.restype = ctypes.py_object
NEW_CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
CAPSULE_NAME = b"memrt.allocator"  # a capsule keeps the address of its name
CAPSULE = NEW_CAPSULE(ctypes.addressof(TABLE), CAPSULE_NAME, None)
PLACED_POLICY = memrt.Policy(pages="4K", name="placed")
with PLACED_POLICY:
    PLACED = np.ones(10_000)
MAPPED = np.frombuffer(mmap.mmap(-1, 4096), "u1")


def lend(nbytes: int, alignment: int) -> mmap.mmap:
    return LENT


def lend_address(nbytes: int, alignment: int) -> int:
    return LENT_ADDRESS


def with_allocator(allocator: Callable[[], object]) -> Case:
    """Return a case for an allocation from a policy with an allocator that a function returns."""

    def enter(ground: Ground) -> None:
        ground.lent = memrt.Policy(allocator=allocator())
        ground.lent.__enter__()

    return Case(
        lambda g: g.left.append(memrt.empty(100)), enter, lambda g: g.lent.__exit__(), NOT_PYTHONS
    )


def replace_default(set_allocator: Callable[[object], None], source: object) -> None:
    with contextlib.suppress(RuntimeError):  # the default policy is in use
        set_allocator(source)


class Exported:
    """Object with the CUDA Array Interface of a device array, in a dict made in advance."""

    def __init__(self, array: memrt.cuda.Array) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class Ground:
    """Arguments of the calls, and the list `left` for objects that a case keeps alive.

    A new Ground empties the free lists of the extension and the caches of memrt.
    """

    def __init__(self) -> None:
        self.mi = memrt.alloc(800, name="ground")
        self.array = memrt.zeros(100)
        self.tensor = memrt.types.Tensor(self.array)
        self.column = memrt.types.Column(self.array)
        self.nullable = memrt.types.Column(np.ma.MaskedArray(self.array, [1, 0] * 50, copy=False))
        self.words = memrt.types.Column(np.array(["a", "bé"], object), "words", copy=None)
        self.table = memrt.types.Column(
            {"x": self.nullable, "y": self.array, "z": memrt.zeros(100, bool)}
        )
        self.foreign = np.arange(100.0)
        self.policy = memrt.Policy(128, "ground")
        with self.policy:
            self.block = np.ones(100)
            self.large = np.empty(LARGE // 8)
        self.arena = memrt.arena("ground", chunk=2**16)
        self.owner = ctypes.create_string_buffer(64)
        self.address = ctypes.addressof(self.owner)
        self.wrapped = memrt.wrap(self.address, 64, ignore, self.owner)
        self.objects = memrt.array([{}, [1]], object)
        self.stats = memrt.stats()
        if memrt.cuda.available():  # true in the worker, which has a fake driver
            self.bring_cuda()
        self.frozen: object = object()
        self.left: list = []
        self.spares = [
            (memrt.alloc(1), memrt.wrap(self.address, 64, owner=self.owner)) for _ in range(SPARES)
        ]
        memrt.release_unused()

    def bring_cuda(self) -> None:
        self.stream = memrt.cuda.Stream()
        self.device = memrt.cuda.empty((3, 4), "f4", stream=self.stream, name="ground")
        self.managed = memrt.cuda.empty(4, kind="managed")
        self.exported = Exported(self.device)


Act = Callable[[Ground], object]


def nothing(ground: Ground) -> None:
    """Do nothing: for cases without preparation or cleanup."""


@dataclass(frozen=True)
class Case:
    """A call with its preparation and cleanup. No failure is injected into the last two."""

    call: Act
    before: Act = nothing
    after: Act = nothing
    faults: tuple[str, ...] = ("memrt", *NOT_MEMRTS)
    errors: tuple[type[Exception], ...] = (MemoryError,)
    sets_context: bool = False  # sets a context variable: CPython crashes without any memory


def leave_policies(ground: Ground) -> None:
    while _entered(ground.policy):
        ground.policy.__exit__()


def leave_without_policy(ground: Ground) -> None:
    while _entered(WITHOUT):
        WITHOUT.__exit__()


def leave_arena(ground: Ground) -> None:
    while _entered(ground.arena):
        ground.arena.__exit__()


def _entered(policy: memrt.Policy) -> bool:
    from memrt._policy import handlers

    return handlers.handler_of(policy) is not None


def in_force(call: Act) -> Case:
    """Return a case for a call of NumPy, with the policy of the ground in force.

    Python's allocators do not fail here, because NumPy mishandles some of their failures: a call
    fails without an exception, or succeeds with one.
    """
    return Case(call, lambda g: g.policy.__enter__(), leave_policies, NOT_PYTHONS)


def set_name(ground: Ground) -> None:
    ground.array.base.name = "a name"


def resize(array: np.ndarray, length: int) -> None:
    array.resize(length, refcheck=False)


def resize_back(ground: Ground) -> None:
    resize(ground.block, 100)


def resize_shared(ground: Ground) -> None:
    resize(ground.left[1], 10_000)


def share_block(ground: Ground) -> None:
    block = np.ones(100)
    ground.left += [memrt.meminfo(block), block]


def shared_before(ground: Ground) -> None:
    with ground.policy:
        share_block(ground)


def clear_left(ground: Ground) -> None:
    ground.left.clear()


def promote_large(ground: Ground) -> None:
    """Count the block as a MemInfo, as any use of its MemInfo does."""
    memrt.meminfo(ground.large)


def freeze_large(ground: Ground) -> None:
    ground.frozen = memrt.debug.freeze(ground.large)


def freeze_twice(ground: Ground) -> None:
    freeze_large(ground)
    _memrt.freeze_pages(ground.frozen._mi, ground.large)


def thaw_large(ground: Ground) -> None:
    if isinstance(ground.frozen, memrt.types.Frozen):
        ground.frozen.thaw()
    ground.frozen = object()


def free_nothing(wanted: int) -> None:
    """Reclaim callback that does nothing."""


# With room, so that nothing needs memory after a registration.
registered: list = [None] * 4


def keep(register: Callable[[], object]) -> None:
    registered[registered.index(None)] = register()


def reset_refused(policy: memrt.Policy) -> None:
    try:
        policy.reset()
    except RuntimeError:
        pass
    else:
        raise AssertionError("a policy with live arrays was reset")


def add_callback(ground: Ground) -> None:
    keep(lambda: memrt.debug.on_refusal(free_nothing))


def add_hook(ground: Ground) -> None:
    keep(lambda: memrt.debug.hook(free_nothing))


def log_refusals(ground: Ground) -> None:
    keep(lambda: memrt.telemetry.log_refusals())


def dump_on_refusal(ground: Ground) -> None:
    keep(lambda: memrt.debug.dump_on_refusal(DUMPS))


def dump_on_signal(ground: Ground) -> None:
    keep(lambda: memrt.debug.dump_on_signal(DUMPS))


def remove_dump(ground: Ground) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{DUMPS}/dump")


def close_callbacks(ground: Ground) -> None:
    for index, callback in enumerate(registered):
        if callback is not None:
            callback.close()
            registered[index] = None


def remove_hooks(ground: Ground) -> None:
    for index, hook in enumerate(registered):
        if hook is not None:
            _memrt.hook_remove(hook)
            registered[index] = None


def clear_array(array: np.ndarray) -> None:
    array.fill(0)


POINT_FIELDS = (1, "block", 10, None, None, "None", 1, 10, True)
POINT = memrt.types.FailurePoint(*POINT_FIELDS)
EXHAUSTED = memrt.types.Exhaustion("what", (POINT,), 0)
EMPTY_POLICY = memrt.Policy(name="empty")
VOLATILE = memrt.volatile(clear_array, 3)
COUNTING = adaptors.counting()
LIMITED_POLICY = memrt.Policy(name="limited", decay=50)
BUFFER = memrt.types.Buffer(reserve=LARGE)
ITEMS = np.arange(20_000)
USED_BEFORE = tuple(memrt.Policy(name=f"used before {i}") for i in range(5))


def growing(call: Callable[[memrt.types.Buffer], object], limit: int | None = None) -> Case:
    """Return a case for a buffer that is full. A failure must keep the items and their number."""

    def fill(ground: Ground) -> None:
        policy = memrt.Policy(name="growing", limit=limit)
        ground.left.append(memrt.types.Buffer(3000, dtype="i8", reserve=LARGE, policy=policy))
        ground.left[0].extend(range(3000))

    def change(ground: Ground) -> None:
        buffer = ground.left[0]
        assert len(buffer) == 3000
        call(buffer)

    def verify(ground: Ground) -> None:
        kept = ground.left.pop().array[:3000]
        assert (kept == ITEMS[: len(kept)]).all()

    return Case(change, fill, verify)


def shrink(buffer: memrt.types.Buffer) -> None:
    buffer.resize(10)
    buffer.shrink_to_fit()


def new_volatile() -> memrt.volatile:
    return memrt.volatile(clear_array, 3)


def leave_volatile() -> None:
    array = new_volatile()
    array.__enter__()
    array.__exit__()


def run_thread(ground: Ground) -> None:
    made: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: made.append(np.ones(10)))
    thread.start()
    thread.join()
    assert memrt.handler_name(made[0]) == "memrt"


def run_empty_file(ground: Ground) -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        _memrt.run_file(descriptor, "case", {})
    finally:
        with contextlib.suppress(OSError):  # still open if run_file failed before making a stream
            os.close(descriptor)


def enter_tracking(ground: Ground) -> None:
    ground.tracking = memrt.debug.tracking()
    ground.tracking.__enter__()


def leave_tracking(ground: Ground) -> None:
    while ground.tracking._opened:
        ground.tracking.__exit__()


def enter_check(ground: Ground) -> None:
    new_check(ground)
    ground.check.__enter__()
    ground.tracking = ground.check._tracking


def new_check(ground: Ground) -> None:
    ground.check = memrt.debug.assert_no_leaks()
    ground.tracking = ground.check._tracking


def tracked(call: Act) -> Case:
    """Return a case with a tracked buffer, whose allocation site is known."""
    return Case(call, bear_tracked, clear_left)


def bear_tracked(ground: Ground) -> None:
    with memrt.debug.tracking():
        ground.left.append(memrt.alloc(10))


def tracked_buffer(ground: Ground) -> memrt.types.LiveBuffer:
    return memrt.debug.live()[-1]


def leak_group(ground: Ground) -> memrt.types.LeakGroup:
    return memrt.types.LeakGroup(None, (tracked_buffer(ground),), None)


def check_nothing(ground: Ground) -> None:
    with memrt.debug.assert_no_leaks():
        pass


ALIGNMENT_FIELDS = (np.dtype("D"), "", 4100, 5, 4, 16, 8, 8, ())
ALIGNMENT = memrt.types.Alignment(*ALIGNMENT_FIELDS)
CALLBACK = memrt.debug.on_refusal(free_nothing)
WITHOUT = memrt.debug.without_policy()
CALLBACK.close()
HOOK = memrt.debug.hook(free_nothing, policy=memrt.debug.default_policy())
HOOK.close()
EVENT_FIELDS = ("free", 8, 0.0, "default", None, 64, 1, 1.0, 0, 0, 0)
BLOCK_EVENT = memrt.types.BlockEvent(*EVENT_FIELDS)
CLOSED_LOG = memrt.telemetry.log_refusals()
CLOSED_LOG.close()
DUMPS = tempfile.mkdtemp()
atexit.register(shutil.rmtree, DUMPS, ignore_errors=True)
REFUSAL_DUMPS = memrt.debug.dump_on_refusal(DUMPS)
REFUSAL_DUMPS.close()
SIGNAL_DUMPS = memrt.debug.dump_on_signal(DUMPS)
SIGNAL_DUMPS.close()
TREND = memrt.types.Trend("what", (1, 2), 1.0, 0.5)
CLOSED_CALLBACK = memrt.on_pressure(len)
CLOSED_CALLBACK.close()
MEMORY_PART = memrt.types.MemoryPart(None, None, "malloc is replaced")
LATENCY = memrt.types.Latency(1, 600, {1024: 1})
MEMORY_STATS = memrt.types.MemoryStats(*range(14))
PROCESS_MEMORY = memrt.types.ProcessMemory(*range(6), *[MEMORY_PART] * 11)
GROWTH = memrt.types.Growth((TREND,), (TREND,), TREND)
ZERO = memrt.stats() - memrt.stats()
WORKER = memrt.types.WorkerStats(1, 0, "ended", "", ZERO, {}, {"load": ZERO}, ())
WORKERS = memrt.types.WorkersStats((WORKER,), 1)
PLACE = memrt.types.Place("f.py", "f", 3)
SITE = memrt.types.Site(1, (memrt.types.Frame("f", "f.py", 3, 0, False),))


def new_tracking(ground: Ground) -> None:
    ground.tracking = memrt.debug.tracking()


def enter_exact(ground: Ground) -> None:
    memrt.debug.exact_peak().__enter__()


def leave_exact(ground: Ground) -> None:
    with contextlib.suppress(RuntimeError):  # raised once there are no more entries
        while True:
            memrt.debug.exact_peak().__exit__()


FOLDER = tempfile.TemporaryDirectory(prefix="memrt-failures-")
TRACE_FILE = f"{FOLDER.name}/memtrace"
TRACE_STATS = memrt.types.TraceStats(False, 5, 2, 0, 100, 28)


def new_trace(ground: Ground) -> None:
    ground.trace = memrt.debug.trace(TRACE_FILE, replace=True)


def enter_trace(ground: Ground) -> None:
    new_trace(ground)
    ground.trace.__enter__()


def leave_trace(ground: Ground) -> None:
    _memrt.trace_stop()


def record(ground: Ground) -> None:
    enter_trace(ground)
    memrt.alloc(10)
    memrt.debug.mark("a mark")
    leave_trace(ground)


def recorded(call: Callable[[memrt.debug.Trace], object]) -> Case:
    """Return a case that opens a recorded trace file and passes the trace to `call`.

    Python's allocators do not fail here, because NumPy loses some of their failures.
    """
    return Case(lambda g: call(memrt.debug.Trace(TRACE_FILE)), record, faults=NOT_PYTHONS)


def new_plan(ground: Ground) -> None:
    ground.plan = fail_allocations(10**9)


def enter_plan(ground: Ground) -> None:
    new_plan(ground)
    ground.plan.__enter__()


def leave_plan(ground: Ground) -> None:
    if fail_allocations._active is ground.plan:
        ground.plan.__exit__()


def hold(ground: Ground) -> None:
    """Keep a small view of a large buffer, and a dict with an array and a view of it."""
    if not ground.left:
        ground.left += [
            memrt.zeros(100_000)[3:5],
            {"array": ground.array, "view": ground.array[1:]},
        ]


def hold_overlapping(ground: Ground) -> None:
    """Keep two overlapping views of a large buffer."""
    large = memrt.zeros(LARGE, "u1")
    ground.left.extend((large[:20], large[10:30]))


def hold_in_six_ways(ground: Ground) -> None:
    """Keep six buffers by attributes of different objects: the sixth path grows a dict."""
    buffers = [memrt.alloc(10) for _ in range(6)]
    ground.addresses = [buffer.address for buffer in buffers]
    ground.left.extend(types.SimpleNamespace(kept=buffer) for buffer in buffers)


def find(ground: Ground) -> None:
    hold(ground)
    ground.found, ground.retention = memrt.holders(ground.array), memrt.debug.retention()


def found(call: Act, faults: tuple[str, ...] = ("memrt", *NOT_MEMRTS)) -> Case:
    """Return a case with finished results of holders() and retention()."""
    return Case(call, find, clear_left, faults)


def set_handler_back(ground: Ground) -> None:
    _memrt.set_handler(ground.before)


def keep_handler(ground: Ground) -> None:
    ground.before = _memrt.get_handler()


def counts_as_meminfo(ground: Ground) -> None:
    """Make the block count as a MemInfo, as after the first request for its MemInfo."""
    memrt.meminfo(ground.block)


def over_again(ground: Ground) -> np.ndarray:
    return np.frombuffer(memoryview(ground.mi)[8:], np.uint8)


def drop_wrapped(ground: Ground) -> None:
    """Drop the last reference to a MemInfo over memory of a Python object."""
    ground.left.pop()


def wrap_to_drop(ground: Ground) -> None:
    if not ground.left:
        ground.left.append(memrt.wrap(ground.address, 64, owner=ground.owner))


def import_to_drop(ground: Ground) -> None:
    if not ground.left:
        ground.left.append(memrt.from_dlpack(ground.foreign))


def take_capsules(ground: Ground) -> tuple:
    schema, array = ground.mi.__arrow_c_array__()
    return _memrt.take_arrow(schema, array, ground.policy)


def take_nullable(ground: Ground) -> tuple | None:
    schema, array = ground.nullable.__arrow_c_array__()
    return _memrt.take_arrow(schema, array, ground.policy)


def take_part_capsules(ground: Ground) -> tuple:
    schema, array = ground.table.__arrow_c_array__()
    return _memrt.take_arrow_parts(schema, array, ground.policy)


def read_stream(ground: Ground) -> None:
    producer = StreamProducer()
    capsules = _memrt.arrays_of_stream(producer.__arrow_c_stream__())
    del capsules  # while the release functions of their contents still exist


def take_column(ground: Ground) -> None:
    if not ground.left:
        ground.left.append(memrt.from_arrow(ground.column))


def new_scope(ground: Ground) -> None:
    """Make a scope that needs new subpolicies of the ground's policy and of the default policy.

    The ground's policy is new. The earlier subpolicy of the default policy went with
    release_unused().
    """
    ground.scope = memrt.scope("of a case")


def enter_scope(ground: Ground) -> None:
    new_scope(ground)
    ground.inside = ground.scope.__enter__()


def enter_used_scope(ground: Ground) -> None:
    """Enter a scope whose dictionary of handlers must grow for another policy."""
    enter_scope(ground)
    for policy in USED_BEFORE:
        memrt.empty(1, policy=policy)


def enter_scope_and_policy(ground: Ground) -> None:
    enter_scope(ground)
    ground.policy.__enter__()


def new_account(ground: Ground) -> None:
    ground.account = _memrt.TaskAccount()


def enter_scope_and_account(ground: Ground) -> None:
    enter_scope(ground)
    new_account(ground)


def run_task(ground: Ground) -> dict[str, object]:
    """Run a task twice: the second call enters scope and policy by the values of the first."""
    slot = [ground.inside._capsule, memrt.Policy.__enter__, None, None, None]
    message: dict[str, object] = {}
    for _ in range(2):
        message = _memrt.run_task(ground.account, slot, ground.policy, repr, dict)
    return message


def leave_scopes(ground: Ground) -> None:
    from memrt._policy import current_scope

    while memrt.current_scope() is not None:
        current_scope.leave_scope(current_scope._entries.get()[-1][0])
    leave_policies(ground)


def told(call: Act) -> Case:
    """Return a case that renders statistics as text, inside a scope.

    Python's allocators do not fail here: text takes thousands of requests of Python's own, which
    CPython has to handle.
    """
    return Case(call, enter_scope, leave_scopes, NOT_PYTHONS)


def scoped(call: Act, sets_context: bool = False) -> Case:
    """Return a case that runs inside an open scope."""
    return Case(call, enter_scope, leave_scopes, sets_context=sets_context)


def enter_full_scope(ground: Ground) -> None:
    """Enter a scope with more buffers of one size than CPython has small integers."""
    enter_scope(ground)
    ground.left.extend(memrt.alloc(100) for _ in range(300))


def leave_full_scope(ground: Ground) -> None:
    clear_left(ground)
    leave_scopes(ground)


def bring_shortage(ground: Ground) -> None:
    try:
        memrt.alloc(1 << 60)
    except memrt.OutOfMemoryError as error:
        ground.left.append(error.with_traceback(None))


def hold_as(ground: Ground) -> None:
    ground.held = probe.hold_as(ground.array, "loader", 1)


def release_as(ground: Ground) -> None:
    probe.release_as(ground.held, "loader", 1)


def start_tracing(ground: Ground) -> None:
    tracemalloc.start()


def stop_tracing(ground: Ground) -> None:
    tracemalloc.stop()


def traced(call: Act) -> Case:
    """Return a case that runs while tracemalloc traces, which allocates memory, too."""
    return Case(call, start_tracing, stop_tracing)


def array_of_device(ground: Ground) -> None:
    with contextlib.suppress(TypeError):  # raised also without a failure
        np.asarray(ground.device)


def make_cuda_policies() -> None:
    """Make the policies that account for CUDA memory and, once made, stay."""
    for kind in ("device", "managed", "pinned"):
        memrt.from_cuda_array_interface(memrt.cuda.empty(1, kind=kind))


def free_first_stream(ground: Ground) -> None:
    _memrt.cuda_stream_free(0, ground.left[0])
    ground.left.clear()


def free_streams(ground: Ground) -> None:
    while ground.left:
        _memrt.cuda_stream_free(0, ground.left.pop())


CASES: dict[str, Case] = {
    # --- Allocation. ---
    "memrt.alloc": Case(lambda g: memrt.alloc(100)),
    "memrt.alloc, aligned, zero and named": Case(
        lambda g: memrt.alloc(100, 4096, zero=True, name="n")
    ),
    "memrt.alloc, large, from a policy": Case(lambda g: memrt.alloc(LARGE, policy=g.policy)),
    "memrt.alloc, traced": traced(lambda g: memrt.alloc(100)),
    "memrt.wrap": Case(lambda g: memrt.wrap(g.address, 64, ignore, g.owner, name="w")),
    "memrt.wrap, without a dtor": Case(lambda g: memrt.wrap(g.address, 64, owner=g.owner)),
    "memrt.wrap, at release": Case(drop_wrapped, wrap_to_drop, clear_left),
    "memrt.empty": Case(lambda g: memrt.empty((3, 4))),
    "memrt.empty, of many dimensions": Case(lambda g: memrt.empty([1] * 20, "f4", "F")),
    "memrt.empty, aligned, from a policy": Case(
        lambda g: memrt.empty(10, alignment=4096, policy=g.policy)
    ),
    "memrt.empty, from a further policy of a scope": Case(
        lambda g: memrt.empty(3, policy=g.policy), enter_used_scope, leave_scopes
    ),
    "memrt.empty, of objects": Case(
        lambda g: memrt.empty(3, object, policy=g.policy), sets_context=True
    ),
    "memrt.empty, large": Case(lambda g: memrt.empty(LARGE, "u1")),
    "memrt.zeros": Case(lambda g: memrt.zeros((3, 4))),
    "memrt.zeros, large": Case(lambda g: memrt.zeros(LARGE, "u1")),
    "memrt.zeros, of objects": Case(lambda g: memrt.zeros(3, object), sets_context=True),
    "memrt.full": Case(lambda g: memrt.full((3, 4), 7)),
    "memrt.array": Case(lambda g: memrt.array([[1, 2], [3, 4]])),
    "memrt.array, of an array": Case(lambda g: memrt.array(g.foreign, "f4")),
    "memrt.array, of objects": Case(lambda g: memrt.array(g.objects), sets_context=True),
    "memrt.as_array": Case(lambda g: memrt.as_array(g.mi, (2, 50), "f8")),
    "memrt.as_array, strided and read-only": Case(
        lambda g: memrt.as_array(g.mi, (10,), "f8", (-8,), 80, writeable=False)
    ),
    "memrt.as_array, of a capsule": Case(lambda g: memrt.as_array(g.mi.__memrt_meminfo__())),
    # --- Exchange by DLPack. ---
    "memrt.from_dlpack": Case(lambda g: memrt.from_dlpack(g.foreign)),
    "memrt.from_dlpack, copied": Case(lambda g: memrt.from_dlpack(g.tensor, copy=True)),
    "memrt.from_dlpack, at release": Case(clear_left, import_to_drop, clear_left),
    "memrt.from_dlpack, of a device": Case(
        lambda g: memrt.from_dlpack(g.device), faults=NOT_PYTHONS
    ),
    "memrt.from_dlpack, copied on a device": Case(
        lambda g: memrt.from_dlpack(g.device, copy=True), faults=NOT_PYTHONS
    ),
    "_memrt.tensor_over": Case(
        lambda g: _memrt.tensor_over(g.mi, np.dtype("f8"), (10,), (8,), 0, True)
    ),
    "_memrt.tensor_layout": Case(lambda g: _memrt.tensor_layout(g.tensor)),
    "_memrt.take_capsule": Case(lambda g: _memrt.take_capsule(g.mi.__dlpack__(), g.policy)),
    "memrt.types.Tensor": Case(lambda g: memrt.types.Tensor(g.array[::2])),
    "memrt.types.Tensor.array": Case(lambda g: g.tensor.array),
    "memrt.types.Tensor.meminfo": Case(lambda g: g.tensor.meminfo),
    "memrt.types.Tensor.shape": Case(lambda g: g.tensor.shape),
    "memrt.types.Tensor.shape, of 300 rows": Case(
        lambda g: g.left[0].shape,
        lambda g: g.left.append(memrt.types.Tensor(memrt.zeros(300))),
        clear_left,
    ),
    "memrt.types.Tensor.__repr__, of 300 rows": Case(
        lambda g: repr(g.left[0]),
        lambda g: g.left.append(memrt.types.Tensor(memrt.zeros(300))),
        clear_left,
    ),
    "memrt.types.Tensor.__repr__": Case(lambda g: repr(g.tensor)),
    "memrt.types.Tensor.__dlpack__": Case(lambda g: g.tensor.__dlpack__(max_version=(1, 3))),
    "memrt.types.Tensor.__dlpack__, copied": Case(lambda g: g.tensor.__dlpack__(copy=True)),
    "memrt.types.Tensor.__dlpack_device__": Case(lambda g: g.tensor.__dlpack_device__()),
    "memrt.types.Tensor.__dlpack__, copied in a scope": scoped(
        lambda g: g.tensor.__dlpack__(copy=True)
    ),
    "memrt.MemInfo.__dlpack__": Case(lambda g: g.mi.__dlpack__()),
    "memrt.MemInfo.__dlpack__, copied": Case(
        lambda g: g.mi.__dlpack__(copy=True, max_version=(1, 0))
    ),
    "memrt.MemInfo.__dlpack_device__": Case(lambda g: g.mi.__dlpack_device__()),
    "numpy.from_dlpack of a Tensor": Case(lambda g: np.from_dlpack(g.tensor)),
    # --- Arrow, and the array interface. ---
    "memrt.from_arrow": Case(lambda g: memrt.from_arrow(g.column)),
    "memrt.from_arrow, with nulls": Case(  # without Python's memory, MaskedArray() loses its data
        lambda g: memrt.from_arrow(g.nullable, masked=True), faults=NOT_PYTHONS
    ),
    "memrt.from_arrow, of bytes": Case(lambda g: memrt.from_arrow(g.mi)),
    "memrt.from_arrow, at release": Case(clear_left, take_column, clear_left),
    "memrt.from_arrow, of text": Case(
        lambda g: memrt.from_arrow(g.words, copy=None), faults=NOT_PYTHONS
    ),
    "memrt.from_arrow, of a table": Case(
        lambda g: memrt.from_arrow(g.table, copy=None, masked=True), faults=NOT_PYTHONS
    ),
    "memrt.from_arrow, of chunks": Case(
        lambda g: memrt.from_arrow(memrt.types.Column.stream([g.column] * 2), copy=None),
        faults=NOT_PYTHONS,
    ),
    "memrt.types.Column": Case(lambda g: memrt.types.Column(g.array)),
    "memrt.types.Column, of text": Case(
        lambda g: memrt.types.Column(np.array(["a", None], object), copy=None), faults=NOT_PYTHONS
    ),
    "memrt.types.Column, of a table": Case(
        lambda g: memrt.types.Column({"x": g.nullable, "y": g.array})
    ),
    "memrt.types.Column, with a dictionary": Case(
        lambda g: memrt.types.Column(memrt.zeros(2, "i4"), dictionary=g.words), faults=NOT_PYTHONS
    ),
    "memrt.types.Column, with offsets": Case(
        lambda g: memrt.types.Column(g.array, offsets=memrt.zeros(2, "i4")), faults=NOT_PYTHONS
    ),
    "memrt.types.Column.chunks": Case(lambda g: memrt.types.Column.chunks(g.table)),
    "memrt.types.Column.stream": Case(lambda g: memrt.types.Column.stream([g.column, g.column])),
    "memrt.types.Column.format": Case(lambda g: g.column.format),
    "memrt.types.Column.parts": Case(lambda g: g.table.parts),
    "memrt.types.Column.to_numpy": Case(lambda g: g.column.to_numpy()),
    "memrt.types.Column.__arrow_c_stream__": Case(lambda g: g.table.__arrow_c_stream__()),
    "memrt.types.Column, of a block": Case(
        lambda g: memrt.types.Column(g.block), counts_as_meminfo
    ),
    "memrt.types.Column, with nulls": Case(lambda g: memrt.types.Column(g.nullable.array)),
    "memrt.types.Column.array": Case(lambda g: g.column.array),
    "memrt.types.Column.name": Case(lambda g: g.column.name),
    "memrt.types.Column.__len__": Case(lambda g: len(g.column)),
    "memrt.types.Column.__repr__": Case(lambda g: repr(g.column)),
    "memrt.types.Column.__arrow_c_schema__": Case(lambda g: g.column.__arrow_c_schema__()),
    "memrt.types.Column.__arrow_c_array__": Case(lambda g: g.nullable.__arrow_c_array__()),
    "memrt.types.Column.__arrow_c_device_array__": Case(
        lambda g: g.column.__arrow_c_device_array__()
    ),
    "memrt.MemInfo.__arrow_c_schema__": Case(lambda g: g.mi.__arrow_c_schema__()),
    "memrt.MemInfo.__arrow_c_array__": Case(lambda g: g.mi.__arrow_c_array__()),
    "memrt.MemInfo.__arrow_c_device_array__": Case(lambda g: g.mi.__arrow_c_device_array__()),
    "memrt.MemInfo.__arrow_c_device_array__, of a device": Case(
        lambda g: g.device.meminfo.__arrow_c_device_array__()
    ),
    "_memrt.export_arrow": Case(
        lambda g: _memrt.export_arrow((g.mi, 0, "g", 100, False, "x", g.mi, 3), True)
    ),
    "_memrt.take_arrow": Case(take_capsules),
    "_memrt.take_arrow, with nulls": Case(take_nullable),
    "_memrt.arrays_of_stream": Case(read_stream, faults=NOT_PYTHONS),
    "_memrt.arrays_of_stream, of a table": Case(
        lambda g: _memrt.arrays_of_stream(g.table.__arrow_c_stream__())
    ),
    "_memrt.take_arrow_parts": Case(take_part_capsules),
    "_memrt.export_arrow_parts": Case(
        lambda g: _memrt.export_arrow_parts(g.table._tree().exported(), True)
    ),
    "_memrt.export_arrow_stream": Case(
        lambda g: _memrt.export_arrow_stream((g.table._tree().exported(),) * 2)
    ),
    "memrt.MemInfo.__array_interface__": Case(lambda g: g.mi.__array_interface__),
    "memrt.MemInfo.__array_struct__": Case(lambda g: g.mi.__array_struct__),
    # --- Queries on arrays. ---
    "memrt.meminfo": Case(lambda g: memrt.meminfo(g.array[3:])),
    "memrt.meminfo, of a block": Case(lambda g: memrt.meminfo(g.block[3:])),
    "memrt.meminfo, of a memoryview": Case(lambda g: memrt.meminfo(memoryview(g.mi))),
    "memrt.meminfo, of an array from C": Case(lambda g: memrt.meminfo(probe.make_array(10))),
    "memrt.is_managed": Case(lambda g: memrt.is_managed(g.array[3:])),
    "memrt.is_managed, of a memoryview": Case(lambda g: memrt.is_managed(memoryview(g.mi))),
    "memrt.is_managed, of foreign memory": Case(lambda g: memrt.is_managed(g.foreign)),
    "memrt.handler_name": Case(lambda g: memrt.handler_name(g.array)),
    "memrt.handler_name, of a block": Case(lambda g: memrt.handler_name(g.block)),
    "memrt.handler_name, of a memoryview": Case(lambda g: memrt.handler_name(memoryview(g.mi))),
    "memrt.handler_name, in force": Case(lambda g: memrt.handler_name()),
    "memrt.adopt": Case(
        lambda g: memrt.adopt(g.left[0], policy=g.policy),
        lambda g: g.left.append(np.ones(10)),
        clear_left,
    ),
    "memrt.adopt, of memory of malloc": Case(
        lambda g: memrt.adopt(g.left[0]), lambda g: g.left.append(probe.malloced(80)), clear_left
    ),
    "memrt.adopt, by copy": Case(lambda g: memrt.adopt(np.frombuffer(g.owner, np.uint8))),
    "memrt.debug.unresolved_symbols": Case(lambda g: memrt.debug.unresolved_symbols()),
    "memrt.debug.check_symbols": Case(lambda g: memrt.debug.check_symbols()),
    "memrt.alignment": Case(lambda g: memrt.alignment(g.array)),
    "memrt.types.Alignment": Case(lambda g: memrt.types.Alignment(*ALIGNMENT_FIELDS)),
    "memrt.types.Alignment.actual": Case(lambda g: ALIGNMENT.actual),
    "memrt.types.Alignment.is_true_aligned": Case(lambda g: ALIGNMENT.is_true_aligned),
    "memrt.types.Alignment.is_uint_aligned": Case(lambda g: ALIGNMENT.is_uint_aligned),
    "memrt.types.Alignment.copies": Case(lambda g: ALIGNMENT.copies),
    "memrt.types.Alignment.casts": Case(lambda g: ALIGNMENT.casts),
    "memrt.types.Alignment.meets": Case(lambda g: ALIGNMENT.meets(64)),
    "memrt.types.Alignment.advice": Case(lambda g: ALIGNMENT.advice),
    "memrt.types.Alignment.__repr__": Case(lambda g: repr(ALIGNMENT)),
    "memrt.aligned": Case(lambda g: memrt.aligned(g.array[1:], 4096)),
    "memrt.aligned, of objects": Case(
        lambda g: memrt.aligned(g.left[0], 4096),
        lambda g: g.left.append(np.zeros(3, object)),
        clear_left,
        sets_context=True,
    ),
    # --- Growing buffers. ---
    "memrt.types.Buffer": Case(lambda g: memrt.types.Buffer(10, reserve=LARGE)),
    "memrt.types.Buffer, of a policy, then freed": Case(
        lambda g: len(memrt.types.Buffer(10, dtype="f4", reserve="1 MiB", policy=g.policy))
    ),
    "memrt.types.Buffer, with huge pages": Case(
        lambda g: len(memrt.types.Buffer(2 * LARGE, reserve=2**25))
    ),
    "memrt.types.Buffer.append": growing(lambda b: b.append(7)),
    "memrt.types.Buffer.append, of another type": growing(lambda b: b.append(True)),
    "memrt.types.Buffer.append, up to a limit": growing(lambda b: b.append(7), 30_000),
    "memrt.types.Buffer.extend": growing(lambda b: b.extend(ITEMS)),
    "memrt.types.Buffer.extend, of a list": growing(lambda b: b.extend([1, 2, 3])),
    "memrt.types.Buffer.extend, of an iterator": growing(lambda b: b.extend(iter((1, 2, 3)))),
    "memrt.types.Buffer.resize": growing(lambda b: b.resize(30_000)),
    "memrt.types.Buffer.shrink_to_fit": growing(shrink),
    "memrt.types.Buffer.__len__": Case(lambda g: len(BUFFER)),
    "memrt.types.Buffer.__repr__": Case(lambda g: repr(BUFFER)),
    "memrt.types.Buffer.array": Case(lambda g: BUFFER.array),
    "memrt.types.Buffer.capacity": Case(lambda g: BUFFER.capacity),
    "memrt.types.Buffer.dtype": Case(lambda g: BUFFER.dtype),
    "memrt.types.Buffer.nbytes": Case(lambda g: BUFFER.nbytes),
    "memrt.types.Buffer.reserve": Case(lambda g: BUFFER.reserve),
    # --- Volatile arrays. ---
    "memrt.volatile": Case(lambda g: new_volatile()),
    "memrt.volatile.use": Case(lambda g: new_volatile().use()),
    "memrt.volatile.__enter__": Case(lambda g: new_volatile().__enter__()),
    "memrt.volatile.__exit__": Case(lambda g: leave_volatile()),
    "memrt.volatile.drop": Case(lambda g: VOLATILE.drop()),
    "memrt.volatile.__repr__": Case(lambda g: repr(VOLATILE)),
    "memrt.volatile.shape": Case(lambda g: VOLATILE.shape),
    "memrt.volatile.dtype": Case(lambda g: VOLATILE.dtype),
    "memrt.volatile.nbytes": Case(lambda g: VOLATILE.nbytes),
    "memrt.volatile.makes": Case(lambda g: VOLATILE.makes),
    "memrt.volatile.state": Case(lambda g: VOLATILE.state),
    "_memrt.volatile_new": Case(lambda g: _memrt.volatile_new(5)),
    "_memrt.volatile_pin": Case(lambda g: _memrt.volatile_pin(_memrt.volatile_new(5))),
    "_memrt.volatile_made": Case(lambda g: _memrt.volatile_made(VOLATILE._content)),
    "_memrt.volatile_drop": Case(lambda g: _memrt.volatile_drop(VOLATILE._content)),
    "_memrt.volatile_read": Case(lambda g: _memrt.volatile_read(VOLATILE._content)),
    # --- Policies. ---
    "memrt.Policy": Case(lambda g: memrt.Policy(128, "p")),
    "memrt.Policy, with limits": Case(
        lambda g: memrt.Policy(cache_limit="1M", decay=5, hugepages="off")
    ),
    "memrt.Policy, with guard pages": Case(lambda g: memrt.Policy(guard="all")),
    "memrt.Policy, with an allocator": Case(lambda g: memrt.Policy(allocator=lend)),
    "memrt.empty, of an allocator with buffers": with_allocator(lambda: lend),
    "memrt.empty, of an allocator with addresses": with_allocator(lambda: (lend_address, ignore)),
    "_memrt.allocator_of_callables": Case(lambda g: _memrt.allocator_of_callables(lend, ignore)),
    "_memrt.allocator_of_functions": Case(
        lambda g: _memrt.allocator_of_functions(ALLOC, ALLOC, None)
    ),
    "_memrt.allocator_of_table": Case(
        lambda g: _memrt.allocator_of_table(ctypes.addressof(TABLE), TABLE)
    ),
    "_memrt.allocator_of_capsule": Case(lambda g: _memrt.allocator_of_capsule(CAPSULE)),
    "_memrt.allocator_guard": Case(lambda g: _memrt.allocator_guard(None)),
    "_memrt.allocator_adaptor": Case(
        lambda g: _memrt.allocator_adaptor(None, 2, 100, None, None, -1)
    ),
    "_memrt.allocator_placed": Case(lambda g: _memrt.allocator_placed("4K", None, 1, True)),
    "_memrt.allocator_file": Case(lambda g: _memrt.allocator_file("/tmp")),
    "_memrt.pages_cold": Case(lambda g: _memrt.pages_cold(PLACED, False), faults=NOT_ADVICE),
    "_memrt.placement_read": Case(lambda g: _memrt.placement_read(PLACED)),
    "_memrt.default_allocator_set": Case(
        lambda g: replace_default(
            _memrt.default_allocator_set, _memrt.allocator_of_callables(lend, None)
        )
    ),
    # CPython 3.11 loses the exception of a Python function without memory for the traceback.
    "memrt.debug.set_default_allocator": Case(
        lambda g: replace_default(memrt.debug.set_default_allocator, lend), faults=NOT_PYTHONS
    ),
    "memrt.adaptors.logging, over two others": Case(
        lambda g: memrt.Policy(allocator=adaptors.logging(adaptors.guard(adaptors.counting(lend)))),
    ),
    "memrt.adaptors.logging": Case(lambda g: adaptors.logging()),
    "memrt.adaptors.guard": Case(lambda g: adaptors.guard()),
    "memrt.adaptors.counting": Case(lambda g: adaptors.counting()),
    "memrt.adaptors.aligning": Case(lambda g: adaptors.aligning(honoured=32)),
    "memrt.adaptors.arena": Case(lambda g: adaptors.arena(chunk=2**16)),
    "memrt.adaptors.limiting": Case(lambda g: adaptors.limiting(limit="1 MiB")),
    "memrt.adaptors.prefetching": Case(lambda g: adaptors.prefetching()),
    "memrt.adaptors.retrying": Case(lambda g: adaptors.retrying(function=bool)),
    "memrt.adaptors.thread_safe": Case(lambda g: adaptors.thread_safe()),
    "memrt.adaptors.Adaptor": Case(lambda g: adaptors.Adaptor("a kind", None)),
    "memrt.adaptors.Adaptor.__repr__": Case(lambda g: repr(COUNTING)),
    "memrt.adaptors.Adaptor.counts": Case(lambda g: COUNTING.counts),
    "memrt.adaptors.Adaptor.__memrt_allocator__": Case(lambda g: COUNTING.__memrt_allocator__()),
    "memrt.adaptors.AdaptorCounts": Case(lambda g: adaptors.AdaptorCounts(1, 2, 3, 4, 5, 6)),
    "memrt.adaptors.thread_safe, over prefetching": Case(
        lambda g: memrt.Policy(allocator=adaptors.thread_safe(adaptors.prefetching())),
    ),
    "memrt.empty, of thread-safe over prefetching": with_allocator(
        lambda: adaptors.thread_safe(adaptors.prefetching(threshold=0))
    ),
    "memrt.adaptors.placed": Case(lambda g: adaptors.placed(lock="try")),
    "memrt.empty, of a placed allocator": with_allocator(lambda: adaptors.placed(pages="4K")),
    "memrt.debug.cold": Case(lambda g: memrt.debug.cold(PLACED), faults=NOT_ADVICE),
    "memrt.Policy, with a memory file": Case(lambda g: memrt.Policy(memfd=True)),
    "memrt.Policy, with files": Case(lambda g: memrt.Policy(file="/tmp")),
    "memrt.empty, in a file": with_allocator(lambda: file_capsule("/tmp", False)),
    "memrt.adopt, of mapped memory": Case(lambda g: memrt.adopt(MAPPED)),
    "memrt.debug.placement": Case(lambda g: memrt.debug.placement(PLACED)),
    "memrt.empty, of an arena": with_allocator(lambda: adaptors.arena(chunk=2**16)),
    "memrt.arena": Case(lambda g: memrt.arena("small", chunk=2**16)),
    "memrt.arena.outlived": Case(lambda g: g.arena.outlived),
    "memrt.arena.keep": Case(
        lambda g: g.left.append(g.arena.keep(g.foreign)),
        lambda g: g.arena.__enter__(),
        leave_arena,
        NOT_PYTHONS,
    ),
    "memrt.arena.__enter__": Case(
        lambda g: g.arena.__enter__(), after=leave_arena, sets_context=True
    ),
    "memrt.arena.__exit__": Case(
        lambda g: g.arena.__exit__(), lambda g: g.arena.__enter__(), leave_arena, sets_context=True
    ),
    "memrt.arena.__exit__, with an array that stays": Case(
        lambda g: g.arena.__exit__(),
        lambda g: (g.arena.__enter__(), g.left.append(np.ones(100))),
        leave_arena,
        sets_context=True,
    ),
    "_memrt.allocator_release_unused": Case(
        lambda g: _memrt.allocator_release_unused(g.arena._capsule)
    ),
    "memrt.empty, of retrying over limiting": with_allocator(
        lambda: adaptors.retrying(adaptors.limiting(limit="1 MiB"), function=bool)
    ),
    "memrt.Policy, with a limit": Case(lambda g: memrt.Policy(limit="1 GiB")),
    "memrt.Policy, with a soft limit": Case(lambda g: memrt.Policy(soft="1 GiB")),
    "memrt.Policy.limit": Case(lambda g: g.policy.limit),
    "memrt.Policy.soft_limit": Case(lambda g: g.policy.soft_limit),
    "memrt.Policy.cache_limit": Case(lambda g: setattr(LIMITED_POLICY, "cache_limit", "5M")),
    "memrt.Policy.decay": Case(lambda g: setattr(LIMITED_POLICY, "decay", 60)),
    "memrt.Policy.hugepages": Case(lambda g: LIMITED_POLICY.hugepages),
    "memrt.Policy.guard": Case(lambda g: setattr(LIMITED_POLICY, "guard", "1G")),
    "memrt.limit": Case(lambda g: memrt.limit("100 GiB"), after=lambda g: memrt.limit(None)),
    "memrt.limit, with a soft limit": Case(
        lambda g: memrt.limit("100 GiB", soft="auto"), after=lambda g: memrt.limit(None)
    ),
    "_memrt.limit_set_soft": Case(lambda g: _memrt.limit_set_soft(g.policy.handler, None)),
    "_memrt.limit_set": Case(lambda g: _memrt.limit_set(g.policy.handler, None)),
    "_memrt.limit_read": Case(lambda g: _memrt.limit_read(None)),
    "memrt.debug.limits": Case(lambda g: memrt.debug.limits()),
    # Thousands of Python's allocations, as in process_memory.
    "memrt.debug.dump": Case(
        lambda g: memrt.debug.dump(f"{DUMPS}/dump"), remove_dump, remove_dump, NOT_PYTHONS
    ),
    "memrt.debug.dump_on_refusal": Case(dump_on_refusal, after=close_callbacks),
    "memrt.debug.dump_on_refusal.close": Case(lambda g: REFUSAL_DUMPS.close()),
    "memrt.debug.dump_on_refusal.__enter__": Case(lambda g: REFUSAL_DUMPS.__enter__()),
    "memrt.debug.dump_on_refusal.__exit__": Case(lambda g: REFUSAL_DUMPS.__exit__()),
    # signal.signal and signal.getsignal of CPython may fail without an exception.
    "memrt.debug.dump_on_signal": Case(dump_on_signal, nothing, close_callbacks, NOT_PYTHONS),
    "memrt.debug.dump_on_signal.close": Case(lambda g: SIGNAL_DUMPS.close(), faults=NOT_PYTHONS),
    "memrt.debug.dump_on_signal.__enter__": Case(lambda g: SIGNAL_DUMPS.__enter__()),
    "memrt.debug.dump_on_signal.__exit__": Case(
        lambda g: SIGNAL_DUMPS.__exit__(), faults=NOT_PYTHONS
    ),
    "memrt.debug.on_refusal": Case(add_callback, after=close_callbacks),
    "memrt.debug.on_refusal.callback": Case(lambda g: CALLBACK.callback),
    "memrt.debug.on_refusal.priority": Case(lambda g: CALLBACK.priority),
    "memrt.debug.on_refusal.close": Case(
        lambda g: registered[0].close(), add_callback, close_callbacks
    ),
    "memrt.debug.on_refusal.__enter__": Case(lambda g: CALLBACK.__enter__()),
    "memrt.debug.on_refusal.__exit__": Case(lambda g: CALLBACK.__exit__()),
    "memrt.debug.on_refusal.__call__": Case(lambda g: CALLBACK(1)),
    "memrt.debug.on_refusal.__repr__": Case(lambda g: repr(CALLBACK)),
    "_memrt.reclaim_add": Case(
        lambda g: _memrt.reclaim_add(len, 0), after=lambda g: _memrt.reclaim_remove(len)
    ),
    "_memrt.reclaim_remove": Case(lambda g: _memrt.reclaim_remove(len)),
    "memrt.debug.hook": Case(add_hook, after=close_callbacks),
    "memrt.debug.hook, with a first queue": Case(
        add_hook, add_hook, close_callbacks, faults=("heap",)
    ),
    "memrt.debug.hook.callback": Case(lambda g: HOOK.callback),
    "memrt.debug.hook.sample": Case(lambda g: HOOK.sample),
    "memrt.debug.hook.policy": Case(lambda g: HOOK.policy),
    "memrt.debug.hook.dropped": Case(lambda g: HOOK.dropped),
    "memrt.debug.hook.is_open": Case(lambda g: HOOK.is_open),
    "memrt.debug.hook.deliver": Case(lambda g: registered[0].deliver(), add_hook, close_callbacks),
    "memrt.debug.hook.close": Case(lambda g: registered[0].close(), add_hook, close_callbacks),
    "memrt.debug.hook.__enter__": Case(lambda g: HOOK.__enter__()),
    "memrt.debug.hook.__exit__": Case(lambda g: HOOK.__exit__()),
    "memrt.debug.hook.__call__": Case(
        lambda g: HOOK("free", 8, 0.0, "default", 0, *EVENT_FIELDS[5:])
    ),
    "memrt.debug.hook.__repr__": Case(lambda g: repr(HOOK)),
    "memrt.types.BlockEvent": Case(lambda g: memrt.types.BlockEvent(*EVENT_FIELDS)),
    "memrt.types.BlockEvent.site": Case(lambda g: BLOCK_EVENT.site),
    "memrt.types.BlockEvent.place": Case(lambda g: BLOCK_EVENT.place),
    "_memrt.hook_add": Case(
        lambda g: keep(lambda: _memrt.hook_add(free_nothing, 1 << 40, None)), after=remove_hooks
    ),
    "_memrt.hook_remove": Case(lambda g: _memrt.hook_remove(0)),
    "_memrt.hook_deliver": Case(lambda g: _memrt.hook_deliver(0)),
    "_memrt.hook_dropped": Case(lambda g: _memrt.hook_dropped(0)),
    "memrt.types.WorkerStats": Case(
        lambda g: memrt.types.WorkerStats(1, 0, "ended", "", g.stats, {}, {}, ())
    ),
    "memrt.types.WorkersStats": Case(lambda g: memrt.types.WorkersStats((WORKER,), 1)),
    "memrt.types.WorkersStats.total": Case(lambda g: WORKERS.total),
    "memrt.types.WorkersStats.scopes": Case(lambda g: WORKERS.scopes),
    "memrt.types.WorkersStats.__repr__": Case(lambda g: repr(WORKERS)),
    "memrt.types.Limit": Case(lambda g: memrt.types.Limit("process", 1, 0, 0, None, 0)),
    "memrt.Policy.name": Case(lambda g: g.policy.name),
    "memrt.Policy.alignment": Case(lambda g: g.policy.alignment),
    "memrt.Policy.options": Case(lambda g: g.policy.options),
    "memrt.Policy.handler": Case(lambda g: g.policy.handler),
    "memrt.Policy.stats": Case(lambda g: g.policy.stats()),
    "memrt.Policy.reset": Case(lambda g: EMPTY_POLICY.reset()),
    # CPython may lose an exception that a frame handles without memory.
    "memrt.Policy.reset, refused": Case(
        lambda g: reset_refused(g.policy), faults=("memrt", *SYSTEM)
    ),
    "memrt.Policy.sizes": Case(lambda g: g.policy.sizes()),
    "memrt.Policy.__enter__": Case(
        lambda g: g.policy.__enter__(), after=leave_policies, sets_context=True
    ),
    "memrt.Policy.__exit__": Case(
        lambda g: g.policy.__exit__(),
        lambda g: g.policy.__enter__(),
        leave_policies,
        sets_context=True,
    ),
    "memrt.Policy.__exit__, of the lower of two": Case(
        lambda g: g.policy.__exit__(),
        lambda g: (g.policy.__enter__(), memrt.debug.default_policy().__enter__()),
        lambda g: (leave_policies(g), memrt.debug.default_policy().__exit__()),
        sets_context=True,
    ),
    "memrt.Policy.__repr__": Case(lambda g: repr(g.policy)),
    "memrt.debug.default_policy": Case(lambda g: memrt.debug.default_policy()),
    "memrt.debug.policies": Case(lambda g: memrt.debug.policies()),
    "memrt.enable": Case(
        lambda g: memrt.enable(),
        after=lambda g: memrt.disable(),
        faults=WITH_CLOSURE,
        sets_context=True,
    ),
    "memrt.enable, a policy": Case(
        lambda g: memrt.enable(g.policy),
        after=lambda g: memrt.disable(),
        faults=NOT_PYTHONS,
        sets_context=True,
    ),
    "memrt.enable, and a thread": Case(
        run_thread,
        lambda g: memrt.enable(),
        lambda g: memrt.disable(),
        SYSTEM,
    ),
    "memrt.disable": Case(
        lambda g: memrt.disable(),
        lambda g: memrt.enable(),
        lambda g: memrt.disable(),
        sets_context=True,
    ),
    "memrt.enable, inside without_policy": Case(
        lambda g: memrt.enable(),
        lambda g: WITHOUT.__enter__(),
        lambda g: (memrt.disable(), leave_without_policy(g)),
        faults=WITH_CLOSURE,
        sets_context=True,
    ),
    "memrt.debug.without_policy": Case(lambda g: memrt.debug.without_policy()),
    "memrt.debug.without_policy.__enter__": Case(
        lambda g: WITHOUT.__enter__(), after=leave_without_policy, sets_context=True
    ),
    "memrt.debug.without_policy.__exit__": Case(
        lambda g: WITHOUT.__exit__(),
        lambda g: WITHOUT.__enter__(),
        leave_without_policy,
        sets_context=True,
    ),
    "memrt.debug.enabled": Case(lambda g: memrt.debug.enabled()),
    "memrt.set_option": Case(lambda g: memrt.set_option("cache_limit", "none")),
    # --- CUDA. ---
    "memrt.Policy, pinned": Case(lambda g: memrt.Policy(pinned=True)),
    "memrt.from_cuda_array_interface": Case(
        lambda g: memrt.from_cuda_array_interface(g.exported), faults=NOT_PYTHONS
    ),
    "memrt.from_cuda_array_interface, without waiting": Case(
        lambda g: memrt.from_cuda_array_interface(g.exported, sync=False, owner=g),
        faults=NOT_PYTHONS,
    ),
    "memrt.cuda.available": Case(lambda g: memrt.cuda.available()),
    "memrt.cuda.why_not": Case(lambda g: memrt.cuda.why_not()),
    "memrt.cuda.empty": Case(lambda g: memrt.cuda.empty(3), faults=NOT_PYTHONS),
    "memrt.cuda.empty, managed": Case(
        lambda g: memrt.cuda.empty(3, kind="managed", name="n"), faults=NOT_PYTHONS
    ),
    "memrt.cuda.empty, pinned, in a stream": Case(
        lambda g: memrt.cuda.empty(3, kind="pinned", stream=g.stream), faults=NOT_PYTHONS
    ),
    "memrt.cuda.set_limit": Case(lambda g: memrt.cuda.set_limit("device", None)),
    "memrt.cuda.stats": Case(lambda g: memrt.cuda.stats("managed")),
    "memrt.cuda.CudaStats": Case(lambda g: memrt.cuda.CudaStats(1, 2, None, 4, 5, 6, 7, 8)),
    "memrt.cuda.CudaError": Case(lambda g: memrt.cuda.CudaError("text")),
    "memrt.cuda.Stream": Case(lambda g: memrt.cuda.Stream()),
    "memrt.cuda.Stream.handle": Case(lambda g: g.stream.handle),
    "memrt.cuda.Stream.synchronize": Case(lambda g: g.stream.synchronize()),
    "memrt.cuda.Stream.__repr__": Case(lambda g: repr(g.stream)),
    "memrt.cuda.Array": Case(lambda g: memrt.cuda.Array, faults=()),  # has no public constructor
    "memrt.cuda.Array.__cuda_array_interface__": Case(lambda g: g.device.__cuda_array_interface__),
    # CPython 3.11 loses an exception that a Python function raises while memory is missing.
    "memrt.cuda.Array.__array__": Case(array_of_device, faults=NOT_PYTHONS),
    "memrt.cuda.Array.__memrt_meminfo__": Case(lambda g: g.device.__memrt_meminfo__()),
    "memrt.cuda.Array.__dlpack__": Case(lambda g: g.device.__dlpack__(max_version=(1, 3))),
    "memrt.cuda.Array.__dlpack__, copied": Case(
        lambda g: g.device[::2].__dlpack__(copy=True), faults=NOT_PYTHONS
    ),
    "memrt.cuda.Array.__dlpack__, for the CPU": Case(
        lambda g: g.device.__dlpack__(dl_device=(1, 0)), faults=NOT_PYTHONS
    ),
    "memrt.cuda.Array.__dlpack_device__": Case(lambda g: g.device.__dlpack_device__()),
    "memrt.cuda.Array.meminfo": Case(lambda g: g.device.meminfo),
    "memrt.cuda.Array.shape": Case(lambda g: g.device.shape),
    "memrt.cuda.Array.strides": Case(lambda g: g.device.strides),
    "memrt.cuda.Array.dtype": Case(lambda g: g.device.dtype),
    "memrt.cuda.Array.ndim": Case(lambda g: g.device.ndim),
    "memrt.cuda.Array.size": Case(lambda g: g.device.size),
    "memrt.cuda.Array.nbytes": Case(lambda g: g.device.nbytes),
    "memrt.cuda.Array.readonly": Case(lambda g: g.device.readonly),
    "memrt.cuda.Array.kind": Case(lambda g: g.device.kind),
    "memrt.cuda.Array.device": Case(lambda g: g.device.device),
    "memrt.cuda.Array.stream": Case(lambda g: g.device.stream),
    "memrt.cuda.Array.used": Case(lambda g: g.device.used(2)),
    "memrt.cuda.Array.make_ready": Case(lambda g: g.device.make_ready(g.stream)),
    "memrt.cuda.Array.synchronize": Case(lambda g: g.device.synchronize()),
    "memrt.cuda.Array.copy_to_host": Case(
        lambda g: g.device[:, ::2].copy_to_host(), faults=NOT_PYTHONS
    ),
    "memrt.cuda.Array.copy_from_host": Case(
        lambda g: g.device.copy_from_host(5.0), faults=NOT_PYTHONS
    ),
    "memrt.cuda.Array.as_numpy": Case(lambda g: g.managed.as_numpy()),
    "memrt.cuda.Array.release": Case(lambda g: g.device[0].release(), faults=NOT_PYTHONS),
    "memrt.cuda.Array.T": Case(lambda g: g.device.T),
    "memrt.cuda.Array.__repr__": Case(lambda g: repr(g.managed)),
    "_memrt.CudaError": Case(lambda g: _memrt.CudaError()),
    "_memrt.cuda_why_not": Case(lambda g: _memrt.cuda_why_not()),
    "_memrt.cuda_sync": Case(lambda g: _memrt.cuda_sync()),
    "_memrt.cuda_alloc": Case(lambda g: _memrt.cuda_alloc(100, 1, -1, 0, g, "name")),
    "_memrt.cuda_alloc, without a name": Case(lambda g: _memrt.cuda_alloc(100, 1, 0, 1, g, None)),
    "_memrt.cuda_wrap": Case(lambda g: _memrt.cuda_wrap(g.managed.meminfo.address, 32, True, 0, g)),
    "_memrt.cuda_info": Case(lambda g: _memrt.cuda_info(g.device.meminfo)),
    "_memrt.cuda_used": Case(lambda g: _memrt.cuda_used(g.device.meminfo, 1)),
    "_memrt.cuda_wait": Case(lambda g: _memrt.cuda_wait(g.device.meminfo, 1)),
    "_memrt.cuda_read": Case(lambda g: _memrt.cuda_read(g.device.meminfo, 0, bytearray(48), 1)),
    "_memrt.cuda_write": Case(lambda g: _memrt.cuda_write(g.device.meminfo, 0, b"48", 0)),
    "_memrt.cuda_copy": Case(lambda g: _memrt.cuda_copy(g.device.meminfo, 8, 8, g)),
    "_memrt.cuda_stream_new": Case(
        lambda g: g.left.append(_memrt.cuda_stream_new(0)), after=free_streams
    ),
    "_memrt.cuda_stream_free": Case(
        free_first_stream,
        lambda g: g.left or g.left.append(_memrt.cuda_stream_new(0)),
        free_streams,
    ),
    "_memrt.cuda_stream_synchronize": Case(lambda g: _memrt.cuda_stream_synchronize(0, 1)),
    "_memrt.cuda_stats": Case(lambda g: _memrt.cuda_stats(1)),
    "memrt.cuda.empty, in a scope": scoped(lambda g: memrt.cuda.empty(3)),
    "_memrt.cuda_set_limit": Case(lambda g: _memrt.cuda_set_limit(1, 2**64 - 1)),
    # --- Statistics, scopes, tracking and traces. ---
    "memrt.stats": Case(lambda g: memrt.stats()),
    "memrt.telemetry.log_refusals": Case(log_refusals, after=close_callbacks),
    "memrt.telemetry.log_refusals.close": Case(lambda g: CLOSED_LOG.close()),
    "memrt.telemetry.log_refusals.__enter__": Case(lambda g: CLOSED_LOG.__enter__()),
    "memrt.telemetry.log_refusals.__exit__": Case(lambda g: CLOSED_LOG.__exit__()),
    "memrt.telemetry.metrics": told(lambda g: memrt.telemetry.metrics(scopes=True)),
    "memrt.telemetry.metrics_collector": told(
        lambda g: memrt.telemetry.metrics_collector(scopes=True).collect()
    ),
    "memrt.telemetry.register_instruments": Case(
        lambda g: memrt.telemetry.register_instruments(NoOpMeterProvider(), scopes=True),
        faults=NOT_PYTHONS,
    ),
    "memrt.telemetry.heap_profile": Case(
        lambda g: memrt.telemetry.heap_profile(), enter_tracking, leave_tracking, NOT_PYTHONS
    ),
    "memrt.telemetry.stats_json": told(lambda g: memrt.telemetry.stats_json()),
    "memrt.telemetry.stats_json, with memory": told(
        lambda g: memrt.telemetry.stats_json(memory=True)
    ),
    "memrt.telemetry.metrics, with memory": told(lambda g: memrt.telemetry.metrics(memory=True)),
    "memrt.telemetry.stats_schema": told(lambda g: memrt.telemetry.stats_schema()),
    "memrt.stats, of a policy": Case(lambda g: memrt.stats(g.policy)),
    "memrt.telemetry.get_allocation_stats": Case(lambda g: memrt.telemetry.get_allocation_stats()),
    "memrt.types.AllocationStats": Case(lambda g: memrt.types.AllocationStats(1, 2, 3, 4)),
    "memrt.types.Stats": Case(lambda g: memrt.types.Stats(*range(17))),
    "memrt.types.Stats.to_dict": Case(lambda g: g.stats.to_dict()),
    "memrt.types.Stats.__sub__": Case(lambda g: g.stats - g.stats),
    "memrt.types.Stats.__repr__": Case(lambda g: repr(g.stats)),
    "memrt.debug.reset_peak": Case(lambda g: memrt.debug.reset_peak(g.policy)),
    "memrt.debug.sizes": Case(lambda g: memrt.debug.sizes(g.policy)),
    "memrt.debug.threads": Case(lambda g: memrt.debug.threads()),
    "memrt.types.ThreadStats": Case(
        lambda g: memrt.types.ThreadStats(1, "name", 1.0, *range(4)),
    ),
    "memrt.types.ThreadStats.__repr__": Case(
        lambda g: repr(memrt.types.ThreadStats(1, "name", 1.0, *range(4)))
    ),
    "memrt.debug.exact_peak": Case(lambda g: memrt.debug.exact_peak()),
    "memrt.debug.exact_peak.__enter__": Case(
        lambda g: memrt.debug.exact_peak().__enter__(), after=leave_exact
    ),
    "memrt.debug.exact_peak.__exit__": Case(
        lambda g: memrt.debug.exact_peak().__exit__(), enter_exact, leave_exact
    ),
    "memrt.scope": Case(lambda g: memrt.scope("s")),
    "memrt.scope.__enter__": Case(
        lambda g: g.scope.__enter__(), new_scope, leave_scopes, sets_context=True
    ),
    "memrt.scope.__exit__": scoped(lambda g: g.scope.__exit__(), sets_context=True),
    "memrt.scope.__call__": Case(lambda g: memrt.scope("s")(len)),
    "memrt.scope.__repr__": Case(lambda g: repr(memrt.scope("s"))),
    "memrt.current_scope": scoped(lambda g: memrt.current_scope()),
    "memrt.bind_scope": scoped(lambda g: memrt.bind_scope(len)),
    "memrt.scopes": scoped(lambda g: memrt.scopes()),
    "memrt.types.Scope": scoped(lambda g: memrt.types.Scope(g.inside._capsule, ("s",))),
    "memrt.types.Scope.limit": scoped(lambda g: g.inside.limit),
    "memrt.types.Scope.soft_limit": scoped(lambda g: g.inside.soft_limit),
    "memrt.types.Scope.name": scoped(lambda g: g.inside.name),
    "memrt.types.Scope.path": scoped(lambda g: g.inside.path),
    "memrt.types.Scope.live": scoped(lambda g: g.inside.live),
    "memrt.types.Scope.peak": scoped(lambda g: g.inside.peak),
    "memrt.types.Scope.total": scoped(lambda g: g.inside.total),
    "memrt.types.Scope.stats": scoped(lambda g: g.inside.stats()),
    "memrt.types.Scope.sizes": scoped(lambda g: g.inside.sizes()),
    "memrt.types.Scope.sizes, of 300 buffers": Case(
        lambda g: g.inside.sizes(live=True), enter_full_scope, leave_full_scope
    ),
    "memrt.types.Scope.reset_peak": scoped(lambda g: g.inside.reset_peak()),
    "memrt.types.Scope.__eq__": scoped(lambda g: g.inside == memrt.current_scope()),
    "memrt.types.Scope.__hash__": scoped(lambda g: hash(g.inside)),
    "memrt.types.Scope.__repr__": scoped(lambda g: repr(g.inside)),
    "memrt.types.ScopeTree": scoped(lambda g: memrt.types.ScopeTree()),
    "memrt.types.ScopeTree.children": scoped(lambda g: memrt.scopes().children(g.inside)),
    "memrt.types.ScopeTree.__repr__": scoped(lambda g: repr(memrt.scopes())),
    "memrt.alloc, in a scope": scoped(lambda g: memrt.alloc(100)),
    "memrt.empty, from a policy in a scope": scoped(lambda g: memrt.empty(9, policy=g.policy)),
    "memrt.Policy.__enter__, in a scope": scoped(lambda g: g.policy.__enter__(), sets_context=True),
    "memrt.Policy.__exit__, in a scope": Case(
        lambda g: g.policy.__exit__(), enter_scope_and_policy, leave_scopes, sets_context=True
    ),
    "memrt.debug.tracking": Case(lambda g: memrt.debug.tracking()),
    "memrt.debug.tracking.__enter__": Case(
        lambda g: g.tracking.__enter__(), new_tracking, leave_tracking
    ),
    "memrt.debug.tracking.__exit__": Case(
        lambda g: g.tracking.__exit__(), enter_tracking, leave_tracking
    ),
    "memrt.alloc, while tracking": Case(lambda g: memrt.alloc(9), enter_tracking, leave_tracking),
    "memrt.debug.find": Case(lambda g: memrt.debug.find(g.mi.address + 8)),
    "memrt.debug.freeze": Case(freeze_large, promote_large, thaw_large),
    "memrt.types.Frozen.__repr__": Case(lambda g: repr(g.frozen), freeze_large, thaw_large),
    "memrt.debug.freeze, of a small array": Case(lambda g: memrt.debug.freeze(g.array).thaw()),
    "memrt.types.Frozen": Case(lambda g: memrt.types.Frozen(g.array).thaw()),
    "memrt.types.Frozen.protection": Case(lambda g: g.frozen.protection, freeze_large, thaw_large),
    "memrt.types.Frozen.thaw": Case(lambda g: g.frozen.thaw(), freeze_large, thaw_large),
    "memrt.types.Frozen.__enter__": Case(lambda g: g.frozen.__enter__(), freeze_large, thaw_large),
    "memrt.types.Frozen.__exit__": Case(
        lambda g: g.frozen.__exit__(None, None, None), freeze_large, thaw_large
    ),
    "memrt.debug.is_unique": Case(lambda g: memrt.debug.is_unique(g.array)),
    "memrt.debug.is_unique, of a MemInfo": Case(lambda g: memrt.debug.is_unique(g.mi)),
    "memrt.debug.find, of foreign memory": Case(lambda g: memrt.debug.find(g.address)),
    "_memrt.freeze_pages": Case(lambda g: _memrt.freeze_pages(g.mi, g.array)),
    "_memrt.thaw_pages": Case(lambda g: _memrt.thaw_pages(g.frozen._mi), freeze_twice, thaw_large),
    "_memrt.locate": Case(lambda g: _memrt.locate(g.mi.address)),
    "memrt.types.Placement": Case(
        lambda g: memrt.types.Placement(1, 2, None, 0, 0, None, None),
    ),
    "memrt.types.PlacementAsked": Case(
        lambda g: memrt.types.PlacementAsked(None, "0", True, False, {}),
    ),
    "memrt.types.Location": Case(lambda g: memrt.types.Location(1, 2, 3, None, "", None)),
    "memrt.debug.live": Case(lambda g: memrt.debug.live(), enter_tracking, leave_tracking),
    "memrt.debug.trace": Case(lambda g: memrt.debug.trace(TRACE_FILE)),
    "memrt.debug.trace.__enter__": Case(lambda g: g.trace.__enter__(), new_trace, leave_trace),
    "memrt.debug.trace.__exit__": Case(lambda g: g.trace.__exit__(), enter_trace, leave_trace),
    "memrt.debug.trace.stats": Case(lambda g: g.trace.stats, new_trace),
    "memrt.alloc, while a trace is recorded": Case(
        lambda g: memrt.alloc(9), enter_trace, leave_trace
    ),
    "memrt.debug.mark": Case(lambda g: memrt.debug.mark("a mark"), enter_trace, leave_trace),
    "memrt.types.TraceStats": Case(lambda g: memrt.types.TraceStats(False, 1, 0, 0, 100, 0)),
    "memrt.types.TraceStats.loss": Case(lambda g: TRACE_STATS.loss),
    "memrt.debug.Trace": recorded(lambda trace: trace),
    "memrt.debug.Trace.__len__": recorded(len),
    "memrt.debug.Trace.__repr__": recorded(repr),
    "memrt.debug.Trace.is_complete": recorded(lambda trace: trace.is_complete),
    "memrt.debug.Trace.lost": recorded(lambda trace: trace.lost),
    "memrt.debug.Trace.overwritten": recorded(lambda trace: trace.overwritten),
    "memrt.debug.Trace.problem": recorded(lambda trace: trace.problem),
    "memrt.debug.Trace.duration": recorded(lambda trace: trace.duration),
    "memrt.debug.Trace.marks": recorded(lambda trace: trace.marks),
    "memrt.debug.Trace.sites": recorded(lambda trace: trace.sites),
    "memrt.debug.Trace.place": recorded(lambda trace: trace.place(int(trace.events["site"][0]))),
    "memrt.debug.Trace.live": recorded(lambda trace: trace.live),
    "memrt.debug.Trace.peak": recorded(lambda trace: trace.peak),
    "memrt.debug.Trace.peak_event": recorded(lambda trace: trace.peak_event),
    "memrt.debug.Trace.buffers": recorded(lambda trace: trace.buffers),
    "memrt.debug.Trace.usage": recorded(lambda trace: trace.usage()),
    "memrt.debug.TraceError": Case(lambda g: memrt.debug.TraceError("none")),
    "memrt.types.TracePolicy": Case(lambda g: memrt.types.TracePolicy("p", None, 1, 64)),
    "memrt.types.TraceUsage": Case(lambda g: memrt.types.TraceUsage("p", 1, 2, 3, 4)),
    "memrt.types.Mark": Case(lambda g: memrt.types.Mark(1.0, "m", 3)),
    "_memrt.trace_start": Case(
        lambda g: _memrt.trace_start(TRACE_FILE, 1, 0, 100, True), leave_trace, leave_trace
    ),
    "_memrt.trace_stop": Case(lambda g: _memrt.trace_stop(), enter_trace, leave_trace),
    "_memrt.trace_stats": Case(lambda g: _memrt.trace_stats(), enter_trace, leave_trace),
    "_memrt.trace_mark": Case(lambda g: _memrt.trace_mark("m"), enter_trace, leave_trace),
    "memrt.types.LiveBuffer": Case(lambda g: memrt.types.LiveBuffer._make(range(13))),
    "memrt.types.LiveBuffer.site": tracked(lambda g: tracked_buffer(g).site),
    "memrt.types.LiveBuffer.place": tracked(lambda g: tracked_buffer(g).place),
    "memrt.types.LiveBuffer.to_dict": tracked(lambda g: tracked_buffer(g).to_dict()),
    "memrt.types.LiveBuffer.__repr__": tracked(lambda g: repr(tracked_buffer(g))),
    "memrt.debug.sites": tracked(lambda g: memrt.debug.sites()),
    "memrt.types.Frame": Case(lambda g: str(memrt.types.Frame("f", "f.py", 3, 0, False))),
    "memrt.types.Place": Case(lambda g: str(memrt.types.Place("f.py", "f", 3))),
    "memrt.types.Site": Case(lambda g: memrt.types.Site(1, ())),
    "memrt.types.Site.place": Case(lambda g: SITE.place),
    "memrt.types.Site.through": Case(lambda g: SITE.through),
    "memrt.types.SiteUsage": Case(lambda g: memrt.types.SiteUsage(PLACE, 1, 2)),
    "memrt.types.SiteUsage.__repr__": Case(lambda g: repr(memrt.types.SiteUsage(PLACE, 1, 2))),
    "memrt.types.LeakGroup": tracked(leak_group),
    "memrt.types.LeakGroup.nbytes": tracked(lambda g: leak_group(g).nbytes),
    "memrt.debug.LeakError": tracked(lambda g: memrt.debug.LeakError([leak_group(g)])),
    "memrt.debug.assert_no_leaks": Case(lambda g: memrt.debug.assert_no_leaks()),
    "memrt.debug.assert_no_leaks.__enter__": Case(
        lambda g: g.check.__enter__(), new_check, leave_tracking
    ),
    "memrt.debug.assert_no_leaks.__exit__": Case(check_nothing),
    "memrt.debug.assert_no_leaks.allow": Case(
        lambda g: g.check.allow(g.array), enter_check, leave_tracking
    ),
    "memrt.debug.suppress_leaks": Case(lambda g: memrt.debug.suppress_leaks("nowhere", "nothing")),
    "memrt.debug.growth": Case(lambda g: memrt.debug.growth(memrt.alloc, 10, rounds=12)),
    "memrt.types.Trend": Case(lambda g: memrt.types.Trend("what", (1, 2), 1.0, 0.5)),
    "memrt.types.Trend.is_growing": Case(lambda g: TREND.is_growing),
    "memrt.types.Trend.__repr__": Case(lambda g: repr(TREND)),
    "memrt.types.Growth": Case(lambda g: memrt.types.Growth((TREND,), (), TREND)),
    "memrt.types.Growth.growing": Case(lambda g: GROWTH.growing),
    "memrt.types.Growth.to_dict": Case(lambda g: GROWTH.to_dict()),
    "memrt.types.Growth.__repr__": Case(lambda g: repr(GROWTH)),
    "memrt.OutOfMemoryError, pickled": Case(
        lambda g: g.left[0].__reduce__(), bring_shortage, clear_left
    ),
    "memrt.OutOfMemoryError": Case(lambda g: str(memrt.OutOfMemoryError("by hand"))),
    "_memrt.tracking_get": Case(lambda g: _memrt.tracking_get()),
    "_memrt.tracking_open": Case(
        lambda g: _memrt.tracking_close(_memrt.tracking_open((True, 1, 0, 0)))
    ),
    "_memrt.tracking_close": Case(lambda g: _memrt.tracking_close(0)),
    "_memrt.tracking_allocations": Case(lambda g: _memrt.tracking_allocations()),
    "_memrt.site_allocations": tracked(lambda g: _memrt.site_allocations()),
    "_memrt.site_frames": tracked(lambda g: _memrt.site_frames(1)),
    "_memrt.running_calls": Case(lambda g: _memrt.running_calls()),
    "_memrt.suppression_add": Case(lambda g: _memrt.suppression_add("nowhere", "nothing")),
    "_memrt.suppression_at": tracked(lambda g: _memrt.suppression_at(1)),
    "memrt.release_unused": Case(lambda g: memrt.release_unused()),
    "memrt.release_unused, everything": Case(lambda g: memrt.release_unused(everything=True)),
    "memrt.debug.options": Case(lambda g: memrt.debug.options()),
    # Thousands of Python's allocations, for each line of the memory map.
    "memrt.debug.process_memory": Case(lambda g: memrt.debug.process_memory(), faults=NOT_PYTHONS),
    "memrt.types.ProcessMemory": Case(
        lambda g: memrt.types.ProcessMemory(*range(6), *[MEMORY_PART] * 11)
    ),
    "memrt.types.ProcessMemory.parts": Case(lambda g: PROCESS_MEMORY.parts()),
    "memrt.types.ProcessMemory.to_dict": Case(lambda g: PROCESS_MEMORY.to_dict()),
    "memrt.types.ProcessMemory.__repr__": Case(lambda g: repr(PROCESS_MEMORY)),
    "memrt.types.MemoryPart": Case(lambda g: memrt.types.MemoryPart(1, 2)),
    "memrt.types.MemoryPart.to_dict": Case(lambda g: MEMORY_PART.to_dict()),
    "memrt.on_pressure": Case(lambda g: memrt.on_pressure(len).close(), faults=NOT_THREADS),
    "memrt.types.PressureCallback": Case(
        lambda g: memrt.types.PressureCallback(len, "critical").close(), faults=NOT_THREADS
    ),
    "memrt.types.PressureCallback.close": Case(lambda g: CLOSED_CALLBACK.close()),
    "memrt.types.PressureCallback.is_open": Case(lambda g: CLOSED_CALLBACK.is_open),
    "memrt.types.PressureCallback.__call__": Case(lambda g: CLOSED_CALLBACK("low")),
    "memrt.types.PressureCallback.__enter__": Case(lambda g: CLOSED_CALLBACK.__enter__()),
    "memrt.types.PressureCallback.__exit__": Case(lambda g: CLOSED_CALLBACK.__exit__()),
    "memrt.types.PressureCallback.__repr__": Case(lambda g: repr(CLOSED_CALLBACK)),
    "memrt.debug.pressure": Case(lambda g: memrt.debug.pressure()),
    "memrt.types.Pressure": Case(
        lambda g: memrt.types.Pressure("low", "headroom", 10, 8, 2, "of the process", False)
    ),
    "memrt.debug.memory_stats": Case(lambda g: memrt.debug.memory_stats()),
    "memrt.types.MemoryStats": Case(lambda g: memrt.types.MemoryStats(*range(14))),
    "memrt.types.MemoryStats.rounding": Case(lambda g: MEMORY_STATS.rounding),
    "memrt.types.MemoryStats.to_dict": Case(lambda g: MEMORY_STATS.to_dict()),
    "memrt.types.MemoryStats.__repr__": Case(lambda g: repr(MEMORY_STATS)),
    "memrt.debug.snapshot": Case(lambda g: memrt.debug.snapshot()),
    "memrt.types.Snapshot": Case(lambda g: memrt.types.Snapshot(memrt.stats(), {}, {}, [], 0, 0)),
    "memrt.types.Snapshot.__repr__": Case(
        lambda g: repr(memrt.types.Snapshot(memrt.stats(), {}, {}, [], 0, 0))
    ),
    "_memrt.snapshot": Case(lambda g: _memrt.snapshot()),
    "memrt.debug.latency": Case(lambda g: memrt.debug.latency()),
    "memrt.types.Latency": Case(lambda g: memrt.types.Latency(1, 600, {1024: 1})),
    "memrt.types.Latency.to_dict": Case(lambda g: LATENCY.to_dict()),
    "_memrt.latency": Case(lambda g: _memrt.latency()),
    "memrt.debug.reference_counts": Case(lambda g: memrt.debug.reference_counts(g.policy)),
    "memrt.types.ReferenceCounts": Case(lambda g: memrt.types.ReferenceCounts(2, 1)),
    "_memrt.reference_counts": Case(lambda g: _memrt.reference_counts(g.policy)),
    "_memrt.memory_stats": Case(lambda g: _memrt.memory_stats()),
    "_memrt.pressure_read": Case(lambda g: _memrt.pressure_read()),
    "_memrt.pressure_setup": Case(lambda g: _memrt.pressure_setup({})),
    "_memrt.pressure_add": Case(
        lambda g: _memrt.pressure_remove(31, _memrt.pressure_add(31, 3)), faults=NOT_THREADS
    ),
    "_memrt.pressure_remove": Case(lambda g: _memrt.pressure_remove(31, 0)),
    "_memrt.mappings": Case(lambda g: _memrt.mappings()),
    "_memrt.malloc_figures": Case(lambda g: _memrt.malloc_figures()),
    "_memrt.segments": Case(lambda g: _memrt.segments(), faults=NOT_PYTHONS),
    # --- Holders and retention. ---
    "memrt.holders": Case(lambda g: memrt.holders(g.array), hold, clear_left),
    "memrt.debug.retention": Case(lambda g: memrt.debug.retention(1, 0.0), hold, clear_left),
    "memrt.types.Holders": Case(
        lambda g: memrt.types.Holders(1, 1, None, "p", "block", 5, (), (), 1, 0, 0)
    ),
    "memrt.types.Holders.site": found(lambda g: g.found.site),
    "memrt.types.Holders.place": found(lambda g: g.found.place),
    "memrt.types.Holders.rows": found(lambda g: g.found.rows),
    "memrt.types.Holders.tree": found(lambda g: g.found.tree()),
    "memrt.types.Holders.to_dict": found(lambda g: g.found.to_dict(), NOT_PYTHONS),
    "memrt.types.Holders.__repr__": found(lambda g: repr(g.found)),
    "memrt.types.Holder": Case(lambda g: memrt.types.Holder("array", "a", 1, 1, (), (), 0, 0)),
    "memrt.types.Referrer": Case(
        lambda g: memrt.types.Referrer("local", "a", None, None, None, None, 1)
    ),
    "memrt.types.NamedReference": Case(
        lambda g: memrt.types.NamedReference("n", "export", 1, 2, 0.5)
    ),
    "memrt.types.Retained": found(lambda g: memrt.types.Retained(g.found, 10, 5, True, 1)),
    "memrt.types.Retained.site": found(lambda g: g.retention.buffers[0].site),
    "memrt.types.Retained.place": found(lambda g: g.retention.buffers[0].place),
    "memrt.types.Retained.wasted": found(lambda g: g.retention.buffers[0].wasted),
    "memrt.types.Retained.why": found(lambda g: g.retention.buffers[0].why),
    "memrt.types.Retained.__repr__": found(lambda g: repr(g.retention.buffers[0])),
    "memrt.types.Retention": Case(lambda g: memrt.types.Retention((), 0, 0)),
    "memrt.types.Retention.to_dict": found(lambda g: g.retention.to_dict(), NOT_PYTHONS),
    "memrt.types.Retention.__repr__": found(lambda g: repr(g.retention)),
    "_memrt.find_holders": Case(lambda g: _memrt.find_holders(g.array, 2, 0), hold, clear_left),
    "_memrt.find_holders, of a memoryview": Case(
        lambda g: _memrt.find_holders(memoryview(g.mi), 2, 0)
    ),
    "_memrt.find_holders, with a named reference": Case(
        lambda g: _memrt.find_holders(g.array, 2, 0), hold_as, release_as
    ),
    "_memrt.find_retention": Case(lambda g: _memrt.find_retention(1, 0.0, 10), hold, clear_left),
    "_memrt.find_retention, of overlapping views": Case(
        lambda g: _memrt.find_retention(1, 0.0, 10), hold_overlapping, clear_left
    ),
    "_memrt.survey, of six ways": Case(
        lambda g: _memrt.survey(g.addresses, 10, 0), hold_in_six_ways, clear_left
    ),
    "_memrt.frame_variables": Case(lambda g: _memrt.frame_variables(sys._getframe())),
    "_memrt.find_place": Case(lambda g: _memrt.find_place([1, g], g)),
    "_memrt.instance_dict": Case(lambda g: _memrt.instance_dict(g)),
    "memrt.types.Option": Case(lambda g: memrt.types.Option("n", "v", "h")),
    "memrt.get_cmake_dir": Case(lambda g: memrt.get_cmake_dir()),
    "memrt.get_include": Case(lambda g: memrt.get_include()),
    "memrt.get_library": Case(lambda g: memrt.get_library()),
    # --- MemInfo. ---
    "memrt.MemInfo.address": Case(lambda g: g.mi.address),
    "memrt.MemInfo.nbytes": Case(lambda g: g.mi.nbytes),
    "memrt.MemInfo.refcount": Case(lambda g: g.mi.refcount),
    "memrt.MemInfo.parent": Case(lambda g: g.wrapped.parent),
    "memrt.MemInfo.external_allocator": Case(lambda g: g.mi.external_allocator),
    "memrt.MemInfo.readonly": Case(lambda g: g.mi.readonly),
    "memrt.MemInfo.kind": Case(lambda g: g.mi.kind),
    "memrt.MemInfo.policy": Case(lambda g: g.mi.policy),
    "memrt.MemInfo.name": Case(lambda g: g.mi.name),
    "memrt.MemInfo.name, set": Case(set_name),
    "memrt.MemInfo.__memrt_meminfo__": Case(lambda g: g.mi.__memrt_meminfo__()),
    "memrt.MemInfo.__repr__": Case(lambda g: repr(g.mi)),
    "memrt.MemInfo.__hash__": Case(lambda g: hash(g.mi)),
    "memrt.MemInfo.__eq__": Case(lambda g: g.mi == g.wrapped),
    "memrt.MemInfo.__ne__": Case(lambda g: g.mi != g.wrapped),
    "memoryview of a MemInfo": Case(lambda g: memoryview(g.mi)),
    "memoryview of an array": Case(lambda g: memoryview(g.array)),
    "numpy.frombuffer of a MemInfo": Case(lambda g: over_again(g)),
    "numpy.from_dlpack of an array": Case(lambda g: np.from_dlpack(g.array)),
    "pickle of an array": Case(
        lambda g: pickle.loads(pickle.dumps(g.array, 5)), faults=NOT_PYTHONS
    ),
    # --- Fault injection. ---
    "memrt.testing.fail_allocations": Case(lambda g: fail_allocations(3), faults=NOT_MEMRTS),
    "memrt.testing.fail_allocations.__enter__": Case(
        lambda g: g.plan.__enter__(), new_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.testing.fail_allocations.__exit__": Case(
        lambda g: g.plan.__exit__(), enter_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.testing.fail_allocations.points": Case(
        lambda g: g.plan.points, enter_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.testing.fail_allocations.failed": Case(
        lambda g: g.plan.failed, enter_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.testing.fail_allocations.kind": Case(
        lambda g: g.plan.kind, enter_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.testing.fail_allocations.nbytes": Case(
        lambda g: g.plan.nbytes, enter_plan, leave_plan, NOT_MEMRTS
    ),
    # Fault injection itself is in use, and the function does not fail in each call.
    "memrt.testing.exhaust": Case(lambda g: exhaust(list, this_thread=True), faults=SYSTEM),
    "memrt.types.FailurePoint": Case(lambda g: memrt.types.FailurePoint(*POINT_FIELDS)),
    "memrt.types.FailurePoint.__repr__": Case(lambda g: repr(POINT)),
    "memrt.types.Exhaustion": Case(lambda g: memrt.types.Exhaustion("what", (POINT,), 0)),
    "memrt.types.Exhaustion.__repr__": Case(lambda g: repr(EXHAUSTED)),
    "memrt.types.Exhaustion.__str__": Case(lambda g: str(EXHAUSTED)),
    "memrt.testing.fail_allocations.__repr__": Case(
        lambda g: repr(g.plan), enter_plan, leave_plan, NOT_MEMRTS
    ),
    "memrt.types.FailurePoint.is_problem": Case(lambda g: POINT.is_problem),
    "memrt.types.Exhaustion.problems": Case(lambda g: EXHAUSTED.problems),
    "memrt.types.Exhaustion.summary": Case(lambda g: EXHAUSTED.summary),
    # --- Functions of the extension that the package calls and does not re-export. ---
    "_memrt.take_over": Case(
        lambda g: _memrt.take_over(g.left[0], None),
        lambda g: g.left.append(np.ones(10)),
        clear_left,
    ),
    "_memrt.set_handler": Case(
        lambda g: _memrt.set_handler(g.policy.handler),
        keep_handler,
        set_handler_back,
        sets_context=True,
    ),
    "_memrt.get_handler": Case(lambda g: _memrt.get_handler()),
    "_memrt.address": Case(lambda g: _memrt.address(g.array)),
    "_memrt.is_memrt_handler": Case(lambda g: _memrt.is_memrt_handler(g.policy.handler)),
    "_memrt.default_handler": Case(lambda g: _memrt.default_handler()),
    "_memrt.policy_new": Case(lambda g: _memrt.policy_new("p", 64, None, "5", None, False, None)),
    "_memrt.policy_option_set": Case(
        lambda g: _memrt.policy_option_set(LIMITED_POLICY.handler, "decay", "70")
    ),
    "_memrt.policy_reset": Case(lambda g: _memrt.policy_reset(EMPTY_POLICY.handler)),
    "_memrt.policy_info": Case(lambda g: _memrt.policy_info(g.policy.handler)),
    "_memrt.policies": Case(lambda g: _memrt.policies()),
    "_memrt.stats_read": Case(lambda g: _memrt.stats_read(g.policy)),
    "_memrt.stats_sizes": Case(lambda g: _memrt.stats_sizes(g.policy)),
    "_memrt.threads": Case(lambda g: _memrt.threads()),
    "_memrt.stats_reset_peak": Case(lambda g: _memrt.stats_reset_peak(g.policy)),
    "_memrt.in_scope": scoped(lambda g: _memrt.in_scope(g.policy.handler)),
    "_memrt.set_scope_entries": scoped(
        lambda g: _memrt.set_scope_entries(_memrt.scope_variable.get())
    ),
    "_memrt.scope_open": scoped(lambda g: _memrt.scope_open(g.inside._capsule, "inside")),
    "_memrt.scopes": scoped(lambda g: _memrt.scopes()),
    "_memrt.scope_info": scoped(lambda g: _memrt.scope_info(g.inside._capsule)),
    "_memrt.scope_stats": scoped(lambda g: _memrt.scope_stats(g.inside._capsule)),
    "_memrt.scope_sizes": scoped(lambda g: _memrt.scope_sizes(g.inside._capsule)),
    "_memrt.scope_reset_peak": scoped(lambda g: _memrt.scope_reset_peak(g.inside._capsule)),
    "_memrt.TaskAccount": Case(lambda g: _memrt.TaskAccount()),
    "_memrt.TaskAccount, around": Case(lambda g: _memrt.TaskAccount(g.account), new_account),
    "_memrt.TaskAccount.read": Case(lambda g: g.account.read(), new_account),
    "_memrt.run_task": Case(run_task, enter_scope_and_account, leave_scopes, sets_context=True),
    "_memrt.live": Case(lambda g: _memrt.live(dict), enter_tracking, leave_tracking),
    "_memrt.set_tracking": Case(lambda g: _memrt.set_tracking(_memrt.tracking_enabled())),
    "_memrt.tracking_enabled": Case(lambda g: _memrt.tracking_enabled()),
    "_memrt.fail_allocations": Case(
        lambda g: _memrt.fail_allocations(0, 0, True, 0, 0, 0, None, None),
        after=lambda g: _memrt.stop_failing(),
        faults=NOT_MEMRTS,
    ),
    "_memrt.stop_failing": Case(lambda g: _memrt.stop_failing(), faults=NOT_MEMRTS),
    "_memrt.failure_read": Case(lambda g: _memrt.failure_read(), faults=NOT_MEMRTS),
    "_memrt.one_object": Case(lambda g: _memrt.one_object({}, 1, g.policy)),
    "_memrt.exact_peak_open": Case(lambda g: _memrt.exact_peak_open(), after=leave_exact),
    "_memrt.exact_peak_close": Case(lambda g: _memrt.exact_peak_close(), enter_exact, leave_exact),
    "_memrt.call_after": Case(lambda g: _memrt.call_after(abs, float, 2)),
    "_memrt.call_outermost": Case(lambda g: _memrt.call_outermost(abs, -2)),
    "_memrt.call_at_exit": Case(  # reports failures as unraisable exceptions
        lambda g: _memrt.call_at_exit(list, "case"), faults=NOT_PYTHONS
    ),
    # CPython crashes if its tokenizer has no memory for a file.
    "_memrt.run_file": Case(run_empty_file, faults=NOT_PYTHONS),
    "_memrt.run_code": Case(lambda g: _memrt.run_code(CODE, {})),
    "_memrt.graph_steps": Case(lambda g: _memrt.graph_steps()),
    "_memrt.find_places": Case(lambda g: _memrt.find_places([g.array], [g.array])),
    "_memrt.survey": Case(lambda g: _memrt.survey([g.mi.address], 10, 1)),
    "_memrt.owners": Case(lambda g: _memrt.owners()),
    "_memrt.options": Case(lambda g: _memrt.options()),
    "_memrt.set_option": Case(lambda g: _memrt.set_option("cache_limit", "none")),
    "_memrt.take_option_warnings": Case(lambda g: _memrt.take_option_warnings()),
    "_memrt.library_path": Case(lambda g: _memrt.library_path()),
    "_memrt.features": Case(lambda g: _memrt.features()),
    # --- memrt/import.h and memrt/numpy.h. ---
    "memrt_import": Case(
        lambda g: probe.import_again(),
        errors=(MemoryError, ImportError),  # like PyCapsule_Import
    ),
    "memrt_tracemalloc_register": traced(lambda g: probe.register_in_tracemalloc(g.wrapped)),
    "memrt_meminfo_as_capsule, traced": traced(lambda g: probe.make_capsule(10)),
    "memrt_meminfo_as_capsule": Case(lambda g: probe.make_capsule(10)),
    "memrt_meminfo_as_array": Case(lambda g: probe.to_array(g.mi, (10,), "f8", None, 0, 0)),
    "memrt_meminfo_as_array, of a new one": Case(lambda g: probe.make_array(100)),
    "memrt_array_meminfo": Case(lambda g: probe.address(g.block[3:]), counts_as_meminfo),
    "memrt_capsule_meminfo": Case(lambda g: probe.address(g.mi.__memrt_meminfo__())),
    "memrt_object_anchor": Case(lambda g: probe.address(memoryview(g.array)[8:])),
    "memrt_exporter_check": Case(lambda g: probe.address(g.mi)),
    "memrt_handler_check": Case(lambda g: probe.address(g.block), counts_as_meminfo),
    "memrt_descr_has_references": Case(lambda g: probe.to_array(g.mi, (), "i4", None, 0, 0)),
    "memrt_layout_fits": Case(lambda g: probe.to_array(g.mi, (2, 2), "f4", (8, 4), 8, 0)),
    # --- Allocations by NumPy, with a policy in force. ---
    "numpy.empty": in_force(lambda g: np.empty(10)),
    "numpy.zeros": in_force(lambda g: np.zeros((3, 4))),
    "numpy.zeros, large": in_force(lambda g: np.zeros(LARGE, "u1")),
    "numpy.ones": in_force(lambda g: np.ones(1000)),
    "numpy.full, of objects": in_force(lambda g: np.full(3, None)),
    "numpy.add": in_force(lambda g: g.foreign + 1),
    "numpy.sum, in parts": in_force(lambda g: np.ones((4, 4)).sum(axis=0)),
    "numpy.sort": in_force(lambda g: np.sort(g.foreign[::2])),
    "numpy.concatenate": in_force(lambda g: np.concatenate([g.foreign, g.block])),
    "numpy.resize": in_force(lambda g: np.resize(g.foreign, 1000)),
    "numpy.fromiter": in_force(lambda g: np.fromiter(range(100), int)),
    "numpy.fromstring": in_force(lambda g: np.fromstring("1 2 3 4 5 6 7 8 9", sep=" ")),
    "numpy.loadtxt": in_force(lambda g: np.loadtxt(io.StringIO("1 2\n3 4\n"))),
    "numpy.load": in_force(lambda g: pickle.loads(pickle.dumps(g.foreign[:3], 4))),
    "numpy.ndarray.copy": in_force(lambda g: g.foreign.copy("F")),
    "numpy.ndarray.astype": in_force(lambda g: g.foreign.astype("f4")),
    "numpy.ndarray.resize, larger": Case(lambda g: resize(g.block, 10_000), after=resize_back),
    "numpy.ndarray.resize, large": Case(lambda g: resize(g.large, LARGE)),
    "numpy.ndarray.resize, smaller": Case(lambda g: resize(g.block, 3), after=resize_back),
    "numpy.ndarray.resize, while shared": Case(resize_shared, shared_before, clear_left),
    "numpy.ndarray.__del__, of a large block": Case(
        lambda g: g.left.clear(),
        lambda g: g.left or g.left.append(memrt.empty(LARGE, "u1")),
        clear_left,
    ),
}


def called(name: str) -> str:
    """Return the name of the function that a case calls."""
    return name.partition(",")[0]


SPECIAL = ("__enter__", "__exit__", "__repr__", "__hash__", "__eq__", "__ne__", "__sub__")
PROTOCOLS = ("__array_", "__arrow_c_")
MADE = (property, types.GetSetDescriptorType)


def members(path: str, kind: type) -> set[str]:
    """Return the names of the cases that a class needs: constructor and own public members.

    MemInfo needs no constructor case, because only functions make a MemInfo.
    """
    names = {path} if kind is not memrt.MemInfo else set()
    for name, value in vars(kind).items():
        is_public = not name.startswith("_") or name in SPECIAL or "memrt" in name
        is_public = is_public or name.startswith(PROTOCOLS)
        if is_public and (callable(value) or isinstance(value, MADE)) and not is_generated(value):
            names.add(f"{path}.{name}")
    return names


def is_generated(member: object) -> bool:
    """Return True for methods of dataclasses and named tuples: the code lies outside of memrt."""
    function = inspect.unwrap(member.fget if isinstance(member, property) else member)
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_filename.startswith(str(PACKAGE))


def names_in(path: str, module: types.ModuleType, names: list[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            found |= members(f"{path}.{name}", value)
        elif callable(value):
            found.add(f"{path}.{name}")
    return found


def header_functions() -> set[str]:
    """Return the names of the public functions in the headers for extension modules."""
    folder = Path(memrt.get_include()) / "memrt"
    text = "".join((folder / name).read_text() for name in ("import.h", "capsule.h", "numpy.h"))
    return set(re.findall(r"^static inline [\w *]+?\b(memrt_[a-z]\w*)\(", text, re.MULTILINE))


def public_names() -> set[str]:
    """Return all names that must have a case."""
    passed_on = {
        name
        for module in (memrt, memrt.types, memrt.debug)
        for name in module.__all__
        if hasattr(_memrt, name)
    }
    own = [n for n in dir(_memrt) if not n.startswith("_") and n not in passed_on]
    # The package has different functions by these names.
    own += ["live", "options", "policies", "scopes", "set_option"]
    modules = (
        *(memrt, memrt.types, memrt.debug, memrt.telemetry, memrt.testing, memrt.cuda),
        adaptors,
    )
    public = [names_in(each.__name__, each, each.__all__) for each in modules]
    return set().union(*public) | names_in("_memrt", _memrt, own) | header_functions()


def missing() -> set[str]:
    """Return the public names without a case."""
    return public_names() - {called(name) for name in CASES}
