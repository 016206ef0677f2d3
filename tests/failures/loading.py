"""Load the extension while one request of Python's allocators fails (worker process).

usage: python loading.py first|again|warnings

Each forked child lets another request fail: of the first load in a process, of a load after a
complete one, or of the read of option warnings after a load. A failed call must raise MemoryError
or ImportError, and the next call must work. The worker prints the number of requests and of failed
calls. nomemory must be importable. Where Python itself crashes without memory for a type, a child
may crash.
"""

from __future__ import annotations

import _imp
import atexit  # noqa: F401 - an import of a new module may raise RuntimeError without memory
import contextvars
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder

import nomemory
import numpy as np

LOADED, REFUSED, BEYOND, WRONG = range(4)  # exit status of a child


def find() -> ModuleSpec:
    """Find the extension without a load of the package."""
    package = PathFinder.find_spec("memrt")
    spec = PathFinder.find_spec("memrt._memrt", package.submodule_search_locations)
    assert spec is not None
    return spec


def loader(spec: ModuleSpec) -> tuple[Callable, object]:
    module = _imp.create_dynamic(spec)
    return partial(_imp.exec_dynamic, module), module


def check(module) -> None:
    """Use one feature of each part that a load sets up."""
    array = module.empty(300)
    assert module.is_managed(array)
    assert type(module.alloc(8)) is module.MemInfo
    assert type(array) is np.ndarray
    assert module.from_dlpack(array).shape == (300,)


def load(spec: ModuleSpec, nth: int, mode: str) -> int:
    execute, module = loader(spec)
    if mode != "first":
        execute()
    if mode == "again":
        execute, module = loader(spec)
    if mode == "warnings":
        execute = module.take_option_warnings
    status = LOADED
    try:
        nomemory.run(execute, nth, False)
    except (MemoryError, ImportError):
        status = REFUSED
    except SystemError as error:  # CPython's PyType_FromSpec() returns NULL without an exception
        status = REFUSED if "without setting an exception" in str(error) else WRONG
    if nomemory.points() < nth:
        status = BEYOND
    if status == REFUSED and mode == "warnings":
        assert len(execute()) == 1
    elif status == REFUSED:
        execute, module = loader(spec)
        execute()
    check(module)
    return status


def make_type(nth: int) -> int:
    """Create a type in C, of no module of memrt, while the nth request fails."""
    try:
        nomemory.run(nomemory.make_type, nth, False)
    except (MemoryError, SystemError):  # PyType_FromSpec() may set no exception
        return REFUSED
    return BEYOND if nomemory.points() < nth else LOADED


def run_child(work: Callable[[int], int], nth: int) -> int:
    """Return the exit status of a child process, or its signal as a negative number."""
    child = os.fork()
    if child == 0:
        try:
            status = work(nth)
        except BaseException as error:
            print(f"request {nth}: {error!r}", file=sys.stderr)
            status = WRONG
        sys.exit(status)  # a normal end, so that the extension ends in order as well
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_children(work: Callable[[int], int], accepted: tuple[int, ...]) -> list[int]:
    """Fail one request after the other. Return all statuses, the last of them not accepted."""
    statuses: list[int] = []
    while not statuses or statuses[-1] in accepted:
        statuses.append(run_child(work, len(statuses) + 1))
    return statuses


def main() -> int:
    mode, spec = sys.argv[1], find()
    contextvars.copy_context()  # CPython 3.11 crashes if a first context gets no memory
    gc.disable()
    accepted: tuple[int, ...] = (LOADED, REFUSED)
    if run_children(make_type, accepted)[-1] == -signal.SIGSEGV:  # CPython 3.13.5
        accepted += (-signal.SIGSEGV,)
    *statuses, last = run_children(lambda nth: load(spec, nth, mode), accepted)
    print(len(statuses), statuses.count(REFUSED))
    return 0 if last == BEYOND else 1


if __name__ == "__main__":
    sys.exit(main())
