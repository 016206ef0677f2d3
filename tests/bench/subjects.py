"""Subjects of measurements: an allocator, and the process in which the allocator runs."""

from __future__ import annotations

import ctypes.util
import os
import site
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from places import OUT, WORKERS, compiled

GLIBC = "glibc"
GLIBC_HUGE = "glibc, huge pages"
MEMRT = "memrt"
BLOCKS = "memrt, blocks"  # block_alloc and block_free, as a NumPy handler calls them
UNCOUNTED = "memrt, no counters"
NRT_OFF = "NRT, statistics off"
NRT_ON = "NRT, statistics on"
DEFAULT = "default"  # unmodified NumPy, Numba or program, on glibc's malloc
LIMIT = "limit"
PRELOADED = {"mimalloc": "mimalloc", "tcmalloc": "tcmalloc_minimal", "jemalloc": "jemalloc"}
PACKAGED = "cmeel.prefix"  # folder of libraries installed from PyPI
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Subject:
    """One allocator under measurement."""

    name: str
    kind: str  # selects the setup in the worker
    needs: Mapping[str, object] = field(default_factory=dict)  # parameters of the kind
    preload: str | None = None  # library for LD_PRELOAD, replaces the process's malloc
    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables

    def environment(self) -> dict[str, str]:
        """Return the environment of the measuring process, without inherited memory settings."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMRT_", "MALLOC_"))}
        for name in ("LD_PRELOAD", "GLIBC_TUNABLES"):
            kept.pop(name, None)
        extra = {"LD_PRELOAD": self.preload} if self.preload else {}
        return {**kept, **ONE_THREAD, "PYTHONHASHSEED": "0", **self.variables, **extra}

    def loops(self, source: str = "loops.c") -> str:
        """Return the path of the loops of a C file, compiled for the kind of the subject."""
        flags, folder = (["-DBLOCKS"], OUT / "blocks") if self.kind == "blocks" else ([], OUT)
        return str(compiled(WORKERS / "native" / source, *flags, folder=folder))

    def job(self) -> dict[str, object]:
        """Return the description of the subject for a worker's job."""
        return {"kind": self.kind, **self.needs}


@cache
def library(name: str) -> str:
    """Return the path of an allocator's library. A library from PyPI wins over the system's."""
    packaged = Path(sysconfig.get_path("purelib")) / PACKAGED / "lib" / f"lib{name}.so"
    if packaged.exists():
        return str(packaged.resolve())
    found = ctypes.util.find_library(name)
    if found is None:
        raise LookupError(f"lib{name} is not installed: run ./dev bench to install lib{name}")
    return found


def preloaded(name: str, kind: str) -> Subject:
    """Return a subject whose process has `name` preloaded in place of malloc."""
    return Subject(name, kind, preload=library(PRELOADED[name]))


def own_allocators() -> list[Subject]:
    """Return memrt's MemInfos and memrt's blocks."""
    import memrt

    own = {"library": memrt.get_library()}
    table = str(compiled(WORKERS / "native" / "table.c", f"-I{memrt.get_include()}"))
    return [
        Subject(MEMRT, "memrt", own),
        Subject(BLOCKS, "blocks", {**own, "table": table, "scope": False}),
    ]


def allocators(uncounted: str | None) -> list[Subject]:
    """Return all allocators of single blocks. `uncounted` is a libmemrt built without counters."""
    path = {"path": site.getsitepackages()}
    found = [
        Subject(GLIBC, "malloc"),
        *(preloaded(name, "malloc") for name in PRELOADED),
        Subject(NRT_OFF, "nrt", {**path, "statistics": False}),
        Subject(NRT_ON, "nrt", {**path, "statistics": True}),
        *own_allocators(),
    ]
    if uncounted is not None:
        found.append(Subject(UNCOUNTED, "memrt", {"library": str(Path(uncounted).resolve())}))
    return found


def glibc_with_huge_pages() -> Subject:
    """Return glibc with advice on huge pages, the default of glibc 2.43 on AArch64 only."""
    return Subject(GLIBC_HUGE, "malloc", variables={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"})


def environments(*names: str) -> list[Subject]:
    """Return Python processes: unmodified, on memrt, and with each of `names` preloaded."""
    own = [Subject(DEFAULT, "default"), Subject(MEMRT, "memrt")]
    return own + [preloaded(name, "default") for name in names]
