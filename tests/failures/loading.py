"""Load the extension while one request of Python's allocators fails (worker process).

usage: python loading.py first|again|warnings

Each forked child lets another request fail: of the first load in a process, of a load after a
complete one, or of the read of option warnings after a load. A failed call must raise MemoryError
or ImportError, and the next call must work. The worker prints the number of requests and of failed
calls. nomemory must be importable.
"""

from __future__ import annotations

import _imp
import atexit  # noqa: F401 - an import of a new module may raise RuntimeError without memory
import contextvars
import gc
import itertools
import os
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


def run_child(spec: ModuleSpec, nth: int, mode: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            status = load(spec, nth, mode)
        except BaseException as error:
            print(f"request {nth}: {error!r}", file=sys.stderr)
            status = WRONG
        sys.exit(status)  # a normal end, so that the extension ends in order as well
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    mode, spec = sys.argv[1], find()
    contextvars.copy_context()  # CPython 3.11 crashes if a first context gets no memory
    gc.disable()
    statuses = []
    for nth in itertools.count(1):
        status = run_child(spec, nth, mode)
        if status not in (LOADED, REFUSED):
            break
        statuses.append(status)
    print(len(statuses), statuses.count(REFUSED))
    return 0 if status == BEYOND else 1


if __name__ == "__main__":
    sys.exit(main())
