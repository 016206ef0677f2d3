"""Building the C files of this folder against the installed package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import memrt

HERE = Path(__file__).resolve().parent


def compile_c(folder: Path, source: str, shared: bool = False) -> Path:
    """A program, whose functions have names for the loader, or a shared object."""
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
