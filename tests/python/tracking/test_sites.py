"""Allocation sites, and samples of allocations."""

import ctypes.util
import gc
import importlib
import math
import os
import subprocess
import sys
import sysconfig
import textwrap
import threading
import traceback
from pathlib import Path

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt._tracking import debug_info


@pytest.fixture
def sampled():
    """Skip where checking mode lists every allocation, whatever the settings."""
    was = _memrt.set_tracking(False)
    if _memrt.tracking_enabled():
        pytest.skip("checking tracks all allocations")
    _memrt.set_tracking(was)


def buffer_of(mi):
    (found,) = [b for b in memrt.debug.live() if b.address == mi.address]
    return found


def line_of(function, text):
    """Return the number of the line of a function that contains a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def load():
    return memrt.alloc(3001)  # here


def prepare():
    return load()


def test_site_lists_the_python_calls_innermost_first():
    with memrt.debug.tracking():
        mi = prepare()
    frames = buffer_of(mi).site.frames
    assert [f.function for f in frames[:3]] == [
        "load",
        "prepare",
        "test_site_lists_the_python_calls_innermost_first",
    ]
    assert (frames[0].file, frames[0].line) == (__file__, line_of(load, "# here"))
    assert not any(f.is_native for f in frames)


def test_site_frames_match_the_stack_of_traceback():
    seen = []

    def make(*_):
        stack = traceback.extract_stack()
        seen.append((memrt.alloc(3002), [(call.filename, call.lineno) for call in stack[-2::-1]]))
        return 0

    class Maker:
        __index__ = make

    def rows():
        yield make()

    with memrt.debug.tracking(frames=128):
        sorted([1], key=make)
        range(Maker())
        list(rows())
        [make() for _ in range(2)]
    for mi, stack in seen:
        _, *callers = buffer_of(mi).site.frames
        assert [(frame.file, frame.line) for frame in callers] == stack
    assert len(seen) == 5
    seen.clear()  # CPython 3.13 without a GIL keeps classes alive, as well as their methods


def test_allocations_with_equal_call_stacks_share_a_site():
    with memrt.debug.tracking():
        first, second = (load() for _ in range(2))
        other = prepare()
    sites = [buffer_of(mi).site for mi in (first, second, other)]
    assert sites[0] is sites[1]
    assert sites[0] != sites[2]


def test_frames_option_limits_the_recorded_calls():
    with memrt.debug.tracking(frames=1):
        one = prepare()
    with memrt.debug.tracking(frames=0):
        none = prepare()
    assert [f.function for f in buffer_of(one).site.frames] == ["load"]
    assert buffer_of(none).site is None
    assert buffer_of(none).site_number == 0


def test_deep_recursion_is_cut_at_128_frames():
    def descend(depth):
        return load() if depth == 0 else descend(depth - 1)

    with memrt.debug.tracking(frames=128):
        mi = descend(300)
    assert len(buffer_of(mi).site.frames) == 128


def test_place_is_the_innermost_call_outside_memrt_and_numpy():
    with memrt.debug.tracking(), memrt.Policy(name="placed"):
        a = memrt.full((10, 10), 1.0)
        b = np.ones(400)
    for array in (a, b):
        (buffer,) = [x for x in memrt.debug.live() if x.address == array.ctypes.data]
        assert buffer.site.place.file == __file__
        assert buffer.site.place.function == (
            "test_place_is_the_innermost_call_outside_memrt_and_numpy"
        )
        assert os.path.relpath(__file__) in str(buffer.site)


def test_native_frames_come_before_python_frames():
    with memrt.debug.tracking(native=8):
        mi = load()
    frames = buffer_of(mi).site.frames
    if sys.platform != "linux" or not frames[0].is_native:
        pytest.skip("memrt has no unwinder for native code")
    natives = [f for f in frames if f.is_native]
    assert frames[: len(natives)] == tuple(natives)
    assert "_memrt" in natives[0].file
    assert all("libmemrt" not in (f.file or "") for f in natives)
    assert frames[len(natives)].function == "load"
    assert "_memrt" in str(natives[0])


@pytest.fixture
def native_buffer(compile_library):
    """Return a block that a C library with debug information allocated."""
    if ctypes.util.find_library("dw") is None:
        pytest.skip("needs libdw (Debian: libdw1)")
    python = sysconfig.get_paths()["include"]
    path = compile_library("native_site.c", "-O0", "-fno-omit-frame-pointer", "-isystem", python)
    library = ctypes.PyDLL(str(path))
    library.allocate_in_library.restype = ctypes.c_void_p
    library.free_in_library.argtypes = [ctypes.c_void_p]
    with memrt.debug.tracking(native=12):
        address = library.allocate_in_library(ctypes.c_size_t(777))
        (buffer,) = [each for each in memrt.debug.live() if each.address == address]
        yield buffer
    library.free_in_library(address)


def test_native_frames_have_names_and_lines_of_debug_information(native_buffer):
    inner, outer = native_buffer.site.frames[:2]
    assert (inner.function, outer.function) == ("allocate_in_helper", "allocate_in_library")
    assert os.path.basename(inner.source) == os.path.basename(outer.source) == "native_site.c"
    source = Path(inner.source).read_text().splitlines()
    assert "block_alloc" in source[inner.line - 1]
    assert "allocate_in_helper" in source[outer.line - 1]
    assert f"native_site.c:{inner.line})" in str(inner)
    assert inner.file == outer.file != inner.source


class SessionCounts:
    """Forwards calls to libdw, and counts opened and closed sessions."""

    def __init__(self, library) -> None:
        self.library, self.opened, self.closed = library, 0, 0

    def __getattr__(self, name):
        self.opened += name == "dwfl_begin"
        self.closed += name == "dwfl_end"
        return getattr(self.library, name)


def test_file_without_symbols_leaves_no_session_of_libdw_open(monkeypatch, tmp_path):
    counts = SessionCounts(debug_info._load())
    monkeypatch.setattr(debug_info, "_load", lambda: counts)
    file = tmp_path / "text.so"
    file.write_text("not a shared object")
    assert debug_info.native_line(str(file), None, 100) == (None, 100, None, 0)
    assert (counts.opened, counts.closed) == (1, 1)


def test_native_frames_omit_the_interpreter_loop():
    with memrt.debug.tracking(native=20):
        mi = load()
    functions = [f.function or "" for f in buffer_of(mi).site.frames if f.is_native]
    assert not any(name.startswith("_PyEval_EvalFrame") for name in functions)


def test_site_has_only_calls_of_the_allocating_thread():
    kept = []

    def work():
        kept.append(load())

    with memrt.debug.tracking():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    functions = [f.function for f in buffer_of(kept[0]).site.frames]
    assert functions[0] == "load"
    assert any(name.endswith("work") for name in functions)
    assert not any("test_site_has_only_calls" in name and "work" not in name for name in functions)


def test_tracking_keeps_the_handled_exception():
    with memrt.debug.tracking():
        try:
            raise KeyError("kept")
        except KeyError as error:
            mi, caught = load(), error
    assert caught.args == ("kept",)
    assert buffer_of(mi).site.frames[0].function == "load"


def test_tracking_keeps_no_code_object_alive():
    namespace = {"memrt": memrt}
    exec(compile("def made():\n    return memrt.alloc(10)", "<made>", "exec"), namespace)
    code = namespace["made"].__code__
    gc.collect()  # so that CPython without a GIL sums up the count
    before = sys.getrefcount(code)
    with memrt.debug.tracking():
        mi = namespace["made"]()
        frame = buffer_of(mi).site.frames[0]
    gc.collect()
    assert sys.getrefcount(code) == before
    assert (frame.function, frame.file, frame.line) == ("made", "<made>", 2)


def test_undecodable_file_name_is_left_out():
    namespace = {"memrt": memrt}
    exec(compile("def f():\n    return memrt.alloc(11)", "odd\udc80name", "exec"), namespace)
    with memrt.debug.tracking():
        mi = namespace["f"]()
    assert buffer_of(mi).site.frames[0].file is None


DEEP = """import memrt
def keep(found, depth):
    found.append(descend(depth))
def descend(depth):
    return descend(depth - 1) if depth else memrt.alloc(1000)
"""


@pytest.fixture
def deep_library(tmp_path, monkeypatch):
    """Return a module of a package folder. keep(list, depth) allocates `depth` + 1 calls deeper."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "deep_library.py").write_text(DEEP)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("deep_library")
    del sys.modules["deep_library"]


@pytest.mark.parametrize("frames", [3, 8])
def test_call_deep_in_a_library_keeps_the_line_of_the_user(deep_library, frames):
    found = []
    with memrt.debug.tracking(frames=frames):
        for _ in range(2):  # new frames, then cached frames
            deep_library.keep(found, 20)
    first, second = (buffer_of(mi).site for mi in found)
    *inner, outermost, caller = [frame.function for frame in first.frames]
    assert first is second
    assert (inner, outermost) == (["descend"] * (frames - 2), "keep")
    assert caller.endswith("test_call_deep_in_a_library_keeps_the_line_of_the_user")
    assert first.place.file == __file__


def test_call_deep_in_a_library_without_a_user_keeps_inner_calls(deep_library):
    found = []
    with memrt.debug.tracking(frames=8):
        thread = threading.Thread(target=deep_library.keep, args=(found, 20))
        thread.start()
        thread.join()
    assert [frame.function for frame in buffer_of(found[0]).site.frames] == ["descend"] * 8


def test_sites_are_summed_by_place_largest_first():
    with memrt.debug.tracking(frames=8):
        small = [load() for _ in range(3)]
        large = prepare(), memrt.alloc(100_000)
    mine = [b for b in memrt.debug.live() if b.address in {mi.address for mi in (*small, *large)}]
    usages = memrt.debug.sites(mine)
    assert [(u.blocks, u.bytes) for u in usages] == [(1, 100_000), (4, 4 * 3001)]
    assert usages[1].place == memrt.types.Place(__file__, "load", line_of(load, "# here"))
    assert "97.7 KiB in 1 buffer of " in repr(usages[0])
    assert "11.7 KiB in 4 buffers of load at" in repr(usages[1])


def test_sample_estimates_the_number_of_buffers(sampled):
    size, count, mean = 5000, 20_000, 50_000
    with memrt.debug.tracking(frames=1, sample=mean):
        kept = [memrt.alloc(size) for _ in range(count)]
    listed = [b for b in memrt.debug.live() if b.nbytes == size]
    p = -math.expm1(-size / mean)
    assert len(listed) < count / 2
    assert all(b.weight == pytest.approx(1 / p) for b in listed)
    deviation = math.sqrt(count * p * (1 - p)) / p
    assert abs(sum(b.weight for b in listed) - count) < 6 * deviation
    (usage,) = memrt.debug.sites(listed)
    assert usage.bytes == pytest.approx(size * len(listed) / p)
    assert len(kept) == count


def test_tracking_settings_survive_exit_out_of_order(sampled):
    was = _memrt.tracking_get()
    first, second = memrt.debug.tracking(frames=3), memrt.debug.tracking(frames=5, sample="1K")
    first.__enter__()
    second.__enter__()
    assert _memrt.tracking_get() == (True, 5, 0, 1024)
    first.__exit__()
    assert _memrt.tracking_get() == (True, 5, 0, 1024)
    second.__exit__()
    assert _memrt.tracking_get() == was
    second.__exit__()  # a second exit has no effect
    assert _memrt.tracking_get() == was


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"frames": 129}, "frames must be from 0 to 128, got 129"),
        ({"native": -1}, "native must be from 0 to 128, got -1"),
        ({"sample": 0}, "sample must be a positive number of bytes, got 0"),
        ({"sample": "much"}, "size must be a number of bytes .*, got 'much'"),
        ({"frames": "8"}, "frames must be a whole number of calls, got '8'"),
        ({"native": 1.5}, "native must be a whole number of calls, got 1.5"),
    ],
)
def test_invalid_tracking_settings_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        memrt.debug.tracking(**arguments)


def test_tracking_covers_the_allocations_of_loadtxt():
    text = "\n".join(f"{i} {i}" for i in range(30_000))
    with memrt.debug.tracking(), memrt.Policy(name="parsed"):
        import io

        a = np.loadtxt(io.StringIO(text))
    assert a.shape == (30_000, 2)
    assert any(b.policy == "parsed" for b in memrt.debug.live())


def test_environment_sets_the_tracking_options_at_start(libc_malloc):
    program = """
        import memrt
        from memrt import _memrt
        mi = memrt.alloc(1)
        print(_memrt.tracking_get(), len(memrt.debug.live()[0].site.frames))
    """
    settings = {
        "MEMRT_TRACK": "1",
        "MEMRT_TRACK_FRAMES": "1",
        "MEMRT_TRACK_NATIVE": "0",
        "MEMRT_TRACK_SAMPLE": "0",
    }
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split(") ") == ["(True, 1, 0, 0", "1\n"]
