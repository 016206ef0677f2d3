"""Compile the C modules and libraries of the worker, for the running Python."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import memrt
import numpy as np

HERE = Path(__file__).resolve().parent
PROBE = HERE.parent / "python" / "ext" / "probe.c"
FAKE_DRIVER = HERE.parent / "cuda" / "fake_driver.c"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
SYSTEM = "librefusing.so"
CUDA = "libfake_driver.so"


def compile_shared(source: Path, target: Path, *flags: str) -> None:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    warnings = ("-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE")
    shape = ("-O1", "-g", "-fPIC", "-shared", "-pthread")
    subprocess.run([*compiler, *shape, *warnings, source, *flags, "-o", target], check=True)


def build(folder: Path) -> None:
    """Compile nomemory, probe, the library of refusing.c and a fake CUDA driver into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    python = ("-isystem", sysconfig.get_paths()["include"])
    version = "NPY_1_22_API_VERSION"
    numpy = ("-isystem", np.get_include(), f"-DNPY_TARGET_VERSION={version}",
             f"-DNPY_NO_DEPRECATED_API={version}")  # fmt: skip
    compile_shared(HERE / "nomemory.c", folder / f"nomemory{SUFFIX}", *python)
    compile_shared(HERE / "refusing.c", folder / SYSTEM)
    compile_shared(FAKE_DRIVER, folder / CUDA)
    compile_shared(PROBE, folder / f"probe{SUFFIX}", f"-I{memrt.get_include()}", *python, *numpy)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment for a worker that uses the files of build()."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "LD_PRELOAD": str(folder / SYSTEM),
        "MEMRT_CUDA_DRIVER": str(folder / CUDA),
    }
