"""Malicious or forged input. docs/internals/security.md lists the protections."""

import ctypes
import gc
import os
import pwd
import shutil
import signal
import subprocess
import types
import weakref
from pathlib import Path

import memrt
import numpy as np
import pytest
from memrt import _memrt

SETTINGS = {
    "MEMRT_CHECK": "1",
    "MEMRT_TRACK": "1",
    "MEMRT_ALIGNMENT": "4096",
    "MEMRT_CACHE": "0",
    "MEMRT_DECAY": "7",
    "MEMRT_NONSENSE": "1",
}
NOBODY = "nobody"


@pytest.fixture
def show_settings(tmp_path, run_program):
    """Return a function that runs a program to print the options in force, normally or set-uid to
    another user.
    """
    library = Path(memrt.get_library())
    own = shutil.copy(library, tmp_path)
    source, program = Path(__file__).parents[1] / "ext" / "settings.c", tmp_path / "settings"
    flags = [f"-I{memrt.get_include()}", str(own), f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-Wall", "-Werror", source, *flags, "-o", program], check=True)

    def run(setuid: bool, **more: str) -> dict[str, str]:
        if setuid:
            for folder in (tmp_path, *tmp_path.parents[:3]):
                folder.chmod(folder.stat().st_mode | 0o055)
            os.chown(program, pwd.getpwnam(NOBODY).pw_uid, -1)
            program.chmod(0o4755)
        shown = run_program(program, env={**SETTINGS, **more}).stdout.splitlines()
        return dict(line.split(" ", 1) for line in shown)

    return run


def test_environment_options_apply_without_set_uid(show_settings):
    shown = show_settings(setuid=False)
    assert (shown["secure"], shown["checking"]) == ("0", "1")
    assert {name: shown[name] for name in SETTINGS if name in shown} == {
        "MEMRT_CHECK": "1",
        "MEMRT_TRACK": "1",
        "MEMRT_ALIGNMENT": "4096",
        "MEMRT_CACHE": "0",
        "MEMRT_DECAY": "7",
    }
    assert "MEMRT_NONSENSE" in shown["warning"]


def test_environment_options_are_ignored_under_set_uid(libc_malloc, show_settings, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make a program set-uid")
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("the file system ignores set-uid")
    shown = show_settings(setuid=True, MEMRT_ALLOCATOR="./no_such_library.so")
    assert (shown["secure"], shown["checking"]) == ("1", "0")
    assert shown["MEMRT_TRACK"] == "0"
    assert shown["MEMRT_ALIGNMENT"] == "64"
    assert shown["MEMRT_CACHE"] == "1"
    assert shown["MEMRT_DECAY"] == "500"
    assert shown["MEMRT_ALLOCATOR"] == "none"
    assert "warning" not in shown


def capsule(address, name):
    """Return a capsule as any C extension, or ctypes, can create."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, name, None)


class Exporter:
    """An object with the method __memrt_meminfo__."""

    def __init__(self, made):
        self.made = made

    def __memrt_meminfo__(self):
        return self.made


NAME = b"memrt.another"  # kept alive: a capsule borrows its name
STRANGERS = {
    "a capsule of another name": lambda: capsule(64, NAME),
    "an exporter of a capsule of another name": lambda: Exporter(capsule(64, NAME)),
    "an exporter of a number": lambda: Exporter(5),
    "an exporter of itself": lambda: Exporter(Exporter(None)),
    "a handler": lambda: memrt.Policy().handler,
    "the table": lambda: _memrt.api,
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_fake_meminfo_is_refused(kind):
    thing = STRANGERS[kind]()
    before = memrt.stats()
    for look_up in (memrt.meminfo, memrt.as_array):
        with pytest.raises((TypeError, ValueError)):
            look_up(thing)
    assert (memrt.stats() - before).mi_alloc == 0


@pytest.mark.parametrize(
    "thing",
    [5, "policy", capsule(64, NAME), memrt.alloc, _memrt.api],
    ids=["number", "text", "capsule", "function", "table"],
)
def test_fake_policy_is_refused(thing):
    for call in (memrt.alloc, memrt.empty, memrt.zeros):
        with pytest.raises(TypeError, match=r"memrt\.Policy"):
            call(10, policy=thing)
    with pytest.raises(TypeError, match=r"memrt\.Policy"):
        memrt.stats(thing)


FORGED = """
import ctypes, sys, memrt
make = ctypes.pythonapi.PyCapsule_New
make.restype = ctypes.py_object
make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
class Exporter:
    def __memrt_meminfo__(self): return forged
memory = ctypes.create_string_buffer(4096)
stale = memrt.alloc(100, name="stale")
address = {"foreign": ctypes.addressof(memory), "dead": stale.address - 64}[sys.argv[1]]
del stale
forged = make(address, b"memrt.meminfo", None)
memrt.as_array(Exporter() if sys.argv[2] == "exporter" else forged)
"""


@pytest.mark.parametrize("by", ["capsule", "exporter"])
@pytest.mark.parametrize(
    ("to", "message"), [("foreign", "no live buffer"), ("dead", "but was freed")]
)
def test_checking_mode_aborts_on_a_forged_capsule(run_python, to, by, message):
    result = run_python(FORGED, to, by, env={"MEMRT_CHECK": "1"}, check=False)
    assert result.returncode == -signal.SIGABRT
    assert message in result.stderr


FORGED_ADDRESS = """
import importlib.machinery, importlib.util, sys, memrt
from memrt import _memrt
file = _memrt.__file__
loader = importlib.machinery.ExtensionFileLoader("runtime._nrt_python", file)
spec = importlib.util.spec_from_file_location("runtime._nrt_python", file, loader=loader)
runtime = importlib.util.module_from_spec(spec)
loader.exec_module(runtime)
eval(sys.argv[1])
"""


@pytest.mark.parametrize(
    "call", ["runtime._MemInfo(ptr=4096).size", "runtime._MemInfo(ptr=4096).acquire()"]
)
def test_checking_mode_aborts_on_a_forged_numba_address(run_python, call):
    result = run_python(FORGED_ADDRESS, call, env={"MEMRT_CHECK": "1"}, check=False)
    assert result.returncode == -signal.SIGABRT
    assert "no live buffer of memrt is at the address" in result.stderr


@pytest.mark.parametrize(
    "call",
    ["runtime._MemInfo(ptr=0)",  "runtime._MemInfo(ptr=2**64)",
     "runtime._MemInfo(ptr='4096')", "runtime.meminfo_new('64', None)",
     "runtime.meminfo_new(2**64, None)"],
)  # fmt: skip
def test_numba_runtime_refuses_invalid_addresses(run_python, call):
    result = run_python(FORGED_ADDRESS, call, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].split(":")[0] in (
        "ValueError", "OverflowError", "TypeError",
    )  # fmt: skip


class DummyArray:
    """A class with the name of the object that NumPy's as_strided leaves in a chain of bases."""


CIRCLE = """
import memrt
class DummyArray: pass
first, second = DummyArray(), DummyArray()
first.base, second.base = second, first
assert not memrt.is_managed(first)
assert memrt.handler_name(first) is None
"""


def test_lookup_ends_on_a_circular_chain_of_bases(run_python):
    run_python(CIRCLE)


def test_base_property_that_raises_ends_the_lookup():
    class Raising(DummyArray):
        @property
        def base(self):
            raise KeyError("base")

    Raising.__name__ = "DummyArray"
    assert not memrt.is_managed(Raising())


HUGE = (2**63 - 1, 2**63, 2**64 - 2**62, 2**64 - 1, 2**64, 2**100)


@pytest.mark.parametrize("size", HUGE)
def test_overflowing_sizes_are_refused_and_allocate_nothing(size):
    before = memrt.stats()
    refused = (MemoryError, ValueError, OverflowError)
    for call in (
        lambda: memrt.alloc(size),
        lambda: memrt.alloc(10, alignment=size),
        lambda: memrt.wrap(4096, size + 1),
        lambda: memrt.empty(size),
        lambda: memrt.zeros((size, size)),
        lambda: memrt.as_array(memrt.alloc(10), (size,)),
        lambda: memrt.as_array(memrt.alloc(10), (2,), "u1", (size,)),
        lambda: memrt.as_array(memrt.alloc(10), (2,), offset=size),
        lambda: memrt.Policy(alignment=size),
    ):
        with pytest.raises(refused):
            call()
    assert (memrt.stats() - before).live == 0


@pytest.mark.parametrize("name", ["%s%n%s", "a\nb", "\x1b[31m", "n" * 63, "ü" * 31])
def test_names_are_never_used_as_format_strings(name):
    mi = memrt.alloc(10, name=name)
    assert mi.name == name
    assert name in repr(mi)
    policy = memrt.Policy(name=name)
    assert policy.name == name
    with policy:
        assert memrt.handler_name(np.ones(3)) == f"memrt:{name}"


def test_capsule_keeps_memory_after_its_meminfo_is_deleted():
    mi = memrt.alloc(100)
    made = mi.__memrt_meminfo__()
    assert mi.refcount == 2
    del mi
    assert memrt.as_array(made).nbytes == 100


def test_meminfo_cannot_be_built_copied_set_or_subclassed():
    mi = memrt.alloc(10)
    for call in (
        lambda: memrt.MemInfo(),
        lambda: memrt.MemInfo(4096),
        lambda: memrt.MemInfo.__new__(memrt.MemInfo),
        lambda: object.__new__(memrt.MemInfo),
        lambda: setattr(mi, "data", 0),
        lambda: setattr(mi, "refcount", 0),
        lambda: setattr(memrt.MemInfo, "data", 0),
        lambda: type("Sub", (memrt.MemInfo,), {}),
        lambda: __import__("copy").copy(mi),
        lambda: __import__("pickle").dumps(mi),
    ):
        with pytest.raises((TypeError, AttributeError)):
            call()
    assert mi.refcount == 1


HUGE = 10**5000  # more digits than Python converts to text
BITS = "a number of 16610 bits"


def _name(meminfo, name):
    meminfo.name = name


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: memrt.alloc(HUGE), MemoryError, f"fit the address space, got {BITS}"),
        (lambda: memrt.alloc(-HUGE), ValueError, f"must be 0 or more, got {BITS}"),
        (lambda: memrt.wrap(HUGE, 1), ValueError, f"fit the address space, got {BITS}"),
        (lambda: memrt.Policy(alignment=HUGE), ValueError, f"a power of two .* got {BITS}"),
        (lambda: memrt.empty(2, order="K"), ValueError, "order must be 'C' or 'F', got 'K'"),
        (lambda: memrt.zeros(2, order="A"), ValueError, "order must be 'C' or 'F', got 'A'"),
        (lambda: memrt.debug.mark("a\0b"), ValueError, r"no zero byte, got 'a\\x00b'"),
        (lambda: memrt.debug.mark(3), TypeError, "the name of a mark must be a str, got int"),
        (lambda: memrt.adopt(np.ones(3), copy=3), TypeError, "copy must be .* got 3"),
        (lambda: memrt.alloc(8, name=5), TypeError, "name must be a str or None, got int"),
        (lambda: _name(memrt.alloc(8), 5), TypeError, "name must be a str or None, got int"),
    ],
)
def test_invalid_argument_error_shows_value_or_type(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_adopt_accepts_numpy_booleans_for_copy():
    array = np.frombuffer(b"12345678")
    assert memrt.adopt(array, copy=np.True_) is not array
    with pytest.raises(ValueError, match="omit copy=False"):
        memrt.adopt(array, copy=np.False_)


def test_second_import_keeps_the_exception_types(run_python):
    program = """
import sys
import memrt as first
for name in [name for name in sys.modules if name.partition(".")[0] == "memrt"]:
    del sys.modules[name]
import memrt as second
assert second is not first
assert second.OutOfMemoryError is first.OutOfMemoryError
assert second.cuda.CudaError is first.cuda.CudaError
try:
    second.alloc(1 << 60)
except first.OutOfMemoryError as error:
    print(error.nbytes == 1 << 60)
"""
    assert run_python(program).stdout == "True\n"


def test_non_utf8_name_from_c_is_shown_with_replacement(probe):
    with memrt.debug.tracking():
        meminfo = memrt.alloc(8)
        probe.name_by_bytes(meminfo, b"caf\xe9")
        (buffer,) = (each for each in memrt.debug.live() if each.address == meminfo.address)
        assert buffer.name == meminfo.name == "caf\ufffd"


def test_frame_cache_releases_old_code_objects():
    make = "import memrt\nmemrt.alloc(1)\n"
    first = compile(make, "<first>", "exec")
    gone = weakref.ref(first)
    with memrt.debug.tracking(frames=1):
        exec(first, {})
        del first
        for number in range(40_000):
            exec(compile(make, f"<{number % 7}>", "exec"), {})
        gc.collect()  # frees code objects in builds without a GIL
        assert gone() is None


FUNCTIONS = {
    name: function
    for name, function in vars(_memrt).items()
    if isinstance(function, types.BuiltinFunctionType)
}


class Failing:
    """An object whose comparisons and truth value raise KeyError."""

    __hash__ = None

    def __eq__(self, other):
        raise KeyError("eq")

    def __bool__(self):
        raise KeyError("bool")


def balance():
    """Return the figures that a refused call must not change."""
    stats = memrt.stats()
    return stats.live, stats.alloc - stats.free, stats.mi_alloc - stats.mi_free


@pytest.mark.parametrize("name", FUNCTIONS)
def test_private_function_refuses_too_many_arguments(name):
    before = balance()
    with pytest.raises(TypeError):
        FUNCTIONS[name](*[object()] * 12)
    assert balance() == before


SHORT = bytearray(4)
REFUSED = {
    "address of an int": (lambda: _memrt.address(5), TypeError),
    "frames of a site by name": (lambda: _memrt.site_frames("x"), TypeError),
    "suppression at a site by name": (lambda: _memrt.suppression_at("x"), TypeError),
    "tracking without truth value": (lambda: _memrt.set_tracking(Failing()), KeyError),
    "end of tracking by name": (lambda: _memrt.tracking_close("x"), TypeError),
    "tracking by a tuple of one": (lambda: _memrt.tracking_open((1,)), TypeError),
    "stats of no scope": (lambda: _memrt.scope_stats(5), ValueError),
    "sizes of no scope": (lambda: _memrt.scope_sizes(5), ValueError),
    "peak of no scope": (lambda: _memrt.scope_reset_peak(5), ValueError),
    "scope in no scope": (lambda: _memrt.scope_open("x", "name"), ValueError),
    "CUDA information of an int": (lambda: _memrt.cuda_info(5), TypeError),
    "CUDA use of an int": (lambda: _memrt.cuda_used(5, 0), TypeError),
    "CUDA wait for an int": (lambda: _memrt.cuda_wait(5, 0), TypeError),
    "CUDA read of an int": (lambda: _memrt.cuda_read(5, 0, SHORT, 0), TypeError),
    "CUDA write to an int": (lambda: _memrt.cuda_write(5, 0, SHORT, 0), TypeError),
    "CUDA copy of an int": (lambda: _memrt.cuda_copy(5, 0, 0, []), TypeError),
    "CUDA statistics of kind 99": (lambda: _memrt.cuda_stats(99), ValueError),
    "holders with 2 arguments": (lambda: _memrt.find_holders(SHORT, 0), TypeError),
    "holders with 5 arguments": (lambda: _memrt.find_holders(SHORT, 0, 0, 0, 0), TypeError),
    "holders with a name as count": (lambda: _memrt.find_holders(SHORT, "a", 0), TypeError),
    "holders with a name as address": (lambda: _memrt.find_holders(SHORT, 0, 0, "a"), TypeError),
    "holders at address 0": (lambda: _memrt.find_holders(SHORT, 0, 0, 0), LookupError),
    "tracking of 10**6 frames": (lambda: _memrt.tracking_open((1, 10**6, 0, 0)), ValueError),
    "wrapped memory at address 0": (lambda: memrt.wrap(0, 8), ValueError),
    "survey of a name": (lambda: _memrt.survey(["x"], 1, 0), TypeError),
    "retention of -1 bytes": (lambda: _memrt.find_retention(-1, 0, 1), ValueError),
    "retention of -1 buffers": (lambda: _memrt.find_retention(0, 0, -1), ValueError),
    "retention of 10**9 buffers": (lambda: _memrt.find_retention(0, 0, 10**9), ValueError),
    "view without truth value": (
        lambda: memrt.as_array(memrt.alloc(8), writeable=Failing()),
        KeyError,
    ),
    "buffer with a lone surrogate": (lambda: memrt.alloc(8, name="\ud800"), UnicodeEncodeError),
    "mark with a lone surrogate": (lambda: memrt.debug.mark("\ud800"), UnicodeEncodeError),
    "Arrow bitmap that is an int": (
        lambda: _memrt.export_arrow((memrt.alloc(8), 0, "C", 1, 0, "n", 5, -1), 0),
        TypeError,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_argument_raises_and_keeps_stats(case):
    call, error = REFUSED[case]
    before = balance()
    with pytest.raises(error):
        call()
    assert balance() == before


@pytest.mark.parametrize("site", [2**32, 2**64 - 1])
def test_site_number_out_of_range_has_no_frames(site):
    assert _memrt.site_frames(site) == ()
    assert _memrt.suppression_at(site) is None


class Numbered:
    _handler = 5


class Raising:
    @property
    def _handler(self):
        raise KeyError("handler")


def test_policy_with_bad_handler_attribute_is_refused():
    with pytest.raises(TypeError, match=r"policy must be a memrt\.Policy or None, got Numbered"):
        memrt.alloc(8, policy=Numbered())
    with pytest.raises(KeyError, match="handler"):
        memrt.alloc(8, policy=Raising())


def test_handler_capsule_of_other_code_leads_to_its_policy():
    policy = memrt.Policy(name="mine")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    other = capsule(get(policy.handler, b"mem_handler"), b"mem_handler")
    assert _memrt.is_memrt_handler(other)
    assert memrt.alloc(8, policy=other).policy == "mine"


def test_allocation_under_foreign_handler_uses_default_policy(recorder):
    before = _memrt.set_handler(recorder.new(None, "foreign"))
    try:
        policy = memrt.alloc(8).policy
    finally:
        _memrt.set_handler(before)
    assert policy == "default"
