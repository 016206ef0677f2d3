"""Describe the machine and the software versions of a measurement."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from places import ROOT
from subjects import PACKAGED, PRELOADED, library

sys.path.append(str(ROOT / "tests" / "reliability"))
import page

PACKAGES = ("memrt", "numpy", "numba")


def processor() -> str:
    """Return the processor model and the number of cores."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    name = found[1] if found else platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / (1 << 30):.0f} GiB"


def huge_pages() -> str:
    """Return the mode of transparent huge pages, or "unknown"."""
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    found = re.search(r"\[(\w+)\]", path.read_text()) if path.exists() else None
    return found[1] if found else "unknown"


def version(path: str) -> str:
    """Return the version of an allocator's library, from PyPI metadata or from dpkg."""
    if PACKAGED in path:
        return importlib.metadata.version("cmeel-mimalloc")
    mapped = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    file = re.search(rf"^\t{re.escape(path)} .* => (\S+)$", mapped, re.MULTILINE)[1]
    query = ["dpkg-query", "--search", str(Path(file).resolve())]
    owner = subprocess.run(query, capture_output=True, text=True).stdout.split(":")[0]
    query = ["dpkg-query", "--show", "--showformat=${Version}", owner]
    return subprocess.run(query, capture_output=True, text=True).stdout or Path(file).resolve().name


def commit() -> str:
    """Return the commit of the measured tree, and whether the tree has other changes.

    Files of results do not count as changes: each part writes its own.
    """
    return page.commit() + (", with changes" if page.uncommitted() else "")


def machine(packages: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the facts needed to compare figures: date, commit, hardware, system and versions."""
    wanted = [*PACKAGES, *packages]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "processor": processor(),
        "memory": memory(),
        "huge pages": huge_pages(),
        "system": f"Linux {platform.release()}, glibc {platform.libc_ver()[1]}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in wanted},
        **{name: version(library(file)) for name, file in PRELOADED.items()},
    }
