"""Build the C library for musl, and run the tests of its binary interface with musl's loader."""

from __future__ import annotations

import subprocess
from pathlib import Path

import wheel_builder
from wheel_targets import MUSL, ROOT, WORK, cmake_options, step

LOADER = Path("/lib/ld-musl-x86_64.so.1")
"""Debian has musl's loader in the package musl."""


def test_musl() -> str:
    """Build with musl and run the tests. Returns where they ran."""
    step("building libmemrt for musl")
    folder = WORK / "build" / "musl"
    prefix = WORK / "build" / "musl-prefix"
    options = [f"-D{key}={value}" for key, value in cmake_options(MUSL).items()]
    options += [f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    log = WORK / "log" / "musl.log"
    cmake = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    wheel_builder.run(log, [*cmake, *options])
    wheel_builder.run(log, ["cmake", "--build", folder])
    wheel_builder.run(log, ["cmake", "--install", folder])
    compiler = cmake_options(MUSL)["CMAKE_C_COMPILER"]
    for source in sorted((ROOT / "tests/abi").glob("*.c")):
        program = folder / source.stem
        libraries = [
            f"-I{prefix}/include",
            f"-L{prefix}/lib",
            "-lmemrt",
            f"-Wl,-rpath,{prefix}/lib",
        ]
        wheel_builder.run(
            log, [compiler, "-O2", "-std=c11", "-D_GNU_SOURCE", source, "-o", program, *libraries]
        )
        subprocess.run([LOADER, program], check=True)
    return "musl's loader"
