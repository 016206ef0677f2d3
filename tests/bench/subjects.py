"""Who is measured: an allocator, and the process that it is measured in."""

from __future__ import annotations

import ctypes.util
import os
import site
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

MEMRT = "memrt"
UNCOUNTED = "memrt, no counters"
NRT_OFF = "NRT, statistics off"
NRT_ON = "NRT, statistics on"
DEFAULT = "default"  # NumPy, Numba or a program as it is, on glibc's malloc
LIMIT = "limit"
PRELOADED = {"mimalloc": "mimalloc", "tcmalloc": "tcmalloc_minimal", "jemalloc": "jemalloc"}
PACKAGED = "cmeel.prefix"  # folder of libraries that come from PyPI
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Subject:
    """One allocator under measurement."""

    name: str
    kind: str  # what a worker makes of it
    needs: Mapping[str, object] = field(default_factory=dict)  # what that kind needs
    preload: str | None = None  # library that takes the place of the process's malloc
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment

    def environment(self) -> dict[str, str]:
        """The environment of a process that measures it: nothing else may change its memory."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMRT_", "MALLOC_"))}
        kept.pop("LD_PRELOAD", None)
        extra = {"LD_PRELOAD": self.preload} if self.preload else {}
        return {**kept, **ONE_THREAD, "PYTHONHASHSEED": "0", **self.variables, **extra}

    def job(self) -> dict[str, object]:
        """What a worker is told of it."""
        return {"kind": self.kind, **self.needs}


@cache
def library(name: str) -> str:
    """Path of an allocator's library: a newer one from PyPI before the system's."""
    packaged = Path(sysconfig.get_path("purelib")) / PACKAGED / "lib" / f"lib{name}.so"
    if packaged.exists():
        return str(packaged.resolve())
    found = ctypes.util.find_library(name)
    if found is None:
        raise LookupError(f"lib{name} is not installed; ./dev bench installs it")
    return found


def preloaded(name: str, kind: str) -> Subject:
    """An allocator in the place of the process's malloc."""
    return Subject(name, kind, preload=library(PRELOADED[name]))


def allocators(uncounted: str | None) -> list[Subject]:
    """Everybody who gives out single blocks; `uncounted`: a libmemrt built without counters."""
    import memrt

    path = {"path": site.getsitepackages()}
    found = [
        Subject("glibc", "malloc"),
        *(preloaded(name, "malloc") for name in PRELOADED),
        Subject(NRT_OFF, "nrt", {**path, "statistics": False}),
        Subject(NRT_ON, "nrt", {**path, "statistics": True}),
        Subject(MEMRT, "memrt", {"library": memrt.get_library()}),
    ]
    if uncounted is not None:
        found.append(Subject(UNCOUNTED, "memrt", {"library": str(Path(uncounted).resolve())}))
    return found


def environments(*names: str) -> list[Subject]:
    """Whole Python processes: as it is, on memrt, and on preloaded allocators of those names."""
    own = [Subject(DEFAULT, "default"), Subject(MEMRT, "memrt")]
    return own + [preloaded(name, "default") for name in names]
