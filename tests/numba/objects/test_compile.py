"""`python -m memrt compile` makes object files and headers for C programs."""

from __future__ import annotations

import ctypes
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_bool, c_double, c_float, c_int16, c_int32, c_int64, c_uint8
from pathlib import Path

import memrt
import numpy as np
import pytest
from c_values import Array1, Array2, Complex, String, Summary, describe, read
from memrt.commands import main
from memrt.numba._objects.c_types import DIMENSIONS_MAX

KERNELS = Path(__file__).with_name("kernels.py")
NAMES = re.findall(r"^@(?:njit|cfunc)\(.*\ndef (\w+)", KERNELS.read_text(), re.MULTILINE)
STATUS = re.compile(r'case (\d+):\s+return "(\w+)";')

EVERY_SECOND = np.arange(10.0)[::2]
REVERSED = np.arange(6.0).reshape(2, 3)[:, ::-1]
UNSORTED = np.array([3.0, 1.0, 2.0])

# Function, arguments, type of the result, expected result.
CALLS = [
    ("doubled_sum", [EVERY_SECOND], c_double, 40.0),
    ("squares", [c_int64(4)], Array1, [0.0, 1.0, 4.0, 9.0]),
    ("squares", [c_int64(0)], Array1, []),
    ("transposed_copy", [REVERSED], Array2, REVERSED.T.tolist()),
    ("flattened", [REVERSED], Array1, REVERSED.ravel().tolist()),
    ("compare", [c_bool(True), c_uint8(200), c_int16(-2)], c_bool, True),
    ("compare", [c_bool(False), c_uint8(200), c_int16(-2)], c_bool, False),
    ("power", [1 + 2j, 0 + 1j], Complex, pytest.approx((1 + 2j) ** 1j)),
    ("mathematics", [c_float(2.5)], c_float, pytest.approx(2.5)),
    ("repeated", ["ab", c_int64(3)], String, "ab-ab-ab"),
    ("summary", [UNSORTED], Summary, ([1.0, 2.0, 3.0], 3, (1.0, 3.0))),
    ("fibonacci", [c_int64(20)], c_int64, 6765),
    ("with_lists", [c_int64(5)], c_int64, 23),
    ("calls_positive", [c_double(4)], c_double, 2.0),
    ("checked", [c_int64(7)], c_int64, 14),
    ("halved", [c_double(3)], c_double, 1.5),
]

# Function, argument, exception.
ERRORS = [
    ("calls_positive", c_double(-1), "KeyError"),
    ("checked", c_int64(0), "ZeroDivisionError"),
    ("checked", c_int64(101), "RefusedError"),
    ("squares", c_int64(2**59), "MemoryError"),
]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory) -> Path:
    """Return a folder with kernels.o and kernels.h."""
    folder = tmp_path_factory.mktemp("compiled")
    main(["compile", f"{KERNELS}:{','.join(NAMES)}", "-o", str(folder / "kernels.o")])
    return folder


@pytest.fixture(scope="session")
def kernels(compiled, cc) -> ctypes.CDLL:
    cc("-shared", "-o", compiled / "kernels.so", compiled / "kernels.o")
    return ctypes.CDLL(str(compiled / "kernels.so"))


@pytest.fixture(scope="session")
def status_names(compiled) -> dict[int, str]:
    text = (compiled / "kernels.h").read_text()
    return {int(number): name for number, name in STATUS.findall(text)}


def call(kernels, name, arguments, result):
    return getattr(kernels, name)(*map(describe, arguments), ctypes.byref(result))


@pytest.mark.parametrize(("name", "arguments", "kind", "expected"), CALLS)
def test_c_call_gets_the_result(kernels, nrt, name, arguments, kind, expected):
    result = kind()
    assert call(kernels, name, arguments, result) == 0
    assert read(nrt, result) == expected


@pytest.mark.parametrize(("name", "argument", "exception"), ERRORS)
def test_exception_becomes_a_status(kernels, status_names, name, argument, exception):
    result = Array1() if name == "squares" else c_int64()
    assert status_names[call(kernels, name, [argument], result)] == exception
    assert bytes(result) == bytes(len(bytes(result)))


def test_function_changes_an_array_of_c(kernels):
    array = np.arange(3, dtype=np.int32)
    assert kernels.add_in_place(describe(array), c_int32(5)) == 0
    assert array.tolist() == [5, 6, 7]


def test_returned_argument_holds_one_more_reference(kernels, nrt):
    nrt.NRT_MemInfo_alloc.restype = ctypes.c_void_p
    mi = nrt.NRT_MemInfo_alloc(ctypes.c_size_t(24))
    count = ctypes.c_size_t.from_address(mi)
    argument = Array1(mi, None, 3, 8, mi + 64, (3,), (8,))
    result = Array1()
    assert kernels.same(ctypes.byref(argument), ctypes.byref(result)) == 0
    assert (result.meminfo, count.value) == (mi, 2)
    for _ in range(2):
        nrt.NRT_MemInfo_release(ctypes.c_void_p(mi))


def test_calls_count_in_the_statistics(kernels, nrt):
    before = memrt.stats().alloc
    result = c_double()
    assert call(kernels, "doubled_sum", [EVERY_SECOND], result) == 0
    assert memrt.stats().alloc == before + 1


def test_functions_run_on_many_threads(kernels):
    def sum_often(number: int) -> set[float]:
        array, result, found = np.full(1000, float(number)), c_double(), set()
        for _ in range(200):
            assert call(kernels, "doubled_sum", [array], result) == 0
            found.add(result.value)
        return found

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(sum_often, range(8))) == [{2000.0 * i} for i in range(8)]


def test_object_file_exports_the_functions_only(compiled):
    listed = subprocess.run(["nm", "-g", "--defined-only", compiled / "kernels.o"], check=True,
                            capture_output=True, text=True).stdout  # fmt: skip
    assert sorted(line.split()[-1] for line in listed.splitlines()) == sorted(NAMES)


@pytest.mark.parametrize("language", [("c", "c99"), ("c", "c11"), ("c++", "c++11")])
def test_header_compiles_without_warnings(compiled, language):
    strict = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
    command = ["cc", "-fsyntax-only", "-x", language[0], f"-std={language[1]}", *strict,
               f"-I{memrt.get_include()}", "-include", "kernels.h", "-"]  # fmt: skip
    subprocess.run(command, cwd=compiled, input="int used;\n", text=True, check=True)


@pytest.mark.parametrize(
    "line",
    [
        "/// RefusedError: n must be at most 100, ... (kernels.py:",
        "KERNELS_ZERO_DIVISION_ERROR = ",
        "///   a          array(int32, 1d, C)\n///   by         int32\n"
        "int32_t add_in_place(const memrt_nrt_array1_t *a, int32_t by);\n",
        "typedef struct summary_result {\n    memrt_nrt_array1_t f0;\n    int8_t f1;\n"
        "    summary_result_f2_t f2;\n} summary_result_t;\n",
        "int32_t power(const double base[2], const double exponent[2], double result[2]);\n",
    ],
)
def test_header_has_the_line(compiled, line):
    assert line in (compiled / "kernels.h").read_text()


def test_number_of_dimensions_matches_the_header():
    text = Path(memrt.get_include(), "memrt", "nrt.h").read_text()
    assert f"#define MEMRT_NRT_DIMENSIONS_MAX {DIMENSIONS_MAX}\n" in text


def test_signature_without_result_infers_the_result(compiled, cc, tmp_path):
    header = tmp_path / "sums.h"
    main(["compile", f"{KERNELS}:inferred", "--signature", "(int32, float32)", "--cpu", "host",
          "-o", str(tmp_path / "sum.o"), "--header", str(header)])  # fmt: skip
    text = header.read_text()
    assert "SUMS_OK = 0," in text
    assert "int32_t inferred(int32_t a, float b, double *result);" in text
    cc("-shared", "-o", tmp_path / "both.so", compiled / "kernels.o", tmp_path / "sum.o")


# --- Refused functions ---

PARALLEL = "@njit('void(f8[:])', parallel=True)\ndef f(a):\n    for i in prange(a.size): a[i] = 1\n"
SYMBOLS = "compiled code must call only functions of libmemrt_nrt and the C library, got "

BLOCK = (
    "import memrt.numba\n@njit('f8(i8)')\ndef f(n):\n"
    "    with memrt.numba.scratch(): return np.ones(n).sum()\n"
)

REFUSALS = [
    ("@njit('void(i8)')\ndef f(n): print(n)", f"{SYMBOLS}numba_gil_ensure: Python objects"),
    (PARALLEL, rf"{SYMBOLS}.* and \d+ more: remove parallel=True"),
    ("@njit('f8()')\ndef f(): return np.random.random()", ".*: random numbers of Numba need"),
    ("@njit('f8(f8[::1])')\ndef f(a): return np.dot(a, a)", ".*: linear algebra of Numba needs"),
    ("@njit('i8(i8)')\ndef f(n): return {n: n}[n]", f"{SYMBOLS}.*: typed lists and dicts need"),
    ("@njit('i8(unicode_type)')\ndef f(s): return hash(s)", ".*: hashes and case conversion"),
    ("@njit('f8(i8)')\ndef f(n): return big[n]", "compiled code must not contain addresses"),
    ("@njit('i4(i4)')\ndef f(n): return c_abs(n)", "compiled code must not contain addresses"),
    ("@njit\ndef f(n): return n", "f must have one signature, got 0: write one"),
    ("@njit(['i8(i8)', 'f8(f8)'])\ndef f(n): return n", "f must have one signature, got 2"),
    ("@njit('optional(i8)(i8)')\ndef f(n): return n if n else None", "argument and result types"),
    ("@njit('i8(f8[:,:,:,:,:,:,:,:,:])')\ndef f(a): return a.ndim", "arrays must have 1 to 8"),
    ("@njit('i8(DictType(i8, i8))')\ndef f(d): return 1", "argument and result types must be"),
    ("@vectorize\ndef f(a): return a", "f must be a function, got DUFunc: decorate with njit"),
    ("f = 1", "f must be a function, got int"),
    ("", "function must exist in .*, got 'f'"),
    ("raise ValueError('no')", "cannot run .*: ValueError: no"),
    ("raise SystemExit(3)", "cannot run .*: SystemExit: 3"),
    ("@njit\ndef f(n):\n    with objmode(): pass", "f must have one signature"),
    (BLOCK, r"cannot compile f: Failed in .*\nmemrt\.numba\.scratch\(\) needs Python"),
]

BEGINNING = """
import ctypes
import numpy as np
from numba import njit, objmode, prange, vectorize
big = np.arange(200_000.0)
c_abs = ctypes.CDLL(None).abs
c_abs.argtypes = [ctypes.c_int]
"""


def compile_here(capsys, *arguments: object) -> str:
    """Run the command in this process, and return the error message of its failure."""
    with pytest.raises(SystemExit) as ended:
        main(["compile", *map(str, arguments)])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("source", "message"), REFUSALS)
def test_function_is_refused(tmp_path, capsys, source, message):
    script, target = tmp_path / "refused.py", tmp_path / "refused.o"
    script.write_text(BEGINNING + source)
    assert re.match(f"memrt: {message}", compile_here(capsys, f"{script}:f", "-o", target))
    assert sorted(tmp_path.glob("refused.[oh]")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SCRIPT"], "functions must be FILE:FUNCTION[,FUNCTION...], got 'SCRIPT'"),
        (["missing.py:f"], "script must be a Python file, got 'missing.py'"),
        (["SCRIPT:exp"], "function must have another name than the functions of the C library"),
        (["SCRIPT:double"], "function must have a name that C accepts, got 'double': rename it"),
        (["SCRIPT:f", "--signature", "f8("], "signature must be in Numba's notation, got 'f8('"),
        (["SCRIPT:f,g", "--signature", "f8(f8)"], "--signature must have one function, got f, g"),
        (["SCRIPT:g", "--signature", "f8(f8)"], "cannot compile g: Failed in nopython mode"),
        (["SCRIPT:out", "--signature", "f8(f8)"], "out must not use objmode, which needs Python"),
        (["SCRIPT:f", "--header", "TARGET"], "two output files have the same path"),
    ],
)
def test_command_line_is_refused(tmp_path, capsys, arguments, message):
    script, target = tmp_path / "script.py", tmp_path / "target.o"
    script.write_text(
        "from numba import njit, objmode\n\n\ndef f(x): return x\n\n\ndef g(x): return x.missing\n"
        "\n\n@njit('f8(f8)')\ndef exp(x): return x\n\n\n"
        "def out(x):\n    with objmode(): pass\n    return x\n"
    )
    places = {"SCRIPT": str(script), "TARGET": str(target)}
    for name, path in places.items():
        arguments = [each.replace(name, path) for each in arguments]
    found = compile_here(capsys, *arguments, "-o", target)
    assert message.replace("SCRIPT", str(script)) in found


def test_existing_file_is_kept_without_force(tmp_path, capsys):
    target = tmp_path / "kept.o"
    target.write_text("kept")
    found = compile_here(capsys, f"{KERNELS}:fibonacci", "-o", target)
    assert "exists already: name another file, or add --force" in found
    assert target.read_text() == "kept"
