"""The systems that wheels are built for, and the compilers that build for them.

The compiler is Zig's, from PyPI: clang with the headers and symbol lists of each glibc, so that one
machine builds for older systems and for other processors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / folder) for folder in ("systems", "suites")]
WORK = ROOT / "build" / "wheels"
HEADERS = WORK / "include"
GLIBC = "2.28"
"""The oldest glibc that wheels run with, as for NumPy's wheels."""

MUSL_TAG = "1.2"
"""The version of musl in the tags of wheels, as for NumPy's wheels."""

TOOLS = ("cc", "c++", "ar", "ranlib")


@dataclass(frozen=True)
class Target:
    """A processor and a C library."""

    processor: str
    libc: str = "gnu"

    @property
    def triple(self) -> str:
        version = f".{GLIBC}" if self.libc == "gnu" else ""
        return f"{self.processor}-linux-{self.libc}{version}"

    @property
    def name(self) -> str:
        """A name for files and folders."""
        return self.processor if self.libc == "gnu" else f"{self.processor}-{self.libc}"

    @property
    def platform(self) -> str:
        """The platform tag of a wheel."""
        libc = f"manylinux_{GLIBC}" if self.libc == "gnu" else f"musllinux_{MUSL_TAG}"
        return f"{libc.replace('.', '_')}_{self.processor}"

    @property
    def is_native(self) -> bool:
        return self.processor == os.uname().machine

    def suffix(self, version: str) -> str:
        """Return the ending of extension modules for a Python version such as "3.13"."""
        return f".cpython-{version.replace('.', '')}-{self.processor}-linux-gnu.so"


X86_64 = Target("x86_64")
AARCH64 = Target("aarch64")
MUSL = Target("x86_64", "musl")
TARGETS = {"x86_64": X86_64, "aarch64": AARCH64, "musl": MUSL}


def find_zig() -> Path:
    """Return the path of Zig's program in the environment of this Python."""
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def copy_headers() -> Path:
    """Copy the headers of libatomic_ops, probes and memcheck into HEADERS, and return the folder.

    The folder of all headers of the machine would replace the headers of the target's C library.
    """
    if (HEADERS / "valgrind").exists():
        return HEADERS
    shutil.rmtree(HEADERS, ignore_errors=True)  # of a build that was cut off, or of old sources
    listing = subprocess.run(
        ["cc", "-M", "-x", "c", "-"],
        input="#include <atomic_ops.h>\n#include <sys/sdt.h>\n#include <valgrind/memcheck.h>\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = [Path(word) for word in listing.split() if word.startswith("/")]
    atomics = next(path for path in files if path.name == "atomic_ops.h")
    probes = next(path for path in files if path.parts[-2:] == ("sys", "sdt.h"))
    memcheck = next(path for path in files if path.parts[-2:] == ("valgrind", "memcheck.h"))
    (HEADERS / "sys").mkdir(parents=True)
    (HEADERS / "valgrind").mkdir()
    for name in ("memcheck.h", "valgrind.h"):
        shutil.copy(memcheck.with_name(name), HEADERS / "valgrind")
    shutil.copy(atomics, HEADERS)
    shutil.copytree(atomics.with_suffix(""), HEADERS / "atomic_ops")
    for name in ("sdt.h", "sdt-config.h"):
        if (probes.parent / name).exists():
            shutil.copy(probes.parent / name, HEADERS / "sys")
    return HEADERS


def make_compilers(target: Target) -> Path:
    """Write the compilers and tools for a target, and return their folder."""
    headers = copy_headers()
    folder = WORK / "compilers" / target.triple
    folder.mkdir(parents=True, exist_ok=True)
    for tool in TOOLS:
        options = f"-target {target.triple} -isystem {headers}" if tool in ("cc", "c++") else ""
        script = folder / tool
        script.write_text(f'#!/bin/sh\nexec {find_zig()} {tool} {options} "$@"\n')
        script.chmod(0o755)
    return folder


def cmake_options(target: Target) -> dict[str, str]:
    """Return CMake's variables for a build with the compilers of a target."""
    folder = make_compilers(target)
    options = {
        "CMAKE_C_COMPILER": str(folder / "cc"),
        "CMAKE_CXX_COMPILER": str(folder / "c++"),
        # Zig adds debug information without -g0. Only for the native processor, objcopy moves the
        # information to a separate file, and strip removes the rest from the extension. Zig keeps
        # frame pointers, which cost 10 of 80 instructions of a pair of allocation and free.
        "CMAKE_C_FLAGS": "-fomit-frame-pointer" if target.is_native else "-g0 -fomit-frame-pointer",
        "CMAKE_AR": str(folder / "ar"),
        "CMAKE_RANLIB": str(folder / "ranlib"),
        "MEMRT_ATOMIC_OPS_INCLUDE_DIR": str(HEADERS),
    }
    if not target.is_native:  # CMake then asks Python nothing; NumPy's headers fit all processors
        options |= {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": target.processor}
        options |= {"Python_NumPy_INCLUDE_DIR": numpy.get_include()}
    return options


def step(text: str) -> None:
    print(f"→ {text}", file=sys.stderr, flush=True)
