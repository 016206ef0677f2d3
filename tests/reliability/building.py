"""Compile the C files of `tests/reliability` against the installed package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import memrt

HERE = Path(__file__).resolve().parent


def compile_c(folder: Path, source: str, shared: bool = False) -> Path:
    """Compile a program or a shared object, and return the path.

    A program is linked with -rdynamic, for function names in call stacks.
    """
    target = folder / (Path(source).stem + (".so" if shared else ""))
    library = Path(memrt.get_library())
    subprocess.run(
        [
            *(os.environ.get("CC", "cc"), "-O1", "-pthread", "-Wall", "-Wextra", "-Werror"),
            *("-D_GNU_SOURCE", f"-I{memrt.get_include()}"),
            *(("-fPIC", "-shared") if shared else ("-rdynamic",)),
            *(str(HERE / source), str(library), f"-Wl,-rpath,{library.parent}"),
            *("-o", str(target)),
        ],
        check=True,
    )
    return target
