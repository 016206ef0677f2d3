"""Build the C library for musl, and run the tests of its binary interface with musl's loader."""

from __future__ import annotations

import subprocess
from pathlib import Path

import wheel_builder
from wheel_targets import MUSL, ROOT, WORK, cmake_options, step

LOADER = Path("/lib/ld-musl-x86_64.so.1")
"""Debian has musl's loader in the package musl."""


def run_abi_tests() -> str:
    """Build with musl and run the tests. Returns the name of the loader."""
    step("building libmemrt for musl")
    folder = WORK / "build" / "musl"
    prefix = WORK / "build" / "musl-prefix"
    logs = WORK / "log"
    options = cmake_options(MUSL)
    settings = [f"-D{key}={value}" for key, value in options.items()]
    settings += [f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    cmake = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    wheel_builder.run(logs / "musl-configure.log", [*cmake, *settings])
    wheel_builder.run(logs / "musl-build.log", ["cmake", "--build", folder])
    wheel_builder.run(logs / "musl-install.log", ["cmake", "--install", folder])
    compile_program = [options["CMAKE_C_COMPILER"], "-O2", "-std=c11", "-D_GNU_SOURCE"]
    library = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lmemrt", f"-Wl,-rpath,{prefix}/lib"]
    for source in sorted((ROOT / "tests/abi").glob("*.c")):
        program = folder / source.stem
        command = [*compile_program, source, "-o", program, *library]
        wheel_builder.run(logs / f"musl-{source.stem}.log", command)
        subprocess.run([LOADER, program], check=True)
    return "musl's loader"
