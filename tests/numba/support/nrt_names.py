"""List the names of Numba's runtime that compiled code refers to, from the sources of Numba.

Usage: python tests/numba/support/nrt_names.py FOLDER ...

Each folder is an installed package numba. The program fails if libmemrt_nrt lacks a name.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import memrt

# Numba emits these functions into each module.
EMITTED = {"NRT_incref", "NRT_decref", "NRT_MemInfo_data_fast"}
# Helpers with Python objects as arguments or results.
FOR_PYTHON = {
    "NRT_adapt_buffer_from_python",
    "NRT_adapt_ndarray_from_python",
    "NRT_adapt_ndarray_to_python_acqref",
    "NRT_meminfo_as_pyobject",
    "NRT_meminfo_from_pyobject",
    "NRT_meminfo_new_from_pyobject",
}

_IN_PYTHON = re.compile(r"[\"'](NRT_[A-Za-z_]+)[\"']")
_HELPER = re.compile(r"^\s*declmethod(_internal)?\((\w+)\);", re.MULTILINE)


def referenced(folder: Path) -> set[str]:
    """Return the names in Numba's Python sources, and the keys of `c_helpers`."""
    helpers = (folder / "core" / "runtime" / "_nrt_pythonmod.c").read_text(encoding="utf-8")
    names = {name if internal else f"NRT_{name}" for internal, name in _HELPER.findall(helpers)}
    for path in folder.rglob("*.py"):
        names.update(_IN_PYTHON.findall(path.read_text(encoding="utf-8")))
    return names


def exported(library: Path) -> set[str]:
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()  # fmt: skip
    return {line.split()[-1] for line in lines}


def missing(folder: Path) -> set[str]:
    """Return the names that neither libmemrt_nrt nor Numba itself supplies without Python."""
    library = Path(memrt.get_library()).with_name("libmemrt_nrt.so.1")
    return referenced(folder) - exported(library) - EMITTED - FOR_PYTHON


def main(folders: list[str]) -> int:
    faults = 0
    for folder in map(Path, folders):
        lacking = sorted(missing(folder))
        faults += len(lacking)
        print(f"{folder}: {len(referenced(folder))} names, missing: {', '.join(lacking) or 'none'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
