"""Input that means harm, or that somebody forged: docs/security.md says what is held against it."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
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
    """A program that shows what options it goes by, run as it is or set-uid to another user."""
    library = Path(memrt.get_library())
    own = shutil.copy(library, tmp_path)
    source, program = Path(__file__).parent / "ext" / "settings.c", tmp_path / "settings"
    flags = [f"-I{memrt.get_include()}", str(own), f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-Wall", "-Werror", source, *flags, "-o", program], check=True)

    def run(setuid: bool) -> dict[str, str]:
        if setuid:
            for folder in (tmp_path, *tmp_path.parents[:3]):
                folder.chmod(folder.stat().st_mode | 0o055)
            os.chown(program, pwd.getpwnam(NOBODY).pw_uid, -1)
            program.chmod(0o4755)
        shown = run_program(program, env=SETTINGS).stdout.splitlines()
        return dict(line.split(" ", 1) for line in shown)

    return run


def test_options_of_the_environment_are_taken_where_nobody_gains_rights(show_settings):
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


def test_options_of_the_environment_are_ignored_in_a_set_uid_program(show_settings, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make a program set-uid")
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("programs here cannot be set-uid")
    shown = show_settings(setuid=True)
    assert (shown["secure"], shown["checking"]) == ("1", "0")
    assert shown["MEMRT_TRACK"] == "0"
    assert shown["MEMRT_ALIGNMENT"] == "64"
    assert shown["MEMRT_CACHE"] == "1"
    assert shown["MEMRT_DECAY"] == "500"
    assert "warning" not in shown


def capsule(address, name):
    """A capsule as any C extension, or ctypes, can make it."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, name, None)


class Exporter:
    """An object that says it has a MemInfo."""

    def __init__(self, made):
        self.made = made

    def __memrt_meminfo__(self):
        return self.made


NAME = b"memrt.another"  # kept: a capsule borrows its name
STRANGERS = {
    "a capsule of another name": lambda: capsule(64, NAME),
    "an exporter of such a capsule": lambda: Exporter(capsule(64, NAME)),
    "an exporter of a number": lambda: Exporter(5),
    "an exporter of itself": lambda: Exporter(Exporter(None)),
    "a handler": lambda: memrt.Policy().handler,
    "the table": lambda: _memrt.api,
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_what_only_looks_like_a_meminfo_is_refused(kind):
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
def test_what_only_looks_like_a_policy_is_refused(thing):
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
address = {"foreign": ctypes.addressof(memory), "dead": stale.data - 64}[sys.argv[1]]
del stale
forged = make(address, b"memrt.meminfo", None)
memrt.as_array(Exporter() if sys.argv[2] == "exporter" else forged)
"""


@pytest.mark.parametrize("by", ["capsule", "exporter"])
@pytest.mark.parametrize(
    ("to", "message"), [("foreign", "nothing that is alive"), ("dead", "is dead already")]
)
def test_checking_mode_ends_a_process_that_follows_a_forged_capsule(run_python, to, by, message):
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
def test_checking_mode_ends_a_process_that_forges_an_address_for_numbas_runtime(run_python, call):
    result = run_python(FORGED_ADDRESS, call, env={"MEMRT_CHECK": "1"}, check=False)
    assert result.returncode == -signal.SIGABRT
    assert "memrt made nothing that is alive at that address" in result.stderr


@pytest.mark.parametrize(
    "call",
    ["runtime._MemInfo(ptr=0)",  "runtime._MemInfo(ptr=2**64)",
     "runtime._MemInfo(ptr='4096')", "runtime.meminfo_new('64', None)",
     "runtime.meminfo_new(2**64, None)"],
)  # fmt: skip
def test_numbas_runtime_refuses_what_cannot_be_an_address(run_python, call):
    result = run_python(FORGED_ADDRESS, call, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].split(":")[0] in (
        "ValueError", "OverflowError", "TypeError",
    )  # fmt: skip


class DummyArray:
    """Called like what numpy's as_strided leaves in a chain of bases."""


CIRCLE = """
import memrt
class DummyArray: pass
first, second = DummyArray(), DummyArray()
first.base, second.base = second, first
assert not memrt.is_managed(first)
assert memrt.handler_name(first) is None
"""


def test_a_chain_of_bases_that_goes_in_a_circle_comes_to_an_end(run_python):
    run_python(CIRCLE)


def test_a_link_that_raises_ends_the_chain():
    class Raising(DummyArray):
        @property
        def base(self):
            raise KeyError("base")

    Raising.__name__ = "DummyArray"
    assert not memrt.is_managed(Raising())


HUGE = (2**63 - 1, 2**63, 2**64 - 2**62, 2**64 - 1, 2**64, 2**100)


@pytest.mark.parametrize("size", HUGE)
def test_sizes_that_overflow_are_refused_wherever_they_come_in(size):
    before = memrt.stats()
    refused = (MemoryError, ValueError, OverflowError)
    for call in (
        lambda: memrt.alloc(size),
        lambda: memrt.alloc(10, align=size),
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
def test_names_are_text_and_no_formats(name):
    mi = memrt.alloc(10, name=name)
    assert mi.name == name
    assert name in repr(mi)
    policy = memrt.Policy(name=name)
    assert policy.name == name
    with policy:
        assert memrt.handler_name(np.ones(3)) == f"memrt:{name}"


def test_a_capsule_of_memrts_holds_its_own_reference_whatever_becomes_of_the_object():
    mi = memrt.alloc(100)
    made = mi.__memrt_meminfo__()
    assert mi.refcount == 2
    del mi
    assert memrt.as_array(made).nbytes == 100


def test_a_meminfo_cannot_be_built_copied_or_filled_by_hand():
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
