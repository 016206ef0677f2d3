"""Allocators that users bring to a policy: Python callables, C functions, tables and libraries."""

import contextlib
import ctypes
import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
import weakref
from types import SimpleNamespace

import memrt
import numpy as np
import pytest
from gil import CAN_LACK_GIL
from memrt import _memrt

PAGE = mmap.PAGESIZE


def aligned_buffer(nbytes, alignment):
    """Return a writable buffer; mmap aligns to pages."""
    return mmap.mmap(-1, nbytes)


class Arena:
    """Allocator object: page-aligned buffers by address, with a record of all calls."""

    def __init__(self):
        self.live = {}
        self.calls = []

    def allocate(self, nbytes, alignment):
        buffer = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        self.live[address] = (buffer, nbytes)
        self.calls.append((nbytes, alignment))
        return address

    def free(self, address, nbytes):
        assert self.live.pop(address)[1] == nbytes


class Plain:
    """ctypes: functions of NumPy's handler of a policy, called without the GIL."""

    _fields = ("ctx", "malloc", "calloc", "realloc", "free")

    def __init__(self, policy):
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        words = (ctypes.c_void_p * 5).from_address(pointer(policy.handler, b"mem_handler") + 128)
        ctx, malloc, _, _, free = words
        size, void = ctypes.c_size_t, ctypes.c_void_p
        self.policy = policy
        self.alloc = lambda n: ctypes.CFUNCTYPE(void, void, size)(malloc)(ctx, n)
        self.free = lambda p, n: ctypes.CFUNCTYPE(None, void, void, size)(free)(ctx, p, n)


@pytest.fixture
def unraisable(monkeypatch):
    """Return the list of exceptions that reach sys.unraisablehook."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(type(u.exc_value)))
    return seen


def test_callable_gives_buffers_which_live_as_long_as_blocks():
    made = []

    class Buffer(bytearray):
        pass

    def allocate(nbytes, alignment):
        buffer = Buffer(nbytes + alignment)
        made.append(weakref.ref(buffer))
        start = -ctypes.addressof(ctypes.c_char.from_buffer(buffer)) % alignment
        return memoryview(buffer)[start : start + nbytes]

    with memrt.Policy(allocator=allocate):
        array = np.arange(1000.0)
    assert memrt.is_managed(array)
    assert array.sum() == 499500
    gc.collect()
    assert [buffer() is not None for buffer in made].count(True) == 1
    del array
    assert all(buffer() is None for buffer in made)


def test_object_gives_addresses_and_gets_them_back():
    arena = Arena()
    with memrt.Policy(4096, allocator=arena) as policy:
        array = np.zeros(100)
        made = memrt.empty(50)
    assert {alignment for _, alignment in arena.calls} == {4096}
    assert all(array.ctypes.data > address for address in list(arena.live)[:1])
    assert policy.stats().live == 1200
    assert len(arena.live) == 2
    del array, made
    assert arena.live == {}


def test_pair_of_callables_is_an_allocator():
    arena = Arena()
    with memrt.Policy(allocator=(arena.allocate, arena.free)):
        np.ones(10)
    assert arena.calls
    assert not arena.live


def test_resize_and_zeroed_allocation_keep_contents():
    arena = Arena()
    with memrt.Policy(allocator=arena):
        array = np.arange(100)
        array.resize(10000, refcheck=False)
        zeros = np.zeros(5000)
    assert list(array[:100]) == list(range(100))
    assert not array[100:].any()
    assert not zeros.any()
    del array, zeros
    assert not arena.live


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda n: None, "must be a buffer or an address, got NoneType: raise MemoryError"),
        (lambda n: "text", "must be a buffer or an address, got str"),
        (lambda n: 0, "must be the address of 152 bytes, got 0"),
        (lambda n: -5, "must be the address of 152 bytes, got -5"),
        (lambda n: 2**64 - 64, "must be the address of 152 bytes"),
        (lambda n: np.uint64(4097), "must be aligned to 64 bytes, got address 0x1001"),
        (lambda n: bytearray(n - 1), "must be a buffer of at least 152 bytes, got 151 bytes"),
        (lambda n: np.empty(n, "u1").data.toreadonly(), "must be a writable buffer"),
        (lambda n: np.empty((n, 2), "u1")[:, 0], "must be a contiguous buffer"),
    ],
)
def test_wrong_result_refuses_the_allocation(result, message, unraisable):
    freed = []
    policy = memrt.Policy(
        allocator=(lambda nbytes, _: result(nbytes), lambda *where: freed.append(where))
    )
    with policy, pytest.raises(memrt.OutOfMemoryError) as caught:
        memrt.empty(10)
    assert message in str(caught.value.__cause__)
    assert policy.stats().live == 0
    assert set(unraisable) == {type(caught.value.__cause__)}
    assert set(freed) == ({(4097, 152)} if "aligned" in message else set())


def test_address_without_free_function_is_refused(unraisable):
    with memrt.Policy(allocator=lambda *_: 4096), pytest.raises(MemoryError) as caught:
        memrt.empty(10)
    assert "pass a free function for addresses" in str(caught.value.__cause__)


def test_exception_is_the_cause_of_memrts_error_and_reported(unraisable):
    error = LookupError("no room")

    def allocate(nbytes, alignment):
        raise error

    with memrt.Policy(allocator=allocate), pytest.raises(memrt.OutOfMemoryError) as caught:
        memrt.empty(10)
    assert caught.value.__cause__ is error
    with memrt.Policy(allocator=allocate), pytest.raises(MemoryError) as of_numpy:
        np.empty(10)
    assert of_numpy.value.__cause__ is None  # NumPy's error has no room for a cause
    assert len(unraisable) >= 2
    assert set(unraisable) == {LookupError}


def test_memory_error_is_a_refusal_without_report(unraisable):
    def allocate(nbytes, alignment):
        raise MemoryError("full")

    with memrt.Policy(allocator=allocate) as policy:
        with pytest.raises(MemoryError) as caught:
            memrt.empty(10)
        with pytest.raises(MemoryError):
            np.empty(10)
    assert str(caught.value.__cause__) == "full"
    assert unraisable == []
    assert policy.stats().failed == 2


def test_cause_is_forgotten_soon_after_numpys_error():
    alive = []

    class FullError(MemoryError):
        def __init__(self):
            alive.append(weakref.ref(self))

    def allocate(nbytes, alignment):
        raise FullError

    with memrt.Policy(allocator=allocate), pytest.raises(MemoryError):
        np.empty(10)
    for _ in range(10**6):  # the interpreter runs pending calls between bytecodes
        if all(failure() is None for failure in alive):
            break
    assert alive
    assert all(failure() is None for failure in alive)
    with pytest.raises(memrt.OutOfMemoryError) as caught:
        memrt.alloc(2**60)
    assert caught.value.__cause__ is None


def test_exception_of_free_is_unraisable(unraisable):
    arena = Arena()

    def free(address, nbytes):
        arena.free(address, nbytes)
        raise ValueError

    with memrt.Policy(allocator=(arena.allocate, free)):
        array = np.ones(10)
    del array
    assert unraisable
    assert set(unraisable) == {ValueError}


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise KeyboardInterrupt. A process in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_inside_allocate_arrives_after_the_allocation(unraisable, ctrl_c):
    def allocate(nbytes, alignment):
        raise KeyboardInterrupt

    def allocate_and_go_on():
        try:
            np.empty(10)
        finally:
            for _ in range(1000):  # the interpreter handles signals between bytecodes
                pass

    with memrt.Policy(allocator=allocate), pytest.raises(KeyboardInterrupt):
        allocate_and_go_on()
    assert unraisable == []


def test_arrays_made_inside_allocate_use_default_allocator():
    arena, kept = Arena(), []

    def allocate(nbytes, alignment):
        kept.append(np.full(3, len(kept)))  # from the same policy
        return arena.allocate(nbytes, alignment)

    with memrt.Policy(allocator=(allocate, arena.free)) as policy:
        array = np.ones(1000)
    inner = [memrt.handler_name(each) for each in kept]
    assert set(inner) == {memrt.handler_name(array)}
    assert len(kept) == len(arena.calls)
    assert policy.stats().live == 8000 + 24 * len(kept)
    del array
    kept.clear()
    assert not arena.live


def test_own_array_of_allocate_may_lie_in_used_memory():
    arena = Arena()

    def allocate(nbytes, alignment):
        for size in (1016, 1000):  # the second array and its last word lie in the first array
            np.full(size, 255, "u1")
        return arena.allocate(nbytes, alignment)

    with memrt.Policy(allocator=(allocate, arena.free)) as policy:
        array = np.ones(1000)
    assert policy.stats().live == 8000
    del array
    assert not arena.live


def test_free_may_drop_further_blocks_of_the_policy():
    arena, kept = Arena(), {}

    def free(address, nbytes):
        kept.clear()
        arena.free(address, nbytes)

    with memrt.Policy(allocator=(arena.allocate, free)):
        first, kept["second"] = np.ones(10), np.ones(20)
    del first
    assert not arena.live


def test_allocation_without_gil_waits_for_the_gil():
    arena = Arena()
    plain = Plain(memrt.Policy(allocator=arena))
    blocks = [plain.alloc(100) for _ in range(10)]
    assert None not in blocks
    assert len(arena.live) == 10
    before = _memrt.owners()
    for block in blocks:
        plain.free(block, 100)
    after = _memrt.owners()
    assert after["queued"] - before["queued"] == 10 == after["run"] - before["run"]
    assert not arena.live


def test_allocator_in_a_thread_of_c_sees_queued_frees_first():
    """The next allocation runs the queue, also while the main thread runs no Python code."""
    arena, live = Arena(), []

    def allocate(nbytes, alignment):
        live.append(len(arena.live))
        return arena.allocate(nbytes, alignment)

    plain = Plain(memrt.Policy(allocator=(allocate, arena.free)))

    def work():
        for _ in range(20):
            plain.free(plain.alloc(1000), 1000)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    _memrt.owners()
    assert len(live) == 20
    assert max(live) <= 1
    assert not arena.live


def test_threads_share_an_allocator():
    arena = Arena()
    policy = memrt.Policy(allocator=arena)

    def work(seed):
        with policy:
            kept = [np.full(100 + i, seed) for i in range(50)]
        assert all((each == seed).all() for each in kept)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(arena.calls) >= 200
    assert not arena.live


def test_allocator_lives_until_the_last_block():
    class Allocator(Arena):
        pass

    arena = Allocator()
    alive = weakref.ref(arena)
    policy = memrt.Policy(allocator=arena)
    with policy:
        array = np.ones(10)
    del policy, arena
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


def test_allocator_dies_with_a_policy_that_cannot_be_created():
    arena = Arena()
    alive = weakref.ref(arena)
    with pytest.raises(ValueError, match="alignment"):
        memrt.Policy(3, allocator=arena)
    with pytest.raises(ValueError, match="must be None for a policy with an allocator"):
        memrt.Policy(allocator=arena, decay=5)
    with pytest.raises(ValueError, match="must be None for a pinned policy"):
        memrt.Policy(allocator=arena, pinned=True)
    del arena
    assert alive() is None


def test_forked_child_uses_and_frees_inherited_blocks():
    arena = Arena()
    with memrt.Policy(allocator=arena):
        array = np.arange(100)
        child = os.fork()
        if child == 0:
            fresh = array + 1
            good = fresh.sum() == 5050
            del array, fresh
            os._exit(0 if good and not arena.live else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert array.sum() == 4950


FINALIZATION = """
import atexit, mmap, ctypes, sys
import memrt, numpy as np

class Arena:
    live = {}
    def allocate(self, nbytes, alignment):
        buffer = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        self.live[address] = buffer
        return address
    def free(self, address, nbytes):
        self.live.pop(address)
        print("freed")

class Late:
    policy = memrt.Policy(allocator=Arena())
    def __del__(self, np=np):
        try:
            with self.policy:
                np.ones(100)
        except MemoryError:
            print("refused", flush=True)

with memrt.Policy(allocator=Arena()):
    array = np.zeros(1000)
    cycle = [np.zeros(2000)]
    cycle.append(cycle)
    early = np.zeros(10)

@atexit.register
def free_early():
    global early
    del early
    print("at exit")

sys.modules["late"] = Late()
"""


def test_finalization_leaks_frees_and_refuses_allocations(run_python):
    no_report = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"  # the leak is on purpose
    result = run_python(FINALIZATION, env={"ASAN_OPTIONS": no_report})
    assert result.returncode == 0
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":  # older ones print that an import failed
        assert result.stderr == ""
    assert result.stdout.split("\n") == ["freed", "at exit", "refused", ""]


SUBINTERPRETER = """
import ctypes, mmap, sys
import memrt
try:
    from _xxsubinterpreters import create, destroy, run_string
    interpreter = create(isolated=False)  # an isolated one does not load ctypes in Python 3.12
except ImportError:
    from _interpreters import create, destroy, run_string
    interpreter = create()
calls = []
def allocate(nbytes, alignment):
    calls.append(nbytes)
    return mmap.mmap(-1, nbytes)
policy = memrt.Policy(allocator=allocate)
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
ctx, malloc, _, _, free = (ctypes.c_void_p * 5).from_address(
    pointer(policy.handler, b"mem_handler") + 128)
code = f'''
import ctypes
void, size = ctypes.c_void_p, ctypes.c_size_t
for kind in ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE:  # without and with the GIL
    assert kind(void, void, size)({malloc})({ctx}, 100) is None
'''
run_string(interpreter, code)
destroy(interpreter)
assert calls == []
void, size = ctypes.c_void_p, ctypes.c_size_t
block = ctypes.CFUNCTYPE(void, void, size)(malloc)(ctx, 100)
assert block and len(calls) == 1
ctypes.CFUNCTYPE(None, void, void, size)(free)(ctx, block, 100)
print("refused in the subinterpreter")
"""


def test_allocation_in_a_subinterpreter_is_refused(run_python):
    result = run_python(SUBINTERPRETER)
    assert result.stdout == "refused in the subinterpreter\n", result.stderr


# --- Allocators in C. ---

ARENA = """
#include <stdlib.h>
#include <memrt/allocator.h>

static long calls[4];
long count(int which) { return calls[which]; }

void *arena_alloc(void *ctx, size_t size, size_t align)
{
    void *ptr = NULL;
    (void)ctx;
    if (size > PTRDIFF_MAX || posix_memalign(&ptr, align < 8 ? 8 : align, size) != 0) {
        return NULL;
    }
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
    return ptr;
}

void arena_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size, (void)align;
    __atomic_fetch_add(&calls[1], 1, __ATOMIC_RELAXED);
    free(ptr);
}

static void *arena_zeroed(void *ctx, size_t size, size_t align)
{
    char *ptr = arena_alloc(ctx, size, align);
    for (size_t i = 0; ptr != NULL && i < size; i++) {
        ptr[i] = 0;
    }
    return ptr;
}

static void *arena_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    char *moved = arena_alloc(ctx, new_size, align);
    for (size_t i = 0; moved != NULL && i < old_size && i < new_size; i++) {
        moved[i] = ((char *)ptr)[i];
    }
    if (moved != NULL) {
        arena_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static size_t arena_release(void *ctx) { (void)ctx; return 4096; }
static void arena_usage(void *ctx, memrt_allocator_usage_t *out) { (void)ctx; out->cached = 4096; }
static void arena_destroy(void *ctx) { (void)ctx; calls[2]++; }

const memrt_allocator_t memrt_allocator = {
    .struct_size = sizeof(memrt_allocator_t), .version = MEMRT_ALLOCATOR_VERSION, .name = "arena",
    .alloc = arena_alloc, .free = arena_free,
};
const memrt_allocator_t full = {
    .struct_size = sizeof(memrt_allocator_t), .version = MEMRT_ALLOCATOR_VERSION, .name = "full",
    .alloc = arena_alloc, .alloc_zeroed = arena_zeroed, .realloc = arena_realloc,
    .free = arena_free, .release_unused = arena_release, .usage = arena_usage,
    .destroy = arena_destroy,
};
static int arena_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx, (void)ptr, (void)old_size, (void)align;
    __atomic_fetch_add(&calls[3], 1, __ATOMIC_RELAXED);
    return new_size <= 5000;
}
static size_t arena_usable(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)ptr, (void)align;
    return size + 3;
}
static size_t arena_good(void *ctx, size_t size, size_t align)
{
    (void)ctx, (void)align;
    return size + 7;
}
static void *arena_alloc_5000(void *ctx, size_t size, size_t align)
{
    return arena_alloc(ctx, size < 5000 ? 5000 : size, align);
}
const memrt_allocator_t growing = {
    .struct_size = sizeof(memrt_allocator_t), .version = MEMRT_ALLOCATOR_VERSION,
    .name = "growing", .alloc = arena_alloc_5000, .free = arena_free,
    .try_expand = arena_expand, .usable_size = arena_usable, .good_size = arena_good,
};
const memrt_allocator_t old = {.struct_size = sizeof(memrt_allocator_t), .version = 7};
const memrt_allocator_t cut = {.struct_size = 8, .version = MEMRT_ALLOCATOR_VERSION};
const memrt_allocator_t no_alloc = {
    .struct_size = sizeof(memrt_allocator_t), .version = MEMRT_ALLOCATOR_VERSION,
};
const memrt_allocator_t no_free = {
    .struct_size = sizeof(memrt_allocator_t), .version = MEMRT_ALLOCATOR_VERSION,
    .alloc = arena_alloc,
};
"""


@pytest.fixture(scope="module")
def arena_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arena")
    source, library = folder / "arena.c", folder / "arena.so"
    source.write_text(ARENA)
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{memrt.get_include()}", str(source)]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


@pytest.fixture
def arena_library(arena_path):
    library = ctypes.CDLL(str(arena_path))
    library.count.restype = ctypes.c_long
    return library


def new_capsule(address, name=b"memrt.allocator"):
    create = ctypes.pythonapi.PyCapsule_New
    create.restype = ctypes.py_object
    create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return create(address, name, None)


def table_address(library, name="memrt_allocator"):
    return ctypes.addressof(ctypes.c_char.in_dll(library, name))


def new_ffi():
    if CAN_LACK_GIL and sys.version_info < (3, 14):
        pytest.skip("cffi needs a GIL before Python 3.14")
    return pytest.importorskip("cffi").FFI()


def of_cffi(library):
    ffi = new_ffi()
    alloc, free = (
        ctypes.cast(function, ctypes.c_void_p).value
        for function in (library.arena_alloc, library.arena_free)
    )
    return (
        ffi.cast("void *(*)(void *, size_t, size_t)", alloc),
        ffi.cast("void (*)(void *, void *, size_t, size_t)", free),
    )


def of_numba(library):
    """Return objects with the attributes of Numba's CFunc that memrt reads."""
    return tuple(
        SimpleNamespace(
            address=ctypes.cast(function, ctypes.c_void_p).value,
            native_name="cfunc",
            _sig=SimpleNamespace(args=(0,) * count),
        )
        for function, count in ((library.arena_alloc, 3), (library.arena_free, 4))
    )


FORMS = {
    "text": lambda lib: lib._name,
    "text with symbol": lambda lib: f"{lib._name}:full",
    "capsule": lambda lib: new_capsule(table_address(lib)),
    "method": lambda lib: SimpleNamespace(
        __memrt_allocator__=lambda: new_capsule(table_address(lib))
    ),
    "ctypes functions": lambda lib: (lib.arena_alloc, lib.arena_free),
    "ctypes pointer": lambda lib: ctypes.pointer(ctypes.c_char.in_dll(lib, "memrt_allocator")),
    "cffi functions": of_cffi,
    "cffi pointer": lambda lib: new_ffi().cast("void *", table_address(lib)),
    "Numba functions": of_numba,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_c_allocators_serves_a_policy(form, arena_library):
    before = [arena_library.count(i) for i in range(2)]
    with memrt.Policy(allocator=FORMS[form](arena_library)) as policy:
        array = np.zeros(1000)
        array.resize(5000, refcheck=False)
        assert policy.stats().live == 40000
        assert not array.any()
    assert arena_library.count(0) > before[0]
    del array
    change = [arena_library.count(i) - before[i] for i in range(2)]
    assert change[0] == change[1] > 0


@pytest.mark.parametrize("tracked", [False, True])
def test_array_grows_in_place_where_the_table_allows(tracked, arena_library):
    tracking = memrt.debug.tracking() if tracked else contextlib.nullcontext()
    with tracking, memrt.Policy(allocator=f"{arena_library._name}:growing") as policy:
        array = np.ones(1000, np.uint8)
        address, allocations = array.ctypes.data, arena_library.count(0)
        array.resize(4000, refcheck=False)
        assert array.ctypes.data == address
        assert arena_library.count(0) == allocations
        assert arena_library.count(3) > 0
        assert policy.stats().live == 4000
        array.resize(6000, refcheck=False)
        assert arena_library.count(0) == allocations + 1
    assert array[:1000].all()
    assert not array[1000:].any()


def test_capsule_passes_sizes_of_growth_to_the_table(arena_library):
    table = table_address(arena_library, "growing")
    capsule = _memrt.allocator_of_table(table, arena_library)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    words = (ctypes.c_size_t * 14).from_address(pointer(capsule, b"memrt.allocator"))
    size, void = ctypes.c_size_t, ctypes.c_void_p
    usable = ctypes.CFUNCTYPE(size, void, void, size, size)(words[12])
    good = ctypes.CFUNCTYPE(size, void, size, size)(words[13])
    assert usable(words[3], 4096, 100, 64) == 103
    assert good(words[3], 100, 64) == 107


def test_table_is_destroyed_once_after_its_last_block(arena_library):
    destroyed = arena_library.count(2)
    policy = memrt.Policy(allocator=f"{arena_library._name}:full")
    with policy:
        array = np.ones(10)
    assert policy.stats().cached == 4096
    del policy
    assert arena_library.count(2) == destroyed
    del array
    assert arena_library.count(2) == destroyed + 1


def test_policy_holds_the_objects_of_a_c_allocator(arena_library):
    class Provider:
        def __init__(self):
            table = bytes((ctypes.c_char * 112).in_dll(arena_library, "memrt_allocator").raw)
            self.table = ctypes.create_string_buffer(table)

    provider = Provider()
    alive = weakref.ref(provider)
    functions = tuple(of_numba(arena_library))
    functions[0].provider = provider
    with memrt.Policy(allocator=functions):
        array = np.ones(10)
    del provider, functions
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("missing", "must be exported by the library, got 'missing'"),
        ("old", "version of the allocator must be 1, got 7"),
        ("cut", "struct_size of the allocator must be at least 32 bytes, got 8"),
        ("no_alloc", "alloc of the allocator must be a function, got NULL"),
        ("no_free", "free of the allocator must be a function, got NULL"),
    ],
)
def test_bad_table_is_refused(symbol, message, arena_library):
    with pytest.raises(ValueError, match=message):
        memrt.Policy(allocator=f"{arena_library._name}:{symbol}")


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def python_behind_c(ctx, size, align):
    return None


def cffi_callback(library):
    ffi = new_ffi()
    _alloc, free = of_cffi(library)
    return ffi.callback("void *(void *, size_t, size_t)", lambda *_: ffi.NULL), free


def with_arguments(function, count):
    function = ctypes.cast(function, ctypes.CFUNCTYPE(ctypes.c_void_p))
    function.argtypes = [ctypes.c_void_p] * count
    return function


def test_functions_with_known_arguments_are_taken(arena_library):
    functions = arena_library.arena_alloc, arena_library.arena_free
    pair = tuple(map(with_arguments, functions, (3, 4)))
    assert memrt.Policy(name="known arguments", allocator=pair).name == "known arguments"


BAD_FORMS = {
    "number": (TypeError, "got int", lambda lib: 4096),
    "one function": (TypeError, "pair .* got one function", lambda lib: lib.arena_alloc),
    "three functions": (TypeError, "got 3 items", lambda lib: (1, 2, 3)),
    "mixed pair": (TypeError, "got one of each", lambda lib: (lib.arena_alloc, print)),
    "no callable": (TypeError, "free must be callable, got int", lambda lib: (print, 3)),
    "no allocate": (TypeError, "allocate must be callable, got None", lambda lib: (None, print)),
    "python in ctypes": (
        TypeError,
        "must be C code",
        lambda lib: (python_behind_c, lib.arena_free),
    ),
    "python in cffi": (TypeError, "must be C code", cffi_callback),
    "arguments": (
        TypeError,
        r"alloc must take 3 arguments \(ctx, size, align\), got 2",
        lambda lib: (with_arguments(lib.arena_alloc, 2), lib.arena_free),
    ),
    "name": (ValueError, "must be 'memrt.allocator', got 'x'", lambda lib: new_capsule(8, b"x")),
    "no name": (ValueError, "got 'NULL'", lambda lib: new_capsule(8, None)),
    "no capsule": (
        ValueError,
        "got 'NULL'",
        lambda lib: SimpleNamespace(__memrt_allocator__=lambda: 5),
    ),
    "null pointer": (
        ValueError,
        "got NULL",
        lambda lib: ctypes.POINTER(ctypes.c_char)(),
    ),
    "no library": (OSError, "no_such", lambda lib: "./no_such_library.so:x"),
}


@pytest.mark.parametrize("form", BAD_FORMS)
def test_bad_form_is_refused(form, arena_library):
    kind, message, make = BAD_FORMS[form]
    with pytest.raises(kind, match=message):
        memrt.Policy(allocator=make(arena_library))


def test_own_capsule_serves_a_single_policy():
    capsule = _memrt.allocator_of_callables(aligned_buffer, None)
    assert _memrt.allocator_of_capsule(capsule) is capsule
    policy = memrt.Policy(allocator=capsule)
    with pytest.raises(ValueError, match="create an allocator for each policy"):
        memrt.Policy(allocator=capsule)
    with pytest.raises(TypeError, match="must be a capsule"):
        _memrt.policy_new("p", 64, None, None, None, False, 5)
    del policy


# --- check-allocator. ---

MODULE = """
import mmap

class Arena:
    def __init__(self):
        self.live = {}
    def allocate(self, nbytes, alignment):
        if nbytes > 2**40:
            raise MemoryError
        buffer = mmap.mmap(-1, nbytes + alignment, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return aligned(buffer, nbytes, alignment)

def aligned(buffer, nbytes, alignment):
    import ctypes
    start = -ctypes.addressof(ctypes.c_char.from_buffer(buffer)) % alignment
    return memoryview(buffer)[start : start + nbytes]

arena = Arena()
class Inner:
    wrong = staticmethod(lambda nbytes, alignment: bytearray(nbytes + 8))
"""


def check(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "memrt", "check-allocator", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )


def test_check_allocator_tests_objects_of_python_modules(tmp_path):
    (tmp_path / "arenas.py").write_text(MODULE)
    chosen = ["refusal", "threads", "fork", "destroy"]
    clauses = [word for name in chosen for word in ("--clause", name)]
    result = check(tmp_path, *clauses, "arenas:arena")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(" pass ") == len(chosen)
    result = check(tmp_path, "--clause", "alignment", "arenas:Inner.wrong")
    assert result.returncode == 1
    assert "alignment  fail" in result.stdout


def test_check_allocator_names_the_fault_of_a_python_object(tmp_path):
    (tmp_path / "arenas.py").write_text("number = 5\n")
    for target, message in (("arenas:number", "got int"), ("nowhere:x", "ModuleNotFoundError")):
        result = check(tmp_path, "--clause", "table", target)
        assert result.returncode == 2
        assert message in result.stderr
