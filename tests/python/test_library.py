"""The one libmemrt of a process: the first that is loaded, whoever loads it."""

from __future__ import annotations

import shutil

import memrt
import pytest

IMPORT = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.memrt_version.restype = ctypes.c_char_p
try:
    import memrt
except ImportError as error:
    print(error)
else:
    print("imported over", library.memrt_version().decode(), "from", memrt.get_library())
"""


def test_the_library_of_a_program_serves_the_package_as_well(run_python, tmp_path):
    """A copy stands for the libmemrt that a C program is linked to."""
    copy = shutil.copy(memrt.get_library(), tmp_path)
    shown = run_python(IMPORT, str(copy)).stdout
    assert shown == f"imported over {memrt.__version__} from {copy}\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            [],
            "this process had libmemrt 0.0.7 loaded already, which is older than this package: "
            "give the program that loads it the libmemrt of this package, or a newer one",
        ),
        (["-DOTHER_MAJOR"], "libmemrt does not fit this package: it is of another contract"),
    ],
)
def test_a_library_that_lacks_something_is_refused(run_python, compile_library, flags, message):
    other = compile_library("otherlib.c", "-Wl,-soname,libmemrt.so.1", *flags)
    assert run_python(IMPORT, str(other)).stdout == message + "\n"
