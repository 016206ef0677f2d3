"""C code called by jitted code distinguishes memrt's table from Numba's smaller table."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import memrt
import pytest
from numba import njit
from numba.core.unsafe.nrt import NRT_get_api

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "numba"
DETECT = Path(__file__).with_name("ext") / "detect.c"
COUNTERS = 1 << 1  # MEMRT_FEATURE_COUNTERS
PROBES = 1 << 2  # MEMRT_FEATURE_PROBES


@pytest.fixture(scope="module")
def detect(compile_library):
    library = ctypes.CDLL(str(compile_library(DETECT, flags=(f"-I{memrt.get_include()}",))))
    for name, result in (("detect", ctypes.c_size_t), ("features", ctypes.c_uint64),
                         ("table_size", ctypes.c_size_t)):  # fmt: skip
        getattr(library, name).argtypes = (ctypes.c_void_p,)
        getattr(library, name).restype = result
    library.version.argtypes, library.version.restype = (ctypes.c_void_p,), ctypes.c_char_p
    return library


@pytest.fixture(scope="module")
def squares_library(compile_library):
    return compile_library(EXAMPLE / "squares.c", flags=(f"-I{memrt.get_include()}",))


def test_jitted_code_reaches_the_whole_table(detect, on_memrt):
    found, size = detect.detect, detect.table_size

    @njit
    def ask():
        nrt = NRT_get_api()
        return found(nrt), size(nrt)

    address, bytes_of_table = ask()
    assert address == on_memrt.get_api()
    assert bytes_of_table > 6 * 8


def test_table_has_version_and_features(detect, on_memrt):
    assert detect.version(on_memrt.get_api()).decode() == memrt.__version__
    probes = PROBES if memrt._memrt.features()["probes"] else 0
    assert detect.features(on_memrt.get_api()) == COUNTERS | probes


def test_table_of_stock_numba_is_not_detected_as_memrt(detect, on_stock):
    assert detect.detect(on_stock.get_api()) == 0
    assert detect.version(on_stock.get_api()) == b""


def test_checking_table_is_detected_as_memrt(run_python, compile_library):
    library = compile_library(DETECT, flags=(f"-I{memrt.get_include()}",))
    code = """
import memrt.numba; memrt.numba.install()
import ctypes, sys
from numba.core.runtime import _nrt_python as nrt
library = ctypes.CDLL(sys.argv[1])
library.detect.argtypes = library.features.argtypes = (ctypes.c_void_p,)
library.detect.restype = library.features.restype = ctypes.c_uint64
table = ctypes.CFUNCTYPE(ctypes.c_void_p)(nrt.c_helpers["get_api"])()
assert library.detect(table) == table
assert library.features(table) & 1
"""
    result = run_python(code, str(library), env={"MEMRT_CHECK": "1"})
    assert result.stderr == ""


def run_example(library: Path, *before: str) -> str:
    command = [sys.executable, *before, str(EXAMPLE / "squares.py"), str(library)]
    return subprocess.check_output(command, text=True)


def test_example_uses_the_larger_table_on_memrt(squares_library):
    out = run_example(squares_library, "-m", "memrt", "run", "--quiet", "--numba")
    assert out == (
        "allocated by memrt: the last square is 998001\n"
        "squares: 8000 bytes, 1 reference, address ends in 0x0\n"
    )


def test_example_works_on_stock_numba(squares_library):
    assert run_example(squares_library) == "allocated by Numba: the last square is 998001\n"
