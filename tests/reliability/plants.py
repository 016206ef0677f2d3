"""List seeded bugs in C and Python programs, with the reports expected from checking mode.

No library has the bugs: each bug is a misuse of memrt's own functions.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "0x[0-9a-f]+"
TIMEOUT = 60


@dataclass(frozen=True)
class Plant:
    """A seeded bug. `says` are regular expressions for parts of the report."""

    kind: str
    name: str
    says: tuple[str, ...]
    code: str = ""  # Python source; "": the bug is in plants.c

    @property
    def language(self) -> str:
        return "Python" if self.code else "C"

    def __str__(self) -> str:
        return f"{self.language}: {self.name}"


VICTIM = ('"victim"', f"100 bytes at {ADDRESS}", "policy planted")
BLOCK = (f"100 bytes at {ADDRESS}", "policy planted")
MADE = (r"allocated at\n(    .*\n)*    make_victim\+",)
MADE_BLOCK = (r"allocated at\n(    .*\n)*    make_block\+",)
FREED = (r"freed at\n(    .*\n)*    release_victim\+",)
FREED_BLOCK = (r"freed at\n(    .*\n)*    free_block\+",)
DEAD = "the buffer must be live, but was freed: released more often than acquired"
STRANGER = f"of {ADDRESS}: no live buffer of memrt is at the address"

C_PLANTS = (
    Plant("overrun", "overrun", (*VICTIM, *MADE, "a write 1 bytes past the end")),
    Plant("overrun", "overrun_of_a_block", (*BLOCK, *MADE_BLOCK, "a write 3 bytes past the end")),
    Plant(
        "underrun", "underrun",
        (f'MemInfo {ADDRESS} "victim": the header was overwritten', f"100 bytes at {ADDRESS}"),
    ),
    Plant(
        "underrun", "underrun_of_the_block",
        (*VICTIM, *MADE, "a write 1 bytes before the start of the block"),
    ),
    Plant("use after release", "call_after_release", (*VICTIM, *MADE, *FREED, "size of")),
    Plant(
        "use after release", "write_after_release",
        (*VICTIM, *MADE, *FREED, "a write to byte 67 after the free", "0x1 in place of 0xdd"),
    ),
    Plant(
        "use after release", "use_of_what_was_read_after_release",
        ("acquire of 0xdddd", "0xDD..: read from a freed block"),
    ),
    Plant(
        "use before writing", "use_of_what_was_never_written",
        ("acquire of 0xcdcd", "0xCD..: read from uninitialized memory"),
    ),
    Plant("double release", "double_release", (*VICTIM, *MADE, *FREED, "release of", DEAD)),
    Plant(
        "double release", "double_free",
        (*BLOCK, *MADE_BLOCK, *FREED_BLOCK, "block_free of", DEAD),
    ),
    Plant("foreign free", "foreign_free", (f"block_free {STRANGER}",)),
    Plant("acquire after release", "acquire_of_the_dead", (*VICTIM, *MADE, *FREED, DEAD)),
    Plant(
        "wrong-size free", "free_with_a_wrong_size",
        (
            f"free of block at {ADDRESS}",
            "size and alignment must be 100 and 64, got 99 and 64",
            r"allocated at\n(    .*\n)*    make_guarded\+",
        ),
    ),
    Plant(
        "destructor mismatch", "free_of_a_meminfos_data",
        (*VICTIM, *MADE, "the buffer must be a block, but was allocated as a MemInfo"),
    ),
    Plant(
        "destructor mismatch", "release_of_a_block",
        (*BLOCK, *MADE_BLOCK, "free the block by block_free"),
    ),
    Plant(
        "destructor mismatch", "destructor_of_what_is_held",
        (*VICTIM, *MADE, "the reference count must be 0"),
    ),
)  # fmt: skip

# Python code cannot unbalance a reference count, but a C extension can. Here ctypes replaces the
# extension: acquire and release are slots 3 and 4 of the table.
TABLE = """
import ctypes, memrt
from memrt import _memrt
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
slots = (ctypes.c_void_p * 6).from_address(pointer(_memrt.api, b"memrt._memrt.api"))
acquire, release = [ctypes.CFUNCTYPE(None, ctypes.c_void_p)(slots[i]) for i in (3, 4)]
"""
VICTIM_PY = """
import ctypes, memrt, numpy as np
policy = memrt.Policy(name="planted")
mi = memrt.alloc(100, name="victim", policy=policy)
"""
ARRAY_PY = """
import ctypes, memrt, numpy as np
policy = memrt.Policy(name="planted")
with policy:
    array = np.zeros(100, np.uint8)
address = array.ctypes.data
"""

PYTHON_LINE = r"allocated at\n    <module> at <string>:\d+\n"
PYTHON_MADE = (
    PYTHON_LINE,
    r"allocated at\n(    .*\n)*    .* in _memrt\.|allocated at\n(    .*\n)*    _memrt\.",
)
NUMPY_MADE = (PYTHON_LINE, r"allocated at\n(    .*\n)*    .*_multiarray_umath\.")

PYTHON_PLANTS = (
    Plant(
        "overrun", "overrun", (*VICTIM, *PYTHON_MADE, "a write 1 bytes past the end"),
        VICTIM_PY + "ctypes.memset(mi.address + 100, 1, 1)\ndel mi",
    ),
    Plant(
        "overrun", "overrun of an array", (*BLOCK, *NUMPY_MADE, "a write 5 bytes past the end"),
        ARRAY_PY + "np.lib.stride_tricks.as_strided(array, [105])[104] = 1\ndel array",
    ),
    Plant(
        "underrun",
        "underrun of an array",
        (f"MemInfo {ADDRESS}: the header was overwritten", PYTHON_LINE),
        ARRAY_PY + "ctypes.memset(address - 8, 0, 8)\ndel array",
    ),
    Plant(
        "use after release", "write after release",
        (*VICTIM, *PYTHON_MADE, "a write to byte 67 after the free"),
        VICTIM_PY + "data = mi.address\ndel mi\nctypes.memset(data + 3, 1, 1)",
    ),
    Plant(
        "use after release", "write after the free of an array",
        (*BLOCK, *NUMPY_MADE, "a write to byte 64 after the free"),
        ARRAY_PY + "del array\nctypes.memset(address, 1, 1)",
    ),
    Plant(
        "double release", "double release by an extension", (*VICTIM, *PYTHON_MADE, DEAD),
        TABLE + VICTIM_PY + "header = mi.address - 64\nrelease(header)\nrelease(header)",
    ),
    Plant(
        "acquire after release", "acquire after release by an extension",
        (*VICTIM, *PYTHON_MADE, "acquire of", DEAD),
        TABLE + VICTIM_PY + "header = mi.address - 64\ndel mi\nacquire(header)",
    ),
    Plant(
        "foreign free", "foreign free by an extension", (f"release {STRANGER}",),
        TABLE + "foreign = ctypes.create_string_buffer(1000)\n"
        "release(ctypes.addressof(foreign) + 256)",
    ),
)  # fmt: skip

PLANTS = C_PLANTS + PYTHON_PLANTS


def run(program: Path, plant: Plant, check: str = "1") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", plant.code] if plant.code else [str(program), plant.name]
    return subprocess.run(
        command,
        env={**os.environ, "MEMRT_CHECK": check, "PYTHONFAULTHANDLER": ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def missing(plant: Plant, result: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the expected parts that a run lacks: an end by SIGABRT, and parts of the report."""
    parts = [part for part in plant.says if not re.search(part, result.stderr)]
    return parts if result.returncode == -6 else ["an abort", *parts]
