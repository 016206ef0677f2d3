"""A process has a single libmemrt: the first to be loaded, by any loader."""

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


def test_package_uses_the_library_already_loaded(run_python, tmp_path):
    """A copy stands for the libmemrt that a C program is linked to."""
    copy = shutil.copy(memrt.get_library(), tmp_path)
    shown = run_python(IMPORT, str(copy)).stdout
    assert shown == f"imported over {memrt.__version__} from {copy}\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            [],
            "libmemrt 0.0.7 in the process is older than the package: load libmemrt of the "
            "package, or a newer libmemrt",
        ),
        (
            ["-DOTHER_MAJOR"],
            "libmemrt is not compatible with the package: it is of another contract",
        ),
    ],
)
def test_older_or_incompatible_library_is_refused(run_python, compile_library, flags, message):
    other = compile_library("otherlib.c", "-Wl,-soname,libmemrt.so.1", *flags)
    assert run_python(IMPORT, str(other)).stdout == message + "\n"
